"""How good a fitted model is on other rows of a private table: a noisy histogram of scores, or noisy sums of errors.

The table is said to be disjoint from that of the fit; nothing is concluded from it. Where the same people stand in
both, the same budget pays for both, and the figures are too good.

**Two classes.** A row adds 1 to one of 2 x 22 counts, by its class and by its score, a whole number
(`Estimator._scoring`), in steps of 1/2 from -5 to 5. So it moves the counts by 1 in l1 and l2; R rows by R; under
replace by 2 R, and sqrt 2 R. Accuracy is a sum of these counts over their total, since 0 is a step; the area under the
curve and the calibration are those of the histogram. **More classes.** The counts are those of predicted and true
class.

**Numbers.** A row adds 2^20 (1, y, y^2, e^2), y the target in halves of the range from its middle and e the error in
ranges, both in steps of a 1024th of the range: whole numbers of at most 2^20, so 4 x 2^20 in l1, 2 x 2^20 in l2.

**Intervals** are of the noise alone: they say how far the figures are from those of these rows, not how far these rows
are from others. Every figure t is a quotient, u = t v of exact sums: no noisy count is cut at 0, for that moves sums
upwards and figures towards those of chance. The interval holds each t at which noise explains u' - t v' (Fieller 1954,
"Some problems in interval estimation"), whose variance is a polynomial in t. For accuracy, K of C counts being right,
it is s^2 (K - 2 K t + C t^2). For the area, u is a sum over pairs of counts, p' W q', and v = p' 1 1 q'; with M = W - t
1 1 the noise is x M q + p M y + x M y, x and y that of p and q: s^2 (|M q'|^2 + |M p'|^2) less s^4 |M|^2 is without
bias for its variance. The law lies between normal and Laplace, so deviations are counted 1.96 times, or ln 20 / sqrt 2
= 2.12 times where noise is Laplace. Noise on counts is whole: half a row is added at either end, which hardly shows
unless noise is mostly 0 (at epsilon 5.5 intervals held .8 without it). Where v' itself may be noise, all values are
left, and an error is said to be as large as it can be, R squared to be 0: that of the mean alone.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final, TypeAlias

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learning.descent import Floats, whole_variance, within_bits
from hubbub.learning.exact import Coded
from hubbub.learning.features import Categories, ratio
from hubbub.learning.model import LEVELS, Classes, Estimator, Fit, Problem, Range
from hubbub.mechanisms.calibration import Calibrated, Spend, calibrated
from hubbub.noise import Bits

__all__ = ["Evaluation", "Evaluator"]

_Told: TypeAlias = tuple[float, tuple[float, float]]
"""A figure, and its interval."""

_STEP: Final = 1 << 23  # of scores, in multiples of 2^-24
_ENDS: Final = 10
_EDGES: Final = tuple(k * _STEP for k in range(-_ENDS, _ENDS + 1))
_BINS: Final = len(_EDGES) + 1
_HALF: Final = LEVELS // 2
_UNIT: Final = 4 * _HALF**2
"""What a row adds to the number of rows beside sums of errors."""
_FORMATS: Final = {"evaluation 1": _HALF, "evaluation 2": _UNIT}
"""What it added by the form of what was stored: squares in 512ths were rounded down, row by row."""
_NORMAL: Final = NormalDist().inv_cdf(0.975)
_LAPLACE: Final = math.log(20) / math.sqrt(2)


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on a table. Figures that do not apply are None; `intervals` holds 95 % intervals of the
    noise: that of `r2` begins at minus infinity where it hides how far the target spreads, and `r2` is 0 then.

    rows: how many there are, with noise. accuracy; auc: of the last class of two, or the one called positive.
    calibration: for each step of scores with rows, (mean predicted probability, share of that class, rows). confusion:
    rows by true and predicted class, for more than two. r2, rmse: of a number.
    """

    rows: float
    accuracy: float | None = None
    auc: float | None = None
    r2: float | None = None
    rmse: float | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    calibration: tuple[tuple[float, float, float], ...] = field(default=(), repr=False)
    confusion: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)
    cost: Fraction = Fraction(0)
    charged: bool = False
    charge_id: str = ""

    def __str__(self) -> str:
        lines = [f"about {self.rows:,.0f} rows"]
        for name in ("accuracy", "auc", "r2", "rmse"):
            value = getattr(self, name)
            if value is not None:
                low, high = self.intervals[name]
                lines.append(f"{name} {value:.4g} (95 % of the noise: {low:.4g} to {high:.4g})")
        return "\n".join(lines)

    def plot(self, *, ax: Any = None) -> Any:
        """Observed shares by predicted probability (needs matplotlib); returns the Axes."""
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1] if ax is None else ax
        axes.plot([0, 1], [0, 1], linewidth=0.5)
        axes.plot([c[0] for c in self.calibration], [c[1] for c in self.calibration], "o-")
        axes.set_xlabel("predicted probability")
        axes.set_ylabel("share of rows")
        return axes


@dataclass(frozen=True, eq=False)
class Evaluator:
    """A fitted model, to be evaluated on a table. The parameters are those of `Problem`.

    Raises ParameterError for a model that was not fitted, or that predicts nothing.
    """

    model: Estimator
    spend: Spend
    rows_per_unit: int = 1
    neighbours: str = "add_remove"

    def __post_init__(self) -> None:
        if self.model._fitted().kept_["target"] is None:
            raise ParameterError(f"a {type(self.model).__name__} predicts no column, so it cannot be evaluated.")
        self._check_outputs()
        self.model._check_positive(self.problem.target)
        within_bits(self.noise)

    def _check_outputs(self) -> None:
        """A model may come as text, from anybody: what it adds for each code is looked at, and it is asked of a value
        and a NULL of each type of column, before any row is. Its scores are as many as its classes say and exact in 64
        bits, or that one row fails where another does not would be an answer; and so would that any row fails, of a
        table that may have none.

        Raises ParameterError where it has not.
        """
        try:
            outputs = self._classes if self._classes > 2 else 1
            fits = isinstance(self.model.kept_["target"], str) and self._classes != 1
            fits = fits and self.model._scoring().fits(self.model.design_, outputs)
            for rows in _of_each_type(self.problem) if fits else ():
                _ = self._exact(rows)
        except (LookupError, ValueError, TypeError, ArithmeticError, AttributeError):
            fits = False
        if not fits:
            raise ParameterError(
                f"this {type(self.model).__name__} does not fit its own columns and classes: it was not fitted by this "
                "version of hubbub. Nothing was charged."
            )

    @property
    def problem(self) -> Problem:
        """Which rows are read, and how."""
        kept = self.model.kept_
        target: Classes | Range
        if kept["classes"] is not None:
            values = tuple(kept["classes"])
            target = Classes(kept["target"], values, Categories(values, kept["other"]))
        else:
            target = Range(kept["target"], *map(Fraction, kept["range"]))
        design = self.model.design_
        return Problem(self.model, design, target, None, self.spend, self.rows_per_unit, self.neighbours)

    @property
    def key(self) -> str:
        """A text that is equal for equal questions."""
        model = hashlib.sha256(self.model.to_json().encode()).hexdigest()
        return json.dumps(["evaluation 1", model, str(self.spend), self.rows_per_unit, self.neighbours])

    @property
    def _classes(self) -> int:
        """How many there are; 0 for a number."""
        return len(self.model.kept_["classes"] or ())

    @property
    def noise(self) -> Calibrated:
        """The noise on every count or sum."""
        problem = self.problem
        if self._classes:
            return calibrated(spend=self.spend, l1=problem.reach, l2_squared=problem.moved(1, acute=True))
        return calibrated(
            spend=self.spend,
            l1=4 * _UNIT * problem.reach,
            l2_squared=problem.moved(4 * _UNIT**2),
            rounded=whole_variance,
        )

    def steps(self, rows: Coded, *, bits: Bits | None = None) -> Fit:
        """Draw the counts or sums. Yields the event before it is drawn; returns what is kept."""
        noise = self.noise
        yield noise.event
        noisy = noise.release(self._exact(rows), bits=bits)
        # Of classes it is the same as before there was another.
        kind = "evaluation 1" if self._classes else "evaluation 2"
        return {"format": kind, "noisy": list(noisy), "deviation": math.sqrt(noise.law.variance)}

    def _exact(self, rows: Coded) -> list[int]:
        """The counts or sums, before noise."""
        scoring = self.model._scoring()
        if not self._classes:
            return rows.errors(scoring, _HALF)
        return rows.by_best(scoring) if self._classes > 2 else rows.by_score(scoring, _STEP, _ENDS)

    def read(self, kept: Mapping[str, Any]) -> Evaluation:
        """What the noisy counts or sums say."""
        noisy, sigma = np.array(kept["noisy"], np.float64), float(kept["deviation"])
        if not self._classes:
            noisy, sigma = noisy / _FORMATS[kept["format"]], sigma / _FORMATS[kept["format"]]
        figures = self._of_numbers if not self._classes else self._of_two if self._classes == 2 else self._of_many
        quotients = figures(noisy, sigma, _LAPLACE if self.spend.pure else _NORMAL)
        rows = float(noisy[0]) if not self._classes else float(noisy.sum())
        more: dict[str, Any] = {name: value for name, (value, _) in quotients.items()}
        intervals = {name: ends for name, (_, ends) in quotients.items()}
        if self._classes == 2:
            more["calibration"] = _calibration(np.maximum(noisy.reshape(2, _BINS), 0), sigma, self._positive)
        if self._classes > 2:
            names = [str(c) for c in self.model.kept_["classes"]]
            table = noisy.reshape(self._classes, self._classes).tolist()
            more["confusion"] = {n: dict(zip(names, line, strict=True)) for n, line in zip(names, table, strict=True)}
        return Evaluation(rows, intervals=intervals, **more)

    @property
    def _positive(self) -> int:
        positive = getattr(self.model, "positive", None)
        return 1 if positive is None else self.model.kept_["classes"].index(positive)

    def _of_two(self, noisy: Floats, sigma: float, deviations: float) -> dict[str, _Told]:
        """Accuracy and the area under the curve of a histogram of two classes."""
        negative, positive = noisy.reshape(2, _BINS)
        first = _EDGES.index(0) + 1
        right = float(negative[:first].sum() + positive[first:].sum())
        accuracy = _accuracy(right, float(noisy.sum()), _BINS, noisy.size, sigma, deviations)
        return {"accuracy": accuracy, "auc": _area(negative, positive, sigma, deviations)}

    def _of_many(self, noisy: Floats, sigma: float, deviations: float) -> dict[str, _Told]:
        right = float(np.trace(noisy.reshape(self._classes, self._classes)))
        return {"accuracy": _accuracy(right, float(noisy.sum()), self._classes, noisy.size, sigma, deviations)}

    def _of_numbers(self, noisy: Floats, sigma: float, deviations: float) -> dict[str, _Told]:
        rows, total, squares, errors = map(float, noisy)
        size = max(rows, 1.0)
        mean = min(max(total / size, -1.0), 1.0)
        # The square of a noisy sum has that of its noise too many. A mean of rows that may be noise says nothing.
        spread = squares - mean * total + sigma**2 / size if rows > 3 * sigma else 0.0
        moved = (1 + 4 * mean**2 + mean**4) * sigma**2
        low, high = (float(ratio(end)) for end in self.model.kept_["range"])
        # What is not known is the worst there can be, and of R squared what the mean alone has.
        mse, mse_ends = _quotient(errors, rows, (sigma**2, 0.0, sigma**2), deviations, (0.0, 1.0), hidden=1.0)
        left, left_ends = _quotient(
            4 * errors, spread, (16 * sigma**2, 0.0, moved), deviations, (0.0, math.inf), hidden=1.0
        )
        rmse, *rmse_ends = (math.sqrt(end) * (high - low) for end in (mse, *mse_ends))
        return {
            "r2": (1 - left, (1 - left_ends[1], 1 - left_ends[0])),
            "rmse": (rmse, (rmse_ends[0], rmse_ends[1])),
        }


def _of_each_type(problem: Problem) -> Iterator[Coded]:
    """What becomes of a row of values, and of one of NULLs, of each type in which columns come."""
    import pyarrow as pa

    day = dt.date(2000, 1, 1)
    for value, kind in (
        *((0, kind) for kind in (pa.int64(), pa.int32(), pa.float64(), pa.decimal128(38, 0))),
        *(("", kind) for kind in (pa.string(), pa.large_string())),
        (False, pa.bool_()),
        (day, pa.date32()),
        (dt.datetime(day.year, day.month, day.day), pa.timestamp("us")),
    ):
        yield problem.encode(pa.table(dict.fromkeys(problem.columns, pa.array([value, None], kind))), None)


def _quotient(
    u: float,
    v: float,
    variance: tuple[float, float, float],
    deviations: float,
    within: tuple[float, float],
    *,
    grain: float = 0.0,
    hidden: float | None = None,
) -> _Told:
    """u / v of noisy sums, and each t at which u - t v is at most so many deviations of its noise.

    variance: the coefficients of that of u - t v in t. within: where the exact quotient lies. grain: what half a step
    of noise moves it. hidden: what is said instead where all values are left.

    >>> value, (low, high) = _quotient(50.0, 100.0, (1.0, 0.0, 1.0), 2.0, (0.0, 1.0))
    >>> value, round(low, 4), round(high, 4)
    (0.5, 0.4778, 0.5226)
    """
    least, most = within
    value = min(max(u / v, least), most) if v > 0 else least
    c = [deviations**2 * coefficient for coefficient in variance]
    a, half, rest = v * v - c[2], u * v + c[1] / 2, u * u - c[0]
    if v <= 0 or a <= 0:
        return value if hidden is None else hidden, within
    root = math.sqrt(max(half * half - a * rest, 0.0))
    low, high = (half - root) / a - grain, (half + root) / a + grain
    return value, (min(max(low, least), value), max(min(high, most), value))


def _accuracy(right: float, total: float, of_right: int, cells: int, sigma: float, deviations: float) -> _Told:
    """The share of the rows in the counts of what is right: so many of the counts."""
    variance = (of_right * sigma**2, -2 * of_right * sigma**2, cells * sigma**2)
    return _quotient(right, total, variance, deviations, (0.0, 1.0), grain=0.5 / max(total, 1.0))


def _area(negative: Floats, positive: Floats, sigma: float, deviations: float) -> _Told:
    """The share of the pairs of a row of either class in which the positive one has the higher score; ties are half."""
    below = np.tri(_BINS, _BINS, -1) + np.eye(_BINS) / 2
    many, few = float(negative.sum()), float(positive.sum())
    sides = [(below @ negative, many), (positive @ below, few)]
    known = [sum(float(m @ m) for m, _ in sides), sum(-2 * n * float(m.sum()) for m, n in sides)]
    known.append(sum(_BINS * n * n for _, n in sides))
    both = (float((below**2).sum()), -2 * float(below.sum()), float(_BINS**2))
    variance = [sigma**2 * k - sigma**4 * b for k, b in zip(known, both, strict=True)]
    # Three deviations of a class's rows: with fewer, their number may be noise.
    if min(many, few) <= 3 * math.sqrt(_BINS) * sigma:
        pairs = max(many, 1.0) * max(few, 1.0)
        return min(max(float(positive @ below @ negative) / pairs, 0.0), 1.0), (0.0, 1.0)
    ends = (variance[0], variance[1], variance[2])
    # A row of a class moves at most its share of the pairs.
    grain = 0.5 / many + 0.5 / few
    return _quotient(float(positive @ below @ negative), many * few, ends, deviations, (0.0, 1.0), grain=grain)


def _calibration(table: Floats, sigma: float, positive: int) -> tuple[tuple[float, float, float], ...]:
    """Of each step of scores with clearly more rows than noise: mean predicted probability, observed share, rows."""
    middles = np.array([_EDGES[0] - (1 << 22), *(e + (1 << 22) for e in _EDGES)]) / (1 << 24)
    predicted = 1 / (1 + np.exp(-middles if positive == 1 else middles))
    rows = table.sum(axis=0)
    shares = table[positive] / np.maximum(rows, 1e-9)
    lines = zip(predicted.tolist(), shares.tolist(), rows.tolist(), strict=True)
    return tuple(line for line in lines if line[2] > 4 * sigma)
