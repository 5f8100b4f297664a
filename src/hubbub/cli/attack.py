"""`hubbub attack`: what an outsider learns about the people of a file, from exact answers and from private ones.

hubbub attack linkage people.csv --columns zip,birth,sex --secret illness --epsilon 1
hubbub attack membership people.csv --columns zip,birth --members 50 --epsilon 1 --repeat 20
hubbub attack hashes trips.parquet --column medallion --pattern 9X99 --pattern XX999 --pattern XXX999 --epsilon 1

The file is read in full, as its steward reads it; shares and counts are shown, never a row. Nothing is charged to a
ledger, and the private answers are thrown away.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hubbub.cli.console import note
from hubbub.cli.options import format_option, show
from hubbub.errors import HubbubError

if TYPE_CHECKING:
    from hubbub.attacks.report import Report
    from hubbub.file_formats import Csv

__all__ = ["command"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_COLUMNS = ("an outsider learns", "exact answers", "private answers", "ceiling")


@click.group("attack")
def command() -> None:
    """What an outsider would learn from a file of yours: exact answers against private ones.

    FILE is a Parquet or CSV file with one row per person. Shares and counts are shown, never a row.
    """


_repeat = click.option(
    "--repeat", type=int, default=1, show_default=True, metavar="N",
    help="Run it N times, with fresh noise and samples: the mean, the least and the most.",
)  # fmt: skip


def _attack(function: _Function) -> _Function:
    """What every attack takes: the file, epsilon, the format and a picture."""
    for option in (
        click.option(
            "--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
            help="Draw the attack on exact answers; needs the extra plot.",
        ),
        format_option(),
        _repeat,
        click.option("--epsilon", required=True, metavar="NUMBER", help="The epsilon of the private answers."),
        click.argument("file", type=click.Path(dir_okay=False, path_type=Path)),
    ):  # fmt: skip
        function = option(function)
    return function


def _columns(required: bool = True) -> Callable[[_Function], _Function]:
    return click.option(
        "--columns", required=required, metavar="A,B,...", callback=lambda _context, _option, value: _names(value),
        help="What the outsider knows of people: columns, separated by commas.",
    )  # fmt: skip


def _names(value: str | None) -> list[str]:
    return [name.strip() for name in (value or "").split(",") if name.strip()]


_secret = click.option("--secret", required=True, metavar="COLUMN", help="The column to be learned.")
_value = click.option(
    "--value", metavar="VALUE", help="Who has this value has the secret; default, of two values: the rarer one."
)


@command.command("linkage")
@_attack
@_columns()
@_secret
def linkage(file: Path, columns: list[str], secret: str, **shared: Any) -> None:
    """Who is alone in a few columns, and whose secret the counts give away."""
    from hubbub.attacks import on_counts

    _run(file, shared, on_counts.linkage, columns, secret)


@command.command("anonymity")
@_attack
@_columns()
@_secret
@click.option("--k", default=5, show_default=True, metavar="K", help="The k of the two k-anonymous releases.")
def anonymity(file: Path, columns: list[str], secret: str, k: int, **shared: Any) -> None:
    """k, l, the curse of dimension, and two k-anonymous releases put together."""
    from hubbub.attacks import on_counts

    _run(file, shared, on_counts.anonymity, columns, secret, k=k)


@command.command("ratings")
@_attack
@click.option("--user", required=True, metavar="COLUMN", help="Whose entry a row is.")
@click.option("--item", required=True, metavar="COLUMN", help="What was rated, bought or visited.")
@click.option("--rating", metavar="COLUMN", help="The rating, if there is one.")
@click.option("--day", metavar="COLUMN", help="The date, or a day's number, if there is one.")
@click.option("--known", default=8, show_default=True, metavar="N", help="How many entries of a target are known.")
@click.option("--targets", default=100, show_default=True, metavar="N", help="How many people to look for.")
def ratings(file: Path, user: str, item: str, **given: Any) -> None:
    """Finds people's rows among pseudonyms from a few of their entries; one row per entry."""
    from hubbub.attacks import on_samples

    shared = {name: given.pop(name) for name in ("epsilon", "form", "plot", "repeat")}
    _run(file, shared, on_samples.ratings, user, item, **given)


@command.command("hashes")
@_attack
@click.option("--column", required=True, metavar="COLUMN", help="The hashes; or identifiers, to be hashed first.")
@click.option(
    "--pattern", "patterns", required=True, multiple=True, metavar="FORM",
    help="Their form: 9 a digit, X a capital, x a small letter, \\ takes the next as it stands. May be repeated.",
)  # fmt: skip
@click.option("--algorithm", type=click.Choice(["md5", "sha1", "sha256"]), default="md5", show_default=True)
def hashes(file: Path, column: str, patterns: tuple[str, ...], algorithm: str, **shared: Any) -> None:
    """Reverses hashed identifiers by trying every one of a form."""
    from hubbub.attacks import on_counts

    _run(file, shared, on_counts.hashes, column, patterns, algorithm=algorithm)


@command.command("differencing")
@_attack
@_columns()
@_secret
@_value
def differencing(file: Path, columns: list[str], secret: str, value: str | None, **shared: Any) -> None:
    """Two counts, one of all and one of all but a person."""
    from hubbub.attacks import on_counts

    _run(file, shared, on_counts.differencing, columns, secret, value)


@command.command("averaging")
@_attack
@click.option("--column", required=True, metavar="COLUMN", help="The column whose values are counted.")
def averaging(file: Path, column: str, **shared: Any) -> None:
    """The same counts asked again and again."""
    from hubbub.attacks import on_counts

    _run(file, shared, on_counts.averaging, column)


@command.command("membership")
@_attack
@_columns()
@click.option("--members", default=100, show_default=True, metavar="N", help="How many people the group has.")
def membership(file: Path, columns: list[str], members: int, **shared: Any) -> None:
    """Who is in a group, from the group's frequencies alone."""
    from hubbub.attacks import on_samples

    _run(file, shared, on_samples.membership, columns, members=members)


@command.command("reconstruction")
@_attack
@_secret
@_value
@_columns(required=False)
@click.option("--people", default=100, show_default=True, metavar="N", help="How many people's secrets.")
def reconstruction(file: Path, secret: str, value: str | None, columns: list[str], people: int, **shared: Any) -> None:
    """A column of secrets from many counts: random subsets, or the 2-way tables of --columns."""
    from hubbub.attacks import on_samples

    _run(file, shared, on_samples.reconstruction, secret, value, columns=columns, people=people)


@command.command("inversion")
@_attack
@_columns()
@_secret
@_value
@click.option("--outcome", required=True, metavar="COLUMN", help="What the linear model predicts.")
@click.option("--members", type=int, metavar="N", help="How many are trained on; default: half as many as features.")
def inversion(
    file: Path, columns: list[str], secret: str, value: str | None, outcome: str, members: int | None, **shared: Any
) -> None:
    """A secret from a linear model, a person's outcome and the rest of their row."""
    from hubbub.attacks import on_samples

    _run(file, shared, on_samples.inversion, columns, secret, outcome, value, members=members)


@command.command("leaderboard")
@_attack
@click.option("--label", required=True, metavar="COLUMN", help="The secret labels.")
@_value
@click.option("--submissions", default=1000, show_default=True, metavar="N", help="How many random submissions.")
def leaderboard(file: Path, label: str, value: str | None, submissions: int, **shared: Any) -> None:
    """Random submissions that climb a leaderboard."""
    from hubbub.attacks import on_samples

    _run(file, shared, on_samples.leaderboard, label, value, submissions=submissions)


@command.command("tracing")
@format_option()
@_repeat
@click.option("--users", default=10, show_default=True, metavar="N", help="How many users hold a key.")
@click.option("--pirates", default=5, show_default=True, metavar="N", help="How many of them leak theirs.")
@click.option("--strategy", default="majority", show_default=True, metavar="NAME", help="What the pirates answer.")
@click.option("--beta", default="0.05", show_default=True, metavar="P", help="How often an innocent may be accused.")
@click.option("--epsilon", required=True, metavar="NUMBER", help="The epsilon of the private pirate.")
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Draw both staircases; needs the extra plot.",
)  # fmt: skip
def tracing(users: int, pirates: int, strategy: str, beta: str, epsilon: str, **shared: Any) -> None:
    """Who leaked keys, from a pirate decoder's answers; a private decoder is not traced. Takes no file."""
    from hubbub.attacks import on_keys
    from hubbub.attacks.report import repeated
    from hubbub.ledger.budget import parse_epsilon

    given: dict[str, Any] = {"users": users, "pirates": pirates, "strategy": strategy, "beta": beta}
    paid = parse_epsilon(epsilon)
    _shown(repeated(lambda: on_keys.tracing(**given, epsilon=paid), shared["repeat"]), shared)


def _run(file: Path, shared: dict[str, Any], attack: Callable[..., Report], *arguments: Any, **options: Any) -> None:
    """Read the file, run the attack, and show what it found: the findings on stdout, remarks on stderr."""
    from hubbub.attacks.report import read_table, repeated
    from hubbub.ledger.budget import parse_epsilon

    table, epsilon = read_table(file, _written(file)), parse_epsilon(shared["epsilon"])
    report = repeated(lambda: attack(table, *arguments, epsilon=epsilon, **options), shared["repeat"])
    _shown(report, shared, drawn="exact answers")


def _written(file: Path) -> Csv | None:
    """How a CSV is written, its decimal commas and dates included: by its rows, which are read anyway."""
    from hubbub.cli.sniff import dialect_of, guess_types

    if file.suffix.lower() != ".csv" or not file.is_file():
        return None
    try:
        return guess_types(file, dialect_of(file))[1]
    except (HubbubError, OSError):
        return None


def _shown(report: Report, shared: dict[str, Any], drawn: str = "") -> None:
    """drawn: which answers the picture is of, where its title does not say it."""
    show(_COLUMNS, [f.texts() for f in report.findings], shared["form"], right=(False, True, True, True))
    for line in report.notes:
        note(line)
    if shared["plot"] is not None:
        from hubbub.plots import save

        axes = report.result.plot()
        for place in ("left", "center"):
            if drawn and (title := axes.get_title(loc=place)):
                axes.set_title(f"{title}, {drawn}", loc=place)
        save(axes, str(shared["plot"]))
        note(f"Drew {shared['plot']}{', the first run' if shared['repeat'] > 1 else ''}.")
