"""The office of the clerk: what stewards do with the ledger, what auditors read, and what waits for a steward's yes.

Each act is a line of the log, and what weakens a promise (a grant, an unlocking, a raised ceiling) was confirmed by
the passphrase and has a reason (`hubbub.service.acts`). Stewards and auditors are trusted with when runs ended;
analysts see nothing of what is told here but what became of their own requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, Final

from hubbub.errors import HubbubError, PolicyError, QueryError
from hubbub.ledger.accounts import EACH_ANALYST, analyst_account, table_account
from hubbub.ledger.budget import Budget, decimal_text, parse_epsilon
from hubbub.ledger.difference import differences
from hubbub.ledger.policy import Policy, load_policy
from hubbub.ledger.records import Entry
from hubbub.ledger.store import Ledger
from hubbub.ledger.verify import Verification
from hubbub.service.people.at_home import end_grants
from hubbub.service.people.people import People
from hubbub.service.people.person import Person, TokenLimits
from hubbub.service.people.roll import seen_as
from hubbub.service.people.wishes import Wish
from hubbub.service.states import Held
from hubbub.service.walks import Walking, Walks
from hubbub.session.statement import largest_epsilon

__all__ = ["Office", "take_up"]

_MOST: Final = 1000
_FAILED: Final = ("failed", "lost")
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


class Office:
    """What is behind the desk. tables: the unit space of each private table. above: at more epsilon a question waits
    for a yes. ask: how it is then asked.
    """

    def __init__(
        self, people: People, ledger: Ledger, *, tables: Mapping[str, str], above: Fraction | None = None
    ) -> None:
        self._people, self._ledger, self._tables, self._above = people, ledger, tables, above
        self.ask: Ask | None = None
        self._walks = Walks()
        self.walking: Walking | None = None  # by a handle of its own
        self.policy: Policy | None = None  # what holds, to compare its file with
        self.read_anew: Callable[[str], None] = lambda _: None  # has questions read the new rows of a table
        self.is_read: Callable[[str], None] = lambda _: None  # is told the version that was written then

    def needs_yes(self, epsilon: Fraction) -> bool:
        """Whether a question at so much waits for a steward."""
        return self._above is not None and epsilon > self._above

    # -- what waits ------------------------------------------------------------------------------------------

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
        amount, place = parse_epsilon(epsilon), self._space(space)
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
                self.grant(person, account=account, epsilon=amount, reason=reason, space=space, until=until)
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
        space = wish.what.get("space") or next(iter(sorted(set(self._tables.values()))))
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
        account, joint = self._account(space, wish.person), self._joint(space)
        now = {name: account[name] for name in ("spent", "limit", "left")}
        return {**told, **now, "joint": joint["budget"], "joint_left": joint["left"]}

    # -- people and their accounts ---------------------------------------------------------------------------

    def people(self, person: Person) -> list[dict[str, Any]]:
        """Everybody; of analysts what they have spent and may spend, and whether they are locked."""
        del person
        spaces = sorted(set(self._tables.values()))
        failures = {space: self._ledger.balance.failures(space) for space in spaces}
        return [
            {
                **one,
                "accounts": [
                    self._account(space, one["name"], failures[space]) for space in spaces if "analyst" in one["roles"]
                ],
            }
            for one in self._people.roll.everybody()
        ]

    def _account(
        self, space: str, name: str, failures: Mapping[str | None, tuple[int, int]] | None = None
    ) -> dict[str, Any]:
        balance, account = self._ledger.balance, analyst_account(name)
        budget = balance.budget(space)
        said = {each.account: each for each in balance.allowances(space)}
        own = said.get(account) or said.get("analyst:*")
        counted, allowed = (failures or {}).get(name, (0, 1))
        return {
            "space": space,
            "spent": _spent(balance.total(space, account), budget),
            "limit": str(balance.limit(space, name)),
            "left": str(largest_epsilon(budget, balance.left(space, analyst=name))),
            "until": None if own is None else own.expires,
            "locked": counted >= allowed,
            "failures": counted,
        }

    def spaces(self, person: Person) -> list[dict[str, Any]]:
        """The joint budget of each unit space: the promise to its people."""
        del person
        return [self._joint(space) for space in self._ledger.balance.spaces()]

    def _joint(self, space: str) -> dict[str, Any]:
        balance = self._ledger.balance
        budget = balance.budget(space)
        return {
            "space": space,
            "budget": str(budget.epsilon),
            "delta": None if budget.delta is None else str(budget.delta),
            "spent": _spent(balance.total(space), budget),
            "left": str(largest_epsilon(budget, balance.left(space))),
        }

    def spending(self, person: Person) -> list[dict[str, Any]]:
        """What was charged, in all and by analyst, and what may be: amounts that step at submissions, and at releases
        where something comes back.
        """
        names = [one["name"] for one in self._people.roll.everybody() if "analyst" in one["roles"]]
        return [
            {**joint, "analysts": {name: self._account(joint["space"], name) for name in names}}
            for joint in self.spaces(person)
        ]

    def limits(self, person: Person) -> list[dict[str, Any]]:
        """What was last said of each account: grants, caps, limits of the policy."""
        del person
        return [
            {
                "account": one.account,
                "space": space,
                "epsilon": None if one.epsilon is None else str(one.epsilon),
                "until": one.expires,
                "by": one.author,
                "reason": one.reason,
            }
            for space in self._ledger.balance.spaces()
            for one in self._ledger.balance.allowances(space)
        ]

    def leave(self, person: Person, *, name: str) -> dict[str, Any]:
        """Somebody leaves: sessions, tokens and grants end; what was asked, and its answers, stay."""
        self._people.roll.disable(name, by=person.name, left=True)
        end_grants(self._ledger, name, by=person.name)
        return {"name": name}

    # -- the steward's acts on the ledger --------------------------------------------------------------------

    def grant(
        self,
        person: Person,
        *,
        account: str,
        epsilon: str,
        reason: str,
        space: str | None = None,
        until: str | None = None,
    ) -> dict[str, Any]:
        """Let an account spend so much in all, until when."""
        place = self._space(space)
        if account.startswith("token:"):
            raise QueryError("a token's cap is fixed when it is made: make another token.")
        self._check_known(place, account)
        granted = self._ledger.steward.grant(place, account, epsilon, until=until, author=person.name, reason=reason)
        told = {"account": account, "space": place, "epsilon": decimal_text(granted.epsilon or Fraction(0))}
        return self._done(person, "granted", {**told, "until": granted.expires, "reason": reason})

    def revoke_grant(
        self, person: Person, *, account: str, reason: str = "", space: str | None = None
    ) -> dict[str, Any]:
        """Let an account spend nothing more."""
        place = self._space(space)
        self._check_known(place, account)
        self._ledger.steward.revoke(place, account, author=person.name, reason=reason)
        return self._done(person, "revoked", {"account": account, "space": place, "reason": reason})

    def unlock(
        self, person: Person, *, reason: str, analyst: str | None = None, space: str | None = None
    ) -> dict[str, Any]:
        """Clear an analyst's failures, or those that lock everybody."""
        place = self._space(space)
        if analyst is None:
            self._ledger.steward.unlock_all(place, author=person.name)
        else:
            self._check_known(place, analyst_account(analyst))
            self._ledger.steward.unlock(place, analyst, author=person.name)
        return self._done(person, "unlocked", {"analyst": analyst, "space": place, "reason": reason})

    def raise_ceiling(self, person: Person, *, space: str, epsilon: str, reason: str) -> dict[str, Any]:
        """Raise a ceiling: a weaker promise than the people in the data were given."""
        place = self._space(space)
        raised = self._ledger.steward.raise_ceiling(place, epsilon, author=person.name, reason=reason)
        told = {"space": place, "epsilon": decimal_text(raised.epsilon), "reason": reason}
        return self._done(person, "ceiling raised", told)

    def refresh(self, person: Person, *, table: str, reason: str) -> dict[str, Any]:
        """Declare that a table has new rows: first they are copied and opened anew, then the version is written."""
        if table not in self._tables:
            raise QueryError(f"there is no private table {table!r:.60}; there is {', '.join(sorted(self._tables))}.")
        self.read_anew(table)
        version = self._ledger.steward.refresh(self._tables[table], table, reason=reason)
        self.is_read(version)
        return self._done(person, "refreshed", {"table": table, "version": version, "reason": reason})

    def _done(self, person: Person, act: str, about: dict[str, Any]) -> dict[str, Any]:
        self._people.store.note(person.name, act, about)
        return about

    # -- what stewards and auditors read ---------------------------------------------------------------------

    def incidents(self, person: Person) -> list[dict[str, Any]]:
        """The questions that had no answer, the newest first, and when somebody looked at why."""
        del person
        looked = {
            line["about"]["incident"]: line["time"]
            for line in self._people.store.acts_of("incident read")
            if "incident" in line["about"]
        }
        failed = [one for one in self._ledger.record.history() if one.state in _FAILED and one.incident is not None]
        return [
            {
                "incident": one.incident,
                "analyst": one.analyst,
                "space": one.space,
                "at": one.time,
                "looked_at": looked.get(str(one.incident)),
            }
            for one in reversed(failed)
        ]

    def incident(self, person: Person, *, incident: str) -> dict[str, Any]:
        """The engine's own words of a failure, which may hold values; that they were read is a line of the log."""
        words = self._ledger.record.incident_words(incident)
        self._done(person, "incident read", {"incident": incident})
        return {"incident": incident, "words": words}

    def policy_changes(self, person: Person) -> dict[str, Any]:
        """What the policy file says otherwise than what holds here, a sentence each. A change holds after a restart.

        problem: why the file cannot be read, or "".
        """
        del person
        if self.policy is None:
            return {"changes": [], "problem": ""}
        try:
            return {"changes": differences(self.policy, load_policy(self.policy.path)), "problem": ""}
        except HubbubError as error:
            return {"changes": [], "problem": str(error)}

    def charges(
        self, person: Person, *, after: int = 0, most: int = 200, analyst: str | None = None
    ) -> list[dict[str, Any]]:
        """Charges, the newest first. after: so many are left out. analyst: whose, where not everybody's."""
        del person
        entries = list(reversed(self._ledger.record.history(analyst=analyst)))
        return [_charge(one) for one in entries[max(0, after) : max(0, after) + max(1, min(most, _MOST))]]

    def chain(self, person: Person, *, receipt: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Whether the ledger is whole: links, sums and lives. receipt: one that was kept; its links must be there."""
        checked = self._ledger.record.verify(receipt)
        self._looked_through(person, checked)
        return self._found(checked)

    def _looked_through(self, person: Person, checked: Verification) -> None:
        self._people.store.note(person.name, "chain verified", {"links": checked.rows, "sound": checked.sound})

    def _found(self, checked: Verification) -> dict[str, Any]:
        return {
            "links": checked.rows,
            "head": checked.head,
            "sound": checked.sound,
            "problems": list(checked.problems),
            "notes": list(checked.notes),
            "at": self._people.store.moment(),
        }

    def begin_chain(
        self, person: Person, *, receipt: Mapping[str, Any] | None = None, head: str = ""
    ) -> dict[str, Any]:
        """Begin what `chain` does, and tell how far it is. head: a note about the log, for when it has ended."""
        walking = self.walking or (lambda kept, told: self._ledger.record.verify(kept, told=told))
        lines = self._ledger.chain.lines()
        ended = partial(self._looked_through, person)
        self._walks.begin(person.name, walking, lines=lines, receipt=receipt, head=head, ended=ended)
        return self.chain_walk(person)

    def chain_walk(self, person: Person) -> dict[str, Any]:
        """How far the last walk of this person is: of so many lines; and, once it has ended, what it found."""
        walk = self._walks.of(person.name)
        if walk is None:
            return {"state": "none"}
        told = {"done": min(walk.done, walk.lines), "lines": walk.lines, "head": walk.head, "receipt": walk.kept}
        if walk.problem:
            return {"state": "failed", **told, "problem": walk.problem}
        if walk.verified is None:
            return {"state": "walking", **told}
        return {"state": "done", **told, "found": self._found(walk.verified)}

    def _check_known(self, space: str, account: str) -> None:
        """Raises QueryError for an account of nobody: the one who is meant would spend on, or stay locked."""
        names = [analyst_account(one["name"]) for one in self._people.roll.everybody()]
        known = {*names, *map(table_account, self._tables), *self._ledger.balance.accounts(space)}
        known |= {one.account for one in self._ledger.balance.allowances(space)}
        if account.startswith(("analyst:", "table:")) and account not in {*known, EACH_ANALYST}:
            alike = sorted(one for one in known if seen_as(one) == seen_as(account))
            meant = f" Is it {alike[0]!r}?" if alike else ""
            raise QueryError(f"nobody here, and nothing, has the account {account!r:.120}.{meant} Nothing was done.")

    def _space(self, space: str | None) -> str:
        """The unit space that is meant."""
        spaces = self._ledger.balance.spaces()
        if space is None and len(spaces) == 1:
            return spaces[0]
        if space not in spaces:
            raise QueryError(f"name the unit space: {', '.join(spaces)}.")
        return str(space)


def _spent(total: Any, budget: Budget) -> str:
    from hubbub.accounting import epsilon_of_rho

    return str(total.epsilon if budget.pure else epsilon_of_rho(total.rho, budget.delta_conversion))


def _charge(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "time": entry.time,
        "analyst": entry.analyst,
        "space": entry.space,
        "kind": entry.kind,
        "epsilon": str(entry.epsilon),
        "state": entry.state,
        "purpose": entry.purpose or "",
        "sql": entry.sql,
    }
