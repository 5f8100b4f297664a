"""Random questions of random tables, asked in the quick ways and in the plain ones: the same integers.

    PYTHONPATH=tests python -m engines.quick_paths [FIRST [BLOCKS]]

A block is a table, in one of the forms that a source may have, and `QUESTIONS` questions of it; its number is the seed
of all that is drawn in it, so that a run goes on where another ended, and a failure comes again. All paths of
`hubbub.plain` that lead to integers are in it: ranking, units by name, found groups, listed values, Parquet, CSV,
UTF-8, pandas, declared lists; and columns alone, by an outer part that names columns of an answer. The paths of noise
draw from one law in two ways, and have tests of their own.
"""

from __future__ import annotations

import datetime as dt
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import hubbub as hb
from answers import Desk
from engines.parquet_columns import BAD
from engines.places import answer
from hubbub import plain
from hubbub.engines.columns_alone import columns_alone
from hubbub.engines.duckdb import pieces
from hubbub.engines.duckdb.dialect import DuckDB
from hubbub.engines.duckdb.relations import image
from hubbub.engines.outer import OuterSide
from hubbub.errors import HubbubError
from hubbub.sql.bind.query import PublicQuestion, parse
from hubbub.sql.emit.lists import beside
from hubbub.sql.emit.ranked import ranks
from hubbub.tables.declare import Limits
from hubbub.tables.plan import Plan, make_plans

__all__ = ["FORMS", "Differs", "block"]

QUESTIONS = 20
FORMS = ("arrow", "parquet", "csv", "pandas")
LONG = 130
"""So many values of a key are declared: more than stand in a text."""

DAY = dt.date(2025, 1, 1)
TYPES = {
    "u": "integer",
    "g": "text",
    "h": "integer",
    "k": "integer",
    "w": "text",
    "x": "number",
    "n": "integer",
    "ok": "boolean",
    "day": "date",
    "note": "text",
}
WORST = {
    "x": [0.0, -0.0, 49.999999, 50.0, 99.5, 1e308, 5e-324, float("nan"), float("inf"), float("-inf"), None],
    "n": [0, 1, -1, 3, 7, 50, 51, 2**63 - 1, -(2**63), None],
    "g": ["A", "B", "C", "a", "", None, "undeclared"],
    "k": [0, 1, -1, 2**62, None, 5, 6, 7, 8, 9],
    "w": ["x", "X", "", "é", "𝄞", "a b", None, "long " * 9],
    "note": ["ok", BAD, '"', "a,b", "é", "line\nline", "", None, " x ", "\ufeff", "''"],
}
VALUES = [
    *("COUNT(*)", "COUNT(DISTINCT u)", "COUNT(x)", "SUM(x)", "AVG(x)", "SUM(n)", "AVG(n)", "VARIANCE(x)", "STDDEV(n)"),
    *("CORR(x, n)", "COVAR_SAMP(x, n)", "MEDIAN(x)", "MEDIAN(n)", "QUANTILE_CONT(x, 0.9)", "QUANTILE_DISC(n, 0.1)"),
    *("MODE(g)", "COUNT(DISTINCT n)", "SUM(x * 2 + 1)", "SUM(CASE WHEN ok THEN n ELSE 0 END)", "COUNT(note)"),
    *("AVG(ABS(n))", "COUNT(DISTINCT h)", "SUM(LEAST(n, 7))", "COUNT(DISTINCT w)"),
]
KEYS = [
    *("", "", "g", "h", "k", "w", "ok", "day", "u", "g, k", "h, g", "w, ok", "UPPER(g)", "n > 3"),
    *("EXTRACT(MONTH FROM day)", "k, day", "g, ok"),
]
WHERE = [
    "",
    "",
    "",
    "x > 1",
    "n IS NOT NULL",
    "note = 'ok'",
    "ok",
    "day >= DATE '2025-02-01'",
    "g IN ('A', 'B')",
    "k <> 5",
]
FROM = [
    *("t", "t", "t", "t"),
    "(SELECT u, g, h, k, w, x, n + 1 AS n, ok, day, note FROM t WHERE h < 100) AS s",
    "(SELECT u, SUM(n) AS n, AVG(x) AS x, MAX(h) AS h, MIN(g) AS g, COUNT(*) AS k, MAX(w) AS w, BOOL_OR(ok) AS ok, "
    "MIN(day) AS day, MAX(note) AS note FROM t GROUP BY u) AS s",
    "(SELECT * FROM t UNION ALL SELECT * FROM t WHERE ok) AS s",
]


class Differs(AssertionError):
    """Two ways gave two answers."""


def block(seed: int, questions: int = QUESTIONS) -> Counter[str]:
    """Ask the questions of one block; what was asked, and what was taken on the way.

    Raises Differs at the first answer that is another one.
    """
    draw = random.Random(seed)
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        table = _table(draw, FORMS[seed % len(FORMS)], Path(folder))
        desks = {}
        for mode in (False, True):
            with plain.only(plain=mode):
                desks[mode] = Desk({"t": table})
        try:
            while seen["questions"] < questions:
                seen.update(_asked(draw, desks, f"block {seed}, question {seen['questions']}"))
        finally:
            for desk in desks.values():
                desk.engine.close()
    return seen + Counter({FORMS[seed % len(FORMS)]: questions})


def _asked(draw: random.Random, desks: dict[bool, Desk], name: str) -> Counter[str]:
    """One question in both ways; nothing counted where it is refused."""
    sql = _question(draw)
    limits = Limits(draw.randint(1, 4), draw.randint(1, 3), draw.choice([None, None, 1, 3]))
    few = draw.choice([2, 10**6])
    try:
        with plain.only(plain=False):
            found = parse(sql, desks[False].catalog, public=desks[False].outer)
            if isinstance(found, PublicQuestion):
                return Counter()
            plans = [p for q in found.questions for p in make_plans(q, image, limits=limits, private_keys=True)]
    except HubbubError:
        return Counter(refused=1)
    seen = Counter(questions=1)
    for plan in plans:
        answers = [_answer(desks[mode], plan, mode, few) for mode in (False, True)]
        if answers[0] != answers[1]:
            raise Differs(f"{name}, limits {limits}, {few}: {sql}\n{answers[0]}\n{answers[1]}")
        failed = isinstance(answers[0], type)
        seen.update(plans=1, ranked=ranks(plan), found=any(d is None for d in plan.domains or ()), failed=failed)
        with plain.only(plain=False):
            seen["listed"] += bool(beside(plan, DuckDB(lists_beside=True)))
    if draw.random() < 0.25:
        seen["columns alone"] += _columns(draw, name)
    return seen


def _answer(desk: Desk, plan: Plan, mode: bool, few: int) -> Any:
    """What an engine makes of a plan: its integers, or that it has none."""
    before, pieces.FEW_ROWS = pieces.FEW_ROWS, few
    try:
        with plain.only(plain=mode):
            return answer(desk.engine, plan, {})
    except HubbubError as error:
        return type(error)
    finally:
        pieces.FEW_ROWS = before


def _question(draw: random.Random) -> str:
    """A question as text."""
    shown = draw.sample(VALUES, draw.choice([1, 1, 2, 3, 6]))
    key, where, rows = draw.choice(KEYS), draw.choice(WHERE), draw.choice(FROM)
    columns = ", ".join(f"{text} AS c{i}" for i, text in enumerate(shown))
    return f"SELECT {columns} FROM {rows}{where and f' WHERE {where}'}{key and f' GROUP BY {key}'}"


def _table(draw: random.Random, form: str, folder: Path) -> Any:
    """A declared table: its rows, and the form in which they are kept."""
    named = draw.random() < 0.5
    rows = _rows(draw, named=named, clean=draw.random() < 0.3)
    columns = {
        "g": hb.one_of("A", "B", "C", None),
        "h": hb.one_of(*range(LONG)),
        "x": hb.between(0, 100),
        "n": hb.between(-10, 50),
        "ok": hb.one_of(True, False, None),
    }
    types = TYPES | ({"u": "text"} if named else {})
    match form:
        case "arrow":
            source: Any = _arrow(rows, named=named)
            types = {}
        case "pandas":
            source = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in rows.items()})
            if draw.random() < 0.5:  # of pandas's own types, where they are those that are declared
                source = source.convert_dtypes().astype(
                    dict.fromkeys("hkn" if named else "uhkn", "Int64") | {"x": "Float64"}
                )
        case "parquet":
            source = str(folder / "t.parquet")
            pq.write_table(_arrow(rows, named=named), source, compression="none", row_group_size=draw.choice([7, 1000]))
            Path(source).write_bytes(Path(source).read_bytes().replace(BAD.encode(), b"\xff" * len(BAD)))
            types = {}
        case _:
            source = str(folder / "t.csv")
            Path(source).write_bytes(_csv(draw, rows))
    return hb.table(source, unit="u", columns=columns, max_groups=2, max_rows=2, **({"types": types} if types else {}))


def _rows(draw: random.Random, *, named: bool, clean: bool) -> dict[str, list[Any]]:
    """Some people with some rows each. clean: of ordinary values, all in their ranges."""
    people: list[Any] = [*range(draw.randint(0, 40))]
    if not clean:
        people += [None, 2**63 - 1, -(2**63), 2**62, -1]
    if named:
        people = [None if p is None else draw.choice(["", "person ", "é", "number " * 4]) + str(p) for p in people]
    rows: dict[str, list[Any]] = {name: [] for name in TYPES}
    for person in people:
        for _ in range(draw.choice([0, 1, 2, 5, 15])):
            row = {
                "u": person,
                "g": draw.choice("ABC"),
                "h": draw.randrange(LONG),
                "k": draw.randrange(5),
                "w": "x",
                "x": draw.randrange(10_000) / 100,
                "n": draw.randrange(-10, 51),
                "ok": draw.random() < 0.5,
                "day": DAY + dt.timedelta(days=draw.randrange(90)),
                "note": "ok",
            }
            for name in WORST:
                if not clean and draw.random() < 0.2:
                    row[name] = draw.choice(WORST[name])
            if not clean and draw.random() < 0.1:
                row["ok"] = row["day"] = None
            for name, value in row.items():
                rows[name].append(value)
    order = list(range(len(rows["u"])))
    draw.shuffle(order)
    return {name: [values[i] for i in order] for name, values in rows.items()}


def _arrow(rows: dict[str, list[Any]], *, named: bool) -> pa.Table:
    kinds = {"integer": pa.int64(), "text": pa.string(), "number": pa.float64(), "boolean": pa.bool_()}
    fields = {name: kinds.get(kind, pa.date32()) for name, kind in (TYPES | ({"u": "text"} if named else {})).items()}
    return pa.table({name: pa.array(rows[name], kind) for name, kind in fields.items()})


def _csv(draw: random.Random, rows: dict[str, list[Any]]) -> bytes:
    """Lines with and without quotes, some of too many fields or too few, some of bytes that are no text."""
    quotes = draw.choice([0.0, 0.0, 0.1, 0.5])
    lines = [",".join(rows)]
    for row in zip(*rows.values(), strict=True):
        fields = []
        for value in row:
            text = "" if value is None else str(value)
            if draw.random() < quotes or any(mark in text for mark in ',"\n'):
                text = '"' + text.replace('"', '""') + '"'
            fields.append(text)
        if draw.random() < 0.02:
            fields = fields[: draw.randrange(len(fields))] if draw.random() < 0.5 else [*fields, "more"]
        lines.append(",".join(fields))
    end = draw.choice(["\n", "\r\n"])
    return end.join(lines).encode().replace(BAD.encode(), b"\xff\xfe") + draw.choice([b"", b"\n"])


OUTER = OuterSide({})


def _columns(draw: random.Random, name: str) -> bool:
    """An outer part that names columns of an answer, in both ways; whether it does nothing else."""
    n = draw.randrange(5)
    values = {
        "k0": pa.array([draw.choice(WORST["w"]) for _ in range(n)], pa.string()),
        "k1": pa.array([draw.choice([DAY, None, dt.date(9999, 12, 31)]) for _ in range(n)], pa.date32()),
        "a0": pa.array([draw.choice(WORST["n"]) for _ in range(n)], pa.int64()),
        "a1": pa.array([draw.choice(WORST["x"]) for _ in range(n)], pa.float64()),
        "place": pa.array(range(n), pa.int64()),
    }
    shown = ", ".join(f'"r"."{c}" AS "{c} {i}"' for i, c in enumerate(draw.choices(list(values), k=draw.randint(1, 4))))
    end = draw.choice(["", "", "", " LIMIT 2", " DESC"])
    text = f'SELECT {shown} FROM "released0" AS "r" ORDER BY "r"."place"{end}'
    released = {"released0": pa.table(values)}
    answers = []
    for mode in (False, True):
        with plain.only(plain=mode):
            answers.append(OUTER.run(text, (), released))
    if answers[0].schema != answers[1].schema or str(answers[0].to_pylist()) != str(answers[1].to_pylist()):
        raise Differs(f"{name}: {text}\n{answers}")
    with plain.only(plain=False):
        return columns_alone(text) is not None


def main() -> None:
    """Blocks from the first on; what differs is printed, and how far it came."""
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    blocks = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    seen: Counter[str] = Counter()
    for seed in range(first, first + blocks):
        try:
            seen.update(block(seed))
        except Differs as error:
            seen["differs"] += 1
            print(f"{error}"[:2000], flush=True)
        if seed % 5 == 4 or seed == first + blocks - 1:
            print(f"to block {seed}: {dict(seen)}, {time.process_time():.0f} s of processors", flush=True)


if __name__ == "__main__":
    main()
