"""The sessions of pages: a cookie's value, kept as its SHA-256, for twelve hours.

A session is made at a login and at no other time, with a value of its own: what was known before a login opens nothing
after it. It ends by itself, by logging out, by its person from another one, and with each change of its person's
passphrase, roles or state.

Of the device nothing is kept but what its browser says of itself, in two words: it tells sessions apart for their own
person, and proves nothing.
"""

from __future__ import annotations

import hmac
from contextlib import suppress
from typing import Any, Final

from hubbub.errors import PolicyError, QueryError
from hubbub.service.people.keys import Passphrases, checked_passphrase, csrf_of, digest, new_cookie
from hubbub.service.people.person import NotAllowed, NotKnown, Person, TooMany, scopes_of
from hubbub.service.people.store import Store, Writing, after
from hubbub.service.rates import Rate

__all__ = ["Sessions"]

_HOURS: Final = 12
_LONGEST: Final = 60
_SHOWN: Final = 16
_GONE: Final = "this link was used, or has ended. Ask a steward for another one."
_WRONG: Final = "the name or the passphrase is not right."
_ENDED: Final = "this session has ended: log in."
_STILL: Final = "{0}.until > ? AND person.state = 'active'"
_SESSION: Final = (
    "SELECT person.roles, session.person, session.until FROM session JOIN person ON person.name = session.person "
    f"WHERE session.hash = ? AND {_STILL.format('session')}"
)
_TOKEN: Final = (
    "SELECT person.roles FROM token JOIN person ON person.name = token.person "
    f"WHERE token.id = ? AND token.ended IS NULL AND {_STILL.format('token')}"
)


class Sessions:
    """The sessions in the file. logins: how many tries a minute for one name."""

    def __init__(self, store: Store, *, logins: float = 5.0) -> None:
        self._store, self._passphrases = store, Passphrases()
        self._logins, self._tries = logins, Rate(logins / 60, logins)
        self._confirmed = Rate(logins / 60, logins)  # its own: who does not get in keeps nobody from it

    def person(self, cookie: str) -> Person:
        """Whose session it is.

        Raises NotKnown where it is nobody's, or has ended.
        """
        row = self._store.row(_SESSION, digest(cookie), self._store.moment())
        if row is None:
            raise NotKnown(_ENDED)
        roles, name, until = row
        have = tuple(roles.split())
        return Person(name, have, scopes_of(have), until, session=digest(cookie), csrf=csrf_of(cookie))

    def check_form(self, person: Person, word: str) -> None:
        """Raises NotAllowed where a form does not hold its session's word."""
        if not hmac.compare_digest(str(person.csrf).encode(), word.encode("utf-8", "replace")):
            raise NotAllowed("this form is not one of your session's: load the page again.")

    def login(self, name: str, passphrase: str, device: str = "") -> tuple[str, Person]:
        """A new session: the cookie's value, and whose it is. device: what the browser says of itself.

        Raises NotKnown where name and passphrase do not fit, TooMany after too many tries.
        """
        kept = self._check(self._tries, name, passphrase, "login refused")
        with self._store.writing() as write:
            if write("SELECT passphrase FROM person WHERE name = ?", name).fetchone() != (kept,):
                raise NotKnown(_WRONG)  # it was changed meanwhile
            cookie = self.begin(write, name, device)
        return cookie, self.person(cookie)

    def confirm(self, person: Person, passphrase: str) -> None:
        """Raises NotAllowed where it is not this person's passphrase, TooMany after too many tries; and NotKnown where
        what he proved himself with ended while it was computed.
        """
        if self._store.row("SELECT passphrase FROM person WHERE name = ?", person.name) == (None,):
            raise NotAllowed(
                "this takes a passphrase, and you have none: ask a steward for a link, choose one with it, and bind "
                "your account anew on the page Account. Nothing was done."
            )
        try:
            self._check(self._confirmed, person.name, passphrase, "passphrase refused")
        except NotKnown:
            raise NotAllowed("the passphrase is not right. Nothing was done.") from None
        self._check_still(person)

    def _check_still(self, person: Person) -> None:
        """Raises NotKnown where a session or token has ended since, or its person has other roles."""
        token = "" if person.token is None else person.token.id
        asked, proof = (_TOKEN, token) if person.session is None else (_SESSION, person.session)
        row = self._store.row(asked, proof, self._store.moment())
        if row is None or tuple(row[0].split()) != person.roles:
            raise NotKnown(_ENDED)

    def _check(self, tries: Rate, name: str, passphrase: str, act: str) -> str:
        """What is kept of the passphrase, which is right."""
        whose = digest(name.casefold())  # as long as any other, however long the name: names that are none count, too
        with self._passphrases.place():  # before it counts: who makes up names waits for each, and makes none forgotten
            if not tries.takes(whose):
                wait = tries.wait(whose)
                raise TooMany(f"{self._logins:g} tries a minute for one name; try again in {wait} seconds.", wait)
            row = self._store.row("SELECT passphrase FROM person WHERE name = ? AND state = 'active'", name)
            right = self._passphrases.is_right(passphrase, None if row is None else row[0])
        if not right:
            with suppress(PolicyError):  # of a full disk: who is known here must not show by that
                if row is None:  # of others nothing is kept: a name that is none may be a passphrase, typed there
                    self._store.note_nothing()
                else:
                    self._store.note(name, act, {})
            raise NotKnown(_WRONG)
        return str(row[0])

    def begin(self, write: Writing, name: str, device: str, *, by: str | None = None) -> str:
        """A new session of somebody, in a transaction: the cookie's value. device: what the browser says of itself. by:
        how he came in, if not by a passphrase or a link.
        """
        cookie = new_cookie()
        write("DELETE FROM session WHERE until <= ?", write.time)
        write(
            "INSERT INTO session SELECT ?, name, ?, ?, ? FROM person WHERE name = ? AND state = 'active'",
            digest(cookie), write.time, after(write.time, hours=_HOURS), device[:_LONGEST], name,
        )  # fmt: skip
        write.note(name, "login", **({} if by is None else {"by": by}))
        return cookie

    def invited(self, key: str) -> tuple[str, str]:
        """Whom a link is for, and its kind.

        Raises NotKnown where it was used or has ended.
        """
        return self.invited_by(digest(key))

    def invited_by(self, kept: str) -> tuple[str, str]:
        """The same, by what is kept of a link."""
        row = self._store.row("SELECT person, kind FROM link WHERE hash = ? AND until > ?", kept, self._store.moment())
        if row is None:
            raise NotKnown(_GONE)
        return row[0], row[1]

    def accept(self, key: str, passphrase: str, device: str = "") -> tuple[str, Person]:
        """Choose a passphrase by a link, once; and a session.

        Raises NotKnown where the link was used or has ended, QueryError for a passphrase that is too weak.
        """
        name, kind = self.invited(key)
        if kind == "enter":
            raise NotKnown(_GONE)
        kept = self._passphrases.kept(checked_passphrase(passphrase, name))
        with self._store.writing() as write:
            self.use(write, digest(key))
            write("UPDATE person SET passphrase = ? WHERE name = ?", kept, name)
            write("DELETE FROM session WHERE person = ?", name)
            write.note(name, "passphrase chosen", by=kind)
            cookie = self.begin(write, name, device)
        return cookie, self.person(cookie)

    def enter(self, key: str, device: str = "") -> tuple[str, Person]:
        """A session by a link that opens one, once.

        Raises NotKnown where it was used or has ended.
        """
        with self._store.writing() as write:
            name, kind = self.use(write, digest(key))
            if kind != "enter":
                raise NotKnown(_GONE)
            cookie = self.begin(write, name, device)
        return cookie, self.person(cookie)

    def entrance(self, name: str, key: str, *, minutes: float) -> None:
        """Let a link open one session of somebody, for some minutes; in place of an invitation that waits."""
        with self._store.writing() as write:
            write("DELETE FROM link WHERE person = ? AND kind = 'invitation'", name)
            write("INSERT INTO link VALUES (?, 'enter', ?, ?)", digest(key), name, after(write.time, minutes=minutes))
            write.note("the service", "entrance made", name=name)

    def change(self, person: Person, old: str, new: str) -> tuple[str, Person]:
        """Another passphrase. All sessions end, and a new one begins.

        Raises NotAllowed where the old one is not right, QueryError for one that is too weak, NotKnown where the
        session ended meanwhile: a link that a steward made for a lost one stays the only way in.
        """
        self.confirm(person, old)
        kept = self._passphrases.kept(checked_passphrase(new, person.name))
        with self._store.writing() as write:
            own = write("SELECT device FROM session WHERE hash = ?", str(person.session)).fetchone()
            if own is None:
                raise NotKnown(_ENDED)
            write("UPDATE person SET passphrase = ? WHERE name = ?", kept, person.name)
            write("DELETE FROM session WHERE person = ?", person.name)
            write.note(person.name, "passphrase changed")
            cookie = self.begin(write, person.name, own[0])
        return cookie, self.person(cookie)

    def logout(self, person: Person) -> None:
        """End a session."""
        with self._store.writing() as write:
            write("DELETE FROM session WHERE hash = ?", str(person.session))
            write.note(person.name, "logout")

    def of(self, person: Person) -> list[dict[str, Any]]:
        """His sessions that have not ended, this one first, then the newest first. id: a piece of its hash."""
        rows = self._store.rows(
            "SELECT substr(hash, 1, ?), made, until, device, hash = ? FROM session WHERE person = ? AND until > ? "
            "ORDER BY 5 DESC, made DESC",
            _SHOWN,
            str(person.session),
            person.name,
            self._store.moment(),
        )
        names = ("id", "since", "until", "device", "here")
        return [dict(zip(names, (*row[:4], bool(row[4])), strict=True)) for row in rows]

    def end(self, person: Person, which: str | None = None) -> int:
        """End one of his sessions, or all but this one; how many ended.

        Raises QueryError where none of his is called so.
        """
        with self._store.writing() as write:
            ended = write(
                "DELETE FROM session WHERE person = ? AND until > ? AND CASE WHEN ? IS NULL THEN hash <> ? ELSE "
                "substr(hash, 1, ?) = ? END",
                person.name, write.time, which, str(person.session), _SHOWN, which,
            ).rowcount  # fmt: skip
            if which is not None and not ended:
                raise QueryError("there is no such session of yours: it has ended already.")
            write.note(person.name, "sessions ended", ended=ended)
        return int(ended)

    def use(self, write: Writing, kept: str) -> tuple[str, str]:
        """Use a link up, by what is kept of it: whom it was for, and its kind.

        Raises NotKnown where it was used or has ended.
        """
        row = write(
            "SELECT link.person, link.kind FROM link JOIN person ON person.name = link.person WHERE hash = ? AND "
            "until > ? AND person.state = 'active'",
            kept, write.time,
        ).fetchone()  # fmt: skip
        if row is None:
            raise NotKnown(_GONE)
        write("DELETE FROM link WHERE hash = ?", kept)
        return row[0], row[1]
