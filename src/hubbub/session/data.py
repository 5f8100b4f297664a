"""The declared tables of a session, opened: their engine, their public side, and the names that questions may use.

Nothing here knows of a budget, a ledger or a key. So a process that holds these, and no ledger, can run what another
process has charged (`hubbub.session.runner`).
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from hubbub.arguments import a_name
from hubbub.engines.base import Exact, InPlace, Located
from hubbub.engines.outer import OuterSide
from hubbub.engines.registry import engine_for
from hubbub.engines.stopping import stoppable
from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.budget import Budget
from hubbub.ledger.versions import Versions
from hubbub.remedies import GiveOptions
from hubbub.session.open import named_tables, resolved_paths
from hubbub.session.options import Options
from hubbub.session.prepare import PricedStatement, ask
from hubbub.session.remembered import Remembered, key_of
from hubbub.session.shown import not_private
from hubbub.session.sources import check_shown, identities, older_places, source_places
from hubbub.sql.bind.context import Reader
from hubbub.sql.bind.declared import about_declarations
from hubbub.sql.bind.query import PublicQuestion, TableInfo
from hubbub.tables.declare import PrivateTable, PublicTable
from hubbub.tables.plan import Plan
from hubbub.tables.relations import Scan
from hubbub.tables.remote import SparkName

__all__ = ["Cells", "OpenTables"]


@dataclass(frozen=True, eq=False)
class Cells:
    """The values of private rows, by column, and a number for each row's unit (None: each row is its own).

    They cannot be printed or pickled.
    """

    columns: Mapping[str, Sequence[Any]] = field(repr=False)
    units: Sequence[Any] | None = field(repr=False)

    def __repr__(self) -> str:
        return "Cells(not shown)"

    def __reduce__(self) -> str:
        raise TypeError("the rows of people cannot be pickled")


class OpenTables:
    """Declared tables, each with its source found and its columns known.

    tables: as they are declared, paths made absolute and units spelled as their sources spell them. catalog: what
    questions may name. engine: holds the private tables; outer: the public ones.

    Raises PolicyError for a source that is missing or declared wrongly.
    """

    _closed = False

    def __init__(self, tables: Mapping[str, PrivateTable | PublicTable]) -> None:
        self.tables = resolved_paths(named_tables(tables))
        self.max_aggregates: int | None = None  # of one question; None: any number
        self.max_answer_groups: int | None = None  # of one grouping
        self.versions: Versions | None = None  # of the ledger, which knows the private sources of other sessions
        for name, declared in self.tables.items():
            a_name(name, "tables")
            if isinstance(declared, PrivateTable):
                a_name(declared.space, f"the unit space of {name!r}")
        self._remembered = Remembered()
        self.engine = engine_for(self.tables)
        try:
            self.catalog = {name: self._add(name, t) for name, t in self.tables.items()}
            self.engine.seal()
            self._marks = {name: self.engine.mark(name) for name in self.spaces()}
        except BaseException:
            self.engine.close()
            raise
        for name, declared in self.tables.items():  # whose files are read again, whatever folder the process is in
            source = declared.source if isinstance(declared, PublicTable) else None
            if isinstance(source, str) and not os.path.isabs(source):
                # Not by `abspath`, which takes `..` away before a link is followed.
                self.tables[name] = replace(declared, source=os.path.join(os.getcwd(), source))
        public = {n: t for n, t in self.tables.items() if isinstance(t, PublicTable)}
        self._shown = {name: identities(table) for name, table in public.items()}
        self.outer = OuterSide(public, look=self.check_shown)

    def _add(self, name: str, table: PrivateTable | PublicTable) -> TableInfo:
        copy = table.copy if isinstance(table, PrivateTable) else None
        if copy is not None and not os.path.exists(copy):
            raise PolicyError(
                f"table {name!r}: its policy says rows_kept, and the copy that questions read was not written yet. A "
                f"steward writes it: `hubbub ledger refresh {name}`, or `hubbub ledger create`, which does it first."
            )
        schema = self.engine.add(name, table if copy is None else replace(table, source=copy))
        if isinstance(table, PublicTable):
            return TableInfo(schema.columns, private=False)
        if schema.unit is not None:
            # As the source writes it: "ID" and "id" are one column, one unit space, one budget.
            table = self.tables[name] = replace(table, unit=schema.unit)
        return TableInfo(schema.columns, True, schema.unit, table.without_source(), schema.unit_type, schema.zoned)

    def respell(self, spelling: Mapping[str, str]) -> None:
        """Call the unit spaces as an older ledger recorded them."""
        self._remembered = Remembered()
        for name, declared in self.tables.items():
            if isinstance(declared, PrivateTable) and spelling.get(declared.space, declared.space) != declared.space:
                table = self.tables[name] = replace(declared, unit_space=spelling[declared.space])
                self.catalog[name] = replace(self.catalog[name], table=table.without_source())

    def check_shown(self, public: str) -> None:
        """See that the files of a public table are not those of a private one: links to them may have come since.

        Raises PolicyError where they are.
        """
        located = self.located()
        check_shown(public, self.tables, located)
        files = identities(self.tables[public])
        if self.versions is not None and files != self._shown[public]:  # else an opening has asked, which takes a while
            shown = older_places({public: self.tables[public]}, located)
            self.versions.check_public(shown.public, shown.shown)
            self._shown[public] = files

    def located(self) -> dict[str, Located]:
        """Where each source was found."""
        return {name: self.engine.located(name) for name in self.tables}

    def spaces(self) -> dict[str, str]:
        """The unit space of each private table, by its name."""
        return {name: t.space for name, t in self.tables.items() if isinstance(t, PrivateTable)}

    def space(self, named: str | None) -> str:
        """The unit space that is meant; the only one, if there is one.

        Raises QueryError where it is not known, or not said.
        """
        spaces = set(self.spaces().values())
        if named is None and len(spaces) == 1:
            return spaces.pop()
        if named is None or a_name(named, "unit_space") not in spaces:
            ways = tuple(GiveOptions(("unit_space",), (space,)) for space in sorted(spaces))
            said = " or ".join(way.in_python() for way in ways)
            raise QueryError(f"unit_space={named!r}: name one of those that there are: {said}.", remedy=ways)
        return named

    def private(self, name: str) -> PrivateTable:
        """The declaration of a private table.

        Raises QueryError for any other name.
        """
        table = self.tables.get(a_name(name, "table"))
        if not isinstance(table, PrivateTable):
            raise not_private(name, self.spaces())
        return table

    def mark(self, name: str) -> str | None:
        """A text that changes when the rows of a source do, for the ledger alone; of one whose engine cannot tell, when
        another one is declared in its place.

        Raises PolicyError where its columns are no longer those that were declared, where it has become another source
        that has a budget of its own, and after `close`.
        """
        if self._closed:
            raise PolicyError("this session is closed. Open another one and ask there. Nothing was charged.")
        self.engine.recheck(name)
        mark, source = self.engine.mark(name), self.tables[name].source
        if self._marks[name] != mark and self.versions is not None:
            located = self.located()  # other rows: by a link they may be those of another source now
            source_places(self.tables, located)
            self.versions.check_files(older_places(self.tables, located).files)
            self._marks[name] = mark
        return str(source) if mark is None and isinstance(source, SparkName) else mark

    def declared(self, sql: str) -> PublicQuestion | None:
        """A statement about declarations (DESCRIBE, SHOW TABLES, SUMMARIZE), which has no amount; None for others.

        Raises QueryError for a table that is not known.
        """
        declarations = about_declarations(sql, self.catalog)
        return None if declarations is None else PublicQuestion(declarations, ())

    def ask(
        self,
        sql: str,
        options: Options,
        budget: Callable[[str], Budget],
        now: dt.datetime | None = None,
        *,
        analyst: str | None = None,
    ) -> PricedStatement | PublicQuestion:
        """Read, plan and price a statement, and have the engine look at its texts; reads no private row.

        now: what now() is in it, in UTC; this moment unless said. analyst: who asks, so that the same text is not
        worked out twice for him; None: it is.

        Raises QueryError, PolicyError or ParameterError for whatever cannot be answered.
        """
        most = {"max_aggregates": self.max_aggregates, "max_answer_groups": self.max_answer_groups}
        key = None if analyst is None else key_of(sql, options, most)
        known = None if key is None or analyst is None else self._remembered.find(analyst, key, budget, now)
        asked: PricedStatement | PublicQuestion
        if known is not None:
            asked = known
        else:
            budget = cache(budget)  # it is kept with the budget that it was priced for
            asked = ask(sql, self.catalog, self.outer.pinned(), options, budget, now, **most)
            if key is not None and analyst is not None and isinstance(asked, PricedStatement):
                self._remembered.keep(analyst, key, budget, asked)
        if isinstance(asked, PricedStatement):
            for plan in asked.price.plans:
                self.engine.prepare(plan)
            for plan in () if asked.finding is None else asked.finding.histograms:
                self.engine.prepare(plan)
        return asked

    def scan(self, table: str) -> Scan:
        """The owned rows of a private table, with those that lead to their units."""
        return Reader("", self.catalog, None).scan(table, None)

    def run(self, plan: Plan, public: Mapping[str, Any]) -> Exact:
        """The private part of a question; Ctrl-C stops it.

        Raises EngineError, with an incident id alone, if the engine fails.
        """
        return stoppable(lambda: self.engine.run(plan, public), self.engine.interrupt)

    def cells(self, table: str, columns: Sequence[str]) -> Cells:
        """The owned rows of a table, for this process alone; Ctrl-C stops it.

        Raises EngineError, with an incident id alone, if the engine fails.
        """
        scan = self.scan(table)
        rows = stoppable(lambda: self.engine.rows(scan, columns), self.engine.interrupt)
        units = rows.column("").to_pylist() if "" in rows.column_names else None
        return Cells({name: rows.column(name).to_pylist() for name in columns}, units)

    def owned(self, table: str, columns: Sequence[str]) -> tuple[Any, Any]:
        """The owned rows of a table as Arrow, and a number for each row's unit (None: each row is its own).

        For this process alone; Ctrl-C stops it. Raises EngineError, with an incident id alone, if the engine fails.
        """
        scan = self.scan(table)
        rows = stoppable(lambda: self.engine.rows(scan, columns), self.engine.interrupt)
        units = rows.column("").to_numpy() if "" in rows.column_names else None
        return rows.select(list(columns)), units

    def totals(
        self, table: str, columns: Sequence[str], write: Callable[[str, Any], str], public: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """What a text of sums brings of the owned rows of a table, where they stay; Ctrl-C stops it.

        Raises EngineError, with an incident id alone, if the engine fails.
        """
        scan, engine = self.scan(table), self.engine
        assert isinstance(engine, InPlace)
        return stoppable(lambda: engine.totals(scan, columns, write, public), engine.interrupt)

    def close(self) -> None:
        """Close the engine and the public side. What is asked then is refused before it is charged."""
        self._closed = True
        self.engine.close()
        self.outer.close()
