"""Files in an object store: `s3://bucket/visits.parquet`, `gs://bucket/visits/`."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from hubbub.addresses import ObjectAddress
from hubbub.engines.base import Named
from hubbub.engines.objects.copies import inner_of, kind_of
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
        """The bucket and the key, and the server where one is named; of a database or a workbook its table too."""
        inner = inner_of(named.source, named.table)
        return named.source.kept + (f"{INSIDE}{inner}" if inner else "")  # type: ignore[no-any-return]

    def older(self, named: Named) -> list[str]:
        """Other texts by which a ledger may know an object, or a folder that holds it: with a word that names nothing
        in it, by each folder that it is in.
        """
        source: ObjectAddress = named.source
        texts = [f"{source.kept}{INSIDE}{named.table}"] if named.table else []
        if not source.several and kind_of(source) != "parquet":
            return texts
        *folders, name = re.split(r"[*?]", source.key)[0].split("/")
        if not source.several and name[:1] in ("_", "."):
            return texts
        scheme, server = source.around
        beside = (f"{scheme}{source.bucket}/" + "/".join(folders[:i]) for i in range(len(folders), 0, -1))
        return texts + [f"{folder}/{server}" for folder in beside]

    def here(self, named: Named) -> Hashable:
        return "object", named.source.kept, (inner_of(named.source, named.table) or "").lower()

    def written(self, source: ObjectAddress) -> str:
        return source.kept

    def at_hand(self, source: ObjectAddress) -> bool:
        return True
