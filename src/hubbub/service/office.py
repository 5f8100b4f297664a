"""The office of the clerk: people, their accounts, and what stewards do with the ledger.

Each act is a line of the log, and what weakens a promise (a grant, an unlocking, a raised ceiling) was confirmed by
the passphrase and has a reason (`hubbub.service.acts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from hubbub.errors import QueryError
from hubbub.ledger.accounts import EACH_ANALYST, analyst_account, table_account
from hubbub.ledger.budget import Budget, decimal_text
from hubbub.ledger.store import Ledger
from hubbub.service.people.at_home import end_grants
from hubbub.service.people.people import People
from hubbub.service.people.person import Person
from hubbub.service.people.roll import seen_as
from hubbub.session.statement import largest_epsilon

__all__ = ["Office"]


class Office:
    """What is behind the desk. tables: the unit space of each private table."""

    def __init__(self, people: People, ledger: Ledger, *, tables: Mapping[str, str]) -> None:
        self._people, self._ledger, self._tables = people, ledger, tables
        self.read_anew: Callable[[str], None] = lambda _: None  # has questions read the new rows of a table
        self.is_read: Callable[[str], None] = lambda _: None  # is told the version that was written then

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
                    self.account(space, one["name"], failures[space]) for space in spaces if "analyst" in one["roles"]
                ],
            }
            for one in self._people.roll.everybody()
        ]

    def account(
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
        return [self.joint(space) for space in self._ledger.balance.spaces()]

    def joint(self, space: str) -> dict[str, Any]:
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
            {**joint, "analysts": {name: self.account(joint["space"], name) for name in names}}
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
        place = self.space_meant(space)
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
        place = self.space_meant(space)
        self._check_known(place, account)
        self._ledger.steward.revoke(place, account, author=person.name, reason=reason)
        return self._done(person, "revoked", {"account": account, "space": place, "reason": reason})

    def unlock(
        self, person: Person, *, reason: str, analyst: str | None = None, space: str | None = None
    ) -> dict[str, Any]:
        """Clear an analyst's failures, or those that lock everybody."""
        place = self.space_meant(space)
        if analyst is None:
            self._ledger.steward.unlock_all(place, author=person.name)
        else:
            self._check_known(place, analyst_account(analyst))
            self._ledger.steward.unlock(place, analyst, author=person.name)
        return self._done(person, "unlocked", {"analyst": analyst, "space": place, "reason": reason})

    def raise_ceiling(self, person: Person, *, space: str, epsilon: str, reason: str) -> dict[str, Any]:
        """Raise a ceiling: a weaker promise than the people in the data were given."""
        place = self.space_meant(space)
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

    def first_space(self) -> str:
        """The unit space that is shown where none is named."""
        return min(self._tables.values())

    def _check_known(self, space: str, account: str) -> None:
        """Raises QueryError for an account of nobody: the one who is meant would spend on, or stay locked."""
        names = [analyst_account(one["name"]) for one in self._people.roll.everybody()]
        known = {*names, *map(table_account, self._tables), *self._ledger.balance.accounts(space)}
        known |= {one.account for one in self._ledger.balance.allowances(space)}
        if account.startswith(("analyst:", "table:")) and account not in {*known, EACH_ANALYST}:
            alike = sorted(one for one in known if seen_as(one) == seen_as(account))
            meant = f" Is it {alike[0]!r}?" if alike else ""
            raise QueryError(f"nobody here, and nothing, has the account {account!r:.120}.{meant} Nothing was done.")

    def space_meant(self, space: str | None) -> str:
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
