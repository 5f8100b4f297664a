"""Where a policy file says that the rows of a table are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hubbub.addresses import OBJECTS, Address, is_address, names_a_table
from hubbub.file_formats import FILES, kind_of_file, several_files
from hubbub.ledger.object_policy import amiss_with, read_object
from hubbub.ledger.policy_values import PolicyValues

__all__ = ["read_file_source", "read_source", "read_trusted_view"]

_ELSEWHERE: Final = {
    "tables": "; postgresql://HOST/DATABASE, env:NAME, s3://BUCKET/KEY or spark:TABLE",
    "public": "",
}


def read_source(reader: PolicyValues, at: tuple[str, ...], value: object, section: dict[str, Any]) -> Path | Address:
    """A file; an address in Postgres, or the variable that holds it, with `table`; or a table of Spark."""
    text = reader.text(at, value) or ""
    if is_address(text):
        reader.variable(at, text)
        if "table" not in section:
            raise reader.wrong(at, 'a database needs table = "SCHEMA.NAME" beside it')
        return Address.of(text)
    if text.startswith(OBJECTS):
        return read_object(reader, at, text, section)
    if names_a_table(text):
        scheme, _, rest = text.partition(":")
        if "table" in section or not rest.strip():
            raise reader.wrong(at, f'write the table after the colon, as in "{scheme}:hospital.visits"; no `table`')
        return Address.of(text)
    return read_file_source(reader, at, value, section)


def read_file_source(reader: PolicyValues, at: tuple[str, ...], value: object, section: dict[str, Any]) -> Path:
    """A file of rows, of a kind that is read here."""
    if at[0] == "public" and isinstance(value, str) and (is_address(value) or names_a_table(value)):
        raise reader.wrong(at, "a public table is a file; write its rows to one")
    allowed = f"a file that ends in {FILES}{_ELSEWHERE[at[0]]}"
    path = reader.place(at, value, allowed)
    several = "parquet" if several_files(path) else None
    kind = kind_of_file(path) or several or ("csv" if "csv" in section else None)
    if amiss := amiss_with(kind, section, path.suffix, f"found {value!r}; allowed: {allowed}"):
        raise reader.wrong(at, amiss)
    return path


def read_trusted_view(reader: PolicyValues, at: tuple[str, ...], section: dict[str, Any]) -> bool:
    """Whether a steward says that a view keeps each row one unit's own."""
    value = reader.flag((*at, "trusted_view"), section.get("trusted_view", False))
    if value and kind_of_file(str(section["source"])) in ("parquet", "csv", "sheet"):
        raise reader.wrong((*at, "trusted_view"), "a file of rows holds no views: leave `trusted_view` out")
    return value
