"""What sqlglot parses while it is imported, put off in a process that asks one question.

Its writer of DuckDB's SQL holds some twenty templates, for functions such as Snowflake's ARRAY_EXCEPT. They are parsed
when the module is imported, which took an eighth of the CPU of a short question. Here each is parsed when it is used.
"""

from __future__ import annotations

import importlib
import sys
from functools import cached_property
from typing import Any, Final

from sqlglot import exp

from hubbub.process import asks_once

__all__ = ["put_off"]

_WRITER: Final = "sqlglot.generators.duckdb"

_parse = exp.maybe_parse


class _Later:
    """What `maybe_parse` gives for these arguments, made when it is first looked at."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._asked = args, options

    @cached_property
    def _tree(self) -> Any:
        args, options = self._asked
        return _parse(*args, **options)

    def __get__(self, instance: object, owner: type) -> Any:
        return self._tree

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tree, name)


def put_off() -> None:
    """Import the writer with its templates put off: in a process that has no other threads, and no time to lose."""
    if not asks_once() or _WRITER in sys.modules:
        return
    names = vars(exp)
    names["maybe_parse"] = _Later
    try:
        importlib.import_module(_WRITER)
    finally:
        names["maybe_parse"] = _parse
