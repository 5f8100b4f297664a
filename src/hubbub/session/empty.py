"""The declared tables without a row: what can be told of a question before anything is charged, wherever that is done.

    described = schema_of(data)                    where the rows are: columns, kinds, units; no row, no count
    data = EmptyTables(tables, described)          elsewhere: the same declarations over empty tables
    answer_types(asked, data)                      names and types of an answer's columns, from an answer about nobody

A process that has only these can read, plan and price any question, and open no source. Its data versions are those
that the ledger knows: only a steward's refresh changes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from hubbub.answer.evaluate import EvaluatedStatement
from hubbub.engines.base import Located
from hubbub.engines.duckdb.relations import arrow_type
from hubbub.engines.exact import exact
from hubbub.errors import HubbubError, PolicyError
from hubbub.session.data import OpenTables
from hubbub.session.prepare import PricedStatement
from hubbub.sql.emit.plan import summed
from hubbub.tables.declare import PrivateTable, PublicTable
from hubbub.tables.draw_release import draw
from hubbub.tables.estimates import read
from hubbub.tables.kinds import Kind

__all__ = ["EmptyTables", "answer_types", "schema_of"]

_MANY: Final = 10_000  # groups for which no answer is tried


def schema_of(data: OpenTables) -> dict[str, Any]:
    """What the declarations found at their sources, as JSON: names and kinds of columns, units, places. No rows."""
    described = {}
    for name, info in data.catalog.items():
        at = data.engine.located(name)
        described[name] = {
            "columns": {column: kind.value for column, kind in info.columns.items()},
            "unit": info.unit,
            "unit_type": info.unit_type,
            "zoned": sorted(info.zoned),
            "located": [at.place, at.inner, list(at.older)],
            "here": _told(at.here),
            "header": list(at.header),
            "kept": list(at.kept),
        }
    return described


class EmptyTables(OpenTables):
    """The declarations of private tables over empty ones; public tables as they are.

    tables: as declared. described: what `schema_of` told of them, where their rows are.

    Raises PolicyError where that is not what is declared.
    """

    def __init__(self, tables: Mapping[str, PrivateTable | PublicTable], described: Mapping[str, Any]) -> None:
        if described.keys() != tables.keys():
            raise PolicyError(f"declared are {sorted(tables)}, and described were {sorted(described)}.")
        self._described = described
        declared = dict(tables)
        super().__init__({name: _emptied(table, described[name]) for name, table in declared.items()})
        for name, table in declared.items():
            if isinstance(table, PrivateTable):
                unit = self.catalog[name].unit
                shown = self.tables[name] = table if unit is None else replace(table, unit=unit)
                zoned = frozenset(described[name].get("zoned", ()))  # of an older description: none is known
                self.catalog[name] = replace(self.catalog[name], table=shown.without_source(), zoned=zoned)

    def located(self) -> dict[str, Located]:
        """Where each source was found, where its rows are."""
        located = {}
        for name, told in self._described.items():
            place, inner, older = told["located"]
            here = frozenset(tuple(one) if isinstance(one, list) else one for one in told["here"]) or None
            located[name] = Located(place, inner, tuple(older), here, tuple(told["header"]), tuple(told["kept"]))
        return located

    def mark(self, name: str) -> str | None:
        """None: nothing here tells whether rows have changed."""
        return None


def _told(here: Hashable) -> list[Any]:
    """What a source is in the process that found it, for another one to compare with the others: files of this machine
    by their numbers, and whatever else by a digest.
    """
    each = here if isinstance(here, frozenset) else () if here is None else (here,)
    return [list(one) if _is_file(one) else _digest(one) for one in sorted(each, key=_digest)]


def _is_file(identity: Hashable) -> bool:
    return isinstance(identity, tuple) and tuple(map(type, identity)) == (int, int, str)


def _digest(identity: Hashable) -> str:
    return hashlib.sha256(repr(identity).encode("utf-8", "surrogatepass")).hexdigest()


def _emptied(table: PrivateTable | PublicTable, told: Mapping[str, Any]) -> PrivateTable | PublicTable:
    """The same declaration over an empty table."""
    if isinstance(table, PublicTable):
        return table
    kinds = {column: Kind(kind) for column, kind in told["columns"].items()}
    fields = {column: _stored_as(kind) for column, kind in kinds.items()}
    unit = told["unit"]
    if unit is not None and told["unit_type"] in ("integer", "text"):
        fields[unit] = pa.int64() if told["unit_type"] == "integer" else pa.string()
    rows = pa.table({column: pa.array([], kind) for column, kind in fields.items()})
    return replace(table, source=rows, copy=None, types={}, inner_table=None)


def _stored_as(kind: Kind) -> pa.DataType:
    return {Kind.OTHER: pa.binary(), Kind.NULL: pa.null()}.get(kind, arrow_type(kind))


def answer_types(asked: PricedStatement) -> tuple[tuple[str, str], ...]:
    """The columns of an answer, each with its Arrow type: those of an answer about nobody, with noise of its own.

    Empty for an answer of very many groups, and where the outer part fails on such values: it is tried on noise about
    nobody, so nothing of it depends on rows.
    """
    if any((plan.group_count or 0) > _MANY for plans in asked.plans for plan in plans):
        return ()
    nobody = [
        exact(plan, [], {i: [] for i, m in enumerate(plan.measurements) if not summed(m)}) for plan in asked.price.plans
    ]
    with suppress(HubbubError):
        estimates = asked.grouped(read(asked.price, draw(asked.price, nobody)))
        table = EvaluatedStatement(asked.statement, estimates, asked.outer).table
        return tuple((field.name, str(field.type)) for field in table.schema)
    return ()
