"""What all models have in common: their parameters, the problem they make of declared columns, and what is kept of a
fit.

An estimator holds parameters of its algorithm and nothing else, as scikit-learn's do (`get_params`, `set_params`,
`clone`). Rows, declared domains and the budget come from a session (`Session.fit`), or from the arguments of `fit`.
From declarations alone a `Problem` follows: which columns are read, the features, the classes, the exact sensitivity,
the event. Only then are rows encoded (`Problem.encode`), each by itself:

- a row whose class is NULL or not declared, or whose target is not a number, is left out; a declared class without rows
  is a class;
- a weight lies between 0 and its declared largest value w, in steps of w / 256; NULL weighs nothing. Sums are of whole
  numbers up to 256, and sensitivities 256 times as large;
- a unit keeps at most R of its rows (`hubbub.learning.exact.kept`), so its share of a sum is at most R times a row's.

Under replace a unit's share is exchanged for another one: twice as far in l2 and l1.
"""

from __future__ import annotations

import copy
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import Event, rho_of_epsilon
from hubbub.accounting.amounts import amount, count
from hubbub.errors import ParameterError, PolicyError, what_was_given
from hubbub.learning.exact import HEAVIEST, Coded, kept
from hubbub.learning.exporting import pipeline
from hubbub.learning.features import Column, Design, Integers, Scoring, column_of
from hubbub.learning.targets import LEVELS, Classes, Range, Weight
from hubbub.mechanisms.calibration import Spend, calibrated
from hubbub.noise import Bits
from hubbub.remedies import DeclareRange, DeclareValues, UseDelta
from hubbub.tables.columns import Between, Declaration, Edges, OneOf

__all__ = ["FORMAT", "LEVELS", "Classes", "Estimator", "Fit", "Problem", "Range", "arrow", "fitted_of"]

Fit = Generator[Event, None, dict[str, Any]]
"""Yields each event before it is drawn, and returns what is kept, as JSON."""

FORMAT: Final = "model 1"
_NEEDED: Final = {"classes": "classes (hb.one_of)", "numbers": "range (hb.between)"}
_ROWS_SHARE: Final = Fraction(1, 50)


@dataclass(frozen=True, eq=False)
class Problem:
    """A model of declared columns, priced; everything here is public.

    spend: all of it. rows_per_unit: R. rows: their number, where it is public. shares: of the rows in each bin, by
    column, as far as a noisy histogram that was bought says it.
    """

    estimator: Estimator
    design: Design
    target: Classes | Range | None
    weight: Weight | None
    spend: Spend
    rows_per_unit: int = 1
    neighbours: str = "add_remove"
    rows: int | None = None
    shares: Mapping[str, NDArray[np.float64]] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Which columns are read, each once."""
        more = [what.name for what in (self.target, self.weight) if what is not None]
        return tuple(dict.fromkeys([*self.design.read, *more]))

    @property
    def reach(self) -> int:
        """How many of a row's largest shares a unit moves a sum: R, times 256 with weights, twice for replace."""
        return self.rows_per_unit * self.heaviest * (1 if self.neighbours == "add_remove" else 2)

    def moved(self, squared: int, *, acute: bool = False) -> int:
        """How far a unit moves a sum in squared l2, if one row of weight 1 moves it by `squared` at most.

        acute: whether what any two rows add has an inner product of 0 or more, as counts have, which are 0 or more
        each: then the two shares that are exchanged under replace have one too, and the square of their difference is
        at most the sum of their squares.
        """
        if acute and self.neighbours == "replace":
            return 2 * squared * (self.rows_per_unit * self.heaviest) ** 2
        return squared * self.reach**2

    @property
    def heaviest(self) -> int:
        """What the heaviest row counts on the grid of weights."""
        return 1 if self.weight is None else HEAVIEST

    def encode(self, table: Any, units: Integers | None) -> Coded:
        """The rows of an Arrow table that count, each unit's at most R."""
        codes = self.design.encode(table)
        label = np.zeros(table.num_rows, np.int64)
        weights = None if self.weight is None else self.weight.grid(table.column(self.weight.name))
        if self.target is not None:
            label = self.target.label(table.column(self.target.name))
        used = label >= 0
        owners = None if units is None else np.where(used, units, -1)
        keys = [*codes, label, *([] if weights is None else [weights])]
        places = np.flatnonzero(used) if owners is None else kept(keys, owners, self.rows_per_unit)
        return Coded(
            self.design, [c[places] for c in codes], label[places], None if weights is None else weights[places]
        )

    @property
    def parts(self) -> tuple[Fraction | None, Fraction]:
        """What is spent on the number of rows, if it is bought, and what on the model."""
        if self.rows is not None or not self.estimator._buys_rows:
            return None, self.spend.amount
        first = self.spend.amount * _ROWS_SHARE
        return first, self.spend.amount - first

    def count_rows(self, rows: Coded, bits: Bits | None) -> Generator[Event, None, float]:
        """The number of rows (the sum of their weights, as a share of the largest): public, or bought."""
        share, _ = self.parts
        if share is None:
            return float(self.rows or 1)
        noise = calibrated(spend=self.spend.of_amount(share), l1=self.reach, l2_squared=self.moved(1, acute=True))
        yield noise.event
        (noisy,) = noise.release([rows.mass()], bits=bits)
        return max(1.0, noisy / self.heaviest)

    @property
    def rho(self) -> Fraction:
        """What the model itself may cost, in zCDP.

        Raises PolicyError under a pure budget.
        """
        if self.spend.pure:
            raise PolicyError(
                f"{type(self.estimator).__name__} is priced in zCDP, and this budget has no delta. Use one, as in "
                "hb.Budget(epsilon=3, delta=1e-6), or a naive Bayes model (hubbub.learning.CategoricalNB).",
                remedy=UseDelta(),
            )
        return self.parts[1]

    def steps(self, rows: Coded, *, bits: Bits | None = None) -> Fit:
        """Draw the model. Yields each event before it is drawn; returns what is kept."""
        n = yield from self.count_rows(rows, bits)
        problem, rows = yield from self.estimator._settled(self, rows, n, bits)
        fit = yield from self.estimator._draw(problem, rows, n, bits)
        return problem.written(fit | ({"rows": n} if self.estimator._buys_rows else {}))

    def written(self, fit: Mapping[str, Any]) -> dict[str, Any]:
        """What is kept of a fit, as JSON."""
        classes = list(self.target.values) if isinstance(self.target, Classes) else None
        limits = [str(self.target.low), str(self.target.high)] if isinstance(self.target, Range) else None
        return {
            "format": FORMAT,
            "estimator": type(self.estimator).__name__,
            # Without pairs, as before there were any: a stored model is the answer to the same question still.
            "parameters": {k: v for k, v in self.estimator.get_params().items() if k != "pairs" or v is not None},
            "design": self.design.to_json(),
            "target": None if self.target is None else self.target.name,
            "classes": classes,
            "other": self.target.column.other if isinstance(self.target, Classes) else None,
            "range": limits,
            "fit": dict(fit),
        }

    @property
    def key(self) -> str:
        """A text that is equal for equal problems."""
        wanted = self.written({}) | {"spend": [str(self.spend.epsilon), str(self.spend.rho)]}
        wanted |= {"weight": None if self.weight is None else [self.weight.name, str(self.weight.high)]}
        wanted |= {"unit": [self.rows_per_unit, self.neighbours], "rows": self.rows}
        return json.dumps(wanted, sort_keys=True)


class Estimator(ABC):
    """The parameters of a model; what a fit found is in attributes that end in an underscore.

    features: the columns it looks at; by default all that are declared, but the target and the weight. target: the
    column that is learned. weight: a column of weights, declared between 0 and its largest value.
    """

    _tasks: ClassVar[tuple[str, ...]] = ()
    _linear: ClassVar[bool] = True
    _buys_rows: ClassVar[bool] = True
    _counterpart: ClassVar[str | None] = None
    """The class of scikit-learn that predicts the same, where there is one."""

    features: Sequence[str] | None
    target: str | None
    weight: str | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in _parameters(type(self))}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name.

        Raises ParameterError for a name that is none.
        """
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(
                    f"{type(self).__name__} has no parameter {what_was_given(name)}; it has {', '.join(known)}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        default = _parameters(type(self))
        said = [f"{k}={v!r}" for k, v in self.get_params().items() if v is not default[k]]
        return f"{type(self).__name__}({', '.join(said)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        kind = "classifier" if hasattr(self, "predict_proba") else "regressor" if self._tasks else None
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(required=bool(self._tasks)),
            transformer_tags=None,
            classifier_tags=ClassifierTags() if kind == "classifier" else None,
            regressor_tags=RegressorTags() if kind == "regressor" else None,
        )

    # What a model gives.

    def _bins(self, name: str) -> int | Sequence[float] | None:
        """The bins of a column of numbers: their number or edges, None for none."""
        return None

    def _settled(
        self, problem: Problem, rows: Coded, n: float, bits: Bits | None
    ) -> Generator[Event, None, tuple[Problem, Coded]]:
        """The problem as it is drawn, and the rows of its features: both as they are, unless bins are bought."""
        yield from ()
        return problem, rows

    @abstractmethod
    def _draw(self, problem: Problem, rows: Coded, n: float, bits: Bits | None) -> Fit: ...

    @abstractmethod
    def _load(self, kept: Mapping[str, Any]) -> None: ...

    def _scoring(self) -> Scoring:
        """The scores by which a fitted model decides: one output for two classes or a number, else one a class.

        Raises TypeError for a model that decides nothing, such as k-means.
        """
        raise TypeError(f"a {type(self).__name__} decides nothing")

    def _in_place(self, problem: Problem) -> str | None:
        """Why this cannot be fitted where its rows are, and what can; None where it can."""
        return "a naive Bayes model, PCA, LogisticRegression(method='newton'), LinearRegression(method='moments')"

    @abstractmethod
    def _predicted(self, problem: Problem, rows: int) -> tuple[int, float]:
        """How many passes over about so many rows, and the noise on a sum over rows in one of them, in rows: in one of
        an even part of the amount."""

    def _check_noise(self, problem: Problem, rows: int) -> None:
        """Raises ParameterError where noise may not fit into 64 bits, with about so many rows."""
        self._predicted(problem, rows)

    def _excess(self, problem: Problem, rows: int) -> float | None:
        """How far the loss of a row is expected above the best, per unit of length of the best weights; None where no
        law says it."""
        return None

    def _coordinates(self, problem: Problem) -> tuple[Design, ...]:
        """The designs that rows may be summed in."""
        return (problem.design,)

    def _learns_mean_alone(self, problem: Problem, rows: int) -> bool:
        """Whether nothing but the target's mean would be learned."""
        return False

    def problem(
        self,
        columns: Mapping[str, Declaration],
        *,
        spend: Spend,
        whole: frozenset[str] = frozenset(),
        rows_per_unit: int = 1,
        neighbours: str = "add_remove",
    ) -> Problem:
        """What this model is of declared columns; reads no rows. whole: the columns of whole numbers.

        Raises PolicyError for a column that is not declared as the model needs it, ParameterError for a parameter.
        """
        self._plain()
        weight = self._weight(columns)
        target = self._target(columns)
        self._check_positive(target)
        taken = {what.name for what in (weight, target) if what is not None}
        names = self.features
        if isinstance(names, str) or (names is not None and not all(isinstance(n, str) for n in names)):
            raise ParameterError('features: expected a list of columns, as in features=["age", "hours"].')
        used = [n for n, what in columns.items() if _usable(what) and n not in taken] if names is None else list(names)
        if taken & set(used) or len(set(used)) < len(used):
            twice = next(n for i, n in enumerate(used) if n in taken or n in used[:i])
            raise ParameterError(f"features: {what_was_given(twice):.80} stands twice, or is the target or the weight.")
        each = {n: self._column(n, columns.get(n), n in whole) for n in used}
        design = Design(each | self._pairs(columns, used, whole))
        rows = getattr(self, "rows", None)
        problem = Problem(
            self,
            design,
            target,
            weight,
            spend,
            count(rows_per_unit, "rows_per_unit"),
            neighbours,
            None if rows is None else count(rows, "rows", most=2**53),
        )
        self._checked(problem)
        return problem

    def _plain(self) -> None:
        """Raises ParameterError for a parameter that cannot be kept."""
        try:
            json.dumps(self.get_params(), allow_nan=False)
        except (TypeError, ValueError):
            default = _parameters(type(self))
            given = {k: v for k, v in self.get_params().items() if v is not default[k]}
            said = ", ".join(f"{k}={what_was_given(v)}" for k, v in given.items())
            raise ParameterError(
                f"{type(self).__name__}({said:.180}): parameters are texts, numbers, lists and mappings of these."
            ) from None

    def _check_positive(self, target: Classes | Range | None) -> None:
        """Raises ParameterError for a class called positive that is not one of two."""
        positive, classes = getattr(self, "positive", None), target.values if isinstance(target, Classes) else ()
        if positive is not None and (len(classes) != 2 or positive not in classes):
            raise ParameterError(
                f"positive={what_was_given(positive):.80}: it is one of two classes, and the target has "
                f"{_listed(classes)}."
            )

    def _pairs(
        self, columns: Mapping[str, Declaration], used: Sequence[str], whole: frozenset[str]
    ) -> dict[str, Column]:
        """The pairs of columns that count as a column each, by name."""
        return {}

    def _checked(self, problem: Problem) -> None:
        """Raises ParameterError or PolicyError for what this model cannot do."""
        _ = problem.rho

    def _column(self, name: str, declared: Declaration | None, whole: bool) -> Column:
        return column_of(name, declared, linear=self._linear, bins=self._bins(name), whole=whole)

    def _weight(self, columns: Mapping[str, Declaration]) -> Weight | None:
        if getattr(self, "weight", None) is None:
            return None
        assert self.weight is not None
        declared = columns.get(self.weight)
        if not isinstance(declared, Between) or not declared.numeric or declared.low != 0:
            way = DeclareRange(self.weight, 0)
            raise PolicyError(
                f"weight={what_was_given(self.weight)}: declare the largest value: {way.in_python()}.", remedy=way
            )
        assert isinstance(declared.high, Fraction)
        return Weight(self.weight, declared.high)

    def _target(self, columns: Mapping[str, Declaration]) -> Classes | Range | None:
        if not self._tasks:
            return None
        if self.target is None:
            raise ParameterError(f'{type(self).__name__}: which column is learned? Write target="income".')
        match columns.get(self.target):
            case OneOf() as declared if "classes" in self._tasks:
                return Classes.of(self.target, declared)
            case Between() | Edges() as declared if "numbers" in self._tasks and isinstance(declared.low, Fraction):
                assert isinstance(declared.high, Fraction)
                return Range(self.target, declared.low, declared.high)
        needed = " or ".join(_NEEDED[task] for task in self._tasks)
        declaring = {"classes": DeclareValues(self.target), "numbers": DeclareRange(self.target)}
        ways = [declaring[task] for task in self._tasks]
        raise PolicyError(
            f"{type(self).__name__} learns a column of declared {needed}; {what_was_given(self.target)} has none. "
            f"Declare {' or '.join(way.in_python() for way in ways)}.",
            remedy=ways,
        )

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        columns: Mapping[str, Declaration],
        epsilon: Any,
        delta: Any = None,
        units: Any = None,
        rows_per_unit: int = 1,
        neighbours: str = "add_remove",
        bits: Bits | None = None,
    ) -> Self:
        """Fit to one's own rows, without a session or a ledger; `loss_` is the event to charge. Returns the model
        itself.

        X: a frame or a mapping of columns. y: the target, where it is not among them. columns: what is declared of
        each: nothing is read from the rows. delta: of the conversion to zCDP; None for a pure epsilon. units: whose row
        each one is, by default its own. bits: a bit source for tests.

        Raises what `problem` raises.
        """
        table = arrow(X)
        if y is not None:
            import pyarrow as pa

            assert self.target is not None
            table = table.append_column(self.target, pa.array(np.asarray(y)))
        spend = Spend(epsilon=amount(epsilon, "epsilon"))
        if delta is not None:
            spend = Spend(rho=rho_of_epsilon(epsilon, delta))
        whole = frozenset(f.name for f in table.schema if str(f.type).startswith(("int", "uint")))
        problem = self.problem(columns, spend=spend, whole=whole, rows_per_unit=rows_per_unit, neighbours=neighbours)
        owners = None if units is None else np.unique(np.asarray(units), return_inverse=True)[1].astype(np.int64)
        events, steps = [], problem.steps(problem.encode(_checked_columns(table, problem), owners), bits=bits)
        while True:
            try:
                events.append(next(steps))
            except StopIteration as done:
                self._take(done.value)
                break
        from hubbub.accounting import Composed

        self.loss_ = Composed(events)
        return self

    def _take(self, kept: Mapping[str, Any]) -> Self:
        """Put what a fit kept into attributes."""
        self.design_ = Design.from_json(kept["design"])
        self.feature_names_in_ = np.array(list(self.design_.read), object)
        self.n_features_in_ = len(self.design_.read)
        self.kept_ = dict(kept)
        if kept["classes"] is not None:
            self.classes_ = np.array(kept["classes"])
        self._load(kept)
        return self

    def evaluate(self, session: Any, table: str, **options: Any) -> Any:
        """How good this model is on a table of a session: `Session.evaluate`."""
        return session.evaluate(self, table, **options)

    def to_sklearn(self) -> Any:
        """The same as a plain pipeline of scikit-learn, which takes a pandas data frame and pickles.

        Raises ParameterError for a model that has no counterpart there.
        """
        return pipeline(self._fitted())

    def _exported(self) -> Estimator:
        """The fitted model whose weights a pipeline of scikit-learn takes over."""
        return self

    def to_json(self) -> str:
        """The fitted model as text, which `hubbub.learning.load` reads."""
        return json.dumps(self._fitted().kept_)

    def _fitted(self) -> Self:
        """Raises ParameterError where nothing was fitted."""
        if not hasattr(self, "kept_"):
            raise ParameterError(
                f"this {type(self).__name__} is not fitted: session.fit(model, table, epsilon=...) first."
            )
        return self

    def _codes(self, frame: Any) -> Coded:
        """The rows of a frame, to predict."""
        table = arrow(frame)
        missing = [name for name in self._fitted().design_.read if name not in table.column_names]
        if missing:
            raise ParameterError(f"the frame has no column {missing[0]!r}; this model looks at it.")
        return Coded(self.design_, self.design_.encode(table), np.zeros(table.num_rows, np.int64))

    kept_: dict[str, Any]
    design_: Design


def _parameters(kind: type) -> dict[str, Any]:
    """The parameters of an estimator, with their defaults."""
    arguments = inspect.signature(kind.__init__).parameters  # type: ignore[misc]
    return {name: p.default for name, p in arguments.items() if name != "self"}


def _listed(classes: Sequence[object]) -> str:
    return ", ".join(map(repr, classes[:3])) + (", ..." if len(classes) > 3 else "") if classes else "none"


def _usable(declared: Declaration) -> bool:
    match declared:
        case OneOf(values=values):
            return all(isinstance(v, bool | int | float | str | None) for v in values)
        case Between():
            return declared.numeric
    return isinstance(declared, Edges)


def _checked_columns(table: Any, problem: Problem) -> Any:
    missing = [name for name in problem.columns if name not in table.column_names]
    if missing:
        raise ParameterError(f"the frame has no column {missing[0]!r}; this model looks at it.")
    return table


def arrow(frame: Any) -> Any:
    """A frame, or a mapping of columns, as an Arrow table.

    Raises ParameterError for anything else.
    """
    import pyarrow as pa

    try:
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowInvalid):
        raise ParameterError(
            f"a {type(frame).__name__} is not a frame: give pandas, polars, Arrow, or a mapping of columns of one kind."
        ) from None


def fitted_of(estimator: Estimator, kept: Mapping[str, Any]) -> Estimator:
    """A copy of a model, with what a fit kept."""
    fitted = copy.copy(estimator)
    return fitted._take(kept)
