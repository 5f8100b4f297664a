"""Tables of Spark's catalogue, and its data frames."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from hubbub.engines.base import Named
from hubbub.engines.needs import needs
from hubbub.spelling import one_spelling
from hubbub.tables.remote import SparkFrame, SparkName, remote

if TYPE_CHECKING:
    from hubbub.engines.base import Engine

__all__ = ["SparkPlace"]


class SparkPlace:
    """`spark:hospital.visits`, or a data frame of Spark."""

    name: Final = "Spark"
    holds: tuple[type, ...] = (SparkName, SparkFrame)
    schemes: tuple[str, ...] = ("spark:",)

    def read(self, source: object) -> object | None:
        address = remote(source)
        return address if isinstance(address, SparkName | SparkFrame) else None

    def engine(self) -> Engine:
        needs("pyspark", "spark")
        from hubbub.engines.spark.engine import SparkEngine

        return SparkEngine()

    def kept(self, named: Named) -> str | None:
        if isinstance(named.source, SparkFrame):
            return f"the frame {one_spelling(named.name)}"
        return f"spark:{named.inner}" if named.inner else str(named.source).lower()

    def here(self, named: Named) -> Hashable:
        return ("frame", id(named.source.frame)) if isinstance(named.source, SparkFrame) else None

    def written(self, source: SparkName | SparkFrame) -> str:
        return "a frame" if isinstance(source, SparkFrame) else str(source)

    def at_hand(self, source: SparkName | SparkFrame) -> bool:
        return isinstance(source, SparkFrame)
