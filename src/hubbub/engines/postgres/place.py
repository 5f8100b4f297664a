"""Tables in a Postgres database."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from hubbub.engines.base import Named
from hubbub.engines.needs import needs
from hubbub.ledger.places import INSIDE, one_address
from hubbub.tables.remote import PostgresAddress, remote

if TYPE_CHECKING:
    from hubbub.engines.base import Engine

__all__ = ["PostgresPlace"]


class PostgresPlace:
    """`postgresql://user@host/database`, or the variable of the environment that holds it."""

    name: Final = "Postgres"
    holds: tuple[type, ...] = (PostgresAddress,)
    schemes: tuple[str, ...] = ()

    def read(self, source: object) -> object | None:
        address = remote(source)
        return address if isinstance(address, PostgresAddress) else None

    def engine(self) -> Engine:
        needs("psycopg", "postgres")
        from hubbub.engines.postgres.engine import PostgresEngine

        return PostgresEngine()

    def kept(self, named: Named) -> str | None:
        known: PostgresAddress = named.source
        return f"{one_address(known.kept)}{INSIDE}{named.inner or named.table}" if known.readable else None

    def here(self, named: Named) -> Hashable:
        return named.source, named.inner or named.table

    def written(self, source: PostgresAddress) -> str:
        return source.kept

    def at_hand(self, source: PostgresAddress) -> bool:
        return True
