"""The rivals of `benchmarks.shapes`: what each takes for the same questions, and which it cannot be asked.

Each has an environment of its own and is given the same rows. The bounds are ours: ten rows of a person in each of five
groups, or ten of all; `NOTES` says where a rival bounds otherwise, or answers a part alone. A question is a process of
its own, so that one that fails or does not end costs no other. The start of the process does not count, nor the
reading of rows into the memory of a rival that reads no file, nor the first of two askings on Spark.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import duckdb

from benchmarks.peers import MissingPeer, run

__all__ = ["MILLIONS", "NOTES", "seconds"]

MILLIONS = {"opendp": (10.0,), "pipelinedp": (1.0,), "smartnoise": (1.0,), "tumult": (0.2, 1.0)}
"""Of how many millions of rows each is asked: of more, some would take hours, or all memory."""

LONGEST = 600.0
"""Seconds for one question."""

NOTES = {
    ("opendp", "T1"): "count and sum",
    ("opendp", "text"): "count and sum",
    ("opendp", "total"): "count and sum",
    ("opendp", "where"): "by month: it compares with no date",
    ("opendp", "months"): "50 rows a person",
    ("opendp", "moments"): "six sums, the rest by hand",
    ("tumult", "T1"): "two questions",
    ("tumult", "text"): "two questions",
    ("tumult", "total"): "a Python function a person",
    ("tumult", "where"): "a Python function a row",
    ("tumult", "months"): "50 rows a person, a Python function a row",
    ("tumult", "moments"): "six questions, the rest by hand",
    ("tumult", "twenty"): "twenty questions, a Python function a row",
    ("tumult", "found"): "two questions",
    ("tumult", "quantiles"): "four questions",
    ("pipelinedp", "total"): "sum and people",
    ("pipelinedp", "twenty"): "a vector, its group found privately: a public one fails",
    ("smartnoise", "T1"): "10 rows a person",
    ("smartnoise", "text"): "10 rows a person",
    ("smartnoise", "people"): "10 rows a person",
    ("smartnoise", "found"): "10 rows a person",
    ("smartnoise", "moments"): "the variance alone",
}
"""What is not quite the same question: by rival and shape."""

_CANNOT = {
    ("pipelinedp", "moments"): "has no correlation",
    ("smartnoise", "total"): "refuses aggregates of a person's total",
    ("smartnoise", "where"): "refuses aggregates of an expression",
    ("smartnoise", "months"): "reads no expression as a group",
    ("smartnoise", "twenty"): "refuses aggregates of CASE",
    ("smartnoise", "median"): "has no median",
    ("smartnoise", "quantiles"): "has no quantiles",
}

_OPENDP = """
import json, sys, time, warnings
import opendp.prelude as dp, polars as pl
warnings.simplefilter("ignore")
dp.enable_features("contrib")
name, path, rows = sys.argv[1], sys.argv[2], int(sys.argv[4])
groups = [f"g{i}" for i in range(100)]
keys = pl.LazyFrame({"grp": groups}, schema={"grp": pl.String})
months = pl.LazyFrame({"mon": list(range(1, 13))}, schema={"mon": pl.Int8}).join(keys, how="cross")
value = pl.col("value").fill_null(0.0).fill_nan(0.0)
month = pl.col("day").dt.month()
grid = [float(i) for i in range(101)]
steps = range(0, 100, 5)

def opened(bounds, by, groups, delta=None):
    return dp.Context.compositor(
        data=pl.scan_parquet(path), privacy_unit=dp.unit_of(contributions=bounds, identifier=pl.col("uid")),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=delta), split_evenly_over=1,
        margins=[dp.polars.Margin(by=by, max_length=rows, max_groups=groups)]).query()

# Groups are kept from the first on: OpenDP's sample of them names a column twice, which its own polars refuses.
def cut(by, groups, per=10, delta=None):
    bounds = [dp.polars.Bound(by=[], per_group=per * 5), dp.polars.Bound(by=[by], per_group=per, num_groups=5)]
    bounded = opened(bounds, [by], groups, delta).truncate_per_group(per, by=[by])
    return bounded.truncate_num_groups(5, by=[by], keep="first")

def of_all(per=10):
    return opened([dp.polars.Bound(by=[], per_group=per)], [], 1)

def few():
    return of_all().truncate_per_group(10)

def table():
    return cut("grp", 100).group_by("grp").agg(dp.len(), value.dp.sum((0.0, 100.0))).with_keys(keys)

def where():
    kept = cut("grp", 100).filter((month >= 6) & (pl.col("value") > 10))
    return kept.group_by("grp").agg((value * 2.0 + 1.0).dp.sum((1.0, 201.0))).with_keys(keys)

def monthly():
    rows = of_all(50).truncate_per_group(50).with_columns(month.alias("mon"))
    return rows.group_by("mon", "grp").agg(dp.len()).with_keys(months)

def moments():
    m = month.cast(pl.Float64).fill_null(0.0)
    return few().select(
        dp.len(), value.dp.sum((0.0, 100.0)).alias("a"), (value * value).dp.sum((0.0, 1e4)).alias("b"),
        m.dp.sum((1.0, 12.0)).alias("c"), (m * m).dp.sum((1.0, 144.0)).alias("d"),
        (value * m).dp.sum((0.0, 1200.0)).alias("e"))

def twenty():
    flags = {at: (pl.col("value") > at).fill_null(False).cast(pl.Int64) for at in steps}
    return few().select(*(flag.dp.sum((0, 1)).alias(f"c{at}") for at, flag in flags.items()))

ask = {
    "T1": table, "text": table, "where": where, "months": monthly, "moments": moments, "twenty": twenty,
    "count": lambda: few().select(dp.len()),
    "people": lambda: cut("grp", 100, 1).group_by("grp").agg(dp.len()).with_keys(keys),
    "total": lambda: of_all(1).group_by("uid").agg(pl.col("value").sum()).select(
        dp.len(), value.dp.sum((0.0, 2000.0))),
    "found": lambda: cut("day", 400, delta=1e-7).group_by("day").agg(dp.len()),
    "median": lambda: cut("grp", 100).group_by("grp").agg(value.dp.median(grid)).with_keys(keys),
    "quantiles": lambda: few().select(*(value.dp.quantile(a, grid).alias(str(a)) for a in (0.1, 0.5, 0.9, 0.99))),
}
start = time.perf_counter()
assert ask[name]().release().collect().width
print(json.dumps(time.perf_counter() - start))
"""

_TUMULT = """
import json, os, sys, time
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
name, path, cores, folder = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[5]
spark = (
    SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "4g")
    .config("spark.sql.shuffle.partitions", cores).config("spark.sql.warehouse.dir", folder).getOrCreate())
spark.sparkContext.setLogLevel("OFF")
from tmlt.analytics import (
    AddRowsWithID, ApproxDPBudget, ColumnType, KeySet, MaxGroupsPerID, MaxRowsPerGroupPerID, MaxRowsPerID,
    PureDPBudget, QueryBuilder, Session)
keys = KeySet.from_dict({"grp": [f"g{i}" for i in range(100)]})
months = keys * KeySet.from_dict({"mon": list(range(1, 13))})
steps = range(0, 100, 5)
real, whole = ColumnType.DECIMAL, ColumnType.INTEGER

def cut(by="grp", per=10):
    return QueryBuilder("t").enforce(MaxGroupsPerID(by, 5)).enforce(MaxRowsPerGroupPerID(by, per))

def few(most=10):
    return QueryBuilder("t").enforce(MaxRowsPerID(most))

def table():
    return [cut().groupby(keys).count(), cut().groupby(keys).average("value", 0.0, 100.0)]

def total():
    totals = QueryBuilder("t").flat_map_by_id(
        lambda rows: [{"s": min(2000.0, float(sum(row["value"] for row in rows)))}], new_column_types={"s": real})
    return [totals.enforce(MaxRowsPerID(1)).average("s", 0.0, 2000.0)]

def where():
    kept = cut().filter("day >= date '2025-06-01' and value > 10")
    made = kept.map(lambda row: {"w": row["value"] * 2 + 1}, new_column_types={"w": real}, augment=True)
    return [made.groupby(keys).sum("w", 1.0, 201.0)]

def monthly():
    made = QueryBuilder("t").map(
        lambda row: {"mon": row["day"].month}, new_column_types={"mon": whole}, augment=True)
    return [made.enforce(MaxRowsPerID(50)).groupby(months).count()]

def moments():
    def products(row):
        x, m = row["value"], float(row["day"].month)
        return {"a": x * x, "m": m, "b": m * m, "c": x * m}
    made = few().map(products, new_column_types={k: real for k in "ambc"}, augment=True)
    most = {"value": 100.0, "a": 1e4, "m": 12.0, "b": 144.0, "c": 1200.0}
    return [made.count(), *(made.sum(column, 0.0, top) for column, top in most.items())]

def twenty():
    made = few().map(
        lambda row: {f"c{at}": int(row["value"] > at) for at in steps},
        new_column_types={f"c{at}": whole for at in steps}, augment=True)
    return [made.sum(f"c{at}", 0, 1) for at in steps]

ask = {
    "T1": table, "text": table, "total": total, "where": where, "months": monthly, "moments": moments,
    "twenty": twenty,
    "count": lambda: [few().count()],
    "people": lambda: [cut(per=1).groupby(keys).count()],
    "median": lambda: [cut().groupby(keys).median("value", 0.0, 100.0)],
    "quantiles": lambda: [few().quantile("value", q, 0.0, 100.0) for q in (0.1, 0.5, 0.9, 0.99)],
}

def answer():
    frame = spark.read.parquet(path)
    delta = name == "found"
    session = Session.from_dataframe(
        ApproxDPBudget(1, 1e-7) if delta else PureDPBudget(1), "t", frame, protected_change=AddRowsWithID("uid"))
    if delta:
        days = session.evaluate(cut("day").get_groups(["day"]), ApproxDPBudget(0.5, 1e-7))
        asked = [cut("day").groupby(KeySet.from_dataframe(days)).count()]
    else:
        asked = ask[name]()
    for question in asked:
        part = 0.5 / len(asked)
        session.evaluate(question, ApproxDPBudget(part, 0) if delta else PureDPBudget(part)).collect()

answer()
start = time.perf_counter()
answer()
print(json.dumps(time.perf_counter() - start))
"""

_PIPELINEDP = """
import csv, json, sys, time
import numpy as np, pipeline_dp as dp
from pipeline_dp.aggregate_params import NormKind
name, path = sys.argv[1], sys.argv[2]
unit = str if name == "text" else int
with open(path, newline="") as file:
    rows = [(unit(r[0]), r[1], float(r[2]), r[3]) for r in csv.reader(file)]
groups = [f"g{i}" for i in range(100)]
metrics = dp.Metrics

def asked(wanted, data=rows, group=lambda r: r[1], value=lambda r: r[2], public=groups, most=5, per=10, delta=0,
          low=0.0, high=100.0, **more):
    budget = dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=delta)
    engine = dp.DPEngine(budget, dp.LocalBackend())
    how = dp.AggregateParams(
        metrics=wanted, max_partitions_contributed=most, max_contributions_per_partition=per, min_value=low,
        max_value=high, noise_kind=dp.NoiseKind.LAPLACE, **more)
    what = dp.DataExtractors(privacy_id_extractor=lambda r: r[0], partition_extractor=group, value_extractor=value)
    told = engine.aggregate(data, how, what, public_partitions=public)
    budget.compute_budgets()
    return list(told)

def flags(row):
    return np.array([float(row[2] > at) for at in range(0, 100, 5)])

one = {"group": lambda r: 0, "public": [0], "most": 1}
by_month = {"group": lambda r: (r[3][5:7], r[1]), "public": [(f"{m:02}", g) for m in range(1, 13) for g in groups]}
ask = {
    "T1": lambda: asked([metrics.COUNT, metrics.MEAN]),
    "text": lambda: asked([metrics.COUNT, metrics.MEAN]),
    "count": lambda: asked([metrics.COUNT], **one),
    "people": lambda: asked([metrics.PRIVACY_ID_COUNT], per=1),
    "total": lambda: asked([metrics.SUM, metrics.PRIVACY_ID_COUNT], low=None, high=None, min_sum_per_partition=0.0,
                           max_sum_per_partition=2000.0, **one),
    "where": lambda: asked([metrics.SUM], [r for r in rows if r[3] >= "2025-06-01" and r[2] > 10],
                           value=lambda r: r[2] * 2 + 1, low=1.0, high=201.0),
    "months": lambda: asked([metrics.COUNT], **by_month),
    "twenty": lambda: asked([metrics.VECTOR_SUM], value=flags,
                            vector_norm_kind=NormKind.Linf, vector_max_norm=1.0, vector_size=20,
                            **one | {"public": None, "delta": 1e-7}),
    "found": lambda: asked([metrics.COUNT], group=lambda r: r[3], public=None, delta=1e-7),
    "median": lambda: asked([metrics.PERCENTILE(50)]),
    "quantiles": lambda: asked([metrics.PERCENTILE(q) for q in (10, 50, 90, 99)], **one),
}
start = time.perf_counter()
ask[name]()
print(json.dumps(time.perf_counter() - start))
"""

# Its grammar keeps the word "day" to itself.
_SMARTNOISE = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import pandas as pd, snsql
name, path = sys.argv[1], sys.argv[2]
unit = "string" if name == "text" else "int"
frame = pd.read_csv(path, names=["uid", "grp", "value", "visited"], dtype={"uid": str} if unit == "string" else None)
columns = {"uid": {"type": unit, "private_id": True}, "grp": {"type": "string"}, "visited": {"type": "string"},
           "value": {"type": "float", "lower": 0.0, "upper": 100.0}}
bounds = {"max_ids": 10, "row_privacy": False, "censor_dims": name == "found", "sample_max_ids": True,
          "clamp_counts": False, "rows": len(frame)}
ask = {
    "T1": "SELECT grp, COUNT(*) AS n, AVG(value) AS m FROM d.t GROUP BY grp",
    "text": "SELECT grp, COUNT(*) AS n, AVG(value) AS m FROM d.t GROUP BY grp",
    "count": "SELECT COUNT(*) AS n FROM d.t",
    "people": "SELECT grp, COUNT(DISTINCT uid) AS n FROM d.t GROUP BY grp",
    "moments": "SELECT VAR(value) AS v FROM d.t",
    "found": "SELECT visited, COUNT(*) AS n FROM d.t GROUP BY visited",
}
reader = snsql.from_df(
    frame, privacy=snsql.Privacy(epsilon=1.0, delta=1e-7), metadata={"": {"d": {"t": bounds | columns}}})
start = time.perf_counter()
reader.execute(ask[name])
print(json.dumps(time.perf_counter() - start))
"""

_PROGRAMS = {"opendp": _OPENDP, "tumult": _TUMULT, "pipelinedp": _PIPELINEDP, "smartnoise": _SMARTNOISE}
_READS_CSV = ("pipelinedp", "smartnoise")


def seconds(rival: str, shape: str, path: Path, rows: int) -> tuple[float | None, str]:
    """What a rival takes for the question of a shape over a Parquet file; None with the reason where it gives none."""
    if (rival, shape) in _CANNOT:
        return None, _CANNOT[rival, shape]
    if rival in _READS_CSV:
        flat = path.with_suffix(".csv")
        if not flat.exists():
            duckdb.sql(f"COPY (FROM '{path}') TO '{flat}' (HEADER false)")
        path = flat
    cores, folder = os.cpu_count() or 1, path.parent / "warehouse"
    try:
        took = run(rival, _PROGRAMS[rival], shape, path, cores, rows, folder, timeout=LONGEST)
    except MissingPeer as missing:
        return None, str(missing)
    except subprocess.TimeoutExpired:
        return None, f"gave no answer in {LONGEST:g} s"
    except RuntimeError as failed:
        return None, f"failed: {str(failed).strip().splitlines()[-1][:80]}"
    return float(took), NOTES.get((rival, shape), "")
