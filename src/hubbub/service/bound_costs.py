"""What the declared bounds of a table cost: how far off a count is as declared, with half a bound, and with twice it.

The bounds say how much of one unit counts. Each is a trade: a larger one leaves out less of the units that have much,
and takes more noise to hide one of them. The half-widths are those of a check at epsilon 0.1: they follow from
declarations, and no row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hubbub.errors import HubbubError
from hubbub.session.options import Options

__all__ = ["AT", "bound_costs"]

AT: Final = "0.1"
"""The epsilon that the half-widths are for."""
_GROUPED: Final = ("max_groups", "max_rows")

HalfWidth = Callable[[str, Options], "float | None"]


def bound_costs(name: str, declared: Mapping[str, Any], half_width: HalfWidth) -> dict[str, dict[str, Any]]:
    """Of each bound of a table its sizes and the half-width at each, and what is counted. declared: what is told of the
    table (`service.forms.declared_table`). half_width: what a check predicts for a question.
    """
    key = next((column for column, what in declared["declared"].items() if len(what.get("one_of") or ()) > 1), None)
    told = {}
    for bound in ("max_groups", "max_rows", "max_total"):
        size = declared["limits"].get(bound)
        by = key if bound in _GROUPED else None
        if not isinstance(size, int) or (bound == "max_groups" and by is None):
            continue
        sizes = sorted({max(1, size // 2), size, 2 * size})
        known = [(each, _tried(half_width, _question(name, by), {bound: each})) for each in sizes]
        if all(width is not None for _, width in known):
            told[bound] = {"by": by, "widths": [list(each) for each in known], "epsilon": AT}
    return told


def _question(table: str, by: str | None) -> str:
    if by is None:
        return f"SELECT COUNT(*) AS n FROM {_quoted(table)}"
    return f"SELECT {_quoted(by)}, COUNT(*) AS n FROM {_quoted(table)} GROUP BY {_quoted(by)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _tried(half_width: HalfWidth, sql: str, bounds: Mapping[str, int]) -> float | None:
    """The half-width with these bounds; None where no such question can be asked."""
    try:
        return half_width(sql, Options.of({"epsilon": AT, **bounds}))
    except HubbubError:
        return None
