"""Files that are put in another's place, databases and objects that are replaced: real runners, shut in before that,
are replaced by others, which read what is there now.
"""

from __future__ import annotations

import io
import json
import os
import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.store import ACCESS, SECRET, Store, store
from hubbub.accounting import to_json
from hubbub.confine import landlock_version
from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.policy import load_policy
from hubbub.ledger.schedule import Moment, Slot
from hubbub.ledger.store import Ledger
from hubbub.ledger.timetable import Scheduled
from hubbub.service.clerk import empty_tables
from hubbub.service.lanes import Lanes
from hubbub.service.office import Office
from hubbub.service.refreshes import Refreshes
from hubbub.session.options import Options
from hubbub.session.run import Order
from hubbub.session.statement import request_of

POLICY = """
[budget]
epsilon = 3000
[ledger]
file = "ledger.db"
[tables.p]
source = "p.parquet"
unit = "id"
[tables.d]
source = "d.duckdb"
table = "rows"
unit = "id"
[tables.o]
source = "{url}"
unit = "id"
"""


def rows(people: int) -> pa.Table:
    return pa.table({"id": range(people)})


def parquet(people: int) -> bytes:
    to = io.BytesIO()
    pq.write_table(rows(people), to)
    return to.getvalue()


def put(folder: Path, kept: Store, people: int, table: pa.Table | None = None) -> None:
    """Other files of the same names, and another object."""
    pq.write_table(rows(people) if table is None else table, folder / "p.parquet.new")
    with duckdb.connect(str(folder / "d.duckdb.new")) as made:
        made.execute(f"CREATE TABLE rows AS SELECT range AS id FROM range({people})")
    for name in ("p.parquet", "d.duckdb"):
        os.replace(folder / f"{name}.new", folder / name)
    kept.put("clinic/o.parquet", parquet(people))


class Running:
    """The lanes of a policy, swept as the clerk does it."""

    def __init__(self, folder: Path) -> None:
        self.policy, self._brought = load_policy(folder / "hubbub.toml"), queue.Queue[Any]()
        self.lanes = Lanes(self.policy, lambda one, outcome: self._brought.put(outcome))
        self.lanes.wait()
        self._data = empty_tables(self.policy, self.lanes.described or {})
        self._ended = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep)
        self._sweeper.start()

    def _sweep(self) -> None:
        while not self._ended.wait(0.02):
            self.lanes.sweep()

    def count(self, table: str) -> int:
        """The number of people in a table, as a process reads it that waited; at so much that there is no noise."""
        options = Options(epsilon="500")
        asked: Any = self._data.ask(
            f"SELECT COUNT(DISTINCT id) AS n FROM {table}", options, lambda _: self.policy.budget
        )
        made = request_of(asked, self._data, options)
        order = Order(os.urandom(8).hex(), "sql", made.ask, made.space, self.policy.budget, made.key("1"), "1",
                      to_json(made.event))  # fmt: skip
        slot = Slot(0, Moment(0, 0, ""), 0, 0, 0)
        one = Scheduled(order.charge, 1, "ada", made.space, made.text, "{}", "", slot)
        until = time.monotonic() + 60
        while not self.lanes.start(one, order, 0.8):
            assert time.monotonic() < until
            time.sleep(0.02)
        outcome = self._brought.get(timeout=60)
        assert outcome.payload is not None, outcome.words
        (plan,) = json.loads(outcome.payload)["plans"]
        return int(plan["parts"][0][0][0])

    def counts(self) -> list[int]:
        return [self.count(table) for table in "pdo"]

    def await_others(self, before: list[int]) -> None:
        """Until no process is one of these."""
        until = time.monotonic() + 60
        while set(before) & set(self.lanes.pids):
            assert time.monotonic() < until
            time.sleep(0.02)

    def await_ready(self) -> None:
        """Until every process waits for a question."""
        until = time.monotonic() + 60
        while not all(p.ready and p.ends is None for p in list(self.lanes._processes)):
            assert time.monotonic() < until
            time.sleep(0.02)

    def close(self) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        self._sweeper.join()
        self.lanes.close()
        self._data.close()


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Running, Store]]:
    monkeypatch.setenv("STORE_KEYS", f"{ACCESS}:{SECRET}")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with store() as kept:
        put(tmp_path, kept, 90)
        (tmp_path / "hubbub.toml").write_text(POLICY.format(url=kept.url("clinic/o.parquet")))
        made = Running(tmp_path)
        try:
            yield made, kept
        finally:
            made.close()


def test_what_was_replaced_is_read_after_a_refresh(running: tuple[Running, Store], tmp_path: Path) -> None:
    made, kept = running
    assert made.counts() == [90, 90, 90]
    put(tmp_path, kept, 91)
    made.lanes.renew("o")
    assert made.counts() == [91, 91, 91]
    assert kept.sent == ["clinic/o.parquet"] * 2  # by one process each time, and never by a runner
    assert len(list(Path(made.lanes._spill.folder).glob("objects-*"))) == 1
    assert made.lanes._environment("", "").keys().isdisjoint({"STORE_KEYS"})
    if landlock_version() >= 4:
        assert made.lanes.held["network"] is False
    # Without a refresh files are read too: by processes that may read them. An object is read when a steward says so.
    before = made.lanes.pids
    put(tmp_path, kept, 92)
    made.await_others(before)
    assert made.counts() == [92, 92, 91]
    # Those that refuse what they find are no reason to end the last one that goes on.
    made.await_ready()
    put(tmp_path, kept, 93, pa.table({"person": [1]}))
    with pytest.raises(PolicyError, match="no column 'id'"):
        made.lanes.renew("p")
    assert made.count("d") in (92, 93)
    put(tmp_path, kept, 94)
    made.await_others(made.lanes.pids)
    assert made.counts()[:2] == [94, 94]
    folder = Path(made.lanes._spill.folder)
    made.close()
    assert not folder.exists()


def test_an_object_that_is_not_there_is_said_without_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_KEYS", f"{ACCESS}:{SECRET}")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with store() as kept:
        put(tmp_path, kept, 3)
        (tmp_path / "hubbub.toml").write_text(POLICY.format(url=kept.url("clinic/other.parquet")))
        with pytest.raises(PolicyError, match=r"s3://clinic/other.parquet is not there") as refused:
            Lanes(load_policy(tmp_path / "hubbub.toml"), lambda one, outcome: None)
    assert SECRET not in str(refused.value)


def test_a_refresh_beside_the_service_is_noticed_by_its_version(tmp_path: Path) -> None:
    (tmp_path / "hubbub.toml").write_text(POLICY.format(url="s3://clinic/o.parquet"))
    ledger, lanes, lines, renewed = Mock(), Mock(), list[str](), queue.Queue[str]()
    ledger.versions.newest.return_value = {("id", "o"): "1"}
    refreshes = Refreshes(load_policy(tmp_path / "hubbub.toml"), ledger, lanes, lines.append)
    lanes.renew.side_effect = renewed.put

    def look(**versions: str) -> None:
        ledger.versions.newest.return_value = {("id", name): version for name, version in versions.items()}
        refreshes.look()

    look(o="1", p="1")  # p was asked about for the first time
    look(o="1", p="1", of_another_policy="2")
    look(o="1", p="1", of_another_policy="3")
    look(o="1", p="2")
    assert renewed.get(timeout=30) == "p"
    refreshes.before("o")  # by the service itself: read anew before its version is there
    assert renewed.get(timeout=30) == "o"
    refreshes.written("2o")
    look(o="2o", p="2")
    look(o="3", p="2")
    assert renewed.get(timeout=30) == "o"
    assert renewed.empty()
    lanes.renew.side_effect = PolicyError("no column")
    look(o="3", p="3")
    until = time.monotonic() + 30
    while not lines and time.monotonic() < until:
        time.sleep(0.01)
    assert lines == ["table 'p' was refreshed, and is not read anew: no column"]


def test_rows_that_come_after_a_refresh_that_could_not_be_written_are_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next refresh, beside the service, was taken for that one: old rows were read as the new version."""
    (tmp_path / "hubbub.toml").write_text(POLICY.format(url="s3://clinic/o.parquet"))
    lanes, renewed = Mock(), queue.Queue[str]()
    lanes.renew.side_effect = renewed.put
    with Ledger.in_memory({"id": Budget(1)}) as ledger, monkeypatch.context() as full:
        first = ledger.versions.data_version("id", "o")
        refreshes = Refreshes(load_policy(tmp_path / "hubbub.toml"), ledger, lanes, lambda line: None)
        office = Office(Mock(), ledger, tables={"o": "id"})
        office.read_anew, office.is_read = refreshes.before, getattr(refreshes, "written", lambda _: None)
        full.setattr(ledger.steward, "refresh", Mock(side_effect=PolicyError("the disk is full")))
        with pytest.raises(PolicyError, match="full"):
            office.refresh(Mock(), table="o", reason="new rows")
        assert renewed.get(timeout=30) == "o"
        full.undo()
        refreshes.look()
        assert ledger.steward.refresh("id", "o") != first  # beside the service: of other rows
        refreshes.look()
        assert renewed.get(timeout=30) == "o"
        office.refresh(Mock(), table="o", reason="new rows")
        assert renewed.get(timeout=30) == "o"
        refreshes.look()
        refreshes.look()
        assert renewed.empty()
