"""docs/sources.toml lists every statement of the sources; each function, test and page that it names is there.

The page docs/sources.md is written from it: `HUBBUB_GOLDEN=write` writes it anew.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCES: dict[str, dict[str, Any]] = tomllib.loads((DOCS / "sources.toml").read_text("utf-8"))
STATEMENTS = [(name, i, s) for name, source in SOURCES.items() for i, s in enumerate(source["statements"])]
KEYS = {"says", "id", "by", "shown", "page", "slip", "remark", "open"}
WAITING: dict[int, set[str]] = {}


def found(name: str) -> object:
    """What a dotted name below hubbub is: a name of a module, or of a class in one."""
    *path, last = name.split(".")
    thing: Any = importlib.import_module("hubbub")
    for i, part in enumerate(path):
        try:
            thing = importlib.import_module(".".join(["hubbub", *path[: i + 1]]))
        except ModuleNotFoundError:
            thing = getattr(thing, part)
    return getattr(thing, last)


@functools.cache
def names_of_tests() -> frozenset[str]:
    texts = (p.read_text("utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(name for text in texts for name in re.findall(r"(?m)^(?:async )?def (test_\w+)\(", text))


@pytest.mark.parametrize(("source", "place", "statement"), STATEMENTS, ids=lambda v: None if isinstance(v, dict) else v)
def test_what_a_statement_names_is_there(source: str, place: int, statement: dict[str, Any]) -> None:
    assert set(statement) <= KEYS
    if "open" in statement:
        assert statement["id"] in WAITING[statement["open"]]
        return
    page = (DOCS / f"{statement['page']}.md").read_text("utf-8")
    if statement.get("remark"):
        return
    assert statement["by"]
    assert statement["shown"]
    assert [name for name in statement["by"] if found(name) is None] == []
    assert set(statement["shown"]) <= names_of_tests()
    ends = [name.split(".")[-1] for name in statement["by"]]
    assert any(re.search(rf"\b{end}\b", page) for end in ends), "the page names none of `by`"
    assert f"| {statement['id']} |" in (DOCS / "theorems.md").read_text("utf-8")


def test_all_five_sources_are_listed_whole() -> None:
    assert {name: len(source["statements"]) for name, source in SOURCES.items()} == {
        "laplace-noise-mechanism": 13,
        "notes-20-differential-privacy": 15,
        "thesis-2-1-6-differential-privacy": 34,
        "privacy-in-ai": 56,
        "data-privacy-and-security-chapter-5": 97,
    }
    for source in SOURCES.values():
        said = [s["says"] for s in source["statements"]]
        assert len(set(said)) == len(said)


def test_every_test_that_the_theorems_name_is_there_and_every_id_has_a_row() -> None:
    text = (DOCS / "theorems.md").read_text("utf-8")
    assert set(re.findall(r"`(test_\w+)`", text)) - names_of_tests() == set()
    rows = set(re.findall(r"(?m)^\| ([A-Z]\d+) \|", text))
    stated = {s["id"] for _, _, s in STATEMENTS if "id" in s}
    assert stated - rows == {i for waiting in WAITING.values() for i in waiting} - rows


def page() -> str:
    """docs/sources.md."""
    lines = [
        "# What the sources state",
        "",
        "hubbub came from five documents. Every statement of theirs is listed here in their order, with the",
        "functions that compute it, and the page that explains it; {doc}`theorems` has the tests. Where a source errs,",
        "the line says what holds.",
    ]
    for source in SOURCES.values():
        lines += ["", f"## {source['title']}", "", "| statement | id | function | page |", "|---|---|---|---|"]
        for s in source["statements"]:
            says = s["says"] + (f" **Errs**: {s['slip']}." if "slip" in s else "")
            by = ", ".join(f"`{name}`" for name in s.get("by", ())) or "-"
            if "open" in s:
                by, where = "to come", "-"
            else:
                where = f"{{doc}}`/{s['page']}`"
            says = says.replace("|", "\\|")
            lines.append(f"| {says} | {s.get('id', '-')} | {by} | {where} |")
    return "\n".join(lines) + "\n"


def test_the_page_says_what_the_list_says() -> None:
    file = DOCS / "sources.md"
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        file.write_text(page(), "utf-8")
    assert file.read_text("utf-8") == page()
