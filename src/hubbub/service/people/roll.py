"""The roll: who is known, in which roles, and whether he may come in.

    active      may do what his roles say
    disabled    may do nothing; his tokens wait
    left        may do nothing; his tokens and grants have ended, his answers stay, and nobody gets his name

At least one steward stays active: there is no way to lose the last one but on the machine itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, Final

from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.charge import checked_analyst
from hubbub.service.people.keys import digest, new_link
from hubbub.service.people.person import checked_roles
from hubbub.service.people.store import Store, Writing, after

__all__ = ["Roll", "checked_name"]

_LONGEST: Final = 100
_OURS: Final = ("the service", "the policy", "hubbub", "hubbub.toml")  # by whom lines are written that nobody wrote
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that are none to the eye."""
_DAYS: Final = {"invitation": 7.0, "reset": 1.0}


def checked_name(name: str) -> str:
    """The name of somebody who is added.

    Raises QueryError where it is none: it stands in pages, in addresses, in the ledger, in the log and on terminals.
    """
    name = unicodedata.normalize("NFC", checked_analyst(name)).strip()
    strange = not name.isprintable() or name.startswith(("-", ".", "analyst:", "hub_", "inv_")) or "/" in name
    if not name or len(name) > _LONGEST or strange or _UNSEEN.search(name) or seen_as(name) in _OURS:
        raise QueryError(
            f"{name!r:.60} is not a name: expected 1 to {_LONGEST} characters that can be seen, no '/' among them, no "
            "'.' or '-' before them; and none that the service has itself."
        )
    return name


def seen_as(name: str) -> str:
    """What two names have in common that differ in case, or in width and form alone.

    >>> seen_as("Ada"), seen_as("\uff41\uff24\uff21")
    ('ada', 'ada')
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


class Roll:
    """People in the file."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, name: str, roles: Iterable[str], *, by: str) -> tuple[str, str]:
        """Add somebody; the key of the link with which he chooses a passphrase, and until when it holds.

        Raises QueryError for what is not a name or a role, PolicyError for a name that is taken.
        """
        name, have = checked_name(name), checked_roles(roles)
        with self._store.writing() as write:
            taken = write("SELECT name, state FROM person WHERE folded = ?", seen_as(name)).fetchone()
            if taken is not None:
                raise PolicyError(
                    f"the name {taken[0]!r} is taken: it is {taken[1]}. Each person has a name of his own."
                )
            write(
                "INSERT INTO person VALUES (?, ?, 'active', ?, NULL, ?)",
                name, seen_as(name), " ".join(have), write.time,
            )  # fmt: skip
            write.note(by, "person added", name=name, roles=have)
            return _link(write, name, "invitation")

    def everybody(self) -> list[dict[str, Any]]:
        """All of them, by name."""
        rows = self._store.rows(
            "SELECT name, state, roles, made, passphrase IS NOT NULL, EXISTS (SELECT 1 FROM subject WHERE "
            "subject.person = person.name), (SELECT max(until) FROM link WHERE link.person = person.name), (SELECT "
            "count(*) FROM token WHERE token.person = person.name AND ended IS NULL AND until > ?) FROM person "
            "ORDER BY folded",
            self._store.moment(),
        )
        return [
            {
                "name": name,
                "state": state,
                "roles": roles.split(),
                "added": made,
                "passphrase": bool(passphrase),
                "provider": bool(bound),
                "link_until": link,
                "tokens": tokens,
            }
            for name, state, roles, made, passphrase, bound, link, tokens in rows
        ]

    def roles(self, name: str) -> tuple[str, ...]:
        """The roles of somebody who is active; none of anybody else."""
        row = self._store.row("SELECT roles FROM person WHERE name = ? AND state = 'active'", name)
        return () if row is None else tuple(row[0].split())

    def set_roles(self, name: str, roles: Iterable[str], *, by: str) -> None:
        """Give somebody roles in place of those he had. His sessions end, so that he comes in with a new one.

        Raises QueryError for what is not a role, PolicyError for nobody, and for the last steward.
        """
        have = checked_roles(roles)
        with self._store.writing() as write:
            _known(write, name)
            if "steward" not in have:
                _check_last(write, name)
            write("UPDATE person SET roles = ? WHERE name = ?", " ".join(have), name)
            write("DELETE FROM session WHERE person = ?", name)
            write.note(by, "roles changed", name=name, roles=have)

    def disable(self, name: str, *, by: str, left: bool = False) -> None:
        """Let somebody do nothing from now on. left: he does not come back: his tokens end too.

        Raises PolicyError for nobody, and for the last steward.
        """
        with self._store.writing() as write:
            _known(write, name)
            _check_last(write, name)
            write("UPDATE person SET state = ? WHERE name = ?", "left" if left else "disabled", name)
            write("DELETE FROM session WHERE person = ?", name)
            write("DELETE FROM link WHERE person = ?", name)
            write("UPDATE wish SET state = 'withdrawn' WHERE person = ? AND state = 'open'", name)
            if left:
                write("UPDATE token SET ended = ? WHERE person = ? AND ended IS NULL", write.time, name)
                _forget(write, name)
            write.note(by, "person left" if left else "person disabled", name=name)

    def enable(self, name: str, *, by: str) -> None:
        """Let somebody come in again who was disabled, or left; what has ended stays ended.

        Raises PolicyError for nobody.
        """
        with self._store.writing() as write:
            _known(write, name)
            write("UPDATE person SET state = 'active' WHERE name = ?", name)
            write.note(by, "person enabled", name=name)

    def reset(self, name: str, *, by: str) -> tuple[str, str]:
        """A link for somebody whose passphrase is lost: the old one, his bound account and his sessions end now.

        Raises PolicyError for nobody, and for somebody who is not active.
        """
        with self._store.writing() as write:
            if _known(write, name) != "active":
                raise PolicyError(f"{name!r} is not active: enable him first.")
            _forget(write, name)
            write("DELETE FROM session WHERE person = ?", name)
            write.note(by, "passphrase reset", name=name)
            return _link(write, name, "reset")

    def first_steward(self) -> tuple[str, str] | None:
        """Where no steward can come in and none is invited, one is added, or invited again: his name, and the link's
        key.
        """
        with self._store.writing() as write:
            stewards = write(
                "SELECT name, passphrase IS NOT NULL OR EXISTS (SELECT 1 FROM link WHERE person = name AND until > ?) "
                "OR EXISTS (SELECT 1 FROM subject WHERE person = name) FROM person WHERE state = 'active' AND "
                "' ' || roles || ' ' LIKE '% steward %' ORDER BY made",
                write.time,
            ).fetchall()
            if any(can for _, can in stewards):
                return None
            if stewards:
                return stewards[0][0], _link(write, stewards[0][0], "invitation")[0]
            name = next(n for n in ("steward", *(f"steward-{k}" for k in range(2, 1000))) if _is_free(write, n))
            write("INSERT INTO person VALUES (?, ?, 'active', 'steward', NULL, ?)", name, name, write.time)
            write.note("the service", "person added", name=name, roles=["steward"])
            return name, _link(write, name, "invitation")[0]


def _link(write: Writing, name: str, kind: str) -> tuple[str, str]:
    """A new link in place of the old ones."""
    key, until = new_link(), after(write.time, days=_DAYS[kind])
    write("DELETE FROM link WHERE person = ? OR until <= ?", name, write.time)
    write("INSERT INTO link VALUES (?, ?, ?, ?)", digest(key), kind, name, until)
    return key, until


def _forget(write: Writing, name: str) -> None:
    """All by which somebody logs in."""
    write("UPDATE person SET passphrase = NULL WHERE name = ?", name)
    write("DELETE FROM subject WHERE person = ?", name)


def _known(write: Writing, name: str) -> str:
    row = write("SELECT state FROM person WHERE name = ?", name).fetchone()
    if row is None:
        raise PolicyError(f"there is nobody of the name {name!r:.120} here.")
    return str(row[0])


def _is_free(write: Writing, name: str) -> bool:
    return write("SELECT 1 FROM person WHERE folded = ?", name).fetchone() is None


def _check_last(write: Writing, name: str) -> None:
    stewards = write(
        "SELECT name FROM person WHERE state = 'active' AND ' ' || roles || ' ' LIKE '% steward %'"
    ).fetchall()
    if [each for (each,) in stewards] == [name]:
        raise PolicyError(f"{name!r} is the last steward. Give somebody else the role first.")
