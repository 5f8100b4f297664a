"""Changes that nobody could notice, each with the reason. The runner leaves them out of its sample.

A change is named as the runner prints it, with the function it is in; a test says that each is a change
of its module still.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["EQUIVALENT"]

_CODEC: Final = "Python reads a codec's name less its signs: 'utf-8?' is 'utf-8'"
_WAY: Final = "decides which way is gone, and both ways have the same integers"
_SAME_BITS: Final = "numbers with and without a sign have the same 64 bits, which is all that is looked at"
_ROOM: Final = "a bit more of a reach of a thousand bits: a number that fits is looked at, and is itself"
_FORGOTTEN: Final = "decides when what was read is forgotten, and read anew it is the same: the chain has not grown"
_GUESS: Final = "a guess of 1 is no better than none: it is searched for, and the search has the answer"
_ENDLESS: Final = "amounts have a thousandth of so many digits, and what is beyond them is without end all the same"
_BOTH: Final = "a budget is written with both or with neither: one test is for the type checker"
_CHECKED: Final = "what is looked at then is let through, as no row becomes more than one: it only takes longer"
_FIRST: Final = "numpy reads the first letter of a kind of sort"


def _less_of_a_hash(fields: tuple[str, ...]) -> dict[str, str]:
    """A hash of all fields but one, each of them."""

    def listed(names: Iterable[str]) -> str:
        return f"({', '.join(f'self.{name}' for name in names)})"

    why = "what is equal has equal hashes still, and the rest is told apart by equality"
    return {f"_hash: {listed(fields)} -> {listed(f for f in fields if f != one)}": why for one in fields}


EQUIVALENT: Final[dict[str, dict[str, str]]] = {
    "hubbub.accounting.filters": {
        "_guess: 0 -> 1": _GUESS,
        "_quotient: 0 -> 1": _GUESS,
        "how_many: 200 -> 199": _ENDLESS,
        "how_many: 200 -> 201": _ENDLESS,
    },
    "hubbub.tables.measure": _less_of_a_hash(("counting", "argument", "values", "shift", "centre", "alone", "cap")),
    "hubbub.tables.repeats": {
        "question: rows > 1 -> rows >= 1": _CHECKED,
        "rows: rows > 1 -> rows >= 1": _CHECKED,
    },
    "hubbub.tables.groups": {
        "_usable: far or (counted and (not -2 ** 63 <= group < 2 ** 63)) -> "
        "counted and (not -2 ** 63 <= group < 2 ** 63)": (
            "a day that an engine makes lies in the years 1 to 9999, or is NULL: this is a net below that"
        ),
    },
    "hubbub.tables.growth": {
        ": (str, Size) -> (Size,)": "a name of a type, which the type checker alone reads",
    },
    "hubbub.engines.postgres.dialect": {
        "holds: 'latin-1' -> 'latin-1?'": _CODEC,
        "holds: 'utf-8' -> 'utf-8?'": _CODEC,
    },
    "hubbub.engines.spark.dialect": {
        "_place: 2 -> 3": "places beyond a million are refused where a question is read",
        "shown_as: 'utf-8' -> 'utf-8?'": _CODEC,
        "_literal: 'utf-8' -> 'utf-8?'": _CODEC,
        ": '[a-z][a-z0-9_]*' -> '[a-z][a-z0-9_]*?'": "with fullmatch a lazy pattern matches the same texts",
    },
    "hubbub.sql.emit.expression": {
        "_constant: isinstance(node, Literal) -> True": "what the binder takes as a constant argument is a Literal",
        "_constant: return self.sql(node) -> return None": "the same: never reached",
        "_call: i in function.constants and argument.kind is not Kind.NULL -> i in function.constants": (
            "the binder refuses NULL where a constant argument stands"
        ),
        "_argument: (Kind.TEXT, Kind.TIMESTAMP, Kind.NUMBER) -> (Kind.TEXT, Kind.TIMESTAMP)": (
            "what takes numbers alone is a function of doubles, whose NULL is written by `_raw`"
        ),
        "_number: node.value if isinstance(node.value, int | Fraction) else None -> node.value": (
            "a constant that is a number is an int, a Fraction or None; the test is for the type checker"
        ),
        "_number: isinstance(node.value, int | Fraction) -> True": "the same",
        "_fits: 0 -> 1": _ROOM,
        "_reach_of: 0 -> 1": _ROOM,
    },
    "hubbub.engines.duckdb.pieces": {
        ": 6 -> 7": _WAY,
        ": 6 -> 5": _WAY,
        ": 1000000 -> 1000001": _WAY,
        ": 1000000 -> 999999": _WAY,
        ": 1 -> 2": _WAY,
        ": 16 -> 17": _WAY,
        ": 16 -> 15": _WAY,
        "_made: rows > FEW_ROWS -> rows >= FEW_ROWS": _WAY,
        "Pieces: 0 -> 1": "units that share the bits that are left are found by comparing neighbours",
        "mixed: np.int64 if unit.dtype.kind == 'i' else np.uint64 -> np.uint64": _SAME_BITS,
        "mixed: unit.dtype.kind == 'i' -> unit.dtype.kind != 'i'": _SAME_BITS,
        "mixed: False -> True": "a copy of numbers is the numbers",
        "_narrow: 15 -> 14": "a wider type than is needed",
        "_cut: 'stable' -> 'stable?'": _FIRST,
        "parts_of: 0 -> 1": "the columns of a piece are equally long; and of memory a byte more is held",
    },
    "hubbub.engines.duckdb.ranking": {
        ": 7 -> 8": _WAY,
        ": 7 -> 6": _WAY,
        ": 22 -> 21": _WAY,
        ": 24 -> 25": _WAY,
        ": 24 -> 23": _WAY,
        "__init__: 'stable' -> 'stable?'": _FIRST,
        "__init__: 44 -> 43": "where no groups are ranked any order of them will do",
        "_order: n - 1 -> n + 1": "a bit more for the place",
        "_order: 8 -> 7": "other bits of the unit: those that share them are found by comparing neighbours",
        "listed: count.max() <= self._limit -> count.max() < self._limit": "a short cut: nothing is over",
        "_misses: mask is not None and (not self._columns[mask].all()) -> mask is not None": "a short cut",
        "_bounded_part: count > rows -> count >= rows": "size * rows // rows is the size",
        "_bounded: plan.group_count or 0 -> plan.group_count": "where groups are public they have a number",
        "_bounded_part: 0 -> 1": _WAY,
    },
    "hubbub.session.remembered": {
        "keep: 0 -> 1": "where groups are found privately nobody knows how many, and 1 is as few as 0",
    },
    "hubbub.mechanisms.place_search": {
        "found: (noisy[place], -place) -> (noisy[place],)": "of equal ones max keeps the first, which is the smallest",
    },
    "hubbub.mechanisms.groups": {
        "_laplace_threshold: delta < Fraction(1, 2) -> delta >= Fraction(1, 2)": (
            "where a search up and down begins: it ends where two comparisons say, wherever that was"
        ),
    },
    "hubbub.ledger.books": {
        "_budget_of: delta is None or threshold is None -> delta is None": _BOTH,
        "_budget_of: delta is None or threshold is None -> threshold is None": _BOTH,
        "_budget_of: own is None or share is None -> own is None": _BOTH,
        "_budget_of: own is None or share is None -> share is None": _BOTH,
        "begin: len(self._totals) > _MANY -> len(self._totals) >= _MANY": _FORGOTTEN,
        ": 1000 -> 1001": _FORGOTTEN,
        ": 1000 -> 999": _FORGOTTEN,
    },
    "hubbub.ledger.keys": {
        ": 32 -> 31": "a pad that is longer than the key is cut off",
        "_padded: -len(text) // _BLOCK -> -len(text) * _BLOCK": "the same",
    },
    "hubbub.ledger.accounts": {
        "__add__: _held(self.epsilon + other.epsilon) if other.epsilon else self.epsilon -> "
        "_held(self.epsilon + other.epsilon)": "a short cut: to add 0",
        "__add__: _held(self.rho + other.rho) if other.rho else self.rho -> _held(self.rho + other.rho)": "the same",
        "__add__: _held(self.delta + other.delta) if other.delta else self.delta -> "
        "_held(self.delta + other.delta)": "the same",
    },
    "hubbub.service.gate": {
        "done: admitted or person -> admitted": "what needs no proof has gone its way before",
    },
}
