"""Data versions, and the texts of policies, which charges refer to.

**Data versions.** A refresh gives the data set a new random id, so that stored answers are not handed out for new rows.
It gives back no budget: the budget is the unit's, and neighbouring histories differ in one unit in all versions.
Fingerprints that detect a refresh are keyed with the ledger's own secret, because a file's size tells about its rows.
"""

from __future__ import annotations

import hashlib
import hmac
import uuid

from hubbub.errors import PolicyError
from hubbub.ledger.handle import Handle, checked_text
from hubbub.ledger.journal import Connection, Writer

__all__ = ["Versions"]


class Versions(Handle):
    """Which rows, and which policy, a question was asked about. Part of `Ledger`."""

    def data_version(self, space: str, dataset: str, *, fingerprint: str | None = None) -> str:
        """The random id of the data set's current rows; issued when first asked for.

        fingerprint: any text that changes when the rows do. Where it differs from the last one, that is a refresh.
        """
        with self._reading() as connection:
            mark = None if fingerprint is None else _mark(connection, fingerprint)
            known = _version(connection, space, dataset)
        if known is not None and (mark is None or known[1] == mark):
            return known[0]
        with self._writing() as writer:
            self._budget(writer.connection, space)
            known = _version(writer.connection, space, dataset)
            if known is not None and (mark is None or known[1] == mark):
                return known[0]
            reason = "first asked for" if known is None else "the source changed"
            return _issue(writer, space, dataset, reason, mark)

    def refresh(self, space: str, dataset: str, *, reason: str = "declared") -> str:
        """Declare that the data set has new rows: its new version. No budget comes back.

        Raises:
            PolicyError: the space has no budget.
        """
        with self._writing() as writer:
            self._budget(writer.connection, space)
            known = _version(writer.connection, space, dataset)
            return _issue(writer, space, dataset, reason, None if known is None else known[1])

    def remember_policy(self, content: str) -> str:
        """Keep the text of a policy once; its hash (SHA-256), which charges refer to."""
        digest = hashlib.sha256(checked_text(content, "policy").encode()).hexdigest()
        ask = "SELECT 1 FROM policy WHERE hash = ?"
        with self._reading() as connection:
            if connection.execute(ask, (digest,)).fetchone():
                return digest
        with self._writing() as writer:
            if not writer.connection.execute(ask, (digest,)).fetchone():
                writer.append("policy", digest, content)
        return digest

    def policy_text(self, digest: str) -> str:
        """The policy with this hash; the beginning of one suffices.

        Raises:
            PolicyError: none or several are known.
        """
        with self._reading() as connection:
            found = connection.execute("SELECT hash, content FROM policy").fetchall()
        texts = [text for known, text in found if digest and known.startswith(digest)]
        if len(texts) != 1:
            what = "no policy" if not texts else f"{len(texts)} policies"
            raise PolicyError(
                f"{what} with the hash {digest!r} in the ledger. `hubbub receipt ID` shows that of a charge."
            )
        return str(texts[0])


def _version(connection: Connection, space: str, dataset: str) -> tuple[str, str | None] | None:
    row = connection.execute(
        "SELECT id, fingerprint FROM data_version WHERE unit_space = ? AND dataset = ? ORDER BY serial DESC LIMIT 1",
        (space, dataset),
    ).fetchone()
    return None if row is None else (str(row[0]), row[1])


def _mark(connection: Connection, fingerprint: str) -> str:
    secret = connection.execute("SELECT secret FROM ledger").fetchone()[0]
    return hmac.new(secret.encode(), fingerprint.encode(), "sha256").hexdigest()


def _issue(writer: Writer, space: str, dataset: str, reason: str, mark: str | None) -> str:
    version = uuid.uuid4().hex
    writer.append(
        "data_version", space, checked_text(dataset, "data set"), version, checked_text(reason, "reason"), mark
    )
    return version
