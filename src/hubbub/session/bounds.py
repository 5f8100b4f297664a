"""Bounds bought with budget, on a grid of powers of two that no data chose.

A value x falls on the place sign(x) * (ceil(log2 |x|) + 41), from -104 to 104, so that values between 2^-40 and 2^63
are told apart by powers of two. One value of each unit is counted at its place, with noise (Wilson, Zhang, Lam,
Desfontaines, Simmons-Marengo, Gipson 2020, "Differentially Private SQL with Bounded User Contribution", section 5.1.1).
The bounds are those of the outermost places whose noisy count exceeds a threshold, which some empty place does with
probability 1/1000 at most; but on either side of 0 no further out than the walk of `hubbub.mechanisms.place_search`
goes, so that one draw of noise far away is not taken for a value. How many rows a unit has is asked in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hubbub.accounting import cost as cost_of
from hubbub.arguments import an_amount, names
from hubbub.engines.duckdb.dialect import quote
from hubbub.errors import BudgetError, QueryError
from hubbub.ledger.budget import EpsilonLike, decimal_text
from hubbub.mechanisms.calibration import Spend
from hubbub.mechanisms.place_search import PlaceSearch
from hubbub.session.ask import answered
from hubbub.session.options import Options
from hubbub.session.prepare import PricedStatement
from hubbub.session.statement import request_of
from hubbub.tables.columns import Between, between
from hubbub.tables.declare import EACH_ROW, PrivateTable

if TYPE_CHECKING:
    from hubbub.session.run import Door

__all__ = ["FARTHEST", "MOST_ROWS", "bounds_at", "places_sql", "rows_sql", "shown", "suggested_bounds"]

OFFSET = 41
FARTHEST = 104
MOST_ROWS = 40
MISTAKE = 1e-3


def suggested_bounds(
    door: Door, table: str, columns: tuple[str, ...], epsilon: EpsilonLike
) -> dict[str, Between | int | None]:
    """What `Session.suggest_bounds` returns, charged through the door like any other question."""
    declared = door.data.tables.get(table)
    columns = names(columns, "suggest_bounds", "suggest_bounds('visits', 'age', epsilon=0.1)")
    if not isinstance(declared, PrivateTable):
        raise QueryError(f"suggest_bounds: {table!r} is not a private table of this session.")
    amount = an_amount(epsilon) / max(1, len(columns))
    options: dict[str, Any] = {"epsilon": amount, "max_groups": 1, "max_rows": 1}
    if not door.ledger.balance.budget(declared.space).pure:
        options["noise"] = "laplace"  # pure noise, whatever the budget: only the threshold's tail matters here
    search = PlaceSearch(Spend(epsilon=amount), declared.neighbours == "replace")

    def priced(sql: str) -> tuple[PricedStatement, Options]:
        given = Options.of(options)
        asked = door.data.ask(sql, given, door.ledger.balance.budget)
        assert isinstance(asked, PricedStatement)  # the table is private
        return asked, given

    def places(question: tuple[PricedStatement, Options], count: int, *, first: int = 1) -> list[int]:
        rows = answered(door, *question).rows()
        return shown({int(place): int(n) for place, n in rows}, count, search, first=first)  # type: ignore[arg-type]

    if not columns:
        if declared.unit is EACH_ROW or declared.path is not None:
            raise QueryError("suggest_bounds without columns asks for the rows of a unit, which needs a unit column.")
        most = places(priced(rows_sql(table, str(declared.unit))), MOST_ROWS + 1, first=0)
        return {"max_total": 2 ** most[-1] if most else None}
    if len({c.lower() for c in columns}) < len(columns):
        raise QueryError("suggest_bounds: a column stands twice; name each once. Nothing was charged.")
    questions = {c: priced(places_sql(table, c)) for c in columns}
    _check_together(door, list(questions.values()))
    return {c: bounds_at(places(question, 2 * FARTHEST + 1)) for c, question in questions.items()}


def _check_together(door: Door, asked: list[tuple[PricedStatement, Options]]) -> None:
    """Raises BudgetError where questions about one table, asked one after the other, would not all be charged."""
    due = [one for one, options in asked if door.stored(request_of(one, door.data, options)) is None]
    if not due:
        return
    costs, first = [cost_of(one.price.event) for one in due], due[0]
    paying: dict[str, Any] = {"dataset": first.dataset, "analyst": door.analyst, "block": door.block}
    if not door.ledger.balance.admits(sum(costs[1:], costs[0]), space=first.space, **paying):
        amount = decimal_text(sum((one.epsilon for one in due), Fraction(0)))
        left = decimal_text(door.ledger.balance.left(first.space, **paying).epsilon)
        raise BudgetError(
            f"not enough budget: the columns together ask for epsilon {amount}, and {left} is left. Nothing was "
            "charged.",
            asked=amount,
            left=left,
        )


def places_sql(table: str, column: str) -> str:
    """How many units have a value at each place."""
    x = quote(column)
    size = f"CEIL(LN(ABS({x})) / LN(2)) + {OFFSET}"
    place = f"CASE WHEN {x} > 0 THEN GREATEST({size}, 1) WHEN {x} < 0 THEN LEAST(-({size}), -1) ELSE 0 END"
    clamped = f"LEAST(GREATEST({place}, -{FARTHEST}), {FARTHEST})"
    return f"SELECT {clamped} AS place, COUNT(*) AS n FROM {quote(table)} WHERE {x} IS NOT NULL GROUP BY {clamped}"


def rows_sql(table: str, unit: str) -> str:
    """How many units have 1, 2, 3-4, 5-8, ... rows."""
    place = f"LEAST(GREATEST(CEIL(LN(rows_of_unit) / LN(2)), 0), {MOST_ROWS})"
    inner = f"SELECT {quote(unit)}, COUNT(*) AS rows_of_unit FROM {quote(table)} GROUP BY {quote(unit)}"
    return f"SELECT {place} AS place, COUNT(*) AS n FROM ({inner}) GROUP BY {place}"


def shown(rows: Mapping[int, int], places: int, search: PlaceSearch, *, first: int = 1) -> list[int]:
    """The places whose noisy count exceeds what noise does, in order, that are not beyond the walk on their side.

    first: the place that is first on its side.
    """
    threshold = math.log(places / (2 * MISTAKE)) * search.unit
    above, below = (_end_of_walk(side, search, first) for side in (rows, {-place: n for place, n in rows.items()}))
    return sorted(place for place, count in rows.items() if count > threshold and -below <= place <= above)


def _end_of_walk(rows: Mapping[int, int], search: PlaceSearch, least: int) -> int:
    """Where the walk from the largest noisy count of the places from `least` on ends; below them, if none is walked."""
    side = sorted(place for place in rows if place >= least)
    if not side:
        return least - 1
    end = search.found([rows[place] for place in side])
    return least - 1 if end is None else side[end]


def bounds_at(places: list[int]) -> Between | None:
    """The bounds that hold every value of these places: powers of two, or 0; None for no places."""
    if not places:
        return None
    low, high = _end(places[0], upper=False), _end(places[-1], upper=True)
    return between(low, high if high > low else low + 1)


def _end(place: int, *, upper: bool) -> Fraction:
    if place == 0:
        return Fraction(0)
    size = Fraction(2) ** (abs(place) - OFFSET)
    if place > 0:
        return size if upper else Fraction(0) if place == 1 else size / 2
    return -size if not upper else Fraction(0) if place == -1 else -size / 2
