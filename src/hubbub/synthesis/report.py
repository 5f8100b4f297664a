"""How good a synthetic table is, told from noisy answers only: nothing here looks at private rows again.

For each marginal, the expected total-variation distance between the synthetic and the real table is put together from
what is known after the release:

- e_j, noise on column j: 0.4 s per value that has mass, s the noise's standard deviation as a share of the rows, and
  half the distance that the fit keeps from the noisy column;
- r_ab, what the model leaves out of a pair that was measured: ||y - mu||_1 / 2 over parts, less the noise's own 0.4 s
  per part; for a pair that was not, 0.7 of what the planner assumes that the method leaves out;
- f, the fine structure within parts, which nobody measured: real rows scatter about any smooth table, by
  0.4 sum sqrt(p / n) over its cells (0.5 where only the synthetic rows say which), in so far as there are more cells
  than parts.

One column: e_j. A pair: (e_a + e_b) / 2 + r_ab + f. A triple: half of its e's, all of its r's, f. These are estimates,
not bounds; the interval is a factor of three to either side, which held for nine pairs and triples in ten, and eight
single columns in ten, on Adult.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError, what_was_given
from hubbub.synthesis.domain import Domain
from hubbub.synthesis.planner import BIAS, SynthesisPlan
from hubbub.synthesis.setting import Fitted, Setting

__all__ = ["SynthesisReport", "plot_distances"]

_HALF = 0.4  # E|Z| / 2 of a standard normal variable
_MOST_TRIPLES = 1000
_SPREAD = 3


@dataclass(frozen=True)
class SynthesisReport:
    """Predicted errors of a synthetic table, by marginal.

    setting and fitted are None where nothing but the number of rows was bought (method "uniform").
    """

    domain: Domain
    plan: SynthesisPlan
    rows: int
    warnings: tuple[str, ...] = ()
    setting: Setting | None = field(default=None, repr=False)
    fitted: Fitted | None = field(default=None, repr=False)
    codes: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64), repr=False)

    def distances(self, ways: int) -> Mapping[tuple[str, ...], float]:
        """The predicted total-variation distance of each marginal of `ways` columns (1, 2 or 3).

        Of more than a thousand triples, a thousand evenly spread ones. Raises ParameterError for other `ways`.
        """
        if ways not in (1, 2, 3):
            raise ParameterError(
                f"ways={what_was_given(ways)} was asked of a report; it predicts 1-, 2- and 3-way marginals."
            )
        places = list(combinations(range(len(self.domain)), ways))
        if len(places) > _MOST_TRIPLES:
            places = [places[i * len(places) // _MOST_TRIPLES] for i in range(_MOST_TRIPLES)]
        return {tuple(self.domain.columns[a] for a in c): self._distance(c) for c in places}

    def mean(self, ways: int) -> float:
        """The mean of `distances(ways)`; 0 where there are fewer columns."""
        distances = list(self.distances(ways).values())
        return sum(distances) / len(distances) if distances else 0.0

    def interval(self, columns: tuple[str, ...]) -> tuple[float, float]:
        """A factor of three to either side of one marginal's predicted distance, within [0, 1]."""
        middle = self._distance(tuple(self.domain.place(c) for c in self.domain.marginal(columns)))
        return middle / _SPREAD, min(1.0, _SPREAD * middle)

    def worst(self, ways: int, *, most: int = 20) -> list[tuple[tuple[str, ...], float]]:
        """The marginals that are predicted to be off by most, and by how much."""
        return sorted(self.distances(ways).items(), key=lambda item: -item[1])[:most]

    def plot(self, ways: int = 2, *, most: int = 20, ax: Any = None) -> Any:
        """The marginals predicted worst, with their intervals (needs matplotlib); the Axes."""
        return plot_distances(dict(self.worst(ways, most=most)), ways=ways, ax=ax)

    def __str__(self) -> str:
        lines = [str(self.plan.reason), *self.warnings, f"{self.rows} rows; predicted distance from the real table:"]
        for ways in (1, 2, 3)[: len(self.domain)]:
            distances = self.distances(ways)
            worst = max(distances, key=lambda c: distances[c])
            middle = self.mean(ways)
            lines.append(
                f"  {ways}-way marginals: mean {middle:.4f}; worst {distances[worst]:.4f} ({' x '.join(worst)})"
            )
        return "\n".join(lines)

    def _distance(self, places: tuple[int, ...]) -> float:
        if self.setting is None or self.fitted is None:
            return self.plan.errors["uniform"][len(places) - 1]
        noise = [self._single(a) for a in places]
        if len(places) == 1:
            return min(1.0, noise[0])
        assumed = 0.7 * BIAS[self.plan.method][1]
        left = [self._residual.get(pair, assumed) for pair in combinations(places, 2)]
        return min(1.0, sum(noise) / 2 + sum(left) + self._fine(places))

    def _single(self, place: int) -> float:
        assert self.setting is not None
        assert self.fitted is not None
        kept = np.abs(self.fitted.model.marginal((place,)) - self.setting.base[place]).sum() / 4
        return _HALF * self.setting.deviations[place] * int(np.count_nonzero(self.setting.singles[place])) + float(kept)

    @cached_property
    def _residual(self) -> dict[tuple[int, int], float]:
        """r_ab of every pair that was measured."""
        assert self.setting is not None
        assert self.fitted is not None
        scale, gaps = max(self.setting.total, 1.0), dict[tuple[int, int], float]()
        for m in self.fitted.bought:
            if len(m.columns) != 2:
                continue
            a, b = self.setting.places(m.columns)
            gap = float(np.abs(m.counts / scale - self.fitted.model.marginal((a, b))).sum()) / 2
            # Where the model follows the answer, part of the noise is in both; what is left of it still counts.
            noise = _HALF * m.counts.size * math.sqrt(m.variance) / scale
            gaps[a, b] = max(gap - noise, 0.1 * noise)
        return gaps

    def _fine(self, places: tuple[int, ...]) -> float:
        assert self.setting is not None
        names = [self.domain.columns[a] for a in places]
        fine, coarse = math.prod(self.domain.sizes[a] for a in places), math.prod(self.setting.sizes[a] for a in places)
        if fine <= coarse or not self.rows:
            return 0.0
        counts = np.unique(self.domain.index(self.codes, names), return_counts=True)[1]
        return 0.5 * float(np.sqrt(counts).sum()) / self.rows * (1 - coarse / fine)


def plot_distances(predicted: Mapping[tuple[str, ...], float], *, ways: int, ax: Any = None) -> Any:
    """Predicted distances of marginals, with their intervals (needs matplotlib); the Axes."""
    from hubbub.plots import intervals

    return intervals(
        [" x ".join(columns) for columns in predicted],
        list(predicted.values()),
        [value / _SPREAD for value in predicted.values()],
        [min(1.0, _SPREAD * value) for value in predicted.values()],
        title=f"Predicted distance of {ways}-way marginals",
        ylabel="total-variation distance",
        ax=ax,
    )
