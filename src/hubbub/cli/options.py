"""Options and steps that several commands share."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hubbub.cli.console import INTERRUPTED, note, on_terminal, printable

if TYPE_CHECKING:
    from hubbub.ledger.policy import Policy
    from hubbub.ledger.store import Ledger
    from hubbub.session import Session

__all__ = [
    "agree",
    "chosen_format",
    "epsilon_option",
    "format_option",
    "key_option",
    "ledger_option",
    "manage_ledger",
    "me",
    "one_space",
    "open_ledger",
    "open_session",
    "open_session_to_check",
    "output_option",
    "params_option",
    "policy_option",
    "question_options",
    "question_text",
    "rows_per_unit_option",
    "show",
    "space_option",
    "terms_given",
    "terms_options",
    "write",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

policy_option = click.option(
    "--policy",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The policy file; default: the nearest hubbub.toml, upward from here.",
)
purpose_option = click.option(
    "--purpose", metavar="TEXT", help="What the question is for; the ledger keeps it beside the charge."
)
ledger_option = click.option(
    "--ledger",
    metavar="FILE",
    help="The ledger file, or its postgresql:// address; default: the one the policy file names.",
)
key_option = click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The key of the ledger's chain, where it has one; default: the one the policy file names.",
)
space_option = click.option("--unit-space", metavar="NAME", help="Whose budget; needed where the ledger holds several.")
epsilon_option = click.option(
    "--epsilon",
    required=True,
    metavar="NUMBER",
    help="What the question may cost: 0.5, or a ratio such as 1/3. Read exactly as written.",
)
rows_per_unit_option = click.option(
    "--rows-per-unit",
    "--max-rows",  # its name before
    "rows_per_unit",
    type=click.IntRange(1),
    metavar="N",
    help="Rows that a unit keeps; default: the policy's.",
)
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the data here instead of to stdout.",
)


params_option = click.option(
    "-p",
    "--param",
    "params",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    callback=lambda _context, _option, pairs: {name: parameter(value) for name, value in pairs},
    help="The value of $NAME in the question: a number, true, false, null, or text; 'quoted' it is text in any case.",
)


class Width(click.ParamType[Any]):
    """A number, or a share such as 10%."""

    name = "width"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises click's own error for anything else."""
        if isinstance(value, str) and value.rstrip().endswith("%"):
            return value
        return click.FLOAT.convert(value, param, ctx)


class Limit(click.ParamType[Any]):
    """A whole number, or "auto"."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises click's own error for anything else."""
        if value == "auto" or isinstance(value, int):
            return value
        return click.INT.convert(value, param, ctx)


_TERMS: Final = (
    click.option("--epsilon", metavar="NUMBER", help="What the question may cost: 0.5, or a ratio such as 1/3."),
    click.option("--rho", metavar="NUMBER", help="The same as zCDP, in place of --epsilon, under a budget with delta."),
    click.option("--within", type=Width(), metavar="WIDTH", help="Find the least epsilon for this ±, or for 10%."),
    click.option("--at-least", type=float, metavar="N", help="With --within 10%: smaller groups need not be."),
    click.option("--at-most", metavar="NUMBER", help="The largest epsilon that --within may cost."),
    click.option("--noise", type=click.Choice(["laplace", "gaussian"]), help="Default: Gaussian under delta."),
    click.option("--delta", metavar="NUMBER", help="What finding groups privately may cost."),
    click.option("--max-groups", type=Limit(), metavar="N", help="In how many groups one unit counts; auto: found."),
    click.option("--max-rows", type=Limit(), metavar="N", help="With how many rows in a group; auto: found."),
    click.option("--max-total", type=int, metavar="N", help="With how many rows one unit counts without groups."),
    click.option(
        "--keys",
        multiple=True,
        metavar="NAME=VALUE,...",
        callback=lambda _context, _option, given: _keys(given),
        help="The groups of a column, in place of declared ones; values as for -p. May be repeated.",
    ),
    click.option("--total-error", is_flag=True, default=None, help="With auto: intervals that hold the total."),
    click.option("--rows-per-unit-at-most", type=int, metavar="N", help="With --total-error: you state that."),
    click.option("--weight", metavar="COLUMN", help="Rows count by this column in COUNT, SUM and AVG."),
    click.option("--bounding", type=click.Choice(["groups", "norm"]), help="How a unit beyond these is cut down."),
)


def _keys(given: Sequence[str]) -> dict[str, list[object]] | None:
    """Groups by column. A value with a comma stands in double quotes, as in CSV.

    Raises UsageError where there is no column, or no value.

    >>> _keys(["ward=A,B", "n=1,2,null", 'who="Doe, J",null'])
    {'ward': ['A', 'B'], 'n': [1, 2, None], 'who': ['Doe, J', None]}
    """
    keys: dict[str, list[object]] = {}
    for text in given:
        name, _, values = text.partition("=")
        if not name or not values or name in keys:
            raise click.UsageError(f"--keys {text}: write NAME=VALUE,VALUE, once for each column.")
        keys[name] = [parameter(value) for value in next(csv.reader([values]))]
    return keys or None


def terms_options(command: _Function) -> _Function:
    """How a question is asked: at which amount, and how much one unit contributes."""
    for option in reversed(_TERMS):
        command = option(command)
    return command


def terms_given(given: Mapping[str, Any], params: Mapping[str, object]) -> dict[str, Any]:
    """The arguments of `Session.check` and `Session.sql` from these options.

    Raises UsageError where no amount is given.
    """
    written = {name: value for name, value in given.items() if value is not None}
    if not {"epsilon", "rho", "within"} & set(written):
        raise click.UsageError("say what the question may cost: --epsilon NUMBER, --rho, or --within with --at-most.")
    return written | ({"params": dict(params)} if params else {})


def question_options(command: _Function) -> _Function:
    """The argument SQL, and `-f FILE` in its place."""
    command = click.argument("sql", required=False)(command)
    named = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
    return click.option("-f", "--file", "file", type=named, metavar="FILE", help="Read SQL here; - is stdin.")(command)


def question_text(sql: str | None, file: Path | None) -> str:
    """The question, from the command line or from a file.

    Raises UsageError for both, for neither, and for a file that cannot be read as text.
    """
    if (sql is None) == (file is None):
        raise click.UsageError("give the question once: as SQL, or in a file with -f FILE.")
    if sql is not None:
        return sql
    assert file is not None
    try:
        with click.open_file(str(file), encoding="utf-8") as opened:
            return str(opened.read())
    except OSError as error:
        raise click.UsageError(f"cannot read {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"cannot read {file}: it is not UTF-8 text.") from None


def parameter(text: str) -> object:
    """A parameter's value from the command line.

    >>> [parameter(t) for t in ("3", "0.5", "true", "null", "'3'", "A")]
    [3, 0.5, True, None, '3', 'A']
    """
    known = {"true": True, "false": False, "null": None}
    if text.lower() in known:
        return known[text.lower()]
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    for kind in (int, float):
        # What Python reads as a number beyond digits ("1_000", "nan") is text here.
        if set(text) <= set("+-.0123456789eE") and any(c.isdigit() for c in text):
            try:
                return kind(text)
            except ValueError:
                continue
    return text


def format_option(*more: str) -> Callable[[_Function], _Function]:
    """The option `--format`, with `more` formats than the usual ones."""
    choice = click.Choice(["table", "json", "csv", "md", *more])
    return click.option("--format", "form", type=choice, help="Default: table on a terminal, else csv.")


_ENDINGS: Final = {".csv": "csv", ".json": "json", ".md": "md", ".arrow": "arrow", ".parquet": "parquet"}


def chosen_format(form: str | None, output: Path | None = None) -> str:
    """The format that was named; else what the file's name ends in (no ending: CSV); else a table for a person, CSV for
    a pipe.

    Raises UsageError for an ending that stands for no format.
    """
    if form is None and output is not None and output.suffix:
        ending = output.suffix.lower()
        if ending not in _ENDINGS:
            raise click.UsageError(
                f"-o {output}: {output.suffix} is not a format's ending. Known: {', '.join(_ENDINGS)}; or name the "
                "format with --format. Nothing was charged."
            )
        return _ENDINGS[ending]
    return form or ("table" if output is None and on_terminal("stdout") else "csv")


def open_session(policy: Path | None, purpose: str | None = None) -> Session:
    """The session of a policy file; its ledger must exist."""
    from hubbub.cli.light import without_pandas
    from hubbub.ledger.policy import find_policy
    from hubbub.session import Session

    path = find_policy() if policy is None else policy
    without_pandas(path)
    return Session.from_policy(path, purpose=purpose)


def agree(epsilon: str, *, yes: bool) -> None:
    """Ask whether so much may be spent.

    Raises click's Exit where a person says no, UsageError where nobody is there to ask.
    """
    if yes:
        return
    if not on_terminal("stdin"):
        raise click.UsageError(f"this costs epsilon {epsilon}, and nobody is there to agree: add --yes.")
    if not click.confirm(f"This costs epsilon {epsilon}. Go on?", err=True):
        note("Not done; nothing was charged.")
        raise click.exceptions.Exit(INTERRUPTED)


def open_session_to_check(policy: Path | None) -> Session:
    """The session of a policy file for pricing alone; where its ledger is not made yet, against the whole budget."""
    from hubbub.ledger.policy import find_policy, load_policy
    from hubbub.session import Session
    from hubbub.session.open import declared_tables

    said = load_policy(policy or find_policy())
    if not isinstance(said.ledger, Path) or os.path.lexists(said.ledger):
        return open_session(policy)
    note("There is no ledger yet, so nothing is spent. Before a question is asked: hubbub ledger create")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Session(declared_tables(said), budget=said.budget, ledger=None, _policy=said)


def open_ledger(
    policy: Path | None, ledger: str | None, key_file: Path | None = None, *, anchored: bool = True
) -> Ledger:
    """The ledger, for reading: the one named, or that of the policy file, which must be what its anchor says.

    anchored: False leaves that to `verify`.
    """
    from hubbub.ledger.store import Ledger

    place, key, said = _place(policy, ledger, key_file)
    if said is None:
        return Ledger.inspect(place, key=key)
    opened = Ledger.inspect(
        place,
        key=key,
        anchor=said.anchor if anchored else None,
        max_failures=said.max_failures,
        max_failures_all=said.max_failures_all,
    )
    opened.name_anchor(said.anchor)
    return opened


def manage_ledger(policy: Path | None, ledger: str | None, key_file: Path | None = None) -> Ledger:
    """The ledger, for a steward's entries. One that is named does without the policy and its anchor."""
    from hubbub.ledger.store import Ledger

    place, key, said = _place(policy, ledger, key_file)
    return Ledger.manage(place, key=key, anchor=None if said is None else said.anchor)


def _place(
    policy: Path | None, ledger: str | None, key_file: Path | None
) -> tuple[str | Path, bytes | None, Policy | None]:
    from hubbub.ledger.keys import read_key
    from hubbub.ledger.policy import find_policy, load_policy

    if ledger is not None:
        return ledger, None if key_file is None else read_key(key_file), None
    policy_file = load_policy(policy or find_policy())
    return policy_file.ledger, policy_file.key() if key_file is None else read_key(key_file), policy_file


def one_space(book: Ledger, named: str | None) -> str:
    """The unit space that was named, or the only one there is."""
    spaces = book.balance.spaces()
    if named is None and len(spaces) == 1:
        return spaces[0]
    if named not in spaces:
        raise click.UsageError(f"--unit-space: name one of {', '.join(spaces) or '(none: the ledger is empty)'}.")
    return named


def me() -> str:
    """Who acts, for the record: the operating system's user."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


def show(columns: Sequence[str], rows: Sequence[Sequence[str]], form: str | None, *, right: Sequence[bool]) -> None:
    """Rows of text in the format that was named: a table, JSON, CSV or Markdown."""
    from hubbub.cli.console import show_table
    from hubbub.cli.formats import as_csv, as_json, as_markdown

    keys = [name.replace(" ", "_") for name in columns]
    match chosen_format(form):
        case "json":
            write(as_json([dict(zip(keys, row, strict=True)) for row in rows]), None)
        case "csv":
            write(as_csv(keys, rows), None)
        case "md":
            write(as_markdown(columns, rows, right=right), None)
        case _:
            show_table(columns, rows, right=right)


def write(text: str, output: Path | None) -> None:
    """Data as text: to stdout, or to a file."""
    if output is None:
        click.echo(printable(text) if on_terminal("stdout") else text)
    else:
        output.write_text(text + "\n", encoding="utf-8")
