"""A copy with at most so many rows of one unit: what it holds, who reads it, and what it closes.

One person with 3 million rows makes a run of the service miss its answer time, and that is told. Where questions read
the copy, two worlds in which that person has no rows, or 3 million, are not told apart.
"""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from answers import Desk
from hubbub import plain
from hubbub.audit.service import SCRIPTS, attack
from hubbub.cli.main import run
from hubbub.engines.duckdb.kept import write_kept
from hubbub.engines.duckdb.parquet import Patient
from hubbub.ledger.policy import load_policy
from hubbub.service.runner import readable
from hubbub.session.copies import copied, copy_place, write_copy
from hubbub.session.data import OpenTables
from hubbub.session.empty import EmptyTables, schema_of
from hubbub.session.open import declared_tables
from service.faces import faced  # noqa: F401
from service.helpers import World
from service.played import AtDesk
from service.test_audit import SQL

POLICY = """
[budget]
epsilon = 10
[ledger]
file = "ledger.db"
[tables.visits]
source = "visits.parquet"
unit = "id"
max_groups = 1
max_rows = 5
rows_kept = 20
"""
MANY = 3_000_000


def rows(heavy: int = 0, people: int = 200) -> pa.Table:
    """Two rows of everybody, and so many of one more person; two rows of nobody."""
    ids = [*[i % people for i in range(2 * people)], None, None]
    own = pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array(range(len(ids)), pa.int64())})
    more = pa.table({"id": pa.array([people] * heavy, pa.int64()), "x": pa.array(range(heavy), pa.int64())})
    return pa.concat_tables([own, more])


def at(folder: Path, table: pa.Table, policy: str = POLICY) -> Path:
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / "visits.parquet")
    (folder / "hubbub.toml").write_text(policy)
    return folder / "hubbub.toml"


def kept(policy: Path) -> pa.Table:
    said = load_policy(policy)
    place = copy_place(said, said.tables["visits"])
    assert place is not None
    return pq.read_table(place).sort_by([("id", "ascending"), ("x", "ascending")])


def test_a_copy_holds_so_many_rows_of_each_unit_whatever_others_have(tmp_path: Path) -> None:
    made = []
    for n, heavy in enumerate((0, 7, 5000)):
        policy = at(tmp_path / str(n), rows(heavy))
        write_copy(load_policy(policy), "visits")
        made.append(kept(policy))
        assert (tmp_path / str(n) / "rows_kept").stat().st_mode & 0o77 == 0
        assert [p.name for p in (tmp_path / str(n) / "rows_kept").iterdir() if "writing" in p.name] == []
    assert [len(table) for table in made] == [400, 407, 420]
    others = [table.filter(pc.field("id") < 200) for table in made]
    assert others[0].equals(others[1])
    assert others[0].equals(others[2])
    shuffled = rows(5000).take(pa.array([*range(5401, -1, -1)]))
    policy = at(tmp_path / "again", shuffled)
    write_copy(load_policy(policy), "visits")
    assert kept(policy).equals(made[2])


def test_every_type_of_column_stays_what_it_is(tmp_path: Path) -> None:
    import datetime as dt
    from decimal import Decimal

    table = pa.table({
        "id": ["a", "a", "b"], "d": [Decimal("1.25"), None, Decimal("3.50")],
        "t": pa.array([dt.datetime(2026, 1, 1, microsecond=7)] * 3, pa.timestamp("us")),
        "n": pa.array([1, 2, 3], pa.timestamp("ns")), "f": pa.array([0.5, 1.5, None], pa.float32()),
        "u": pa.array([1, 2, 3], pa.uint8()), "b": [True, None, False], "day": [dt.date(2026, 1, 1)] * 3,
        'odd "name"': [1, 2, 3],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "t.parquet")
    write_kept("t", [str(tmp_path / "t.parquet")], "ID", 5, tmp_path / "kept" / "t.parquet")
    copy = pq.read_table(tmp_path / "kept" / "t.parquet").select(table.column_names)
    assert [f.type for f in copy.schema] == [f.type for f in table.schema]
    assert copy.sort_by([("id", "ascending"), ("u", "ascending")]).cast(table.schema).equals(table)
    with pytest.raises(hb.PolicyError, match="no column 'person'"):
        write_kept("t", [str(tmp_path / "t.parquet")], "person", 5, tmp_path / "kept" / "t.parquet")


def test_a_copy_makes_no_unit_of_moments_that_are_cut_where_they_are_read(tmp_path: Path) -> None:
    """Copied, two moments of 96 bits in one microsecond would be one person."""
    path, place = tmp_path / "t.parquet", tmp_path / "kept" / "t.parquet"
    moments = pa.table({"at": pa.array([1001, 1002], pa.timestamp("ns")), "n": [1, 2]})
    pq.write_table(moments, path, use_deprecated_int96_timestamps=True)
    write_kept("t", [str(path)], "at", 5, place)
    with pytest.raises(hb.PolicyError, match="a unit is named by"):
        Desk({"t": hb.table(str(place), unit="at", max_total=1)})
    write_kept("t", [str(path)], "n", 5, place)
    assert pq.read_table(place)["at"].null_count == 0


def test_questions_read_the_copy_which_is_written_with_the_ledger_and_at_each_refresh(tmp_path: Path) -> None:
    policy = at(tmp_path, rows(5000))
    with pytest.raises(hb.PolicyError, match="hubbub ledger refresh visits"):
        hb.Session.from_policy(policy)
    with hb.Session.from_policy(policy, create_ledger=True) as session:
        n = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=2, max_total=5000).to_dict()["n"][0]
        assert n < 400 + 20 + 100_000  # noise for 5,000 rows is large; what was read is looked at below
        assert session._data.engine._files["visits"] == str(next((tmp_path / "rows_kept").glob("*.parquet")))
    at(tmp_path, rows(0))
    assert len(kept(policy)) == 420  # until somebody says that there are new rows
    assert run(["ledger", "refresh", "visits", "--policy", str(policy)]) == 0
    assert len(kept(policy)) == 400
    at(tmp_path, rows(5000), POLICY.replace("= 20", "= 30"))
    with pytest.raises(hb.PolicyError, match="was not written yet"):
        hb.Session.from_policy(policy)
    copied(load_policy(policy), "visits")
    assert len(kept(policy)) == 430
    assert len(list((tmp_path / "rows_kept").iterdir())) == 1  # that of another number of rows is gone
    hb.Session.from_policy(policy).close()


def test_a_runner_may_read_the_copy_and_not_the_table(tmp_path: Path) -> None:
    said = load_policy(at(tmp_path, rows(50)))
    write_copy(said, "visits")
    place = copy_place(said, said.tables["visits"])
    assert place is not None
    assert readable(said) == [place.parent]


def test_the_clerk_opens_no_copy(tmp_path: Path) -> None:
    """It plans on the declarations over empty tables, those of a table that is read from its copy too."""
    said = load_policy(at(tmp_path, rows(50)))
    write_copy(said, "visits")
    tables = declared_tables(said)
    rows_there = OpenTables(tables)
    empty = EmptyTables(tables, schema_of(rows_there))
    assert rows_there.engine._files.keys() == {"visits"}
    assert empty.engine._files.keys() == set()
    assert empty.cells("visits", ["x"]).columns == {"x": []}
    rows_there.close()
    empty.close()


_SHUT_IN: Final = """
import sys
from hubbub.confine import confine
from hubbub.ledger.policy import load_policy
from hubbub.service.runner import readable
from hubbub.session.copies import copy_place
said = load_policy(sys.argv[1])
place = copy_place(said, said.tables["visits"])
confine(read=readable(said))
print(place.stat().st_ino, flush=True)
sys.stdin.readline()
print(place.stat().st_ino, len(place.read_bytes()), flush=True)
"""


def test_a_runner_that_was_shut_in_before_a_refresh_reads_the_new_copy(tmp_path: Path) -> None:
    """A rule of Landlock is about a file, not about its name: the new copy is another file."""
    policy = at(tmp_path, rows(0))
    write_copy(load_policy(policy), "visits")
    with subprocess.Popen(
        [sys.executable, "-c", _SHUT_IN, str(policy)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runner:
        assert runner.stdin is not None
        assert runner.stdout is not None
        before = runner.stdout.readline().strip()
        write_copy(load_policy(policy), "visits")
        after = runner.communicate("go\n")[0].split()
    assert len(after) == 2
    assert after[0] != before


def test_a_copy_is_of_one_policy_and_one_source(tmp_path: Path) -> None:
    """Two policies may stand in one folder and name their tables alike; and a source may be written anew."""
    first = load_policy(at(tmp_path, rows(0)))
    write_copy(first, "visits")
    other = tmp_path / "other.toml"
    other.write_text(POLICY.replace("visits.parquet", "others.parquet").replace("ledger.db", "other.db"))
    moved = tmp_path / "hubbub.toml"
    moved.write_text(POLICY.replace("visits.parquet", "others.parquet"))
    places = {copy_place(said, said.tables["visits"]) for said in (first, load_policy(other), load_policy(moved))}
    assert len(places) == 3


def test_a_copy_that_cannot_be_written_is_said_without_its_words(tmp_path: Path) -> None:
    policy = at(tmp_path, rows())
    (tmp_path / "visits.parquet").write_bytes(b"PAR1 secret PAR1")
    with pytest.raises(hb.PolicyError, match="cannot be read") as refused:
        copied(load_policy(policy), "visits")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('source = "visits.csv"', "made of Parquet files"),
        ('source = "env:ROWS"\ntable = "visits"', "made of Parquet files"),
        ('source = "spark:visits"', "made of Parquet files"),
    ],
)
def test_a_copy_is_made_of_parquet_files_alone(tmp_path: Path, change: str, words: str) -> None:
    with pytest.raises(hb.PolicyError, match=words):
        load_policy(at(tmp_path, rows(), POLICY.replace('source = "visits.parquet"', change)))
    with pytest.raises(hb.PolicyError, match="own column is the unit"):
        load_policy(at(tmp_path, rows(), POLICY.replace('unit = "id"', "each_row = true")))
    with pytest.raises(hb.PolicyError, match="whole number"):
        load_policy(at(tmp_path, rows(), POLICY.replace("rows_kept = 20", "rows_kept = 0")))


def test_a_refresh_in_the_service_writes_the_copy_before_the_version(faced: Any) -> None:  # noqa: F811
    _, world = faced
    done: list[str] = []
    world.office.read_anew = done.append
    world.person("sue", "steward")
    told = world.line.ask(
        "refresh", {"table": "v", "reason": "new rows"}, {"token": world.token("sue", scopes=["steward"])}
    )
    assert told["told"]["table"] == "v"
    assert done == ["v"]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[bool, int], int]:
    """How many rows a question reads, without a copy and with one, in both worlds."""
    found = {}
    for heavy in (0, MANY):
        policy = at(tmp_path_factory.mktemp("world"), rows(heavy))
        write_copy(load_policy(policy), "visits")
        found[False, heavy] = pq.read_metadata(policy.parent / "visits.parquet").num_rows
        found[True, heavy] = len(kept(policy))
    return found


@pytest.mark.parametrize("script", ["answer", "history", "stored", "lock", "again", "second asker"])
def test_a_person_of_three_million_rows_is_not_told_from_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: dict[tuple[bool, int], int], script: str
) -> None:
    """A run takes two microseconds a row that it reads: 6 of 5 seconds for 3 million."""
    made: list[World] = []

    def world(copy: bool, heavy: int) -> AtDesk:
        takes = 0.2 + float(Fraction(read[copy, heavy], 500_000))
        made.append(World(tmp_path / f"{len(made)}.db", monkeypatch, takes=round(takes, 1), step=0.1))
        return AtDesk(made[-1])

    found = {
        copy: attack(tuple(partial(world, copy, heavy) for heavy in (0, MANY)), SQL, scripts={script: SCRIPTS[script]})  # type: ignore[arg-type]
        for copy in (False, True)
    }
    assert [each.script for each in found[False]] == [script]  # whether it was answered within its time
    assert found[True] == []
    for each in made:
        each.ledger.close()


def _worst(bad: bool) -> pa.Table:
    """Columns of which one value of person 200 makes DuckDB's reader fail, where it is bad; and some of no use."""
    n = 401
    texts = pa.array([*[b"ok"] * 400, b"\xff" if bad else b"ok"], pa.binary())
    far = pa.array([*[1000] * 400, 2**62 if bad else 1000], pa.int64())
    late = pa.array([*[1] * 400, -1 if bad else 1], pa.int64())
    lists = pa.ListArray.from_arrays(pa.array(range(n + 1), pa.int32()), _texts(texts))
    return pa.table({
        "id": pa.array([*[i % 200 for i in range(400)], 200]), "x": pa.array(range(n)), "text": _texts(texts),
        "moment": far.view(pa.timestamp("ms")), "time": late.view(pa.time64("us")), "listed": lists,
        "{}": pa.array(range(n)),
    })  # fmt: skip


def _texts(values: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), len(values), values.buffers())


def test_a_value_that_no_reader_takes_changes_no_other_and_stops_no_copy(tmp_path: Path) -> None:
    """That rows were refreshed, or were not, would tell of one person's text."""
    copies = []
    for bad in (False, True):
        place = tmp_path / "kept" / f"{bad}.parquet"
        pq.write_table(_worst(bad), tmp_path / "t.parquet")
        write_kept("t", [str(tmp_path / "t.parquet")], "id", 5, place)
        copies.append(pq.read_table(place).sort_by("x"))
    assert copies[0].schema.types == copies[1].schema.types
    assert [len(copy) for copy in copies] == [401, 401]
    assert copies[0].slice(0, 400).to_pylist() == copies[1].slice(0, 400).to_pylist()
    assert copies[1].slice(400).select(["id", "text", "moment", "time", "listed", "{}"]).to_pylist() == [
        {"id": 200, "text": None, "moment": None, "time": None, "listed": None, "{}": 400}
    ]


def test_both_readings_write_the_same_copy(tmp_path: Path) -> None:
    pq.write_table(_worst(bad=False), tmp_path / "t.parquet")
    copies = []
    for way in (False, True):
        place = tmp_path / "kept" / f"{way}.parquet"
        with plain.only(plain=way):
            write_kept("t", [str(tmp_path / "t.parquet")], "id", 1, place)
        copies.append(pq.read_table(place).sort_by("x"))
    assert copies[0].schema.types == copies[1].schema.types
    assert copies[0].to_pylist() == copies[1].to_pylist()
    assert len(copies[0]) == 201


def test_a_file_that_is_written_anew_while_it_is_copied_is_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that Arrow reads stand beside what DuckDB reads by the row's number: of two files, two people's."""
    path, place = tmp_path / "t.parquet", tmp_path / "kept" / "t.parquet"
    pq.write_table(_worst(bad=True), path)
    fill = Patient.fill

    def replaced(patient: Patient, con: Any, view: str) -> None:
        fill(patient, con, view)
        pq.write_table(_worst(bad=False), path)

    monkeypatch.setattr(Patient, "fill", replaced)
    with pytest.raises(hb.PolicyError, match="while it was copied"):
        write_kept("t", [str(path)], "id", 5, place)
    assert not place.exists()


_WRITER = """
import resource, sys
from pathlib import Path
from hubbub import plain
from hubbub.engines.duckdb.kept import write_kept
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with plain.only(plain=sys.argv[3] == "plain"):
    write_kept("t", [sys.argv[1]], "id", 5, Path(sys.argv[2]))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("long", ["t", "id"])
@pytest.mark.parametrize("way", ["quick", "plain"])
def test_a_long_text_that_one_person_s_rows_share_is_written_out_for_none_of_them(
    tmp_path: Path, way: str, long: str
) -> None:
    """A file of 12 KB, with a text of 1 MB in 2,000 rows of one person, took 6 GB; as that person's name, too."""
    codes = pa.array([*([0] * 1000 if long == "t" else range(1000)), *[1 if long == "t" else 1000] * 700], pa.int32())
    names = ["a"] if long == "t" else [str(i) for i in range(1000)]
    texts = pa.DictionaryArray.from_arrays(codes, pa.array([*names, "x" * 2**20]))
    others = [*range(1000), *[5000] * 700]
    path, place = tmp_path / "t.parquet", tmp_path / "kept" / "t.parquet"
    columns = {"t": texts, "id": others} if long == "t" else {"id": texts, "t": others}
    pq.write_table(pa.table({**columns, "x": range(1700)}), path, compression="zstd")
    done = subprocess.run(
        [sys.executable, "-P", "-c", _WRITER, str(path), str(place), way], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 400, "megabytes"
    kept = pq.read_table(place)
    assert kept.num_rows == 1005
    assert sorted(set(kept.column("x").to_pylist()) & set(range(1000))) == list(range(1000))
