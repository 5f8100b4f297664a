"""The process of a runner: rows and noise, no ledger, no key; one question, then it is ended.

    python -m hubbub.service.runner FD          FD: its socket to the clerk

It is told which policy, opens the tables, shuts itself in (`confine`), and says what the declarations found. Then it
waits for one order, runs it and says the outcome. The clerk has written the step to 'drawing' before it sends the
order. Spark's tables stand in its driver's process, which is this one: it is not shut in there, and ends where its Java
ends while it waits.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import traceback
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hubbub.confine import confine
from hubbub.errors import HubbubError
from hubbub.file_formats import files_of
from hubbub.ledger.policy import Policy, load_policy
from hubbub.process import begin_command
from hubbub.service.ends import end_with, end_with_child, end_with_starter
from hubbub.service.frames import receive, send
from hubbub.session.copies import copy_place

__all__ = ["main", "readable"]

_MIB = 1 << 20
_ASIDE = 4  # times its memory: what its engine may put aside on disk


def main(arguments: list[str]) -> int:
    """Run one question for the clerk at the other end of a socket."""
    connection = socket.socket(fileno=int(arguments[0]))
    told = receive(connection)
    if told is None:
        return 0
    end_with_starter()
    _first_to_go()
    _say_nothing()
    begin_command(once=True)
    policy = load_policy(told["policy"])
    try:
        runner, schema, held = _opened(policy, told["objects"])
    except HubbubError as error:
        send(connection, {"refused": str(error)})
        return 1
    except Exception as error:  # whatever it was, its words are not ours
        send(connection, {"refused": f"the tables cannot be opened ({type(error).__name__})"})
        return 1
    end_with(connection)  # its thread is inside the walls
    idle, java = threading.Event(), _java()
    idle.set()
    if java is not None:
        end_with_child(java, idle)
    _yield_to_others()
    send(connection, {"ready": schema, "held": held})
    order = receive(connection)
    idle.clear()
    if order is not None:
        runner.limit(float(order["seconds"]))
        send(connection, {"outcome": _executed(runner, order["order"])})
        receive(connection)  # until it is ended: every process is replaced at the same time, whatever it did
    return 0


def readable(policy: Policy) -> list[Path]:
    """The files that a runner may read: those that the policy names, and those that it names by a pattern or a link; in
    place of a table that is read from its copy the folder of the copies, where each refresh puts another file.
    """
    copies = {name: copy_place(policy, table) for name, table in policy.tables.items()}
    folders = {place.parent for place in copies.values() if place is not None}
    there = [path for name, path in policy.files() if copies.get(name) is None]
    return [*sorted(folders), *(place for path in there for place in (path, *map(Path, files_of(path))))]


def _opened(policy: Policy, objects: Mapping[str, str]) -> tuple[Any, Any, dict[str, Any]]:
    """The tables, opened inside the walls. What needs no rows is loaded before. objects: where those of an object store
    were copied to.
    """
    from hubbub.engines.duckdb.bounds import bound
    from hubbub.noise import set_mode
    from hubbub.session.empty import schema_of
    from hubbub.session.open import declared_tables
    from hubbub.session.runner import Runner
    from hubbub.tables.declare import PrivateTable

    remote = [table for table in policy.remote() if table.name not in objects]
    if not any(str(table.source).startswith("spark:") for table in remote):
        held = confine(
            read=[*readable(policy), *map(Path, objects.values())],
            write=[Path(os.environ["TMPDIR"])],
            network=bool(remote),
            data=(policy.service.memory + 1024) * _MIB,
        )
        shown = vars(held)
    else:
        shown = {"landlock": 0, "undumpable": False, "no_new_privs": False, "network": True}
    memory = policy.service.memory * _MIB
    bound(memory=memory, disk=_ASIDE * memory, threads=max(1, len(_cores()) - 1))
    tables = declared_tables(policy)
    for name, table in tables.items():
        if isinstance(table, PrivateTable) and name in objects:
            tables[name] = replace(table, copy=objects[name])
    runner = Runner(tables)
    runner.alone()
    set_mode("hardened")
    return runner, schema_of(runner._data), shown


def _java() -> subprocess.Popen[bytes] | None:
    """The Java of this process, where it is the driver of Spark's tables."""
    if "pyspark" not in sys.modules:
        return None
    from hubbub.engines.spark.session import java_process

    return java_process()


def _executed(runner: Any, text: str) -> str:
    """The outcome of an order as text; of whatever goes wrong, an incident."""
    from hubbub.session.run import Order, Outcome

    order = Order.from_wire(text)
    try:
        return str(runner.execute(order, drawing=lambda: None).to_wire())
    except Exception:  # what it says may hold rows: for the steward alone
        return Outcome(order.charge, incident=uuid.uuid4().hex[:12], words=traceback.format_exc()).to_wire()


def _cores() -> list[int]:
    """The cores that this process may run on; all of them where the system does not say."""
    try:
        return sorted(os.sched_getaffinity(0))
    except (OSError, AttributeError):
        return list(range(os.cpu_count() or 1))


def _yield_to_others() -> None:
    """Leave a core to front and clerk; where there is one alone, the right of way. All threads, once there is nothing
    left but to run: what comes before is due at a time, so that the next question finds a process. Not both: beside
    other programs of the machine nice 10 takes most of a run's work, which has to be done in time, too.
    """
    cores = _cores()
    with suppress(OSError, AttributeError):
        for thread in map(int, os.listdir("/proc/self/task")):
            if len(cores) > 1:
                os.sched_setaffinity(thread, cores[1:])
            else:
                os.setpriority(os.PRIO_PROCESS, thread, max(10, os.getpriority(os.PRIO_PROCESS, thread)))


def _say_nothing() -> None:
    """Write to no log: what an engine, or Java, says by itself may hold rows. What is to be known goes to the clerk."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _first_to_go() -> None:
    """Be the first to go where memory is short."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
