"""A Postgres server of our own, as the ledger's tests have it; a local Spark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

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
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
