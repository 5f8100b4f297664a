"""The registry: whom stewards let in, with which roles, and whom not any more. Each is a line of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hubbub.service.people.people import People, link_of
from hubbub.service.people.person import NotAllowed, Person

__all__ = ["Registry"]


class Registry:
    """What a steward does with other people's accounts: the acts of the room "registry" in `hubbub.service.acts`."""

    def __init__(self, people: People) -> None:
        self._people = people

    def invite(
        self, person: Person, *, name: str, roles: Sequence[str], passphrase: str | None = None
    ) -> dict[str, Any]:
        """Add somebody, and the link with which he chooses a passphrase. A steward: behind one's own."""
        self._check_steward(person, roles, passphrase)
        return self._link(*self._people.roll.add(name, roles, by=person.name))

    def set_roles(
        self, person: Person, *, name: str, roles: Sequence[str], passphrase: str | None = None
    ) -> dict[str, Any]:
        """Give somebody roles in place of those he had. The role of a steward: behind one's passphrase."""
        self._check_steward(person, roles, passphrase)
        self._people.roll.set_roles(name, roles, by=person.name)
        return {"name": name, "roles": list(self._people.roll.roles(name))}

    def disable(self, person: Person, *, name: str) -> dict[str, Any]:
        """Let somebody do nothing from now on."""
        self._people.roll.disable(name, by=person.name)
        return {"name": name}

    def enable(self, person: Person, *, name: str) -> dict[str, Any]:
        """Let somebody come in again."""
        self._people.roll.enable(name, by=person.name)
        return {"name": name}

    def reset(self, person: Person, *, name: str, passphrase: str | None = None) -> dict[str, Any]:
        """A link for somebody whose passphrase is lost. A steward's: behind one's own."""
        self._check_steward(person, self._people.roll.roles(name), passphrase)
        return self._link(*self._people.roll.reset(name, by=person.name))

    def _check_steward(self, person: Person, roles: Sequence[str], passphrase: str | None) -> None:
        """Whoever makes a steward, or opens a steward's account, could confirm anything with it: so that is confirmed.

        Raises NotAllowed where a steward is concerned, and the passphrase is not right.
        """
        if "steward" in roles:
            if passphrase is None:
                raise NotAllowed("this concerns a steward: it needs your passphrase again.")
            self._people.confirm(person, passphrase)

    def tokens_of(self, person: Person, *, name: str) -> list[dict[str, Any]]:
        """Somebody's tokens."""
        del person
        return self._people.keys.of(name)

    def end_token_of(self, person: Person, *, token: str) -> dict[str, Any]:
        """End anybody's token."""
        self._people.keys.end(token, by=person.name)
        return {"token": token}

    def _link(self, key: str, until: str) -> dict[str, Any]:
        return {"key": key, "link": link_of("invitation", key, self._people.url), "until": until}
