"""Whatever is wrong with a ledger file is said before anything is charged."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import stat
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import HubbubError, PolicyError
from hubbub.ledger import files
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, as_nobody, charge, fork, wait

BUDGETS = {SPACE: Budget(1)}


def opened(path: Path, **options: object) -> Ledger:
    return Ledger.open(path, budgets=BUDGETS, **options)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path):
    """A ledger with one charge of a quarter, closed."""
    with opened(tmp_path / "b.db") as ledger:
        charge(ledger, "1/4")
    return tmp_path / "b.db"


def test_a_ledger_remembers(path):
    with opened(path) as ledger:
        assert ledger.balance.remaining(SPACE) == Fraction(3, 4)


def test_a_closed_ledger_is_one_file(path):
    assert [file.name for file in path.parent.iterdir()] == ["b.db"]


def test_a_missing_file_is_created_only_if_wanted(tmp_path):
    with pytest.raises(PolicyError, match=r"there is no ledger .*hubbub ledger create"):
        opened(tmp_path / "b.db", create=False)
    assert list(tmp_path.iterdir()) == []
    with opened(tmp_path / "b.db", create=True) as ledger:
        assert ledger.balance.remaining(SPACE) == 1


def test_another_budget_is_refused_with_both(path):
    with pytest.raises(PolicyError, match=r"Budget\(epsilon=2\) is declared.*created with Budget\(epsilon=1\)"):
        Ledger.open(path, budgets={SPACE: Budget(2)})


def test_the_same_budget_written_otherwise_is_the_same(path):
    with Ledger.open(path, budgets={SPACE: Budget("10/10")}) as ledger:
        assert ledger.balance.ceiling(SPACE) == 1


def test_a_new_unit_space_is_added(path):
    with Ledger.open(path, budgets={"household": Budget(2)}, new_spaces=["household"]) as ledger:
        assert ledger.balance.spaces() == ["household", SPACE]
        assert (ledger.balance.remaining("household"), ledger.balance.remaining(SPACE)) == (2, Fraction(3, 4))


def test_one_wrong_budget_adds_no_other_space(path):
    with pytest.raises(PolicyError):
        Ledger.open(path, budgets={"household": Budget(2), SPACE: Budget(2)})
    with Ledger.inspect(path) as ledger:
        assert ledger.balance.spaces() == [SPACE]


@pytest.mark.parametrize("content", [b"", b"x", b"not a database " * 100, b"SQLite format 3\x00"])
def test_what_is_no_database_is_refused_and_left_alone(tmp_path, content):
    file = tmp_path / "b.db"
    file.write_bytes(content)
    with pytest.raises(PolicyError, match="is not a ledger: it does not begin like a SQLite file"):
        opened(file)
    assert file.read_bytes() == content


@pytest.mark.parametrize("wal", [False, True])
def test_a_strangers_database_is_left_as_it_is(tmp_path, wal):
    file = tmp_path / "b.db"
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA journal_mode = {'wal' if wal else 'delete'}")
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(PolicyError, match="another program"):
        opened(file)
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["b.db"]


@pytest.mark.parametrize(("version", "advice"), [(9, "Update hubbub"), (0, "unfinished")])
def test_another_schema_version_is_refused(path, version, advice):
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(PolicyError, match=rf"schema version {version}; this hubbub reads version 8\. .*{advice}"):
        opened(path)


@pytest.mark.parametrize("amount", ["much", "1/0", ""])
def test_an_amount_that_is_none_is_damage_and_no_budget(path, amount):
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER unit_space_no_update")
    connection.execute("UPDATE unit_space SET epsilon = ?", (amount,))
    connection.commit()
    connection.close()
    with pytest.raises(PolicyError, match="not the one that its link was made of"):
        opened(path)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(PolicyError, match="is a folder"):
        opened(tmp_path)
    with pytest.raises(PolicyError, match="is a folder"):
        Ledger.inspect(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(PolicyError, match=r"there is no folder .*missing"):
        opened(tmp_path / "missing" / "b.db")


def pages_damaged(path: Path, seed: int) -> None:
    """Overwrite the whole of one page after the first with a pattern."""
    content = bytearray(path.read_bytes())
    count = len(content) // 4096
    page = 1 + seed % (count - 1)
    content[page * 4096 : (page + 1) * 4096] = bytes((i * 37 + seed) % 256 for i in range(4096))
    path.write_bytes(content)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_page_is_found_when_the_ledger_is_opened(path, seed):
    pages_damaged(path, seed)
    with pytest.raises(PolicyError, match=r"damaged.*never an older one"):
        opened(path)


def test_a_truncated_ledger_is_not_taken_for_a_new_one(path):
    os.truncate(path, 8192)
    with pytest.raises(PolicyError, match="damaged"):
        opened(path)
    os.truncate(path, 0)
    with pytest.raises(PolicyError, match="is not a ledger"):
        opened(path)


def test_inspection_reads_and_never_writes(path):
    with Ledger.inspect(path) as ledger:
        assert ledger.balance.remaining(SPACE) == Fraction(3, 4)
        assert len(ledger.record.history()) == 1
        with pytest.raises(PolicyError, match="cannot write"):
            charge(ledger, "1/4")
    with pytest.raises(PolicyError, match="there is no ledger"):
        Ledger.inspect(path.parent / "missing.db")


def test_a_lock_held_for_too_long_is_said_and_not_stuck(path):
    other = sqlite3.connect(path, isolation_level=None)
    with opened(path, patience=0.05) as ledger:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(PolicyError, match="held by another process"):
            charge(ledger, "1/4")
        assert ledger.balance.remaining(SPACE) == Fraction(3, 4)
        other.execute("ROLLBACK")
        other.close()
        charge(ledger, "1/4")
        assert ledger.balance.remaining(SPACE) == Fraction(1, 2)


def charge_for_ever(ledger: Ledger, won: int) -> None:
    while True:
        charge(ledger, "1/1000", details="x" * 2000)
        os.write(won, b"x")


def limited(path: Path, bytes_allowed: int, won: int) -> None:
    """Charge until a file may not grow any more; a byte to `won` for each charge."""
    with opened(path) as ledger:
        ledger.record.history()  # the file is open, as it would be when a disk fills up
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_allowed, bytes_allowed))
        with pytest.raises(PolicyError, match="not recorded, so no answer is given"):
            charge_for_ever(ledger, won)


@pytest.mark.parametrize("room", [0, 10_000, 100_000, 200_000])
def test_a_full_disk_charges_nothing_and_breaks_nothing(path, room):
    read, write = os.pipe()
    assert wait(fork(lambda: limited(path, room, write))) == [0]
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        charged = len(pipe.read())
    with opened(path, max_failures=1000, max_failures_all=1000) as ledger:  # that they were given up may not fit either
        entries = ledger.record.history()
        assert len(entries) == 1 + charged
        assert ledger.balance.spent(SPACE) == sum(entry.epsilon for entry in entries)
        charge(ledger, "1/4")


def refused(path: Path, match: str) -> None:
    with pytest.raises(HubbubError, match=match), opened(path, patience=0.1) as ledger:
        charge(ledger, "1/4")


@pytest.fixture
def reachable(path):
    """The ledger in a folder that any user may enter, and none but its owner may write to."""
    folder = Path("/tmp" if os.path.isdir("/tmp") else path.parent) / f"hubbub-{os.getpid()}-{path.parent.name}"
    folder.mkdir()
    shutil.copy(path, folder / "b.db")
    yield folder
    folder.chmod(stat.S_IRWXU)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "match"),
    [
        (0o555, 0o666, "cannot write"),
        (0o777, 0o444, "cannot write"),
        (0o555, 0o444, "cannot write"),
        (0o777, 0o000, "permission denied"),
    ],
)
def test_a_ledger_that_is_not_ours_to_write_is_refused(reachable, folder_mode, file_mode, match):
    (reachable / "b.db").chmod(file_mode)
    reachable.chmod(folder_mode)
    assert as_nobody(lambda: refused(reachable / "b.db", match)) == [0]
    reachable.chmod(0o777)
    (reachable / "b.db").chmod(0o666)
    with opened(reachable / "b.db") as ledger:
        assert ledger.balance.remaining(SPACE) == Fraction(3, 4)


def test_no_ledger_is_created_in_a_folder_that_is_not_ours(reachable):
    reachable.chmod(0o555)
    assert as_nobody(lambda: refused(reachable / "new.db", "cannot")) == [0]
    assert os.listdir(reachable) == ["b.db"]


def test_two_ledgers_of_one_process_share_a_file(path):
    with opened(path) as one, opened(path) as two:
        charge(one, "1/4")
        charge(two, "1/4")
        assert one.balance.remaining(SPACE) == two.balance.remaining(SPACE) == Fraction(1, 4)


def test_a_ledger_opens_again_after_close_wherever_the_process_went(path, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(path.parent)
    ledger = opened(Path(path.name))
    ledger.close()
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    charge(ledger, "1/4")
    assert ledger.balance.remaining(SPACE) == Fraction(1, 2)
    ledger.close()


@pytest.mark.parametrize("name", ["b.db", "my budget\n.db", "b\\040.db"])
def test_a_file_that_is_itself_mounted_is_refused(tmp_path, monkeypatch, name):
    """As into a container: its log would be beside another name of it, and charges be lost."""
    path = tmp_path / name
    opened(path).close()
    mounts, place = tmp_path / "mountinfo", str(path)
    for letter in "\\ \n":
        place = place.replace(letter, f"\\{ord(letter):03o}")
    monkeypatch.setattr(files, "_MOUNTS", str(mounts))
    mounts.write_text(f"22 27 0:21 / {tmp_path} rw - ext4 x rw\n23 27 0:22 / {place}2 rw - ext4 x rw\n")
    opened(path).close()
    mounts.write_text(f"22 27 0:21 / /proc rw - proc proc rw\n23 27 8:1 /b.db {place} rw - ext4 x rw\n")
    link = tmp_path / "link.db"
    link.symlink_to(path)
    for way in (opened, Ledger.inspect):
        for its in (path, link):
            with pytest.raises(PolicyError, match=r"mounted here by itself.*Mount its folder instead"):
                way(its)


@pytest.mark.parametrize("length", [220, 250, 300])
def test_a_ledger_whose_name_is_too_long_to_make_it_is_refused(tmp_path, length):
    with pytest.raises(PolicyError, match=r"cannot create the ledger .*: File name too long"):
        opened(tmp_path / ("b" * length))
    with pytest.raises(PolicyError, match="there is no ledger"):
        Ledger.inspect(tmp_path / ("b" * length))
    assert os.listdir(tmp_path) == []
