"""`hubbub doctor`: what is installed, and whether policy, ledger and engines are well."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hubbub import __version__
from hubbub.addresses import names_a_table
from hubbub.cli.console import printable
from hubbub.cli.options import open_ledger, policy_option
from hubbub.errors import HubbubError, how_to_install

if TYPE_CHECKING:
    from hubbub.ledger.policy import TablePolicy

__all__ = ["command"]

_NEEDED = ("numpy", "scipy", "cryptography", "duckdb", "pyarrow", "sqlglot", "click", "rich")
_EXTRA = {
    "psycopg": "postgres",
    "pyspark": "spark",
    "matplotlib": "plot",
    "pycryptodome": "collect",
    "statsmodels": "demo",
    "authlib": "oidc",
    "jinja2": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
}


@click.command("doctor")
@policy_option
def command(policy: Path | None) -> int:
    """What is installed, and whether policy, ledger and engines are well. Exit code 3 where something is not."""
    ill = 0
    for well, line in (*_installed(), _engine(), _outer(), _walls(), *_house(policy)):
        ill += well is False
        click.echo(printable(f"{'ok  ' if well else 'FAIL' if well is False else '-   '} {line}"))
    return 3 if ill else 0


def _installed() -> Iterator[tuple[bool | None, str]]:
    yield True, f"hubbub {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    for name in _NEEDED:
        try:
            yield True, f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            yield False, f"{name} is not installed. {how_to_install()}"
    for name, extra in _EXTRA.items():
        try:
            yield True, f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            yield None, f"{name} is not installed. {how_to_install(extra, needed=False)}"
            continue
        if name == "pyspark":
            yield _java(importlib.metadata.version(name))


def _java(spark: str) -> tuple[bool | None, str]:
    """Whether the Java that Spark starts is there, and new enough. All but Spark works without it."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    least = 17 if int(spark.partition(".")[0]) >= 4 else 8  # Spark 4's release notes; Spark 3's documentation
    lack = f"pyspark {spark} needs Java {least} or newer: install one, or set JAVA_HOME"
    if java is None:
        return None, f"no Java was found; {lack}"
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=20).stderr
    except (OSError, subprocess.SubprocessError):
        return None, f"{java} does not run; {lack}"
    version = re.search(r'version "(?:1\.)?(\d+)', said)  # 8 calls itself 1.8
    if version is None or int(version[1]) < least:
        return None, f"{java} is {f'Java {version[1]}' if version else 'of an unknown version'}; {lack}"
    return True, f"Java {version[1]}, for pyspark: {java}"


def _engine() -> tuple[bool, str]:
    import duckdb

    try:
        row = duckdb.connect().execute("SELECT 41 + 1").fetchone()
    except duckdb.Error as error:
        return False, f"DuckDB does not answer: {type(error).__name__}"
    return row == (42,), "DuckDB answers"


def _outer() -> tuple[bool | None, str]:
    """Where SQL over releases runs."""
    from hubbub.engines.outer_process import why_inside

    why = why_inside()
    if why is None:
        return True, "SQL over releases runs in a process of its own"
    return None, f"SQL over releases runs inside the program that asks: {why}. A giant value in it can end that program"


def _walls() -> tuple[bool | None, str]:
    """What holds of a runner of the service: of a process that shuts itself in as one does."""
    from hubbub.cli.serve import shut_in

    act = "import json; from hubbub.confine import confine; print(json.dumps(vars(confine(read=[]))))"
    try:
        tried = subprocess.run(
            [sys.executable, "-P", "-c", act], capture_output=True, text=True, check=True, timeout=60
        )
        held = json.loads(tried.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None, "runners of the service: what shuts them in could not be tried"
    whole = held["landlock"] and held["undumpable"] and held["no_new_privs"] and not held["network"]
    return (True, shut_in(held)) if whole else (None, f"{shut_in(held)}. hubbub serve wants Linux 6.7 or newer")


def _open_files(ledger: Path, anchor: Path | None) -> Iterator[tuple[bool | None, str]]:
    """A warning where others on this machine can read what a ledger holds."""
    from hubbub.ledger.files import open_to_others

    files = open_to_others(ledger, anchor)
    if files:
        names = " ".join(shlex.quote(str(file)) for file in files)
        yield None, f"other users of this machine can read every analyst's questions and answers: chmod o= {names}"


def _readable_rows(source: Path) -> list[Path]:
    """The files of a private table that users outside their owner's group may read."""
    files = [file for file in source.rglob("*") if file.is_file()] if source.is_dir() else [source]
    return [file for file in files if file.exists() and file.stat().st_mode & 0o004]


def _reached(table: TablePolicy) -> tuple[bool | None, str]:
    from hubbub.session.open import reach

    try:
        reach(table)
    except HubbubError as error:
        return False, str(error)
    where = f"the source of {table.name!r}, {table.source}"
    # To look for a table there, a Spark would have to be started.
    return (None, f"{where}, was not looked for") if names_a_table(str(table.source)) else (True, f"{where}, is there")


def _house(policy: Path | None) -> Iterator[tuple[bool | None, str]]:
    from hubbub.ledger.policy import find_policy, load_policy

    try:
        policy_file = load_policy(policy or find_policy())
    except HubbubError as error:
        yield None if policy is None and "no hubbub.toml" in str(error) else False, str(error)
        return
    yield True, f"the policy {policy_file.path} is well formed"
    for name, source in policy_file.files():
        there = source.exists()
        yield there, f"the source of {name!r}, {source}, is {'there' if there else 'missing'}"
        if name in policy_file.tables and (files := _readable_rows(source)):
            names = " ".join(shlex.quote(str(file)) for file in files[:3])
            yield None, f"other users of this machine can read the rows of {name!r}: chmod o= {names}"
    for table in policy_file.remote():
        yield _reached(table)
    try:
        with open_ledger(policy_file.path, None) as book:
            damage, verification = book.record.integrity(), book.record.verify()
            yield damage == "ok", f"the ledger {book.where} is {'whole' if damage == 'ok' else damage}"
            problems = "; ".join(verification.problems)
            yield verification.sound, problems or f"its chain of {verification.rows} rows is sound"
            for line in verification.notes:
                yield None, line
            for block in book.record.open_blocks():
                yield (
                    None,
                    (
                        f"block {block.id} of {block.analyst} holds budget since {block.time[:19]}; if its program is "
                        f"gone: hubbub ledger close {block.id}"
                    ),
                )
        if book.path is not None:  # closed: what it opened beside itself is gone
            yield from _open_files(book.path, policy_file.anchor)
    except HubbubError as error:
        yield False, str(error)
