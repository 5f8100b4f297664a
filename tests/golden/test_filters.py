"""What filters say of drawn charges, one after another, as recorded: what fits and how often, what is left, refusals.

`HUBBUB_GOLDEN=write` writes it anew.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

import hubbub.accounting as acc
from golden.kept import Kept
from hubbub.accounting.events import Event
from hubbub.errors import HubbubError

COUNT, EACH = 60, 8
EPSILONS = ["1/10", "1/4", "1/2", "1", "3/2", "2", "3", "8", "1/3", "1e-9", "1e9"]
DELTAS = ["1e-6", "1e-9", "1/4", "1/3", "7e-7"]
SINGLE: list[Event] = [
    *(acc.PureDP(e) for e in ("1/10", "1/3", "1", "1e-20")),
    *(acc.Gaussian(s) for s in (1, 2, 7, 1000)),
    *(acc.GaussianDP(m) for m in ("1/2", "1/3", "1", "2")),
    *(acc.ApproxDP(*both) for both in (("1/10", "1e-9"), ("1", "1e-6"), (0, "1e-7"))),
    *(acc.ZCDP(r) for r in ("1/2", "1/8", "1/100")),
]
GAUSSIAN = [one for one in SINGLE if isinstance(one, acc.Gaussian | acc.GaussianDP)]
COSTS = [
    acc.Cost(Fraction(0), Fraction(0)),
    acc.Cost(Fraction(1, 7), Fraction(1, 98)),
    acc.Cost(None, Fraction(1, 50)),
    acc.Cost(None, Fraction(0), Fraction(1, 10**7)),
    acc.Cost(Fraction(1, 10), Fraction(1, 200), Fraction(1, 10**8)),
    acc.Cost(Fraction(0), Fraction(0), Fraction(1, 10**6)),
]


def _amount(text: str) -> Fraction:
    top, _, below = text.partition("/")
    return Fraction(top) / Fraction(below or 1)


def _filter(chance: Random, kind: str) -> acc.Filter:
    epsilon, delta = _amount(chance.choice(EPSILONS)), _amount(chance.choice(DELTAS))
    match kind:
        case "pure":
            return acc.PureFilter.of(epsilon)
        case "basic":
            return acc.BasicFilter(epsilon=epsilon, delta=delta)
        case "gaussian":
            return acc.GaussianFilter.of(epsilon)
        case _:
            share = chance.choice([None, delta / 3, delta / 1000])
            return acc.ZCDPFilter.of(epsilon, delta, delta_threshold=share)


def _charge(chance: Random, filter_: acc.Filter) -> Event | acc.Cost:
    """What is left of it exactly, or a part, four times in ten: a sum that comes to its end, and not beyond."""
    to_the_end, parts = chance.random() < 0.4, chance.choice([1, 1, 2, 3, 10])
    match filter_:
        case acc.ZCDPFilter(left=left) if to_the_end:
            delta = chance.choice([0, 1]) * left.delta / parts
            return acc.Cost(chance.choice([None, left.epsilon]), left.rho / parts, delta)
        case acc.PureFilter(left=epsilon) | acc.BasicFilter(left=(epsilon, _)) if to_the_end:
            return acc.Cost(epsilon / parts, Fraction(1, 3))
        case acc.GaussianFilter():
            some = chance.choices(GAUSSIAN, k=chance.choice([1, 2, 3]))
            several: list[Event] = [acc.Composed(some), acc.Repeated(some[0], 3), acc.Group(some[0], 2)]
            return chance.choice([*several, *SINGLE, *GAUSSIAN])
    more: list[Event | acc.Cost] = [*COSTS, acc.Repeated(SINGLE[0], 3), acc.Composed([SINGLE[0], SINGLE[5]])]
    return chance.choice([*SINGLE, *more])


def _said(at: int) -> str:
    chance = Random(f"filters {at}")
    now = _filter(chance, ("pure", "basic", "gaussian", "zcdp", "zcdp")[at % 5])
    told = [repr(now)]
    for _ in range(EACH):
        charge = _charge(chance, now)
        told.append(f"  {charge!r}")
        try:
            told.append(f"    {now.admits(charge)} {now.how_many(charge)}")
            now = now.charge(charge)
        except HubbubError as error:
            told.append(f"    {type(error).__name__}: {error}")
        told.append(f"    left {now.left!r}")  # type: ignore[attr-defined]
        if isinstance(now, acc.ZCDPFilter):
            told.append(f"    a question of {now.largest}: {now.question(chance.choice(['1/10', '2', '3'])).rho}")
    return "\n".join(told)


FILTERS = Kept("filters", _said, COUNT)


@pytest.mark.parametrize("at", range(COUNT))
def test_what_filters_say_is_as_recorded(at: int) -> None:
    FILTERS.check(at)


def test_the_recordings_hold_what_fits_and_what_does_not() -> None:
    told = "\n".join(FILTERS.all())
    for text in (
        "asked no finite pure",
        "left epsilon 0.",
        "left mu ",
        "left rho 0 ",
        " None\n",
        "ParameterError",
        "delta 0.25",
    ):
        assert text in told, text
    assert 0.2 < told.count("    True") / (COUNT * EACH) < 0.9
