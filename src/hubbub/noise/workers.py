"""Several threads for one large draw.

numpy's loops and AES run without the interpreter lock, and every thread has a key stream of its own, so the
parts of a large draw can be filled side by side. The threads live as long as one call: there is no pool to
find again after a fork, to shut down, or to meet in a signal handler. They are started below the module
`threading`, whose locks a signal handler could find taken by the very code that it interrupted.
"""

from __future__ import annotations

import os
import sys
from _thread import LockType, allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable

from hubbub.noise.bits import forks
from hubbub.plain import quick

__all__ = ["in_parts"]

# A worker holds up to seven megabytes of buffers, and a few of them fill memory as fast as it can be written.
_MOST_WORKERS = 6
_PATIENCE = 0.1


def in_parts(work: Callable[[int, int], None], n: int, part: int, *, threads: bool) -> None:
    """Call work(start, stop) for consecutive parts of 0 .. n of at most `part`, each once; with `threads`, side by
    side.

    An error in any part is raised here, after all threads have ended. `work` must allow to be called again for
    a part: a process forked in the midst of it, in a signal handler, does all of it again by itself.
    """
    # Once the interpreter is ending, new threads never come to run.
    threads = threads and quick("noise threads")
    most = min(_idle(), _MOST_WORKERS, n) if threads and n and not sys.is_finalizing() else 1
    part = min(part, max(1, -(-n // most)))
    starts = range(0, n, part)
    helpers = max(0, min(most, len(starts)) - 1)
    generation = forks()
    todo = deque(starts)
    failures: list[BaseException] = []

    def run() -> None:
        while todo:
            try:
                start = todo.popleft()
            except IndexError:  # another thread took the last one
                return
            work(start, min(start + part, n))

    def help_out(done: LockType) -> None:
        try:
            run()
        except BaseException as error:  # raised again where the call came from
            todo.clear()
            failures.append(error)
        finally:
            done.release()

    ends: list[LockType] = []
    try:
        _start(help_out, helpers, ends)
        run()
    finally:
        todo.clear()
        whole = _awaited(ends, generation)
    if failures:
        raise failures[0]
    if not whole:
        for start in starts:
            work(start, min(start + part, n))


def _start(help_out: Callable[[LockType], None], helpers: int, ends: list[LockType]) -> None:
    """Start up to `helpers` threads, each known in `ends` by the lock that it releases when it ends."""
    for _ in range(helpers):
        done = allocate_lock()
        done.acquire()
        try:
            start_new_thread(help_out, (done,))
        except RuntimeError:  # the system's limit, or the interpreter is ending: fewer will do
            return
        ends.append(done)


def _awaited(ends: list[LockType], generation: int) -> bool:
    """Wait for the threads; False in a forked child, where they do not exist."""
    for done in ends:
        while not done.acquire(timeout=_PATIENCE):
            if forks() != generation:
                return False
    return forks() == generation


def _idle() -> int:
    """The processors that this process may use and nobody else does, its own one included.

    Linux tells how many tasks run at this moment, this one included. A thread that has to wait for a processor
    would make the others wait for the interpreter lock, so on a busy machine one thread is quicker than two.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            running = int(file.read(64).split()[3].partition(b"/")[0])
    except (OSError, IndexError, ValueError):
        return usable
    return max(1, min(usable, (os.cpu_count() or 1) - running + 1))
