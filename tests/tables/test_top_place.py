"""The most frequent groups of a column that nobody declared: what is charged, what one unit moves, what is refused.

The law itself is enumerated in `tests/mechanisms/test_top_k.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from audit.frozen import FrozenBits
from hubbub.accounting import cost
from hubbub.audit import audit_session
from hubbub.audit.fixtures import SCENES
from hubbub.mechanisms import UnknownTopK
from hubbub.mechanisms.recording import Recorded, distance, recording
from hubbub.remedies import Attempt, UseDelta
from hubbub.tables.aggregates.top_place import worth
from hubbub.tables.measure import MeasurementKind
from seeded import SeededBits

LIST = "SELECT APPROX_TOP_K(word, 3) AS words FROM notes"
TOP = "SELECT word, TOP_PLACE(3) AS place FROM notes GROUP BY word ORDER BY place"
WORDS = ["fever"] * 300 + ["cough"] * 200 + ["pain"] * 100
ROWS = [(f"p{i}", word) for i, word in enumerate(WORDS)]
DELTA = hb.Budget(epsilon=10, delta="1e-6")


def notes(rows: list[tuple[str, str | None]], **declared: Any) -> Any:
    table = pa.table({"id": pa.array([i for i, _ in rows]), "word": pa.array([w for _, w in rows], pa.string())})
    return hb.table(table, **{"unit": "id", "max_groups": 3, "max_rows": 2, **declared})


def session(tmp_path: Path, rows: Any = ROWS, budget: Any = DELTA, name: str = "a.db", **declared: Any) -> hb.Session:
    opened = hb.Session({"notes": notes(rows, **declared)}, budget=budget, ledger=tmp_path / name)
    opened._bits = SeededBits(3)
    return opened


def recorded(tmp_path: Path, rows: Any, name: str, sql: str = TOP, **declared: Any) -> Recorded:
    with session(tmp_path, rows, name=name, **declared) as opened, recording() as records:
        opened.sql(sql, epsilon=2)
    (only,) = records
    return only


def test_names_and_places_come_out_and_no_counts(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.sql(TOP, epsilon=2)
        assert answer.to_dict() == {"word": ["fever", "cough", "pain"], "place": [1, 2, 3]}
        assert answer.intervals().column_names == ["word", "place"]
        listed = opened.sql(f"SELECT LIST(word ORDER BY place) AS words FROM ({TOP.split(' ORDER')[0]})", epsilon=2)
        assert listed.to_dict() == {"words": [["fever", "cough", "pain"]]}
        by_verb = opened.table("notes").group_by("word").agg(place=hb.top_place(3)).order_by("place")
        assert by_verb.run(epsilon=2).to_dict() == answer.to_dict()
        with pytest.raises(hb.QueryError, match="groups found privately"):
            answer.refine(3)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_what_is_charged_for_places_is_what_runs(tmp_path: Path, noise: str, neighbours: str) -> None:
    with session(tmp_path, neighbours=neighbours) as opened, recording() as records:
        answer = opened.sql(TOP, epsilon=2, noise=noise)
        receipt = answer.receipt
    (law,) = (r.distribution for r in records)
    assert isinstance(law, UnknownTopK)
    assert (law.k, law.items, law.sensitivity, law.monotone) == (3, 3, 1, neighbours == "add_remove")
    drawn, charged = cost(law.loss), Fraction(receipt["rho"] or 0)
    assert noise == "laplace" or drawn.rho <= charged
    assert drawn.delta == law.delta == Fraction(receipt["delta"]) > 0
    if noise == "laplace":
        assert 3 * law.epsilon == 2
    else:
        assert float(drawn.rho) == pytest.approx(float(charged), rel=1e-6)


def test_how_many_groups_a_unit_is_in_enters_delta_alone(tmp_path: Path) -> None:
    few, many = (recorded(tmp_path, ROWS, f"{c}.db", max_groups=c).distribution for c in (1, 50))
    assert few.epsilon == many.epsilon
    assert 0 < many.floor - few.floor < 50


def test_a_unit_of_many_words_moves_as_many_groups_as_it_may_be_in_each_by_one(tmp_path: Path) -> None:
    """A hundred words of its own and a thousand rows of one: three groups at most, by one each, on both sides."""
    loud = [("loud", f"w{i}") for i in range(100)] + [("loud", "fever")] * 1000 + [("loud", None)] * 5
    without, with_unit = recorded(tmp_path, ROWS, "a.db"), recorded(tmp_path, ROWS + loud, "b.db")
    assert with_unit.keys is not None
    assert without.keys is not None
    counts = dict(zip(without.keys, without.values, strict=True))
    moved = {key: n - counts.get(key, 0) for key, n in zip(with_unit.keys, with_unit.values, strict=True)}
    moved = {key: by for key, by in moved.items() if by}
    assert len(moved) == 3
    assert set(moved.values()) == {1}
    assert distance(without, with_unit) == 3 == with_unit.sensitivity


def test_a_rare_word_is_not_named_and_an_empty_table_has_no_places(tmp_path: Path) -> None:
    for name, rows in (("a.db", [*ROWS, ("x", "a rare name")]), ("b.db", []), ("c.db", [("x", "alone")])):
        with session(tmp_path, rows, name=name) as opened:
            answer = opened.sql(TOP, epsilon=2)
            assert not {"a rare name", "alone"} & set(answer.to_dict()["word"])
            assert list(answer.columns) == ["word", "place"]


def test_without_a_delta_it_is_refused_with_the_way_out(tmp_path: Path) -> None:
    pure = hb.Budget(epsilon=10)
    with (
        session(tmp_path, budget=pure) as opened,
        pytest.raises(hb.PolicyError, match="needs a budget with delta") as caught,
    ):
        opened.sql(TOP, epsilon=2)
    remedy = next(r for r in caught.value.remedies if isinstance(r, UseDelta))
    attempt, tables = remedy.apply(Attempt(TOP, {"epsilon": 2}, pure), {"notes": notes(ROWS)})
    with hb.Session(tables, budget=attempt.budget, ledger=tmp_path / "b.db") as opened:
        assert opened.sql(attempt.sql, **attempt.options).to_dict()["word"][0] == "fever"


@pytest.mark.parametrize(
    ("sql", "match"),
    [
        ("SELECT word, TOP_PLACE(3), COUNT(*) FROM notes GROUP BY word", "beside no other aggregate"),
        ("SELECT word, TOP_PLACE(3) FROM notes GROUP BY word ORDER BY COUNT(*)", "beside no other aggregate"),
        ("SELECT word, TOP_PLACE(3), TOP_PLACE(4) FROM notes GROUP BY word", "beside no other aggregate"),
        ("SELECT TOP_PLACE(3) FROM notes", "not declared"),
        ("SELECT word, TOP_PLACE(3) FROM notes GROUP BY ROLLUP (word)", "not declared"),
        ("SELECT word, TOP_PLACE(0) FROM notes GROUP BY word", "constant from 1 to 50"),
        ("SELECT word, TOP_PLACE() FROM notes GROUP BY word", "constant from 1 to 50"),
        ("SELECT word, TOP_PLACE(word) FROM notes GROUP BY word", "constant from 1 to 50"),
        ("SELECT word, TOP_PLACE(3) FILTER (WHERE word > 'a') FROM notes GROUP BY word", "FILTER"),
        ("SELECT APPROX_TOP_K(word, 3), COUNT(*) FROM notes", "ask for it alone"),
        ("SELECT APPROX_TOP_K(word, 3) FROM notes GROUP BY word", "ask for it alone"),
        ("SELECT APPROX_TOP_K(word, 0) FROM notes", "constant from 1 to 50"),
        ("SELECT APPROX_TOP_K(word, word) FROM notes", "constant from 1 to 50"),
        ("SELECT APPROX_TOP_K(word) FROM notes", "from 1 to 50"),
        ("SELECT MODE(word) FROM notes", r"chooses among declared values.* listed\. Declare them, "),
        (
            "SELECT MODE(w) FROM (SELECT id, MAX(word) AS w FROM notes GROUP BY id) AS n",
            r"and w has none .* listed\. Clamp it in",
        ),
    ],
)
def test_what_places_and_lists_cannot_be_asked_for_is_refused_before_the_charge(
    tmp_path: Path, sql: str, match: str
) -> None:
    with session(tmp_path) as opened:
        with pytest.raises((hb.QueryError, hb.PolicyError), match=match):
            opened.sql(sql, epsilon=2)
        assert opened.history() == []


def test_declared_groups_are_not_named_so(tmp_path: Path) -> None:
    declared = {"columns": {"word": hb.one_of("fever", "cough", "pain")}}
    with session(tmp_path, **declared) as opened, pytest.raises(hb.QueryError, match="APPROX_TOP_K"):
        opened.sql(TOP, epsilon=2)


def test_check_says_which_groups_are_named_and_the_receipt_what_ran(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        said = str(opened.check(TOP, epsilon=2))
        assert "names groups of 54 units or more, 19 times in 20" in said
        assert "exponential mechanism 3 times" in said
        (part,) = opened.sql(TOP, epsilon=2).receipt["measurements"]
        assert (part["choices"], part["groups_of_one_unit"], Fraction(part["delta"]) > 0) == (3, 3, True)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_auditor_finds_nothing(relation: Any) -> None:
    """Replays on nasty neighbours, at an epsilon where groups of a few units are named."""
    scene = next(s for s in SCENES if s.name == "names")
    asked = [q for q in scene.questions if "TOP_PLACE" in str(q)][:1]
    audit = audit_session(
        lambda data: scene.open(data, relation, FrozenBits()),
        questions=asked,
        relation=relation,
        neighbours=list(scene.pairs(relation))[::16],
        runs=0,
    )
    assert audit.violations == ()
    assert audit.neighbours > 2


def test_the_auditor_finds_a_floor_that_is_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = next(s for s in SCENES if s.name == "names")
    monkeypatch.setattr(UnknownTopK, "_floor", lambda self: 1)
    audit = audit_session(
        lambda data: scene.open(data, "add_remove", FrozenBits()),
        questions=[q for q in scene.questions if "TOP_PLACE" in str(q)][:1],
        neighbours=list(scene.pairs("add_remove"))[:2],
        runs=0,
    )
    assert audit.violations


# -- APPROX_TOP_K of a column without declared values ----------------------------------------------------------------


def test_a_list_of_undeclared_values_is_found_by_rows(tmp_path: Path) -> None:
    """Fewer units with two rows each go before more with one; NULLs are not listed."""
    rows = [(f"a{i}", "often") for i in range(200)] * 2 + [(f"b{i}", "once") for i in range(300)]
    with session(tmp_path, [*rows, *((f"c{i}", None) for i in range(900)), ("x", "rare")]) as opened:
        answer = opened.sql(LIST, epsilon=5)
        assert answer.rows() == [(["often", "once"],)]
        assert opened.sql(TOP.replace("3", "1"), epsilon=2).to_dict()["word"] == [None]  # by units, NULL is a group
        kept = opened.sql("SELECT APPROX_TOP_K(UPPER(word), 2) FILTER (WHERE word <> 'often') FROM notes", epsilon=2)
        assert kept.rows() == [(["ONCE"],)]
        assert list(kept.columns) == ["top"]
        beside = f"SELECT words, n FROM ({LIST}) CROSS JOIN (SELECT COUNT(*) AS n FROM notes)"
        assert opened.sql(beside, epsilon=3).rows()[0][0] == ["often", "once"]
        by_verb = opened.table("notes").agg(words=hb.approx_top_k("word", 3)).run(epsilon=5)
        assert by_verb.charge_id == answer.charge_id


def test_an_empty_table_has_an_empty_list(tmp_path: Path) -> None:
    with session(tmp_path, []) as opened:
        assert opened.sql(LIST, epsilon=2).rows() == [([],)]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_rows_of_one_unit_are_the_sensitivity_of_a_choice(tmp_path: Path, neighbours: str) -> None:
    loud = [("loud", f"w{i}") for i in range(100)] + [("loud", "fever")] * 1000 + [("loud", None)] * 5
    asked = {"sql": LIST, "max_rows": 4, "neighbours": neighbours}
    without, with_unit = recorded(tmp_path, ROWS, "a.db", **asked), recorded(tmp_path, ROWS + loud, "b.db", **asked)
    law = without.distribution
    assert (law.k, law.items, law.sensitivity, law.monotone) == (3, 3, 4, neighbours == "add_remove")
    assert law.delta > 0
    assert without.keys is not None
    assert with_unit.keys is not None
    counts = dict(zip(without.keys, without.values, strict=True))
    moved = [n - counts.get(key, 0) for key, n in zip(with_unit.keys, with_unit.values, strict=True)]
    assert sum(by > 0 for by in moved) == 3
    assert max(moved) <= 4
    assert distance(without, with_unit) <= with_unit.sensitivity == 12 * law.items // 3 * (1 if law.monotone else 2)


def test_the_last_place_is_worth_what_is_told_19_times_in_20() -> None:
    """Exact, of the worst table: one value at the top, the others just further below than is told."""
    law = UnknownTopK(1, epsilon=1, delta="1e-6", sensitivity=2)
    told = worth(law, MeasurementKind.ROWS)
    last = int(told.split("within ")[1].split()[0])
    for off, missed in ((1, False), (0, True)):
        counts = [10_000, *[10_000 - last - off] * 999]
        worse = 1 - math.exp(law.log_prob((0,), counts))
        assert (worse > 0.05) == missed
    listed = int(told.split("of ")[1].split()[0])
    assert math.exp(law.log_prob((0,), [listed])) >= 0.95 > math.exp(law.log_prob((0,), [listed - 1]))


def test_an_answer_tells_what_its_list_is_worth(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        told = "top 3: a value of"
        assert told in str(opened.check(LIST, epsilon=2))
        answer = opened.sql(LIST, epsilon=2)
        assert told in str(answer)
        (part,) = answer.receipt["measurements"]
        assert (part["counts"], part["sensitivity"]) == ("rows, to name the most frequent groups", 2)


@pytest.mark.parametrize(("at", "fill"), [(0, {}), (1, {"values": ("fever", "cough", "pain")})])
def test_without_a_delta_a_list_is_refused_with_both_ways_out(tmp_path: Path, at: int, fill: dict[str, Any]) -> None:
    pure = hb.Budget(epsilon=10)
    with (
        session(tmp_path, budget=pure) as opened,
        pytest.raises(hb.PolicyError, match=r"APPROX_TOP_K of word, .* needs a budget with delta") as caught,
    ):
        opened.sql(LIST, epsilon=2)
    remedy = caught.value.remedies[at].fill(**fill)
    attempt, tables = remedy.apply(Attempt(LIST, {"epsilon": 2}, pure), {"notes": notes(ROWS)})
    with hb.Session(tables, budget=attempt.budget, ledger=tmp_path / "b.db") as opened:
        assert opened.sql(attempt.sql, **attempt.options).rows() == [(["fever", "cough", "pain"],)]


def test_an_expression_of_declared_values_is_grouped_by(tmp_path: Path) -> None:
    declared = {"columns": {"word": hb.one_of("fever", "cough", "pain")}}
    with session(tmp_path, **declared) as opened, pytest.raises(hb.QueryError, match="group by it"):
        opened.sql("SELECT APPROX_TOP_K(UPPER(word), 2) AS w FROM notes", epsilon=2)


def test_the_auditor_finds_a_missing_floor_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = next(s for s in SCENES if s.name == "names")
    asked = [q for q in scene.questions if "APPROX_TOP_K" in str(q)][:1]
    pairs = list(scene.pairs("add_remove"))

    def found() -> bool:
        audit = audit_session(
            lambda data: scene.open(data, "add_remove", FrozenBits()), questions=asked, neighbours=pairs[::16], runs=0
        )
        return bool(audit.violations)

    assert asked
    assert not found()
    monkeypatch.setattr(UnknownTopK, "_floor", lambda self: 1)
    assert found()
