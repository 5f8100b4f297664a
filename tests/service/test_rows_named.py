"""A service gives answers that are stored of the rows that its policy names, and of no others."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.ledger.policy import TablePolicy, load_policy
from hubbub.service import clerk, other_rows
from service.helpers import COUNT
from service.test_alone import StartedLanes
from service.test_before_asking import policy as write_policy

SOURCE = 'source = "v.parquet"'
OTHERS = {
    "source": 'source = "w.parquet"',
    "table": f'{SOURCE}\ntable = "x"',
    "csv": f'{SOURCE}\ncsv = {{delimiter = ";"}}',
    "rows_kept": f"{SOURCE}\nrows_kept = 2",
}
IN_THE_NAME = {
    "name", "unit", "max_groups", "max_rows", "max_total", "neighbours", "columns", "types", "unit_space", "through",
    "bounding",
}  # fmt: skip
"""What stands in a question's own name, or in that of its table."""
NO_ROWS = {"budget", "trusted_view", "answer_time", "looked_at_rows", "rows_per_unit_at_most"}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy whose ledger is there, and another file of its columns."""
    monkeypatch.setattr(clerk, "Lanes", StartedLanes)
    monkeypatch.setattr(clerk, "keep_ready", lambda: None)
    made = write_policy(tmp_path)
    shutil.copy(tmp_path / "v.parquet", tmp_path / "w.parquet")
    hb.Session.from_policy(made, create_ledger=True, analyst="bob").close()
    return made


def declaring(file: Path, what: str) -> Path:
    other = file.with_name("other.toml")
    other.write_text(file.read_text().replace(SOURCE, what))
    return other


def asked(file: Path) -> None:
    """Ask in Python, or on the command line, by a policy."""
    with hb.Session.from_policy(file, analyst="bob") as session:
        session.sql(COUNT, epsilon="1")


@contextmanager
def served(file: Path) -> Iterator[clerk.Clerk]:
    with closing(clerk.Clerk(load_policy(file))) as service:
        yield service
        assert service.ledger.record.verify().problems == ()


def is_stored(service: clerk.Clerk) -> bool:
    return bool(service.desk.check("ada", COUNT, {"epsilon": "1"})["stored"])


def test_every_part_of_a_policy_is_looked_at_here():
    assert OTHERS.keys() == set(other_rows._READ)
    assert OTHERS.keys() | IN_THE_NAME | NO_ROWS == {field.name for field in fields(TablePolicy)}


@pytest.mark.parametrize("what", OTHERS.values(), ids=OTHERS)
def test_rows_that_are_named_otherwise_are_another_version(file, what):
    asked(file)
    versions = {}
    for each in (file, declaring(file, what), file):
        with served(file) as service:
            own = other_rows.OwnVersions(service.ledger._handle, load_policy(file))
            own._own = other_rows.rows_named(other_rows.tomllib.loads(each.read_text()))
            (space,) = service.ledger.balance.spaces()
            versions.setdefault(each, []).append(own.data_version(space, "v"))
    (first, again), (other,) = versions.values()
    assert other != first
    assert again in (first, other)


def test_a_service_that_starts_with_another_source_asks_anew(file):
    asked(file)
    with served(file) as service:
        assert service.desk.ask("ada", COUNT, {"epsilon": "1"}, "one")["state"] == "answered"
    with served(declaring(file, OTHERS["source"])) as service:
        assert not is_stored(service)
        assert service.desk.ask("ada", COUNT, {"epsilon": "1"}, "one")["state"] == "asked"


@pytest.mark.parametrize("by", ["a policy", "Python"])
def test_what_is_asked_of_other_rows_beside_a_service_is_not_its_answer(file, by):
    with served(file) as service:
        assert not is_stored(service)
        if by == "a policy":
            asked(declaring(file, OTHERS["source"]))
        else:
            table = load_policy(file).tables["v"]
            source = hb.table(file.with_name("w.parquet"), unit="id", max_total=table.max_total or 1)
            with hb.Session({"v": source}, budget=load_policy(file).budget, ledger=load_policy(file).ledger) as s:
                s.sql(COUNT, epsilon="1")
        assert not is_stored(service)
        asked(file)
        assert is_stored(service)  # of its own rows
    with served(declaring(file, OTHERS["source"])) as other:
        assert is_stored(other)  # whoever asked about these


@pytest.mark.parametrize("what", ["csv", "rows_kept"])
def test_what_python_reads_otherwise_of_the_same_file_is_not_a_service_s_answer(file, what):
    said, of_csv = SOURCE, {}
    if what == "csv":
        said, of_csv = 'source = "v.csv"', {"types": {"id": "integer", "x": "integer"}}
        file.with_name("v.csv").write_text("id,x,w\n1,2,a\n")
        file.write_text(file.read_text().replace(SOURCE, said))
    other, policy = file.with_name("other.toml"), load_policy(file)
    how = {"csv": 'csv = {decimal = ","}', "rows_kept": "rows_kept = 2"}[what]
    other.write_text(file.read_text().replace(said, f"{said}\n{how}"))
    source = hb.table(policy.tables["v"].source, unit="id", max_total=1, **of_csv)
    with hb.Session({"v": source}, budget=policy.budget, ledger=policy.ledger) as session:
        session.sql(COUNT, epsilon="1")
        same = session._ledger.versions.newest()["id", "v"]
        handle = session._ledger._handle
        assert other_rows.OwnVersions(handle, policy).data_version("id", "v") == same
        assert other_rows.OwnVersions(handle, load_policy(other)).data_version("id", "v") != same


def test_what_waited_while_a_policy_named_other_rows_is_no_answer_of_these(file):
    """It is run on the rows that are named when it runs, and stored under the version that it was asked at."""
    other = declaring(file, OTHERS["source"])
    with served(file) as service:
        for number in range(5):
            service.desk.ask("ada", COUNT, {"epsilon": f"0.{number + 1}"}, f"r{number}")
        before = service.ledger.versions.data_version("id", "v")
        assert service.ledger.timetable.next_time() is not None
    versions = set()
    for each in (file, other, other):
        with served(each) as service:
            if each == other:  # nobody asked anything under it before
                service.desk.ask("bob", COUNT, {"epsilon": "1"}, f"r{len(versions)}")
            versions.add(service.ledger.versions.data_version("id", "v"))
    assert len(versions) == 2
    with served(file) as service:
        assert service.ledger.versions.data_version("id", "v") != before


def test_who_only_checks_issues_no_version(file):
    with hb.Session.from_policy(declaring(file, OTHERS["source"]), analyst="bob") as session:
        assert not session.check(COUNT, epsilon="1").stored
        assert session._ledger.versions.newest() == {}
        session.sql(COUNT, epsilon="1")
        assert session.check(COUNT, epsilon="1").stored


def test_a_refresh_of_a_table_that_others_read_elsewhere_is_theirs_or_the_service_s_alone(file):
    other = declaring(file, OTHERS["source"])
    asked(other)
    with served(file) as service:
        service.ledger.steward.refresh("id", "v")
        mine = service.ledger.versions.data_version("id", "v")
        with hb.Session.from_policy(other, analyst="bob") as session:
            session.sql(COUNT, epsilon="1")
            assert session._ledger.versions.known("id", "v", fingerprint=session._data.mark("v")) != mine
        assert not is_stored(service)
