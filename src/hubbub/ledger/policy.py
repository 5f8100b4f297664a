"""`hubbub.toml`: the tables, their people, what is declared of them, the budget and the ledger, in one file.

The command line, Python and the service read the same file, so that a steward can review one text. Reading it
touches no data: the result is plain frozen values, with every path made absolute from the folder of the file.
An error names the file and the line, what was found, and what is allowed.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from hubbub.addresses import Address, is_address, masked, raise_alone
from hubbub.errors import ParameterError, PolicyError
from hubbub.file_formats import Csv
from hubbub.ledger.budget import Budget, parse_epsilon
from hubbub.ledger.column_policy import read_columns, read_types
from hubbub.ledger.csv_policy import read_csv_section
from hubbub.ledger.keys import read_key
from hubbub.ledger.object_policy import read_through
from hubbub.ledger.policy_values import POLICY_NAME, PolicyValues
from hubbub.ledger.redact import without_passwords
from hubbub.ledger.rules import MAX_FAILURES, MAX_FAILURES_ALL
from hubbub.ledger.service_policy import ServicePolicy, limit_or_auto, own_seconds, read_service, rows_kept
from hubbub.ledger.source_policy import read_file_source, read_source, read_trusted_view
from hubbub.ledger.toml_lines import Lines
from hubbub.ledger.witness import WitnessPlace, read_witness
from hubbub.spelling import one_spelling, table_name

__all__ = [
    "POLICY_NAME",
    "Policy",
    "PublicPolicy",
    "TablePolicy",
    "find_policy",
    "load_policy",
    "read_policy",
]

NEIGHBOURS: Final = ("add_remove", "replace")
BOUNDINGS: Final = ("groups", "norm")
_LIMITS: Final = ("max_groups", "max_rows", "max_total", "rows_per_unit_at_most")


@dataclass(frozen=True)
class TablePolicy:
    """A private table. `unit` is the column that names the protected unit; None where each row is one.

    source: a file, a database of Postgres, or a table of Spark's catalogue.
    trusted_view: a steward has seen that the source, a view, keeps each row one unit's own.
    through: for a unit of another table ("orders.customer_id"), the column that leads there, and its name there.
    unit_space: which people it is about, where the unit's own name does not say.
    budget: what may be spent on this table, below the joint budget; None: no limit of its own.
    answer_time: seconds until the service answers a question about it; None: as the section `[service]` says.
    rows_kept: how many rows of one unit the copy has that questions read; None: they read the table itself.
    looked_at_rows: whether somebody looked at the rows before what is declared here was written: it is then outside
    the proof, and receipts say so. rows_per_unit_at_most: the steward's statement that no unit has more rows.
    """

    name: str
    source: Path | Address
    unit: str | None
    table: str | None = None
    max_groups: int | str | None = None
    max_rows: int | str | None = None
    max_total: int | None = None
    neighbours: str = "add_remove"
    budget: Fraction | None = None
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    types: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    unit_space: str | None = None
    through: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    bounding: str = "groups"
    trusted_view: bool = False
    answer_time: float | None = None
    csv: Csv | None = None
    rows_kept: int | None = None
    looked_at_rows: bool = False
    rows_per_unit_at_most: int | None = None


@dataclass(frozen=True)
class PublicPolicy:
    """A public table: it may be joined freely, and needs no bounds."""

    name: str
    source: Path
    table: str | None = None
    types: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    csv: Csv | None = None


@dataclass(frozen=True)
class Policy:
    """A policy file that has been read.

    path, text: the file and what stands in it, without passwords. ledger: the ledger's file, or its Postgres address,
    or `env:NAME`, the variable that holds the address. key_file: where the key of its chain is. anchor: where the head
    of its chain is kept, outside of it. max_failures: after how many engine failures an analyst waits for a steward;
    max_failures_all: after how many in one unit space everybody does. require_purpose: whether a question has to say
    what it is asked for. witness: where the head of the chain goes daily. keep_texts: after how many days the texts of
    questions are removed. per_analyst: the limit of each analyst that
    `analysts` does not name.
    """

    path: Path
    ledger: Path | str = field(repr=False)
    budget: Budget
    tables: Mapping[str, TablePolicy]
    public: Mapping[str, PublicPolicy]
    text: str = ""
    key_file: Path | None = None
    anchor: Path | None = None
    max_failures: int = MAX_FAILURES
    max_failures_all: int = MAX_FAILURES_ALL
    require_purpose: bool = False
    witness: WitnessPlace | None = None
    keep_texts: int | None = None
    per_analyst: Fraction | None = None
    analysts: Mapping[str, Fraction] = field(default_factory=lambda: MappingProxyType({}))
    service: ServicePolicy = field(default_factory=ServicePolicy)

    def files(self) -> list[tuple[str, Path]]:
        """Each table that is a file, with its place."""
        places: list[tuple[str, Path | Address]] = [(table.name, table.source) for table in self.tables.values()]
        places += [(table.name, table.source) for table in self.public.values()]
        return [(name, place) for name, place in places if isinstance(place, Path)]

    def remote(self) -> list[TablePolicy]:
        """The private tables that are elsewhere."""
        return [table for table in self.tables.values() if isinstance(table.source, Address)]

    def key(self) -> bytes | None:
        """The key of the ledger's chain, where one is declared.

        Raises:
            PolicyError: the key file cannot be read, or is shorter than 16 bytes.
        """
        return None if self.key_file is None else read_key(self.key_file)


def find_policy(start: str | os.PathLike[str] | None = None) -> Path:
    """The nearest `hubbub.toml`, in `start` (default: the working directory) or a folder above it.

    Raises:
        PolicyError: there is none.
    """
    folder = Path(start if start is not None else os.getcwd()).absolute()
    for candidate in (folder, *folder.parents):
        if (candidate / POLICY_NAME).is_file():
            return candidate / POLICY_NAME
    raise PolicyError(
        f"no {POLICY_NAME} in {folder} or any folder above it. "
        "Write one with `hubbub init FILE --unit COLUMN`, or name one with --policy."
    )


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read and check a policy file. No data is read, and no source need exist.

    Raises:
        PolicyError: the file cannot be read, is not TOML, or declares something that is not allowed.
    """
    file = Path(path).absolute()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise PolicyError(f"cannot read the policy file {file}: {reason}.") from error
    return read_policy(text, file)


def read_policy(text: str, file: Path) -> Policy:
    """Read and check the text of a policy, as if it stood in `file`.

    Raises:
        PolicyError: as `load_policy`.
    """
    content, failure = {}, None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # its words may quote a key, which may be a login
        failure = PolicyError(f"{file}: not valid TOML: {masked(str(error))}.")
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        what = "it is nested too deeply" if isinstance(error, RecursionError) else "a number or date in it is not valid"
        failure = PolicyError(f"{file}: cannot be read: {what}, or is far too long.")
    if failure is not None:
        raise_alone(failure)
    return _policy(PolicyValues(file, Lines(text)), content, text)


def _policy(reader: PolicyValues, content: dict[str, Any], text: str) -> Policy:
    reader.known((), content, ("ledger", "budget", "tables", "public", "service"))
    for section, example in (("ledger", 'file = "budget.db"'), ("budget", "epsilon = 3")):
        if section not in content:
            raise PolicyError(f"{reader.file}: there is no [{section}]. Add it:\n\n[{section}]\n{example}")
    tables = reader.section(("tables",), content.get("tables", {}))
    public = reader.section(("public",), content.get("public", {}))
    if not tables:
        raise PolicyError(f"{reader.file}: no private table is declared. Add one as [tables.NAME].")
    _check_distinct(reader, tables, public)
    ledger = reader.section(("ledger",), content["ledger"])
    budget = reader.section(("budget",), content["budget"])
    whole = _budget(reader, budget)
    analysts = reader.section(("budget", "analysts"), budget.get("analysts", {}))
    if "*" in analysts:
        raise reader.wrong(
            ("budget", "analysts", "*"), '"*" is not an analyst: for each who is not named write per_analyst'
        )
    return Policy(
        path=reader.file,
        text=without_passwords(text),
        ledger=_ledger(reader, ledger),
        key_file=reader.place(("ledger", "key_file"), ledger["key_file"]) if "key_file" in ledger else None,
        anchor=reader.place(("ledger", "anchor"), ledger["anchor"]) if "anchor" in ledger else None,
        max_failures=reader.limit(("ledger", "max_failures"), ledger.get("max_failures")) or MAX_FAILURES,
        max_failures_all=reader.limit(("ledger", "max_failures_all"), ledger.get("max_failures_all"))
        or MAX_FAILURES_ALL,
        require_purpose=reader.flag(("ledger", "require_purpose"), ledger.get("require_purpose", False)),
        witness=_witness(reader, ledger.get("witness")),
        keep_texts=reader.limit(("ledger", "keep_texts"), ledger.get("keep_texts")),
        budget=whole,
        per_analyst=_share(reader, ("budget", "per_analyst"), budget.get("per_analyst"), whole),
        analysts=MappingProxyType(
            {name: _part(reader, ("budget", "analysts", name), share, whole) for name, share in analysts.items()}
        ),
        tables=MappingProxyType({name: _table(reader, name, body, whole) for name, body in tables.items()}),
        public=MappingProxyType({name: _public(reader, name, body) for name, body in public.items()}),
        service=read_service(reader, reader.section(("service",), content.get("service", {}))),
    )


def _ledger(reader: PolicyValues, section: dict[str, Any]) -> Path | str:
    counts = ("max_failures", "max_failures_all", "keep_texts")
    allowed = ("file", "url", "key_file", "anchor", *counts, "require_purpose", "witness")
    reader.known(("ledger",), section, allowed)
    if ("file" in section) == ("url" in section):
        raise reader.wrong(
            ("ledger",), 'name the ledger: file = "budget.db" or url = "postgresql://HOST/DATABASE", one of them'
        )
    if "file" in section:
        return reader.place(("ledger", "file"), section["file"])
    url = reader.text(("ledger", "url"), section["url"]) or ""
    if not is_address(url):
        raise reader.wrong(("ledger", "url"), "allowed: an address that begins with postgresql://, or env:NAME")
    reader.variable(("ledger", "url"), url)
    return url


def _witness(reader: PolicyValues, value: object) -> WitnessPlace | None:
    place = read_witness(value, reader.file.parent)
    if value is not None and place is None:
        raise reader.wrong(
            ("ledger", "witness"), "allowed: a folder, an https:// address, or a command as a list of words"
        )
    return place


def _budget(reader: PolicyValues, section: dict[str, Any]) -> Budget:
    allowed = ("epsilon", "delta", "delta_threshold", "training", "per_analyst", "analysts")
    reader.known(("budget",), section, allowed, required=("epsilon",))
    try:
        Budget(section["epsilon"])
    except ParameterError as error:
        raise reader.wrong(("budget", "epsilon"), str(error)) from None
    try:
        return Budget(**{name: section.get(name) for name in allowed[:4]})  # type: ignore[arg-type]
    except ParameterError as error:
        raise reader.wrong(("budget", "delta"), str(error)) from None


def _part(reader: PolicyValues, at: tuple[str, ...], value: object, whole: Budget) -> Fraction:
    """A limit below the joint budget, as an epsilon."""
    try:
        amount = parse_epsilon(value)  # type: ignore[arg-type]
    except ParameterError as error:
        raise reader.wrong(at, str(error)) from None
    if amount > whole.epsilon:
        raise reader.wrong(at, f"found {value!r}, above the budget of {whole!r}; a limit lies at or below it")
    return amount


def _share(reader: PolicyValues, at: tuple[str, ...], value: object, whole: Budget) -> Fraction | None:
    return None if value is None else _part(reader, at, value, whole)


def _table(reader: PolicyValues, name: str, body: object, whole: Budget) -> TablePolicy:
    at = ("tables", name)
    section = reader.section(at, body)
    allowed = ("source", "table", "unit", "each_row", *_LIMITS, "neighbours", "budget", "columns", "types",
               "unit_space", "through", "bounding", "trusted_view", "answer_time", "csv", "rows_kept",
               "looked_at_rows")  # fmt: skip
    reader.known(at, section, allowed, required=("source",))
    return TablePolicy(
        rows_kept=rows_kept(reader, (*at, "rows_kept"), section),
        name=name,
        source=read_source(reader, (*at, "source"), section["source"], section),
        trusted_view=read_trusted_view(reader, at, section),
        table=reader.text((*at, "table"), section.get("table")),
        unit=_unit(reader, at, section),
        max_groups=limit_or_auto(reader, (*at, "max_groups"), section.get("max_groups")),
        max_rows=limit_or_auto(reader, (*at, "max_rows"), section.get("max_rows")),
        max_total=reader.limit((*at, "max_total"), section.get("max_total")),
        neighbours=reader.choice((*at, "neighbours"), section.get("neighbours", "add_remove"), NEIGHBOURS),
        budget=_share(reader, (*at, "budget"), section.get("budget"), whole),
        columns=read_columns(reader, (*at, "columns"), section.get("columns", {})),
        types=read_types(reader, (*at, "types"), section.get("types", {})),
        unit_space=reader.space((*at, "unit_space"), section.get("unit_space")),
        through=read_through(reader, (*at, "through"), section.get("through")),
        bounding=reader.choice((*at, "bounding"), section.get("bounding", "groups"), BOUNDINGS),
        answer_time=own_seconds(reader, (*at, "answer_time"), section),
        csv=read_csv_section(reader, at, section),
        looked_at_rows=reader.flag((*at, "looked_at_rows"), section.get("looked_at_rows", False)),
        rows_per_unit_at_most=reader.limit((*at, "rows_per_unit_at_most"), section.get("rows_per_unit_at_most")),
    )


def _public(reader: PolicyValues, name: str, body: object) -> PublicPolicy:
    at = ("public", name)
    section = reader.section(at, body)
    reader.known(at, section, ("source", "table", "types", "csv"), required=("source",))
    return PublicPolicy(
        name=name,
        source=read_file_source(reader, (*at, "source"), section["source"], section),
        table=reader.text((*at, "table"), section.get("table")),
        types=read_types(reader, (*at, "types"), section.get("types", {})),
        csv=read_csv_section(reader, at, section),
    )


def _unit(reader: PolicyValues, at: tuple[str, ...], section: dict[str, Any]) -> str | None:
    each_row = reader.flag((*at, "each_row"), section.get("each_row", False))
    if each_row == ("unit" in section):
        what = "both are given" if each_row else "neither is given"
        raise reader.wrong(
            at,
            f'say who is protected: unit = "COLUMN" that names a person, or each_row = true; {what}',
        )
    return reader.text((*at, "unit"), section.get("unit"))


def _check_distinct(reader: PolicyValues, tables: dict[str, Any], public: dict[str, Any]) -> None:
    seen: dict[str, str] = {}
    for section, names in (("tables", tables), ("public", public)):
        for name in names:
            try:
                folded = one_spelling(table_name(name))
            except PolicyError as error:
                raise reader.wrong((section, name), str(error)) from None
            if folded in seen:
                raise reader.wrong(
                    (section, name),
                    f"the name is taken by [{seen[folded]}]: SQL ignores case, and what looks the same is the same",
                )
            seen[folded] = f"{section}.{name}"
