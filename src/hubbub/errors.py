"""What can go wrong, sorted by what the reader should do next.

Every error says what was asked, what was found, what is allowed, and the next step. None ever holds a value
taken from private rows. Exit codes are those of the command line.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from numbers import Number
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from hubbub.remedies import Remedy

_OURS = __file__.removesuffix("errors.py")

__all__ = [
    "BudgetError",
    "EngineError",
    "HubbubError",
    "InternalError",
    "ParameterError",
    "PolicyError",
    "QueryError",
    "how_to_install",
    "what_was_given",
]


class HubbubError(Exception):
    """The base of every error hubbub raises on purpose. remedies: ways out, as data (`hubbub.remedies`). position:
    where in the text of the question, from its first character to the one after its last; None where it is not a place.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, *parts: object, remedy: Remedy | Sequence[Remedy] = ()) -> None:
        super().__init__(*parts)
        self.remedies: tuple[Remedy, ...] = tuple(remedy) if isinstance(remedy, Sequence) else (remedy,)
        self.position: tuple[int, int] | None = None

    @property
    def remedy(self) -> Remedy | None:
        """The first way out; None where there is none but to read the text."""
        return self.remedies[0] if self.remedies else None

    def _render_traceback_(self) -> list[str]:
        """For notebooks (IPython's protocol): the caller's own lines and the text, without those of hubbub."""
        import traceback

        frames = traceback.extract_tb(self.__traceback__)
        own = [f for f in frames if not f.filename.startswith(_OURS) and "IPython" not in f.filename]
        return [*(line.rstrip() for line in traceback.format_list(own)), f"{type(self).__name__}: {self}"]

    def said(self, words: Callable[[Remedy], str]) -> str:
        """The text with each remedy in other words: those of a face. What was asked, below it, stays as it is."""
        first, line, rest = str(self).partition("\n")
        for remedy in sorted(self.remedies, key=lambda r: -len(r.in_python())):
            first = first.replace(remedy.in_python(), words(remedy))
        return f"{first}{line}{rest}"


class QueryError(HubbubError):
    """The question cannot be asked like this: rewrite it."""

    exit_code = 2


class ParameterError(QueryError, ValueError):
    """A number given to a function is outside what the function allows: change it."""


class PolicyError(HubbubError):
    """Something about the table, its people or its budget is not declared, or declared wrongly: declare it."""

    exit_code = 3


class BudgetError(HubbubError):
    """The budget does not hold the charge. `asked` and `left` say by how much, as text."""

    exit_code = 4

    def __init__(
        self, message: str, *, asked: str = "", left: str = "", remedy: Remedy | Sequence[Remedy] = ()
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.asked = asked
        self.left = left


class EngineError(HubbubError):
    """The engine failed. The text is fixed and holds only an id, because *how* it failed depends on the rows."""

    exit_code = 5

    def __init__(self, incident: str) -> None:
        super().__init__(
            f"the engine could not finish the question (incident {incident}). The charge stays, because that it "
            "failed may depend on the data; the steward finds the incident in the ledger."
        )
        self.incident = incident


class InternalError(HubbubError):
    """A defect of hubbub itself: report it."""


def what_was_given(value: object) -> str:
    """An argument as an error shows it: what people type as it is written, of all else its type. A frame or an array
    that was passed by mistake may hold people's rows.

    >>> what_was_given("age"), what_was_given(3), what_was_given(["Ada", "Bob"])
    ("'age'", '3', 'a list')
    """
    plain = str | bytes | dt.date | dt.time | dt.timedelta | Number
    if value is None or isinstance(value, plain) or getattr(value, "shape", None) == ():  # numpy's single values
        return repr(value)
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def how_to_install(extra: str = "", *, needed: bool = True) -> str:
    """How to get what hubbub, or one of its extras, needs.

    From a checkout alone: whoever holds our name on a package index could put anything under it.

    >>> how_to_install("plot")
    "In a checkout of hubbub run: pip install '.[plot]'"
    """
    wanted = f"'.[{extra}]'" if extra else "."
    return f"{'In' if needed else 'If you need it, in'} a checkout of hubbub run: pip install {wanted}"
