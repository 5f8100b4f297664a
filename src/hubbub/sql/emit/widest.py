"""How many columns a row of a text may have on its way: more than the text's own, for an engine sorts by expressions.

    SELECT a.x AS x, b.y AS y FROM r1 AS a JOIN r2 AS b ON a.k + 1 = b.k      each side is sorted by one column more

Postgres refuses a SELECT of more columns than a row can have, before it runs. What it adds itself to sort a row by, the
keys of joins and windows, fails when the first row is sorted, which tells that there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hubbub.sql.emit.substituted import TOKEN

__all__ = ["widest"]

_CLAUSES: Final = frozenset({"FROM", "JOIN", "ON", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "UNION"})


def widest(text: str) -> int:
    """The columns of the widest row, estimated from above: those that a stage makes, or that its sources do together,
    and all keys of joins, windows and groups that the text names.

    >>> joined = "SELECT x AS z FROM r1 AS a JOIN r1 AS b ON x = y AND y = 3"
    >>> widest(f"WITH r1 AS (SELECT a AS x, b AS y FROM t), r2 AS ({joined}) SELECT z FROM r2")
    6
    """
    made: dict[str, int] = {}
    most = keys = 0
    for name, words in _stages(TOKEN.findall(text)):
        width, its_keys = _stage(words, made)
        made[name] = width
        most, keys = max(most, width), keys + its_keys
    return most + keys


def _stages(words: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Each stage with its name, and last what is selected of them."""
    begins, depth, name = 0, 0, ""
    for i, word in enumerate(words):
        if word == "(":
            if depth == 0 and i > 1 and words[i - 1].upper() == "AS":
                begins, name = i + 1, words[i - 2]
            depth += 1
        elif word == ")":
            depth -= 1
            if depth == 0 and name:
                yield name, words[begins:i]
                begins, name = i + 1, ""
    yield "", words[begins:]


@dataclass
class _Bracket:
    """What is open: of a SELECT how many columns it has so far, and its sources have; of others what stands before."""

    before: str = ""
    is_select: bool = True
    columns: int = 0
    sources: int = 0
    clause: str = ""


def _stage(words: Sequence[str], made: Mapping[str, int]) -> tuple[int, int]:
    """The most columns of a row of a stage, and the keys that it sorts by. Of a UNION each part is a SELECT."""
    width = keys = 0
    opened = [_Bracket()]
    for i, word in enumerate(words):
        before, said, here = words[i - 1].upper() if i else "", word.upper(), opened[-1]
        match said:
            case "(":
                opened.append(_Bracket(before, i + 1 < len(words) and words[i + 1].upper() == "SELECT"))
            case ")" if len(opened) > 1:
                width = max(width, here.columns, here.sources)
                opened.pop()
            case "SELECT" if here.is_select:
                width = max(width, here.columns, here.sources)
                here.columns, here.sources, here.clause = 1, 0, said
            case "FROM" if before == "DISTINCT":
                pass  # IS DISTINCT FROM
            case _ if said in _CLAUSES and here.is_select:
                here.clause = said
            case ",":
                here.columns += here.is_select and here.clause == "SELECT"
        joined = any(each.clause == "ON" for each in opened)
        sorted_by = here.before == "OVER" or here.clause in ("GROUP", "ORDER")
        keys += said in ("OVER", "PARTITION", "GROUP", "ORDER") or (joined and said in ("AND", "ON"))
        keys += said == "," and sorted_by
        if here.clause in ("FROM", "JOIN") and before in ("FROM", "JOIN", ","):
            here.sources += made.get(word, 0)
    here = opened[0]
    return max(width, here.columns, here.sources), keys
