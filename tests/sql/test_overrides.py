"""A dialect says of each method whether it is its own: `@override`, or else it is inherited on purpose.

The base has a body for what is the same in every dialect (its section of that name) and is abstract for all else, so
that a forgotten method is an error and never another engine's text.
"""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest

from hubbub.engines.duckdb.dialect import DuckDB
from hubbub.engines.postgres.dialect import Postgres
from hubbub.engines.spark.dialect import Spark
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.text.read import AsWritten

IN_EVERY_DIALECT = {
    "constant", "typed", "constant_as", "real", "in_years", "key", "cut", "unit_text", "operand", "column", "null",
    "between", "stored_between",
}  # fmt: skip
DIALECTS = [DuckDB, Postgres, Spark, AsWritten]


def _methods(dialect: type) -> dict[str, bool]:
    """The methods that a class defines, and whether `@override` stands at each."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(dialect))).body
    assert isinstance(tree, ast.ClassDef)
    return {
        node.name: any(ast.unparse(decorator) == "override" for decorator in node.decorator_list)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name != "__init__"
    }


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_takes_the_place_of_another_method_says_so(dialect: type) -> None:
    above = {name for base in dialect.__mro__[1:] for name in dir(base)}
    assert {name for name, said in _methods(dialect).items() if said is not (name in above)} == set()


def test_what_an_engine_inherits_is_the_same_in_every_dialect_or_abstract() -> None:
    written_once = set(_methods(Dialect)) - Dialect.__abstractmethods__
    assert written_once == IN_EVERY_DIALECT
    assert len(Dialect.__abstractmethods__) >= 45


@pytest.mark.parametrize("dialect", [DuckDB, Postgres, Spark])
def test_an_engines_dialect_inherits_from_no_other_engines(dialect: type) -> None:
    assert dialect.__bases__ == (Dialect,)
