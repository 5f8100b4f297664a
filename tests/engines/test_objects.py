"""Tables in an object store are read as local files are, and one that is replaced is noticed."""

from __future__ import annotations

import contextlib
import io
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import hubbub as hb
from cli.helpers import shell
from engines.store import ACCESS, SECRET, Store, store
from hubbub.addresses import ObjectAddress
from hubbub.engines.objects import copies
from hubbub.errors import EngineError, PolicyError

QUESTION = "SELECT COUNT(*) AS n, SUM(x) AS total FROM v"
HUGE = 10**5


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("STORE_KEYS", f"{ACCESS}:{SECRET}")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with store() as made:
        yield made


def parquet(first: int, count: int = 20) -> bytes:
    to = io.BytesIO()
    table = pa.table({"id": range(first, first + count), "x": range(first, first + count)})
    pq.write_table(table, to, compression="none", use_dictionary=False)  # of one length, whatever the values
    return to.getvalue()


def session(source: object, ledger: Path | None = None, **more: Any) -> hb.Session:
    columns = {"x": hb.between(0, 100)}
    table = hb.table(source, unit="id", max_groups=1, max_rows=1, columns=columns, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hb.Session({"v": table}, budget=hb.Budget(10**7), ledger=ledger)


def _rounded(release: Any) -> tuple[int, int]:
    ((n, total),) = release.rows()
    return n, round(total)


def asked(source: object, **more: Any) -> tuple[Any, ...]:
    with session(source, **more) as s:
        return _rounded(s.sql(QUESTION, epsilon=HUGE))


def test_an_object_is_read_as_the_file_is(kept: Store) -> None:
    kept.put("clinic/rows/visits.parquet", parquet(0))
    assert asked(kept.url("clinic/rows/visits.parquet")) == (20, 190)


def test_a_csv_with_its_own_dialect(kept: Store) -> None:
    kept.put("clinic/visits.csv", b"id;x\n1;3,5\n2;4,5\n3;oops\n")
    more = {"types": {"id": "integer", "x": "number"}, "csv": {"delimiter": ";", "decimal": ","}}
    assert asked(kept.url("clinic/visits.csv"), **more) == (3, 8)


@pytest.mark.parametrize("end", ["", "*.parquet"])
def test_a_folder_and_a_pattern(kept: Store, end: str) -> None:
    for i in range(3):
        kept.put(f"clinic/visits/part-{i}.parquet", parquet(20 * i))
    kept.put("clinic/visits/_late.parquet", parquet(60))
    kept.put("clinic/visits/notes.txt", b"no rows")
    assert asked(kept.url(f"clinic/visits/{end}")) == (60, sum(range(60)))


def test_one_persons_bytes_change_no_other_row(kept: Store, tmp_path: Path) -> None:
    plain = b"id,x\n1,3\n2,4\n3,5\n"
    more = {"types": {"id": "integer", "x": "number"}}
    for bad in (b"\xff\xfe,4", b"2,1e999", b'2,"4', b"2,4,4", b"2,", b"2,\x00"):
        body = plain.replace(b"2,4", bad)
        (tmp_path / "local.csv").write_bytes(body)
        kept.put("clinic/visits.csv", body)
        assert asked(kept.url("clinic/visits.csv"), **more) == asked(tmp_path / "local.csv", **more)


def test_an_object_that_is_replaced_between_check_and_question_is_new_data(kept: Store, tmp_path: Path) -> None:
    kept.put("clinic/v.parquet", parquet(0))
    with session(kept.url("clinic/v.parquet"), tmp_path / "l.db") as s:
        s.check(QUESTION, epsilon=HUGE)
        first = s.sql(QUESTION, epsilon=HUGE)
        again = s.sql(QUESTION, epsilon=HUGE)
        assert (again.rows(), again.charged) == (first.rows(), False)
        s.check(QUESTION, epsilon=HUGE)
        kept.put("clinic/v.parquet", parquet(20))  # of the same length, at the same time
        assert len(kept.objects["clinic/v.parquet"]) == len(parquet(0))
        second = s.sql(QUESTION, epsilon=HUGE)
    assert _rounded(first) == (20, 190)
    assert (_rounded(second), second.charged) == ((20, 590), True)


def test_an_answer_is_found_again_by_another_session(kept: Store, tmp_path: Path) -> None:
    kept.put("clinic/v.parquet", parquet(0))
    charged = []
    for _ in range(2):
        with session(kept.url("clinic/v.parquet"), tmp_path / "l.db") as s:
            charged.append(s.sql(QUESTION, epsilon=HUGE).charged)
    assert charged == [True, False]


def test_other_columns_and_an_object_that_is_gone_are_refused(kept: Store) -> None:
    kept.put("clinic/v.parquet", parquet(0))
    with session(kept.url("clinic/v.parquet")) as s:
        to = io.BytesIO()
        pq.write_table(pa.table({"id": range(20), "x": [str(i) for i in range(20)]}), to)
        kept.put("clinic/v.parquet", to.getvalue())
        with pytest.raises(PolicyError, match="columns or the files"):
            s.sql(QUESTION, epsilon=1)
        del kept.objects["clinic/v.parquet"]
        with pytest.raises(PolicyError, match="is not there"):
            s.sql(QUESTION, epsilon=1)


def test_an_object_that_is_written_while_it_is_copied_is_copied_again(kept: Store) -> None:
    kept.put("clinic/v.parquet", parquet(0))
    left = [1]

    def replaced(path: str) -> None:
        if left and path.endswith("v.parquet"):
            left.pop()
            kept.put("clinic/v.parquet", parquet(20), at=1_700_000_100.0)

    kept.before = replaced
    assert asked(kept.url("clinic/v.parquet")) == (20, 590)
    kept.before = lambda path: kept.put("clinic/v.parquet", parquet(0, 20 + len(kept.sent) % 7))
    with pytest.raises(PolicyError, match=r"is written anew each time|cannot be read"):
        asked(kept.url("clinic/v.parquet"))


def test_no_answer_is_of_half_an_edition(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each edition has the people 0 to 39, the second in the other files. A question that was read while another one
    of its session had put one of the two files in its place counted 20 of them twice, and the others not at all. It
    waits for the other file, and then it is not drawn: it was charged for the first edition."""
    for i in range(2):
        kept.put(f"clinic/visits/part-{i}.parquet", parquet(20 * i))
    with session(kept.url("clinic/visits/")) as s:
        engine, replace = s._data.engine, os.replace
        first, half, done = threading.Event(), threading.Event(), threading.Event()
        answers: dict[str, Any] = {}
        run = engine.run

        def run_late(plan: Any, public: Any = None) -> Any:
            if threading.current_thread().name != "reads":
                return run(plan, public)
            first.set()  # it was prepared, of the first edition
            assert half.wait(20)
            threading.Timer(0.3, done.set).start()
            return run(plan, public)

        def replace_late(source: Any, to: Any) -> None:
            replace(source, to)
            if not half.is_set():
                half.set()
                assert done.wait(20)

        def ask(name: str, question: str) -> None:
            try:
                answers[name] = _rounded(s.sql(question, epsilon=HUGE))
            except EngineError:
                answers[name] = "an incident"

        monkeypatch.setattr(engine, "run", run_late)
        monkeypatch.setattr(copies.os, "replace", replace_late)
        reads = threading.Thread(target=ask, args=("reads", QUESTION), name="reads")
        reads.start()
        assert first.wait(20)
        for i in range(2):
            kept.put(f"clinic/visits/part-{1 - i}.parquet", parquet(20 * i))
        copying = threading.Thread(target=ask, args=("copies", f"{QUESTION} WHERE x >= 0"))
        copying.start()
        reads.join()
        copying.join()
    assert answers == {"reads": "an incident", "copies": (40, sum(range(40)))}


def test_a_copy_is_this_users_alone_and_goes_with_the_session(kept: Store) -> None:
    kept.put("clinic/v.parquet", parquet(0))
    with session(kept.url("clinic/v.parquet")) as s:
        copy = s._data.engine._copies["v"]  # type: ignore[attr-defined]
        file = Path(copy.path)
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not file.exists()


def test_keys_are_in_no_message_record_or_text(kept: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.put("clinic/v.parquet", parquet(0))
    with session(kept.url("clinic/v.parquet"), tmp_path / "l.db") as s:
        s.sql(QUESTION, epsilon=1)
        said = repr(s.tables) + repr(s.history())
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for word in (SECRET, ACCESS, "STORE_KEYS"):
        assert word not in said
        assert word.encode() not in files
    assert b"s3://clinic/v.parquet" in files
    monkeypatch.setenv("STORE_KEYS", f"WRONG:{SECRET}")
    with pytest.raises(PolicyError, match="the keys do not allow it") as refused:
        asked(kept.url("clinic/v.parquet"))
    assert SECRET not in str(refused.value)
    monkeypatch.delenv("STORE_KEYS")
    with pytest.raises(PolicyError, match="ACCESS_KEY:SECRET_KEY"):
        asked(kept.url("clinic/v.parquet"))


@pytest.mark.parametrize(
    "written",
    [
        "s3://AKID:secret@clinic/v.parquet",
        "s3://clinic",
        "s3://clinic/v.parquet?session_token=secret",
        "gs://env:NAME@clinic/v.parquet",
        "s3://clinic/v.parquet?scheme=ftp",
    ],
)
def test_what_is_no_address_is_refused_and_not_shown(written: str) -> None:
    with pytest.raises(PolicyError) as refused:
        hb.table(written, unit="id")
    assert "secret" not in str(refused.value)


def test_other_ends_are_refused_before_anything_is_fetched(kept: Store) -> None:
    with pytest.raises(PolicyError, match="not a known file type"):
        asked(kept.url("clinic/v.exe"))
    assert kept.sent == []


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_any_file_system_of_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    (tmp_path / "clinic").mkdir()
    (tmp_path / "clinic" / "v.parquet").write_bytes(parquet(0))
    local = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(copies, "store_of", lambda _: local)
    with session(f"{scheme}://clinic/v.parquet") as s:
        assert _rounded(s.sql(QUESTION, epsilon=HUGE)) == (20, 190)
        other = tmp_path / "other"
        other.write_bytes(parquet(20))
        os.replace(other, tmp_path / "clinic" / "v.parquet")
        assert _rounded(s.sql(QUESTION, epsilon=HUGE)) == (20, 590)


class _Tagged:
    """A store that says of each object what GCS does (its etag and generation), and a time that stays."""

    def __init__(self, folder: Path) -> None:
        self.store = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
        self.facts: dict[bytes, bytes] = {}

    def get_file_info(self, what: Any) -> Any:
        info = self.store.get_file_info(what)
        return fs.FileInfo(info.path, info.type, size=info.size, mtime_ns=1)

    def open_input_stream(self, path: str, **how: Any) -> Any:
        return self.store.open_input_stream(path, **how)

    @contextlib.contextmanager
    def open_input_file(self, path: str) -> Iterator[Any]:
        yield SimpleNamespace(metadata=lambda: self.facts)


@pytest.mark.parametrize("name", [b"generation", b"etag", b"ETag"])
def test_what_a_store_says_of_an_edition_tells_it(name: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Google's store neither etag nor generation was looked at, by its spelling of them."""
    (tmp_path / "clinic").mkdir()
    path, tagged = tmp_path / "clinic" / "v.parquet", _Tagged(tmp_path)
    path.write_bytes(parquet(0))
    tagged.facts[name] = b"1"
    monkeypatch.setattr(copies, "store_of", lambda _: tagged)
    with session("gs://clinic/v.parquet") as s:
        assert _rounded(s.sql(QUESTION, epsilon=HUGE)) == (20, 190)
        path.write_bytes(parquet(20))
        tagged.facts[name] = b"2"
        assert _rounded(s.sql(QUESTION, epsilon=HUGE)) == (20, 590)


def test_beside_files_and_frames_in_one_session(kept: Store, tmp_path: Path) -> None:
    kept.put("clinic/v.parquet", parquet(0))
    (tmp_path / "w.parquet").write_bytes(parquet(0))
    declared = {"unit": "id", "max_groups": 1, "max_rows": 1, "columns": {"x": hb.between(0, 100)}}
    tables = {
        "v": hb.table(kept.url("clinic/v.parquet"), **declared),
        "w": hb.table(tmp_path / "w.parquet", **declared),
        "p": hb.public(pa.table({"x": [1, 2]})),
    }
    with hb.Session(tables, budget=hb.Budget(10**7), ledger=tmp_path / "l.db") as s:
        joined = "SELECT COUNT(*) AS n FROM v JOIN w USING (id) JOIN p ON p.x = v.x"
        assert s.sql(joined, epsilon=HUGE).rows() == [(2,)]


def test_an_object_has_one_budget(kept: Store, tmp_path: Path) -> None:
    """Before, a folder and an object in it had two, and so had an object with a word as its table."""
    for name in ("a", "b"):
        kept.put(f"clinic/visits/{name}.parquet", parquet(0))
    one, folder = kept.url("clinic/visits/a.parquet"), kept.url("clinic/visits/")
    limits = {"unit": "id", "max_groups": 1, "max_rows": 1}

    def opened(ledger: str, **tables: hb.PrivateTable | hb.PublicTable) -> None:
        hb.Session(tables, budget=hb.Budget(1), ledger=tmp_path / ledger, new_unit_spaces=["x", "y"]).close()

    again = [(folder, None), (one, "word"), (kept.url("clinic/visits/*.parquet"), None)]
    for i, (source, word) in enumerate(again):
        other = hb.table(source, unit_space="y", table=word, **limits)
        with pytest.raises(PolicyError, match="stands in two unit spaces"):
            opened(f"{i}.db", v=hb.table(one, unit_space="x", **limits), w=other)
    kept.put("clinic/t.csv", b"id,x\n1,2\n")
    text = {"types": {"id": "integer"}, **limits}
    named = hb.Csv(names=["id", "y"])
    for i, how in enumerate(({"csv": named}, {})):
        renamed = text | {"unit": "who", "csv": hb.Csv(names=["who", "y"]), "types": {"who": "integer"}}
        at = kept.url("clinic/t.csv")
        with pytest.raises(PolicyError, match="stands in two unit spaces"):
            opened(f"t{i}.db", v=hb.table(at, unit_space="x", **text | how), w=hb.table(at, unit_space="y", **renamed))
        opened(f"t{i}.db", v=hb.table(at, unit_space="x", **text | how))
        with pytest.raises(PolicyError, match="stands in the unit space 'x' of this ledger"):
            opened(f"t{i}.db", w=hb.table(at, unit_space="y", **renamed))
    opened("folder.db", v=hb.table(folder, unit_space="x", **limits))
    for word in (None, "word"):
        with pytest.raises(PolicyError, match="stands in the unit space 'x' of this ledger"):
            opened("folder.db", v=hb.table(one, unit_space="y", table=word, **limits))
    opened("folder.db", v=hb.table(one, unit_space="x", **limits))


def test_the_policy_file_and_init(kept: Store, tmp_path: Path) -> None:
    kept.put("clinic/visits.csv", b"id;x\n1;3\n2;4\n")
    url = kept.url("clinic/visits.csv")
    made = shell("init", url, "--unit", "id", "--sniff", "--yes", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    policy = (tmp_path / "hubbub.toml").read_text("utf-8")
    assert f'source = "{url}"' in policy
    assert "[tables.visits" in policy
    checked = shell("policy", "check", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    looked = shell("steward", "check-data", "--may-see-rows", cwd=tmp_path)
    assert looked.returncode == 0, looked.stderr
    assert "database" not in looked.stderr
    assert [line.split()[:2] for line in looked.stdout.splitlines()[-2:]] == [["visits", "id"], ["visits", "x"]]


def test_an_address_says_where_and_nothing_else() -> None:
    address = ObjectAddress("s3://env:KEYS@clinic/a b/v.parquet?region=eu-south-1&endpoint_override=minio.example:9000")
    assert (str(address), address.kept) == (
        "s3://clinic/a b/v.parquet",
        "s3://clinic/a b/v.parquet?endpoint_override=minio.example:9000",
    )
    assert not address.several
    assert ObjectAddress("gs://clinic/visits/").several
    assert ObjectAddress("gs://clinic/visits/*.parquet").several
    assert ObjectAddress("s3://clinic/v?.parquet").several


@pytest.mark.parametrize("when", ["while it reads", "before it reads", "while it reads, and back"])
def test_an_answer_is_stored_for_the_rows_that_it_was_drawn_of(kept: Store, monkeypatch: Any, when: str) -> None:
    """Before, another question copied a new edition after a charge; its answer was given for the old rows later."""
    old, new = (b"id,x\n" + b"".join(b"%d,5\n" % i for i in range(n)) for n in (20, 50))
    kept.put("clinic/v.csv", old)
    types = {"id": "integer", "x": "integer"}
    declared = hb.table(kept.url("clinic/v.csv"), unit="id", max_groups=1, max_rows=1, types=types)
    with hb.Session({"t": declared}, budget=hb.Budget(10**9), ledger=None) as s:
        run, steps = s._data.run, []

        def edition(rows: bytes, at: float) -> None:
            kept.put("clinic/v.csv", rows, at=at)
            s._data.mark("t")  # what any other question of the session does

        def late(plan: Any, public: Any) -> Any:
            if when == "before it reads":
                edition(new, 1_700_000_500.0)
            answer = run(plan, public)
            if when != "before it reads":
                edition(new, 1_700_000_500.0)
            if when.endswith("back"):
                edition(old, 1_700_000_000.0)
            steps.append(answer)
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(s._data, "run", late)
            with pytest.raises(EngineError):
                s.sql("SELECT COUNT(*) AS n FROM t", epsilon=HUGE)
        assert len(steps) == 1
        for rows, n in ((old, 20), (new, 50)):
            kept.put("clinic/v.csv", rows)
            assert s.sql("SELECT COUNT(*) AS n FROM t", epsilon=HUGE).rows() == [(n,)]
