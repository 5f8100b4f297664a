"""What keeps a command quick to start, in a process of its own.

Modules make many objects that stay, and none that are garbage: the collector looks for it less often, in a process that
asks one question hardly ever, and not once more as the process ends.

pyarrow looks for pandas when it makes its first array, which takes longer than most questions do. No question of the
command line has to do with data frames, but on Spark, so it finds none, once and for this process; whoever else imports
pandas later gets it.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Final, NoReturn

from hubbub.cli import values
from hubbub.process import begin_command, is_command

__all__ = ["begin", "end", "without_pandas"]

_OBJECTS: Final = 50_000
"""So many new objects between two collections."""

_OBJECTS_ONCE: Final = 1_000_000
"""The same, where one question is asked: more than there are."""

_ONE_THREAD: Final = ("OPENBLAS_NUM_THREADS", "1")
"""Of numpy's linear algebra, which otherwise starts one for each processor as it is loaded; they wait by running."""

_ONCE: Final = ("check", "query")
"""Commands that ask one question, and end."""


class _NoPandas(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")


def begin(arguments: Sequence[str]) -> None:
    """This process is a command's and nobody else's. arguments: of the command line."""
    once = bool(arguments) and arguments[0] in _ONCE
    begin_command(once=once)
    gc.set_threshold(_OBJECTS_ONCE if once else _OBJECTS, 20, 20)
    if once:
        values.begin()
        os.environ.setdefault(*_ONE_THREAD)


def end(code: int) -> NoReturn:
    """End the process as Python does, but for taking its objects apart one by one: whatever is there goes with it.

    Looking for garbage among all modules takes longer than many questions; leaving it out alone makes the binding of
    DuckDB report each of its objects as lost.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            code = code or 120  # Python's own, where a stream cannot be written
    os._exit(code)


def without_pandas(policy: Path) -> None:
    """Let pyarrow look for pandas now, and find none: where the process is a command's, and no table is on Spark."""
    if not is_command() or "pandas" in sys.modules:
        return
    with suppress(OSError, UnicodeError):
        if "spark:" in policy.read_text("utf-8"):
            return
    import pyarrow as pa

    hidden = _NoPandas()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hidden)
