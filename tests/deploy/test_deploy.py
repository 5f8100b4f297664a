"""What stands in `deploy/`: the script runs, the image's lines are its steps, the units are well-formed."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
SCRIPT = DEPLOY / "install.sh"
UNITS = sorted((DEPLOY / "systemd").iterdir())


def call(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(SCRIPT), *arguments], capture_output=True, text=True, check=False, env={**os.environ, **env}
    )


def test_every_run_line_of_the_image_is_a_step_of_the_script():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    runs = [line.removeprefix("RUN ") for line in lines if line.startswith("RUN ")]
    assert [run.split()[:2] for run in runs] == [["hubbub-install", step] for step in ("users", "program", "folders")]
    assert "COPY deploy/install.sh /usr/local/bin/hubbub-install" in lines
    copied = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert all((DEPLOY.parent / name).exists() for name in copied)


def test_without_a_step_the_script_says_which_there_are():
    done = call()
    assert done.returncode == 2
    assert all(step in done.stderr for step in ("users", "program", "folders"))
    assert call("program").returncode != 0


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("useradd") is None, reason="only root makes users")
def test_the_users_and_folders_are_made_once(tmp_path):
    (tmp_path / "etc").mkdir()
    for name in ("passwd", "group", "shadow", "gshadow", "login.defs"):
        if (Path("/etc") / name).exists():
            shutil.copy(f"/etc/{name}", tmp_path / "etc" / name)
    for _ in range(2):
        done = call("users", ROOT=str(tmp_path))
        assert done.returncode == 0, done.stderr
    made = [line for line in (tmp_path / "etc" / "passwd").read_text().splitlines() if line.startswith("hubbub-")]
    assert [line.split(":")[0] for line in made] == ["hubbub-rows", "hubbub-front"]
    assert len({line.split(":")[3] for line in made}) == 1  # one group
    assert all(line.endswith(":/nonexistent:/usr/sbin/nologin") for line in made)
    (tmp_path / "var" / "lib").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    owner, group = made[0].split(":")[2:4]
    for _ in range(2):
        done = call("folders", ROOT=str(tmp_path))
        assert done.returncode == 0, done.stderr
        for place, mode in (("var/lib/hubbub", 0o700), ("run/hubbub", 0o2750)):
            facts = (tmp_path / place).stat()
            assert (stat.S_IMODE(facts.st_mode), facts.st_uid, facts.st_gid) == (mode, int(owner), int(group))


def test_there_are_no_folders_without_their_user(tmp_path):
    (tmp_path / "etc").mkdir()
    for name in ("passwd", "group"):
        (tmp_path / "etc" / name).write_text("root:x:0:0::/root:/bin/sh\n")
    done = call("folders", ROOT=str(tmp_path))
    assert (done.returncode, "run the step users first" in done.stderr) == (1, True)
    assert not (tmp_path / "var").exists()


def test_the_program_is_installed_from_a_wheel_and_started(tmp_path):
    """With a stand-in of the same name: what is tested are the script's lines, without a network."""
    wheel = tmp_path / "hubbub-9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("hubbub_stand_in.py", "def main():\n    print('hubbub 9')\n")
        file.writestr("hubbub-9.dist-info/METADATA", "Metadata-Version: 2.1\nName: hubbub\nVersion: 9\n")
        file.writestr("hubbub-9.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("hubbub-9.dist-info/entry_points.txt", "[console_scripts]\nhubbub = hubbub_stand_in:main\n")
        file.writestr("hubbub-9.dist-info/RECORD", "")
    done = call("program", str(wheel), PREFIX=str(tmp_path / "opt"), PIP="--no-index --quiet")
    if "ensurepip" in done.stdout + done.stderr:
        pytest.skip("this Python makes no virtual environments")
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["hubbub 9"]), done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_the_units_are_what_systemd_understands(tmp_path):
    """With the program in a place of the test's, and its users: those of the machine that the test runs on."""
    program = tmp_path / "hubbub"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    for unit in UNITS:
        text = unit.read_text().replace("/opt/hubbub/bin/hubbub", str(program))
        (tmp_path / unit.name).write_text(re.sub(r"^(User|Group)=.*$", r"\1=daemon", text, flags=re.M))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / unit.name) for unit in UNITS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    ours = [line for line in done.stderr.splitlines() if "hubbub" in line]
    if done.returncode and not ours:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr[:200]}")
    assert ours == []
    broken = tmp_path / UNITS[0].name
    broken.write_text(broken.read_text().replace("[Service]", "[Service]\nTypo=yes"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(broken)], capture_output=True, text=True, check=False, timeout=60
    )
    assert "Typo" in done.stderr  # a mistake would be found


def test_the_two_parts_are_two_users_and_the_front_has_nothing():
    rows, front = ((DEPLOY / "systemd" / f"hubbub-{part}.service").read_text() for part in ("rows", "front"))
    assert ("User=hubbub-rows" in rows, "User=hubbub-front" in front) == (True, True)
    assert "InaccessiblePaths=-/var/lib/hubbub" in front
    assert "StateDirectoryMode=0700" in rows
    assert "--policy" not in front


def test_python_of_the_image_is_one_that_hubbub_supports():
    (version,) = re.findall(r"^FROM python:3\.(\d+)", (DEPLOY / "Dockerfile").read_text(), flags=re.M)
    assert int(version) >= 11
    assert sys.version_info >= (3, 11)
