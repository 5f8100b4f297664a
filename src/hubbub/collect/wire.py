"""What the parties send one another, as files: fixed headers, fixed records, and nothing that a length could lie about.

    .reports   clients -> leader        task, then records: id 16, time 8, public share, leader's box, helper's box
    .job       leader -> helper         task, job 16, records: id, time, public share, helper's box, verifier share; tag
    .answer    helper -> leader         task, job 16, records: id, verdict 1, verifier message; tag
    .query     collector -> leader      task, from 8, to 8; tag
    .batch     leader -> helper         task, from, to, count 8, checksum 32; tag
    .share     aggregator -> collector  task, role 1, from, to, count 8, checksum 32, box; tag

Integers are little-endian; the checksum of a batch is the exclusive or of SHA-256 of its reports' ids. A *box* is HPKE
(RFC 9180; X25519, HKDF-SHA256, AES-128-GCM, base mode) to the receiver's key, with everything beside it as `info`. A
*tag* is HMAC-SHA256 under the aggregators' verification key, or the key that they share with the collector. Every
record of a task has the same size, so a file is cut into records by division; what is left over is truncated, and
counted. The manner is that of draft-ietf-ppm-dap; the bytes are not.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from hubbub.collect.field import Bytes
from hubbub.collect.prio3 import NONCE_SIZE
from hubbub.collect.task import Task
from hubbub.errors import PolicyError

__all__ = [
    "ANSWER",
    "BATCH",
    "BOX_EXTRA",
    "JOB",
    "QUERY",
    "REPORTS",
    "SHARE",
    "Layout",
    "box_info",
    "open_box",
    "read_sealed",
    "report_chunks",
    "report_layout",
    "seal",
    "seal_box",
]

REPORTS: Final = b"hubbub-reports-1\n"
JOB: Final = b"hubbub-job-1\n"
ANSWER: Final = b"hubbub-answer-1\n"
QUERY: Final = b"hubbub-query-1\n"
BATCH: Final = b"hubbub-batch-1\n"
SHARE: Final = b"hubbub-share-1\n"
BOX_EXTRA: Final = 48
"""How much longer a box is than what is in it."""
_TAG: Final = 32
_MOST_SEALED: Final = 1 << 28
_CHUNK_BYTES: Final = 8 << 20


@dataclass(frozen=True)
class Layout:
    """The fields of a record and their widths in bytes."""

    fields: tuple[tuple[str, int], ...]

    @property
    def width(self) -> int:
        """Of a whole record."""
        return sum(width for _, width in self.fields)

    def split(self, records: Bytes) -> dict[str, Bytes]:
        """The columns of records (n, width)."""
        out, start = {}, 0
        for name, width in self.fields:
            out[name] = records[:, start : start + width]
            start += width
        return out

    def join(self, columns: dict[str, Bytes]) -> Bytes:
        """Records from their columns."""
        return np.concatenate([columns[name] for name, _ in self.fields], axis=1)

    def rows(self, data: bytes) -> Bytes:
        """Records from bytes that hold a whole number of them."""
        return np.frombuffer(data, np.uint8).reshape(len(data) // self.width, self.width)


def report_layout(task: Task) -> Layout:
    """Of a .reports file."""
    prio3 = task.prio3
    boxes = (("leader", prio3.input_size(0) + BOX_EXTRA), ("helper", prio3.input_size(1) + BOX_EXTRA))
    return Layout((("id", NONCE_SIZE), ("time", 8), ("public", prio3.public_size), *boxes))


def job_layout(task: Task) -> Layout:
    """Of a .job file."""
    prio3 = task.prio3
    box = ("helper", prio3.input_size(1) + BOX_EXTRA)
    return Layout(
        (("id", NONCE_SIZE), ("time", 8), ("public", prio3.public_size), box, ("verifier", prio3.verifier_size))
    )


def answer_layout(task: Task) -> Layout:
    """Of an .answer file."""
    return Layout((("id", NONCE_SIZE), ("verdict", 1), ("message", task.prio3.message_size)))


def report_chunks(path: Path, task: Task, start: int = 0) -> Iterator[tuple[Bytes, int, int]]:
    """The records of a .reports file, some MiB at a time: records, the place after them, bytes left over at the end.

    Raises:
        PolicyError: it cannot be read, or is of another task.
    """
    width = report_layout(task).width
    size = max(1, _CHUNK_BYTES // width) * width
    try:
        with path.open("rb") as file:
            head = file.read(len(REPORTS) + 32)
            if head != REPORTS + task.id:
                raise PolicyError(
                    f"{path.name} holds no reports of this task; clients take the task.json of this folder."
                )
            place = max(start, len(head))
            file.seek(place)
            while data := file.read(size):
                whole = len(data) - len(data) % width
                place += whole
                yield report_layout(task).rows(data[:whole]), place, len(data) - whole
    except OSError as error:
        raise PolicyError(f"{path.name} cannot be read ({error.strerror}).") from None


def box_info(task: Task, role: str, *parts: bytes) -> bytes:
    """What a box is bound to."""
    return b"hubbub.collect 1 " + role.encode() + b"\0" + task.id + b"".join(parts)


def _suite() -> Any:
    from cryptography.hazmat.primitives import hpke

    return hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)


class Sealer:
    """Boxes for one public key."""

    def __init__(self, public: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        self._suite, self._key = _suite(), X25519PublicKey.from_public_bytes(public)

    def seal(self, plain: bytes, info: bytes) -> bytes:
        """A box."""
        return bytes(self._suite.encrypt(plain, self._key, info=info))


class Opener:
    """What is in boxes to one private key."""

    def __init__(self, private: bytes) -> None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._suite, self._key = _suite(), X25519PrivateKey.from_private_bytes(private)
        self._failures = (InvalidTag, ValueError)

    def open(self, box: bytes, info: bytes) -> bytes | None:
        """What is in a box, or None if it is for another key, about something else, or damaged."""
        try:
            return bytes(self._suite.decrypt(box, self._key, info=info))
        except self._failures:
            return None


def seal_box(public: bytes, plain: bytes, info: bytes) -> bytes:
    """One box."""
    return Sealer(public).seal(plain, info)


def open_box(private: bytes, box: bytes, info: bytes) -> bytes | None:
    """What is in one box."""
    return Opener(private).open(box, info)


def seal(kind: bytes, task: Task, key: bytes, body: bytes) -> bytes:
    """A whole message with its tag."""
    message = kind + task.id + body
    return message + hmac.new(key, message, hashlib.sha256).digest()


def read_sealed(path: Path, kind: bytes, task: Task, key: bytes) -> bytes:
    """The body of a message, if its tag is right.

    Raises:
        PolicyError: it cannot be read, is truncated, of another task, or was not written by a holder of the key.
    """
    try:
        if path.stat().st_size > _MOST_SEALED:
            raise PolicyError(f"{path.name} is larger than any message of this task.")
        data = path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path.name} cannot be read ({error.strerror}).") from None
    message, tag = data[:-_TAG], data[-_TAG:]
    if not message.startswith(kind + task.id):
        raise PolicyError(f"{path.name} is not a message of this kind and task, or is truncated.")
    if not hmac.compare_digest(tag, hmac.new(key, message, hashlib.sha256).digest()):
        raise PolicyError(
            f"{path.name} does not carry the right tag: it was changed or cut short, or its writer has other keys."
        )
    return message[len(kind) + 32 :]


def number(value: int) -> bytes:
    """8 bytes."""
    return value.to_bytes(8, "little")


def numbers(column: Bytes) -> list[int]:
    """The integers in a column of 8 bytes."""
    return [int(v) for v in np.ascontiguousarray(column).view("<u8").ravel()]


def ids_digest(ids: list[bytes]) -> int:
    """The exclusive or of SHA-256 of ids, as an integer."""
    out = 0
    for one in ids:
        out ^= int.from_bytes(hashlib.sha256(one).digest(), "little")
    return out
