"""How large a text becomes that an engine writes its stages into each other of.

    x AS (SELECT a + a AS b FROM t), y AS (SELECT b + b AS c FROM x)        c is a + a + a + a

Postgres plans a stage that it need not compute by itself so. A text of a thousand characters may then be a plan of
gigabytes, and one of a hundred megabytes fails where a machine has little memory for parallel workers, whom it has once
a table, or one person, has rows enough.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["substituted"]

_TOKEN: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|[^\s\w]""")
_ITSELF: Final = re.compile(r"\bGROUP BY\b|\bOVER\b|\bDISTINCT\b|\bLIMIT\b|\bHAVING\b|\bINTERSECT\b|\bEXCEPT\b")
_NEXT: Final = frozenset({",", "FROM", "UNION", ")", ""})
"""What stands after the name of what is selected."""


def substituted(stages: Sequence[tuple[str, str]]) -> int:
    """The words and signs of the largest stage, each column counted as what it is computed of; of a column of a UNION
    what all of its parts are. One of a stage that an engine computes by itself, as with GROUP BY, is one word.

    >>> substituted([("x", "SELECT a + a AS b FROM t"), ("y", "SELECT b + b AS c FROM x")])
    14
    """
    known: dict[str, int] = {}
    largest = 0
    for _, sql in stages:
        size, made = _stage(_TOKEN.findall(sql), known)
        largest = max(largest, size)
        known |= dict.fromkeys(made, 1) if _ITSELF.search(sql) else made
    return largest


def _stage(words: Sequence[str], known: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    """The size of a stage, and of each column that it makes."""
    made: dict[str, int] = {}
    size, items, selects = 0, [0], [True]  # of each bracket that is open: of what stands last in it, and what it is
    for i, word in enumerate(words):
        after = words[i + 1].upper() if i + 1 < len(words) else ""
        weight = known.get(word.strip('"'), 1)
        size += weight
        items[-1] += weight
        match word.upper():
            case "(":
                items.append(0)
                selects.append(after == "SELECT")
            case ")" if len(items) > 1:
                selects.pop()
                inside = items.pop()
                items[-1] += inside
            case "," | "FROM" | "SELECT" | "UNION" if selects[-1]:
                items[-1] = 0
            case "AS" if selects[-1] and (words[i + 2].upper() if i + 2 < len(words) else "") in _NEXT:
                name = words[i + 1].strip('"')
                made[name] = made.get(name, 0) + items[-1]
    return size, made
