"""`hubbub policy check` looks at all tables of a policy together, ledger or not, as opening it does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hubbub.cli.main import run

POLICY = """\
[ledger]
file = "budget.db"
[budget]
epsilon = 1
"""
TABLE = """\
[tables.{name}]
source = "{source}"
unit = "id"
max_total = 1
types = {{ id = "integer" }}
{more}
"""


def checked(folder: Path, capsys: Any, *tables: tuple[str, str, str]) -> tuple[int, str]:
    texts = [TABLE.format(name=name, source=source, more=more) for name, source, more in tables]
    (folder / "hubbub.toml").write_text(POLICY + "".join(texts))
    code = run(("policy", "check", "--policy", str(folder / "hubbub.toml")))
    return code, capsys.readouterr().err


@pytest.mark.parametrize("second", ["people.csv", "./people.csv", "linked.csv", "symbolic.csv"])
def test_one_source_under_two_unit_spaces_is_refused_before_there_is_a_ledger(
    tmp_path: Path, capsys: Any, second: str
) -> None:
    (tmp_path / "people.csv").write_text("id\n1\n2\n")
    os.link(tmp_path / "people.csv", tmp_path / "linked.csv")
    os.symlink(tmp_path / "people.csv", tmp_path / "symbolic.csv")
    one = ("a", "people.csv", "")
    assert checked(tmp_path, capsys, one, ("b", second, ""))[0] == 0
    code, said = checked(tmp_path, capsys, one, ("b", second, 'unit_space = "others"'))
    assert code != 0
    assert "stands in two unit spaces" in " ".join(said.split())
    assert not (tmp_path / "budget.db").exists()


def test_two_neighbour_relations_in_one_unit_space_are_refused_too(tmp_path: Path, capsys: Any) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("id\n1\n")
    code, said = checked(tmp_path, capsys, ("a", "a.csv", ""), ("b", "b.csv", 'neighbours = "replace"'))
    assert code != 0
    assert "One budget needs one relation" in " ".join(said.split())
