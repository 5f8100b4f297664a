"""How far a synthetic table is from the noisy marginals that it was made from. Free: no private row is looked at.

For a marginal with noisy shares q and the synthetic table's shares p over the same cells, the distance is
sum |p - q| / 2, at least as large as it would be without noise only on average: independent noise of standard deviation
s per cell moves it by about 0.4 s for each cell. A distance of the size of its noise says that the table follows the
answer as closely as the answer is known.

A pair that was not measured is in the table only as far as others imply it, by a column in common or not at all: its
relation was not kept on purpose, and a true one may be missing. So is one that was measured and then left out of the
model, because noise would explain it or the model would grow too large. What that means for a column that somebody
wants to predict, `Utility.about` says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hubbub.synthesis.report import SynthesisReport

__all__ = ["Followed", "Utility", "utility_of"]

_HALF = 0.4  # E|Z| / 2 of a standard normal variable
_SHOWN = 8


@dataclass(frozen=True)
class Followed:
    """A marginal that was measured. distance: from its noisy shares, in total variation. noise: that of the shares.
    used: whether the table's model was fitted to it.
    """

    columns: tuple[str, ...]
    distance: float
    noise: float
    used: bool = True


@dataclass(frozen=True)
class Utility:
    """What a synthetic table keeps of its own noisy marginals.

    columns: all of them. followed: the marginals that were measured, single columns among them, and how closely each
    is followed.
    """

    columns: tuple[str, ...]
    followed: tuple[Followed, ...]

    @property
    def not_kept(self) -> list[tuple[str, str]]:
        """The pairs of columns that no measurement holds together."""
        together = {pair for one in self.followed for pair in combinations(sorted(one.columns), 2)}
        return [pair for pair in combinations(self.columns, 2) if (min(pair), max(pair)) not in together]

    def kept_of(self, target: str) -> list[str]:
        """The columns whose relation to this one the table's model was fitted to."""
        together = {name for one in self.followed if one.used and target in one.columns for name in one.columns}
        return [name for name in self.columns if name in together and name != target]

    def about(self, target: str) -> str:
        """What of a column's relations to the others was kept, as a sentence.

        >>> Utility(("age", "ill"), (Followed(("ill",), 0.01, 0.02),)).about("ill")
        'No relation of ill to another column was kept: a model that learns ill from this table learns nothing of it.'
        """
        kept = self.kept_of(target)
        if not kept:
            return (
                f"No relation of {target} to another column was kept: a model that learns {target} from this table "
                "learns nothing of it."
            )
        lost = [name for name in self.columns if name not in kept and name != target]
        rest = f"; those to {', '.join(lost)} as far as these imply them" if lost else ""
        return f"Relations of {target} that were kept: to {', '.join(kept)}{rest}."

    def to_dict(self) -> dict[str, list[Any]]:
        """The measured marginals as lists by column: `marginal`, `distance`, `noise`."""
        return {
            "marginal": [" x ".join(one.columns) for one in self.followed],
            "distance": [one.distance for one in self.followed],
            "noise": [one.noise for one in self.followed],
        }

    def __str__(self) -> str:
        worst = sorted(self.followed, key=lambda one: one.noise - one.distance)[:_SHOWN]
        lines = ["distance from the noisy marginals that it was made from (in brackets: that of their noise alone):"]
        lines += [f"  {' x '.join(one.columns)}: {one.distance:.4f} ({one.noise:.4f})" for one in worst]
        if not worst:
            lines = ["no marginal was measured: the table knows nothing but how many rows there are."]
        missing = self.not_kept
        if missing:
            named = ", ".join(" x ".join(pair) for pair in missing[:_SHOWN])
            more = f", and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
            lines.append(f"relations that were not measured, and may be missing: {named}{more}")
        return "\n".join(lines)

    def to_wire(self) -> list[list[Any]]:
        """What is stored with the table."""
        return [[list(one.columns), round(one.distance, 6), round(one.noise, 6), one.used] for one in self.followed]

    @classmethod
    def from_wire(cls, columns: Sequence[str], stored: Sequence[Sequence[Any]]) -> Utility:
        """What `to_wire` stored."""
        return cls(tuple(columns), tuple(Followed(tuple(c), float(d), float(n), *used) for c, d, n, *used in stored))


def utility_of(report: SynthesisReport) -> Utility:
    """The synthetic codes of a report against every noisy marginal that was bought for them.

    Post-processing of what was released: single columns over values, the others over the parts that they were measured
    on.
    """
    columns, setting, fitted = report.domain.columns, report.setting, report.fitted
    if setting is None or fitted is None:
        return Utility(columns, ())
    codes, rows = np.asarray(report.codes), max(1, len(report.codes))
    singles = [
        _followed((name,), np.bincount(codes[:, j], minlength=len(share)) / rows, np.asarray(share), deviation)
        for j, (name, share, deviation) in enumerate(zip(columns, setting.singles, setting.deviations, strict=True))
    ]
    scale = max(setting.total, 1.0)
    parts: Mapping[str, Any] = setting.parts
    used, joint = {tuple(sorted(m.columns)) for m in fitted.used}, []
    for measured in fitted.bought:
        where = [parts[name][codes[:, setting.places((name,))[0]]] for name in measured.columns]
        table = np.zeros(measured.counts.shape)
        np.add.at(table, tuple(where), 1 / rows)
        one = _followed(measured.columns, table, measured.counts / scale, math.sqrt(measured.variance) / scale)
        joint.append(replace(one, used=tuple(sorted(one.columns)) in used))
    return Utility(columns, tuple(singles + joint))


def _followed(columns: tuple[str, ...], table: Any, noisy: Any, deviation: float) -> Followed:
    return Followed(columns, float(np.abs(table - noisy).sum()) / 2, _HALF * deviation * noisy.size)
