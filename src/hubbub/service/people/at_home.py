"""The file of people where it lies: beside the ledger, or beside the policy where that is in a database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from hubbub.ledger.policy import Policy
from hubbub.ledger.store import Ledger
from hubbub.service.people.oidc import Provider
from hubbub.service.people.people import People

__all__ = ["end_grants", "opened_people", "place_of", "provider_of"]

_BACK: Final = "/login/provider/back"


def place_of(policy: Policy) -> Path:
    """Where the people of a policy are kept."""
    beside = policy.ledger if isinstance(policy.ledger, Path) else policy.path
    return beside.with_name("service.db")


def opened_people(policy: Policy, ledger: Ledger | None = None) -> People:
    """The people of a policy; made if there are none. ledger: holds the caps of tokens; without it none can be made.

    Raises PolicyError where the file cannot be opened.
    """
    said, key = policy.service, policy.key()

    def keys() -> list[bytes | None]:
        if ledger is not None:
            return ledger.chain.keys()
        with Ledger.inspect(policy.ledger, key=key) as book:
            return book.chain.keys()

    return People(place_of(policy), ledger=ledger, key=key, keys=keys, logins=said.logins_a_minute, url=said.public_url)


def provider_of(policy: Policy, log: Callable[[str], None]) -> Provider | None:
    """The provider by which people of a policy may log in. It is not asked yet.

    Raises PolicyError where Authlib is not there, or the client's secret.
    """
    said = policy.service
    if said.oidc is None:
        return None
    return Provider(said.oidc, back=f"{said.public_url.rstrip('/')}{_BACK}", log=log)


def end_grants(ledger: Ledger, name: str, *, by: str) -> None:
    """Let somebody who left spend nothing more, in any unit space. What he asked, and its answers, stay.

    Raises PolicyError where the ledger cannot be written.
    """
    for space in ledger.balance.spaces():
        ledger.steward.revoke(space, f"analyst:{name}", author=by, reason="left")
