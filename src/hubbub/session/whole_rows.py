"""Questions about whole rows, synthetic tables and marginals, as the door takes them: declared, priced, then drawn.

Both look at whole rows, so a unit is bounded by rows: it keeps at most R of them, chosen by a hash of the row
(`hubbub.synthesis.session_adapter.bounded`), and moves every count by at most R. Both are priced in zCDP and need a
budget with a delta. The domain is what the table's columns declare; the number of rows is bought, or given.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from hubbub.accounting import ZCDP, Event, rho_of_epsilon
from hubbub.arguments import a_choice, a_name, a_whole_number, an_amount, names
from hubbub.errors import ParameterError, PolicyError, QueryError
from hubbub.ledger.budget import Budget, EpsilonLike, decimal_text, parse_epsilon
from hubbub.remedies import DeclareLimits, GiveOptions, LeaveOut, UseDelta
from hubbub.session.run import Request, Steps
from hubbub.session.shown import not_private
from hubbub.tables.columns import Between, Edges, OneOf, trimmed
from hubbub.tables.declare import PrivateTable
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import Scan, as_held, canonical_relation, scans

if TYPE_CHECKING:
    from hubbub.noise import Bits
    from hubbub.session.data import OpenTables
    from hubbub.synthesis.marginals import MarginalPlan
    from hubbub.synthesis.probe import Probe
    from hubbub.synthesis.records import Schema
    from hubbub.synthesis.session_adapter import SynthesisQuestion
    from hubbub.synthesis.synthetic import SyntheticData

__all__ = [
    "MarginalsAsked",
    "SynthesisAsked",
    "ask_marginals",
    "ask_synthesis",
    "private_table",
    "request_about_rows",
    "rows_that_count",
    "synthetic_data",
    "whole_table",
]

_MARGINALS = "[('ward', 'age'), ('sex',)]"


@dataclass(frozen=True, eq=False)
class SynthesisAsked:
    """A synthetic table that could be asked for, with its plan. ask: the same as JSON. target: a column that is to be
    learned from it; nothing of the draw depends on it.
    """

    question: SynthesisQuestion
    epsilon: Fraction
    ask: Mapping[str, Any]
    target: str | None = None

    def request(self, data: OpenTables) -> Request:
        """As the door takes it: all of rho is reserved; where the first step is the last, the rest comes back."""
        question = self.question
        return request_about_rows(
            data,
            question.table,
            kind="synthesis",
            ask=self.ask,
            epsilon=self.epsilon,
            event=ZCDP(question.rho),
            key=question.key,
            text=f"synthetic table of {question.table}",
            details={
                "columns": list(question.schema.columns),
                "method": question.method,
                "rows_per_unit": question.rows_per_unit,
                "constraints": list(question.constraints),
            },
            columns=question.schema.columns,
            steps=lambda bits: _synthesis(question, data, bits),
            capped=True,
        )


def _synthesis(question: SynthesisQuestion, data: OpenTables, bits: Bits | None) -> Steps:
    from hubbub.synthesis.session_adapter import packed, packed_probe

    first, made = yield from synthetic_data(question, data, bits)
    return packed_probe(first) if made is None else packed(made)


def synthetic_data(
    question: SynthesisQuestion, data: OpenTables, bits: Bits | None
) -> Generator[Event, None, tuple[Probe, SyntheticData | None]]:
    """First how many rows have declared values; then, unless hardly any has, the table."""
    from hubbub.synthesis.session_adapter import bounded

    cells = data.cells(question.table, list(question.schema.columns))
    codes = question.schema.places(cells.columns)
    yield question.first_event
    first = question.probe(codes, cells.units, bits=bits)
    if first.hardly_any:
        return first, None
    kept = bounded(codes, cells.units, question.rows_per_unit)
    yield question.second_event
    return first, question.answer(kept, first=first, bits=bits)


@dataclass(frozen=True, eq=False)
class MarginalsAsked:
    """Marginals that could be asked for, with their plan. rows: how many of one unit count. ask: the same as JSON."""

    table: str
    schema: Schema
    plan: MarginalPlan
    rows: int
    moved: int
    marginals: tuple[tuple[str, ...], ...]
    epsilon: Fraction
    ask: Mapping[str, Any]

    def request(self, data: OpenTables) -> Request:
        """As the door takes it."""
        plan = self.plan
        shares = sorted((list(columns), str(share)) for columns, share in plan.shares.items())
        text = json.dumps([self.table, repr(self.schema), shares, str(plan.rho), self.moved, self.rows])
        return request_about_rows(
            data,
            self.table,
            kind="marginals",
            ask=self.ask,
            epsilon=self.epsilon,
            event=ZCDP(plan.rho),
            key=hashlib.sha256(text.encode()).hexdigest(),
            text=f"marginals of {self.table}: {'; '.join(', '.join(columns) for columns in self.marginals)}",
            details={"marginals": [list(c) for c in self.marginals], "rows_per_unit": self.rows},
            columns=self.schema.columns,
            steps=lambda bits: _marginals(self, data, bits),
        )


def _marginals(asked: MarginalsAsked, data: OpenTables, bits: Bits | None) -> Steps:
    from hubbub.synthesis.session_adapter import bounded

    cells = data.cells(asked.table, list(asked.schema.columns))
    kept = bounded(asked.schema.places(cells.columns), cells.units, asked.rows)
    yield ZCDP(asked.plan.rho)
    release = asked.plan.release(kept, bits=bits)
    return json.dumps({"format": "marginals 1", "residuals": [r.tolist() for r in release.residuals.values()]})


def ask_synthesis(
    data: OpenTables,
    budget: Callable[[str], Budget],
    table: str,
    *,
    epsilon: EpsilonLike,
    columns: Sequence[str] | None = None,
    edges: Mapping[str, Sequence[float]] | None = None,
    rows: int | None = None,
    rows_per_unit: int | None = None,
    method: str = "auto",
    thorough: bool = False,
    constraints: Sequence[str] = (),
    target: str | None = None,
) -> SynthesisAsked:
    """A synthetic table that could be asked for, with its plan; reads no rows. budget: of a unit space.

    Raises what `Session.synthesize` raises before the charge.
    """
    from hubbub.synthesis.session_adapter import SynthesisQuestion

    question = SynthesisQuestion(
        table=table,
        schema=_schema(data, table, columns, edges),
        rho=_rho(data, budget, table, epsilon),
        rows_per_unit=rows_that_count(data, table, rows_per_unit),
        neighbours=whole_table(data, table).neighbours,
        method=a_name(method, "method"),
        thorough=a_choice(thorough, "thorough"),
        rows=None if rows is None else a_whole_number(rows, "rows"),
        constraints=names(constraints, "constraints", "constraints=['age < 18 implies married = no']"),
    )
    amount = parse_epsilon(epsilon)
    ask = {
        "table": table,
        "epsilon": str(amount),
        "columns": None if columns is None else list(columns),
        "edges": _cuts(edges),
        "rows": question.rows,
        "rows_per_unit": question.rows_per_unit,
        "method": method,
        "thorough": thorough,
        "constraints": list(question.constraints),
    }
    if target is not None and target not in question.schema.columns:
        way = LeaveOut(("target",))
        raise ParameterError(
            f"target={target!r}: this table would have the columns {', '.join(question.schema.columns)}. Name one, or "
            f"ask {way.in_python()}.",
            remedy=way,
        )
    return SynthesisAsked(question, amount, ask, target)


def ask_marginals(
    data: OpenTables,
    budget: Callable[[str], Budget],
    table: str,
    marginals: Iterable[Sequence[str]],
    *,
    epsilon: EpsilonLike,
    weights: Sequence[float] | None = None,
    edges: Mapping[str, Sequence[float]] | None = None,
    rows_per_unit: int | None = None,
    assume_rows: int = 10_000,
) -> MarginalsAsked:
    """Marginals that could be asked for, with their plan; reads no rows. budget: of a unit space.

    Raises what `Session.marginals` raises before the charge.
    """
    from hubbub.synthesis.marginals import plan_marginals

    wanted = _wanted(marginals)
    assume_rows = a_whole_number(assume_rows, "assume_rows")
    schema = _schema(data, table, list(dict.fromkeys(name for columns in wanted for name in columns)), edges)
    checked = _weights(weights)
    rows = rows_that_count(data, table, rows_per_unit)
    # Exchanging a unit's rows for others moves the counts by both: twice the rows.
    moved = rows * (1 if whole_table(data, table).neighbours == "add_remove" else 2)
    rho = _rho(data, budget, table, epsilon)
    plan = plan_marginals(schema.domain, wanted, rho=rho, weights=checked, unit_rows=moved)
    worse = plan.hopeless(assume_rows)
    if worse:
        more = GiveOptions(("assume_rows",))
        raise ParameterError(
            f"at this epsilon the noise of {', '.join(worse[0])} would be worse than spreading about {assume_rows:,} "
            f"rows evenly over its cells. Spend more, ask for fewer or coarser columns, or say {more.in_python()}",
            remedy=more,
        )
    amount = parse_epsilon(epsilon)
    ask = {
        "table": table,
        "marginals": [list(columns) for columns in wanted],
        "epsilon": str(amount),
        "weights": checked,
        "edges": _cuts(edges),
        "rows_per_unit": rows,
        "assume_rows": assume_rows,
    }
    return MarginalsAsked(table, schema, plan, rows, moved, tuple(wanted), amount, ask)


def _wanted(marginals: object) -> list[tuple[str, ...]]:
    if isinstance(marginals, str | bytes | Mapping) or not isinstance(marginals, Iterable):
        raise QueryError(f"marginals: expected sets of columns, as in {_MARGINALS}. Nothing was charged.")
    wanted = [names(columns, "marginals", _MARGINALS) for columns in marginals]
    if not any(wanted):
        raise QueryError(f"marginals: name at least one set of columns, as in {_MARGINALS}. Nothing was charged.")
    return wanted


def _schema(
    data: OpenTables, table: str, columns: Sequence[str] | None, edges: Mapping[str, Sequence[float]] | None
) -> Schema:
    """The domain that a table's columns declare.

    Raises PolicyError for a column without one, QueryError for a table that is not private.
    """
    from hubbub.synthesis.session_adapter import declared

    source, info = whole_table(data, table), data.catalog[table]
    as_text: dict[str, dict[str, Any]] = {}
    cuts = _cuts(edges)
    for name, what in source.columns.items():
        match as_held(what, info.columns.get(name, Kind.OTHER)):
            case OneOf(values=values, other=other):
                as_text[name] = {
                    "one_of": [v for v in values if v is not None],
                    "null": None in values,
                    "other": other,
                }
            case Between(low=low, high=high, nullable=nullable):
                as_text[name] = {"between": [low, high], "nullable": nullable}
            case Edges(nullable=nullable, ends=ends):
                as_text[name] = {"edges": [float(e) for e in ends], "nullable": nullable}
    used = list(as_text) if columns is None else list(names(columns, "columns", "columns=['ward', 'age']"))
    types = {name: info.columns[name].value for name in as_text if name in info.columns}
    # Bins of a declared column that is not asked for are not needed; of an unknown one they are a mistake.
    needed = {name: ends for name, ends in cuts.items() if name in used or name not in as_text}
    return declared(as_text, types, edges=needed, wanted=used)


_NO_EDGES: Final = LeaveOut(("edges",))


def _cuts(edges: object) -> dict[str, list[float]]:
    """The bins that a question gives.

    Raises QueryError for anything but numbers by column.
    """
    if edges is not None and not isinstance(edges, Mapping):
        raise QueryError(
            f"edges: expected bins by column, as in {{'age': [0, 18, 65, 120]}}; or ask {_NO_EDGES.in_python()}. "
            "Nothing was charged.",
            remedy=_NO_EDGES,
        )
    cuts: dict[str, list[float]] = {}
    for name, ends in ({} if edges is None else edges).items():
        try:
            cuts[a_name(name, "edges")] = [float(e) for e in ends if not isinstance(ends, str)]
        except (TypeError, ValueError, OverflowError):
            raise QueryError(
                f"edges: {name!r} needs numbers in order, as in {{'age': [0, 18, 65, 120]}}; or ask "
                f"{_NO_EDGES.in_python()}. Nothing was charged.",
                remedy=_NO_EDGES,
            ) from None
    return cuts


def whole_table(data: OpenTables, table: str) -> PrivateTable:
    """A private table whose rows can be taken into this process.

    Raises QueryError for one that is not private, PolicyError where rows never leave their engine.
    """
    declared = private_table(data, table)
    if not data.engine.returns_rows:
        raise PolicyError(
            f"the rows of {table!r} stay where they are: synthetic tables and marginals are made of files and frames. "
            "Nothing was charged."
        )
    return declared


def private_table(data: OpenTables, table: str) -> PrivateTable:
    """The declaration of a private table.

    Raises QueryError for one that is not private.
    """
    declared = data.catalog.get(a_name(table, "table"))
    if declared is None or not declared.private:
        raise not_private(table, data.spaces())
    return declared.declaration


def rows_that_count(data: OpenTables, table: str, asked: int | None) -> int:
    declared = private_table(data, table)
    if asked is not None:
        asked = a_whole_number(asked, "rows_per_unit")
    if data.catalog[table].unit is None and declared.path is None:
        return 1
    if asked is not None:
        return asked
    if declared.max_total is not None:
        return declared.max_total
    if isinstance(declared.max_groups, int) and isinstance(declared.max_rows, int):
        return declared.max_groups * declared.max_rows
    declaring, giving = DeclareLimits(("max_total",), table=table), GiveOptions(("rows_per_unit",))
    raise PolicyError(
        f"how many rows of one {declared.unit} count is not declared for table {table!r}. Declare "
        f"{declaring.in_python()}, or give {giving.in_python()}",
        remedy=(declaring, giving),
    )


def _rho(data: OpenTables, budget: Callable[[str], Budget], table: str, epsilon: EpsilonLike) -> Fraction:
    whole_table(data, table)
    held = budget(data.scan(table).space)
    if held.pure:
        raise PolicyError(
            "synthetic tables and sets of marginals are priced in zCDP, and this budget has no delta. Use one, as in "
            f"{UseDelta().in_python()}.",
            remedy=UseDelta(),
        )
    return rho_of_epsilon(an_amount(epsilon), held.delta_conversion)


def _weights(weights: Any) -> list[float] | None:
    """Raises ParameterError for weights that are not numbers."""
    if weights is None:
        return None
    try:
        return [float(weight) for weight in weights if not isinstance(weight, str)]
    except (TypeError, ValueError, OverflowError):
        without = LeaveOut(("weights",))
        raise ParameterError(
            f"weights={weights!r:.60}: expected a number for each set; for the same of each ask {without.in_python()}. "
            "Nothing was charged.",
            remedy=without,
        ) from None


def owned_text(scan: Scan, columns: Iterable[str]) -> str:
    """A text of whose rows are read, and how: equal for equal ones.

    Rows are bounded by unit, so with another unit it is another question. So it is where a value is read otherwise.
    """
    parts: list[object] = [canonical_relation(scan)]
    for one in scans(scan):
        led = [] if one.path is None else [one.path.column]
        keys = {other.path.key for other in scans(scan) if other.path is not None and other.path.scan is one}
        read = {*led, *keys, *([] if one.unit is None else [one.unit]), *(columns if one is scan else ())}
        parts.append(
            [
                [one.table, one.unit, one.unit_type, one.space, one.neighbours],
                [[name, one.columns[name].value] for name in sorted(read & one.columns.keys())],
                [[name, repr(one.declared[name])] for name in sorted(read & one.declared.keys())],
                sorted(name for name, what in one.declared.items() if trimmed(what)),
            ]
        )
    return json.dumps(parts)


def _mechanism(event: Event) -> dict[str, str]:
    """What a receipt says of an amount."""
    if isinstance(event, ZCDP):
        return {"mechanism": "discrete Gaussian", "rho": str(event.rho)}
    return {"mechanism": "discrete Laplace"}


def request_about_rows(
    data: OpenTables,
    table: str,
    *,
    kind: str,
    ask: Mapping[str, Any],
    epsilon: Fraction,
    event: Event,
    key: str,
    text: str,
    details: Mapping[str, Any],
    columns: Iterable[str],
    steps: Callable[[Bits | None], Steps],
    capped: bool = False,
) -> Request:
    """A question about whole rows. It is another question when the rows are others, or another unit's."""
    declared, scan = private_table(data, table), data.scan(table)
    owned = owned_text(scan, columns)

    @lru_cache(maxsize=4)
    def keyed(version: str) -> str:
        return hashlib.sha256(f"{key} {version} {owned}".encode()).hexdigest()

    return Request(
        kind=kind,
        text=text,
        ask=lambda: ask,
        space=scan.space,
        tables=tuple(dict.fromkeys(one.table for one in scans(scan))),
        epsilon=epsilon,
        event=event,
        key=keyed,
        details={
            "kind": kind,
            **details,
            "table": table,
            "unit": data.catalog[table].unit or "each row",
            "neighbours": declared.neighbours,
            **_mechanism(event),
            "epsilon": decimal_text(epsilon),
        },
        steps=steps,
        capped=capped,
    )
