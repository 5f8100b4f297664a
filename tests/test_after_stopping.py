"""Intervals after stopping, as a session returns them: they are those of the loop that `test_looks` simulates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from scipy.special import erfinv

import hubbub as hb
from hubbub.session.looks import STEPS, Looks
from seeded import SeededBits

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
HEDGED = {level: math.sqrt(2) * float(erfinv(1 - (1 - level) / 1.5)) for level in LEVELS}
UNITS = 582
"""17.7 standard deviations of the first step at this cap: about the size where the fewest intervals hold."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@dataclass(frozen=True)
class Answer:
    """One answer within 10 %. steps: the rho of each, and what it drew. ends: of the interval at each level."""

    value: int
    steps: tuple[tuple[Fraction, int], ...]
    ends: dict[float, tuple[float, float]]

    def holds(self, level: float) -> bool:
        low, high = self.ends[level]
        return low <= UNITS <= high


def answers(asked: int, seed: str) -> list[Answer]:
    """The same count, drawn anew each time: about 50 ms each."""
    table = hb.table(pa.table({"id": range(UNITS)}), unit="id", max_groups=1, max_rows=1)
    made = []
    with hb.Session({"t": table}, budget=hb.Budget(10**12, 1e-6), ledger=None, _bits=SeededBits(seed)) as s:
        for _ in range(asked):
            r = s.sql("SELECT COUNT(*) AS n FROM t", within="10 %", at_most="1e6", fresh=True)
            looks = s._ledger.record.release(r.charge_id).contents["looks"]
            steps = tuple((Fraction(one["spend"]["rho"]), one["plans"][0]["parts"][0][0][0]) for one in looks)
            (row,) = r.rows()
            made.append(Answer(int(row[0]), steps, {level: ends(r, level) for level in LEVELS}))
    return made


def ends(r: Any, level: float) -> tuple[float, float]:
    (row,) = r.intervals(level).to_pylist()
    return row["n_low"], row["n_high"]


def differs(answer: Answer) -> str:
    """How an answer differs from the simulated loop on the same draws; "" where it does not. Counts are whole, so that
    an end may be off by one.
    """
    rho, total = Fraction(0), Fraction(0)
    for k, (each, drawn) in enumerate(answer.steps):
        if each != (answer.steps[0][0] if k == 0 else rho):
            return f"step {k + 1} does not double the precision"
        rho, total = rho + each, total + each * drawn
        sigma, value = 1 / math.sqrt(2 * rho), float(total / rho)
        room = 0.1 * abs(value) - 1.959964 * sigma
        last = k + 1 == len(answer.steps)
        if last and room < -1 and k + 1 < STEPS:
            return "stopped too soon"
        if not last and room > 1:
            return "went on too long"
    if abs(answer.value - value) > 0.51:
        return "is not the mean weighted by precision"
    wrong = [
        level
        for level, (low, high) in answer.ends.items()
        if max(abs(value - low - HEDGED[level] * sigma), abs(high - value - HEDGED[level] * sigma)) > 1.51
    ]
    return f"has other intervals at {wrong}" if wrong else ""


def covered(made: list[Answer], level: float) -> float:
    return sum(a.holds(level) for a in made) / len(made)


def test_a_session_stops_and_answers_as_the_simulated_loop_does() -> None:
    """Every one of 60 answers. As many hold as their level says, within six standard deviations (false alarm below
    1e-9; `test_looks` counts the same loop 20,000 times at each size).
    """
    made = answers(60, "as simulated")
    assert {differs(a) for a in made} == {""}
    assert len({len(a.steps) for a in made}) > 1
    for level in LEVELS:
        assert covered(made, level) >= level - 6 * math.sqrt(level * (1 - level) / len(made))


def no_hedge(level: float) -> float:
    return level


def good_at_once(looks: Looks, estimates: Any) -> bool:
    return True


def test_planted_intervals_that_forget_the_stopping_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = answers(20, "planted")
    monkeypatch.setattr("hubbub.answer.evaluate.after_stopping", no_hedge)
    bare = answers(20, "planted")
    assert [a.steps for a in bare] == [a.steps for a in sound]  # the same draws
    assert all(differs(a).startswith("has other intervals at") for a in bare)
    assert {differs(a) for a in sound} == {""}
    assert sum(a.holds(0.5) for a in bare) < sum(a.holds(0.5) for a in sound)


def test_planted_a_loop_that_stops_at_once_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Looks, "met", good_at_once)
    assert "stopped too soon" in {differs(a) for a in answers(20, "planted")}


@pytest.mark.soak
def test_intervals_of_a_session_hold_at_every_level() -> None:
    """4,000 answers: within six standard deviations (false alarm below 1e-9); without the hedge fewer hold at .8."""
    made = answers(4000, "soak")
    assert {differs(a) for a in made} == {""}
    for level in LEVELS:
        held = covered(made, level)
        print(f"{level}: {held:.4f}")
        assert held >= level - 6 * math.sqrt(level * (1 - level) / len(made))
