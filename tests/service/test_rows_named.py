"""A service whose policy names other rows than it did gives no answer that is stored of the others."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.ledger.policy import TablePolicy, load_policy
from hubbub.ledger.store import Ledger
from hubbub.service import clerk, other_rows
from service.helpers import COUNT
from service.test_alone import StartedLanes
from service.test_before_asking import policy as write_policy

OTHERS = {
    "source": 'source = "w.parquet"',
    "table": 'source = "v.parquet"\ntable = "x"',
    "csv": 'source = "v.parquet"\ncsv = {delimiter = ";"}',
    "rows_kept": 'source = "v.parquet"\nrows_kept = 2',
}
IN_THE_NAME = {
    "name", "unit", "max_groups", "max_rows", "max_total", "neighbours", "columns", "types", "unit_space", "through",
    "bounding",
}  # fmt: skip
"""What stands in a question's own name, or in that of its table."""
NO_ROWS = {"budget", "trusted_view", "answer_time", "looked_at_rows", "rows_per_unit_at_most"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A policy about which something was asked and is stored, as `hubbub query` and Python do it."""
    made = write_policy(tmp_path)
    shutil.copy(tmp_path / "v.parquet", tmp_path / "w.parquet")
    with hb.Session.from_policy(made, create_ledger=True, analyst="ada") as session:
        assert session.sql(COUNT, epsilon="1").charged
    return made


def noted(file: Path) -> list[str]:
    """The tables that get a new version under the policy as it is written now."""
    text = file.read_text()
    with Ledger.manage(file.with_name("l.db")) as ledger:
        done = other_rows.note_other_rows(ledger, text, {"v": ledger.balance.spaces()[0]})
        assert ledger.record.verify().problems == ()
    return done


def test_every_part_of_a_policy_is_looked_at_here():
    assert OTHERS.keys() == set(other_rows._READ)
    assert OTHERS.keys() | IN_THE_NAME | NO_ROWS == {field.name for field in fields(TablePolicy)}


@pytest.mark.parametrize("part", OTHERS)
def test_rows_that_are_named_otherwise_are_another_version(file, part):
    before = file.read_text()
    assert noted(file) == []
    file.write_text(before.replace('source = "v.parquet"', OTHERS[part]))
    assert noted(file) == ["v"]
    assert noted(file) == []  # nobody was asked about the new version
    file.write_text(before)
    assert noted(file) == []


def test_a_clerk_that_starts_with_another_source_asks_anew(file, monkeypatch):
    monkeypatch.setattr(clerk, "Lanes", StartedLanes)
    monkeypatch.setattr(clerk, "keep_ready", lambda: None)
    for source, state in (("v", "answered"), ("w", "asked")):
        file.write_text(file.read_text().replace('source = "v.parquet"', f'source = "{source}.parquet"'))
        with closing(clerk.Clerk(load_policy(file))) as service:
            assert service.desk.check("ada", COUNT, {"epsilon": "1"})["stored"] == (source == "v")
            assert service.desk.ask("ada", COUNT, {"epsilon": "1"}, "one")["state"] == state
