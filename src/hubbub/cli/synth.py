"""`hubbub synth`: a synthetic table in place of a private one.

FILE is the source (or the name) of a private table of the policy file, which declares the domain of its columns, its
units and their bounds. The whole cost is charged before a row is read; the table is stored in the ledger, then
written.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hubbub.cli.console import INTERRUPTED, note, on_terminal, printable
from hubbub.cli.options import epsilon_option, open_session, policy_option
from hubbub.cli.standing import left_text
from hubbub.errors import EngineError, PolicyError
from hubbub.ledger.budget import parse_epsilon
from hubbub.progress import at_work

if TYPE_CHECKING:
    from hubbub.ledger.policy import Policy, TablePolicy
    from hubbub.session import Session
    from hubbub.synthesis.session_door import SynthesisQuestion

__all__ = ["command"]

_SUFFIXES = (".parquet", ".csv")


@click.command("synth")
@click.argument("file")
@epsilon_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write the synthetic table: .parquet or .csv. Without it only the plan is shown.",
)
@policy_option
@click.option("--columns", metavar="A,B,...", help="These columns only; default: all that are declared.")
@click.option("--edges", multiple=True, metavar="COLUMN=E0,E1,...", help="Bins of a column, instead of equal ones.")
@click.option("--constraint", "constraints", multiple=True, metavar="TEXT", help="'age < 18 implies married = no'.")
@click.option("--max-rows", type=click.IntRange(1), metavar="N", help="Rows that a unit keeps; default: the policy's.")
@click.option("--rows", type=click.IntRange(1), metavar="N", help="How many rows there are, if public; else bought.")
@click.option("--method", default="auto", show_default=True, metavar="NAME", help="How to model the table.")
@click.option("--thorough", is_flag=True, help="Let the slow adaptive method be picked.")
@click.option("--assume-rows", type=click.IntRange(1), default=10_000, show_default=True, help="Rows to predict for.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Draw predicted errors.")
@click.option("--yes", is_flag=True, help="Spend without asking; needed where no person can answer.")
def command(
    file: str, epsilon: str, output: Path | None, policy: Path | None, plot: Path | None, yes: bool, **options: Any
) -> None:
    """A synthetic table in place of the private FILE, at the cost of --epsilon."""
    from hubbub.ledger.policy import find_policy, load_policy
    from hubbub.opening import private_of

    _check_output(output)
    read = load_policy(policy or find_policy())
    table = _table(read, file)
    question = _question(read, table, epsilon, options)
    plan = question.plan(assume_rows=options["assume_rows"])
    note(str(plan))
    if output is None:
        note("Nothing was charged. Name a file with -o to make the synthetic table.")
        return
    with open_session(read.path) as session:
        _agree(epsilon, yes=yes)
        charge = _charge(session, read, table, question, epsilon)
        data, report = _answer(session, table, question, charge)
        left = left_text(session.ledger, private_of(table).space, dataset=table.name, analyst=session.analyst)
    try:
        _write(data, output)
    except OSError as error:
        raise PolicyError(
            f"cannot write {output}: {error.strerror}. The table is stored under charge {charge}."
        ) from None
    if plot is not None:
        from hubbub.plots import save

        save(report.plot(), str(plot))
    click.echo(printable(str(report)))
    note(f"Charged epsilon {epsilon} ({charge}); {left} is left. Wrote {output}.")


def _check_output(output: Path | None) -> None:
    """Refuse before the charge what would fail after it."""
    if output is None:
        return
    if output.suffix not in _SUFFIXES:
        raise click.UsageError(f"-o {output}: a synthetic table is written as {' or '.join(_SUFFIXES)}.")
    if not output.parent.is_dir():
        raise click.UsageError(f"-o {output}: there is no folder {output.parent}.")


def _table(policy: Policy, file: str) -> TablePolicy:
    """The private table of this name, or with this source."""
    for table in policy.tables.values():
        if file == table.name or Path(file).absolute() == table.source:
            if table.through:
                raise PolicyError(
                    f"the unit of {table.name!r} stands in another table: use session.synthesize in Python."
                )
            if table.table is not None or not isinstance(table.source, Path):
                raise PolicyError(f"the table {table.name!r} lies in a database; synth reads .parquet and .csv files.")
            return table
    known = ", ".join(f"{t.name} ({getattr(t.source, 'name', t.source)})" for t in policy.tables.values())
    raise PolicyError(
        f"{file!r} is no private table of {policy.path}, which declares {known or 'none'}. Declare its columns' "
        "domains there: they are never read from private rows. `hubbub init FILE --unit COLUMN` writes a first policy."
    )


def _file(table: TablePolicy) -> Path:
    assert isinstance(table.source, Path)  # `_table` has seen to it
    return table.source


def _question(policy: Policy, table: TablePolicy, epsilon: str, options: Mapping[str, Any]) -> SynthesisQuestion:
    from hubbub.accounting import rho_of_epsilon
    from hubbub.synthesis.session_door import SynthesisQuestion, declared

    if policy.budget.pure:
        raise PolicyError(
            "synthetic tables are priced in zCDP, and this budget has no delta. Declare one, as in delta = 1e-6 under "
            "[budget]."
        )
    columns = options["columns"].split(",") if options["columns"] else None
    schema = declared(table.columns, table.types, edges=dict(map(_edges, options["edges"])), wanted=columns)
    return SynthesisQuestion(
        table=table.name,
        schema=schema,
        rho=rho_of_epsilon(parse_epsilon(epsilon), policy.budget.delta_conversion),
        rows_per_unit=_rows_per_unit(table, options["max_rows"]),
        neighbours=table.neighbours,
        method=options["method"],
        thorough=options["thorough"],
        rows=options["rows"],
        constraints=tuple(options["constraints"]),
    )


def _edges(text: str) -> tuple[str, list[float]]:
    name, _, numbers = text.partition("=")
    try:
        return name, [float(n) for n in numbers.split(",")]
    except ValueError:
        raise click.UsageError(f"--edges {text}: write COLUMN=E0,E1,... with numbers, ascending.") from None


def _rows_per_unit(table: TablePolicy, asked: int | None) -> int:
    if table.unit is None:
        return 1
    if asked is not None:
        return asked
    if table.max_total is not None:
        return table.max_total
    if table.max_groups is not None and table.max_rows is not None:
        return table.max_groups * table.max_rows
    raise PolicyError(
        f"how many rows of a {table.unit} count is not declared. Give --max-rows, or max_total in the policy."
    )


def _agree(epsilon: str, *, yes: bool) -> None:
    if yes:
        return
    if not on_terminal("stdin"):
        raise click.UsageError(f"this table costs epsilon {epsilon}, and nobody is there to agree: add --yes.")
    if not click.confirm(f"This costs epsilon {epsilon}. Make it?", err=True):
        note("Not made; nothing was charged.")
        raise click.exceptions.Exit(INTERRUPTED)


def _charge(session: Session, policy: Policy, table: TablePolicy, question: SynthesisQuestion, epsilon: str) -> str:
    """On the disk before a row is read."""
    from hubbub.accounting import cost, to_json
    from hubbub.opening import private_of

    space = private_of(table).space
    found = _file(table).stat()
    return session.ledger.charge(
        space=space,
        dataset=table.name,
        analyst=session.analyst,
        question_key=question.key,
        sql=f"synthetic table of {table.name}",
        epsilon=parse_epsilon(epsilon),
        event=to_json(question.event),
        cost=cost(question.event),
        details=json.dumps(
            {
                "kind": "synthesis",
                "columns": list(question.schema.columns),
                "method": question.method,
                "rows_per_unit": question.rows_per_unit,
                "neighbours": question.neighbours,
                "constraints": list(question.constraints),
            }
        ),
        policy=session.ledger.remember_policy(policy.text),
        data_version=session.ledger.data_version(space, table.name, fingerprint=f"{found.st_size} {found.st_mtime_ns}"),
    )


@at_work("making the table")
def _answer(session: Session, table: TablePolicy, question: SynthesisQuestion, charge: str) -> tuple[Any, Any]:
    """Read, bound, draw, store; a failure from here on is charged, and said with an id only."""
    from hubbub.synthesis.session_door import bounded, packed

    try:
        rows, units = _rows(table, list(question.schema.columns))
        codes = bounded(question.schema.places(rows), units, question.rows_per_unit)
    except Exception:  # its text may hold private rows
        incident = uuid.uuid4().hex[:12]
        session.ledger.advance(charge, "failed", incident=incident)
        raise EngineError(incident) from None
    session.ledger.advance(charge, "drawing")
    found = question.answer(codes)
    session.ledger.store(charge, packed(found))
    session.ledger.advance(charge, "shown")
    return question.schema.decode(found.codes), found.report


def _rows(table: TablePolicy, columns: Sequence[str]) -> tuple[dict[str, list[Any]], list[Any] | None]:
    """The columns that are needed, and the units."""
    wanted = [*columns, *([table.unit] if table.unit is not None and table.unit not in columns else [])]
    if _file(table).suffix in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        read = {name: column.to_pylist() for name, column in _named(pq.read_table(_file(table), columns=wanted))}
    else:
        read = _csv(table, wanted)
    return {name: read[name] for name in columns}, None if table.unit is None else read[table.unit]


def _named(frame: Any) -> list[tuple[str, Any]]:
    return list(zip(frame.column_names, frame.columns, strict=True))


def _csv(table: TablePolicy, wanted: Sequence[str]) -> dict[str, list[Any]]:
    """Fields as text, then as their declared types: nothing is guessed from rows."""
    import csv

    with _file(table).open(encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.DictReader(file)
        read: dict[str, list[Any]] = {name: [] for name in wanted}
        for row in rows:
            for name in wanted:
                read[name].append(_TYPED.get(table.types.get(name, "text"), _text)(row.get(name) or ""))
    return read


def _text(field: str) -> Any:
    return field or None


def _integer(field: str) -> Any:
    try:
        return int(field)
    except ValueError:
        return _float(field)


def _float(field: str) -> Any:
    try:
        return float(field)
    except ValueError:
        return None


def _boolean(field: str) -> Any:
    return {"true": True, "false": False, "t": True, "f": False, "1": True, "0": False}.get(field.lower())


_TYPED: Mapping[str, Callable[[str], Any]] = {
    "integer": _integer,
    "number": _float,
    "boolean": _boolean,
    "text": _text,
}


def _write(data: Mapping[str, list[Any]], output: Path) -> None:
    if output.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(dict(data)), output)
    else:
        from hubbub.cli.formats import as_csv

        output.write_text(as_csv(list(data), list(zip(*data.values(), strict=True))) + "\n", encoding="utf-8")
