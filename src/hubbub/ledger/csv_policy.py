"""The section `[tables.NAME.csv]` of a policy file: how a CSV is written."""

from __future__ import annotations

from typing import Any

from hubbub.errors import PolicyError
from hubbub.file_formats import Csv, csv_from
from hubbub.ledger.policy_values import PolicyValues

__all__ = ["read_csv_section"]


def read_csv_section(reader: PolicyValues, at: tuple[str, ...], table: dict[str, Any]) -> Csv | None:
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
