"""What the command line's tests share: a small file of people, and ways to run a command."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = [sys.executable, "-c", "from hubbub.cli.main import main; main()"]
COUNT = "SELECT COUNT(*) AS people FROM people"
WARDS = "SELECT ward, COUNT(*) AS people, AVG(age) AS age FROM people GROUP BY ward"

POLICY = """\
[ledger]
file = "budget.db"
[budget]
epsilon = 1
[tables.people]
source = "people.csv"
unit = "person_id"
max_groups = 1
max_rows = 1
[tables.people.types]
person_id = "integer"
age = "integer"
ward = "text"
[tables.people.columns]
age = { between = [0, 120] }
ward = { one_of = ["A", "B|C"] }
"""


def write_people(folder: Path) -> None:
    """A CSV of 200 people and its policy."""
    rows = "".join(f"{i},{20 + i % 60},{'A' if i % 4 else 'B|C'}\n" for i in range(200))
    (folder / "people.csv").write_text("person_id,age,ward\n" + rows)
    (folder / "hubbub.toml").write_text(POLICY)


def shell(*arguments: str, cwd: Path, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command with pipes for all three streams."""
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**_clean(), **env},
    )


def terminal(*arguments: str, cwd: Path, answer: str = "", prompt: str = "", **env: str) -> tuple[int, str]:
    """Run the command on a terminal of 80 columns, typing `answer` once `prompt` is seen; code and screen."""
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        wanted = _clean() | {"TERM": "xterm-256color", "COLUMNS": "80"} | env
        os.environ.clear()
        os.environ.update(wanted)
        os.execv(PROGRAM[0], [*PROGRAM, *arguments])
    screen, deadline, typed = b"", time.monotonic() + 60, not answer
    while time.monotonic() < deadline:
        heard = master in select.select([master], [], [], 1.0)[0]
        if not heard and typed and answer == "\x03":
            os.write(master, b"\x03")  # the first may fall between Python's last look at signals and its read
        if heard:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux's way to say that the other end is closed
                break
            if not part:
                break
            screen += part
        if not typed and prompt.encode() in screen:
            os.write(master, answer.encode())
            typed = True
    else:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(master)
    return code, screen.decode().replace("\r\n", "\n")


def _clean() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "HUBBUB_DEBUG")}
    return kept | {"PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"}
