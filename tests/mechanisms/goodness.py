"""Whether draws come from a law that is known exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
from scipy.stats import chi2

FALSE_ALARM = 1e-9


def chi_square_fits(
    draws: Sequence[Hashable], outputs: Iterable[Hashable], log_prob: Callable[[Hashable], float]
) -> bool:
    """Pearson's test over the outputs expected at least 5 times, all others lumped; false alarm 1e-9."""
    counts, n = Counter(draws), len(draws)
    outputs = list(outputs)
    expected = n * np.exp([log_prob(o) for o in outputs])
    seen = np.array([counts[o] for o in outputs], dtype=float)
    often = expected >= 5
    statistic = float(((seen[often] - expected[often]) ** 2 / expected[often]).sum())
    rest = n - float(expected[often].sum())
    if rest >= 5:
        statistic += (n - float(seen[often].sum()) - rest) ** 2 / rest
    return statistic <= float(chi2.isf(FALSE_ALARM, int(often.sum())))
