"""`hubbub.toml`: the tables, their people, what is declared of them, the budget and the ledger, in one file.

The command line, Python and the service read the same file, so that a steward can review one text. Reading it
touches no data: the result is plain frozen values, with every path made absolute from the folder of the file.
An error names the file and the line, what was found, and what is allowed.
"""

from __future__ import annotations

import datetime
import difflib
import itertools
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from hubbub.addresses import OBJECTS, Address, is_address, looks_like_connection, masked, names_a_table, raise_alone
from hubbub.errors import ParameterError, PolicyError
from hubbub.file_formats import FILES, Csv, kind_of_file, several_files
from hubbub.ledger.budget import Budget, parse_epsilon
from hubbub.ledger.csv_policy import read_csv_section
from hubbub.ledger.keys import read_key
from hubbub.ledger.object_policy import amiss_with, read_object, read_through
from hubbub.ledger.redact import without_passwords
from hubbub.ledger.rules import MAX_FAILURES, MAX_FAILURES_ALL
from hubbub.ledger.service_policy import ServicePolicy, is_found, limit_or_auto, own_seconds, read_service, rows_kept
from hubbub.ledger.toml_lines import Lines
from hubbub.ledger.witness import WitnessPlace, read_witness
from hubbub.remedies import Remedy
from hubbub.spelling import meant_by, one_spelling, space_name, table_name

__all__ = [
    "POLICY_NAME",
    "Policy",
    "PublicPolicy",
    "TablePolicy",
    "find_policy",
    "load_policy",
    "read_policy",
]

POLICY_NAME: Final = "hubbub.toml"
KINDS: Final = ("integer", "number", "text", "boolean", "date", "timestamp")
NEIGHBOURS: Final = ("add_remove", "replace")
BOUNDINGS: Final = ("groups", "norm")
_ELSEWHERE: Final = {
    "tables": "; postgresql://HOST/DATABASE, env:NAME, s3://BUCKET/KEY or spark:TABLE",
    "public": "",
}
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
    return _Reader(file, Lines(text)).policy(content, text)


@dataclass(frozen=True)
class _Reader:
    """Checks one file's content; every method knows where it stands by `at`, the keys that lead there."""

    file: Path
    lines: Lines

    def policy(self, content: dict[str, Any], text: str) -> Policy:
        self.known((), content, ("ledger", "budget", "tables", "public", "service"))
        for section, example in (("ledger", 'file = "budget.db"'), ("budget", "epsilon = 3")):
            if section not in content:
                raise PolicyError(f"{self.file}: there is no [{section}]. Add it:\n\n[{section}]\n{example}")
        tables = self.section(("tables",), content.get("tables", {}))
        public = self.section(("public",), content.get("public", {}))
        if not tables:
            raise PolicyError(f"{self.file}: no private table is declared. Add one as [tables.NAME].")
        self.distinct(tables, public)
        ledger = self.section(("ledger",), content["ledger"])
        budget = self.section(("budget",), content["budget"])
        whole = self.budget(budget)
        analysts = self.section(("budget", "analysts"), budget.get("analysts", {}))
        if "*" in analysts:
            raise self.wrong(
                ("budget", "analysts", "*"), '"*" is not an analyst: for each who is not named write per_analyst'
            )
        return Policy(
            path=self.file,
            text=without_passwords(text),
            ledger=self.ledger(ledger),
            key_file=self.place(("ledger", "key_file"), ledger["key_file"]) if "key_file" in ledger else None,
            anchor=self.place(("ledger", "anchor"), ledger["anchor"]) if "anchor" in ledger else None,
            max_failures=self.limit(("ledger", "max_failures"), ledger.get("max_failures")) or MAX_FAILURES,
            max_failures_all=self.limit(("ledger", "max_failures_all"), ledger.get("max_failures_all"))
            or MAX_FAILURES_ALL,
            require_purpose=self.flag(("ledger", "require_purpose"), ledger.get("require_purpose", False)),
            witness=self.witness(ledger.get("witness")),
            keep_texts=self.limit(("ledger", "keep_texts"), ledger.get("keep_texts")),
            budget=whole,
            per_analyst=self.share(("budget", "per_analyst"), budget.get("per_analyst"), whole),
            analysts=MappingProxyType(
                {name: self.part(("budget", "analysts", name), share, whole) for name, share in analysts.items()}
            ),
            tables=MappingProxyType({name: self.table(name, body, whole) for name, body in tables.items()}),
            public=MappingProxyType({name: self.public(name, body) for name, body in public.items()}),
            service=read_service(self, self.section(("service",), content.get("service", {}))),
        )

    def ledger(self, section: dict[str, Any]) -> Path | str:
        counts = ("max_failures", "max_failures_all", "keep_texts")
        allowed = ("file", "url", "key_file", "anchor", *counts, "require_purpose", "witness")
        self.known(("ledger",), section, allowed)
        if ("file" in section) == ("url" in section):
            raise self.wrong(
                ("ledger",), 'name the ledger: file = "budget.db" or url = "postgresql://HOST/DATABASE", one of them'
            )
        if "file" in section:
            return self.place(("ledger", "file"), section["file"])
        url = self.text(("ledger", "url"), section["url"]) or ""
        if not is_address(url):
            raise self.wrong(("ledger", "url"), "allowed: an address that begins with postgresql://, or env:NAME")
        self.variable(("ledger", "url"), url)
        return url

    def witness(self, value: object) -> WitnessPlace | None:
        place = read_witness(value, self.file.parent)
        if value is not None and place is None:
            raise self.wrong(
                ("ledger", "witness"), "allowed: a folder, an https:// address, or a command as a list of words"
            )
        return place

    def budget(self, section: dict[str, Any]) -> Budget:
        allowed = ("epsilon", "delta", "delta_threshold", "training", "per_analyst", "analysts")
        self.known(("budget",), section, allowed, required=("epsilon",))
        try:
            Budget(section["epsilon"])
        except ParameterError as error:
            raise self.wrong(("budget", "epsilon"), str(error)) from None
        try:
            return Budget(**{name: section.get(name) for name in allowed[:4]})  # type: ignore[arg-type]
        except ParameterError as error:
            raise self.wrong(("budget", "delta"), str(error)) from None

    def part(self, at: tuple[str, ...], value: object, whole: Budget) -> Fraction:
        """A limit below the joint budget, as an epsilon."""
        try:
            amount = parse_epsilon(value)  # type: ignore[arg-type]
        except ParameterError as error:
            raise self.wrong(at, str(error)) from None
        if amount > whole.epsilon:
            raise self.wrong(at, f"found {value!r}, above the budget of {whole!r}; a limit lies at or below it")
        return amount

    def share(self, at: tuple[str, ...], value: object, whole: Budget) -> Fraction | None:
        return None if value is None else self.part(at, value, whole)

    def table(self, name: str, body: object, whole: Budget) -> TablePolicy:
        at = ("tables", name)
        section = self.section(at, body)
        allowed = ("source", "table", "unit", "each_row", *_LIMITS, "neighbours", "budget", "columns", "types",
                   "unit_space", "through", "bounding", "trusted_view", "answer_time", "csv", "rows_kept",
                   "looked_at_rows")  # fmt: skip
        self.known(at, section, allowed, required=("source",))
        return TablePolicy(
            rows_kept=rows_kept(self, (*at, "rows_kept"), section),
            name=name,
            source=self.source((*at, "source"), section["source"], section),
            trusted_view=self.trusted_view(at, section),
            table=self.text((*at, "table"), section.get("table")),
            unit=self.unit(at, section),
            max_groups=limit_or_auto(self, (*at, "max_groups"), section.get("max_groups")),
            max_rows=limit_or_auto(self, (*at, "max_rows"), section.get("max_rows")),
            max_total=self.limit((*at, "max_total"), section.get("max_total")),
            neighbours=self.choice((*at, "neighbours"), section.get("neighbours", "add_remove"), NEIGHBOURS),
            budget=self.share((*at, "budget"), section.get("budget"), whole),
            columns=self.columns((*at, "columns"), section.get("columns", {})),
            types=self.types((*at, "types"), section.get("types", {})),
            unit_space=self.space((*at, "unit_space"), section.get("unit_space")),
            through=read_through(self, (*at, "through"), section.get("through")),
            bounding=self.choice((*at, "bounding"), section.get("bounding", "groups"), BOUNDINGS),
            answer_time=own_seconds(self, (*at, "answer_time"), section),
            csv=read_csv_section(self, at, section),
            looked_at_rows=self.flag((*at, "looked_at_rows"), section.get("looked_at_rows", False)),
            rows_per_unit_at_most=self.limit((*at, "rows_per_unit_at_most"), section.get("rows_per_unit_at_most")),
        )

    def public(self, name: str, body: object) -> PublicPolicy:
        at = ("public", name)
        section = self.section(at, body)
        self.known(at, section, ("source", "table", "types", "csv"), required=("source",))
        return PublicPolicy(
            name=name,
            source=self.file_source((*at, "source"), section["source"], section),
            table=self.text((*at, "table"), section.get("table")),
            types=self.types((*at, "types"), section.get("types", {})),
            csv=read_csv_section(self, at, section),
        )

    def unit(self, at: tuple[str, ...], section: dict[str, Any]) -> str | None:
        each_row = self.flag((*at, "each_row"), section.get("each_row", False))
        if each_row == ("unit" in section):
            what = "both are given" if each_row else "neither is given"
            raise self.wrong(
                at,
                f'say who is protected: unit = "COLUMN" that names a person, or each_row = true; {what}',
            )
        return self.text((*at, "unit"), section.get("unit"))

    def columns(self, at: tuple[str, ...], body: object) -> Mapping[str, Mapping[str, Any]]:
        section = self.section(at, body)
        return MappingProxyType({name: self.domain((*at, name), value) for name, value in section.items()})

    def domain(self, at: tuple[str, ...], body: object) -> Mapping[str, Any]:
        section = self.section(at, body, example="{ between = [0, 120] } or { one_of = [...] }")
        self.known(at, section, ("between", "nullable", "tz", "one_of", "null", "other", "others", "trim", "edges"))
        owners = [name for name in ("between", "one_of", "edges") if name in section]
        if len(owners) != 1 and not (not owners and "trim" in section):
            raise self.wrong(
                at,
                "declare between = [low, high], one_of = [values] or edges = [e0, e1, ...], exactly one of them; of "
                "text whose values are not declared, trim = true",
            )
        owner = owners[0] if owners else "trim"
        flags = {"one_of": ("null", "others", "trim"), "trim": ()}.get(owner, ("nullable",))
        others = {"one_of": ["other"], "between": ["tz"]}.get(owner, [])
        self.known(at, section, (owner, *flags, *others))
        for choice in (*flags, *(["trim"] if owner == "trim" else [])):
            if not isinstance(section.get(choice, False), bool):
                raise self.wrong(at, f"{choice} is {section[choice]!r}; allowed: true or false")
        if owner == "between":
            self.interval(at, section["between"])
            self.text((*at, "tz"), section.get("tz"))
        elif owner == "edges":
            self.edges(at, section["edges"])
        elif owner == "one_of":
            self.text((*at, "other"), section.get("other"))
            self.values(at, section["one_of"])
        return MappingProxyType(section)

    def interval(self, at: tuple[str, ...], ends: object) -> None:
        if not isinstance(ends, list) or len(ends) != 2:
            raise self.wrong(at, f"between is {ends!r}; allowed: a list of two values, [low, high]")
        low, high = ends
        if is_found(self, at, low, high):
            return
        if any(isinstance(end, float) and not math.isfinite(end) for end in ends):
            raise self.wrong(at, f"between is {ends!r}; both ends must be finite")
        if not isinstance(low, _ENDS) or isinstance(low, bool) or isinstance(high, bool):
            raise self.wrong(at, f"between is {ends!r}; allowed: numbers, dates, times or ISO text")
        try:
            ordered = low < high
        except TypeError:
            raise self.wrong(at, f"between is {ends!r}; both ends must be of one kind") from None
        if not ordered:
            turned = self.lines.corrected(at, f"[{low}, {high}]", f"[{high}, {low}]") if low != high else ()
            raise self.wrong(at, f"between is {ends!r}; the first end must be below the second", turned)

    def edges(self, at: tuple[str, ...], ends: object) -> None:
        numbers = isinstance(ends, list) and all(isinstance(e, int | float) and not isinstance(e, bool) for e in ends)
        if not isinstance(ends, list) or len(ends) < 2 or not numbers or any(not math.isfinite(e) for e in ends):
            raise self.wrong(at, f"edges is {ends!r}; allowed: a list of two numbers or more, in increasing order")
        if any(a >= b for a, b in itertools.pairwise(ends)):
            raise self.wrong(at, f"edges is {ends!r}; the numbers must increase")

    def values(self, at: tuple[str, ...], values: object) -> None:
        if not isinstance(values, list) or not values:
            raise self.wrong(at, f"one_of is {values!r}; allowed: a list of one value or more")
        for value in values:
            if not isinstance(value, _ENDS):
                raise self.wrong(at, f"one_of holds {value!r}; allowed: text, numbers, dates, times, true, false")

    def types(self, at: tuple[str, ...], body: object) -> Mapping[str, str]:
        section = self.section(at, body)
        return MappingProxyType({name: self.choice((*at, name), kind, KINDS) for name, kind in section.items()})

    def limit(self, at: tuple[str, ...], value: object) -> int | None:
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise self.wrong(at, f"found {value!r}; allowed: a whole number, 1 or more")
        return value

    def flag(self, at: tuple[str, ...], value: object) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(at, f"found {value!r}; allowed: true or false")
        return value

    def text(self, at: tuple[str, ...], value: object) -> str | None:
        if value is not None and (not isinstance(value, str) or not value):
            raise self.wrong(at, f"found {value!r}; allowed: text in quotes")
        return value

    def space(self, at: tuple[str, ...], value: object) -> str | None:
        text = self.text(at, value)
        try:
            return None if text is None else space_name(text)
        except PolicyError as error:
            raise self.wrong(at, str(error)) from None

    def choice(self, at: tuple[str, ...], value: object, allowed: tuple[str, ...]) -> str:
        if not isinstance(value, str) or value not in allowed:
            ways = self.lines.meant(at, value, allowed)
            raise self.wrong(at, f"found {value!r}; allowed: {', '.join(allowed)}{_near(value, allowed)}", ways)
        return value

    def place(self, at: tuple[str, ...], value: object, allowed: str = "a file") -> Path:
        text = self.text(at, value) or ""
        if looks_like_connection(text):
            raise self.wrong(at, f"found {value!r}; allowed: {allowed}")
        return Path(os.path.normpath(self.file.parent / Path(text).expanduser()))

    def source(self, at: tuple[str, ...], value: object, section: dict[str, Any]) -> Path | Address:
        """A file; an address in Postgres, or the variable that holds it, with `table`; or a table of Spark."""
        text = self.text(at, value) or ""
        if is_address(text):
            self.variable(at, text)
            if "table" not in section:
                raise self.wrong(at, 'a database needs table = "SCHEMA.NAME" beside it')
            return Address.of(text)
        if text.startswith(OBJECTS):
            return read_object(self, at, text, section)
        if names_a_table(text):
            scheme, _, rest = text.partition(":")
            if "table" in section or not rest.strip():
                raise self.wrong(at, f'write the table after the colon, as in "{scheme}:hospital.visits"; no `table`')
            return Address.of(text)
        return self.file_source(at, value, section)

    def variable(self, at: tuple[str, ...], text: str) -> None:
        """Refuses a variable that can have no such name. That it is set matters to who connects alone."""
        if text.startswith("env:") and not re.fullmatch(r"env:[A-Za-z_][A-Za-z0-9_]*", text):
            raise self.wrong(at, f"found {text!r}; allowed: env:NAME, of letters, digits and underscores")

    def trusted_view(self, at: tuple[str, ...], section: dict[str, Any]) -> bool:
        value = self.flag((*at, "trusted_view"), section.get("trusted_view", False))
        if value and kind_of_file(str(section["source"])) in ("parquet", "csv", "sheet"):
            raise self.wrong((*at, "trusted_view"), "a file of rows holds no views: leave `trusted_view` out")
        return value

    def file_source(self, at: tuple[str, ...], value: object, section: dict[str, Any]) -> Path:
        if at[0] == "public" and isinstance(value, str) and (is_address(value) or names_a_table(value)):
            raise self.wrong(at, "a public table is a file; write its rows to one")
        allowed = f"a file that ends in {FILES}{_ELSEWHERE[at[0]]}"
        path = self.place(at, value, allowed)
        several = "parquet" if several_files(path) else None
        kind = kind_of_file(path) or several or ("csv" if "csv" in section else None)
        if amiss := amiss_with(kind, section, path.suffix, f"found {value!r}; allowed: {allowed}"):
            raise self.wrong(at, amiss)
        return path

    def section(self, at: tuple[str, ...], body: object, *, example: str = "") -> dict[str, Any]:
        if not isinstance(body, dict):
            raise self.wrong(at, f"found {body!r}; allowed: {example or f'a section [{_dotted(at)}]'}")
        return body

    def known(
        self,
        at: tuple[str, ...],
        section: dict[str, Any],
        allowed: tuple[str, ...],
        *,
        required: tuple[str, ...] = (),
    ) -> None:
        for key in section:
            if key not in allowed:
                ways = self.lines.meant((*at, key), key, [k for k in allowed if k not in section])
                said = f"unknown key {key!r}; allowed: {', '.join(allowed)}{_near(key, allowed)}"
                raise self.wrong((*at, key), said, ways)
        for key in required:
            if key not in section:
                raise self.wrong(at, f"{key} is missing")

    def distinct(self, tables: dict[str, Any], public: dict[str, Any]) -> None:
        seen: dict[str, str] = {}
        for section, names in (("tables", tables), ("public", public)):
            for name in names:
                try:
                    folded = one_spelling(table_name(name))
                except PolicyError as error:
                    raise self.wrong((section, name), str(error)) from None
                if folded in seen:
                    raise self.wrong(
                        (section, name),
                        f"the name is taken by [{seen[folded]}]: SQL ignores case, and what looks the same is the same",
                    )
                seen[folded] = f"{section}.{name}"

    def wrong(self, at: tuple[str, ...], message: str, ways: Sequence[Remedy] = ()) -> PolicyError:
        line = self.lines.of(at)
        # What was found may be an address, mistyped; what is allowed are words of ours, and of _dotted.
        before, allowed, rest = message.rpartition("; allowed: ")
        said = f"{masked(before)}{allowed}{rest}" if allowed else masked(message)
        words = f"{self.file}:{line}: {_dotted(at)}: {said}{'' if said[-1] in '.?' else '.'}"
        return PolicyError(words, remedy=ways)


_ENDS: Final = (int, float, str, datetime.date, datetime.time)


def _dotted(at: tuple[str, ...]) -> str:
    return masked(".".join(at)) or POLICY_NAME


def _near(wrong: object, allowed: tuple[str, ...]) -> str:
    close = meant_by(str(wrong), allowed) or next(iter(difflib.get_close_matches(str(wrong), allowed, n=1)), None)
    return "" if close is None else f". Did you mean {close!r}?"
