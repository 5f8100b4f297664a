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

__all__ = ["TOKEN", "substituted"]

TOKEN: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|[^\s\w]""")
_NEXT: Final = frozenset({",", "FROM", "UNION", ")", ""})
"""What stands after the name of what is selected."""


def substituted(stages: Sequence[tuple[str, str]]) -> int:
    """The words and signs of all stages, each column counted as what it is computed of; of a column of a UNION what all
    of its parts are, of a constant its bytes, too. So is one of a stage with DISTINCT, a window or GROUP BY: Postgres
    moves conditions below them.

    >>> substituted([("x", "SELECT a + a AS b FROM t"), ("y", "SELECT b + b AS c FROM x")])
    22
    >>> substituted([("x", "SELECT a IS DISTINCT FROM a AS b FROM t"), ("y", "SELECT b + 'OVER' AS c FROM x")])
    23
    """
    known: dict[str, int] = {}
    total = 0
    for _, sql in stages:
        size, made = _stage(TOKEN.findall(sql), known)
        total += size
        known |= made
    return total


def _stage(words: Sequence[str], known: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    """The size of a stage, and of each column that it makes."""
    made: dict[str, int] = {}
    size, items, selects = 0, [0], [True]  # of each bracket that is open: of what stands last in it, and what it is
    for i, word in enumerate(words):
        after = words[i + 1].upper() if i + 1 < len(words) else ""
        weight = 1 + len(word.encode()) // 16 if word[0] == "'" else known.get(word.strip('"'), 1)
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
            case "FROM" if words[i - 1].upper() == "DISTINCT":
                pass  # IS DISTINCT FROM
            case "," | "FROM" | "SELECT" | "UNION" if selects[-1]:
                items[-1] = 0
            case "AS" if selects[-1] and (words[i + 2].upper() if i + 2 < len(words) else "") in _NEXT:
                name = words[i + 1].strip('"')
                made[name] = made.get(name, 0) + items[-1]
    return size, made
