"""The door of the command line: finds the command, runs it, turns what went wrong into a line and a code."""

from __future__ import annotations

import difflib
import errno
import importlib
import os
import sys
import traceback
import uuid
from collections.abc import Sequence
from typing import Final

import click

from hubbub import __version__
from hubbub.cli import light
from hubbub.cli.console import INTERRUPTED, printable, show_error
from hubbub.errors import HubbubError, InternalError, PolicyError

__all__ = ["COMMANDS", "commands", "main", "run"]

COMMANDS: Final = {
    "demo": ("hubbub.cli.demo", "A first private answer, on real data."),
    "init": ("hubbub.cli.init", "Write a commented hubbub.toml for a file of yours."),
    "policy": (
        "hubbub.cli.policy",
        "Check a policy file, compare two versions, see what moved below it.",
    ),
    "steward": ("hubbub.cli.steward", "What only somebody who may see rows may run."),
    "ledger": ("hubbub.cli.ledger", "Create, verify, back up and mend the ledger."),
    "check": ("hubbub.cli.check", "What a question would cost and how exact it would be; reads no rows."),
    "bounds": ("hubbub.cli.bounds", "How much a question's limits leave out, and which are best."),
    "query": ("hubbub.cli.query", "Ask a question, privately."),
    "shell": ("hubbub.cli.shell", "Ask question after question, at a prompt or from a pipe."),
    "publish": ("hubbub.cli.publish", "An answer, marginals or a synthetic table as a folder to hand out."),
    "budget": ("hubbub.cli.budget", "What has been spent, and what is left."),
    "history": ("hubbub.cli.history", "Every charge: who asked what, and what it cost."),
    "receipt": ("hubbub.cli.receipt", "What one charge asked, ran and cost; and whether it still stands."),
    "report": ("hubbub.cli.report", "Who asked what since when, what it cost, what is left, what was refused."),
    "evidence": (
        "hubbub.cli.evidence",
        "What an auditor takes away, and checks without us.",
    ),
    "grant": ("hubbub.cli.grant", "Let an analyst or a table spend so much, until when."),
    "revoke": ("hubbub.cli.revoke", "Let an analyst or a table spend nothing more."),
    "serve": ("hubbub.cli.serve", "Serve the tables to analysts who are not trusted."),
    "person": ("hubbub.cli.people", "Who may come to the service, and in which roles."),
    "token": ("hubbub.cli.people", "Tokens with which programs ask the service."),
    "survey": ("hubbub.local.command", "Ask a question where nobody has to be trusted."),
    "collect": ("hubbub.collect.command", "Sums over people whom no single company can look at."),
    "attack": ("hubbub.cli.attack", "What an outsider would learn from a file of yours."),
    "synth": ("hubbub.cli.synth", "A synthetic table in place of a private one."),
    "fit": ("hubbub.cli.fit", "Fit a model to a private table."),
    "predict": ("hubbub.cli.predict", "What a fitted model says of the rows of a file; free."),
    "evaluate": ("hubbub.cli.evaluate", "How good a fitted model is on a private table."),
    "explain": ("hubbub.cli.explain", "What an epsilon means for one person."),
    "audit": ("hubbub.cli.audit", "Try to refute a claim of privacy: your own mechanism's, or hubbub's."),
    "doctor": ("hubbub.cli.doctor", "What is installed, and whether policy, ledger and engines are well."),
}
"""Command -> where it lives, and its line in the overview. No module is loaded to show it."""

_OWN_FAULT: Final = 1
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        loaded = getattr(module, cmd_name, None) or module.command
        assert isinstance(loaded, click.Command)
        return loaded

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        close = difflib.get_close_matches(args[0], COMMANDS, n=1)
        if args[0] not in COMMANDS and close:
            ctx.fail(f"no such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SystemExit as left:  # not click's, which comes later; a command that was left has not succeeded
            raise InternalError("the command was left before its end.") from left

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="hubbub %(version)s")
def commands() -> None:
    """Differentially private answers about a table of people.

    You hear the room, never the person. Begin with `hubbub demo`; the policy file hubbub.toml is looked for
    in the working directory and the folders above it.
    """


def main() -> None:
    """Run the command line of this process, and exit."""
    light.begin(sys.argv[1:])
    light.end(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; its exit code."""
    _tolerate_narrow_encodings()
    try:
        result = commands.main(list(arguments), prog_name="hubbub", standalone_mode=False)
        if sys.stdout is not None:  # it is closed
            sys.stdout.flush()
    except HubbubError as error:
        show_error(error)
        return error.exit_code
    except click.ClickException as error:
        click.echo(printable(_usage_text(error)), err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Whoever read the output has enough (click says so by SystemExit). What Python still wants to flush
        # must not fail on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        return _unwritten(error) if error.errno in _FULL and error.filename is None else _internal()
    except Exception:  # the last door: an exception's own text may hold private rows
        return _internal()
    return result if isinstance(result, int) else 0


def _unwritten(error: OSError) -> int:
    """What was to be said has no place: of files, each command says so itself."""
    text = f"the output cannot be written: {error.strerror}. What was charged is free, asked again."
    click.echo(f"Error: {text}", err=True)
    return PolicyError.exit_code


def _internal() -> int:
    incident = uuid.uuid4().hex[:12]
    show_error(
        InternalError(
            f"something went wrong inside hubbub (incident {incident}). What was charged stays charged. Set "
            "HUBBUB_DEBUG=1 to see where, on a screen that may show private rows."
        )
    )
    if os.environ.get("HUBBUB_DEBUG") == "1":
        click.echo("HUBBUB_DEBUG=1: what follows may hold private rows.", err=True)
        click.echo(traceback.format_exc(), err=True)
    return _OWN_FAULT


def _usage_text(error: click.ClickException) -> str:
    message = error.format_message()
    if message.startswith("Usage:"):  # a group named without a command: its help is all there is to say
        return message
    usage = error.ctx.get_usage() + "\n" if isinstance(error, click.UsageError) and error.ctx else ""
    return f"{usage}Error: {message}"


def _tolerate_narrow_encodings() -> None:
    """A terminal that cannot show a character shows a question mark instead of failing after the charge."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
