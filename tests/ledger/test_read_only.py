"""A ledger that cannot be written to from here is read, whole or not at all, and nothing is charged on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.database import Database
from hubbub.ledger.store import Ledger
from ledger.helpers import SPACE, as_nobody, charge

FOLDER_AND_FILE = [(0o555, 0o666), (0o777, 0o444), (0o555, 0o444)]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that any user may enter, with a closed ledger of one charge of a quarter."""
    folder = Path("/tmp" if os.path.isdir("/tmp") else tmp_path) / f"hubbub-{os.getpid()}-{tmp_path.name}"
    folder.mkdir()
    with Ledger.open(folder / "b.db", budgets={SPACE: Budget(1)}) as ledger:
        charge(ledger, "1/4")
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


def modes(folder: Path, of_folder: int, of_files: int) -> None:
    folder.chmod(0o700)
    for file in folder.iterdir():
        file.chmod(of_files)
    folder.chmod(of_folder)


def left(folder: Path, expected: str) -> Callable[[], None]:
    def look() -> None:
        with Ledger.inspect(folder / "b.db") as ledger:
            assert ledger.balance.remaining(SPACE) == Fraction(expected)
            assert ledger.record.verify().problems == ()

    return look


def not_charged(folder: Path) -> None:
    with (
        pytest.raises(PolicyError, match="cannot write to the ledger"),
        Ledger.open(folder / "b.db", budgets={SPACE: Budget(1)}, patience=0.1) as ledger,
    ):
        charge(ledger, "1/4")


def killed(folder: Path) -> None:
    """A second charge of a quarter, left in the log alone, as a process leaves it that is killed."""
    copy = folder.with_name(f"{folder.name}-copy")
    with Ledger.open(folder / "b.db", budgets={SPACE: Budget(1)}) as ledger:
        charge(ledger, "1/4")
        shutil.copytree(folder, copy)
    shutil.rmtree(folder)
    copy.rename(folder)


@pytest.mark.parametrize(("of_folder", "of_files"), FOLDER_AND_FILE)
def test_one_who_may_not_write_reads_and_leaves_no_file(folder: Path, of_folder: int, of_files: int) -> None:
    modes(folder, of_folder, of_files)
    assert as_nobody(left(folder, "3/4")) == [0]
    assert os.listdir(folder) == ["b.db"]
    assert as_nobody(lambda: not_charged(folder)) == [0]
    modes(folder, 0o777, 0o666)
    left(folder, "3/4")()


@pytest.mark.parametrize(("of_folder", "of_files"), FOLDER_AND_FILE)
def test_what_stands_in_the_log_alone_is_read_too(folder: Path, of_folder: int, of_files: int) -> None:
    killed(folder)
    modes(folder, of_folder, of_files)
    assert as_nobody(left(folder, "1/2")) == [0]
    if of_files == 0o444:  # else log and file are there, and may be written to
        assert as_nobody(lambda: not_charged(folder)) == [0]


@pytest.mark.parametrize(("of_folder", "of_files"), [(0o555, 0o666), (0o555, 0o444)])
def test_a_log_that_cannot_be_read_is_not_left_out(folder: Path, of_folder: int, of_files: int) -> None:
    killed(folder)
    (folder / "b.db-shm").unlink()
    modes(folder, of_folder, of_files)

    def refused() -> None:
        with pytest.raises(PolicyError, match=r"recorded last stands in .*b\.db-wal, .* read the copy"):
            Ledger.inspect(folder / "b.db")

    assert as_nobody(refused) == [0]
    copy = folder / "copy"
    folder.chmod(0o700)
    copy.mkdir()
    for name in ("b.db", "b.db-wal"):
        shutil.copy(folder / name, copy / name)
    left(copy, "1/2")()


def test_an_empty_log_holds_nothing(folder: Path) -> None:
    (folder / "b.db-wal").touch()
    modes(folder, 0o555, 0o444)
    assert as_nobody(left(folder, "3/4")) == [0]


def fixed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """The ledger, read by one who may not write to it, while this test may."""
    with monkeypatch.context() as rights:
        rights.setattr(os, "access", lambda path, mode: mode != os.W_OK)
        return Ledger.inspect(folder / "b.db")


@pytest.mark.parametrize("closed", [True, False])
def test_what_others_write_meanwhile_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch, closed: bool) -> None:
    reader = fixed(folder, monkeypatch)
    assert reader.balance.remaining(SPACE) == Fraction(3, 4)
    writer = Ledger.open(folder / "b.db", budgets={SPACE: Budget(1)})
    charge(writer, "1/4")
    if closed:
        writer.close()
    with pytest.raises(PolicyError, match=r"wrote to the ledger .* while it was read"):
        reader.balance.remaining(SPACE)
    assert reader.balance.remaining(SPACE) == Fraction(1, 2)
    writer.close()


def test_a_copy_is_not_made_of_what_others_write_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = fixed(folder, monkeypatch)
    with Ledger.open(folder / "b.db", budgets={SPACE: Budget(1)}) as writer:
        charge(writer, "1/4")
    store = reader._handle.store
    assert isinstance(store, Database)
    with pytest.raises(PolicyError, match="while it was read"):
        store.backup(folder / "copy.db")
    assert os.listdir(folder) == ["b.db"]
    store.backup(folder / "copy.db")
    with Ledger.inspect(folder / "copy.db") as copy:
        assert copy.balance.remaining(SPACE) == Fraction(1, 2)


MOUNTED = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"']


@pytest.mark.parametrize("words", [["budget"], ["history"], ["ledger", "verify"], ["ledger", "export"]], ids="-".join)
def test_commands_read_a_ledger_on_a_read_only_mount(folder: Path, words: list[str]) -> None:
    if shutil.which("unshare") is None or subprocess.run([*MOUNTED, folder, "true"], capture_output=True).returncode:
        pytest.skip("only who may mount")
    asked = [sys.executable, "-P", "-m", "hubbub", *words, "--ledger", str(folder / "b.db")]
    ran = subprocess.run([*MOUNTED, folder, *asked], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran
    assert ran.stdout or ran.stderr.startswith("The ledger is sound")
    assert os.listdir(folder) == ["b.db"]
