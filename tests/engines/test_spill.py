"""The folder of spilled rows: gone on close; where its process was killed, gone when the next engine is made."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hubbub.engines.duckdb.engine import DuckDBEngine
from hubbub.engines.duckdb.spill import Spill

HOLD = """
import sys
from hubbub.engines.duckdb.engine import DuckDBEngine
engine = DuckDBEngine()
open(engine._folder + "/rows", "w").write("somebody")
print(engine._folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def holder() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_folder_of_a_killed_process_is_swept_and_that_of_a_living_one_stays() -> None:
    (killed, dead), (living, kept) = holder(), holder()
    try:
        killed.kill()
        killed.wait()
        assert (dead / "rows").exists()
        engine = DuckDBEngine()
        assert not dead.exists()
        assert (kept / "rows").read_text() == "somebody"
        assert Path(engine._folder).is_dir()
        engine.close()
        assert not Path(engine._folder).exists()
    finally:
        living.kill()
        living.wait()


def test_only_this_user_reads_it(own_folder: Path) -> None:
    spill = Spill.made()
    folder = Path(spill.folder)
    assert folder.parent == own_folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    spill.remove()
    spill.remove()  # the descriptor may be another file's by now


def test_what_is_none_of_ours_stays(own_folder: Path) -> None:
    plain, linked = own_folder / "hubbub-mine", own_folder / "hubbub-link"
    plain.mkdir(mode=0o700)
    (plain / "work").write_text("x")
    linked.symlink_to(plain)
    opened = own_folder / "hubbub-open"
    opened.mkdir()
    opened.chmod(0o755)
    (opened / "in-use").write_text("")
    Spill.made().remove()
    assert (plain / "work").exists()
    assert linked.is_symlink()
    assert opened.exists()


def dead(folder: Path, count: int) -> list[Path]:
    """Folders that processes left which were killed, each with rows."""
    made = [folder / f"hubbub-{i:04}" for i in range(count)]
    for each in made:
        (each / "rows").mkdir(parents=True)
        each.chmod(0o700)
        (each / "in-use").write_text("")
        (each / "rows" / "a").write_text("somebody")
    return made


def test_many_folders_of_dead_processes_delay_nobody(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders, removed = dead(own_folder, 60), shutil.rmtree

    def slowly(path: str, **more: bool) -> None:
        time.sleep(0.02)
        removed(path, **more)

    monkeypatch.setattr(shutil, "rmtree", slowly)
    spill = Spill.made()
    assert sum(each.exists() for each in folders) > 30
    until = time.monotonic() + 60
    while any(each.exists() for each in folders) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(each.exists() for each in folders)
    assert Path(spill.folder).exists()
    spill.remove()


def test_few_folders_of_dead_processes_make_no_thread(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.engines.duckdb.spill._BRIEFLY", 60.0)
    folders = dead(own_folder, 60)
    before = threading.active_count()
    Spill.made().remove()
    assert threading.active_count() == before
    assert not any(each.exists() for each in folders)


def test_a_folder_that_was_removed_in_part_goes_the_next_time(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = dead(own_folder, 1)

    def killed(path: str, **_: bool) -> None:
        Path(path, "in-use").unlink(missing_ok=True)  # as it may go first
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            Spill.made()
    assert (folder / "in-use").exists()
    monkeypatch.setattr("hubbub.engines.duckdb.spill._looked", {})
    Spill.made().remove()
    assert not folder.exists()
