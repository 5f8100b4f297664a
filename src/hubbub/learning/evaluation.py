"""How good a fitted model is on other rows of a private table: a noisy histogram of scores, or noisy sums of errors.

The table is said to be disjoint from that of the fit; nothing is concluded from it. Where the same people stand in
both, the same budget pays for both, and the figures are too good.

**Two classes.** A row adds 1 to one of 2 x 22 counts, by its class and by its score, a whole number
(`Estimator._scoring`), in steps of 1/2 from -5 to 5. So it moves the counts by 1 in l1 and l2; R rows by R; under
replace by 2 R, and sqrt 2 R. Accuracy is a sum of these counts over their total, since 0 is a step; the area under the
curve and the calibration are those of the histogram. **More classes.** The counts are those of predicted and true
class.

**Numbers.** A row adds (1, y, y^2, e^2) in 512ths, y the target and e the error in steps of a 1024th of the range, each
of at most 512 in whole numbers: 4 x 512 in l1, 2 x 512 in l2.

Intervals are of the noise alone, by drawing it again upon what was released: they say how far the figures are from
those of these rows, not how far these rows are from others.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub.learning.descent import Floats, whole_variance, within_bits
from hubbub.learning.exact import Coded
from hubbub.learning.features import Categories, ratio
from hubbub.learning.model import LEVELS, Classes, Estimator, Fit, Problem, Range
from hubbub.mechanisms.calibration import Calibrated, Spend, calibrated
from hubbub.noise import Bits
from hubbub.noise.public import public_generator

__all__ = ["Evaluation", "Evaluator"]

_STEP: Final = 1 << 23  # of scores, in multiples of 2^-24
_ENDS: Final = 10
_EDGES: Final = tuple(k * _STEP for k in range(-_ENDS, _ENDS + 1))
_BINS: Final = len(_EDGES) + 1
_HALF: Final = LEVELS // 2
_REPLAYS: Final = 400


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on a table. Figures that do not apply are None; `intervals` holds 95 % intervals of the
    noise.

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
            l1=4 * _HALF * problem.reach,
            l2_squared=problem.moved(4 * _HALF**2),
            rounded=whole_variance,
        )

    def steps(self, rows: Coded, *, bits: Bits | None = None) -> Fit:
        """Draw the counts or sums. Yields the event before it is drawn; returns what is kept."""
        noise = self.noise
        yield noise.event
        noisy = noise.release(self._exact(rows), bits=bits)
        return {"format": "evaluation 1", "noisy": list(noisy), "deviation": math.sqrt(noise.law.variance)}

    def _exact(self, rows: Coded) -> list[int]:
        """The counts or sums, before noise."""
        scoring = self.model._scoring()
        if not self._classes:
            return rows.errors(scoring, _HALF)
        return rows.by_best(scoring) if self._classes > 2 else rows.by_score(scoring, _STEP, _ENDS)

    def read(self, kept: Mapping[str, Any]) -> Evaluation:
        """What the noisy counts or sums say."""
        noisy, sigma = np.array(kept["noisy"], np.float64), float(kept["deviation"])
        figures = self._of_numbers if not self._classes else self._of_two if self._classes == 2 else self._of_many
        values = figures(noisy)
        intervals = _replayed(figures, noisy, sigma)
        rows = float(noisy[0]) / _HALF if not self._classes else float(noisy.sum())
        more: dict[str, Any] = dict(values)
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

    def _of_two(self, noisy: Floats) -> dict[str, float]:
        """Accuracy and the area under the curve of a histogram of two classes."""
        negative, positive = np.maximum(noisy.reshape(2, _BINS), 0)
        total = max(float(negative.sum() + positive.sum()), 1.0)
        first = _EDGES.index(0) + 1
        right = float(negative[:first].sum() + positive[first:].sum())
        below = np.cumsum(negative) - negative / 2
        pairs = max(float(negative.sum() * positive.sum()), 1.0)
        return {"accuracy": right / total, "auc": float((positive * below).sum()) / pairs}

    def _of_many(self, noisy: Floats) -> dict[str, float]:
        table = np.maximum(noisy.reshape(self._classes, self._classes), 0)
        return {"accuracy": float(np.trace(table)) / max(float(table.sum()), 1.0)}

    def _of_numbers(self, noisy: Floats) -> dict[str, float]:
        size = max(float(noisy[0]) / _HALF, 1.0)
        mean, square = noisy[1] / size, noisy[2] * _HALF / size
        error = max(float(noisy[3]) * 2 * LEVELS / size, 0.0)
        low, high = (float(ratio(end)) for end in self.model.kept_["range"])
        spread = max(float(square - mean**2), 1.0)
        return {"r2": 1 - error / spread, "rmse": math.sqrt(error) / LEVELS * (high - low)}


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


def _replayed(
    figures: Callable[[Floats], dict[str, float]], noisy: Floats, sigma: float
) -> dict[str, tuple[float, float]]:
    """Intervals of 95 % by drawing the noise again; its randomness is a function of what was released."""
    draws = public_generator(noisy.tobytes()).normal(0, sigma, (_REPLAYS, noisy.size))
    each = [figures(noisy + draw) for draw in draws]
    intervals: dict[str, tuple[float, float]] = {}
    for name, value in figures(noisy).items():
        reach = 1.96 * float(np.std([e[name] for e in each]))
        intervals[name] = value - reach, value + reach
    return intervals


def _calibration(table: Floats, sigma: float, positive: int) -> tuple[tuple[float, float, float], ...]:
    """Of each step of scores with clearly more rows than noise: mean predicted probability, observed share, rows."""
    middles = np.array([_EDGES[0] - (1 << 22), *(e + (1 << 22) for e in _EDGES)]) / (1 << 24)
    predicted = 1 / (1 + np.exp(-middles if positive == 1 else middles))
    rows = table.sum(axis=0)
    shares = table[positive] / np.maximum(rows, 1e-9)
    lines = zip(predicted.tolist(), shares.tolist(), rows.tolist(), strict=True)
    return tuple(line for line in lines if line[2] > 4 * sigma)
