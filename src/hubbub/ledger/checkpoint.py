"""Where a walk over a ledger's chain ended, so that a later one can go on from there.

To verify a ledger takes a look at every line. A steward who did so yesterday may keep where that walk ended, outside
the ledger: the head, how many rows of each kind there were, and the sum of every account. A walk from there looks at
what was added since, and trusts the checkpoint for what stood before: a row of the past that was changed afterwards is
not found. So nobody trusts one unless told so, and a whole walk now and then is still needed.

Under a key a checkpoint bears an HMAC, so that none is trusted that somebody else wrote.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hubbub.errors import PolicyError
from hubbub.ledger.accounts import Total
from hubbub.ledger.charging import accounts_of
from hubbub.ledger.hash_chain import Connection, Head
from hubbub.ledger.schema import HASHED

__all__ = ["Checkpoint", "Past"]


@dataclass(frozen=True)
class Checkpoint:
    """The end of a walk that found nothing.

    rows: how many there were in all; kinds: of each kind. accounts: of each its unit space, its name, the line of the
    last charge that it paid for, and the sum of what it paid.
    """

    head: Head
    rows: int
    kinds: Mapping[str, int]
    accounts: tuple[tuple[str, str, int, Total], ...]

    def text(self, ledger: str, key: bytes | None) -> str:
        """As JSON, for the ledger with the id `ledger`."""
        accounts = [[space, name, serial, *total.written] for space, name, serial, total in self.accounts]
        content = {"checkpoint": 1, "ledger": ledger, "head": list(self.head), "rows": self.rows}
        content |= {"kinds": dict(self.kinds), "accounts": accounts}
        return json.dumps({**content, "mac": _mac(content, key)}, indent=1) + "\n"

    @classmethod
    def read(cls, text: str, ledger: str, key: bytes | None) -> Checkpoint:
        """What `text` wrote.

        Raises:
            PolicyError: it is not a checkpoint, is another ledger's, or was not written with this key.
        """
        try:
            content = json.loads(text)
            mac = content.pop("mac")
            serial, time, digest = content["head"]
            accounts = tuple((s, name, int(at), Total.read(*total)) for s, name, at, *total in content["accounts"])
            kinds = {str(kind): int(count) for kind, count in content["kinds"].items()}
            checkpoint = cls(Head(int(serial), str(time), str(digest)), int(content["rows"]), kinds, accounts)
            fits = content["checkpoint"] == 1 and kinds.keys() <= set(HASHED) and 0 <= checkpoint.head.serial < 2**63
            fits = fits and all(isinstance(name, str) for space, account, *_ in accounts for name in (space, account))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError, PolicyError):
            fits = False
        if not fits:
            raise PolicyError(
                "this is not a checkpoint of a ledger. `hubbub ledger verify --checkpoint FILE` writes one."
            )
        if content["ledger"] != ledger:
            raise PolicyError("the checkpoint is another ledger's.")
        if key is not None and not hmac.compare_digest(str(mac), str(_mac(content, key))):
            raise PolicyError("the checkpoint was not written with the ledger's key: somebody else wrote it.")
        return checkpoint


def _mac(content: Mapping[str, Any], key: bytes | None) -> str | None:
    if key is None:
        return None
    return hmac.new(key, b"hubbub checkpoint " + json.dumps(content, sort_keys=True).encode(), "sha256").hexdigest()


class Past:
    """What stands up to a line, looked up where a later line refers to it. line 0: nothing does."""

    def __init__(self, connection: Connection, line: int) -> None:
        self.line = line
        self._ask = connection.execute

    def state(self, charge: int) -> str | None:
        """The state of a charge at that line; None where there was no such charge."""
        if not 0 < charge <= self.line:
            return None
        row = self._ask(
            "SELECT (SELECT state FROM step WHERE step.charge = charge.serial AND step.serial <= ? "
            "ORDER BY step.serial DESC LIMIT 1) FROM charge WHERE serial = ?",
            (self.line, charge),
        ).fetchone()
        return None if row is None else row[0] or "charged"

    def is_spent(self, charge: int) -> bool:
        """Whether the one free retry of a charge was over."""
        if not 0 < charge <= self.line:
            return False
        ask = "SELECT 1 FROM step WHERE charge = ? AND serial <= ? AND state IN ('retried', 'drawing')"
        return self._ask(ask, (charge, self.line)).fetchone() is not None

    def held(self, block: str) -> Total:
        """What a block or plan set aside."""
        row = self._charge(block, "block", "plan")
        return Total() if row is None else Total.read(*row[1:5])

    def question(self, charge_id: str) -> tuple[int, Total, tuple[str, ...]] | None:
        """The line, cost and accounts of a question, if it gave nothing back until then; of a reading, with line 0."""
        kind, row = "question", self._charge(charge_id, "question")
        if row is None:
            kind, row = "reading", self._charge(charge_id, "reading")
        ask = "SELECT 1 FROM charge WHERE kind = 'return' AND block = ? AND serial <= ?"
        if row is None or self._ask(ask, (charge_id, self.line)).fetchone() is not None:
            return None
        return int(row[0]) if kind == "question" else 0, Total.read(*row[1:5]), accounts_of(kind, *row[5:])

    def _charge(self, charge_id: str, *kinds: str) -> Any:
        if not self.line:
            return None
        row = self._ask(
            "SELECT serial, pure, rho, delta, impure, dataset, analyst, block, details, kind FROM charge "
            "WHERE id = ? AND serial <= ?",
            (charge_id, self.line),
        ).fetchone()
        return row[:-1] if row is not None and row[-1] in kinds else None
