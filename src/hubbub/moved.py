"""Public names of a class that a value which it holds has now: for a release they lead there, with a warning."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

__all__ = ["Moved"]


class Moved:
    """A class with names that have moved. `_moved`: for each old name, the path from the object on that leads to it.

    >>> class Release(Moved):
    ...     _moved = {"spent": "receipt.epsilon"}
    >>> Release().cost
    Traceback (most recent call last):
    AttributeError: 'Release' object has no attribute 'cost'
    """

    _moved: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # to a type checker they are gone

        def __getattr__(self, name: str) -> Any:
            path = type(self)._moved.get(name)
            try:
                if path is None:
                    raise AttributeError(name)
                value = operator.attrgetter(path)(self)
            except AttributeError:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None
            text = f"{type(self).__name__}.{name} is now {type(self).__name__}.{path}; the old name will go"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return value
