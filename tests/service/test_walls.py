"""The wall, from outside: another user of the system, in another network namespace, with only a token.

He asks through `hubbub.connect` and gets his answer; he reaches neither the rows, nor the ledger, its key or the
people, nor another's question, nor the socket of the clerk. It needs root, `ip` and `setpriv`; elsewhere it says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the service needs the extra `serve`")

import hubbub as hb
from hubbub.service.serve import Service
from service.helpers import COUNT, answer_time, token_of
from service.test_processes import Client, free_port, slow

ROOT = Path(__file__).parents[2]
NEEDED = ("ip", "setpriv")
NOBODY = 65534

OUTSIDE = """
import json, os, socket, sys
told = {"uid": os.getuid()}
url, token, other, folder, here, clerk = sys.argv[1:]
def tried(act):
    try:
        act()
        return "done"
    except Exception as error:
        return type(error).__name__
for name in os.listdir(folder) if os.access(folder, os.R_OK) else ("d.parquet", "l.db", "l.db.key", "service.db"):
    told[name] = tried(lambda: open(os.path.join(folder, name), "rb").read(1))
told["folder"] = tried(lambda: os.listdir(folder))
line = socket.socket(socket.AF_UNIX)
told["clerk"] = tried(lambda: line.connect(clerk))
told["loopback"] = tried(lambda: socket.create_connection(("127.0.0.1", int(here)), timeout=3))
import hubbub as hb
with hb.connect(url, token=token) as session:
    answer = session.sql("SELECT COUNT(*) AS n FROM v WHERE x < 7", epsilon="0.5")
    told["answer"] = answer.columns
    told["other"] = tried(lambda: session.answer(other))
    told["people"] = tried(lambda: session.wire.get("/people"))
    told["history"] = [entry.sql for entry in session.history()]
print(json.dumps(told))
"""


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True, timeout=60)


@pytest.fixture
def place():
    """A network namespace with one cable to this one; the name, and the address here."""
    if os.getuid() != 0 or not all(map(shutil.which, NEEDED)):
        pytest.skip("needs root, and " + ", ".join(NEEDED))
    name = f"hubbub{os.getpid() % 10000}"
    try:
        run("ip", "netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespace can be made here: {error.stderr.strip()[:100]}")
    try:
        run("ip", "link", "add", f"{name}a", "type", "veth", "peer", "name", f"{name}b", "netns", name)
        run("ip", "addr", "add", "10.213.7.1/30", "dev", f"{name}a")
        run("ip", "link", "set", f"{name}a", "up")
        run("ip", "-n", name, "addr", "add", "10.213.7.2/30", "dev", f"{name}b")
        run("ip", "-n", name, "link", "set", f"{name}b", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        yield name, "10.213.7.1"
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no cable can be laid here: {error.stderr.strip()[:100]}")
    finally:
        run("ip", "netns", "delete", name, check=False)
        run("ip", "link", "delete", f"{name}a", check=False)


BOUND = """
python=$1 site=$2 src=$3 at=$4; shift 4
mount --make-rprivate / && mount --bind "$python" "$at/python" && mount --bind "$site" "$at/site"
mount --bind "$src" "$at/src" && exec "$@"
"""  # the interpreter and its packages, where another user may read them; seen by this one process alone


def bound(elsewhere):
    """Where the interpreter, its packages and hubbub are, and where they are shown."""
    for each in ("python", "site", "src"):
        (elsewhere / each).mkdir()
    site = next(path for path in sys.path if path.endswith("site-packages"))
    return sys.base_prefix, site, str(ROOT / "src"), str(elsewhere)


@pytest.fixture
def elsewhere():
    """A folder that another user may read."""
    made = Path(tempfile.mkdtemp(prefix="hubbub-elsewhere-"))
    made.chmod(0o755)
    yield made
    for each in ("python", "site", "src"):
        (made / each).rmdir()
    made.rmdir()


def test_another_user_elsewhere_asks_and_reaches_nothing_else(place, elsewhere, tmp_path):
    name, address = place
    folder, port = tmp_path / "rows", free_port()
    folder.mkdir(mode=0o700)
    file = slow(folder, answer_time(30.0))
    token = token_of(file, "eve")
    with hb.Session.from_policy(file, analyst="ada") as session:
        other = session.sql(COUNT, epsilon="0.5").charge_id
    # Its TLS stands before it on that cable in life; here the address is given to it without.
    made = Service(file, host=address, port=port, say=lambda _: None)
    made.start()
    try:
        client = Client(port, token)
        client._at = f"http://{address}:{port}"
        client.ready()
        outside = run(
            "ip", "netns", "exec", name, "sh", "-c", BOUND, "sh", *bound(elsewhere),
            "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
            "env", "-i", f"PYTHONPATH={elsewhere}/src:{elsewhere}/site", f"PYTHONHOME={elsewhere}/python",
            f"LD_LIBRARY_PATH={elsewhere}/python/lib",
            "HOME=/nonexistent", "PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1",
            f"{elsewhere}/python/bin/{Path(sys.executable).resolve().name}", "-c", OUTSIDE,
            f"http://{address}:{port}", token, other, str(folder), str(port), made._clerk_told["socket"], check=False,
        )  # fmt: skip
        assert outside.returncode == 0, outside.stderr[-2000:]
        told = json.loads(outside.stdout)
    finally:
        made.stop()
    assert told.pop("uid") == NOBODY
    assert told.pop("answer") == ["n"]
    assert told.pop("history") == ["SELECT COUNT(*) AS n FROM v WHERE x < 7"]
    assert told.pop("loopback") == "ConnectionRefusedError"
    assert (told.pop("other"), told.pop("people")) == ("PolicyError", "PolicyError")
    assert set(told.values()) <= {"PermissionError", "FileNotFoundError"}, told
    assert told["folder"] == told["clerk"] == "PermissionError"
