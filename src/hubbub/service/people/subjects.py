"""Accounts at a provider, and to whom they are bound: by the provider's own name of an account, to the letter.

Somebody is bound who was invited here, by himself: with the link of his invitation, or logged in and with his
passphrase. Nobody is made here because a provider knows him, and no name, address or e-mail of the provider's is looked
at: names that look alike are of no use to anybody. One account is bound to one person, and a person to one account.
"""

from __future__ import annotations

from hubbub.errors import PolicyError
from hubbub.service.people.person import NotAllowed, NotKnown, Person
from hubbub.service.people.sessions import Sessions
from hubbub.service.people.store import Store, Writing

__all__ = ["Subjects"]


class Subjects:
    """The bound accounts in the file."""

    def __init__(self, store: Store, sessions: Sessions) -> None:
        self._store, self._sessions = store, sessions

    def bound(self, name: str) -> bool:
        """Whether an account is bound to somebody."""
        return self._store.row("SELECT 1 FROM subject WHERE person = ?", name) is not None

    def login(self, issuer: str, subject: str, *, called: str, device: str = "") -> tuple[str, Person]:
        """A new session of whom an account is bound to. called: what the provider is called.

        Raises NotKnown where it is bound to nobody who may come in.
        """
        with self._store.writing() as write:
            row = write(
                "SELECT person.name FROM subject JOIN person ON person.name = subject.person WHERE issuer = ? AND "
                "subject = ? AND state = 'active'",
                issuer, subject,
            ).fetchone()  # fmt: skip
            if row is None:
                raise NotKnown(
                    f"your account at {called} is bound to nobody who may come in here. Open the link of your "
                    "invitation and bind it there, or log in with your passphrase and bind it on the page Account; ask "
                    "a steward for a link if you have neither."
                )
            cookie = self._sessions.begin(write, row[0], device, by="provider")
        return cookie, self._sessions.person(cookie)

    def check_link(self, kept: str) -> str:
        """Whom a link is for, by what is kept of it.

        Raises NotKnown where it was used or has ended, NotAllowed for a steward, who has a passphrase first.
        """
        name, kind = self._sessions.invited_by(kept)
        if kind == "enter":
            raise NotKnown("this link binds no account.")
        if "steward" in self._roles(name):
            raise NotAllowed(
                "a steward chooses a passphrase first, because what weakens a promise takes it; then bind your account "
                "on the page Account."
            )
        return name

    def bind_by_link(self, kept: str, issuer: str, subject: str, *, device: str = "") -> tuple[str, Person]:
        """Bind an account to whom a link is for, which is used up; and a session.

        Raises NotKnown, NotAllowed, PolicyError.
        """
        self.check_link(kept)
        with self._store.writing() as write:
            name, kind = self._sessions.use(write, kept)
            self._bind(write, name, issuer, subject, by=kind)
            cookie = self._sessions.begin(write, name, device, by="provider")
        return cookie, self._sessions.person(cookie)

    def bind_by_session(self, session: str, issuer: str, subject: str, *, device: str = "") -> tuple[str, Person]:
        """Bind an account to whose session this is, by what is kept of it: in place of the one before. All sessions
        end, and a new one begins.

        Raises NotKnown where the session has ended, PolicyError.
        """
        with self._store.writing() as write:
            row = write(
                "SELECT person.name FROM session JOIN person ON person.name = session.person WHERE hash = ? AND "
                "until > ? AND state = 'active'",
                session, write.time,
            ).fetchone()  # fmt: skip
            if row is None:
                raise NotKnown("the session in which you began this has ended: log in, and begin again.")
            self._bind(write, row[0], issuer, subject, by="passphrase")
            cookie = self._sessions.begin(write, row[0], device, by="provider")
        return cookie, self._sessions.person(cookie)

    def _bind(self, write: Writing, name: str, issuer: str, subject: str, *, by: str) -> None:
        taken = write("SELECT person FROM subject WHERE issuer = ? AND subject = ?", issuer, subject).fetchone()
        if taken is not None and taken[0] != name:
            raise PolicyError(
                "this account is bound to somebody else here. Log in at the provider with your own, or ask a steward, "
                "who ends a binding with a link for a new passphrase."
            )
        write("DELETE FROM subject WHERE person = ?", name)
        write("INSERT INTO subject VALUES (?, ?, ?, ?)", issuer, subject, name, write.time)
        write("DELETE FROM session WHERE person = ?", name)
        write.note(name, "provider bound", issuer=issuer, subject=subject, by=by)

    def _roles(self, name: str) -> list[str]:
        row = self._store.row("SELECT roles FROM person WHERE name = ?", name)
        return [] if row is None else str(row[0]).split()
