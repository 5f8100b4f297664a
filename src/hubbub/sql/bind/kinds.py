"""Values of another kind than what looks at them takes: what the refusal says, and how to make one kind of the other.

>>> wrong_kind("SUM needs a number", Kind.TEXT, NUMERIC)
('SUM needs a number; this is text. Write CAST(x AS DOUBLE).', Rewrite(example='CAST(x AS DOUBLE)', sql=None))
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from hubbub.remedies import Rewrite
from hubbub.tables.kinds import NUMERIC, TEMPORAL, Kind

__all__ = ["IN_WORDS", "ONE_KIND", "wrong_kind"]

IN_WORDS: Final = {
    Kind.INTEGER: "a number",
    Kind.NUMBER: "a number",
    Kind.TEXT: "text",
    Kind.BOOLEAN: "true or false",
    Kind.DATE: "a date",
    Kind.TIMESTAMP: "a time",
    Kind.NULL: "NULL",
    Kind.OTHER: "of an unknown type",
}
_AS_NUMBER: Final = {
    Kind.BOOLEAN: "IF(x, 1, 0)",
    **dict.fromkeys(TEMPORAL, "DATE_DIFF('day', DATE '2020-01-01', x)"),
}
ONE_KIND: Final = Rewrite("CAST(x AS VARCHAR)")
"""Where values of two kinds are compared, or stand in one column: any kind can be written as text."""


def wrong_kind(says: str, given: Kind, takes: Collection[Kind]) -> tuple[str, Rewrite]:
    """The refusal of a value of a kind where others are taken, and the way out."""
    if not NUMERIC.isdisjoint(takes):
        instead = _AS_NUMBER.get(given, "CAST(x AS DOUBLE)")
    elif Kind.TEXT in takes:
        instead = "CAST(x AS VARCHAR)"
    elif not TEMPORAL.isdisjoint(takes):
        instead = "CAST(x AS DATE)" if given is Kind.TEXT else "CAST(CAST(x AS VARCHAR) AS DATE)"
    else:
        instead = "x <> 0" if given in NUMERIC else "x IS NOT NULL"
    return f"{says}; this is {IN_WORDS[given]}. Write {instead}.", Rewrite(instead)
