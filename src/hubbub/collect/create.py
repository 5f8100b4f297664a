"""To set a collection up: the task, and a folder for each of its three parties.

Each folder holds the task and its party's keys; an aggregator's also its empty state and its ledger, with the budget of
its clients. These are made here and nowhere else: a state or a ledger that is gone later is missed, not begun anew.
Give each folder to its party over a channel that others cannot read, and delete it here; `task.json` is for clients.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from hubbub.collect.batches import SPACE
from hubbub.collect.private import PrivateSum
from hubbub.collect.store import Store
from hubbub.collect.task import ROLES, Task, random_token, write_whole
from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger

__all__ = ["create"]


def create(
    folder: Path,
    plan: PrivateSum,
    *,
    budget: Budget,
    reports_per_client: int = 1,
    min_batch: int = 100,
    window: int = 3600,
) -> Task:
    """Make a task, its public file and the folders of its three parties.

    Raises:
        PolicyError: the folder is there already, or cannot be made.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    private = {role: X25519PrivateKey.generate() for role in ROLES}
    public: dict[str, bytes] = {role: key.public_key().public_bytes_raw() for role, key in private.items()}
    verify_key, query_key = random_token(32), random_token(32)
    task = Task(plan, reports_per_client, min_batch, window, public, hashlib.sha256(verify_key).digest())
    try:
        folder.mkdir(parents=True)
        for role in ROLES:
            own = folder / role
            own.mkdir(mode=0o700)
            keys = {
                "role": role,
                "private": private[role].private_bytes_raw().hex(),
                "verify_key": verify_key.hex() if role != "collector" else "",
                "query_key": query_key.hex(),
            }
            write_whole(own / "keys.json", json.dumps(keys).encode(), private=True)
            write_whole(own / "task.json", task.text.encode())
            if role != "collector":
                Store(own, task, new=True).close()
                Ledger.open(own / "ledger.db", budgets={SPACE: budget}).close()
        write_whole(folder / "task.json", task.text.encode())
    except OSError as error:
        raise PolicyError(f"{folder} cannot be made ({error.strerror}); name a folder that is not there yet.") from None
    return task
