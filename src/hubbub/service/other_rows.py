"""The versions of a service's tables: those of the rows that its policy names, whoever else asks beside it.

The clerk opens no source, so nothing tells it that a file was replaced: it takes the newest version that the ledger
knows, and only a steward's refresh makes another one. But which file, which table in it and how it is read stands in
the policy, and each charge says under which policy it was made. So a version of which something was asked about other
rows, by this policy as it was before or by another one on the same ledger, is not the service's: what is stored of it
is not given for the rows that are read here.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hubbub.ledger.versions import CHANGED, FIRST, Versions, issue, version_of

if TYPE_CHECKING:
    from hubbub.ledger.handle import Handle
    from hubbub.ledger.hash_chain import Connection, Writer
    from hubbub.ledger.policy import Policy

__all__ = ["OwnVersions", "rows_named"]

_READ: Final = ("source", "table", "csv", "rows_kept")
"""What a policy says of which rows of a table are read, and how; of the kinds of columns a question's own name does."""


def rows_named(policy: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a policy says of which rows of each private table are read, as it is written.

    >>> rows_named({"tables": {"v": {"source": "v.duckdb", "table": "visits", "unit": "id"}}})
    {'v': {'source': 'v.duckdb', 'table': 'visits'}}
    """
    return {
        name: {part: said[part] for part in _READ if part in said} for name, said in policy.get("tables", {}).items()
    }


OTHER_ROWS: Final = "the policy names other rows, and a question that was asked before waits"
"""Why a version is issued, where what waits reads them."""


class OwnVersions(Versions):
    """The versions of a ledger, as the service of a policy looks at them."""

    def __init__(self, handle: Handle, policy: Policy) -> None:
        super().__init__(handle)
        self._policy = policy
        self._own = rows_named(tomllib.loads(policy.text))
        self._asked: dict[str, tuple[int, set[str]]] = {}  # of a version: until which line, and under which policies
        self._texts: dict[str, str] = {}  # the policies, by their hashes

    def data_version(self, space: str, dataset: str, *, fingerprint: str | None = None) -> str:
        """As of any ledger; without a fingerprint the newest version of the rows that the policy names.

        A new one is passed over until it is known whose it is: that somebody whose source had changed asked first.
        """
        if fingerprint is not None:
            return super().data_version(space, dataset, fingerprint=fingerprint)
        known = self.known(space, dataset)
        if known is not None:
            return known
        with self._handle.writing() as writer:
            self._handle.budget(writer.connection, space)
            known = self._newest(writer.connection, space, dataset)
            if known is not None:
                return known
            reason = FIRST if version_of(writer.connection, space, dataset) is None else CHANGED
            return issue(writer, space, dataset, reason, None)

    def known(self, space: str, dataset: str, *, fingerprint: str | None = None) -> str | None:
        """As of any ledger; without a fingerprint the newest version of the rows that the policy names."""
        if fingerprint is not None:
            return super().known(space, dataset, fingerprint=fingerprint)
        with self._handle.reading() as connection:
            return self._newest(connection, space, dataset)

    def end_others(self, log: Callable[[str], None] = lambda _: None) -> None:
        """End the versions of each table of which a question that waits was asked under a policy that names other rows:
        it reads the rows that are named now, and what it tells is not stored of those. log: where it goes that it was.

        Raises PolicyError where the ledger cannot be read or written.
        """
        waiting = "SELECT charge FROM pending WHERE state = 'waiting'"
        with self._handle.reading() as connection:
            rows = connection.execute(
                f"SELECT DISTINCT data_version FROM charge WHERE serial IN ({waiting}) ORDER BY data_version"
            ).fetchall()
        for version in dict.fromkeys(one for (several,) in rows for one in str(several).split()):
            with self._handle.writing() as writer:
                ended = self._end_other(writer, version)
            if ended is not None:
                log(f"table {ended!r}: {OTHER_ROWS}")

    def _end_other(self, writer: Writer, version: str) -> str | None:
        ask = writer.connection.execute
        row = ask("SELECT unit_space, dataset, serial FROM data_version WHERE id = ?", (version,)).fetchone()
        if row is None or str(row[1]) not in self._own:
            return None
        space, table, serial = row
        policies = self._policies_of(writer.connection, version)
        if all(self._names_the_same(text, table) for text in policies):
            return None
        later = "SELECT reason FROM data_version WHERE unit_space = ? AND dataset = ? AND serial > ?"
        if any(reason not in (FIRST, CHANGED) for (reason,) in ask(later, (space, table, serial)).fetchall()):
            return None  # a refresh has ended it
        issue(writer, space, table, OTHER_ROWS, None)
        return str(table)

    def _newest(self, connection: Connection, space: str, dataset: str) -> str | None:
        rows = connection.execute(
            "SELECT id, reason, fingerprint FROM data_version WHERE unit_space = ? AND dataset = ? ORDER BY serial "
            "DESC",
            (space, dataset),
        ).fetchall()
        for version, reason, mark in rows:
            same = [one for one, _, its_mark in rows if one == version or (mark is not None and its_mark == mark)]
            policies = [text for one in same for text in self._policies_of(connection, one)]
            if all(self._names_the_same(text, dataset) for text in policies) and (
                policies or mark is None or reason != CHANGED
            ):
                return str(version)
            if reason not in (FIRST, CHANGED):
                return None  # what was asked before a declared refresh is of no rows any more
        return None

    def _policies_of(self, connection: Connection, version: str) -> list[str]:
        """The texts of the policies under which anything was asked about a version. A line is looked at once."""
        (last,) = connection.execute("SELECT coalesce(max(serial), 0) FROM charge").fetchone()
        seen, hashes = self._asked.get(version, (0, set()))
        if last > seen:
            new = connection.execute(
                "SELECT DISTINCT policy FROM charge WHERE serial > ? AND data_version LIKE ? AND policy IS NOT NULL",
                (seen, f"%{version}%"),
            ).fetchall()
            hashes = hashes | {str(digest) for (digest,) in new}
            self._asked[version] = last, hashes
        for digest in hashes - self._texts.keys():
            row = connection.execute("SELECT content FROM policy WHERE hash = ?", (digest,)).fetchone()
            self._texts[digest] = "" if row is None else str(row[0])
        return [self._texts[digest] for digest in sorted(hashes)]

    def _names_the_same(self, text: str, table: str) -> bool:
        """Whether a policy names the rows of a table that this one does. What a session in Python declares is JSON: its
        file, the table in it, and how it is read; it copies no rows.
        """
        with suppress(tomllib.TOMLDecodeError):
            return rows_named(tomllib.loads(text)).get(table) == self._own.get(table)
        own = self._policy.tables[table]
        with suppress(ValueError, AttributeError, TypeError, KeyError):
            said = json.loads(text).get(table)
            named = said["source"], said["inner_table"], said.get("csv")
            csv = None if own.csv is None else str(own.csv)
            return own.rows_kept is None and named == (str(own.source), str(own.table), csv)
        return False
