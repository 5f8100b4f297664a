"""A Postgres server of our own, for the tests that hold every store to one contract."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_NUMBERS = itertools.count()


def _binaries() -> Path | None:
    """Where the server's programs are: beside `initdb`, or in Debian's own folder, the newest version."""
    found = shutil.which("initdb")
    beside = [Path(found).parent] if found else []
    candidates = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *beside]
    return next((folder for folder in candidates if os.access(folder / "postgres", os.X_OK)), None)


def _memory() -> str | None:
    """A file system in memory with a gigabyte to spare: servers come and go there at once."""
    memory = "/dev/shm"
    roomy = os.path.isdir(memory) and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    return memory if roomy else None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The folder of the socket of a server that these tests started, as an unprivileged user; gone afterwards."""
    pytest.importorskip("psycopg", reason="the Postgres store needs the extra `postgres`")
    binaries = _binaries()
    if binaries is None:
        pytest.skip("no Postgres server is installed")
    folder = Path(tempfile.mkdtemp(prefix="hubbub-pg-", dir=_memory()))
    user: dict[str, object] = {}
    if os.getuid() == 0:  # the server refuses to run as root
        user = {"user": 65534, "group": 65534, "extra_groups": []}
        os.chown(folder, 65534, 65534)

    def call(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [binaries / program, *arguments], cwd=folder, capture_output=True, text=True, check=False, **user
        )
        if done.returncode != 0:
            pytest.skip(f"{program} does not run here: {done.stderr.strip().splitlines()[-1:]}")

    data, options = str(folder / "data"), f"-c listen_addresses='' -c unix_socket_directories='{folder}'"
    call("initdb", "-D", data, "-U", "hubbub", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
    call("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    yield str(folder)
    subprocess.run([binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop"], cwd=folder, check=False,
                   capture_output=True, **user)  # fmt: skip
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(postgres_server: str) -> Iterator[Callable[[], str]]:
    """Make an empty database; its address. It goes with the test."""
    import psycopg

    made: list[str] = []

    def run(statement: str) -> None:
        with psycopg.connect(f"postgresql://hubbub@/postgres?host={postgres_server}", autocommit=True) as connection:
            connection.execute(statement.encode())

    def make() -> str:
        name = f"ledger{next(_NUMBERS)}"
        run(f"CREATE DATABASE {name}")
        made.append(name)
        return f"postgresql://hubbub@/{name}?host={postgres_server}"

    yield make
    for name in made:
        run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path) -> str:
    """Where a ledger may be that several processes share: a file, or a database."""
    if request.param == "sqlite":
        return str(tmp_path / "b.db")
    return request.getfixturevalue("database")()
