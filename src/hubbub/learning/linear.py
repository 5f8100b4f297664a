"""Linear regression: by private gradient descent, from noisy moments, or the mean alone where nothing more can be
learned.

The target is a number of a declared range, moved to [-1/2, 1/2] and rounded to steps of a 1024th.

**Descent.** The residual, prediction - target, is clamped to +-c, in whole numbers: one row moves the sum of (residual
x features) by at most c 2^20 sqrt N on the grid (`hubbub.learning.descent`). Unless c is said, the target's mean and
spread are bought first (`hubbub.learning.spread`): descent begins at the mean, and c is one standard deviation of the
target; two where kappa (below) is 10,000 or more, so that little is cut off. R squared at epsilon .1,
against a start in the middle and a cut at a quarter: hours .204 for .174, income as it was.

**Moments.** With z = (features, target), the sum of z z^T holds all that least squares asks. Noise is
put on the upper triangle once, of which one row moves the squared l2 norm by (|z|^4 + sum z_i^4) / 2 at most
(`hubbub.learning.exact.triangle_squared`, of the columns and the target, whose feature is within +-2^8); the matrix is
then made positive semidefinite, and a ridge of the size of its noise is added: post-processing.

**The mean.** One row moves the sum of targets, in 1024ths, by at most 512.

Unless it is said, the mean is chosen below kappa = 20, else descent: kappa = n sqrt(2 rho), n the number of rows,
public or bought. Moments take a single pass, which can be made where rows stay; on ten numbers of 442 rows descent was
better from kappa 87 to 668 (R squared .17 for .15, .34 for .32, when moments
still had the noise of the whole matrix).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting import Event
from hubbub.errors import ParameterError, what_was_given
from hubbub.learning.bases import either, turned
from hubbub.learning.descent import Floats, Plan, descend, even_noise, expected_excess, noise_of, plan_descent
from hubbub.learning.exact import SCALE, WEIGHT_ONE, Coded, on_grid, triangle_squared
from hubbub.learning.features import ONE, Design, Integers, Numbers, Scoring, ratio
from hubbub.learning.model import LEVELS, Estimator, Fit, Problem, Range
from hubbub.learning.spread import USUAL, Spread, bought_spread, share_of_spread
from hubbub.noise import Bits

__all__ = [
    "LinearRegression",
    "check_noise_of_numbers",
    "clamped_residual",
    "descended",
    "draw_numbers",
    "predicted_numbers",
]

_METHODS = ("auto", "descent", "moments", "mean")
_TOO_FEW = 20
_MANY = 10_000


def clamped_residual(scores: Integers, label: Integers, *, clamp: int = SCALE // 4) -> Integers:
    """Prediction - target of each row, within +-clamp: (1, n).

    >>> clamped_residual(np.array([[0, 1 << 40]]), np.array([512, 0])).tolist()
    [[0, 262144]]
    """
    target = (label - LEVELS // 2) * (SCALE // LEVELS)
    return np.asarray(np.clip((scores >> 4) - target, -clamp, clamp))


def descent_squared(problem: Problem, clamp: int, *, fine: bool = False) -> int:
    """The squared sensitivity of one step of descent."""
    return problem.moved(clamp**2 * turned(problem.design, fine=fine).norm2)


def _beside_target(problem: Problem) -> Design:
    """The columns, and the target as one more."""
    assert isinstance(problem.target, Range)
    target = Numbers(problem.target.low, problem.target.high, linear=True)
    return Design({**problem.design.columns, "": target})


def moments_squared(problem: Problem) -> int:
    """The squared sensitivity of the upper triangle of moments."""
    return problem.moved(triangle_squared(_beside_target(problem)), acute=True)


def mean_squared(problem: Problem) -> int:
    """The squared sensitivity of the sum of targets."""
    return problem.moved((LEVELS // 2) ** 2)


def _kappa(problem: Problem, n: float) -> float:
    return n / problem.rows_per_unit * math.sqrt(2 * float(problem.rho))


def _method(problem: Problem, n: float, method: str) -> str:
    kappa = _kappa(problem, n)
    if method != "auto":
        return method
    return "mean" if kappa < _TOO_FEW else "descent"


def _deviations(problem: Problem, n: float) -> int:
    """How many deviations of the target residuals may have."""
    return 2 if _kappa(problem, n) >= _MANY else 1


def _clamp(problem: Problem, n: float, clamp: float | None) -> int:
    """The cut of residuals, as it is expected where it is not said."""
    return Spread(0.0, USUAL).clamp(_deviations(problem, n)) if clamp is None else round(clamp * SCALE)


def _for_spread(problem: Problem, n: float, clamp: float | None) -> Fraction:
    """What is spent on the target's spread: nothing where the clamp is said."""
    return Fraction(0) if clamp is not None else problem.rho * share_of_spread(_kappa(problem, n))


def plan_numbers(problem: Problem, n: float, clamp: int, rho: Fraction) -> Plan:
    """How descent goes with about n rows: noise is as large as the clamp, so that half of it is twice as many rows."""
    return plan_descent(n / problem.rows_per_unit * (SCALE / (4 * clamp)), float(rho))


def predicted_numbers(problem: Problem, rows: int, method: str, clamp: float | None) -> tuple[int, float]:
    """How many passes, and the noise on a sum over rows in one of them, in rows."""
    match _method(problem, rows, method):
        case "mean":
            return 1, math.sqrt(noise_of(problem.rho, mean_squared(problem)).sigma2) / (LEVELS * problem.heaviest)
        case "moments":
            sigma = math.sqrt(noise_of(problem.rho, moments_squared(problem)).sigma2)
            return 1, sigma / (ONE**2 * problem.heaviest)
    reach, rho = _clamp(problem, rows, clamp), problem.rho - _for_spread(problem, rows, clamp)
    plan = plan_numbers(problem, rows, reach, rho)
    sigma = math.sqrt(even_noise(rho, plan.steps, descent_squared(problem, reach, fine=plan.fine)).sigma2)
    return plan.steps, sigma / (SCALE * ONE * problem.heaviest)


def check_noise_of_numbers(problem: Problem, rows: int, method: str, clamp: float | None) -> None:
    """Raises ParameterError where noise may not fit into 64 bits: with the cut that is bought, too, at its largest.

    Half as large a cut is as good as twice the rows, so there are twice as many steps at most, and a half, by which
    they are rounded: the noise on a sum is largest at the largest cut, but for less than one step, and for the three
    tenths more that `even_noise` asks about.
    """
    predicted_numbers(problem, rows, method, clamp)
    if clamp is None and _method(problem, rows, method) == "descent":
        rho = problem.rho - _for_spread(problem, rows, clamp)
        steps = plan_numbers(problem, rows, SCALE // 2, rho).steps + 1
        even_noise(rho, steps, descent_squared(problem, SCALE // 2, fine=True))


def excess_of_numbers(problem: Problem, rows: int, method: str, clamp: float | None) -> float | None:
    """How far half the squared error of a row, as a share of the squared range, is expected above the best: of descent
    per unit of length of the best weights; of the mean as it is."""
    steps, noise = predicted_numbers(problem, rows, method, clamp)
    match _method(problem, rows, method):
        case "mean":
            return (noise / rows) ** 2 / 2
        case "moments":
            return None
    rho = problem.rho - _for_spread(problem, rows, clamp)
    fine = plan_numbers(problem, rows, _clamp(problem, rows, clamp), rho).fine
    return expected_excess(rows, turned(problem.design, fine=fine).width, steps, noise)


def mean_alone(problem: Problem, rows: float, method: str) -> bool:
    """Whether nothing but the mean is learned."""
    return _method(problem, rows, method) == "mean"


def draw_numbers(problem: Problem, rows: Coded, n: float, bits: Bits | None, method: str, clamp: float | None) -> Fit:
    """Draw the weights of a target that is a number."""
    match _method(problem, n, method):
        case "mean":
            return (yield from _mean(problem, rows, n, bits))
        case "moments":
            return (yield from _from_moments(problem, rows, bits))
    weights, steps, _ = yield from descended(problem, rows, n, bits, clamp)
    return {"weights": weights.tolist(), "steps": steps}


def descended(
    problem: Problem, rows: Coded, n: float, bits: Bits | None, clamp: float | None
) -> Generator[Event, None, tuple[Integers, int, int]]:
    """Yields the event of each step before it is drawn; returns the weights by descent, on their grid, how many steps
    there were, and the cut of residuals."""
    first, spread, reach = _for_spread(problem, n, clamp), Spread(0.0, 0.0), _clamp(problem, n, clamp)
    if first:
        spread = yield from bought_spread(problem, rows, n, first, bits)
        reach = spread.clamp(_deviations(problem, n))
    rho = problem.rho - first
    plan = plan_numbers(problem, n, reach, rho)
    weights = yield from descend(
        rows,
        partial(clamped_residual, clamp=reach),
        outputs=1,
        rho=rho,
        squared=descent_squared(problem, reach, fine=plan.fine),
        plan=plan,
        n=n * problem.heaviest,
        curvature=1.0,
        start=spread.mean,
        bits=bits,
    )
    return np.array([on_grid(w) for w in weights]), plan.steps, reach


def _mean(problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Fit:
    noise = noise_of(problem.rho, mean_squared(problem))
    yield noise.event
    (noisy,) = noise.release([rows.target_sum(LEVELS // 2)], bits=bits)
    weights = np.zeros(problem.design.width)
    # So few rows that neither their number nor their sum is known well: what is not known is drawn to the middle.
    least = 0.0 if problem.parts[0] is None else 2 * problem.rows_per_unit / math.sqrt(2 * float(problem.parts[0]))
    trust = noisy**2 / (noisy**2 + float(noise.sigma2))
    weights[0] = np.clip(trust * noisy / (LEVELS * max(n, least, 1.0) * problem.heaviest), -0.5, 0.5)
    return {"weights": [on_grid(weights).tolist()], "steps": 1}


def _from_moments(problem: Problem, rows: Coded, bits: Bits | None) -> Fit:
    design = _beside_target(problem)
    both = rows.beside_target(design)
    noise = noise_of(problem.rho, moments_squared(problem))
    yield noise.event
    upper = np.triu_indices(design.width)
    noisy = noise.release([int(v) for v in both.second_moment()[upper]], bits=bits)
    sigma = math.sqrt(noise.sigma2) / ONE**2
    weights = solved(_square(np.array(noisy, np.float64) / ONE**2, design.width), sigma)
    return {"weights": [on_grid(weights).tolist()], "steps": 1, "moments": list(noisy), "deviation": sigma}


def _square(upper: Floats, width: int) -> Floats:
    """The symmetric matrix of an upper triangle."""
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width)] = upper
    return np.array(matrix + np.triu(matrix, 1).T)


def solved(moment: Floats, sigma: float) -> Floats:
    """Weights by least squares of a noisy moment matrix, whose last row is the target's, in units of half its range."""
    gram, cross = _positive(moment)
    return np.array(np.linalg.solve(gram + np.diag(_penalty(gram, sigma)), cross) / 2)


def _positive(moment: Floats) -> tuple[Floats, Floats]:
    """The nearest positive semidefinite matrix: that of the features, and their sums with the target."""
    values, vectors = np.linalg.eigh(moment)
    whole = (vectors * np.maximum(values, 0)) @ vectors.T
    return whole[:-1, :-1], whole[:-1, -1]


def _penalty(gram: Floats, sigma: float) -> Floats:
    """The ridge on each weight."""
    penalty = np.full(len(gram), max(sigma * math.sqrt(len(gram)), 1e-9 * max(float(gram[0, 0]), 1.0)))
    penalty[0] *= 1e-3  # the mean is not shrunk
    return penalty


def noise_alone(moment: Floats, sigma: float, deviations: float) -> tuple[Floats, Floats]:
    """Ends of intervals of the weights that a matrix of moments, with noise of deviation sigma, does not tell apart.

    Let A be the noisy matrix of the features, a their noisy sums with the target, R a ridge, and b the weights of the
    exact ones with that ridge. Then A + R, times weights of the noisy ones less b, is e - E b exactly, with E and e the
    noise on A and a. Each entry of the triangle has its own, so e - E b has the covariance sigma^2 ((1 + |b|^2) I +
    b b^T - diag(b_i^2)). Where the least eigenvalue of A exceeds twice the length of E, R = 0 is looked at as well.
    """
    gram, cross = _positive(moment)
    ridged = _told(gram, cross, _penalty(gram, sigma), sigma, deviations)
    if np.linalg.eigvalsh(moment[:-1, :-1])[0] <= 2 * sigma * math.sqrt(len(gram)):
        return ridged
    plain = _told(moment[:-1, :-1], moment[:-1, -1], np.zeros(len(gram)), sigma, deviations)
    return np.minimum(ridged[0], plain[0]), np.maximum(ridged[1], plain[1])


def _told(gram: Floats, cross: Floats, penalty: Floats, sigma: float, deviations: float) -> tuple[Floats, Floats]:
    """The ends for one ridge, in units of half the target's range."""
    inverse = np.linalg.inv(gram + np.diag(penalty))
    b = inverse @ cross
    covariance = (1 + b @ b) * np.eye(len(b)) + np.outer(b, b) - np.diag(b * b)
    reach = deviations * sigma * np.sqrt(np.einsum("ij,jk,ik->i", inverse, covariance, inverse))
    return (b - reach) / 2, (b + reach) / 2


class LinearRegression(Estimator):
    """Linear regression on a target of a declared range.

    features: columns; by default all that are declared. target: a column of declared range. bins: of columns of
    numbers, by name or for all: their number or edges, a feature each, beside the number itself. method: "descent",
    "moments", "mean" or "auto". clamp: how far off a row may be, as a share of the range: a residual beyond counts
    as that; by default about the target's standard deviation, which is bought, or twice that where rows are many.
    weight: a column of weights. rows: how many there are, where that is public; else it is bought.

    After a fit: `coef_` and `intercept_`, of the features `feature_names_`, in the target's unit; `n_iter_`; `method_`,
    what was done: "mean" where nothing but the mean could be learned.
    """

    _tasks: ClassVar[tuple[str, ...]] = ("numbers",)
    _counterpart: ClassVar[str | None] = "LinearRegression"

    def __init__(
        self,
        features: Sequence[str] | None = None,
        target: str | None = None,
        *,
        bins: int | Mapping[str, Any] | None = None,
        method: str = "auto",
        clamp: float | None = None,
        weight: str | None = None,
        rows: int | None = None,
    ) -> None:
        self.features, self.target, self.bins, self.clamp = features, target, bins, clamp
        self.method, self.weight, self.rows = method, weight, rows

    def _bins(self, name: str) -> Any:
        return self.bins.get(name) if isinstance(self.bins, Mapping) else self.bins

    def _checked(self, problem: Problem) -> None:
        super()._checked(problem)
        if self.method not in _METHODS:
            raise ParameterError(f"method={what_was_given(self.method)}: expected one of {', '.join(_METHODS)}.")
        share = 0.25 if self.clamp is None else self.clamp
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0.001 <= share <= 1:
            raise ParameterError(f"clamp={what_was_given(self.clamp)}: expected a share of the range, from 0.001 to 1.")

    def _coordinates(self, problem: Problem) -> tuple[Design, ...]:
        return (problem.design,) if self.method in ("moments", "mean") else either(problem.design)

    def _predicted(self, problem: Problem, rows: int) -> tuple[int, float]:
        return predicted_numbers(problem, rows, self.method, self.clamp)

    def _check_noise(self, problem: Problem, rows: int) -> None:
        check_noise_of_numbers(problem, rows, self.method, self.clamp)

    def _excess(self, problem: Problem, rows: int) -> float | None:
        return excess_of_numbers(problem, rows, self.method, self.clamp)

    def _learns_mean_alone(self, problem: Problem, rows: int) -> bool:
        return mean_alone(problem, rows, self.method)

    def _in_place(self, problem: Problem) -> str | None:
        return None if self.method in ("moments", "mean") else "method='moments'"

    def _draw(self, problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Fit:
        return draw_numbers(problem, rows, n, bits, self.method, self.clamp)

    def _scoring(self) -> Scoring:
        return self.design_.scoring(self._weights)

    def _load(self, kept: Mapping[str, Any]) -> None:
        self._weights = np.array(kept["fit"]["weights"], np.int64)
        self.n_iter_ = int(kept["fit"]["steps"])
        self.feature_names_ = list(self.design_.names[1:])
        low, high = (float(ratio(end)) for end in kept["range"])
        self._limits = low, high
        self._moments = kept["fit"].get("moments"), kept["fit"].get("deviation")
        # Descent takes four steps at least.
        self.method_ = "moments" if self._moments[0] is not None else "mean" if self.n_iter_ == 1 else "descent"
        self.coef_ = self._weights[0, 1:] / WEIGHT_ONE * (high - low)
        self.intercept_ = float(self._weights[0, 0] / WEIGHT_ONE * (high - low) + (low + high) / 2)

    def intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """For each feature, and the intercept, an interval of its weight: of the noise alone.

        In the target's unit. It holds the weight that the same method has without noise, with the same ridge; where the
        moments stand clear of their noise, also that without a ridge. It does not say how far these rows are from
        others. level: its probability, about.

        Raises ParameterError for a model that was not fitted by method="moments", whose noise is known.
        """
        from scipy.special import ndtri

        moments, sigma = self._fitted()._moments
        if moments is None:
            raise ParameterError(
                'only method="moments" has intervals: it keeps the sums that it bought, whose noise is known.'
            )
        if not 0 < level < 1:
            raise ParameterError(f"level={what_was_given(level)}: expected a number between 0 and 1.")
        moment = _square(np.array(moments, np.float64) / ONE**2, self.design_.width + 1)
        ends = [end * (self._limits[1] - self._limits[0]) for end in noise_alone(moment, sigma, ndtri((1 + level) / 2))]
        for end in ends:
            end[0] += sum(self._limits) / 2
        return {n: (a, b) for n, a, b in zip(self.design_.names, *(end.tolist() for end in ends), strict=True)}

    def predict(self, X: Any) -> Floats:
        """The prediction for each row, within the declared range."""
        low, high = self._fitted()._limits
        scores = self._codes(X).scores(self._weights)[0] / (ONE * WEIGHT_ONE)
        return np.array(np.clip(scores * (high - low) + (low + high) / 2, low, high))
