"""What moved in the sources since a policy was written: told from schemas, before a question fails on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hubbub.engines.duckdb.relations import describe
from hubbub.errors import PolicyError
from hubbub.ledger.policy import Policy
from hubbub.session.open import private_of, public_of, schema_of
from hubbub.tables.declare import EACH_ROW, PrivateTable, PublicTable
from hubbub.tables.kinds import Kind

__all__ = ["Drift", "drifted"]


@dataclass(frozen=True)
class Drift:
    """Sentences. broken: what refuses questions; new: columns of which the policy says nothing."""

    broken: tuple[str, ...]
    new: tuple[str, ...]


def drifted(policy: Policy) -> Drift:
    """Compare every table of a policy with the schema of its source, column by column; reads no rows.

    Of a public table everything may be asked, so a column that is new there is no news.
    """
    broken: list[str] = []
    new: list[str] = []
    for name in (*policy.tables, *policy.public):
        private = name in policy.tables
        declared: PrivateTable | PublicTable
        try:
            declared = private_of(policy.tables[name]) if private else public_of(policy.public[name])
            there = _there(name, declared)
        except PolicyError as error:
            broken.append(str(error))
            continue
        wanted = _named(declared)
        broken += _gone(name, wanted, there)
        if isinstance(declared, PublicTable):
            continue
        broken += _contradicted(name, declared, [c for c in wanted if c in there])
        said = {column.lower() for column in wanted}
        fresh = [column for column in there if column.lower() not in said]
        if fresh:
            new.append(f"{name}: nothing is declared of {', '.join(fresh)}.")
    return Drift(tuple(broken), tuple(new))


def _gone(name: str, wanted: Mapping[str, str], there: Mapping[str, object]) -> Iterator[str]:
    """What the policy names and the source no longer has."""
    folded = {column.lower(): column for column in there}
    for column, where in wanted.items():
        if column not in there:
            near = folded.get(column.lower())
            other = f"; it has {near}, in other letters" if near else ""
            yield f"{name}.{column}: gone, and named in {where}{other}."


def _there(name: str, declared: PrivateTable | PublicTable) -> Mapping[str, object]:
    """The columns of a source, whatever is declared of them."""
    if isinstance(declared.source, str):
        how = None if declared.csv is None else replace(declared.csv, formats={})
        return dict(describe(declared.source, declared.inner_table, how))
    assert isinstance(declared, PrivateTable)  # a public table is a file
    return schema_of(name, replace(declared, unit=EACH_ROW, through={}, columns={}, types={})).columns


def _named(table: PrivateTable | PublicTable) -> dict[str, str]:
    """Every column that the declaration names, and where."""
    named = dict.fromkeys(table.types, "types")
    named |= {} if table.csv is None else dict.fromkeys(table.csv.formats, "csv.formats")
    if isinstance(table, PublicTable):
        return named
    named |= dict.fromkeys(table.columns, "columns")
    if isinstance(table.unit, str):
        named |= {table.unit: "unit"} if table.path is None else {table.path[0]: "through"}
    return named


def _contradicted(name: str, table: PrivateTable, columns: list[str]) -> Iterator[str]:
    """What each declaration that stands alone is refused for."""
    for column in columns:
        unit = table.unit if column == table.unit and table.path is None else EACH_ROW
        csv = None
        if table.csv is not None:
            csv = replace(table.csv, formats={c: f for c, f in table.csv.formats.items() if c == column})
        alone = replace(
            table,
            unit=unit,
            through={},
            types={column: table.types.get(column, Kind.TEXT)} if table.types else {},
            columns={c: what for c, what in table.columns.items() if c == column},
            csv=csv,
        )
        try:
            schema_of(name, alone)
        except PolicyError as error:
            yield str(error)
