"""How long an answer may take: measured on invented rows, as many as the table may come to, never on the real ones.

An answer time that followed from the rows would tell of them. So the steward says how many rows a table may come to,
rows are invented from its declarations, and plain questions are timed in two shapes: rows spread over many units, and
all rows of one unit, the heaviest there can be. Nothing is opened but the policy. What is suggested is three times the
longest, since a runner yields to others and has a core less; what a database server takes is not measured.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hubbub.errors import PolicyError
from hubbub.session.open import private_of
from hubbub.tables.columns import between

if TYPE_CHECKING:
    from hubbub.ledger.policy import Policy, TablePolicy
    from hubbub.tables.declare import PrivateTable

__all__ = ["invented", "questions", "suggested"]

_MARGIN: Final = 3
_STEPS: Final = 997  # different values of a range: a prime, so that columns do not go together
_LEAST: Final = 1.0
_MOST_ROWS: Final = 200_000_000


def suggested(policy: Policy, rows: int, *, say: Callable[[str], None] = lambda _: None) -> dict[str, float]:
    """An answer time for each private table of the policy, in seconds, if it comes to so many rows.

    Raises:
        PolicyError: so many rows are not invented.
    """
    if not 0 < rows <= _MOST_ROWS:
        raise PolicyError(f"--calibrate {rows}: allowed are 1 to {_MOST_ROWS} rows, the most that a table may come to.")
    times = {}
    for name, table in policy.tables.items():
        if table.unit is not None and table.through:
            say(f"{name}: its unit stands in another table, which is not measured")
            continue
        longest = max(_timed(table, rows, units) for units in (max(1, rows // 10), 1))
        times[name] = float(max(_LEAST, math.ceil(_MARGIN * longest)))
        say(f"{name}: {rows} invented rows took {longest:.2f} s at the longest: answer_time = {times[name]:g}")
    return times


def _timed(table: TablePolicy, rows: int, units: int) -> float:
    """Seconds that the slowest of the plain questions takes."""
    from hubbub.ledger.budget import Budget
    from hubbub.session import Session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this budget is kept in memory: it is nobody's
        session = Session({table.name: invented(table, rows, units)}, budget=Budget(10**6), ledger=None)
    with session:
        took = []
        for question in questions(table):
            began = time.perf_counter()
            session.sql(question, epsilon=1)
            took.append(time.perf_counter() - began)
    return max(took)


def questions(table: TablePolicy) -> Iterator[str]:
    """Plain questions that a table's declarations allow."""
    quoted, name = '"{}"'.format, f'"{table.name}"'
    yield f"SELECT COUNT(*) AS n FROM {name}"
    groups = [column for column, said in table.columns.items() if "one_of" in said]
    numbers = [column for column, said in table.columns.items() if _is_number(said)]
    for number in numbers:
        yield f"SELECT AVG({quoted(number)}) AS a, SUM({quoted(number)}) AS s FROM {name}"
        yield f"SELECT MEDIAN({quoted(number)}) AS m FROM {name}"
    for group in groups:
        more = "".join(f", AVG({quoted(number)}) AS a{k}" for k, number in enumerate(numbers[:3]))
        yield f"SELECT {quoted(group)}, COUNT(*) AS n{more} FROM {name} GROUP BY {quoted(group)}"


def invented(table: TablePolicy, rows: int, units: int) -> PrivateTable:
    """The declaration of a table over invented rows of so many units, the values as it declares them."""
    import numpy as np
    import pyarrow as pa

    place = np.arange(rows)
    columns: dict[str, Any] = {} if table.unit is None else {table.unit: pa.array(place % units)}
    for number, (name, said) in enumerate(table.columns.items()):
        values = _values(said)
        columns[name] = pa.array(values).take(pa.array(place // (number + 1) % len(values)))
    source = pa.table(columns or {"row": pa.array(place)})
    # As if it were a file: the address of a database is not needed, nor read.
    declared = private_of(replace(table, source=Path("invented.parquet"), table=None, csv=None, trusted_view=False))
    types = {name: kind for name, kind in declared.types.items() if name in columns and name != table.unit}
    return replace(declared, source=source, types=types)


def _is_number(said: Any) -> bool:
    return "between" in said and all(type(end) in (int, float) for end in said["between"])


def _values(said: Any) -> list[Any]:
    """Different values that a declaration of a column allows."""
    if "one_of" in said:
        return list(said["one_of"])
    if "edges" in said:
        return [(low + high) / 2 for low, high in zip(said["edges"], said["edges"][1:], strict=False)]
    if "between" not in said:
        return [f"text {k}" for k in range(_STEPS)]
    low, high = said["between"]
    if isinstance(low, str) and isinstance(high, str):  # a date or a moment in quotation marks
        declared = between(low, high)
        low, high = declared.low, declared.high
    if type(low) is int and type(high) is int:
        return [low + k * (high - low) // _STEPS for k in range(_STEPS)]
    return [low + k * (high - low) / _STEPS for k in range(_STEPS)]
