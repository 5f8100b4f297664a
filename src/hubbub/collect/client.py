"""The client: reports of own measurements, one file of them.

Only the device needs to be trusted by its person. Everything random is fresh for each report; a report that is sent
twice is counted once, because its id is part of both shares' proofs and boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from hubbub.collect.field import Bytes
from hubbub.collect.prio3 import NONCE_SIZE
from hubbub.collect.task import Task, random_token
from hubbub.collect.wire import REPORTS, Sealer, box_info, number, report_layout
from hubbub.errors import ParameterError, PolicyError

__all__ = ["make_reports", "write_reports"]

_CHUNK: Final = 4096


def _random(n: int, width: int) -> Bytes:
    return np.frombuffer(random_token(n * width), np.uint8).reshape(n, width)


def make_reports(task: Task, measurements: Sequence[Any], time: int) -> Bytes:
    """Reports, (n, width), of measurements taken at `time`, in seconds since 1970; the window alone is told.

    Raises:
        QueryError: a measurement is not valid.
    """
    if not 0 <= time < 1 << 60:
        raise ParameterError(f"time = {time} was asked; give seconds since 1970.")
    n, prio3 = len(measurements), task.prio3
    nonces, when = _random(n, NONCE_SIZE), number(time - time % task.window)
    public, inputs = prio3.shard(measurements, nonces, _random(n, prio3.rand_size))
    columns = {"id": nonces, "time": np.broadcast_to(np.frombuffer(when, np.uint8), (n, 8)), "public": public}
    for role, shares in zip(("leader", "helper"), inputs, strict=True):
        sealer = Sealer(task.keys[role])
        boxes = [
            sealer.seal(share.tobytes(), box_info(task, role, nonce.tobytes(), when, part.tobytes()))
            for nonce, part, share in zip(nonces, public, shares, strict=True)
        ]
        columns[role] = np.frombuffer(b"".join(boxes), np.uint8).reshape(n, len(boxes[0]) if boxes else 0)
    return report_layout(task).join(columns)


def write_reports(task: Task, measurements: Iterator[Any], time: int, path: Path) -> int:
    """Write a file of reports; how many."""
    written, chunk = 0, list[Any]()
    try:
        with path.open("xb") as file:
            file.write(REPORTS + task.id)
            for measurement in measurements:
                chunk.append(measurement)
                if len(chunk) == _CHUNK:
                    file.write(make_reports(task, chunk, time).tobytes())
                    written += len(chunk)
                    chunk = []
            if chunk:
                file.write(make_reports(task, chunk, time).tobytes())
    except OSError as error:
        raise PolicyError(f"{path} cannot be written ({error.strerror}); name a file that is not there yet.") from None
    return written + len(chunk)
