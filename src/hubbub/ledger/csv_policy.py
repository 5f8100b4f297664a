"""The section `[tables.NAME.csv]` of a policy file: how a CSV is written."""

from __future__ import annotations

from typing import Any, Protocol

from hubbub.errors import PolicyError
from hubbub.file_formats import Csv, csv_from

__all__ = ["read_csv_section"]


class _Reader(Protocol):
    """What reads a policy file, and says where in it something is wrong."""

    def section(self, at: tuple[str, ...], body: object, *, example: str = "") -> dict[str, Any]: ...

    def known(self, at: tuple[str, ...], section: dict[str, Any], allowed: tuple[str, ...]) -> None: ...

    def wrong(self, at: tuple[str, ...], message: str) -> PolicyError: ...


def read_csv_section(reader: _Reader, at: tuple[str, ...], table: dict[str, Any]) -> Csv | None:
    """How the CSV of a table is written, where its section says so.

    Raises PolicyError, with the line, for what is wrong.
    """
    if "csv" not in table:
        return None
    at = (*at, "csv")
    said = reader.section(at, table["csv"], example='{ delimiter = ";", decimal = "," }')
    reader.known(at, said, tuple(Csv.__dataclass_fields__))
    try:
        return csv_from(said)
    except PolicyError as error:
        raise reader.wrong(at, str(error).removeprefix("csv: ")) from None
