"""Noise is calibrated in one place: its exact privacy, and that nothing else calibrates any."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hubbub.accounting import ZCDP, DiscreteLaplace as LaplaceEvent, cost
from hubbub.errors import InternalError
from hubbub.mechanisms import GaussianMechanism, GroupThreshold, LaplaceMechanism, recording
from hubbub.mechanisms.calibration import Spend, calibrated
from hubbub.mechanisms.groups import _laplace_threshold
from hubbub.noise import DiscreteGaussian, DiscreteLaplace
from seeded import SeededBits

SRC = Path(__file__).parents[2] / "src" / "hubbub"
AMOUNTS = [Fraction(1, 10), Fraction(7, 3), Fraction(1, 65536)]


@pytest.mark.parametrize("epsilon", AMOUNTS)
@pytest.mark.parametrize("l1", [1, 5, 2**40 + 1])
def test_a_pure_spend_is_the_exact_loss_of_the_law_that_is_drawn(epsilon: Fraction, l1: int) -> None:
    """The likelihood ratio of y under 0 and under a move of l1 is e^epsilon for every y beyond both, never more."""
    found = calibrated(spend=Spend(epsilon=epsilon), l1=l1)
    assert l1 / found.scale == epsilon == cost(found.event).epsilon
    assert found.event == LaplaceEvent(found.scale, sensitivity=l1)
    outputs = [-l1, -1, 0, l1 // 2, l1, 2 * l1]
    losses = [(abs(y - l1) - abs(y)) / found.scale for y in outputs]
    assert max(map(abs, losses)) == epsilon


@pytest.mark.parametrize("rho", AMOUNTS)
@pytest.mark.parametrize("squared", [1, 9, 25])
def test_a_rho_bounds_every_renyi_divergence_of_the_law_that_is_drawn(rho: Fraction, squared: int) -> None:
    """Exact sums over the integers: D_a(N(0) || N(x)) <= a rho for x^2 = squared; floats are good to 1e-12."""
    found = calibrated(spend=Spend(rho=rho), l2_squared=squared)
    assert found.event == ZCDP(rho)
    assert squared / (2 * found.sigma2) == rho
    if float(found.sigma2) > 1e4:
        return
    law, x = DiscreteGaussian.from_variance(found.sigma2), math.isqrt(squared)
    for order in (1.5, 2.0, 8.0):
        reach = 60 + int(40 * math.sqrt(float(found.sigma2))) + int(order * x)
        z = np.arange(-reach, reach + 1)
        logs = order * law.log_pmf(z) + (1 - order) * law.log_pmf(z - x)
        top = float(logs.max())
        divergence = (top + math.log(float(np.exp(logs - top).sum()))) / (order - 1)
        assert divergence <= order * float(rho) * (1 + 1e-9) + 1e-12


def test_the_noise_is_that_of_the_spend_and_so_is_the_event() -> None:
    """Sensitivity 6: scale 6 / epsilon; sigma^2 36 / 2 rho; the events say what is drawn."""
    pure = calibrated(spend=Spend(epsilon=Fraction(1, 3)), l1=6)
    assert (pure.scale, pure.event) == (18, LaplaceEvent(18, sensitivity=6))
    assert cost(pure.event).epsilon == Fraction(1, 3)
    rho = calibrated(spend=Spend(rho=Fraction(1, 3)), l2_squared=36)
    assert (rho.sigma2, rho.event) == (54, ZCDP(Fraction(1, 3)))


def test_rounding_may_only_add_noise_and_the_event_follows_the_noise() -> None:
    more = calibrated(spend=Spend(rho=Fraction(1, 3)), l2_squared=1, rounded=lambda v: Fraction(math.ceil(v)))
    assert more.sigma2 == 2
    assert more.event == ZCDP(Fraction(1, 4))
    for spend in (Spend(rho=Fraction(1)), Spend(epsilon=Fraction(1))):
        with pytest.raises(InternalError, match="rounded down"):
            calibrated(spend=spend, l1=1, l2_squared=1, rounded=lambda v: v * Fraction(99, 100))


@pytest.mark.parametrize("l1", [None, 0, -1, True, 1.0, Fraction(1)])
def test_the_sensitivity_that_is_needed_is_a_whole_number(l1: object) -> None:
    with pytest.raises(InternalError, match="sensitivity"):
        calibrated(spend=Spend(epsilon=Fraction(1)), l1=l1, l2_squared=1)  # type: ignore[arg-type]
    with pytest.raises(InternalError, match="sensitivity"):
        calibrated(spend=Spend(rho=Fraction(1)), l1=1, l2_squared=l1)  # type: ignore[arg-type]


def test_a_release_records_the_sensitivity_it_was_calibrated_to() -> None:
    for found in (
        calibrated(spend=Spend(epsilon=Fraction(1)), l1=3),
        calibrated(spend=Spend(rho=Fraction(1)), l2_squared=7),
    ):
        with recording() as records:
            one = found.release([5, -5], bits=SeededBits("one"))
            two = found.release_array(np.array([[5, -5]]), bits=SeededBits("one"))
        assert two.shape == (1, 2)
        assert tuple(two.ravel()) == one
        norm = "l1" if isinstance(found.law, DiscreteLaplace) else "l2_squared"
        told = [(r.sensitivity, r.distribution, r.norm) for r in records]
        assert told == [(found.sensitivity, found.law, norm)] * 2


def test_the_mechanisms_for_numbers_and_groups_take_their_noise_from_here() -> None:
    epsilon, rho = Spend(epsilon=Fraction(1, 3)), Spend(rho=Fraction(1, 3))
    assert LaplaceMechanism(sensitivity=5, epsilon="1/3").error() == calibrated(spend=epsilon, l1=5).law
    assert GaussianMechanism(squared_sensitivity=5, rho="1/3").error() == calibrated(spend=rho, l2_squared=5).law
    assert GroupThreshold(epsilon="1/3", delta="1e-6", groups=4).noise == calibrated(spend=epsilon, l1=4).law
    assert GroupThreshold(rho="1/3", delta="1e-6", groups=4).noise == calibrated(spend=rho, l2_squared=4).law


def test_no_room_above_the_mechanisms_makes_a_law_of_noise() -> None:
    """A law is made in `calibrated`, or read from a release that stands; whoever makes one calibrates by himself.

    The lesson of the service draws what it explains on numbers that are nobody's.
    """
    made = re.compile(r"\b(DiscreteLaplace|DiscreteGaussian|Geometric|Polya)(\.from_variance)?\(")
    rooms = ("tables", "sql", "synthesis", "session", "learning", "answer", "engines", "verbs", "ledger", "cli")
    rooms += ("service", "remote", "queries", "plots")
    files = (f for room in rooms for f in (SRC / room).rglob("*.py") if f.name != "steps.py")
    for file in files:
        code = "\n".join(line for line in file.read_text("utf-8").splitlines() if ">>>" not in line)
        assert not made.search(code), file
    assert made.search("law = DiscreteGaussian.from_variance(1)")


def test_the_amount_of_a_part_is_its_share() -> None:
    assert Spend(rho=Fraction(3), delta=Fraction(1, 10)).part(Fraction(1, 3)) == Spend(rho=Fraction(1))
    assert isinstance(calibrated(spend=Spend(epsilon=Fraction(1)).part(Fraction(1, 2)), l1=1).law, DiscreteLaplace)


@contextmanager
def _ends(seconds: float = 10.0) -> Iterator[None]:
    """Fails where a search goes on for so many seconds of a processor."""

    def fail(*_: object) -> None:
        pytest.fail(f"no end after {seconds} s of a processor")

    before = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize(
    "delta", [Fraction(1, 10**6), Fraction(3, 10), Fraction(1, 2), Fraction(6, 10), Fraction(99, 100)]
)
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(7, 2)])
def test_a_threshold_is_the_least_that_its_tail_allows(scale: Fraction, delta: Fraction) -> None:
    """A delta of a half and more, too, where the threshold is no longer above one."""
    q = math.exp(-1 / scale)

    def tail(z: int) -> float:
        """P(Z >= z) of discrete Laplace noise."""
        return q**z / (1 + q) if z > 0 else 1 - q ** (1 - z) / (1 + q)

    with _ends():
        tau = _laplace_threshold(scale, delta)
    assert tail(tau - 1) <= delta < tail(tau - 2)
