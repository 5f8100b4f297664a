"""The gate of the clerk: who asks is known by his proof, and `acts.ACTS` says whether he may. Then the act is done.

Nothing behind it looks at proofs, and nobody reaches an act beside it: neither the front, nor what is on the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hubbub.errors import HubbubError
from hubbub.service.acts import ACTS, KNOWN, Act, checked
from hubbub.service.people.people import People
from hubbub.service.people.person import NotAllowed, Person, TooMany
from hubbub.service.rates import Rate
from hubbub.service.turns import Turns

__all__ = ["Gate", "Unknown"]


_CHANGES: Final = (1.0, 60)  # of one person, a second and at once: each is a line of the log, which only grows


class Unknown(HubbubError):
    """There is no such act."""


class Gate:
    """The gate before some rooms. checks: how many a second of one person, and how many at once."""

    def __init__(self, people: People, rooms: Mapping[str, Any], *, checks: tuple[float, int] = (5.0, 20)) -> None:
        self._people, self._rooms = people, {"people": people, **rooms}
        self._limit, self._checks = checks, Rate(*checks)
        self._changes, self._turns = Rate(*_CHANGES), Turns()

    def done(self, name: object, given: object, proof: object) -> Any:
        """What is told of an act.

        Raises NotKnown, NotAllowed, TooMany; QueryError for fields that are none; what the act raises.
        """
        act = ACTS.get(name) if isinstance(name, str) else None
        if act is None or act.room not in self._rooms:
            raise Unknown(f"there is no {name!r:.60} here.")
        person = self._admitted(act, proof)
        fields = checked(act, given)
        method = getattr(self._rooms[act.room], act.name)
        if person is None:
            return method(**fields)
        with self._turns.of(person.name) as waited:
            admitted = self._admitted(act, proof) if waited else person  # who may no more since then, may not
            return self._as(admitted or person, act, method, fields)

    def _as(self, person: Person, act: Act, method: Callable[..., Any], fields: dict[str, Any]) -> Any:
        """What is told of an act to this person, who may do it."""
        if act.name in ("check", "check_refine"):
            self._check_rate(person)
        if act.changes and act.room != "desk" and not self._changes.takes(person.name):
            wait = self._changes.wait(person.name)
            raise TooMany(f"{_CHANGES[0]:g} changes a second, {_CHANGES[1]} at once; try again in {wait} s.", wait)
        if act.confirmed:
            self._people.confirm(person, fields.pop("passphrase"))
        limits = {"token": person.token} if act.limited else {}
        return method(person.name if act.room == "desk" else person, **fields, **limits)

    def _admitted(self, act: Act, proof: object) -> Person | None:
        """Who asks, where he may; None for what needs no proof."""
        if not act.needs:
            return None
        person = self._people.prove(proof, changes=act.changes)
        if act.needs != KNOWN and not person.may(act.needs):
            raise NotAllowed(f"{act.name!r} needs {' or '.join(act.needs)}, which this proof does not have.")
        if act.page and person.session is None:
            raise NotAllowed("this is done on the pages, logged in with a passphrase.")
        return person

    def _check_rate(self, person: Person) -> None:
        if not self._checks.takes(person.name):
            a_second, at_once = self._limit
            wait = self._checks.wait(person.name)
            raise TooMany(f"{a_second:g} checks a second, {at_once} at once; try again in {wait} s.", wait)
