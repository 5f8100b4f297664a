"""Which engine a session has: where its private tables are decides.

A new engine is a folder with a place (`hubbub.engines.base.EnginePlace`), a dialect and an engine, and a line here; or,
outside this package, a call of `add_engine`. `tests/engines/toy` is one, and keeps the contract of every engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hubbub.addresses import SCHEMES
from hubbub.engines.duckdb.place import DuckDBPlace
from hubbub.engines.objects.place import ObjectsPlace
from hubbub.engines.postgres.place import PostgresPlace
from hubbub.engines.spark.place import SparkPlace
from hubbub.errors import PolicyError
from hubbub.tables.declare import PrivateTable, PublicTable
from hubbub.tables.remote import add_reader

if TYPE_CHECKING:
    from hubbub.engines.base import Engine, EnginePlace

__all__ = ["add_engine", "engine_for", "place_of"]

_FILES: Final[EnginePlace] = DuckDBPlace()
_OBJECTS: Final[EnginePlace] = ObjectsPlace()
_PLACES: Final[list[EnginePlace]] = [
    PostgresPlace(),
    _OBJECTS,
    SparkPlace(),
]


def add_engine(place: EnginePlace) -> None:
    """Let tables be declared that another engine holds. Twice is once."""
    if any(known.name == place.name for known in _PLACES):
        return
    _PLACES.append(place)
    SCHEMES.extend(place.schemes)
    add_reader(place.read, *place.holds)


def place_of(source: object) -> EnginePlace:
    """The place of a declared source: files and frames where no other engine holds it."""
    return next((place for place in _PLACES if isinstance(source, place.holds)), _FILES)


def engine_for(tables: Mapping[str, PrivateTable | PublicTable]) -> Engine:
    """The engine of a session with these tables: that of its private tables' place, or DuckDB.

    Raises PolicyError where they are in several places, or the engine's extra is not installed.
    """
    private = [place_of(t.source) for t in tables.values() if isinstance(t, PrivateTable)]
    places = {place.name: place for place in private}
    if _OBJECTS.name in places:
        places.pop(_FILES.name, None)  # its engine reads files and frames too
    if len(places) > 1:
        raise PolicyError(
            f"the private tables of one session are in one place; these are in {' and '.join(sorted(places))}. Open a "
            "session for each; they can share one ledger."
        )
    return (next(iter(places.values())) if places else _FILES).engine()
