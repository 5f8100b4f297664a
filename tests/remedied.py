"""Questions that are refused, for tests of what their remedies do: the same people for all of them, asked once each."""

from __future__ import annotations

import datetime as dt
import functools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import HubbubError
from hubbub.remedies import Attempt, read_remedy

N = 600
PEOPLE = pa.table(
    {
        "id": pa.array(range(N)),
        "ward": pa.array(["ABC"[i % 3] for i in range(N)]),
        "spaced": pa.array([" A ", " B "][i % 2] for i in range(N)),
        "n": pa.array([i % 5 for i in range(N)]),
        "age": pa.array([float(i % 90) for i in range(N)]),
        "kind": pa.array([["x", "y"][i % 2] for i in range(N)]).dictionary_encode(),
        "day": pa.array([dt.date(2024, 1, 1 + i % 28) for i in range(N)]),
    }
)
SEEN = pa.table(
    {"id": range(N), "seen": pa.array([dt.datetime(2024, 1, 1 + i % 28) for i in range(N)], pa.timestamp("us", "UTC"))}
)
PURE = hb.Budget(epsilon=40)
DELTA = hb.Budget(epsilon=40, delta="1e-6")


def table(**declared: Any) -> Any:
    return hb.table(PEOPLE, **{"unit": "id", "max_groups": 1, "max_rows": 1, **declared})


@dataclass(eq=False)
class Case:
    """site: the file and function that refuses. fill: the blanks of each remedy, by its place in `error.remedies`.

    without: the table as it can be declared, where the declaration itself is refused. beside: the other tables.
    """

    site: str
    sql: str
    fill: Mapping[int, dict[str, Any]]
    columns: tuple[str, ...] = ("x",)
    groups: int = 1
    table: Callable[[], Any] = table
    budget: Any = PURE
    options: Mapping[str, Any] = field(default_factory=lambda: {"epsilon": 4})
    before: Callable[[Path], None] | None = None
    ask: str = "sql"
    without: Callable[[], Any] | None = None
    beside: Callable[[], dict[str, Any]] = dict


_BY_NAME: dict[str, Callable[[hb.Session, str, Mapping[str, Any]], list[str]]] = {
    "check_bounds": lambda session, sql, options: session.check_bounds(sql, **options) and [],
    "fit": lambda session, name, options: session.fit(table=name, **options) and [],
    "head": lambda session, asked, options: _counted(session, asked, options, lambda rows: rows.head()),
    "iter": lambda session, asked, options: _counted(session, asked, options, list),
    "len": lambda session, asked, options: _counted(session, asked, options, len),
    "marginals": lambda session, name, options: (
        session.marginals(name, [["ward"]], **options).table("ward").column_names
    ),
    "refresh": lambda session, name, _: session.refresh(name) and [],
    "reserve": lambda session, _, options: list(_reserved(session, **options)),
    "suggest_bounds": lambda session, name, options: list(session.suggest_bounds(name, "n", **options)),
    "tables": lambda session, name, _: [c.name for c in session.tables[name].columns],
}
"""What is asked otherwise than by SQL: the names of what comes back."""


def _counted(session: hb.Session, asked: str, options: Mapping[str, Any], shown: Callable[[Any], Any]) -> list[str]:
    """What is done with the rows of a table, or what is asked in its place."""
    if asked == "t":
        shown(session.table(asked))
    return [] if len(session.sql(asked, **options)) == 1 else ["more"]


def _reserved(session: hb.Session, **options: Any) -> Iterator[str]:
    with session.reserve(**options):
        yield options["unit_space"]


def tried(attempt: Attempt, tables: Mapping[str, Any], place: Path, ask: str = "sql") -> tuple[list[str], int]:
    """The columns of the answer, and how many rows it has (0 for synthetic tables, whose number is noisy)."""
    with hb.Session(dict(tables), budget=attempt.budget, ledger=place) as session:
        if ask == "synthesize":
            return list(session.synthesize(attempt.sql, **attempt.options).to_dict()), 0
        if ask in _BY_NAME:
            return _BY_NAME[ask](session, attempt.sql, attempt.options), 0
        answer = session.sql(attempt.sql, **attempt.options)
        return answer.columns, len(answer)


@functools.cache
def refused(case: Case) -> tuple[HubbubError, Path]:
    """What refuses a case, and where its ledger is: each is asked once, for all its remedies."""
    place = Path(tempfile.mkdtemp()) / "budget.db"
    if case.before is not None:
        case.before(place)
    with pytest.raises(HubbubError) as caught:
        tried(Attempt(case.sql, case.options, case.budget), {"t": case.table(), **case.beside()}, place, case.ask)
    return caught.value, place


def answered_after(case: Case, at: int, ledger: Path) -> tuple[tuple[str, ...], int]:
    """The columns and the number of groups of the answer, once a remedy is filled in and applied."""
    error, place = refused(case)
    attempt = Attempt(case.sql, case.options, case.budget)
    tables = {"t": (case.without or case.table)(), **case.beside()}
    assert error.remedy is error.remedies[0]
    assert all(remedy.in_python() in str(error) or remedy.kind == "use a delta" for remedy in error.remedies)
    remedy = read_remedy(json.loads(json.dumps(error.remedies[at].to_wire()))).fill(**case.fill[at])
    another = place if case.before is not None else ledger
    columns, rows = tried(*remedy.apply(attempt, tables), another, case.ask)
    return tuple(columns), rows
