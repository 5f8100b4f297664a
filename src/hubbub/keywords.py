"""A call that does not fit its function is refused in our words: which argument, and what was meant.

Python says such a thing as a TypeError, before the function runs. `named` says it as a ParameterError, so that a
spelling mistake in a keyword reads like one in a question.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import ParamSpec, TypeVar

from hubbub.errors import ParameterError

__all__ = ["named", "named_calls"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def named(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The same function; a call that does not fit it raises ParameterError.

    >>> @named
    ... def ask(sql, *, epsilon): ...
    >>> ask("SELECT 1", epsilom=1)
    Traceback (most recent call last):
    hubbub.errors.ParameterError: ask: 'epsilom' is not an argument. Did you mean 'epsilon'?
    """

    @functools.wraps(function)
    def called(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if inside:
                raise
            problem = _problem(function, str(error), set(kwargs))
        raise ParameterError(problem)

    return called


def named_calls(cls: type[_Result]) -> type[_Result]:
    """The same class; a call of it or of a public method of its own that does not fit raises ParameterError."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, FunctionType) and (name == "__init__" or name[0] != "_"):
            setattr(cls, name, named(value))
        elif isinstance(value, classmethod) and name[0] != "_":
            setattr(cls, name, classmethod(named(value.__func__)))
    return cls


def _problem(function: Callable[..., object], text: str, given: set[str]) -> str:
    """What does not fit, and what to write."""
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    parameters = [
        p for p in inspect.signature(function).parameters.values() if p.name[0] != "_" and p.name not in ("self", "cls")
    ]
    keywords = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    unknown = sorted(given - set(keywords))
    if "unexpected keyword" in text and unknown:
        close = difflib.get_close_matches(unknown[0], keywords, n=1)
        allowed = f"Did you mean {close[0]!r}?" if close else f"Allowed: {', '.join(keywords)}."
        return f"{name}: {unknown[0]!r} is not an argument. {allowed}"
    missing = re.findall(r"'(\w+)'", text)
    if "missing" in text and missing:
        return (
            f"{name}: {' and '.join(map(repr, missing))} {'is' if len(missing) == 1 else 'are'} missing. {_how(name)}"
        )
    first = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return f"{name}: {'only ' + ', '.join(first) if first else 'nothing'} is given without a name. {_how(name)}"


def _how(name: str) -> str:
    examples = {
        "table": 'Write hb.table("visits.parquet", unit="patient_id").',
        "sql": 'Write session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1).',
        "check": 'Write session.check("SELECT COUNT(*) FROM visits", epsilon=0.1).',
        "between": "Write hb.between(0, 120).",
        "Session": 'Write hb.Session({"visits": visits}, budget=hb.Budget(epsilon=1), ledger="budget.db").',
        "connect": 'Write hb.connect("https://data.example.org", token=...).',
        "Budget": "Write hb.Budget(epsilon=1).",
    }
    return examples.get(name, f"help({name}) shows its arguments.")
