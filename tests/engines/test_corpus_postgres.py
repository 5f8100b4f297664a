"""The corpus of every node over every combination of kinds, on a Postgres server: no error, and DuckDB's values.

Values are compared where the page "Engines" of the documentation promises that they are equal: on numbers that Postgres
calculates with, on texts that every engine reads and writes alike.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest

import hubbub as hb
from engines.corpus import bound, questions, rows, some, zeros
from engines.places import Embedded, Postgres, answer
from hubbub.engines.duckdb.dialect import DUCKDB
from hubbub.engines.duckdb.relations import LEFT_OUT
from hubbub.engines.fields import Fields
from hubbub.engines.postgres.settings import connect, statements
from hubbub.errors import HubbubError, QueryError
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.expression import expression_sql
from hubbub.tables.plan import Plan

BATCH = 25
DEPTH_1, DEPTH_2, ASKED = 120, 80, 25
SOAK_FROM = int(os.environ.get("HUBBUB_SOAK_FROM", "0"))
SOAK_COUNT = int(os.environ.get("HUBBUB_SOAK_COUNT", "2000"))
"""`make soak` may be resumed: the seeds from SOAK_FROM on, a hundred statements each, SOAK_COUNT statements in all."""

APART = {"POWER(1.5, ", ", 0.5)", ", 2.5)", ", 11)", "REVERSE", "LOWER", "UPPER", "ILIKE", "EXP", "LN", "LOG10"}
"""What engines write in their own ways beyond ASCII, or to the last bit."""
MADE = ("LEFT(", "RIGHT(", "SUBSTR(", "REPLACE(", "TRIM(")
"""A part of a date may be read as one by DuckDB alone: 2025-01-3."""
TEXTS = ["", "A", "a ", "\t1", "%", "'; --", "\\", "1", "-0", "1.5", "true", "NO", "2025-01-31", "2024-02-30", None]
TEXTS += ["9999-12-31 23:59:59.999999", "0001-01-01", "x" * 300, "9223372036854775808"]
NUMBERS = [0.0, -0.0, 1.0, -1.5, 0.5, 2.0**53, 9.3e18, 1e60, -1e60, 1e-60, float("inf"), float("nan"), None]


def tame(table: pa.Table, seed: int = 3) -> pa.Table:
    """The rows with texts and numbers that both engines read and write alike."""
    draw = random.Random(seed)
    for name, values in (("s", TEXTS), ("x", NUMBERS)):
        column = pa.array([draw.choice(values) for _ in range(table.num_rows)], table.schema.field(name).type)
        table = table.set_column(table.column_names.index(name), name, column)
    return table


class Hard:
    """The rows on a server and in DuckDB, and expressions over them."""

    def __init__(self, server: str, held: pa.Table) -> None:
        self.held = held.set_column(0, "id", pa.array(range(held.num_rows), pa.int64()))
        declared = hb.table(self.held, unit="id")
        self.place = Postgres(server, {"hard": declared}, {"hard": self.held})
        self.dialect = self.place.engine._written()
        self.source = self.place.engine._known["hard"]
        self.con = self.opened()
        self.duck = duckdb.connect(config={"threads": 1})
        self.duck.execute(f"SET disabled_optimizers = '{LEFT_OUT}'")
        self.duck.register("held", self.held)
        physical = {c: kind for c, kind, *_ in self.duck.execute("DESCRIBE SELECT * FROM held").fetchall()}
        self.local = Fields("hard", physical, {}, {}, DUCKDB).expressions()

    def opened(self) -> Any:
        con = connect(self.place.url)
        con.execute(statements(con.info.server_version).replace("SET LOCAL", "SET").encode())
        return con

    def close(self) -> None:
        self.con.close()
        self.duck.close()
        self.place.close()

    def _asked(self, batch: Sequence[str], dialect: Dialect, columns: Any, source: str) -> str:
        shown = ", ".join(f"{sql} AS {dialect.quote(name)}" for name, sql in columns.items())
        inside = ", ".join(f"{text} AS e{k}" for k, text in enumerate(batch))
        return f"SELECT {inside} FROM (SELECT {shown} FROM {source}) AS hard ORDER BY {dialect.quote('id')}"

    def values(self, batch: Sequence[str]) -> list[tuple[Any, ...]]:
        """Each row's values of expressions on the server. Raises psycopg.Error if one of them does."""
        text = self._asked([written(t, self.dialect) for t in batch], self.dialect, self.source.columns,
                           self.source.relation.relation)  # fmt: skip
        return self.con.execute(text.encode()).fetchall()

    def here(self, batch: Sequence[str]) -> list[tuple[Any, ...]]:
        """As `values`, in DuckDB."""
        return self.duck.execute(
            self._asked([written(t, DUCKDB) for t in batch], DUCKDB, self.local, "held")
        ).fetchall()

    def raising(self, batch: Sequence[str]) -> list[tuple[str, str]]:
        """The expressions of a batch that raise, each with what the server says; found by halving."""
        try:
            self.values(batch)
        except psycopg.Error as error:
            if len(batch) == 1:
                return [(batch[0], f"{error.sqlstate} {error}".splitlines()[0])]
            half = len(batch) // 2
            found = self.raising(batch[:half]) + self.raising(batch[half:])
            return found or [(" with ".join(batch), str(error).splitlines()[0])]
        return []

    def differing(self, batch: Sequence[str]) -> list[tuple[str, Any, Any]]:
        """The expressions of a batch with other values in DuckDB, each with the first pair."""
        found = []
        there, here = self.values(batch), self.here(batch)
        for k, text in enumerate(batch):
            pairs = ((spelled(a[k]), spelled(b[k])) for a, b in zip(there, here, strict=True))
            first = next(((a, b) for a, b in pairs if a != b), None)
            if first is not None:
                found.append((text, *first))
        return found


def spelled(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


def written(text: str, dialect: Dialect) -> str:
    node = bound(text)
    assert node is not None
    return expression_sql(node, dialect)


def kept(texts: Sequence[str], dialect: Dialect) -> list[str]:
    """Those that are not too long for a question."""
    found = []
    for text in texts:
        try:
            written(text, dialect)
        except QueryError:
            continue
        found.append(text)
    return found


def comparable(text: str) -> bool:
    """Whether both engines promise the same values: no letters beyond ASCII are folded, no number is beyond 2^300, none
    is written as a text or read from what DuckDB alone reads."""
    node = bound(text)
    assert node is not None
    apart = any(word in text for word in (*APART, "1.7e308", "'5881580-07-10'"))
    made = any(word in text for word in MADE) and "CAST(" in text
    huge = text.count("POWER(") > 1  # a power of a power: beyond the safe range it is NULL on the server
    return not apart and not made and not huge and "AS VARCHAR" not in text and "||" not in text


@pytest.fixture(scope="module")
def hard(postgres_server: str) -> Iterator[Hard]:
    found = Hard(postgres_server, rows(400, without="\0"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def mild(postgres_server: str) -> Iterator[Hard]:
    found = Hard(postgres_server, tame(rows(200)))
    yield found
    found.close()


def raising(hard: Hard, texts: Sequence[str]) -> list[tuple[str, str]]:
    texts = kept(texts, hard.dialect)
    return [found for at in range(0, len(texts), BATCH) for found in hard.raising(texts[at : at + BATCH])]


def differing(mild: Hard, texts: Sequence[str]) -> list[Any]:
    texts = [text for text in kept(texts, mild.dialect) if comparable(text)]
    return [found for at in range(0, len(texts), BATCH) for found in mild.differing(texts[at : at + BATCH])]


def sample(depth_1: int, depth_2: int, seed: int = 0) -> list[str]:
    return [*some(depth_1, seed=seed, depth=1), *some(depth_2, seed=seed)]


def test_no_expression_raises_on_the_server(hard: Hard) -> None:
    assert raising(hard, sample(DEPTH_1, DEPTH_2)) == []


def test_every_expression_has_duckdbs_values_on_the_server(mild: Hard) -> None:
    assert differing(mild, sample(DEPTH_1, DEPTH_2)) == []


def test_nothing_tells_minus_zero_from_zero(mild: Hard) -> None:
    """A unit's smallest or first value is one of the two by the order of its rows, which other rows decide."""
    # What is added to counts as an operand, which is within 2^300; a power may be beyond.
    told, pairs = [], [pair for pair in zeros() if "POWER(" not in pair[0]]
    for at in range(0, len(pairs), BATCH):
        texts = pairs[at : at + BATCH]
        values = mild.values([text for pair in texts for text in pair])
        told += [text for k, text in enumerate(texts) if any(row[2 * k] != row[2 * k + 1] for row in values)]
    assert told == []


def test_what_raises_is_found(hard: Hard, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exponential of what is too large, a number of a text that is none: left to the server, they raise."""
    monkeypatch.setattr(type(hard.dialect), "cast", lambda self, sql, of, to: f"CAST({sql} AS {self.types[to]})")
    found = dict(raising(hard, ["CAST(s AS BIGINT)", "CAST(x AS BIGINT)", "x IS NULL", "CAST(s AS DATE)"]))
    assert set(found) == {"CAST(s AS BIGINT)", "CAST(x AS BIGINT)", "CAST(s AS DATE)"}


@pytest.mark.soak
def test_no_random_expression_raises_on_the_server(hard: Hard, mild: Hard, capsys: pytest.CaptureFixture[str]) -> None:
    done, raised, other = 0, list[Any](), list[Any]()
    for seed in range(SOAK_FROM, SOAK_FROM + -(-SOAK_COUNT // 100)):
        texts = sample(20, 80, 2_000_000 + seed)
        raised += [(seed, *found) for found in raising(hard, texts)]
        other += [(seed, *found) for found in differing(mild, texts)]
        done += len(texts)
    assert (raised, other) == ([], [])
    with capsys.disabled():
        print(f"\n{done} expressions from seed {SOAK_FROM} on: 0 raise on Postgres, 0 differ from DuckDB")


# -- where relations have operands ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worlds(postgres_server: str) -> Iterator[tuple[Embedded, Postgres]]:
    frame, public = tame(rows(80)), tame(rows(60, seed=9))
    private = hb.table(frame, unit="id", max_groups=40, max_rows=40, max_total=80)
    declared = {"p": private, "w": hb.public(public)}
    here, there = Embedded(declared, {"p": frame}), Postgres(postgres_server, declared, {"p": frame})
    yield here, there
    here.close()
    there.close()


def failing(worlds: tuple[Embedded, Postgres], asked: Sequence[str]) -> tuple[int, list[tuple[str, Any]]]:
    """How many questions are answered, and those that raise, or have other integers than in DuckDB."""
    (here, there), count, found = worlds, 0, []
    for sql in asked:
        try:
            plans: list[Plan] = here.desk.plans(sql)
            for plan in plans:
                there.engine.prepare(plan)
        except HubbubError:
            continue
        for plan in plans:
            public = here.public(plan)
            try:
                one, two = answer(here.engine, plan, public), answer(there.engine, plan, public)
            except hb.EngineError:
                found.append((sql, "raises"))
                continue
            count += 1
            if one != two and "'5881580" not in sql:
                found.append((sql, (one, two)))
    return count, found


def test_no_question_raises_or_differs_on_the_server(worlds: tuple[Embedded, Postgres]) -> None:
    count, found = failing(worlds, questions(ASKED))
    assert found == []
    assert count > ASKED // 4


@pytest.mark.soak
def test_no_question_raises_or_differs_on_the_server_at_length(
    worlds: tuple[Embedded, Postgres], capsys: pytest.CaptureFixture[str]
) -> None:
    count, found = failing(worlds, questions(SOAK_COUNT, seed=SOAK_FROM))
    assert found == []
    with capsys.disabled():
        print(f"\n{count} of {SOAK_COUNT} questions answered on Postgres: 0 raise, 0 differ from DuckDB")
