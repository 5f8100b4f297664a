"""What a service declares, as a session shows it: tables without sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hubbub.session.options import read_value
from hubbub.session.shown import DeclaredTables
from hubbub.sql.bind.scope import TableInfo
from hubbub.tables.columns import Between, Declaration, Edges, OneOf, Text, UpTo
from hubbub.tables.declare import EACH_ROW, PrivateTable
from hubbub.tables.kinds import Kind

__all__ = ["catalog_of", "declared_tables"]

_KINDS: Final[Mapping[str, type[Any]]] = {kind.__name__: kind for kind in (Between, Edges, OneOf, Text, UpTo)}


def catalog_of(told: Mapping[str, Any]) -> dict[str, TableInfo]:
    """The tables of a service, by name."""
    return {name: _info(each) for name, each in told.items()}


def declared_tables(told: Mapping[str, Any]) -> DeclaredTables:
    """The same, as `Session.tables` shows them."""
    return DeclaredTables(catalog_of(told))


def _info(told: Mapping[str, Any]) -> TableInfo:
    columns = {name: Kind(kind) for name, kind in told["columns"].items()}
    if not told["private"]:
        return TableInfo(columns, private=False)
    unit = None if told["unit"] == "each row" else str(told["unit"])
    declared = {name: declaration_of(each) for name, each in told["declared"].items()}
    table = PrivateTable(source=None, unit=unit or EACH_ROW, columns=declared, **told["limits"])
    return TableInfo(columns, private=True, unit=unit, table=table)


def declaration_of(told: Mapping[str, Any]) -> Declaration:
    """What is declared of a column, made anew from its own fields."""
    name, fields = told["as"]
    given = {key: read_value(value) for key, value in fields.items()}
    made: Declaration = _KINDS[name](**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})
    return made
