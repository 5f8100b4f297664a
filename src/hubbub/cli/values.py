"""Frozen dataclasses, made in a fifth of the time, in a process that asks one question and ends.

The standard library writes six methods of a frozen dataclass as text and compiles each. Some 270 such classes are
loaded for a question, a quarter of what the command takes. Here `__init__` alone is compiled; the other five are
closures over the names of the fields. They do the same: a test compares every class of the package made in both ways.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, Final

__all__ = ["begin"]

Method = Callable[..., Any]

_standard: Final = dataclasses.dataclass
_made: Final[set[type]] = set()


def begin() -> None:
    """From here on, classes of hubbub's are made this way in this process."""
    dataclasses.dataclass = dataclass


def dataclass(made: type | None = None, /, **options: Any) -> Any:
    """As of the standard library, which makes whatever is not a plain frozen class of ours."""
    if made is None:
        return lambda made: dataclass(made, **options)
    bases = [base for base in made.__mro__[1:] if dataclasses.is_dataclass(base)]
    ours = made.__module__.startswith("hubbub.") and _made.issuperset(bases)
    if not (ours and options.get("frozen") and options.keys() <= {"frozen", "init", "repr", "eq"}):
        return _standard(made, **options)
    own = {name for name, value in vars(made).items() if not (name == "__hash__" and value is None)}
    # Not said to be frozen: its `__init__` would assign as one may not, and its checks would be compiled.
    _standard(made, init=False, repr=False, eq=False)
    for method in _methods(made, **options):
        if method.__name__ not in own:
            method.__qualname__ = f"{made.__qualname__}.{method.__name__}"
            setattr(made, method.__name__, method)
    _made.add(made)
    return made


def _methods(made: type, *, frozen: bool, init: bool = True, repr: bool = True, eq: bool = True) -> Iterator[Method]:
    """What the standard library would write."""
    assert frozen
    fields = dataclasses.fields(made)
    yield from _checks(made, frozenset(field.name for field in fields))
    if init:
        yield _init(fields, then=hasattr(made, "__post_init__"))
    if repr:
        yield _repr([field.name for field in fields if field.repr])
    if eq:
        yield _eq(_values([field.name for field in fields if field.compare]))
        yield _hash(_values([f.name for f in fields if (f.compare if f.hash is None else f.hash)]))


def _checks(made: type, names: frozenset[str]) -> tuple[Method, Method]:
    """Nothing is assigned or deleted."""

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)  # type: ignore[arg-type]

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)  # type: ignore[arg-type]

    return __setattr__, __delattr__


def _init(fields: Sequence[Field[Any]], *, then: bool) -> Method:
    """Compiled: so that arguments are taken, and missed, as they are everywhere. then: whether more is to be done."""
    beside: dict[str, Any] = {"__missing": MISSING, "__set": object.__setattr__}
    plain: list[str] = []
    named, lines = ["*"], []
    for field in fields:
        name = value = argument = field.name
        if field.default is not MISSING:
            beside[f"__default_{name}"] = field.default
            argument, default = f"{name}=__default_{name}", f"__default_{name}"
        elif field.default_factory is not MISSING:
            beside[f"__made_{name}"] = field.default_factory
            argument, default = f"{name}=__missing", f"__made_{name}()"
            value = f"{default} if {name} is __missing else {name}"
        elif not field.init:
            continue
        if field.init:
            (named if field.kw_only else plain).append(argument)
        lines.append(f" __set(self, {name!r}, {value if field.init else default})")
    if then:
        lines.append(" self.__post_init__()")
    head = ", ".join(["self", *plain, *(named if len(named) > 1 else [])])
    exec("\n".join([f"def __init__({head}):", *lines, " return None"]), beside)
    written: Method = beside["__init__"]
    return written


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of fields, in a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def _repr(names: Sequence[str]) -> Method:
    def __repr__(self: Any) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({shown})"

    return recursive_repr()(__repr__)


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Method:
    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Method:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__
