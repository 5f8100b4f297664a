"""Every part of an expression is read a few times at most, however deep it stands.

A rule that reads its operands, and then leaves them to another rule that reads them again, reads the innermost one
2^depth times: thirty texts joined by || took longer than anybody waits.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.tokens import Token, Tokenizer

from engines.corpus import FORMS, LEAVES, _column, _refused
from hubbub.errors import QueryError
from hubbub.sql.bind.context import printed
from hubbub.sql.bind.expression import ExpressionReader
from hubbub.sql.bind.query import TableInfo, parse
from hubbub.tables.expressions import Expression
from hubbub.tables.kinds import Kind

MOST = 4
"""How often a column that is written once may be read: CASE with a subject, or BETWEEN, stand for several readings."""
DEPTH = 6


def reads(text: str) -> float:
    """How often columns are read, for each one that is written; of what is refused, until then."""
    counted = []

    def column(node: exp.Column) -> Expression:
        counted.append(node)
        return _column(node)

    tree = sqlglot.parse_one(text, read="duckdb")
    written = len(list(tree.find_all(exp.Column)))
    with suppress(QueryError):
        ExpressionReader(text, column, _refused).read(tree)
    return len(counted) / max(1, written)


def nested(form: str, places: int, place: int, leaf: str) -> str:
    text = leaf
    for _ in range(DEPTH):
        text = form.format(*(f"({text})" if i == place else leaf for i in range(places)))
    return text


@pytest.mark.parametrize(("form", "places"), FORMS, ids=[form for form, _ in FORMS])
def test_no_part_is_read_twice_as_often_at_each_depth(form: str, places: int) -> None:
    for leaf in LEAVES:
        for place in range(places):
            assert reads(nested(form, places, place, leaf)) <= MOST, (form, place, leaf)


@pytest.mark.parametrize("sides", [("s", "s"), ("s", "i"), ("s", "NULL"), ("NULL", "s"), ("i", "i"), ("s", "d")])
def test_a_long_chain_of_texts_is_read_once(sides: tuple[str, str]) -> None:
    chain = " || ".join(sides[i % 2] for i in range(40))
    assert reads(chain) <= 1


def test_what_is_parsed_are_the_tokens_that_were_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    scanned = Tokenizer.tokenize

    def counted(self: Tokenizer, sql: str) -> list[Token]:
        texts.append(sql)
        return scanned(self, sql)

    monkeypatch.setattr(Tokenizer, "tokenize", counted)
    text = "SELECT COUNT(*) AS n FROM t; -- of all"
    parse(text, {"t": TableInfo({"id": Kind.INTEGER}, True, "id")})
    assert texts == [text]


@pytest.mark.parametrize("text", ["SELECT 1 / a AS x, COUNT(*) FILTER (WHERE b) FROM t ORDER BY 1 LIMIT 2", "FROM t"])
def test_a_tree_is_printed_alike_whether_or_not_it_is_looked_at_again(text: str) -> None:
    tree = sqlglot.parse_one(text, read="duckdb")
    kept = tree.copy()
    first = printed(tree)
    assert tree == kept
    assert printed(tree, last=True) == first == printed(kept)
