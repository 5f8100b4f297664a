"""Who somebody is by his proof, and what he does with his own account.

Each method whose first parameter is a `Person` is an act of the room "people" in `hubbub.service.acts`, which says who
may; what it returns is plain values for JSON. What stewards do with others is in `hubbub.service.people.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hubbub.errors import PolicyError
from hubbub.ledger.accounts import token_account
from hubbub.ledger.budget import decimal_text
from hubbub.service.people.person import NotKnown, Person
from hubbub.service.people.roll import Roll
from hubbub.service.people.sessions import Sessions
from hubbub.service.people.store import Store, now
from hubbub.service.people.tokens import Tokens
from hubbub.service.people.wishes import Wishes

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger

__all__ = ["People", "link_of"]

_LINKS: Final = {"invitation": "/invitation/", "reset": "/invitation/", "enter": "/enter/"}
_NO_PROOF: Final = "send Authorization: Bearer TOKEN, with a token of this service."


def link_of(kind: str, key: str, url: str = "") -> str:
    """Where a link leads.

    >>> link_of("invitation", "inv_x", "https://data.example.org")
    'https://data.example.org/invitation/inv_x'
    """
    return f"{url.rstrip('/')}{_LINKS[kind]}{key}"


class People:
    """The people of a service. ledger: where the caps of tokens stand. url: where its pages are."""

    def __init__(
        self,
        path: Path,
        *,
        ledger: Ledger | None = None,
        key: bytes | None = None,
        keys: Callable[[], Sequence[bytes | None]] | None = None,
        logins: float = 5.0,
        url: str = "",
        clock: Callable[[], str] = now,
    ) -> None:
        self.store = Store(path, key=key, keys=keys, clock=clock)
        self.wishes = Wishes(self.store)
        self.roll, self.keys, self.sessions = Roll(self.store), Tokens(self.store), Sessions(self.store, logins=logins)
        self.url, self._ledger = url, ledger

    def prove(self, proof: object, *, changes: bool = False) -> Person:
        """Whose proof this is: {"token": ...}, or {"session": ..., "csrf": ...}. changes: then a session's form must
        hold its word.

        Raises NotKnown, NotAllowed.
        """
        match proof:
            case {"token": str(token)}:
                return self.keys.person(token)
            case {"session": str(cookie), **rest}:
                person = self.sessions.person(cookie)
                if changes:
                    self.sessions.check_form(person, str(rest.get("csrf") or ""))
                return person
            case _:
                raise NotKnown(_NO_PROOF)

    def confirm(self, person: Person, passphrase: str) -> None:
        """Raises NotAllowed where it is not this person's passphrase."""
        self.sessions.confirm(person, passphrase)

    # Without a proof

    def login(self, name: str, passphrase: str, device: str = "") -> dict[str, Any]:
        """A session of somebody who knows his passphrase."""
        return _begun(*self.sessions.login(name, passphrase, device))

    def invited(self, key: str) -> dict[str, Any]:
        """Whom a link is for."""
        name, kind = self.sessions.invited(key)
        return {"name": name, "kind": kind}

    def accept(self, key: str, passphrase: str, device: str = "") -> dict[str, Any]:
        """Choose a passphrase by a link, once; and a session."""
        return _begun(*self.sessions.accept(key, passphrase, device))

    def enter(self, key: str, device: str = "") -> dict[str, Any]:
        """A session by a link that opens one, once."""
        return _begun(*self.sessions.enter(key, device))

    # Of one's own

    def whoami(self, person: Person) -> dict[str, Any]:
        """Who somebody is here."""
        token = None
        if person.token is not None:
            most, cap = (None if a is None else decimal_text(a) for a in (person.token.most, person.token.cap))
            token = {"id": person.token.id, "most": most, "cap": cap}
        return {
            "name": person.name,
            "roles": list(person.roles),
            "scopes": sorted(person.scopes),
            "until": person.until,
            "token": token,
            "csrf": person.csrf,
        }

    def logout(self, person: Person) -> dict[str, Any]:
        """End the session."""
        self.sessions.logout(person)
        return {"name": person.name}

    def devices(self, person: Person) -> list[dict[str, Any]]:
        """One's sessions of pages."""
        return self.sessions.of(person)

    def end_device(self, person: Person, *, device: str) -> dict[str, Any]:
        """End one of them."""
        return {"ended": self.sessions.end(person, device)}

    def end_other_devices(self, person: Person) -> dict[str, Any]:
        """End all of them but this one."""
        return {"ended": self.sessions.end(person)}

    def change_passphrase(self, person: Person, *, old: str, new: str) -> dict[str, Any]:
        """Another passphrase, and a new session."""
        return _begun(*self.sessions.change(person, old, new))

    def tokens(self, person: Person) -> list[dict[str, Any]]:
        """One's own tokens."""
        return self.keys.of(person.name)

    def create_token(self, person: Person, **given: Any) -> dict[str, Any]:
        """A token of one's own, shown this once."""
        return self.new_token(person.name, by=person.name, under=person, **given)

    def end_token(self, person: Person, *, token: str) -> dict[str, Any]:
        """End a token of one's own; with a token, itself, or one that may do no more."""
        self.keys.end(token, by=person.name, owner=person.name, under=person)
        return {"token": token}

    # For the clerk, and for whoever sits at the machine

    def new_token(self, name: str, *, by: str, under: Person | None = None, **given: Any) -> dict[str, Any]:
        """A token of somebody, whose cap is in the ledger before anybody sees it."""
        if given.get("cap") is not None and self._ledger is None:
            raise PolicyError("a cap stands in the ledger, which is not open here.")
        text, limits, until = self.keys.create(name, by=by, under=under, **given)
        if limits.cap is not None and self._ledger is not None:
            try:
                for space in self._ledger.balance.spaces():
                    amount = min(limits.cap, self._ledger.balance.ceiling(space))
                    account = token_account(limits.id)
                    self._ledger.steward.grant(space, account, amount, author=by, reason="the cap of a token")
            except BaseException:
                self.keys.end(limits.id, by=by)
                raise
        return {"token": text, "id": limits.id, "until": until}

    def close(self) -> None:
        """Let go of the file."""
        self.store.close()


def _begun(cookie: str, person: Person) -> dict[str, Any]:
    return {
        "session": cookie,
        "csrf": person.csrf,
        "until": person.until,
        "name": person.name,
        "roles": list(person.roles),
    }
