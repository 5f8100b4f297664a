"""Principal components, from one noisy matrix of second moments.

A row adds x x^T, x its features with a 1 before them, in the coordinates of `hubbub.learning.bases`, in which it is
shorter. The upper triangle moves by sqrt((|x|^4 + sum x_i^4) / 2) in l2 (`hubbub.learning.exact.triangle_squared`). It
gets discrete Gaussian noise once (Dwork, Talwar, Thakurta, Zhang 2014, "Analyze Gauss"). The number of rows and the
means stand in the matrix itself. What follows is post-processing: the covariance, brought back to the plain features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import count
from hubbub.errors import ParameterError
from hubbub.learning.bases import plain_covariance, plain_mean, turned
from hubbub.learning.descent import Floats, noise_of
from hubbub.learning.exact import Coded, triangle_squared
from hubbub.learning.features import ONE, Design
from hubbub.learning.model import Estimator, Fit, Problem
from hubbub.mechanisms.calibration import Calibrated
from hubbub.noise import Bits

__all__ = ["PCA"]


class PCA(Estimator):
    """Principal components of declared columns; numbers are moved to [-1, 1], values have a feature each.

    features: columns; by default all that are declared. n_components: how many. weight: a column of weights.

    After a fit: `components_`, (n_components, features), orthonormal, the largest variance first; `mean_`;
    `explained_variance_` and `explained_variance_ratio_`, none below 0.
    """

    _buys_rows: ClassVar[bool] = False
    _counterpart: ClassVar[str | None] = "PCA"

    def __init__(
        self, features: Sequence[str] | None = None, *, n_components: int = 2, weight: str | None = None
    ) -> None:
        self.features, self.n_components, self.weight = features, n_components, weight

    def _checked(self, problem: Problem) -> None:
        super()._checked(problem)
        most = problem.design.width - 1
        if count(self.n_components, "n_components") > most:
            raise ParameterError(f"n_components={self.n_components}: these columns make {most} features.")

    def _noise(self, problem: Problem) -> Calibrated:
        return noise_of(problem.rho, problem.moved(triangle_squared(turned(problem.design)), acute=True))

    def _coordinates(self, problem: Problem) -> tuple[Design, ...]:
        return (turned(problem.design),)

    def _predicted(self, problem: Problem, rows: int) -> tuple[int, float]:
        return 1, math.sqrt(self._noise(problem).sigma2) / (ONE**2 * problem.heaviest)

    def _in_place(self, problem: Problem) -> str | None:
        return None

    def _draw(self, problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Fit:
        noise = self._noise(problem)
        yield noise.event
        plain = problem.design
        rows = replace(rows, design=turned(plain))
        width = rows.design.width
        upper = np.triu_indices(width)
        noisy = noise.release([int(v) for v in rows.second_moment()[upper]], bits=bits)
        moment = np.zeros((width, width))
        moment[upper] = np.array(noisy, np.float64) / ONE**2
        moment = moment + np.triu(moment, 1).T
        size = max(float(moment[0, 0]), 1.0)
        mean = np.clip(moment[0, 1:] / size, -1, 1)
        covariance = plain_covariance(plain, moment[1:, 1:] / size - np.outer(mean, mean))
        values, vectors = np.linalg.eigh(covariance)
        order = np.argsort(-values)[: self.n_components]
        return {
            "components": vectors[:, order].T.tolist(),
            "mean": np.clip(plain_mean(plain, mean), -1, 1).tolist(),
            "variances": np.maximum(values[order], 0).tolist(),
            "total": float(max(values.sum(), values[order].clip(0).sum(), 1e-12)),
        }

    def _load(self, kept: Mapping[str, Any]) -> None:
        fit = kept["fit"]
        self.components_, self.mean_ = np.array(fit["components"]), np.array(fit["mean"])
        self.explained_variance_ = np.array(fit["variances"])
        self.explained_variance_ratio_ = self.explained_variance_ / fit["total"]
        self.feature_names_ = list(self.design_.names[1:])

    def transform(self, X: Any) -> Floats:
        """The rows in the components' coordinates: (n, n_components)."""
        codes = self._fitted()._codes(X).codes
        columns = self.design_.columns.values()
        x = np.hstack([c.features[k] for c, k in zip(columns, codes, strict=True)]) / ONE
        return np.array((x - self.mean_) @ self.components_.T)
