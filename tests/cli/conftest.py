from __future__ import annotations

import pytest

from cli.helpers import write_people
from hubbub.cli.main import run


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A folder with people.csv and hubbub.toml, where the test stands; no ledger yet."""
    write_people(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(people, capsys):
    """Run a command in this process: its code, stdout and stderr. The ledger is there."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    assert call("ledger", "create")[0] == 0
    return call
