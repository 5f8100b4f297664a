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
from typing import ParamSpec, TypeVar

from hubbub.errors import ParameterError

__all__ = ["named"]

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


def _problem(function: Callable[..., object], text: str, given: set[str]) -> str:
    """What does not fit, and what to write."""
    name, parameters = function.__name__, inspect.signature(function).parameters.values()
    keywords = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "self"]
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
    first = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "self"]
    return f"{name}: {'only ' + ', '.join(first) if first else 'nothing'} is given without a name. {_how(name)}"


def _how(name: str) -> str:
    examples = {
        "table": 'Write hb.table("visits.parquet", unit="patient_id").',
        "sql": 'Write session.sql("SELECT COUNT(*) FROM visits", epsilon=0.1).',
        "check": 'Write session.check("SELECT COUNT(*) FROM visits", epsilon=0.1).',
        "between": "Write hb.between(0, 120).",
    }
    return examples.get(name, f"help({name}) shows its arguments.")
