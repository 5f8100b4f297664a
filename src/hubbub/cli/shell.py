"""`hubbub shell`: question after question, at a prompt or from a pipe.

A question ends with `;` at the end of a line. Lines that begin with a dot steer the shell (`.help` lists them). Every
question is asked as `hubbub query` asks it: checked first, agreed to, charged, answered. At a prompt an error leaves
the shell open; from a pipe the first error ends it with its exit code, so that a script notices.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hubbub.cli.console import note, on_terminal, printable, show_error
from hubbub.cli.options import chosen_format, epsilon_option, format_option, open_session, policy_option, purpose_option
from hubbub.cli.query import agree, say_cost, show_release
from hubbub.cli.standing import left_after, left_text, more_like
from hubbub.errors import HubbubError, QueryError
from hubbub.ledger.budget import parse_epsilon

if TYPE_CHECKING:
    from hubbub.session import Session

__all__ = ["command"]

HISTORY: Final = ".hubbub_history"
FORMATS: Final = ("table", "csv", "json", "md")


@click.command("shell")
@epsilon_option
@policy_option
@purpose_option
@click.option("--yes", is_flag=True, help="Spend without asking; needed where no person can answer.")
@format_option()
def command(epsilon: str, policy: Path | None, purpose: str | None, yes: bool, form: str | None) -> None:
    """Ask question after question, each at the cost of --epsilon.

    Questions end with a semicolon at the end of a line; .help lists the other commands.
    """
    parse_epsilon(epsilon)
    with open_session(policy, purpose) as session:
        shell = _Shell(session, epsilon, chosen_format(form), yes)
        person = on_terminal("stdin")
        if person:
            note("Questions end with ; and .help lists the other commands.")
        with _edited_lines() if person else contextlib.nullcontext():
            for statement in shell.statements(_typed if person else _piped):
                _serve(shell, statement, person)
                if shell.done:
                    break


def _serve(shell: _Shell, statement: str, person: bool) -> None:
    """One statement; at a prompt, what goes wrong is said and forgotten."""
    if not person:
        shell.serve(statement)
        return
    try:
        shell.serve(statement)
    except HubbubError as error:
        show_error(error)
    except click.UsageError as error:
        note(error.format_message())
    except click.exceptions.Exit:
        pass  # no consent: said already
    except (KeyboardInterrupt, click.Abort):
        note("Interrupted.")


@dataclass
class _Shell:
    """The state between two questions."""

    session: Session
    epsilon: str
    form: str
    yes: bool
    done: bool = False
    pending: list[str] = field(default_factory=list)

    def statements(self, read: Callable[[bool], str | None]) -> Iterator[str]:
        """Commands and questions, each whole. `read` gives a line, or None at the end."""
        while not self.done:
            try:
                line = read(bool(self.pending))
            except KeyboardInterrupt:
                self.pending.clear()
                note("")
                continue
            if line is None:
                break
            if not self.pending and line.strip().startswith(".") and not _goes_on(line):
                yield line.strip().rstrip(";").rstrip()
                continue
            if line.strip() or self.pending:
                self.pending.append(line)
            if line.rstrip().endswith(";"):
                yield self._taken()
        if self.pending:
            yield self._taken()

    def _taken(self) -> str:
        text = "\n".join(self.pending).strip().rstrip(";").rstrip()
        self.pending.clear()
        return text

    def serve(self, statement: str) -> None:
        """Run one command, or ask one question."""
        if not statement:
            return
        if not statement.startswith("."):
            self._ask(statement)
            return
        word, _, rest = statement[1:].partition(" ")
        commands: dict[str, Callable[[str], None]] = {
            "help": self._help,
            "check": self._check,
            "budget": self._budget,
            "tables": self._tables,
            "schema": self._schema,
            "history": self._history,
            "epsilon": self._epsilon,
            "format": self._format,
            "quit": self._quit,
            "exit": self._quit,
        }
        if word not in commands:
            known = ", ".join(f".{name}" for name in commands)
            raise QueryError(f".{word} is not a command of the shell. Known: {known}.")
        commands[word](rest.strip())

    def _ask(self, sql: str) -> None:
        agree(self.session, sql, epsilon=self.epsilon, yes=self.yes, fresh=False)
        release = self.session.sql(sql, epsilon=self.epsilon)
        show_release(release, self.form, 0.95, None)
        say_cost(release, left_after(self.session, release), more_like(self.session, release))

    def _check(self, sql: str) -> None:
        if not sql:
            raise QueryError(".check takes a question: .check SELECT COUNT(*) FROM table;")
        click.echo(printable(str(self.session.check(sql, epsilon=self.epsilon))))

    def _budget(self, _rest: str) -> None:
        spaces = sorted(set(self.session._data.spaces().values()))
        for space in spaces:
            left = left_text(self.session.ledger, space, analyst=self.session.analyst)
            whose = f"{space}: " if len(spaces) > 1 else ""
            click.echo(printable(f"{whose}epsilon {left} is left; each question may cost {self.epsilon}"))

    def _tables(self, _rest: str) -> None:
        click.echo(printable(repr(self.session.tables)))

    def _schema(self, name: str) -> None:
        tables = self.session.tables
        shown = [tables[name]] if name else tables.values()
        click.echo(printable("\n\n".join(repr(table) for table in shown)))

    def _history(self, _rest: str) -> None:
        click.echo(printable(repr(self.session.history())))

    def _epsilon(self, amount: str) -> None:
        if amount:
            parse_epsilon(amount)
            self.epsilon = amount
        note(f"Each question may cost epsilon {self.epsilon}.")

    def _format(self, form: str) -> None:
        if form not in FORMATS:
            raise QueryError(f".format takes one of {', '.join(FORMATS)}.")
        self.form = form

    def _quit(self, _rest: str) -> None:
        self.done = True

    def _help(self, _rest: str) -> None:
        click.echo(
            "SELECT ...;           ask a question\n"
            ".check SELECT ...;    what it would cost and how exact it would be\n"
            ".epsilon [NUMBER]     what each question may cost\n"
            ".budget               what is left, for each unit space\n"
            ".tables               what may be asked\n"
            ".schema [TABLE]       its columns, their kinds, and what is declared of them\n"
            ".history              what was asked, and what it cost\n"
            f".format NAME          {', '.join(FORMATS)}\n"
            ".quit                 leave"
        )


def _goes_on(line: str) -> bool:
    """Whether a command's question may have further lines."""
    return line.strip().startswith(".check ") and not line.rstrip().endswith(";")


def _typed(more: bool) -> str | None:
    try:
        return input("   ...> " if more else "hubbub> ")
    except EOFError:
        return None


def _piped(_more: bool) -> str | None:
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


@contextlib.contextmanager
def _edited_lines() -> Iterator[None]:
    """Lines that can be edited and recalled; questions, not answers, are kept for the next time, for their owner."""
    try:
        import readline
    except ImportError:
        yield
        return
    place = Path.home() / HISTORY
    with contextlib.suppress(OSError):
        readline.read_history_file(place)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT, 0o600))
            readline.set_history_length(1000)
            readline.write_history_file(place)
