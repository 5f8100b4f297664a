"""A cluster of two workers on this machine whose executors are killed while questions run. Run by its test.

python -m engines.lost_worker FOLDER TIMES
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS, PARTS = 4_200, 6
QUESTIONS = (
    "SELECT COUNT(*) FROM (SELECT id, SUM(x) AS s FROM v GROUP BY id) AS p WHERE s > 1.5",
    "SELECT g, COUNT(*), COUNT(DISTINCT id) FROM v GROUP BY g",
    "SELECT COUNT(*) FROM (SELECT id, MEDIAN(x) AS m FROM v GROUP BY id) AS p WHERE m > 0.5",
)


def executors() -> list[int]:
    """Those of this program's own cluster: the processes below it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    below, found = [os.getpid()], []
    while below:
        children = parents.get(below.pop(), [])
        below += children
        for child in children:
            with contextlib.suppress(OSError):
                if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(child)
    return found


def main(folder: str, times: int) -> None:
    import pyspark
    from pyspark.sql import SparkSession

    import hubbub as hb
    from answers import Desk
    from engines.places import answer
    from hubbub.engines.spark.engine import SparkEngine

    os.environ.setdefault("SPARK_HOME", os.path.dirname(pyspark.__file__))
    builder: Any = SparkSession.builder.master("local-cluster[2,1,512]").config("spark.executor.memory", "512m")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "6")
    builder = builder.config("spark.sql.adaptive.enabled", "false").config("spark.task.maxFailures", "20")
    builder = builder.config("spark.deploy.maxExecutorRetries", "-1").config("spark.ui.showConsoleProgress", "false")
    # Java's second compiler works for hours to come: here it would take most of the time.
    for which in ("driver", "executor"):
        builder = builder.config(f"spark.{which}.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    chance = random.Random(15)
    columns = {
        "id": [i % 300 for i in range(ROWS)],
        "g": [chance.choice("abcd") for _ in range(ROWS)],
        "x": [chance.choice([1e11, -1e11, 0.000005, 0.7, float("nan"), None]) for _ in range(ROWS)],
    }
    rows = pa.table(columns)
    for part in range(6):
        pq.write_table(
            rows.slice(part * ROWS // 6, ROWS // 6 + 1 if part == 5 else ROWS // 6), f"{folder}/{part}.parquet"
        )
    limits: dict[str, Any] = {
        "unit": "id",
        "max_groups": 2,
        "max_rows": 3,
        "columns": {"g": hb.one_of("a", "b", "c", "d")},
    }
    desk, engine = Desk({"v": hb.table(rows, **limits)}), SparkEngine()
    engine.add("v", hb.table(spark.read.parquet(folder), **limits))
    engine.seal()
    plans = [plan for sql in QUESTIONS for plan in desk.plans(sql)]
    before, killed = [answer(engine, plan, {}) for plan in plans], 0
    for turn in range(times):
        plan, found = plans[turn % len(plans)], []
        asking = threading.Thread(target=lambda p=plan, f=found: f.append(answer(engine, p, {})))
        asking.start()
        time.sleep(chance.uniform(0, 0.6))
        for executor in executors()[:1]:
            with contextlib.suppress(OSError):
                os.kill(executor, signal.SIGKILL)
                killed += asking.is_alive()
        asking.join()
        assert found == [before[turn % len(plans)]], turn
    print(f"{killed} killed while a question ran, of {times}")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
