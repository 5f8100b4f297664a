"""What may not change while code is moved: every question's tree, texts, integers, answer and receipt, as recorded.

`HUBBUB_GOLDEN=write` writes the recordings anew; read the difference before committing it. A question of the grammar
stands in its file alone; one of the golden list also in `queries.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from golden.queries import GOLDEN
from golden.recorded import World, people
from golden.shop import tables as shop_tables

FOLDER = Path(__file__).parent / "recorded"
MARK = "\n== with rows ==\n"
"""What stands between the parts that no row is needed for and those that are made of rows."""
WRITES = os.environ.get("HUBBUB_GOLDEN") == "write"


def _shop() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for family, questions in GOLDEN.items():
        for i, entry in enumerate(questions, 1):
            sql, more = (entry, {}) if isinstance(entry, str) else entry
            yield f"{re.sub('[^a-z]+', '-', family.lower()).strip('-')}-{i:02}", sql, more


def _asked() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for file in sorted(FOLDER.glob("grammar-*.txt")):
        yield file.stem, file.read_text("utf-8").split("\n", 2)[1], {}


SHOP, ASKED = list(_shop()), list(_asked())


@pytest.fixture(scope="module")
def shop() -> Iterator[World]:
    world = World(shop_tables())
    yield world
    world.close()


@pytest.fixture(scope="module")
def grammar() -> Iterator[World]:
    world = World(people())
    yield world
    world.close()


def hold(name: str, parts: Iterable[tuple[str, str]], *, answered: bool) -> None:
    """The recording of one kind of part is what was recorded."""
    file = FOLDER / f"{name}.txt"
    found = "\n".join(f"-- {title}\n{text.rstrip()}\n" for title, text in parts)
    before, _, after = (file.read_bytes().decode() if file.exists() else "").partition(MARK)
    if WRITES:
        file.write_bytes((f"{before}{MARK}{found}" if answered else f"{found}{MARK}{after}").encode())
    else:
        assert found == (after if answered else before), f"{file.name} has changed"


def test_the_recordings_are_those_of_the_questions() -> None:
    names = [name for name, *_ in SHOP + ASKED]
    assert len(set(names)) == len(names) >= 300
    assert {file.stem for file in FOLDER.iterdir()} == set(names)
    texts = (file.read_text("utf-8") for file in FOLDER.iterdir())
    assert sum(len(re.findall(r"(?m)^-- (?:duckdb|postgres|spark)\b", text)) for text in texts) >= 900


@pytest.mark.parametrize(("name", "sql", "more"), SHOP, ids=[name for name, *_ in SHOP])
def test_trees_and_texts_of_the_shop(shop: World, name: str, sql: str, more: dict[str, Any]) -> None:
    hold(name, shop.read(sql, more), answered=False)


@pytest.mark.parametrize(("name", "sql", "more"), ASKED, ids=[name for name, *_ in ASKED])
def test_trees_and_texts_of_the_grammar(grammar: World, name: str, sql: str, more: dict[str, Any]) -> None:
    hold(name, grammar.read(sql, more), answered=False)


def _some(questions: list[Any]) -> list[Any]:
    """One in eight in every run, all of them in the soak."""
    return [
        pytest.param(*q, marks=() if WRITES or i % 8 == 0 else pytest.mark.soak, id=q[0])
        for i, q in enumerate(questions)
    ]


@pytest.mark.parametrize(("name", "sql", "more"), _some(SHOP))
def test_answers_of_the_shop(shop: World, name: str, sql: str, more: dict[str, Any]) -> None:
    hold(name, shop.answered(sql, more), answered=True)


@pytest.mark.parametrize(("name", "sql", "more"), _some(ASKED))
def test_answers_of_the_grammar(grammar: World, name: str, sql: str, more: dict[str, Any]) -> None:
    hold(name, grammar.answered(sql, more), answered=True)
