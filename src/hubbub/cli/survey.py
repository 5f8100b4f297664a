"""The demo's data: Fair's survey, and the exact counts that an ordinary database would hand out.

R. C. Fair, "A theory of extramarital affairs", Journal of Political Economy 86 (1978): 6,366 married women
who answered a magazine. The file ships with statsmodels and is read where it lies; statsmodels itself is
not loaded.

**The attack** ("all but one", differencing). Whoever knows enough of a woman's other answers to name her
row asks for a count, and for the same count without her. With exact answers the difference is hers. With
two private answers at epsilon each it is hers plus the difference of two discrete Laplace draws; guessing
yes iff it is positive is right with probability 1/2 + (1-q)(1+q^2) / (2(1+q)^3), q = e^-epsilon: half the
time, plus half of the probability that the two draws are equal.
"""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hubbub.errors import PolicyError, how_to_install

if TYPE_CHECKING:
    import duckdb

__all__ = ["ALL", "KINDS", "Survey", "Target", "find_survey", "right_by_differencing"]

KINDS: Final = {
    "rate_marriage": "integer",
    "age": "number",
    "yrs_married": "number",
    "children": "number",
    "religious": "integer",
    "educ": "integer",
    "occupation": "integer",
    "occupation_husb": "integer",
    "affairs": "number",
}
_KNOWN: Final = tuple(name for name in KINDS if name != "affairs")

ALL: Final = "SELECT COUNT(*) AS n FROM survey WHERE affairs > 0"
"""How many women had an affair."""


@dataclass(frozen=True)
class Target:
    """A woman whose other answers are hers alone: `known`, by column."""

    known: tuple[tuple[str, str], ...]
    had_affair: bool

    @property
    def all_but_her(self) -> str:
        """The count of `ALL` without her."""
        row = " AND ".join(f"{name} = {value}" for name, value in self.known)
        return f"{ALL} AND NOT ({row})"

    def __str__(self) -> str:
        known = dict(self.known)
        return f"aged {known['age']}, married {known['yrs_married']} years"


class Survey:
    """The survey in an ordinary database, which answers exactly."""

    def __init__(self, path: Path) -> None:
        import duckdb

        from hubbub.engines.duckdb.parquet import by_name

        self._database: duckdb.DuckDBPyConnection = duckdb.connect()
        kinds = ", ".join(f"'{name}': 'DOUBLE'" for name in KINDS)
        self._database.execute(
            f"CREATE TABLE survey AS SELECT * FROM read_csv($path, header = true, columns = {{{kinds}}})",
            {"path": by_name(str(path))},
        )

    def count(self, sql: str) -> int:
        """The exact answer to a question with one number for an answer."""
        row = self._database.execute(sql).fetchone()
        return int(row[0]) if row else 0

    def targets(self, each: int) -> list[Target]:
        """`each` women who had an affair and `each` who had not, in turn, evenly spread over the survey.

        So that guessing blindly is right for half of them.
        """
        yes, no = self._spread("affairs > 0", each), self._spread("affairs = 0", each)
        return [target for pair in zip(yes, no, strict=True) for target in pair]

    def _spread(self, condition: str, count: int) -> list[Target]:
        columns = ", ".join(_KNOWN)
        rows = self._database.execute(
            f"SELECT {columns} FROM survey GROUP BY {columns} "
            f"HAVING count(*) = 1 AND bool_and({condition}) ORDER BY {columns}"
        ).fetchall()
        chosen = [rows[i * len(rows) // count] for i in range(count)]
        return [
            Target(tuple((name, f"{value:g}") for name, value in zip(_KNOWN, row, strict=True)), "> 0" in condition)
            for row in chosen
        ]

    def close(self) -> None:
        """Forget the copy."""
        self._database.close()


def find_survey() -> Path:
    """The survey's file inside an installed statsmodels.

    Raises:
        PolicyError: statsmodels is not installed, or holds no such file.
    """
    spec = importlib.util.find_spec("statsmodels")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        path = Path(folder) / "datasets" / "fair" / "fair.csv"
        if path.is_file():
            return path
    raise PolicyError(f"the demo's survey ships with statsmodels, which is not installed. {how_to_install('demo')}")


def right_by_differencing(epsilon: Fraction) -> float:
    """How often the difference of two private counts at `epsilon` each tells a woman's answer rightly.

    >>> round(right_by_differencing(Fraction(1)), 3)
    0.64
    """
    q = math.exp(-epsilon)
    return 0.5 + (1 - q) * (1 + q * q) / (2 * (1 + q) ** 3)
