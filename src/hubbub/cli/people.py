"""`hubbub person` and `hubbub token`: who may come to the service, and with what. For whoever keeps the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hubbub.cli.console import note, printable
from hubbub.cli.options import me, policy_option, show
from hubbub.errors import PolicyError

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger
    from hubbub.service.people.people import People

__all__ = ["person", "token"]

_form = click.option("--format", "form", type=click.Choice(["table", "json", "csv", "md"]), default="table")
_role = click.option(
    "--role", "roles", multiple=True, type=click.Choice(["analyst", "steward", "auditor"]), help="May be repeated."
)


@contextmanager
def _people(policy: Path | None, *, then: Callable[[Ledger], None] | None = None) -> Iterator[People]:
    """The people of a policy, with its ledger, which holds caps. then: what is done with it afterwards."""
    from hubbub.ledger.policy import find_policy, load_policy
    from hubbub.ledger.store import Ledger
    from hubbub.service.people.at_home import opened_people

    said = load_policy(policy or find_policy())
    with Ledger.manage(said.ledger, key=said.key(), anchor=said.anchor) as ledger:
        opened = opened_people(said, ledger)
        try:
            yield opened
        finally:
            opened.close()
        if then is not None:
            then(ledger)


def _by() -> str:
    return f"{me()} (at the machine)"


@click.group("person")
def person() -> None:
    """Who may come to the service: add, list, disable, enable, roles, reset, log.

    What is changed here holds at once, while the service runs.
    """


@person.command("add")
@click.argument("name")
@_role
@policy_option
def add(name: str, roles: tuple[str, ...], policy: Path | None) -> None:
    """Add NAME, an analyst unless said. The link with which NAME chooses a passphrase is shown once."""
    from hubbub.service.people.people import link_of

    with _people(policy) as people:
        key, until = people.roll.add(name, roles or ("analyst",), by=_by())
        click.echo(printable(link_of("invitation", key, people.url)))
    note(f"{name} may come: the link above opens a form for a passphrase, once, until {until[:16]} (UTC).")


@person.command("list")
@_form
@policy_option
def people(form: str, policy: Path | None) -> None:
    """Everybody: name, state, roles, whether a passphrase is set, and how many tokens are live."""
    with _people(policy) as opened:
        rows = [
            (
                one["name"],
                one["state"],
                ", ".join(one["roles"]),
                "yes" if one["passphrase"] else "no",
                str(one["tokens"]),
            )
            for one in opened.roll.everybody()
        ]
    show(("name", "state", "roles", "passphrase", "tokens"), rows, form, right=[False] * 4 + [True])


@person.command("disable")
@click.argument("name")
@click.option("--left", is_flag=True, help="NAME does not come back: tokens and grants end; answers stay.")
@policy_option
def disable(name: str, left: bool, policy: Path | None) -> None:
    """Let NAME do nothing from now on. Sessions end; tokens wait for `enable`, or end with --left."""
    from hubbub.service.people.at_home import end_grants

    with _people(policy, then=(lambda ledger: end_grants(ledger, name, by=_by())) if left else None) as opened:
        opened.roll.disable(name, by=_by(), left=left)
    note(f"{name} {'has left' if left else 'is disabled'}.")


@person.command("enable")
@click.argument("name")
@policy_option
def enable(name: str, policy: Path | None) -> None:
    """Let NAME come in again."""
    with _people(policy) as opened:
        opened.roll.enable(name, by=_by())
    note(f"{name} may come in again.")


@person.command("roles")
@click.argument("name")
@_role
@policy_option
def roles(name: str, roles: tuple[str, ...], policy: Path | None) -> None:
    """Give NAME these roles in place of those of before."""
    with _people(policy) as opened:
        opened.roll.set_roles(name, roles, by=_by())
    note(f"{name}: {', '.join(roles)}.")


@person.command("reset")
@click.argument("name")
@policy_option
def reset(name: str, policy: Path | None) -> None:
    """A new link for NAME, whose passphrase is lost. The old passphrase and sessions end now; tokens go on.

    If somebody else may have come in, `hubbub token list NAME` shows what to revoke.
    """
    from hubbub.service.people.people import link_of

    with _people(policy) as opened:
        key, until = opened.roll.reset(name, by=_by())
        click.echo(printable(link_of("reset", key, opened.url)))
    note(f"The link above opens a form for a new passphrase, once, until {until[:16]} (UTC).")


@person.command("log")
@click.option("--verify", is_flag=True, help="Check every link of its chain, and show its head.")
@click.option("--head", metavar="HASH", help="With --verify: one that was kept elsewhere; it must be in the chain.")
@_form
@policy_option
def log(verify: bool, head: str | None, form: str, policy: Path | None) -> int:
    """What was done to people, tokens and grants: who, what, when. With --verify, whether that was changed since."""
    if head is not None and not verify:
        raise click.UsageError("--head goes with --verify.")
    with _people(policy) as opened:
        if verify:
            checked = opened.store.verify(head=head)
            note(f"{checked.lines} lines; the head is {checked.head}")
            for problem in checked.problems:
                click.echo(printable(problem))
            return 0 if checked.sound else PolicyError.exit_code
        lines = opened.store.lines(most=-1)
    rows = [(str(n["serial"]), n["time"][:19], n["who"], n["act"], _about(n["about"])) for n in lines]
    show(("line", "time", "who", "what", "about"), rows, form, right=[True] + [False] * 4)
    return 0


def _about(told: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)


@click.group("token")
def token() -> None:
    """Tokens with which programs ask the service: create, list, revoke."""


@token.command("create")
@click.argument("name")
@click.option("--label", default="", help="What it is for.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(["check", "ask", "steward", "auditor", "metrics"]),
    help="What it may do; may be repeated. Default: check and ask.",
)
@click.option("--days", type=int, help="How long it holds; default 90, at most 366.")
@click.option("--most", metavar="EPSILON", help="The greatest epsilon of one question.")
@click.option("--cap", metavar="EPSILON", help="What all that is asked and read with it may cost, in each unit space.")
@policy_option
def create(
    name: str,
    label: str,
    scopes: tuple[str, ...],
    days: int | None,
    most: str | None,
    cap: str | None,
    policy: Path | None,
) -> None:
    """Make a token for NAME and show it, once. Its hash alone is kept."""
    with _people(policy) as opened:
        made = opened.new_token(name, by=_by(), label=label, scopes=list(scopes) or None, days=days, most=most, cap=cap)
    click.echo(printable(made["token"]))
    note(f"The token {made['id']} of {name} holds until {made['until'][:16]} (UTC).")


@token.command("list")
@click.argument("name", required=False)
@_form
@policy_option
def tokens(name: str | None, form: str, policy: Path | None) -> None:
    """The tokens of NAME, or of everybody: id, scopes, limits, until when."""
    with _people(policy) as opened:
        rows = [
            (
                one["id"],
                one["person"],
                ", ".join(one["scopes"]),
                one["most"] or "",
                one["cap"] or "",
                one["until"][:16],
                "live" if one["live"] else "ended",
                one["label"],
            )
            for one in opened.keys.of(name)
        ]
    columns = ("id", "person", "scopes", "most", "cap", "until", "state", "label")
    show(columns, rows, form, right=[False] * 3 + [True] * 2 + [False] * 3)


@token.command("revoke")
@click.argument("identity", metavar="ID")
@policy_option
def revoke(identity: str, policy: Path | None) -> None:
    """End the token ID, at once."""
    with _people(policy) as opened:
        opened.keys.end(identity, by=_by())
    note(f"The token {identity} has ended.")
