"""A chi-square test of draws against a law, shared by the tests of this room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

FALSE_ALARM = 1e-9


def _edges(law: Any) -> np.ndarray:
    """Upper ends of bins: single integers where they hold enough mass, equal shares where they do not."""
    shares = [law.quantile(p) for p in np.linspace(0.0005, 0.9995, 1500)]
    tails = [law.quantile(p) for p in (1e-6, 1e-5, 1e-4, 1 - 1e-4, 1 - 1e-5, 1 - 1e-6)]
    return np.unique(np.array([*shares, *tails]))


def p_value(draws: np.ndarray, law: Any) -> float:
    """The chi-square p-value of the draws under the law, over bins of expected count at least 3."""
    from scipy.stats import chi2

    edges = _edges(law)
    cdf = np.concatenate([[0.0], law.cdf(edges), [1.0]])
    tail = np.concatenate([[1.0], law.tail(edges), [0.0]])
    # Differences in the smaller tail, so that outer bins keep their relative accuracy.
    masses = np.where(cdf[:-1] < 0.5, np.diff(cdf), -np.diff(tail))
    counts = np.bincount(np.searchsorted(edges, draws, "left"), minlength=edges.size + 1)
    expected = masses * draws.size
    kept = expected >= 3
    rest = draws.size - counts[kept].sum(), draws.size - expected[kept].sum()
    statistic = float((((counts - expected) ** 2)[kept] / expected[kept]).sum())
    bins = int(kept.sum())
    if rest[1] > 3:
        statistic += (rest[0] - rest[1]) ** 2 / rest[1]
    else:
        assert rest[0] <= 60  # a Poisson count of mean 3 exceeds 60 with probability below 1e-40
        bins -= 1
    return float(chi2.sf(statistic, bins)) if bins > 0 else 1.0


@pytest.fixture
def fits() -> Callable[[np.ndarray, Any], None]:
    """Assert that draws follow a law; a right sampler fails with probability 1e-9 for a random bit source."""

    def check(draws: np.ndarray, law: Any) -> None:
        p = p_value(draws, law)
        assert p >= FALSE_ALARM, (p, law)

    return check
