"""Scenes of the audit: tables to be asked about, as they are declared, the questions, and neighbours that hurt.

    people   one table of twelve units, pure epsilon
    rows     the same where each row is a unit
    house    several tables of one unit space, one of them reached by a key, and public ones; pure epsilon
    delta    the house under a budget with delta: Gaussian noise
    names    the same, by names that are found privately
    found    people, of whom limits and the bounds of sums are found in the charge
    whole    synthetic tables and marginals

A unit of the house is what it holds in all tables: neighbours get rows in one of them or in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hubbub.audit import questions as asked
from hubbub.audit.neighbours import Pair, Relation, newcomers, pairs, row_pairs
from hubbub.audit.questions import Question

if TYPE_CHECKING:
    import pyarrow as pa

    from hubbub.noise import Bits
    from hubbub.session import Session

__all__ = ["SCENES", "Scene", "house", "house_pairs", "open_house", "people"]

UNIT: Final = "id"
MAX_GROUPS: Final = 2
MAX_ROWS: Final = 2
NEW: Final = 99


@dataclass(frozen=True)
class Scene:
    """What is asked of which tables. open: (tables, relation, bits) -> a session; pairs: relation -> neighbours.

    every: how far apart the questions are that a short self-test asks, for both relations in turn.
    """

    name: str
    questions: Sequence[str | Question]
    open: Callable[[Any, Relation, Bits | None], Session]
    pairs: Callable[[Relation], Iterator[Pair]]
    every: int = 3

    def few(self, relation: Relation) -> Sequence[str | Question]:
        """Those that a short self-test asks."""
        return self.questions[self.every * (relation == "replace") :: 2 * self.every]


def people() -> pa.Table:
    """Forty rows of twelve units: ordinary values, and one of each kind of NULL."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = [
        {
            "id": i % 12,
            "ward": ("A", "B", "C", None)[i % 4 if i % 11 else 3],
            "x": None if i % 13 == 0 else float(7 * i % 100),
            "n": None if i % 17 == 0 else i % 16 - 5,
            "ok": (True, False, None)[i % 3],
            "must": float(i % 50),
        }
        for i in range(40)
    ]
    kinds = (("id", pa.int64()), ("ward", pa.string()), ("x", pa.float64()), ("n", pa.int64()), ("ok", pa.bool_()))
    return pa.Table.from_pylist(rows, schema=pa.schema([*kinds, ("must", pa.float64())]))


def house() -> dict[str, pa.Table]:
    """Visits `t` with a number `vid`, persons `p` (one of them twice, one without visits), items `i`, names `b`."""
    import pyarrow as pa

    visits = people()
    numbers = [None if i % 19 == 0 else 100 + i for i in range(len(visits))]
    persons = [{"id": u, "sex": "mf"[u % 2], "income": None if u == 5 else 4 * u} for u in (*range(11), 3, 20)]
    items = [{"vid": 100 + 3 * i % 45, "price": float(i % 21), "kind": ("x", "y", None)[i % 3]} for i in range(30)]
    names = [
        {"id": i % 12, "name": "abc"[i % 3] if i % 5 else "abcde"[i // 5 % 5], "x": float(9 * i % 70), "k": i % 7}
        for i in range(50)
    ]
    of_person = pa.schema([("id", pa.int64()), ("sex", pa.string()), ("income", pa.int64())])
    of_item = pa.schema([("vid", pa.int64()), ("price", pa.float64()), ("kind", pa.string())])
    of_name = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64()), ("k", pa.int64())])
    return {
        "t": visits.append_column("vid", pa.array(numbers, pa.int64())),
        "p": pa.Table.from_pylist(persons, schema=of_person),
        "i": pa.Table.from_pylist(items, schema=of_item),
        "b": pa.Table.from_pylist(names, schema=of_name),
    }


def wards() -> pa.Table:
    """A public table: B stands twice, one ward is NULL, one number too."""
    import pyarrow as pa

    return pa.table(
        {
            "ward": ["A", "B", "B", "C", None, "nowhere"],
            "region": ["north", "south", "east", "north", "north", "west"],
            "beds": pa.array([3, 0, -2, 7, 1, None], pa.int64()),
        }
    )


def columns() -> dict[str, Any]:
    """What is declared about people."""
    from hubbub.tables.columns import between, one_of

    return {
        "ward": one_of("A", "B", "C", None),
        "ok": one_of(True, False, None),
        "x": between(0, 100),
        "must": between(-3, 50, nullable=False),
        "n": between(-5, 10),
    }


def _declared(tables: Mapping[str, pa.Table], relation: Relation) -> dict[str, Any]:
    from hubbub.tables.columns import between, edges, one_of
    from hubbub.tables.declare import public, table

    common: dict[str, Any] = {"neighbours": relation, "max_groups": MAX_GROUPS, "max_rows": MAX_ROWS}
    of_person: dict[str, Any] = {"sex": one_of("m", "f"), "income": between(0, 50, nullable=False)}
    of_item: dict[str, Any] = {"price": between(0, 20), "kind": one_of("x", other="rest")}
    of_name: dict[str, Any] = {"x": edges(0, 10, 50, 100), "k": between(0, 9)}
    return {
        "t": table(tables["t"], unit=UNIT, columns=columns(), **common),
        "p": table(tables["p"], unit=UNIT, columns=of_person, **common),
        "i": table(tables["i"], unit="t.id", through="vid", columns=of_item, **common),
        "b": table(tables["b"], unit=UNIT, columns=of_name, **common),
        "wards": public(wards()),
    }


def _session(declared: Mapping[str, Any], delta: str, bits: Bits | None) -> Session:
    from hubbub.ledger.budget import Budget
    from hubbub.session import Session

    budget = Budget(10**6) if delta == "0" else Budget(10**6, delta)
    return Session(declared, budget=budget, ledger=None, _bits=bits)


def open_people(frame: pa.Table, relation: Relation, bits: Bits | None = None, *, delta: str = "0") -> Session:
    """A session, kept in memory, over a table of the shape of `people`."""
    from hubbub.tables.declare import table

    limits: dict[str, Any] = {"max_groups": MAX_GROUPS, "max_rows": MAX_ROWS}
    declared = table(frame, unit=UNIT, neighbours=relation, columns=columns(), **limits)
    return _session({"t": declared}, delta, bits)


def _open_found(frame: pa.Table, relation: Relation, bits: Bits | None = None) -> Session:
    """The same where limits and the bounds of sums are found in the charge."""
    from hubbub.tables.columns import between
    from hubbub.tables.declare import table

    declared = columns() | {"x": between(0, "auto"), "n": between(0, "auto")}
    return _session({"t": table(frame, unit=UNIT, neighbours=relation, columns=declared)}, "1e-3", bits)


def open_rows(frame: pa.Table, relation: Relation, bits: Bits | None = None) -> Session:
    """The same where each row is a unit."""
    from hubbub.tables.declare import EACH_ROW, public, table

    declared = table(frame, unit=EACH_ROW, neighbours=relation, columns=columns(), max_groups=1, max_rows=1)
    return _session({"t": declared, "wards": public(wards())}, "0", bits)


def open_house(
    tables: Mapping[str, pa.Table], relation: Relation, bits: Bits | None = None, *, delta: str = "0"
) -> Session:
    """A session over tables of the shape of `house`."""
    return _session(_declared(tables, relation), delta, bits)


def _open_delta(tables: Mapping[str, pa.Table], relation: Relation, bits: Bits | None = None) -> Session:
    return open_house(tables, relation, bits, delta="1e-3")


def _open_whole(frame: pa.Table, relation: Relation, bits: Bits | None = None) -> Session:
    return open_people(frame, relation, bits, delta="1e-3")


# -- neighbours of the house ------------------------------------------------------------------------------------------


def house_pairs(relation: Relation) -> Iterator[Pair]:
    """A unit with nasty rows in one table, in all of them, and where keys meet; and the same rows in other forms."""
    base = house()
    for name, rows in _units(base):
        yield Pair(name, base, with_unit(base, rows, relation))
    lone = {name: t.slice(0, 0) for name, t in base.items()}
    lone = with_unit(
        lone, {n: [r for r in t.to_pylist() if r.get(UNIT) == 0] for n, t in base.items()}, "add_remove", 0
    )
    yield Pair("one unit alone", lone, with_unit(lone, {}, relation) if relation == "replace" else _empty(base))
    yield from _forms(base)


def _empty(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {name: t.slice(0, 0) for name, t in tables.items()}


def with_unit(
    tables: Mapping[str, pa.Table], rows: Mapping[str, list[dict[str, Any]]], relation: Relation, new: int = NEW
) -> dict[str, pa.Table]:
    """The tables with one unit more, or with unit 0 exchanged. Items of the new unit's visits come with `rows`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    who = 0 if relation == "replace" else new
    extended = {}
    for name, table in tables.items():
        kept = table
        if relation == "replace" and UNIT in table.column_names:
            kept = table.filter(pc.fill_null(pc.not_equal(table[UNIT], who), True))
        own = [{**row, UNIT: who} if UNIT in table.column_names else row for row in rows.get(name, [])]
        # First, because order and position must not matter.
        extended[name] = pa.concat_tables([pa.Table.from_pylist(own, schema=table.schema), kept])
    return extended


def _units(base: Mapping[str, pa.Table]) -> Iterator[tuple[str, dict[str, list[dict[str, Any]]]]]:
    """Units by name: their rows, table by table."""
    worst = {
        name: next(rows for what, rows in newcomers(t, UNIT, 0) if what.startswith("every extreme of every"))
        for name, t in base.items()
    }
    plain = {name: next(r for r in t.to_pylist() if None not in r.values()) for name, t in base.items()}
    visits = [{**row, "vid": 1000 + j} for j, row in enumerate(worst["t"])]
    items = [{**row, "vid": 1000 + j % 7} for j, row in enumerate(worst["i"])]
    yield "every extreme everywhere", {**worst, "t": visits, "i": items}
    for name in base:
        yield f"every extreme of {name} alone", {name: visits if name == "t" else worst[name]}
    known = base["i"]["vid"].to_pylist()
    yield "keys of others' items", {"t": [{**plain["t"], "vid": v} for v in known]}
    yield "a key twice", {"t": [{**plain["t"], "vid": 1000}] * 5, "i": [{**plain["i"], "vid": 1000}] * 5}
    yield "keys that are NULL", {"t": [{**plain["t"], "vid": None}], "i": [{**plain["i"], "vid": None}] * 3}
    spread = [{**plain["t"], "ward": w, "ok": ok} for w in ("A", "B", "C", None) for ok in (True, False, None)]
    named = [
        {**plain["b"], "name": f"{w}{k}"[: w != "new" or 9], "k": k} for w in ("a", "b", "c", "new") for k in range(9)
    ]
    yield "in every group", {"t": spread * 4, "p": [{**plain["p"], "sex": s} for s in "mf" * 3], "b": named}
    yield "all NULL", {name: [dict.fromkeys(row)] * 3 for name, row in plain.items()}
    yield (
        "a thousand rows",
        {name: [{**row, "vid": 1000} if "vid" in row else row] * 1000 for name, row in plain.items()},
    )
    yield "no row", {}
    for name, table in base.items():
        for what, rows in newcomers(table, UNIT, 0):
            yield f"{name}: {what}", {name: rows}


def _forms(base: dict[str, pa.Table]) -> Iterator[Pair]:
    """The same rows in other forms, and rows that belong to nobody."""
    import numpy as np
    import pyarrow as pa

    yield Pair("all in reverse", base, {n: t.take(np.arange(len(t))[::-1].copy()) for n, t in base.items()}, same=True)
    chunks = {n: pa.concat_tables([t.slice(j, 1) for j in range(len(t))]) for n, t in base.items()}
    yield Pair("one row a chunk", base, chunks, same=True)
    lost = [{"vid": v, "price": 7.0, "kind": "x"} for v in (-1, None, 2**63 - 1)] * 3
    nobody = pa.concat_tables([pa.Table.from_pylist(lost, schema=base["i"].schema), base["i"]])
    yield Pair("items of nobody", base, {**base, "i": nobody}, same=True)
    visits = pa.Table.from_pylist([{"id": None, "ward": "A", "x": 1.0, "vid": 103}] * 3, schema=base["t"].schema)
    yield Pair("visits of nobody", base, {**base, "t": pa.concat_tables([visits, base["t"]])}, same=True)


def _of_people(relation: Relation) -> Iterator[Pair]:
    return pairs(people(), UNIT, relation=relation)


# `rows` and `delta` ask once more what is asked of people and the house: of other units, and with other noise.
SCENES: Final = (
    Scene("people", asked.QUESTIONS, open_people, _of_people, 4),
    Scene("rows", asked.ROWS, open_rows, lambda relation: row_pairs(people(), UNIT, relation=relation), 5),
    Scene("house", asked.HOUSE, open_house, house_pairs),
    Scene("delta", (*asked.HOUSE, *asked.GAUSSIAN), _open_delta, house_pairs, 9),
    Scene("names", asked.PRIVATE_KEYS, _open_delta, house_pairs),
    Scene("found", asked.FOUND, _open_found, _of_people),
    Scene("whole", asked.SYNTHESIS, _open_whole, _of_people),
)
