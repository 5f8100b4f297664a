"""`hubbub ledger backup`, `restore`, `rekey`, `redact` and `witness`: how a ledger is kept, over years."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hubbub.cli.console import note
from hubbub.cli.options import key_option, ledger_option, manage_ledger, me, open_ledger, policy_option
from hubbub.errors import PolicyError

if TYPE_CHECKING:
    from hubbub.ledger.policy import Policy

__all__ = ["COMMANDS"]


@click.command("backup")
@click.argument("target", type=click.Path(path_type=Path))
@policy_option
@ledger_option
def backup(target: Path, policy: Path | None, ledger: str | None) -> None:
    """Write one whole state of the ledger, and of the service's people, to the new folder TARGET, while others go on.

    `hubbub ledger restore` puts it back, and sees to it that nothing is given twice. The key is not in it.
    """
    from hubbub.ledger.backup import back_up

    people = _people(_policy(policy)) if ledger is None else None
    with open_ledger(policy, ledger) as book:
        made = back_up(book, target, people)
    note(f"Wrote {target}: the ledger up to line {made.line}{', and its people' if made.people else ''}.")


@click.command("restore")
@click.argument("backup", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--accept-older", is_flag=True, help="Also where more may have been charged: nothing is left to spend.")
@click.option("--reason", default="", help="Why, for the record; with --accept-older.")
@policy_option
def restore(backup: Path | None, accept_older: bool, reason: str, policy: Path | None) -> None:
    """Put BACKUP in the place of the policy's ledger, which is gone.

    It is taken as it is if the ledger's anchor shows that nothing was charged since. Otherwise it is refused; with
    --accept-older it is put back with nothing left to spend, until a steward grants `everyone` the budget less what is
    known to be charged since. Without BACKUP, a ledger that was put back by other means (pg_restore) is closed like
    that.
    """
    from hubbub.ledger.backup import put_back, read_backup
    from hubbub.ledger.store import Ledger
    from hubbub.service.people.restored import let_nobody_in

    if accept_older and not reason.strip():
        raise click.UsageError("--accept-older weakens what can be shown: give the --reason, for the record.")
    said = _policy(policy)
    if backup is None:
        if not accept_older:
            raise click.UsageError("name a BACKUP; or give --accept-older for a ledger that was put back already.")
        with Ledger.manage(said.ledger, key=said.key(), unanchored=True) as book:
            book.steward.accept_older(author=me(), reason=reason, anchor_at=said.anchor)
        note(_CLOSED)
        if _people(said).exists():  # the caps of its tokens may be newer than the ledger, and itself older than now
            let_nobody_in(_people(said), said.key())
            note(_NOBODY)
        return
    if not isinstance(said.ledger, Path):
        raise PolicyError(
            "the ledger lives in Postgres: put its dump back with pg_restore, and then give `hubbub ledger restore "
            "--accept-older --reason WHY`, without a backup."
        )
    made = read_backup(backup)
    whole = put_back(
        made,
        said.ledger,
        key=said.key(),
        anchor_at=said.anchor,
        people=_people(said),
        settle=lambda file: let_nobody_in(file, said.key()),
        accept_older=accept_older,
        author=me(),
        reason=reason,
    )
    note("The ledger is back, and its anchor shows that nothing was charged since." if whole else _CLOSED)
    if made.people:
        note(_NOBODY)


_NOBODY: Final = (
    "Nobody can log in, and no token holds. `hubbub person reset NAME` makes a link for each who is to come."
)
_CLOSED = (
    "The ledger is back, and nothing is left to spend, because more may have been charged since. Every limit is "
    "revoked, and every table counts as refreshed: what is asked again is drawn anew. Revoke again by name whom you "
    "revoked since the copy. Then, if you know what was charged since: `hubbub grant everyone --epsilon NUMBER "
    "--reason WHY`, with the whole budget less that; a grant counts from the first charge on."
)


@click.command("rekey")
@policy_option
def rekey(policy: Path | None) -> None:
    """Give the chain a new random key, in place of the one in the policy's `key_file`, or its first one.

    Stop the service before it: a program that has the ledger open with the old key records nothing more. The old key
    is kept beside the new one, for backups of its time. After a crash, run it again: it ends what was begun.
    """
    from hubbub.ledger.keys import check_of, read_key
    from hubbub.ledger.store import Ledger
    from hubbub.noise import system_bits

    said = _policy(policy)
    if said.key_file is None:
        raise PolicyError("the policy names no key file: write `key_file` into its [ledger], and run this again.")
    old, new = said.key_file, said.key_file.with_name(f"{said.key_file.name}.next")
    if not new.exists():
        _write_whole(new, system_bits().u64(4).tobytes().hex())
    key = read_key(new)
    with Ledger.inspect(said.ledger) as book:
        name, check = book.id, book.chain.key_check()
    if check != check_of(key, name):
        before = read_key(old) if check is not None else None
        with Ledger.manage(said.ledger, key=before, anchor=said.anchor) as book:
            line = book.steward.rekey(key, author=me())
        note(f"From line {line} on the chain bears the new key.")
    with Ledger.inspect(said.ledger, key=key) as book:
        line = book.chain.rekeyed_at()
    kept = old.with_name(f"{old.name}.until-{line}")
    if old.exists() and not kept.exists():
        os.link(old, kept)
    os.replace(new, old)
    _flush(old.parent)
    note(f"{old} holds the new key{f', {kept} the one before' if kept.exists() else ''}. Start the service again.")


@click.command("redact")
@click.argument("charge", required=False)
@click.option("--older-than", type=click.IntRange(0), metavar="DAYS", help="The texts of all that were asked before.")
@policy_option
@ledger_option
@key_option
def redact(
    charge: str | None, older_than: int | None, policy: Path | None, ledger: str | None, key_file: Path | None
) -> None:
    """Remove the text of the question CHARGE from the ledger, or with --older-than those of all older ones.

    Amounts, times, analysts and answers stay, and the chain verifies as before. Without either, those go that are older
    than the policy's `keep_texts`. Backups hold the texts until they are gone.
    """
    from hubbub.ledger.removing import days_ago

    if charge is not None and older_than is not None:
        raise click.UsageError("name one CHARGE, or give --older-than DAYS.")
    if charge is None and older_than is None:
        older_than = _policy(policy).keep_texts if ledger is None else None
        if older_than is None:
            raise click.UsageError("name a CHARGE, or give --older-than DAYS; the policy has no `keep_texts`.")
    with manage_ledger(policy, ledger, key_file) as book:
        if charge is not None:
            lines = book.steward.redact(charge, author=me())
        else:
            assert older_than is not None
            lines = book.steward.redact_before(days_ago(older_than), author=me())
    note(f"The words of {lines} lines are removed; the chain is as it was.")


@click.command("witness")
@policy_option
def witness(policy: Path | None) -> None:
    """Send the head of the chain as of last midnight (UTC) to the policy's `witness`, unless it has it.

    The service does so daily by itself; without one, have cron or a timer of systemd run this.
    """
    from hubbub.ledger.store import Ledger
    from hubbub.ledger.witness import bear_witness

    said = _policy(policy)
    if said.witness is None:
        raise PolicyError("the policy names no witness: write `witness` into its [ledger].")
    with Ledger.inspect(said.ledger, anchor=said.anchor) as book:
        sent = bear_witness(book, said.witness)
    note(
        f"The witness has line {sent.line} of the ledger, as of {sent.day}."
        if sent
        else "There is nothing to send yet."
    )


COMMANDS = (backup, restore, rekey, redact, witness)


def _policy(policy: Path | None) -> Policy:
    from hubbub.ledger.policy import find_policy, load_policy

    return load_policy(policy or find_policy())


def _people(policy: Policy) -> Path:
    """Where the people of the service are kept."""
    beside = policy.ledger if isinstance(policy.ledger, Path) else policy.path
    return beside.with_name("service.db")


def _write_whole(file: Path, text: str) -> None:
    """A file for its owner alone, whole or not at all."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.new")
    with open(draft, "w", encoding="utf-8", opener=lambda name, how: os.open(name, how, 0o600)) as written:
        written.write(text + "\n")
        written.flush()
        os.fsync(written.fileno())
    os.replace(draft, file)
    _flush(file.parent)


def _flush(folder: Path) -> None:
    from hubbub.ledger.files import flush_folder

    flush_folder(folder)
