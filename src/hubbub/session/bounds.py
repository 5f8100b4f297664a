"""Bounds bought with budget, on a grid of powers of two that no data chose.

A value x falls on the place sign(x) * (ceil(log2 |x|) + 41), from -104 to 104, so that values between 2^-40 and 2^63
are told apart by powers of two. One value of each unit is counted at its place, with the noise of
`hubbub.mechanisms.place_search`, and its walk says where the values are: on each side of 0 from the place with the
largest noisy count, outward and inward. So the bounds hold what the walk passes, and a draw of noise far away is no
value: an end lies more than three places beyond all values with probability 1e-5 at most, four walks together, whatever
the table (`tests/mechanisms/test_place_search.py` computes it from the law). The outermost place whose noisy count
exceeds a threshold (Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson 2020, "Differentially Private SQL with
Bounded User Contribution", section 5.1.1) lies there once in a thousand times. 0 is told by its
own count. How many rows a unit has is asked in the same way, on places 0 to 40.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from hubbub.session.shown import not_private
from hubbub.session.statement import request_of
from hubbub.tables.columns import Between, between
from hubbub.tables.declare import EACH_ROW, PrivateTable

if TYPE_CHECKING:
    from hubbub.session.run import Door

__all__ = [
    "FARTHEST",
    "MOST_ROWS",
    "bounds_at",
    "largest_place",
    "places_sql",
    "rows_sql",
    "shown",
    "suggested_bounds",
]

OFFSET = 41
FARTHEST = 104
MOST_ROWS = 40


def suggested_bounds(
    door: Door, table: str, columns: tuple[str, ...], epsilon: EpsilonLike
) -> dict[str, Between | int | None]:
    """What `Session.suggest_bounds` returns, charged through the door like any other question."""
    declared = door.data.tables.get(table)
    columns = names(columns, "suggest_bounds", "suggest_bounds('visits', 'age', epsilon=0.1)")
    if not isinstance(declared, PrivateTable):
        raise not_private(table, door.data.spaces())
    amount = an_amount(epsilon) / max(1, len(columns))
    options: dict[str, Any] = {"epsilon": amount, "max_groups": 1, "max_rows": 1}
    if not door.ledger.balance.budget(declared.space).pure:
        options["noise"] = "laplace"  # pure noise, whatever the budget: that of the search
    search = PlaceSearch(Spend(epsilon=amount), declared.neighbours == "replace")

    def priced(sql: str) -> tuple[PricedStatement, Options]:
        given = Options.of(options)
        asked = door.data.ask(sql, given, door.ledger.balance.budget)
        assert isinstance(asked, PricedStatement)  # the table is private
        return asked, given

    def noisy(question: tuple[PricedStatement, Options]) -> dict[int, int]:
        return {int(place): int(n) for place, n in answered(door, *question).rows()}  # type: ignore[arg-type]

    if not columns:
        if declared.unit is EACH_ROW or declared.path is not None:
            raise QueryError("suggest_bounds without columns asks for the rows of a unit, which needs a unit column.")
        most = largest_place(noisy(priced(rows_sql(table, str(declared.unit)))), search)
        return {"max_total": None if most is None else 2**most}
    if len({c.lower() for c in columns}) < len(columns):
        raise QueryError("suggest_bounds: a column stands twice; name each once. Nothing was charged.")
    questions = {c: priced(places_sql(table, c)) for c in columns}
    _check_together(door, list(questions.values()))
    return {c: bounds_at(shown(noisy(question), search)) for c, question in questions.items()}


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


def largest_place(rows: Mapping[int, int], search: PlaceSearch) -> int | None:
    """The place of the bound of how many rows a unit has; None where too few units tell."""
    return search.found([rows.get(place, 0) for place in range(MOST_ROWS + 1)])


def shown(rows: Mapping[int, int], search: PlaceSearch) -> list[int]:
    """The places at which the values end, in order: on each side of 0 where the walk ends, outward and inward."""
    ends = [0] if rows.get(0, 0) >= search.thresholds[2] else []
    for sign in (-1, 1):
        side = [rows.get(sign * place, 0) for place in range(1, FARTHEST + 1)]
        ends += [sign * place for place in _ends_of_walk(side, search)]
    return sorted(ends)


def _ends_of_walk(side: Sequence[int], search: PlaceSearch) -> list[int]:
    """The first and the last place, counted from 1, that the walks from the largest noisy count come to."""
    outer, inner = search.found(side), search.found(side[::-1])
    return [] if outer is None or inner is None else [len(side) - inner, outer + 1]


def bounds_at(places: list[int]) -> Between | None:
    """The bounds that hold every value between these places: powers of two, or 0; None for no places."""
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
