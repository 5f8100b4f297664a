"""The source of a table in a policy file: whether it holds one table or several, files in an object store, and how a
unit is reached that another table holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hubbub.addresses import Address, ObjectAddress
from hubbub.errors import PolicyError
from hubbub.file_formats import FILES, kind_of_file
from hubbub.ledger.policy_values import PolicyValues

__all__ = ["amiss_with", "read_object", "read_through"]


def amiss_with(kind: str | None, section: Mapping[str, Any], suffix: str, unknown: str) -> str | None:
    """What is wrong with a source of a kind, beside the other keys of its section; None where nothing is."""
    if kind is None:
        return unknown
    if (kind in ("duckdb", "sqlite")) != ("table" in section) and kind != "sheet":
        need = "holds one table: leave `table` out" if "table" in section else 'needs table = "NAME"'
        return f"a {suffix} file {need}"
    return None


def read_object(reader: PolicyValues, at: tuple[str, ...], text: str, section: Mapping[str, Any]) -> Address:
    """`s3://bucket/visits.parquet`. reader: of the policy file; it says where a fault is."""
    try:
        address = ObjectAddress(text)
    except PolicyError as error:
        raise reader.wrong(at, str(error)) from None
    kind = "parquet" if address.several else kind_of_file(address.key) or ("csv" if "csv" in section else None)
    unknown = f"found {address.shown!r}; allowed: an object that ends in {FILES}, or a folder with a slash at its end"
    amiss = amiss_with(kind, section, Path(address.key).suffix, unknown)
    if amiss:
        raise reader.wrong(at, amiss)
    return address


def read_through(reader: PolicyValues, at: tuple[str, ...], value: object) -> Mapping[str, str]:
    """How a unit of another table is reached: one column of both, or { own = "key" }."""
    if value is None:
        return MappingProxyType({})
    pairs = {value: value} if isinstance(value, str) else value
    if (
        not isinstance(pairs, dict)
        or len(pairs) != 1
        or not all(isinstance(c, str) and c for pair in pairs.items() for c in pair)
    ):
        raise reader.wrong(at, f'found {value!r}; allowed: "COLUMN", or {{ COLUMN = "ITS NAME THERE" }}')
    return MappingProxyType(pairs)
