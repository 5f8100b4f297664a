"""`hubbub budget`: what has been spent of each unit space's budget, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hubbub.cli.console import note, show_table
from hubbub.cli.formats import as_csv, as_json, as_markdown
from hubbub.cli.options import chosen_format, format_option, ledger_option, open_ledger, policy_option, show, write
from hubbub.cli.standing import left_text
from hubbub.ledger.accounts import TRAINING
from hubbub.ledger.budget import decimal_text, short_text

if TYPE_CHECKING:
    from hubbub.ledger.store import Ledger

__all__ = ["command"]

_COLUMNS = ("unit space", "epsilon", "spent", "left", "charges")
_RIGHT = (False, True, True, True, True)
_ACCOUNTS = ("unit space", "account", "limit", "until", "spent", "left")


@click.command("budget")
@policy_option
@ledger_option
@format_option()
@click.option("--accounts", is_flag=True, help="Every analyst and table with a limit or a charge, and open blocks.")
def command(policy: Path | None, ledger: str | None, form: str | None, accounts: bool) -> None:
    """What has been spent, and what is left."""
    exact = chosen_format(form) in ("csv", "json")
    with open_ledger(policy, ledger) as book:
        if accounts:
            show(_ACCOUNTS, _accounts(book, exact), form, right=(False, False, True, False, True, True))
            return
        rows = [
            (space, decimal_text(book.balance.ceiling(space)), _spent(book, space),
             left_text(book, space, exact=exact, granted=True),
             str(sum(entry.kind != "return" for entry in book.record.history(space))))
            for space in book.balance.spaces()
        ]  # fmt: skip
        for line in (*_held_back(book), *_under_delta(book), *_failed(book)):
            note(line)
    match chosen_format(form):
        case "json":
            keys = [name.replace(" ", "_") for name in _COLUMNS]
            write(as_json([dict(zip(keys, row, strict=True)) | {"charges": int(row[-1])} for row in rows]), None)
        case "csv":
            write(as_csv([name.replace(" ", "_") for name in _COLUMNS], rows), None)
        case "md":
            write(as_markdown(_COLUMNS, rows, right=_RIGHT), None)
        case _:
            show_table(_COLUMNS, rows, right=_RIGHT)


def _spent(book: Ledger, space: str, account: str = "everyone") -> str:
    """What was spent, as an epsilon: exact under a pure budget, rounded up under one with delta."""
    from hubbub.ledger.history import loss

    budget, total = book.balance.budget(space), book.balance.total(space, account)
    return decimal_text(total.epsilon) if budget.pure else f"{loss(budget, total):.6g}"


def _held_back(book: Ledger) -> Iterator[str]:
    """Where less may be spent than the ceiling holds: what a steward said of `everyone`."""
    for space in book.balance.spaces():
        whole, left = left_text(book, space), left_text(book, space, granted=True)
        if whole != left:
            yield f"{space}: a grant or revocation holds `everyone` to {left}; the ceiling itself has {whole} left."


def _under_delta(book: Ledger) -> Iterator[str]:
    """What is left of budgets with delta in their own amounts, and as a number of questions."""
    for space in book.balance.spaces():
        budget = book.balance.budget(space)
        if not budget.pure:
            left, tenth = book.balance.left(space, granted=True), budget.epsilon / 10
            count = left.how_many(book.balance.question(space, tenth))
            if budget.training is not None:
                own, share = book.balance.training(space)
                yield (
                    f"{space}: epsilon {decimal_text(budget.training[0])} and delta {float(budget.training[1]):.4g} "
                    f"are for training; epsilon {short_text(own)} and delta {float(share):.4g} of them are left."
                )
            yield (
                f"{space}: rho {float(left.rho):.4g} and delta {float(left.delta):.4g} are left, for {count} questions "
                f"at epsilon {decimal_text(tenth)} with Gaussian noise."
            )


def _failed(book: Ledger) -> Iterator[str]:
    """What failed and counts, and who is locked by it."""
    for space in book.balance.spaces():
        counted = book.balance.failures(space)
        joint, allowed = counted.pop(None)
        said = [
            f"{analyst} {count} of {most}{f' (locked: hubbub ledger unlock {analyst})' if count >= most else ''}"
            for analyst, (count, most) in counted.items()
            if count
        ]
        if joint or said:
            locked = " (locked: hubbub ledger unlock --all)" if joint >= allowed else ""
            yield f"{space}: failures {', '.join([*said, f'all together {joint} of {allowed}{locked}'])}."


def _accounts(book: Ledger, exact: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for space in book.balance.spaces():
        said = {allowance.account: allowance for allowance in book.balance.allowances(space)}
        charged = {account for account in book.balance.accounts(space) if not account.startswith("block:")}
        for account in sorted(charged | said.keys()):
            kind, _, name = account.partition(":")
            limit = said.get(account)
            amount = "" if limit is None else "revoked" if limit.epsilon is None else decimal_text(limit.epsilon)
            ends = "" if limit is None or limit.expires is None else limit.expires[:10]
            left = ""
            if kind in ("analyst", "table") and name != "*":
                narrowed = {"analyst": name} if kind == "analyst" else {"dataset": name}
                left = left_text(book, space, exact=exact, granted=False, **narrowed)
            elif account == "everyone":
                left = left_text(book, space, exact=exact, granted=True)
            if account == TRAINING:
                rows.append(_training(book, space))
                continue
            spent = "" if account in ("ceiling", "analyst:*") else _spent(book, space, account)
            rows.append((space, account, amount, ends, spent, left))
    held = [(b.space, f"block:{b.id}", decimal_text(b.epsilon), "", "", "") for b in book.record.open_blocks()]
    return [*rows, *held]


def _training(book: Ledger, space: str) -> tuple[str, ...]:
    """What is set aside for training, as an account."""
    budget, (left, _) = book.balance.budget(space), book.balance.training(space)
    whole = Fraction(0) if budget.training is None else budget.training[0]
    return space, TRAINING, decimal_text(whole), "", decimal_text(whole - left), short_text(left)
