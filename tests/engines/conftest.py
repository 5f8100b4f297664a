"""A Postgres server of our own, as the ledger's tests have it."""

from ledger.conftest import postgres_server

__all__ = ["postgres_server"]
