"""The corpus on DuckDB: nothing raises, with the casts and no net, nor with the net and no casts (P33, P52).

In three layers, each of which holds alone: the casts of operands, `TRY` around the nodes that could raise, and the
years of dates that are made. Every optimiser is on but the one that the engine switches off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counts
import hubbub as hb
from answers import Desk
from engines.corpus import FORMS, bound, expressions, far_rows, fillings, questions, rows, some, zeros
from engines.evaluated import BATCH, NO_CASTS, NO_NET, NO_YEARS, Hard, fits, written
from hubbub.engines.duckdb.dialect import DUCKDB, DuckDB
from hubbub.sql.emit.dialect import Dialect
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import leaves

MODES = {"as written": DUCKDB, "no net": NO_NET, "no casts": NO_CASTS, "neither casts nor years": NO_YEARS}
SOURCES = ["table", "parquet"]
DEPTH_1, DEPTH_2, ASKED = 500, 1300, 120
SOAK_FROM = int(os.environ.get("HUBBUB_SOAK_FROM", "0"))
SOAK_COUNT = int(os.environ.get("HUBBUB_SOAK_COUNT", "20000"))
"""`make soak` may be resumed: the seeds from SOAK_FROM on, a thousand statements each, SOAK_COUNT statements in all."""


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hard]:
    made = Hard.made(tmp_path_factory.mktemp("hard"))
    yield made
    made.con.close()


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [*some(DEPTH_1, depth=1), *some(DEPTH_2)]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", MODES)
def test_no_expression_raises(hard: Hard, texts: list[str], mode: str, source: str) -> None:
    """As written, all of both sources; in each other mode, each expression of one of them, and in the soak of both."""
    half = slice(None) if counts.SOAK or mode == "as written" else slice(SOURCES.index(source), None, len(SOURCES))
    assert hard.all_raising(written(texts[half], MODES[mode]), source) == []


def differing(hard: Hard, texts: Sequence[str]) -> list[str]:
    """The expressions with other values without the net, in rows of another order read from a file."""
    plain, bare, found = written(texts, DUCKDB), dict(written(texts, NO_NET)), []
    for at in range(0, len(plain), BATCH):
        batch = plain[at : at + BATCH]
        values = hard.values(batch, "table")
        others = hard.values([(text, bare[text]) for text, _ in batch], "parquet")
        found += [text for (text, _), a, b in zip(batch, values, others, strict=True) if a != b]
    return found


def test_every_value_is_the_same_without_the_net_and_from_a_file(hard: Hard, texts: list[str]) -> None:
    assert differing(hard, texts) == []


def test_nothing_tells_minus_zero_from_zero(hard: Hard) -> None:
    """A unit's smallest or first value is one of the two by the order of its rows, which other rows decide."""
    pairs = zeros()
    one, two = (written((pair[side] for pair in pairs), DUCKDB) for side in (0, 1))
    assert len(one) == len(two) == len(pairs)
    told = []
    for at in range(0, len(pairs), BATCH):
        a, b = (hard.values(side[at : at + BATCH], "table") for side in (one, two))
        told += [pair for pair, x, y in zip(pairs[at : at + BATCH], a, b, strict=True) if x != y]
    assert told == []


def test_the_text_of_an_expression_has_the_type_of_its_kind(hard: Hard, texts: list[str]) -> None:
    made = written(texts, DUCKDB)
    kinds = [kind for at in range(0, len(made), BATCH) for kind in hard.types(made[at : at + BATCH])]
    found = {text: kind for (text, _), kind in zip(made, kinds, strict=True)}
    assert {text: kind for text, kind in found.items() if not fits(bound(text), kind)} == {}


def test_what_the_engine_makes_of_no_casts_and_no_net_raises(hard: Hard) -> None:
    """What both are for: with neither, the corpus finds many."""
    bare = DuckDB(casts=False, net=False, years=False)
    found = dict(hard.all_raising(written([*some(3 * len(FORMS), depth=1), "ABS(i)"], bare), "table"))
    assert len(found) > 5
    assert "ABS(i)" in found


def test_the_corpus_finds_a_cast_left_to_the_engine(hard: Hard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CASE of a DATE and a TIMESTAMP, as it was: no cast, no TRY, and dates of any year."""
    operand, old = Dialect.operand, DuckDB(net=False, years=False)

    def left_to_the_engine(self: Dialect, sql: str, of: Kind, to: Kind) -> str:
        return sql if (of, to) == (Kind.DATE, Kind.TIMESTAMP) else operand(self, sql, of, to)

    sample = [text for form in ("IF(b, {0}, {1})", "COALESCE({0}, {1})") for text in fillings(form)]
    before = dict(hard.all_raising(written(sample, old), "table"))
    monkeypatch.setattr(Dialect, "operand", left_to_the_engine)
    found = dict(hard.all_raising(written(sample, old), "table"))
    assert before == {}
    assert {"IF(b, t, CAST(s AS DATE))", "COALESCE(CAST(s AS DATE), t)"} <= set(found)


def test_the_corpus_finds_a_function_that_raises(hard: Hard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDB, "tried", lambda self, sql: sql)
    monkeypatch.setattr(Dialect, "column", lambda self, sql, of, to: sql)
    sample = some(3 * len(FORMS), depth=1)
    assert hard.all_raising(written(sample, DuckDB(casts=False)), "table") != []


# -- where relations have operands ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    file = tmp_path_factory.mktemp("asked") / "p.parquet"
    pq.write_table(pa.concat_tables([rows(80), far_rows(80)]), file)
    private = hb.table(str(file), unit="id", max_groups=2, max_rows=2, max_total=4)
    made = Desk({"p": private, "w": hb.public(rows(60, seed=9))})
    yield made
    made.engine.close()


def answers(desk: Desk, sql: str, dialect: Dialect) -> list[Any] | None:
    """The exact integers of a question; None where it is refused.

    Raises EngineError where a row does.
    """
    try:
        plans = desk.plans(sql)
    except hb.HubbubError:
        return None
    desk.engine._dialect = dialect
    try:
        found = [
            desk.engine.run(p, {leaf.place: desk.outer.leaf(leaf, {}) for leaf in leaves(p.question.relation)})
            for p in plans
        ]
    finally:
        desk.engine._dialect = DUCKDB
    return [
        sorted(zip(map(str, f.groups), *f.vectors, strict=True)) if f.groups is not None else f.vectors for f in found
    ]


def failing(desk: Desk, asked: Sequence[str], mode: str) -> tuple[int, list[str]]:
    """How many questions are answered, and those that raise, or have other integers than as hubbub writes them."""
    count, found = 0, []
    for sql in asked:
        try:
            plain, other = answers(desk, sql, DUCKDB), answers(desk, sql, MODES[mode])
        except hb.EngineError:
            found.append(sql)
            continue
        count += plain is not None
        if mode != "no casts" and plain != other:
            found.append(sql)
    return count, found


@pytest.mark.parametrize("mode", ["no net", "no casts"])
def test_no_question_raises_wherever_operands_stand(desk: Desk, mode: str) -> None:
    count, found = failing(desk, questions(ASKED), mode)
    assert found == []
    assert count > ASKED // 3


# -- at length --------------------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", MODES)
def test_no_expression_of_depth_1_raises(hard: Hard, mode: str, source: str) -> None:
    assert hard.all_raising(written(expressions(1), MODES[mode]), source) == []


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["no net", "no casts"])
def test_no_question_raises(desk: Desk, mode: str) -> None:
    assert failing(desk, questions(), mode)[1] == []


@pytest.mark.soak
def test_no_random_statement_raises(hard: Hard, capsys: pytest.CaptureFixture[str]) -> None:
    done = 0
    for seed in range(SOAK_FROM, SOAK_FROM + -(-SOAK_COUNT // 1000)):
        drawn = some(min(1000, SOAK_COUNT - done), seed=1_000_000 + seed)
        for mode, dialect in MODES.items():
            for source in SOURCES:
                assert hard.all_raising(written(drawn, dialect), source) == [], (seed, mode, source)
        assert differing(hard, drawn) == [], seed
        done += len(drawn)
    with capsys.disabled():
        print(f"\n{done} statements from seed {SOAK_FROM} on: 0 raise in {len(MODES)} modes, 0 values differ")


@pytest.mark.soak
def test_every_expression_of_depth_2_is_total(hard: Hard, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them, in slices: each mode on each source in turn."""
    turns, batch, done = [(m, s) for m in MODES for s in SOURCES], [], 0
    for text in expressions(2):
        batch.append(text)
        if len(batch) == 5 * BATCH:
            mode, source = turns[done // len(batch) % len(turns)]
            assert hard.all_raising(written(batch, MODES[mode]), source) == [], (mode, source)
            done, batch = done + len(batch), []
    assert hard.all_raising(written(batch, DUCKDB), "table") == []
    with capsys.disabled():
        print(f"\n{done + len(batch)} expressions of depth 2: 0 raise")


def test_a_batch_is_halved_until_what_raises_is_found(hard: Hard) -> None:
    batch = [("fine", "1"), ("bad", "CAST(s AS BIGINT)"), ("fine too", "x")]
    ((text, says),) = hard.raising(batch, "table")
    assert text == "bad"
    assert "Conversion Error" in says
    with pytest.raises(duckdb.Error):
        hard.values(batch, "table")
