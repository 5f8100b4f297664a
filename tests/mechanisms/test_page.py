"""The lines of docs/theorems.md name functions and tests that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "theorems.md").read_text("utf-8")
SECTIONS = ("Queries", "Mechanisms", "Incentives")
IDS = {*(f"Q{i}" for i in range(1, 8)), *(f"M{i}" for i in range(1, 12)), "M14", "M15", "G1"}


def lines() -> list[list[str]]:
    found = [TEXT.split(f"\n## {name}\n")[1].split("\n## ")[0] for name in SECTIONS]
    rows = [[c.strip() for c in row.strip("|").split("|")] for row in "\n".join(found).splitlines() if row[:1] == "|"]
    return [row for row in rows if row[0] not in ("id", "---")]


def test_every_id_has_a_line() -> None:
    assert {row[0] for row in lines()} >= IDS


@pytest.mark.parametrize("row", lines(), ids=lambda r: f"{r[0]}-{r[1][:20]}")
def test_the_functions_and_tests_of_a_line_exist(row: list[str]) -> None:
    _, _, functions, tests = row
    sources = "\n".join(p.read_text("utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", tests)
    assert named
    for name in named:
        assert f"def {name}(" in sources, name
    room = None
    for name in re.findall(r"`([\w.]+)[^`]*`", functions):
        first, _, rest = name.rpartition(".")
        if first in ("queries", "mechanisms", "learning", "games"):
            room = importlib.import_module(f"hubbub.{first}")
            assert hasattr(room, rest), name


@pytest.mark.parametrize("room", ["mechanisms", "queries", "learning", "games"])
def test_every_public_name_is_in_the_reference(room: str) -> None:
    pages = "".join(
        (ROOT / "docs" / "reference" / f"{page}.md").read_text("utf-8") for page in ("mechanisms", "queries", "games")
    )
    for name in importlib.import_module(f"hubbub.{room}").__all__:
        assert re.search(rf"\b{name}\b", pages), name
