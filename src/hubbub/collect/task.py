"""A collection task: what is collected, at what privacy, by whom; and the folders of its parties.

A *task* is public. Its id is the SHA-256 of all of it, with the digest of the aggregators' verification key; it is part
of every hash and every encryption of the task's reports. So a report is bound to the circuit's parameters, and the
aggregators to a key that they had before the first report (draft-irtf-cfrg-vdaf-20, section 9.1).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import numpy as np

from hubbub.accounting.amounts import amount
from hubbub.collect.circuits import circuit, whole
from hubbub.collect.prio3 import Prio3
from hubbub.collect.private import PrivateSum
from hubbub.errors import HubbubError, ParameterError, PolicyError
from hubbub.noise import system_bits

__all__ = ["ROLES", "Keys", "Role", "Task", "random_token", "read_task", "write_whole"]

Role = Literal["leader", "helper", "collector"]
ROLES: Final[tuple[Role, ...]] = ("leader", "helper", "collector")
_FORMAT: Final = 1
_MOST: Final = 1 << 20
_BAD_TASK: Final = (
    "this is not a collection task of this hubbub; take the task.json that `hubbub collect create` wrote."
)


def random_token(size: int) -> bytes:
    """Fresh random bytes."""
    out = np.empty(size, np.uint8)
    system_bits().fill(out)
    return out.tobytes()


def write_whole(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a file whole or not at all, and durably: others find it complete under its name, or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o644)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@dataclass(frozen=True)
class Task:
    """What is collected: a circuit with its noise, and the parties' public keys.

    reports_per_client: how many reports of one client a batch may hold; nobody can check it, and the charge is for so
    many. min_batch: fewer reports are not released (that is caution, not privacy). window: seconds; batches are whole
    windows, and reports tell no finer time.
    """

    plan: PrivateSum
    reports_per_client: int
    min_batch: int
    window: int
    keys: Mapping[str, bytes]
    key_digest: bytes

    def __post_init__(self) -> None:
        whole(self.reports_per_client, "reports_per_client", 1, 1 << 20)
        whole(self.min_batch, "min_batch", 1, 1 << 40)
        whole(self.window, "window", 1, 1 << 32)
        if self.plan.aggregators != 2:
            raise ParameterError("a task of files has two aggregators, a leader and a helper.")
        if set(self.keys) != set(ROLES) or {len(k) for k in (*self.keys.values(), self.key_digest)} != {32}:
            raise ParameterError("a task has a public key of 32 bytes for each of leader, helper and collector.")

    @cached_property
    def text(self) -> str:
        """The task as JSON, the same for equal tasks."""
        plan = self.plan
        noise = {"rho": str(plan.rho)} if plan.epsilon is None else {"epsilon": str(plan.epsilon)}
        return json.dumps(
            {
                "hubbub.collect": _FORMAT,
                "circuit": plan.circuit.parameters,
                **noise,
                "reports_per_client": self.reports_per_client,
                "min_batch": self.min_batch,
                "window": self.window,
                "keys": {role: self.keys[role].hex() for role in ROLES},
                "key_digest": self.key_digest.hex(),
            },
            sort_keys=True,
            indent=1,
        )

    @cached_property
    def id(self) -> bytes:
        """32 bytes that name it."""
        return hashlib.sha256(self.text.encode()).digest()

    @cached_property
    def prio3(self) -> Prio3:
        """Its computation; the task's id is the context."""
        return Prio3(self.plan.circuit, 2, b"hubbub.collect 1 " + self.id)

    @classmethod
    def read(cls, text: str) -> Task:
        """The task of a JSON text.

        Raises:
            PolicyError: it is none.
        """
        try:
            written = json.loads(text)
            if written.pop("hubbub.collect") != _FORMAT:
                raise PolicyError(_BAD_TASK)
            noise = [None if name not in written else amount(written[name], name) for name in ("epsilon", "rho")]
            task = cls(
                PrivateSum(circuit(written["circuit"]), epsilon=noise[0], rho=noise[1]),
                written["reports_per_client"],
                written["min_batch"],
                written["window"],
                {str(role): bytes.fromhex(key) for role, key in written["keys"].items()},
                bytes.fromhex(written["key_digest"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, HubbubError):
            raise PolicyError(_BAD_TASK) from None
        if json.loads(task.text) != {"hubbub.collect": _FORMAT, **written}:
            raise PolicyError(_BAD_TASK)
        return task


def read_small(path: Path, what: str) -> str:
    """A text of at most 1 MiB.

    Raises:
        PolicyError: it is not there, or is not such a text.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST + 1)
        if len(data) > _MOST:
            raise PolicyError(f"{path} is too large to be {what}.")
        return data.decode("utf-8")
    except OSError as error:
        raise PolicyError(f"{path} cannot be read ({error.strerror}); name {what}.") from None
    except UnicodeDecodeError:
        raise PolicyError(f"{path} is not {what}.") from None


def read_task(path: Path) -> Task:
    """The task in a file.

    Raises:
        PolicyError: there is none.
    """
    return Task.read(read_small(path, "a collection task"))


@dataclass(frozen=True, repr=False)
class Keys:
    """What one party holds in secret. The collector has no verification key, and must not get it."""

    role: Role
    private: bytes
    verify_key: bytes
    query_key: bytes

    @classmethod
    def read(cls, folder: Path, role: Role, task: Task) -> Keys:
        """The keys in a party's folder, seen to be those of the task.

        Raises:
            PolicyError: they are not.
        """
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        try:
            written = json.loads(read_small(folder / "keys.json", "a party's keys"))
            keys = cls(written["role"], *(bytes.fromhex(written[n]) for n in ("private", "verify_key", "query_key")))
            public = X25519PrivateKey.from_private_bytes(keys.private).public_key().public_bytes_raw()
        except (KeyError, TypeError, ValueError):
            raise PolicyError(
                f"{folder / 'keys.json'} holds no keys of a party; take the folder that was made."
            ) from None
        if keys.role != role:
            raise PolicyError(f"{folder} is the folder of the {keys.role}; this command is the {role}'s.")
        digest = hashlib.sha256(keys.verify_key).digest()
        if public != task.keys[role] or (role != "collector" and digest != task.key_digest):
            raise PolicyError(f"the keys in {folder} are those of another task; take the folder that was made with it.")
        return keys
