"""A Postgres server of our own, as the ledger's tests have it; a local Spark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from asked import frames, tables
from engines.places import Embedded, Postgres, Spark
from ledger.conftest import postgres_server

__all__ = ["postgres_server", "spark"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark of one thread in this process's own Java."""
    sql = pytest.importorskip("pyspark.sql", reason="Spark needs the extra `spark`")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.driver.memory", "2g")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    # Java's second compiler works for hours to come: here it would take most of the time.
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def ansi_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """All tests of Spark share one session: what one of them sets is not the next one's, whichever that is."""
    session = request.getfixturevalue("spark") if "spark" in request.fixturenames else None
    yield
    if session is not None:
        session.conf.unset("spark.sql.ansi.enabled")


@pytest.fixture(scope="module")
def worlds(postgres_server: str) -> Iterator[tuple[Embedded, Postgres]]:
    """The tables of `asked`, empty, on the embedded engine and on another."""
    declared, empty = tables("add_remove"), frames({})
    here, there = Embedded(declared, empty), Postgres(postgres_server, declared, empty)
    yield here, there
    here.close()
    there.close()


@pytest.fixture(scope="module")
def spark_worlds(spark: Any) -> Iterator[tuple[Embedded, Spark]]:
    """The tables of `asked`, empty, on the embedded engine and on another."""
    declared, empty = tables("add_remove"), frames({})
    here, there = Embedded(declared, empty), Spark(spark, declared, empty)
    yield here, there
    here.close()
    there.close()
