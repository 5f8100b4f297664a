"""A fitted model as a plain pipeline of scikit-learn, for whoever serves, pickles or converts such pipelines.

It computes in floats what hubbub computes on its grid: scores differ by what numbers are rounded to, a 512th of their
range. Values that are not declared, and NULL, are treated as hubbub treats them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hubbub.errors import ParameterError, what_was_given
from hubbub.learning.features import Categories, Design, Numbers, Pair

__all__ = ["pipeline"]

_MARK = 2**127
"""What stands for a missing number for a moment: the largest power of two that 32 bits hold."""


def pipeline(model: Any) -> Any:
    """A fitted `sklearn.pipeline.Pipeline` that takes a pandas data frame.

    Raises ParameterError for a model that has no counterpart, and where scikit-learn is not there.
    """
    try:
        from sklearn.pipeline import Pipeline
    except ImportError:
        raise ParameterError("to_sklearn needs scikit-learn (the package is called scikit-learn).") from None
    model._fitted()
    inner = model._exported()
    if inner._counterpart == "GaussianNB":
        return Pipeline([("columns", _columns(inner.design_, own=True)), ("model", _gaussian(inner))])
    last = _last(inner)
    return Pipeline([("columns", _columns(inner.design_)), ("model", last)])


def _last(model: Any) -> Any:
    """The last step: scikit-learn's own model with the weights that were found."""
    design: Design = model.design_
    if model._counterpart == "LogisticRegression":
        from sklearn.linear_model import LogisticRegression as Logistic

        last = Logistic()
        last.coef_, last.intercept_ = _spread(design, model.coef_), np.array(model.intercept_)
        last.classes_, last.n_iter_ = model.classes_, np.array([model.n_iter_])
    elif model._counterpart == "LinearRegression":
        from sklearn.linear_model import LinearRegression as Linear

        last = Linear()
        last.coef_, last.intercept_ = _spread(design, model.coef_[None])[0], np.float64(model.intercept_)
    elif model._counterpart == "KMeans":
        from sklearn.cluster import KMeans as Means

        if any(isinstance(c, Categories) and None in c.values for c in design.columns.values()):
            raise ParameterError("a column with NULL among its values is at other distances in scikit-learn.")
        last = Means(n_clusters=len(model.cluster_centers_))
        last.cluster_centers_, last._n_threads = _spread(design, model.cluster_centers_), 1
    elif model._counterpart == "PCA":
        from sklearn.decomposition import PCA as Components

        last = Components(n_components=len(model.components_))
        last.components_, last.mean_ = (
            _spread(design, model.components_),
            _spread(design, model.mean_[None], once=True)[0],
        )
        last.explained_variance_, last.n_components_ = model.explained_variance_, len(model.components_)
    else:
        raise ParameterError(f"{type(model).__name__} has no counterpart in scikit-learn that predicts the same.")
    last.n_features_in_ = _spread(design, np.zeros((1, design.width - 1))).shape[1]
    return last


def _gaussian(model: Any) -> Any:
    from sklearn.naive_bayes import GaussianNB as Gaussian

    last = Gaussian()
    last.classes_, last.class_prior_, last.theta_ = model.classes_, model.class_prior_, model.theta_
    last.var_, last.epsilon_, last.n_features_in_ = model.var_, 0.0, model.theta_.shape[1]
    return last


def _spread(design: Design, weights: Any, *, once: bool = False) -> Any:
    """Weights of our features as weights of the pipeline's: NULL is a missing number's mark, beside the middle bin.

    once: whether what stands for NULL stands at the first of its two forms alone.
    """
    parts = []
    for start, column in zip(design.starts, design.columns.values(), strict=True):
        own = np.array(weights[:, start - 1 : start - 1 + len(column.names)], np.float64)
        if isinstance(column, Pair):
            first, second = column.parts
            cells = _spread_column(second, own.reshape(len(own), len(first.names), len(second.names)))
            cells = _spread_column(first, cells.swapaxes(1, 2)).swapaxes(1, 2)
            parts.append(cells.reshape(len(own), -1))
        else:
            parts.append(_spread_column(column, own, once=once))
    return np.ascontiguousarray(np.hstack(parts))


def _spread_column(column: Categories | Numbers, weights: Any, *, once: bool = False) -> Any:
    """The same of one column, whose features are along the last axis."""
    own = weights.copy()
    if isinstance(column, Numbers) and column.edges and column.nullable:
        first = int(column.linear)
        middle = np.searchsorted([float(e) for e in column.edges[1:-1]], _middle(column), "right")
        own[..., -1] -= own[..., first + int(middle)]
    if isinstance(column, Categories) and None in column.values:
        null = column.values.index(None)
        known = [i for i in range(own.shape[-1]) if i != null]
        own = own[..., [*known, null, null]]
        own[..., -1] *= not once
    return own


def _middle(column: Numbers) -> float:
    """What a missing number is replaced by."""
    if column.edges and not column.nullable:
        place = column.bins // 2
        return float(column.edges[place] + column.edges[place + 1]) / 2
    return float(column.low + column.high) / 2


def _columns(design: Design, *, own: bool = False) -> Any:
    """The first step, fitted on declared values alone. own: numbers in their own unit."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer

    frame: dict[str, Any] = {}
    for name, column in design.columns.items():
        if isinstance(column, Categories):
            if column.other is not None:
                raise ParameterError(
                    f"the column {what_was_given(name)} has a value for all others, which scikit-learn has not."
                )
            frame[name] = np.array([column.values[0], column.values[-1]], object)
        elif isinstance(column, Numbers):
            frame[name] = [float(column.low), float(column.high)]
    steps: list[tuple[str, Any, list[str]]] = []
    for name, column in design.columns.items():
        if isinstance(column, Pair):
            steps.append((_step(name, "cells"), _cells(column), list(column.names_in)))
        else:
            steps += [(_step(name, part), step, [name]) for part, step in _steps(column, own)]
    chosen = ColumnTransformer(steps, sparse_threshold=0).fit(pd.DataFrame(frame))
    for name, column in design.columns.items():
        if isinstance(column, Pair):
            both = chosen.named_transformers_[_step(name, "cells")].steps[0][1]
            for one, part in zip(column.names_in, column.parts, strict=True):
                _set_edges(both, one, part)
        elif not own:
            _set_edges(chosen, name, column)
    return chosen


def _step(name: str, part: str) -> str:
    """What the step of a column is called: never with __, which scikit-learn refuses."""
    return f"{name.replace('_', '-') if '__' in name else name} {part}"


def _set_edges(chosen: Any, name: str, column: Categories | Numbers) -> None:
    """Put a column's own edges in the place of equal ones, in a fitted step."""
    if isinstance(column, Numbers) and column.edges:
        bins = chosen.named_transformers_[_step(name, "bins")].steps[-1][1]
        bins.bin_edges_[0] = np.array([float(e) for e in column.edges])


def _cells(pair: Pair) -> Any:
    """1 in the cell of a pair that a row is in: products of what the two columns' steps say, the second's faster.

    Products of one column's features, which are 0, and the features themselves are dropped. Nearly all are 0, and are
    kept as what is not.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    sides = [(n, part, _steps(part, False)) for n, part in zip(pair.names_in, pair.parts, strict=True)]
    both = ColumnTransformer([(_step(n, p), s, [n]) for n, _, steps in sides for p, s in steps], sparse_threshold=1)
    first, second = (_spread_column(part, np.zeros((1, len(part.names)))).shape[1] for part in pair.parts)
    width = first + second
    # Products of the i-th and the j-th come in the order of i, then of j.
    places = [width + i * (2 * width - i - 1) // 2 + j - i - 1 for i in range(first) for j in range(first, width)]
    products = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    return make_pipeline(both, products, ColumnTransformer([("cells", "passthrough", places)]))


def _steps(column: Any, own: bool) -> list[tuple[str, Any]]:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder

    if isinstance(column, Categories):
        # As objects: numbers stay numbers. NULL is None or NaN, as the frame's column has it.
        known = [v for v in column.values if v is not None]
        values = np.array([*known, None, np.nan] if None in column.values else known, object)
        return [("values", OneHotEncoder(categories=[values], handle_unknown="ignore", sparse_output=False))]
    middle = float(column.low + column.high) / 2
    if own:
        return [("number", make_pipeline(_floats(), SimpleImputer(strategy="constant", fill_value=middle)))]
    steps: list[tuple[str, Any]] = []
    if column.linear:
        filled = SimpleImputer(strategy="constant", fill_value=middle)
        steps.append(("number", make_pipeline(_floats(), filled, MinMaxScaler((-1, 1), clip=True))))
    if column.edges:
        bins = KBinsDiscretizer(column.bins, encode="onehot-dense", strategy="uniform", subsample=None)
        filled = SimpleImputer(strategy="constant", fill_value=_middle(column))
        steps.append(("bins", make_pipeline(_floats(), filled, bins)))
    if column.edges and column.nullable:
        steps.append(("NULL", _missing(column)))
    return steps


def _floats() -> Any:
    """Numbers as floats, and no others: a column of whole numbers takes no fraction in the place of a missing one."""
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(with_mean=False, with_std=False)


def _missing(column: Numbers) -> Any:
    """1 where a number is missing: of steps that skl2onnx knows, where the range leaves room for a mark."""
    from sklearn.impute import MissingIndicator, SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Binarizer

    if max(abs(column.low), abs(column.high)) >= _MARK / 2:
        return MissingIndicator(features="all")
    return make_pipeline(
        _floats(), SimpleImputer(strategy="constant", fill_value=float(_MARK)), Binarizer(threshold=float(_MARK) / 2)
    )
