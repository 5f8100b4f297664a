"""Which columns of an answer follow from noisy numbers, and which are exact."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp

__all__ = ["noisy_outputs"]

_AGGREGATE = re.compile(r"a\d+")


def noisy_outputs(rowwise: str) -> list[bool]:
    """For each column of a row-wise outer part, whether an aggregate stands in it.

    >>> noisy_outputs('SELECT "r"."k0" AS "ward", 2 * "r"."a1" AS "twice" FROM "released0" AS "r"')
    [False, True]
    """
    tree = sqlglot.parse_one(rowwise, read="duckdb")
    return [
        any(_AGGREGATE.fullmatch(column.name) for column in item.find_all(exp.Column))
        for item in tree.args["expressions"]
    ]
