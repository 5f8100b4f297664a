"""Synthetic tables and many marginals at once, by way of a session: declared, priced, charged, then drawn and stored.

Both look at whole rows, so a unit is bounded by rows: it keeps at most R of them, chosen by a hash of the row
(`hubbub.synthesis.session_adapter.bounded`), and moves every count by at most R. Both are priced in zCDP and need a
budget with a delta. The domain is what the table's columns declare; the number of rows is bought, or given.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.accounting import ZCDP, Event, cost as cost_of, rho_of_epsilon, to_json
from hubbub.arguments import a_choice, a_level, a_name, a_whole_number, an_amount, names
from hubbub.errors import EngineError, InternalError, ParameterError, PolicyError, QueryError
from hubbub.ledger.accounts import TOGETHER
from hubbub.ledger.budget import EpsilonLike, decimal_text, parse_epsilon
from hubbub.progress import at_work
from hubbub.session.claim import claimed, on_rows
from hubbub.sql.bind.context import Reader
from hubbub.tables.columns import Between, Edges, OneOf, trimmed
from hubbub.tables.declare import PrivateTable
from hubbub.tables.relations import Scan, canonical_relation, scans

if TYPE_CHECKING:
    from hubbub.ledger.records import StoredRelease
    from hubbub.session import Session
    from hubbub.synthesis.marginals import MarginalPlan, MarginalRelease
    from hubbub.synthesis.records import Schema
    from hubbub.synthesis.session_adapter import SynthesisQuestion

__all__ = ["Marginals", "SyntheticTable", "is_stored", "marginals", "schema_of", "synthesis_question", "synthesize"]


@dataclass(frozen=True)
class SyntheticTable:
    """A synthetic table that was released. Any use of it is free.

    report: how far its marginals are expected to be from the true ones, as text. predicted: the same for the pairs of
    columns that are off by most. cost: what was charged for it.
    """

    cost: Fraction
    charged: bool
    charge_id: str
    report: str = field(repr=False)
    _columns: Mapping[str, list[Any]] = field(repr=False)
    predicted: Mapping[tuple[str, ...], float] = field(default_factory=dict, repr=False)

    def plot(self, *, ax: Any = None) -> Any:
        """The pairs of columns that are predicted to be off by most, with intervals (needs matplotlib); the Axes."""
        from hubbub.synthesis.report import plot_distances

        return plot_distances(self.predicted, ways=2, ax=ax)

    def to_dict(self) -> dict[str, list[Any]]:
        """The rows as lists by column."""
        return dict(self._columns)

    def to_arrow(self) -> Any:
        """The rows as a pyarrow Table."""
        import pyarrow as pa

        return pa.table(self.to_dict())

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), []))


@dataclass(frozen=True)
class Marginals:
    """Noisy marginals that fit together. cells: every combination of a marginal's values, with its interval."""

    cost: Fraction
    charged: bool
    charge_id: str
    release: MarginalRelease = field(repr=False)
    schema: Schema = field(repr=False)

    def table(self, *columns: str, level: float = 0.95) -> Any:
        """One marginal as a pyarrow Table: its columns, `count`, `count_low` and `count_high`.

        Raises ParameterError for columns that no marginal asked for covers.
        """
        import numpy as np
        import pyarrow as pa

        columns = names(columns, "table", "table('ward', 'age')")
        counts = self.release.table(columns)
        low, high = self.release.interval(columns, str(a_level(level)))
        values = {name: _labels(self.schema.columns[name]) for name in columns}
        places = np.indices(counts.shape).reshape(len(columns), -1)
        found: dict[str, Any] = {name: [values[name][i] for i in places[j]] for j, name in enumerate(columns)}
        found |= {"count": counts.ravel(), "count_low": low.ravel(), "count_high": high.ravel()}
        return pa.table(found)


def _labels(column: Any) -> list[Any]:
    """What each code of a column stands for: a value, or an interval of numbers."""
    from hubbub.synthesis.records import Categories

    if isinstance(column, Categories):
        return [*column.values, *([] if column.other is None else [column.other])]
    ends = [f"{e:g}" for e in column.edges]
    last = len(ends) - 2
    found = [f"[{a}, {b}{']' if i == last else ')'}" for i, (a, b) in enumerate(itertools.pairwise(ends))]
    return [*found, *([None] if column.nullable else [])]


def schema_of(
    session: Session, table: str, columns: Sequence[str] | None, edges: Mapping[str, Sequence[float]] | None
) -> Schema:
    """The domain that a table's columns declare.

    Raises PolicyError for a column without one, QueryError for a table that is not private.
    """
    from hubbub.synthesis.session_adapter import declared

    found, info = _declared(session, table), session._catalog[table]
    as_text: dict[str, dict[str, Any]] = {}
    cuts = _cuts(edges)
    for name, what in found.columns.items():
        match what:
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


def _cuts(edges: object) -> dict[str, list[float]]:
    """The bins that a question gives.

    Raises QueryError for anything but numbers by column.
    """
    if edges is not None and not isinstance(edges, Mapping):
        raise QueryError("edges: expected bins by column, as in {'age': [0, 18, 65, 120]}. Nothing was charged.")
    found: dict[str, list[float]] = {}
    for name, ends in ({} if edges is None else edges).items():
        try:
            found[a_name(name, "edges")] = [float(e) for e in ends if not isinstance(ends, str)]
        except (TypeError, ValueError, OverflowError):
            raise QueryError(
                f"edges: {name!r} needs numbers in order, as in {{'age': [0, 18, 65, 120]}}. Nothing was charged."
            ) from None
    return found


def _declared(session: Session, table: str) -> PrivateTable:
    """A private table whose rows can be taken into this process.

    Raises QueryError for one that is not private, PolicyError where rows never leave their engine.
    """
    found = session._catalog.get(a_name(table, "table"))
    if found is None or not found.private:
        raise QueryError(f"{table!r} is not a private table of this session.")
    if not session._engine.gives_rows:
        raise PolicyError(
            f"the rows of {table!r} stay where they are: synthetic tables and sets of marginals are made of files and "
            "frames. Nothing was charged."
        )
    return found.declaration


def _rows_per_unit(session: Session, table: str, asked: int | None) -> int:
    found = _declared(session, table)
    if asked is not None:
        asked = a_whole_number(asked, "rows_per_unit")
    if session._catalog[table].unit is None and found.path is None:
        return 1
    if asked is not None:
        return asked
    if found.max_total is not None:
        return found.max_total
    if found.max_groups is not None and found.max_rows is not None:
        return found.max_groups * found.max_rows
    raise PolicyError(
        f"how many rows of one {found.unit} count is not declared for table {table!r}. Declare max_total=..., or give "
        "rows_per_unit=..."
    )


def _rho(session: Session, table: str, epsilon: EpsilonLike) -> Fraction:
    _declared(session, table)
    budget = session.ledger.budget(_scan(session, table).space)
    if budget.pure:
        raise PolicyError(
            "synthetic tables and sets of marginals are priced in zCDP, and this budget has no delta. Use one, as in "
            "hb.Budget(epsilon=3, delta=1e-6)."
        )
    return rho_of_epsilon(an_amount(epsilon), budget.delta_conversion)


def synthesis_question(
    session: Session,
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
) -> SynthesisQuestion:
    """A synthetic table that could be asked for, with its plan; reads no rows."""
    from hubbub.synthesis.session_adapter import SynthesisQuestion

    return SynthesisQuestion(
        table=table,
        schema=schema_of(session, table, columns, edges),
        rho=_rho(session, table, epsilon),
        rows_per_unit=_rows_per_unit(session, table, rows_per_unit),
        neighbours=_declared(session, table).neighbours,
        method=a_name(method, "method"),
        thorough=a_choice(thorough, "thorough"),
        rows=None if rows is None else a_whole_number(rows, "rows"),
        constraints=names(constraints, "constraints", "constraints=['age < 18 implies married = no']"),
    )


def is_stored(session: Session, question: SynthesisQuestion, epsilon: EpsilonLike) -> bool:
    """Whether `synthesize` would give a stored table, free of charge."""
    return (
        _stored(session, question.table, question.schema.columns, question.key, parse_epsilon(epsilon))[1] is not None
    )


def synthesize(session: Session, question: SynthesisQuestion, epsilon: EpsilonLike, *, fresh: bool) -> SyntheticTable:
    """Charge, read, draw, store; or the stored table."""
    from hubbub.synthesis.session_adapter import bounded, hardly_any, packed, packed_probe, unpacked

    question.check()

    def draw(places: Callable[[Schema], Any], units: Any) -> _Drawn:
        codes = places(question.schema)
        first = question.probe(codes, units, bits=session._bits)
        if first.hardly_any:
            return _Drawn(packed_probe(first), first.event)
        kept = bounded(codes, units, question.rows_per_unit)
        return _Drawn(packed(question.answer(kept, first=first, bits=session._bits)))

    stored, charged = _released(
        session,
        question.table,
        key=question.key,
        epsilon=parse_epsilon(epsilon),
        rho=question.rho,
        sql=f"synthetic table of {question.table}",
        details={
            "kind": "synthesis",
            "columns": list(question.schema.columns),
            "method": question.method,
            "rows_per_unit": question.rows_per_unit,
            "constraints": list(question.constraints),
        },
        schema=question.schema,
        draw=draw,
        fresh=fresh,
    )
    nothing = hardly_any(stored.payload)
    if nothing is not None:
        spent = "A fiftieth of the amount was charged, and the rest came back." if charged else "Nothing was charged."
        raise QueryError(f"{nothing} {spent}")
    codes, report, predicted = unpacked(stored.payload, question.schema)
    return SyntheticTable(
        parse_epsilon(epsilon) if charged else Fraction(0),
        charged,
        stored.charge_id,
        report,
        question.schema.decode(codes, bits=session._bits),
        predicted,
    )


def marginals(
    session: Session,
    table: str,
    wanted: Iterable[Sequence[str]],
    *,
    epsilon: EpsilonLike,
    weights: Sequence[float] | None = None,
    edges: Mapping[str, Sequence[float]] | None = None,
    rows_per_unit: int | None = None,
    assume_rows: int = 10_000,
    fresh: bool = False,
) -> Marginals:
    """Noise-optimal marginals: charge, read, draw, store; or the stored ones."""
    from hubbub.synthesis.marginals import MarginalRelease, plan_marginals
    from hubbub.synthesis.session_adapter import bounded

    example = "[('ward', 'age'), ('sex',)]"
    if isinstance(wanted, str | bytes | Mapping) or not isinstance(wanted, Iterable):
        raise QueryError(f"marginals: expected sets of columns, as in {example}. Nothing was charged.")
    asked = [names(columns, "marginals", example) for columns in wanted]
    used = list(dict.fromkeys(name for columns in asked for name in columns))
    if not used:
        raise QueryError(f"marginals: name at least one set of columns, as in {example}. Nothing was charged.")
    assume_rows = a_whole_number(assume_rows, "assume_rows")
    schema = schema_of(session, table, used, edges)
    weights = _checked(weights)
    rows = _rows_per_unit(session, table, rows_per_unit)
    # Exchanging a unit's rows for others moves the counts by both: twice the rows.
    moved = rows * (1 if _declared(session, table).neighbours == "add_remove" else 2)
    plan = plan_marginals(schema.domain, asked, rho=_rho(session, table, epsilon), weights=weights, unit_rows=moved)

    worse = plan.hopeless(assume_rows)
    if worse:
        raise ParameterError(
            f"at this epsilon the noise of {', '.join(worse[0])} would be worse than spreading about {assume_rows:,} "
            "rows evenly over its cells. Spend more, ask for fewer or coarser columns, or say assume_rows=..."
        )

    def draw(places: Callable[[Schema], Any], units: Any) -> _Drawn:
        release = plan.release(bounded(places(schema), units, rows), bits=session._bits)
        residuals = [r.tolist() for r in release.residuals.values()]
        return _Drawn(json.dumps({"format": "marginals 1", "residuals": residuals}))

    shares = sorted((list(columns), str(share)) for columns, share in plan.shares.items())
    text = json.dumps([table, repr(schema), shares, str(plan.rho), moved, rows])
    stored, charged = _released(
        session,
        table,
        key=hashlib.sha256(text.encode()).hexdigest(),
        epsilon=parse_epsilon(epsilon),
        rho=plan.rho,
        sql=f"marginals of {table}: {'; '.join(', '.join(columns) for columns in asked)}",
        details={"kind": "marginals", "marginals": [list(c) for c in asked], "rows_per_unit": rows},
        schema=schema,
        draw=draw,
        fresh=fresh,
    )
    return Marginals(
        parse_epsilon(epsilon) if charged else Fraction(0),
        charged,
        stored.charge_id,
        MarginalRelease(plan, _residuals(plan, stored.payload)),
        schema,
    )


def _checked(weights: Any) -> list[float] | None:
    """Raises ParameterError for weights that are not numbers."""
    if weights is None:
        return None
    try:
        return [float(weight) for weight in weights if not isinstance(weight, str)]
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"weights={weights!r:.60}: expected a number for each set. Nothing was charged.") from None


def _residuals(plan: MarginalPlan, payload: str) -> dict[tuple[str, ...], Any]:
    import numpy as np

    found = json.loads(payload)
    if found.get("format") != "marginals 1" or len(found["residuals"]) != len(plan.shares):
        raise PolicyError("this stored release is not a set of these marginals; ask for them anew.")
    return {columns: np.asarray(r, float) for columns, r in zip(plan.shares, found["residuals"], strict=True)}


def _scan(session: Session, table: str) -> Scan:
    """The owned rows of a private table, with those that lead to their units."""
    return Reader("", session._catalog, None).scan(table, None)


def _owned(scan: Scan, columns: Iterable[str]) -> str:
    """A text of whose rows are read, and how: equal for equal ones.

    Rows are bounded by unit, so with another unit it is another question. So it is where a value is read otherwise.
    """
    found: list[object] = [canonical_relation(scan)]
    for one in scans(scan):
        led = [] if one.path is None else [one.path.column]
        keys = {other.path.key for other in scans(scan) if other.path is not None and other.path.scan is one}
        read = {*led, *keys, *([] if one.unit is None else [one.unit]), *(columns if one is scan else ())}
        found.append(
            [
                [one.table, one.unit, one.unit_type, one.space, one.neighbours],
                [[name, one.columns[name].value] for name in sorted(read & one.columns.keys())],
                [[name, repr(one.declared[name])] for name in sorted(read & one.declared.keys())],
                sorted(name for name, what in one.declared.items() if trimmed(what)),
            ]
        )
    return json.dumps(found)


def _stored(
    session: Session, table: str, columns: Iterable[str], key: str, epsilon: Fraction
) -> tuple[dict[str, str], StoredRelease | None]:
    """Where, under which key and of which version of the rows a question is charged, and its stored release, if any.

    It is another question when the rows are others, or another unit's.
    """
    _declared(session, table)
    scan = _scan(session, table)
    tables = list(dict.fromkeys(one.table for one in scans(scan)))
    version = " ".join(session._version_of(scan.space, name) for name in tables)
    question_key = hashlib.sha256(f"{key} {version} {_owned(scan, columns)}".encode()).hexdigest()
    known = session.ledger.find_release(
        space=scan.space, question_key=question_key, at_least=epsilon, reader=session.analyst
    )
    named = {"space": scan.space, "dataset": TOGETHER.join(tables)}
    return {**named, "question_key": question_key, "data_version": version}, known


@dataclass(frozen=True)
class _Drawn:
    """A release that is to be stored. used: what was run of it, where that is less than was charged."""

    payload: str
    used: Event | None = None


@at_work("making the release")
def _released(
    session: Session,
    table: str,
    *,
    key: str,
    epsilon: Fraction,
    rho: Fraction,
    sql: str,
    details: Mapping[str, Any],
    schema: Schema,
    draw: Callable[[Callable[[Schema], Any], Any], _Drawn],
    fresh: bool,
) -> tuple[Any, bool]:
    """The stored release of a question about whole rows, and whether it was charged now."""
    declared, ledger = _declared(session, table), session.ledger
    fresh = a_choice(fresh, "fresh")
    named, known = _stored(session, table, schema.columns, key, epsilon)
    if known is not None and not fresh:
        ledger.share(known, session.analyst)
        return known, False
    event = ZCDP(rho)
    columns = {
        **named,
        "cost": cost_of(event),
        "policy": session._remembered_policy(),
        "request": None,
        "block": session._block,
        "analyst": session.analyst,
        "sql": sql,
        "epsilon": epsilon,
        "event": to_json(event),
        "details": json.dumps(
            {
                **details,
                "table": table,
                "unit": session._catalog[table].unit or "each row",
                "neighbours": declared.neighbours,
                "mechanism": "discrete Gaussian",
                "rho": str(rho),
                "epsilon": decimal_text(epsilon),
            }
        ),
    }
    charge, known = claimed(ledger, columns, once=not fresh)
    if known is not None:
        return known, False
    try:

        def made(rows: Any) -> _Drawn:
            cells = {name: rows.column(name).to_pylist() for name in schema.columns}
            units = rows.column("").to_pylist() if "" in rows.column_names else None
            return draw(lambda of: of.places(cells), units)

        drawn = None
        rows, incident = on_rows(lambda: session._owned_rows(table, list(schema.columns)))
        if incident is None:
            ledger.advance(charge, "drawing")
            drawn, incident = on_rows(lambda: made(rows))
        if incident is not None:  # and no error is being handled, so that none stands in the traceback of another
            ledger.advance(charge, "failed", incident=incident)
            session._keep_words(incident)
            raise EngineError(incident)
        assert drawn is not None
        if drawn.used is not None:
            ledger.give_back(charge, used=cost_of(drawn.used))
        ledger.store(charge, drawn.payload)
    finally:
        ledger.let_go(charge)
    ledger.advance(charge, "shown")
    stored = ledger.release(charge)
    if stored is None:
        raise InternalError(f"charge {charge} was stored and is not there")
    return stored, True
