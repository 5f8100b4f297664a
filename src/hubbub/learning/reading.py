"""Fitted models, read again from the text that `to_json` wrote: the text names the class of its model."""

from __future__ import annotations

import json
from typing import Any, Final

from hubbub.errors import ParameterError
from hubbub.learning.additive import AdditiveModel
from hubbub.learning.bayes import CategoricalNB, GaussianNB
from hubbub.learning.clusters import KMeans
from hubbub.learning.components import PCA
from hubbub.learning.linear import LinearRegression
from hubbub.learning.logistic import LogisticRegression
from hubbub.learning.model import FORMAT, Estimator

__all__ = ["MODELS", "load"]

_KINDS: Final[tuple[type[Estimator], ...]] = (
    AdditiveModel,
    CategoricalNB,
    GaussianNB,
    KMeans,
    LinearRegression,
    LogisticRegression,
    PCA,
)
MODELS: Final = {kind.__name__: kind for kind in _KINDS}
"""The models that a text may be of."""


def load(text: str) -> Any:
    """The fitted model that `to_json` wrote.

    Raises ParameterError for any other text.
    """
    try:
        kept = json.loads(text)
        if kept["format"] != FORMAT:
            raise ValueError("another format")
        return MODELS[kept["estimator"]](**kept["parameters"])._take(kept)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise ParameterError("this text is not a fitted model of this version of hubbub.") from None
