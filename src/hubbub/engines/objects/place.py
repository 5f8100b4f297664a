"""Files in an object store: `s3://bucket/visits.parquet`, `gs://bucket/visits/`."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from hubbub.addresses import ObjectAddress
from hubbub.engines.base import Named
from hubbub.ledger.places import INSIDE
from hubbub.tables.remote import remote

if TYPE_CHECKING:
    from hubbub.engines.base import Engine

__all__ = ["ObjectsPlace"]


class ObjectsPlace:
    """What stands in an object store, by its address."""

    name: Final = "an object store"
    holds: tuple[type, ...] = (ObjectAddress,)
    schemes: tuple[str, ...] = ("s3://", "gs://")

    def read(self, source: object) -> object | None:
        address = remote(source)
        return address if isinstance(address, ObjectAddress) else None

    def engine(self) -> Engine:
        from hubbub.engines.objects.engine import ObjectsEngine

        return ObjectsEngine()

    def kept(self, named: Named) -> str | None:
        """The bucket and the key, and the server where one is named; of a database its table too."""
        return named.source.kept + (f"{INSIDE}{named.table}" if named.table else "")  # type: ignore[no-any-return]

    def here(self, named: Named) -> Hashable:
        return "object", named.source.kept, (named.table or "").lower()

    def written(self, source: ObjectAddress) -> str:
        return source.kept

    def at_hand(self, source: ObjectAddress) -> bool:
        return True
