"""How a question is asked: its amount, and what is said beside it. The same for `check`, `sql` and the verbs.

`Options` checks each of them once, before anything else is looked at, and writes them down as JSON, so that another
process can ask the very same question (`to_wire`, `from_wire`).
"""

from __future__ import annotations

import datetime as dt
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, TypedDict, TypeVar, cast, get_args

from hubbub.accounting.amounts import number
from hubbub.arguments import a_choice, a_whole_number, an_amount
from hubbub.errors import ParameterError, what_was_given
from hubbub.keywords import named
from hubbub.ledger.budget import EpsilonLike
from hubbub.remedies import GiveOptions, LeaveOut
from hubbub.spelling import meant_by
from hubbub.sql.bind.scope import did_you_mean
from hubbub.tables.declare import Bounding, Limits

__all__ = ["AskOptions", "Options", "given_in", "read_value", "takes_options", "written_value"]

NOISES: Final = ("laplace", "gaussian")
_SHARE: Final = re.compile(r"\s*(\d{1,2}(?:\.\d+)?)\s*%\s*")
_LARGEST: Final = 1e300
_MOST_ROWS: Final = 10**18
_AMOUNTS: Final = ("epsilon", "rho", "delta", "at_most")
_Method = TypeVar("_Method", bound=Callable[..., Any])


class AskOptions(TypedDict, total=False):
    """The options of `Session.check` and `Session.sql`; `Options` says what each of them means."""

    epsilon: EpsilonLike | None
    rho: EpsilonLike | None
    noise: str | None
    delta: EpsilonLike | None
    max_groups: int | Literal["auto"] | None
    max_rows: int | Literal["auto"] | None
    max_total: int | None
    bounding: Bounding | None
    keys: Mapping[str, Sequence[object]] | None
    params: Mapping[str, object] | Sequence[object]
    weights: Mapping[str, int] | None
    weight: str | None
    within: float | str | Mapping[str, float] | None
    at_least: float | None
    at_most: EpsilonLike | None
    total_error: bool
    rows_per_unit_at_most: int | None
    assume_rows: int


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a question is asked.

    epsilon: what the answer may cost. rho: the same as zCDP, under a budget with delta. noise: "laplace" or "gaussian".
    delta: what finding groups privately may cost. max_groups, max_rows, max_total: how much one unit contributes, over
    what is declared; "auto" for groups and rows: found in the same charge. bounding: "groups" or "norm", over what is
    declared. keys: the groups of columns, by name. params: values for `$name` (a mapping) or `?` (a list). weights: how
    much the error of a column counts, by its name. weight: the column by which rows count in COUNT, SUM and AVG, as in
    a survey. within: in place of an amount, the half-width to keep; or a share of each estimate, as in "10 %", bought
    step by step; at_most: the largest epsilon for it. at_least: the size below which a group need not be within its
    share. total_error: whether intervals are to hold the total, with what bounds that are found leave out;
    rows_per_unit_at_most: how many rows one unit has at most, as whoever asks states. assume_rows: the number of values
    in a group for which the error of a mean is predicted.
    """

    epsilon: EpsilonLike | None = None
    rho: EpsilonLike | None = None
    noise: str | None = None
    delta: EpsilonLike | None = None
    max_groups: int | Literal["auto"] | None = None
    max_rows: int | Literal["auto"] | None = None
    max_total: int | None = None
    bounding: Bounding | None = None
    keys: Mapping[str, Sequence[object]] | None = None
    params: Mapping[str, object] | Sequence[object] = ()
    weights: Mapping[str, int] | None = None
    weight: str | None = None
    within: float | str | Mapping[str, float] | None = None
    at_least: float | None = None
    at_most: EpsilonLike | None = None
    total_error: bool = False
    rows_per_unit_at_most: int | None = None
    assume_rows: int = 1000

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """The options that were written, checked.

        Raises ParameterError for one that there is not, and for whatever can be told from them alone.
        """
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                near = meant_by(name, known)
                way = LeaveOut((name,)) if near is None else GiveOptions((near,), instead=(name,))
                said = f"{'Give ' if near else 'Ask '}{way.in_python()}."
                raise ParameterError(
                    f"{name!r} is not an option of a question. {did_you_mean(name, known)} {said}", remedy=way
                )
        options = cls(**given)
        options.check()
        return options

    def check(self) -> None:
        """Raises ParameterError for what can be told from the options alone."""
        _check_limits(self)
        given = [a for a in (self.epsilon, self.rho, self.within) if a is not None]
        if len(given) != 1:
            amounts = ("epsilon", "rho", "within", "at_most")
            ways = (("epsilon",), ("rho",), ("within", "at_most"))
            epsilon, rho, within = (GiveOptions(way, instead=amounts) for way in ways)
            raise ParameterError(
                f"a question is asked at one amount: {epsilon.in_python()}, {rho.in_python()} (under a budget with "
                f"delta), or {within.in_python()}",
                remedy=(epsilon, rho, within),
            )
        for name in _AMOUNTS:
            if getattr(self, name) is not None:
                an_amount(getattr(self, name), name)
        _check_rest(self)
        _check_share(self)
        if a_choice(self.total_error, "total_error") is False and self.rows_per_unit_at_most is not None:
            whole, without = GiveOptions(("total_error",), (True,)), LeaveOut(("rows_per_unit_at_most",))
            raise ParameterError(
                f"rows_per_unit_at_most=... goes with {whole.in_python()}: it says what the truth is. Ask so, or "
                f"{without.in_python()}.",
                remedy=(whole, without),
            )
        if self.rows_per_unit_at_most is not None:
            a_whole_number(self.rows_per_unit_at_most, "rows_per_unit_at_most")
        if self.within is not None and self.share is None:
            widths = list(self.within.values()) if isinstance(self.within, Mapping) else [self.within]
            fine = [w for w in widths if isinstance(w, int | float) and not isinstance(w, bool) and 0 < w < math.inf]
            if not widths or len(fine) < len(widths):
                way = GiveOptions(("within",))
                raise ParameterError(
                    f"within={what_was_given(self.within)}: expected a positive width, or one for each column named: "
                    f"{way.in_python()}.",
                    remedy=way,
                )
        if (self.within is None) != (self.at_most is None):
            within, at_most = GiveOptions(("within",)), GiveOptions(("at_most",))
            raise ParameterError(
                f"{within.in_python()} needs {at_most.in_python()}: the largest epsilon that may be spent to get "
                "there.",
                remedy=(at_most, within) if self.at_most is None else (within, at_most),
            )

    @property
    def share(self) -> Fraction | None:
        """The part of each estimate that `within` asks for, as in "10 %"."""
        written = _SHARE.fullmatch(self.within) if isinstance(self.within, str) else None
        return None if written is None else Fraction(written[1]) / 100

    @property
    def limits(self) -> Limits:
        """What a question says of contributions."""
        given = {"groups": self.max_groups, "rows": self.max_rows}
        numbers = {name: value if isinstance(value, int) else None for name, value in given.items()}
        auto = tuple(name for name, value in given.items() if value == "auto")
        return Limits(**numbers, total=self.max_total, bounding=self.bounding, auto=auto)

    def at(self, epsilon: EpsilonLike) -> Options:
        """The same at an epsilon, in place of `within`."""
        return replace(self, within=None, at_most=None, at_least=None, epsilon=epsilon)

    def to_wire(self) -> dict[str, Any]:
        """These options as JSON: those that are not the default.

        Raises ParameterError for a value of `keys` or `params` that has no form there.
        """
        wire: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _AMOUNTS and value is not None:
                wire[field.name] = str(an_amount(value, field.name))
            elif value != field.default:
                wire[field.name] = written_value(value, field.name)
        return wire

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Options:
        """What `to_wire` wrote.

        Raises ParameterError as `of` does.
        """
        return cls.of(given_in(wire))


def given_in(wire: Mapping[str, Any]) -> dict[str, Any]:
    """The options as they were written, of what `Options.to_wire` wrote."""
    return {name: read_value(value) for name, value in wire.items()}


def takes_options(method: _Method) -> _Method:
    """Show the options of a method that takes them as `**options`, one by one, in its signature."""
    own = inspect.signature(method)
    plain = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    positional = [p for p in plain if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    options = list(inspect.signature(Options).parameters.values())
    rest = [p for p in plain if p.kind is inspect.Parameter.KEYWORD_ONLY]
    method.__signature__ = own.replace(parameters=[*positional, *options, *rest])  # type: ignore[attr-defined]
    return cast("_Method", named(method))


def _check_share(options: Options) -> None:
    """Raises ParameterError for a share that is none, and for a floor that does not go with one."""
    if isinstance(options.within, str) and not (options.share and options.share < 1):
        way = GiveOptions(("within",))
        raise ParameterError(
            f'within={what_was_given(options.within)}: expected a share such as "10 %", or a width as a number: '
            f"{way.in_python()}.",
            remedy=way,
        )
    floor = options.at_least
    if floor is None:
        return
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 < floor <= _LARGEST:
        without = LeaveOut(("at_least",))
        raise ParameterError(
            f"at_least={what_was_given(floor)}: expected a number above 0: smaller groups need not be exact. Or ask "
            f"{without.in_python()}.",
            remedy=without,
        )
    if options.share is None:
        raise ParameterError(
            'at_least=... goes with a share, as in within="10 %"; for a width ask without at_least=.',
            remedy=LeaveOut(("at_least",)),
        )


def _check_rest(options: Options) -> None:
    """Raises ParameterError for a weight that is no name, and for a number of rows that is none."""
    if options.weight is not None and (not isinstance(options.weight, str) or not options.weight):
        way = GiveOptions(("weight",))
        raise ParameterError(
            f"weight={what_was_given(options.weight)}: expected the name of a column, as {way.in_python()}.", remedy=way
        )
    rows = options.assume_rows
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS:
        way = GiveOptions(("assume_rows",), (1000,))
        raise ParameterError(
            f"assume_rows={what_was_given(rows)}: expected a whole number from 1 to 10^18, as {way.in_python()}.",
            remedy=way,
        )


def _check_limits(options: Options) -> None:
    """Raises ParameterError for limits that are not whole numbers of at least 1, and for an unknown bounding."""
    bounding = options.bounding
    if bounding is not None and not (isinstance(bounding, str) and bounding in get_args(Bounding)):
        groups, norm = GiveOptions(("bounding",), ("groups",)), GiveOptions(("bounding",), ("norm",))
        raise ParameterError(
            f"bounding={what_was_given(bounding)}: expected {groups.in_python()} or {norm.in_python()}.",
            remedy=(groups, norm),
        )
    for name in ("max_groups", "max_rows", "max_total"):
        value = getattr(options, name)
        if isinstance(value, str) and value == "auto" and name != "max_total":
            continue
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31):
            way = GiveOptions((name,))
            raise ParameterError(
                f"{name}={what_was_given(value)}: expected a whole number from 1 to 2147483647: {way.in_python()}.",
                remedy=way,
            )


def written_value(value: object, what: str) -> Any:
    """A value as JSON; what JSON has not says its kind."""
    item = getattr(value, "item", None)
    if callable(item) and type(value).__module__ == "numpy" and not getattr(value, "shape", None):
        value = item()
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"$float": str(value)}
        case Decimal():
            return {"$decimal": str(value)}
        case Fraction():
            return {"$fraction": str(value)}
        case dt.datetime():
            return {"$datetime": value.isoformat()}
        case dt.date():
            return {"$date": value.isoformat()}
        case Mapping():
            return {"$mapping": [[written_value(k, what), written_value(v, what)] for k, v in value.items()]}
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [written_value(v, what) for v in value]
    raise ParameterError(
        f"{what}: a value of the type {type(value).__name__} cannot be sent to another process. Write it as text or "
        "as a number. Nothing was charged."
    )


_KINDS: Final[dict[str, Callable[[Any], Any]]] = {
    "$float": float,
    "$decimal": Decimal,
    "$fraction": lambda text: number(text, "a fraction"),  # of few digits: Fraction("1e999999999") takes hours
    "$datetime": dt.datetime.fromisoformat,
    "$date": dt.date.fromisoformat,
    "$mapping": lambda pairs: {read_value(k): read_value(v) for k, v in pairs},
}


def read_value(value: Any) -> Any:
    """What `written_value` wrote.

    Raises ParameterError for anything else.
    """
    if isinstance(value, list):
        return [read_value(v) for v in value]
    if not isinstance(value, dict):
        return value
    (kind, inner), *more = value.items() or [("", None)]
    if more or kind not in _KINDS:
        raise ParameterError("these options of a question were written by another version of hubbub, or by hand.")
    try:
        return _KINDS[kind](inner)
    except (ValueError, TypeError, ArithmeticError):
        raise ParameterError(f"an option of a question is not readable: {str(inner)[:40]!r}.") from None
