"""What waits for a steward's yes: questions at much epsilon, and requests for more budget.

Analysts see nothing of the office but what became of their own requests. A yes to more budget is a grant of the
office's; a yes to a question asks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.accounts import analyst_account
from hubbub.ledger.budget import parse_epsilon
from hubbub.ledger.store import Ledger
from hubbub.service.office import Office
from hubbub.service.people.people import People
from hubbub.service.people.person import Person, TokenLimits
from hubbub.service.people.wishes import Wish
from hubbub.service.states import Held

__all__ = ["Requests", "take_up"]

_MOST: Final = 1000
Ask = Callable[..., dict[str, Any]]


def take_up(people: People, ledger: Ledger, spaces: Iterable[str]) -> None:
    """See to what a steward said yes to in a process that died before it noted what became of it.

    A question that was charged is that question, and a grant that was made stands; another waits for a yes again,
    because rows, limits and what is left may have changed since.
    """
    granted = people.wishes.all(state="granted")
    for wish in granted:
        if wish.kind == "budget" and wish.outcome is not None:
            _look_for_grant(people, ledger, wish, by="the service")
    for wish in granted:
        if wish.kind != "question" or wish.outcome is not None:
            continue
        asked = (ledger.record.requested(space=s, analyst=wish.person, request=str(wish.name)) for s in sorted(spaces))
        charge = next((each.id for each in asked if each is not None), None)
        if charge is None:
            people.wishes.reopen(wish.id, by="the service")
        else:
            people.wishes.became(wish.id, charge)


def _look_for_grant(people: People, ledger: Ledger, wish: Wish, *, by: str) -> None:
    """Let a request for more budget wait again, unless the ledger holds the grant that its yes was to make."""
    lines = ledger.balance.said_of(wish.what["space"], analyst_account(wish.person), after=int(wish.outcome or 0))
    if any((one.author, one.reason) == (wish.steward, wish.reason) and one.epsilon is not None for one in lines):
        people.wishes.became(wish.id, None)
    else:
        people.wishes.reopen(wish.id, by=by)


class Requests:
    """What waits, and what becomes of it. above: at more epsilon a question waits. ask: how it is then asked."""

    def __init__(self, people: People, ledger: Ledger, office: Office, *, above: Fraction | None = None) -> None:
        self._people, self._ledger, self._office, self._above = people, ledger, office, above
        self.ask: Ask | None = None

    def needs_yes(self, epsilon: Fraction) -> bool:
        """Whether a question at so much waits for a steward."""
        return self._above is not None and epsilon > self._above

    def hold(self, analyst: str, epsilon: Fraction, asked: Mapping[str, Any], token: TokenLimits | None) -> Any:
        """What is told of a question that waits for a yes, or got a no; None where it needs none, or has it.

        asked: its text, options, request and purpose.

        Raises QueryError where the request stands for another question, or its yes was used: for an answer that was
        stored then, and of which this is not the question any more. One yes is for one charge, at its amount.
        """
        if not self.needs_yes(epsilon):
            return None
        known = self._people.wishes.known("question", analyst, asked["request"])
        what = {**asked, "epsilon": str(epsilon), "token": None if token is None else token.id}
        if known is None:
            return self._told(self._people.wishes.add("question", analyst, what, name=asked["request"]))
        if any(known.what[name] != what[name] for name in ("sql", "options")):
            raise QueryError(f"the idempotency key {asked['request']!r} stands for another question. Use a new key.")
        if known.state == "granted" and (known.outcome is not None or known.what["epsilon"] != str(epsilon)):
            raise QueryError(
                f"the idempotency key {asked['request']!r} stands for a question that a steward said yes to, before "
                "the rows or its cost changed. Use a new key: it waits for a yes again. Nothing was charged."
            )
        return None if known.state == "granted" else self._told(known)

    def waiting(self, analyst: str, identity: str) -> Any:
        """What is told of what waits: its state, or the id of the question that it became; None for nobody's."""
        known = next((wish for wish in self._people.wishes.all(person=analyst) if wish.id == identity), None)
        if known is None or known.kind != "question":
            return None
        return known.outcome or self._told(known)

    def _told(self, wish: Wish) -> dict[str, Any]:
        state: Held = "waiting" if wish.state == "open" else wish.state
        why = {} if wish.reason is None else {"reason": wish.reason}
        return {"state": state, "id": wish.id, "asked_at": wish.made, **why}

    def request_budget(self, person: Person, *, epsilon: str, reason: str, space: str | None = None) -> dict[str, Any]:
        """Ask for more: so much above what one may spend in all."""
        amount, place = parse_epsilon(epsilon), self._office.space_meant(space)
        if not reason.strip() or len(reason) > _MOST:
            raise QueryError(f"say what it is for, in at most {_MOST:,} characters.")
        made = {"epsilon": str(amount), "space": place, "reason": reason}
        return self._shown(self._people.wishes.add("budget", person.name, made))

    def my_requests(self, person: Person) -> list[dict[str, Any]]:
        """What one asked a steward for, the newest first."""
        return [self._shown(wish) for wish in self._people.wishes.all(person=person.name)]

    def withdraw_request(self, person: Person, *, request: str) -> dict[str, Any]:
        """Take back what waits."""
        if self._people.wishes.one(request).person != person.name:
            raise PolicyError(f"there is no request {request!r:.60}.")
        self._people.wishes.settle(request, "withdrawn", by=person.name)
        return {"id": request}

    def requests(self, person: Person, *, state: str | None = None) -> list[dict[str, Any]]:
        """What all of them asked for, with what each may spend and what is left to all."""
        del person
        return [self._shown(wish, whole=True) for wish in self._people.wishes.all(state=state)]

    def decide(
        self,
        person: Person,
        *,
        request: str,
        yes: bool,
        reason: str,
        epsilon: str | None = None,
        until: str | None = None,
        passphrase: str | None = None,
    ) -> dict[str, Any]:
        """Say yes or no. A yes to more budget is a grant, and takes the passphrase; epsilon: what he may spend in all
        from now on. A yes to a question asks it, now.
        """
        wish = self._people.wishes.one(request)
        if not yes:
            self._people.wishes.settle(request, "declined", by=person.name, reason=reason)
            return self._shown(self._people.wishes.one(request))
        if wish.kind == "budget":
            self._people.confirm(person, passphrase or "")
        last = None if wish.kind == "question" else str(self._last_line(wish.what["space"]))
        self._people.wishes.settle(request, "granted", by=person.name, reason=reason, outcome=last)
        try:
            if wish.kind == "question":
                self._people.wishes.became(request, self._asked(wish).get("id", ""))  # one that is nobody's has none
            else:
                space, amount = wish.what["space"], epsilon or self._more(wish)
                account = analyst_account(wish.person)
                self._office.grant(person, account=account, epsilon=amount, reason=reason, space=space, until=until)
                self._people.wishes.became(request, None)
        except BaseException:
            if wish.kind == "question":
                self._people.wishes.reopen(request, by=person.name)
            else:
                _look_for_grant(self._people, self._ledger, self._people.wishes.one(request), by=person.name)
            raise
        return self._shown(self._people.wishes.one(request))

    def _asked(self, wish: Wish) -> dict[str, Any]:
        """Ask a question that got its yes, as whoever asked it."""
        assert self.ask is not None
        if "analyst" not in self._people.roll.roles(wish.person):
            raise PolicyError(f"{wish.person!r} may not ask any more.")
        token = None if wish.what["token"] is None else self._people.keys.limits(wish.what["token"])
        what = wish.what
        return self.ask(wish.person, what["sql"], what["options"], what["request"], what["purpose"], token=token)

    def _last_line(self, space: str) -> int:
        """The last line of the ledger about what accounts of a space may spend."""
        return max((one.serial for one in self._ledger.balance.allowances(space)), default=0)

    def _more(self, wish: Wish) -> str:
        """What he may spend in all, with what he asked for."""
        space = wish.what["space"]
        wanted = self._ledger.balance.limit(space, wish.person) + Fraction(wish.what["epsilon"])
        return str(min(wanted, self._ledger.balance.ceiling(space)))

    def _shown(self, wish: Wish, *, whole: bool = False) -> dict[str, Any]:
        more = {name: wish.what.get(name) for name in ("sql", "purpose")} if wish.kind == "question" else {}
        space = wish.what.get("space") or self._office.first_space()
        told = {
            "id": wish.id,
            "kind": wish.kind,
            "state": wish.state,
            "analyst": wish.person,
            "epsilon": wish.what["epsilon"],
            "space": space,
            "reason": wish.what.get("reason") or wish.what.get("purpose") or "",
            "asked_at": wish.made,
            "decided_by": wish.steward,
            "decided_at": wish.decided,
            "decision": wish.reason,
            "question": (wish.outcome or None) if wish.kind == "question" else None,
            **more,
        }
        if not whole:
            return told
        account, joint = self._office.account(space, wish.person), self._office.joint(space)
        now = {name: account[name] for name in ("spent", "limit", "left")}
        return {**told, **now, "joint": joint["budget"], "joint_left": joint["left"]}
