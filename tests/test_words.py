"""One word a thing: the table of `docs/reference/words.md` holds in Python, in policy files and on the command line."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import click
import pytest

import hubbub as hb
from hubbub.cli.main import COMMANDS
from hubbub.ledger.policy_schema import policy_schema
from test_wording import PAGES, ROOT, SOURCES, texts

PAGE = (ROOT / "docs/reference/words.md").read_text("utf-8")
OTHERWISE = {"EACH_ROW", "None", "between", "one_of", "purpose"}
"""In Python; what the page says of them, or a constant in Python's spelling."""


def _rows(header: str) -> list[list[str]]:
    """The cells of a table of the page, by its first words."""
    lines = PAGE[PAGE.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


THINGS = [[re.findall(r"`([^`]+)`", cell)[:1] for cell in row[1:]] for row in _rows("| thing |")]


def _parameters(function: Any) -> set[str]:
    return {name for name in inspect.signature(function).parameters if not name.startswith("_")} - {"self"}


def _in_python() -> set[str]:
    functions = (hb.table, hb.public, hb.between, hb.one_of, hb.edges, hb.text, hb.Budget, hb.Session)
    methods = (hb.Session.sql, hb.Session.synthesize, hb.Session.fit)
    return set(hb.__all__) | {"None"} | {name for f in (*functions, *methods) for name in _parameters(f)}


def _keys(schema: Any) -> Iterator[str]:
    """The keys that a policy file may have, wherever they stand."""
    match schema:
        case dict():
            yield from schema.get("properties", {})
            for part in schema.values():
                yield from _keys(part)
        case list():
            for part in schema:
                yield from _keys(part)


def _options(command: click.Command) -> Iterator[str]:
    for option in command.params:
        yield from (*option.opts, *option.secondary_opts)
    if isinstance(command, click.Group):
        for part in command.commands.values():
            yield from _options(part)


def _command(name: str) -> click.Command:
    module = importlib.import_module(COMMANDS[name][0])
    command = getattr(module, name, None) or module.command
    assert isinstance(command, click.Command)
    return command


def test_every_word_of_the_table_is_one_of_its_face() -> None:
    options = {option for name in COMMANDS for option in _options(_command(name))}
    for face, known in enumerate((_in_python(), set(_keys(policy_schema())), options)):
        assert {word for row in THINGS for word in row[face]} - known == set()
    assert len(THINGS) > 20


def test_a_thing_has_one_word_on_all_faces() -> None:
    for python, policy, option in THINGS:
        words = {*python, *policy, *(word.removeprefix("--").replace("-", "_") for word in option)}
        assert len(words) == 1 or python[0] in OTHERWISE, words


def test_what_declares_a_table_in_python_is_a_key_of_the_policy_file() -> None:
    keys = set(_keys(policy_schema()))
    for function in (hb.table, hb.public, hb.between, hb.one_of, hb.edges, hb.text):
        assert _parameters(function) - {"low", "high", "values", "ends"} <= keys, function


def test_the_options_of_a_question_are_the_arguments_of_sql() -> None:
    options = {o.removeprefix("--").replace("-", "_") for o in _options(_command("query")) if o.startswith("--")}
    only_in_python = {"assume_rows", "idempotency_key", "params", "sql", "weights"}  # --param N=V, --weight N=V
    only_here = {"param", "file", "format", "level", "output", "plot", "policy", "reliable", "yes"}
    assert _parameters(hb.Session.sql) - options - only_in_python == set()
    assert options - _parameters(hb.Session.sql) - only_here - {"purpose", "ledger"} == set()


SENTENCES = [
    (wrong.strip(), right.split(" (")[0]) for right, others in _rows("| write |") for wrong in others.split(",")
]


@cache
def _said() -> list[tuple[str, str]]:
    """Every page and every sentence of the code, with its place."""
    pages = (p for p in PAGES if p.name not in ("words.md", "CHANGELOG.md"))
    said = [(str(page.relative_to(ROOT)), _prose(page.read_text("utf-8"))) for page in pages]
    said += [(f"{p.relative_to(ROOT)}:{n}", t) for p in SOURCES for n, t in texts(p.read_text("utf-8")) if _is_read(t)]
    return said


@pytest.mark.parametrize(("wrong", "right"), SENTENCES, ids=[wrong for wrong, _ in SENTENCES])
def test_no_page_and_no_text_has_another_word(wrong: str, right: str) -> None:
    word = re.compile(rf"\b{wrong}s?\b", re.IGNORECASE)
    assert [where for where, text in _said() if word.search(text)] == [], f"write {right!r}"


def _is_read(text: str) -> bool:
    """Whether a text of the code is a sentence, and no SQL of the ledger's."""
    return " " in text and not re.search(r"\b(SELECT|INSERT|UPDATE|CREATE|WHERE|FROM|AND|ON)\b", text)


def _prose(page: str) -> str:
    """A page without its code and addresses."""
    return re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|https?://\S+", " ", page, flags=re.DOTALL)
