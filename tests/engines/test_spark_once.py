"""Spark: one table of the catalogue, and one data frame, has one budget for its people by every name of it."""

from __future__ import annotations

import itertools
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from hubbub.session.data import OpenTables
from hubbub.session.empty import EmptyTables, schema_of
from hubbub.session.sources import source_places

NAMES = ("spark:seen", "spark:SEEN", "spark:default.seen", "spark:`default`.`seen`", "spark:spark_catalog.default.seen")


def table(source: object, space: str) -> hb.PrivateTable:
    return hb.table(source, unit="pid", max_groups=1, max_rows=1, unit_space=space)


def opened(path: Path | None, **tables: hb.PrivateTable) -> None:
    hb.Session(tables, budget=Budget(1), ledger=path, analyst="ada").close()


@pytest.fixture(scope="module")
def named(spark: Any) -> Any:
    for name in ("seen", "others"):
        frame = spark.createDataFrame([(i,) for i in range(50)], "pid int")
        frame.write.mode("overwrite").format("parquet").saveAsTable(name)
    yield spark
    for name in ("seen", "others"):
        spark.sql(f"DROP TABLE {name}")


def ledger(path: Path, *noted: str) -> Path:
    with Ledger.open(path, budgets={"x": Budget(1), "y": Budget(1)}) as made:
        made.versions.remember_sources({(place, "pid"): "x" for place in noted})
    return path


@pytest.mark.filterwarnings("ignore:ledger=None")
def test_a_table_by_every_name_of_it(named, tmp_path):
    """Before, spark:visits and spark:default.visits were two tables with a full budget each."""
    for number, (one, other) in enumerate(itertools.product(NAMES, NAMES)):
        with pytest.raises(PolicyError, match="stands in two unit spaces"):
            opened(None, a=table(one, "x"), b=table(other, "y"))
        if one in NAMES[::2]:
            path = ledger(tmp_path / f"{number}.db")
            opened(path, a=table(one, "x"))
            with pytest.raises(PolicyError, match="stands in the unit space 'x' of this ledger"):
                opened(path, b=table(other, "y"))
    opened(None, a=table("spark:seen", "x"), b=table("spark:default.others", "y"))


@pytest.mark.parametrize("old", ["spark:seen", "spark:default.seen", "spark:spark_catalog.default.seen"])
def test_what_an_older_ledger_wrote_of_a_table_is_found(named, tmp_path, old):
    path = ledger(tmp_path / "b.db", old)
    for name in NAMES:
        with pytest.raises(PolicyError, match="stands in the unit space 'x' of this ledger"):
            opened(path, b=table(name, "y"))
    opened(path, b=table("spark:others", "y"))
    opened(path, b=table("spark:seen", "x"))


@pytest.mark.filterwarnings("ignore:ledger=None")
def test_a_frame_by_every_wrapping_of_it(named):
    """Before, what was compared was our wrapper, which is made anew for each declaration."""
    frame = named.createDataFrame([(i,) for i in range(50)], "pid int").localCheckpoint()
    for one, other in ((frame, frame), (frame, frame.alias("again")), (named.table("seen"), named.table("seen")),
                       (named.table("seen"), "spark:seen"), ("spark:seen", named.table("default.seen"))):  # fmt: skip
        with pytest.raises(PolicyError, match="stands in two unit spaces"):
            opened(None, a=table(one, "x"), b=table(other, "y"))
        opened(None, a=table(one, "x"), b=table(other, "x"))
    another = named.createDataFrame([(i,) for i in range(50)], "pid int").localCheckpoint()
    opened(None, a=table(frame, "x"), b=table(another, "y"))
    opened(None, a=table(named.table("seen"), "x"), b=table(named.table("others"), "y"))


def test_a_table_by_the_files_that_it_reads(named, tmp_path):
    """Before, a table and its files, or a second table of their place, were two sources; the files could be public."""
    place = tmp_path / "rows" / "of a=b # month"
    named.range(50).selectExpr("id AS pid", "id % 2 AS k").write.partitionBy("k").parquet(f"file:{place}")
    guesses = "spark.sql.sources.partitionColumnTypeInference.enabled"
    named.conf.set(guesses, "false")
    for name in ("first", "second"):
        named.sql(f"CREATE TABLE {name} (pid LONG, k STRING) USING parquet PARTITIONED BY (k) LOCATION '{place}'")
        named.sql(f"MSCK REPAIR TABLE {name}")
    try:
        one_file = str(next(place.glob("k=1/*.parquet")))
        frame, one = (
            named.read.schema("pid LONG, k INT").parquet(f"file:{place}"),
            named.read.schema("pid LONG").parquet(f"file:{one_file}"),
        )
        sources: list[Any] = ["spark:first", "spark:second", frame, frame.select("pid"), one]
        for a, b in itertools.permutations(sources, 2):
            with pytest.raises(PolicyError, match="stands in two unit spaces"):
                opened(None, a=table(a, "x"), b=table(b, "y"))
        for number, a in enumerate(sources):
            for shown in (str(place), one_file):
                with pytest.raises(PolicyError, match="anybody would see these rows"):
                    opened(None, a=table(a, "x"), w=hb.public(shown))
                tables = {"a": table(a, "x"), "w": hb.public(shown)}
                with closing(OpenTables(tables)) as data:
                    told = json.loads(json.dumps(schema_of(data)))
                with closing(EmptyTables(tables, told)) as empty:  # a service compares them so
                    with pytest.raises(PolicyError, match="anybody would see these rows"):
                        source_places(empty.tables, empty.located())
            path = ledger(tmp_path / f"{number}.db")
            opened(path, a=table(a, "x"))
            with Ledger.inspect(path) as book:  # no name of a folder that a frame's pattern may have found
                noted = [at for at, _, _ in book.versions._sources()]
            assert not any("k=" in at for at in noted)
            if not isinstance(a, str):
                assert noted == ["the frame a"]
                continue
            for b in (*sources, one_file, str(place)):
                with pytest.raises(PolicyError, match="stands in the unit space 'x' of this ledger"):
                    opened(path, b=table(b, "y"))
            with pytest.raises(PolicyError, match="knows as private"):
                opened(path, a=table("spark:others", "y"), w=hb.public(one_file))
            opened(path, a=table("spark:others", "y"))
    finally:
        named.conf.unset(guesses)
        for name in ("first", "second"):
            named.sql(f"DROP TABLE {name}")


def test_a_table_whose_column_is_called_location_is_known_by_its_place(named, tmp_path):
    """DESCRIBE tells of columns before it tells of the table."""
    place = tmp_path / "rows"
    named.range(50).selectExpr("id AS pid", "'here' AS Location").write.parquet(f"file:{place}")
    named.sql(f"CREATE TABLE third (pid LONG, Location STRING) USING parquet LOCATION '{place}'")
    try:
        path = ledger(tmp_path / "b.db")
        opened(path, a=table("spark:third", "x"))
        with Ledger.inspect(path) as book:
            assert str(place) in [at for at, _, _ in book.versions._sources()]
    finally:
        named.sql("DROP TABLE third")
