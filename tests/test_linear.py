"""What a question costs grows with its size and no faster. Calls are counted, not seconds: a count does not vary."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.session import data

COLUMNS = 80


def calls_of(work: Callable[[], Any]) -> int:
    """How many functions are called."""
    count = 0

    def one(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(one)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.fixture(scope="module")
def session() -> Any:
    rows = pa.table({"u": [1, 2, 3], **{f"c{i}": [1, 2, 3] for i in range(COLUMNS)}})
    bounds = {f"c{i}": hb.between(0, 50) for i in range(COLUMNS)}
    table = hb.table(rows, unit="u", max_groups=3, max_rows=3, columns=bounds)
    with pytest.warns(UserWarning, match="ledger=None"):
        opened = hb.Session({"t": table}, budget=hb.Budget(10**6), ledger=None)
    with opened:
        yield opened


@pytest.mark.parametrize("words", [("SUM",), ("AVG", "VAR_SAMP", "COUNT", "MAX")], ids=["sums", "mixed"])
def test_check_grows_with_the_number_of_aggregates_and_no_faster(session: hb.Session, words: tuple[str, ...]) -> None:
    def asking(n: int) -> Callable[[], Any]:
        listed = ", ".join(f"{words[i % len(words)]}(c{i}) AS a{i}" for i in range(n))
        return lambda: session.check(f"SELECT {listed} FROM t", epsilon=1)

    asking(1)()
    few, many = calls_of(asking(COLUMNS // 4)), calls_of(asking(COLUMNS))
    assert many < 4.4 * few


class Planned:
    """How often statements are worked out by a session."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        worked_out = data.ask

        def counted(*given: Any, **more: Any) -> Any:
            self.count += 1
            return worked_out(*given, **more)

        monkeypatch.setattr(data, "ask", counted)

    def of(self, work: Callable[[], Any]) -> int:
        before = self.count
        work()
        return self.count - before


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    return Planned(monkeypatch)


def test_the_same_text_is_worked_out_once_for_each_analyst(session: hb.Session, planned: Planned) -> None:
    text = "SELECT SUM(c0) AS s, AVG(c1) AS m FROM t WHERE c2 > 1"
    other = session.as_analyst("another")
    assert planned.of(lambda: session.check(text, epsilon=1)) == 1
    assert planned.of(lambda: session.check(text, epsilon=1)) == 0
    assert planned.of(lambda: session.sql(text, epsilon=1)) == 0
    assert planned.of(lambda: other.check(text, epsilon=1)) == 1, "its time would tell what another one asked"
    assert planned.of(lambda: session.check(text, epsilon=2)) == 1
    assert planned.of(lambda: session.check(text, epsilon=1, max_total=2)) == 1
    assert session.check(text, epsilon=1) == other.check(text, epsilon=1)
    assert session.sql(text, epsilon=1).to_arrow() == other.sql(text, epsilon=1).to_arrow()


def test_what_follows_from_more_than_a_text_is_worked_out_each_time(planned: Planned) -> None:
    rows, places = pa.table({"u": [1, 2, 3], "c": [1, 2, 3]}), pa.table({"c": [1, 2]})
    tables = {"t": hb.table(rows, unit="u", max_total=1, columns={"c": hb.between(0, 9)}), "p": hb.public(places)}
    with pytest.warns(UserWarning, match="ledger=None"):
        opened = hb.Session(tables, budget=hb.Budget(100), ledger=None)
    with opened as s:
        for text in (
            "SELECT COUNT(*) AS n FROM t WHERE c IN (SELECT c FROM p)",
            "SELECT COUNT(*) AS n FROM t WHERE c IN (SELECT c FROM p LIMIT 1)",
            "SELECT COUNT(*) AS n, (SELECT max(c) FROM p) AS c FROM t",
            "SELECT COUNT(*) AS n FROM t WHERE current_date > DATE '2020-01-01'",
        ):
            assert [planned.of(lambda text=text: s.check(text, epsilon=1)) for _ in range(2)] == [1, 1], text
        asked = [
            planned.of(lambda c=c: s.check("SELECT SUM(c) AS s FROM t WHERE c > $c", epsilon=1, params={"c": c}))
            for c in (1, 1, 1.0)
        ]
        assert asked == [1, 1, 1]


def test_a_raised_ceiling_is_met_by_the_next_question(tmp_path: Path, planned: Planned) -> None:
    rows = pa.table({"u": [1, 2, 3]})
    with hb.Session({"t": hb.table(rows, unit="u", max_total=1)}, budget=hb.Budget(1), ledger=tmp_path / "l.db") as s:
        text = "SELECT COUNT(*) AS n FROM t"
        assert planned.of(lambda: s.check(text, epsilon=1)) == 1
        s._ledger.steward.raise_ceiling("u", 2, author="steward", reason="a second year")
        assert planned.of(lambda: s.check(text, epsilon=1)) == 1


def test_a_group_more_costs_hardly_a_call_more() -> None:
    """What is done for all groups is done in arrays and lists as a whole: below four calls for each one more."""

    def asking(count: int) -> Callable[[], Any]:
        columns = {"k": hb.one_of(*range(count)), "j": hb.one_of("a", "b", "c")}
        rows = pa.table({"u": [1, 2, 3], "k": [1, 2, 3], "j": ["a", "a", "b"], "x": [1, 2, 3]})
        table = hb.table(rows, unit="u", max_groups=3, max_rows=3, columns={**columns, "x": hb.between(0, 9)})
        with pytest.warns(UserWarning, match="ledger=None"):
            opened = hb.Session({"t": table}, budget=hb.Budget(10**6), ledger=None)
        return lambda: opened.sql("SELECT k, j, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY k, j", epsilon=1).to_arrow()

    asking(50)()
    few, many = calls_of(asking(100)), calls_of(asking(4000))
    assert many - few < 4 * 3 * 3900
