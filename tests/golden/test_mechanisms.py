"""What mechanisms of groups, searches and choices make of drawn parameters and counts, as recorded.

Thresholds, exact chances, events, and draws by a seeded bit source. That these laws are private is told by
`tests/mechanisms`. `HUBBUB_GOLDEN=write` writes it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from golden.kept import Kept
from hubbub import plain
from hubbub.errors import HubbubError
from hubbub.mechanisms.calibration import Spend, calibrated
from hubbub.mechanisms.groups import GroupThreshold, OptimalGroupSelection
from hubbub.mechanisms.place_search import PLACES, PlaceSearch
from hubbub.mechanisms.top_k import UnknownTopK
from seeded import SeededBits

COUNT = 100
EPSILONS = ["1/20", "1/3", "1/2", "1", "2", "3", "7", "40", "1e-4", "1e-20"]
DELTAS = ["1e-2", "1/3", "3/4", "1e-5", "1e-6", "1e-9", "1e-40", "1e-301"]
SIZES = [1, 1, 2, 3, 10, 1000]


def _counts(chance: Random, some: int) -> list[int]:
    return [chance.choice([0, 0, 1, 2, 5, 17, 60, 300]) + chance.randrange(3) for _ in range(some)]


def _amount(text: str) -> Fraction:
    top, _, below = text.partition("/")
    return Fraction(top) / Fraction(below or 1)


def _spend(chance: Random) -> Spend:
    amount = _amount(chance.choice(EPSILONS))
    return Spend(epsilon=amount) if chance.random() < 0.5 else Spend(rho=amount)


def _selection(chance: Random, bits: SeededBits) -> Iterator[object]:
    """Of groups that are shown without a count."""
    law = OptimalGroupSelection(epsilon=chance.choice(EPSILONS), delta=chance.choice(DELTAS))
    yield law, law.loss, law.always
    for n in (0, 1, 2, 3, law.always // 2, law.always - 1, law.always, law.always + 1):
        yield n, law.probability(n), *(round(law.log_prob(shown, n), 12) for shown in (True, False))
    yield np.flatnonzero(law.release(_counts(chance, 30), bits=bits)).tolist()
    yield law.release([], bits=bits).tolist()


def _threshold(chance: Random, bits: SeededBits) -> Iterator[object]:
    """Of groups that are shown with a noisy count."""
    amount: dict[str, Any] = {chance.choice(["epsilon", "rho"]): chance.choice(EPSILONS)}
    law = GroupThreshold(**amount, delta=chance.choice(DELTAS), groups=chance.choice(SIZES))
    yield law, law.loss, float(f"{law.one_unit:.9g}")
    for data in (0, 1, 2, law.threshold):
        outputs = (None, law.threshold - 1, law.threshold, law.threshold + 3, data)
        yield data, [float(f"{law.log_prob(output, data):.9g}") for output in outputs]
    yield law.release(_counts(chance, 30), bits=bits)


def _top(chance: Random, bits: SeededBits) -> Iterator[object]:
    """Of the most frequent of items that nobody declared."""
    amounts: dict[str, Any] = {"epsilon": chance.choice(EPSILONS), "delta": chance.choice(DELTAS)}
    sizes = {name: chance.choice(SIZES) for name in ("items", "sensitivity")}
    law = UnknownTopK(chance.choice([1, 2, 5]), **amounts, **sizes, monotone=chance.random() < 0.5)
    yield law, law.loss, law.rate, float(f"{law.one_unit:.9g}")
    yield [
        float(f"{law.shown(count):.9g}") for count in (0, 1, law.floor - 1, law.floor, law.floor + 1, law.floor + 20)
    ]
    counts = [law.floor + n - 8 if n else 0 for n in _counts(chance, 12)]
    counts = [max(0, n) for n in counts]
    places = law.release(counts, bits=bits)
    yield counts, places, round(law.log_prob(places, counts), 9)
    yield round(law.log_prob([counts.index(max(counts))], counts), 9), law.log_prob([5, 5], counts)
    yield law.release([0, 0], bits=bits), law.log_prob([], [0, 0]), law.log_prob([0], [0, 7])
    yield law.log_prob(range(law.k + 1), [law.floor] * (law.k + 1))  # more than are chosen


def _search(chance: Random, bits: SeededBits) -> Iterator[object]:
    """Of the place of a bound."""
    law = PlaceSearch(_spend(chance), replace=chance.random() < 0.5)
    yield law, law.event, law.law, law.unit, law.thresholds
    counts = [int(400 * 2.0 ** (-chance.uniform(0, 3) * p)) * chance.choice([0, 1, 1]) for p in range(PLACES)]
    for some in (counts, [0] * PLACES, [*[0] * (PLACES - 1), 5000], counts[::-1]):
        noisy = law.release(some, bits=bits)
        place = law.found(noisy)
        yield noisy, place, [law.beyond(noisy, at) for at in (place or 0, 3, PLACES - 2, PLACES - 1)]
    yield [law.margin(places, beta) for places in (0, 1, 7, 40) for beta in (0.3, 0.05, 1e-3, 1e-9)]
    if law.unit < 3:
        yield [(i, float(f"{p:.6g}")) for i, p in enumerate(law.chances([n % 97 for n in counts])) if p > 1e-9]


def _noise(chance: Random, bits: SeededBits) -> Iterator[object]:
    """Of noise at what it may cost."""
    spend, moved = _spend(chance), chance.choice([*SIZES, 0])
    up = chance.choice([None, lambda scale: Fraction(-(-scale // 1)), lambda scale: scale / 2])
    yield spend, spend.pure, spend.amount, spend.part(Fraction(1, 3)), spend.of_amount(Fraction(5))
    noise = calibrated(spend=spend, l1=moved, l2_squared=moved + 3, rounded=up)
    yield noise, (noise.scale if spend.pure else noise.sigma2)
    values = np.array(_counts(chance, 6), np.int64)
    yield noise.release(values.tolist(), bits=bits), noise.release_array(values.reshape(2, 3), bits=bits).tolist()
    yield noise.sigma2 if spend.pure else noise.scale


KINDS: list[Callable[[Random, SeededBits], Iterator[object]]] = [_selection, _threshold, _top, _search, _noise]


def _said(at: int) -> str:
    chance, kind = Random(f"mechanisms {at}"), KINDS[at % len(KINDS)]
    told = [kind.__name__]
    with plain.only(plain=True):  # a table of the noise that another test made has other draws
        try:
            told += map(repr, kind(chance, SeededBits(at)))
        except HubbubError as error:
            told.append(f"{type(error).__name__}: {error}")
    return "\n".join(told)


MECHANISMS = Kept("mechanisms", _said, COUNT)


@pytest.mark.parametrize("at", range(COUNT))
def test_what_mechanisms_make_is_as_recorded(at: int) -> None:
    MECHANISMS.check(at)


def test_the_recordings_hold_refusals_and_draws() -> None:
    told = "\n".join(MECHANISMS.all())
    for text in (
        "shows no group for certain",
        "no item would be shown",
        "whose tails are floats",
        "rounded down",
        "a sensitivity of 0",
        "not a sigma",
        "not a scale",
        "-inf",
    ):
        assert text in told, text
