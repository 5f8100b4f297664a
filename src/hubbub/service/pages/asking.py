"""What the page Ask says before anything is charged: the price, the error bars, the button, or why not.

Everything here follows from a check and from declarations: no row was read. The drawing has a bar for each group that
is declared, of as many rows as the reader types, with its error bar to scale; where the error is as large as the bar,
it is hatched: too few to see.

Accuracy comes first: the form asks how far off an answer may be, and the price follows. While nobody has said it, the
page proposes what a small amount buys, rounded up, so that it costs no more than that.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any, Final

from hubbub.errors import HubbubError, ParameterError
from hubbub.plots.chart import Chart, Point
from hubbub.remedies import read_remedy
from hubbub.service.pages.words import amount, day, number, plural, seconds

__all__ = ["Priced", "Question", "Refused", "example", "priced", "proposal", "refused", "width_of"]

_ROWS: Final = 1000
_SHOWN: Final = 24
_TITLE: Final = "The error bars to expect, before any data is read"
_NUMBER: Final = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True)
class Question:
    """What stands in the form. within: how far off an answer may be, most: for at most so much epsilon; or spend: an
    epsilon, chosen by mode. proposed: the width that the page proposed. rows: of a group, for the drawing.
    """

    sql: str = ""
    mode: str = "within"
    spend: str = "0.1"
    within: str = ""
    most: str = "0.1"
    proposed: str = ""
    rows: str = str(_ROWS)
    purpose: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Question:
        """What a form sent: fields that are missing as in a new one, new lines as one character."""
        own = {name: given[name].strip() for name in cls.__dataclass_fields__ if name in given}
        if "sql" in own:
            own["sql"] = own["sql"].replace("\r\n", "\n")
        if own.get("mode") not in (None, "spend", "within"):
            del own["mode"]
        return cls(**own)

    @property
    def assumed(self) -> int:
        """How many rows of a group are assumed."""
        text = self.rows.replace(",", "").replace(" ", "")
        return max(1, int(text)) if _NUMBER.fullmatch(text) else _ROWS

    @property
    def options(self) -> dict[str, Any]:
        """The options of the question, as `Session.sql` takes them."""
        told: dict[str, Any] = {"assume_rows": self.assumed} if self.assumed != _ROWS else {}
        if self.mode == "spend":
            return {**told, "epsilon": self.spend}
        if not self.within:
            return {**told, "epsilon": self.most}
        wide: Any = self.within
        if re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", self.within):
            wide = float(self.within)
        return {**told, "within": wide, **({"at_most": self.most} if self.most else {})}

    @property
    def to_propose(self) -> bool:
        """Whether its width is not the reader's own, and so follows the question."""
        return self.mode == "within" and self.within == self.proposed

    def at(self, width: str) -> Question:
        """The same at a width that the page proposes; "" for none: at as much as it may cost."""
        return replace(self, within=width, proposed=width)

    @property
    def agreed(self) -> str:
        """The name of what a price is for: another question, or other options, have another."""
        return hashlib.sha256(json.dumps([self.sql, self.options]).encode("utf-8", "replace")).hexdigest()[:24]


@dataclass(frozen=True)
class Refused:
    """Why a question cannot be asked: in the library's words, with the place in its text where that is known.

    pieces: the question before that place, at it, and after it. would: the epsilon at which it could be asked.
    """

    kind: str
    title: str
    text: str
    start: int | None = None
    end: int | None = None
    pieces: tuple[str, str, str] | None = None
    would: str = ""


@dataclass(frozen=True)
class Priced:
    """What a question would cost, in the pieces of a line; what its button says; and the drawing of its errors.

    epsilon, width: the amount and the accuracy that go together.
    """

    line: tuple[str, ...]
    notes: tuple[str, ...]
    button: str
    enough: bool
    cost: str
    left: str
    chart: Chart | None = None
    shown: int = 0
    groups: int = 0
    drowned: bool = False
    epsilon: str = ""
    width: str = ""


_TITLES: Final = {
    "query": "This question cannot be asked like this",
    "policy": "The declarations do not allow it",
    "budget": "The budget does not hold it",
    "locked": "A steward looks first",
    "queue": "Too many of your questions wait",
    "rate": "Too many checks at once",
    "away": "The service is starting",
    "forbidden": "This is not yours to do",
    "unauthenticated": "Not let in",
    "unknown": "There is nothing here",
    "engine": "There is no answer",
    "method": "This is not a page",
    "request": "This request cannot be read",
}


def refused(told: Mapping[str, Any], sql: str = "") -> Refused:
    """A refusal as the page shows it."""
    kind, text = str(told.get("kind", "incident")), _in_words_of_a_page(told)
    place = told.get("position") or (None, None)
    pieces = None
    start, end = place
    if isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(sql):
        pieces = (sql[:start], sql[start:end], sql[end:])
        text = text.partition("\n")[0]
    else:
        start = end = None
    would = amount(told["would"]).rstrip("…") if "would" in told else ""
    return Refused(kind, _TITLES.get(kind, "Something went wrong"), text, start, end, pieces, would)


def _in_words_of_a_page(told: Mapping[str, Any]) -> str:
    """The text of a refusal, with its ways out as somebody takes them here; in Python's words where one is unknown."""
    text = str(told.get("text", ""))
    try:
        ways = [read_remedy(way) for way in told.get("remedies", ())]
    except ParameterError:  # of a runner of another version
        return text
    return HubbubError(text, remedy=ways).said(lambda way: way.on_a_page())


def priced(told: Mapping[str, Any], question: Question, tables: Mapping[str, Any]) -> Priced:
    """What a check told, as the page shows it."""
    left, cost = str(told["left"]), str(told["cost"])
    free, stored = Fraction(str(told["epsilon"])) == 0, bool(told["stored"])
    enough = bool(told["affordable"])
    groups, counts = told.get("groups") or 0, amount(told.get("counts", "0"))
    since = f", answered {day(told['released_at'])}" if told.get("released_at") else ""
    errors = [_error(column) for column in told["columns"]]
    line = [
        "free: exact, about public data only"
        if free
        else f"free for the data: {'stored' if counts == '0' else 'stored, an answer of another person'}{since}"
        if stored
        else _cost(told),
        plural(groups, "group") if groups > 1 else "",
        *errors,
        f"comes after {seconds(told['answer_time'])}" if told.get("answer_time") and not stored else "",
    ]
    if free:
        button = "Show: free"
    elif stored:
        button = f"Show: free{since}" if counts == "0" else f"Show: counts {counts} of your own limit"
    else:
        button = f"Ask: spend {amount(cost)}" if enough else "Not enough left"
    chart, drowned = (None, False) if free else _drawing(told, question, tables)
    shown = len(chart.points) if chart is not None else 0
    notes = tuple(str(note) for note in told.get("notes", ()))
    pieces, spend = tuple(x for x in line if x), "" if free else amount(told["epsilon"]).rstrip("…")
    width = width_of(told)
    return Priced(pieces, notes, button, enough, cost, left, chart, shown, groups, drowned, epsilon=spend, width=width)


def width_of(told: Mapping[str, Any]) -> str:
    """How far off all estimates of a check are predicted to be, rounded up to two digits; "" where it is not known.

    >>> width_of({"columns": [{"plus_minus": 183.2}, {"plus_minus": 2.21}]}), width_of({"columns": []})
    ('190', '')
    """
    sizes = [
        next((c[k] for k in ("ranks", "rows", "plus_minus") if c.get(k) is not None), None) for c in told["columns"]
    ]
    largest = max((float(size) for size in sizes if size is not None), default=0.0)
    if not 1e-12 < largest < 1e14:
        return ""
    exact = Decimal(largest)
    unit = Decimal(1).scaleb(exact.adjusted() - 1)
    return f"{((exact / unit).to_integral_value(ROUND_CEILING) * unit).normalize():f}"


def proposal(told: Mapping[str, Any]) -> str:
    """The width that a page proposes for what a check told; "" for none: what is stored or public has its error."""
    asks = told.get("affordable") and not told.get("stored") and Fraction(str(told["epsilon"]))
    return width_of(told) if asks else ""


def _cost(told: Mapping[str, Any]) -> str:
    many = told.get("how_many")
    if many == 0:
        return f"costs {amount(told['epsilon'])}, and {amount(told['left'])} is left"
    such = "" if many is None else f" ({many:,} such fit)"
    return f"costs {amount(told['epsilon'])} of {amount(told['left'])} left{such}"


def _error(column: Mapping[str, Any]) -> str:
    """The predicted error of a column in a few words."""
    name, note = str(column["name"]), str(column.get("unit_note") or "")
    if column.get("even") is not None:
        return f"{name} ± {number(column['even'])}, if values were spread evenly"
    if column.get("ranks") is not None:
        return f"{name} ± {number(column['ranks'])} ranks"
    if column.get("rows") is not None:
        return f"{name}: off by at most {number(column['rows'])} rows"
    if column.get("plus_minus") is None:
        return ""
    condition = note.removeprefix("at most, ") if note.startswith("at most, if") else ""
    return f"{name} ± {number(column['plus_minus'])}{condition and f' {condition}'}"


def _drawing(told: Mapping[str, Any], question: Question, tables: Mapping[str, Any]) -> tuple[Chart | None, bool]:
    """Bars of as many rows as are assumed, each with its error bar; whether these would hide the bars."""
    column = next((c for c in told["columns"] if c.get("plus_minus") is not None), None)
    if column is None:
        return None, False
    kinds = dict(told.get("types") or ())
    reach, name = float(column["plus_minus"]), str(column["name"])
    names = _names(told, kinds, tables)
    if "int" in str(kinds.get(name, "")):
        rows = float(question.assumed)
        drowned = reach >= rows
        look, kind, text, value = ("drowned" if drowned else "empty"), "bars", f"± {number(reach)}", rows
    else:
        drowned, look, kind, value, text = False, "", "points", 0.0, f"± {number(reach)}"
    keys = ("group",) if len(names) > 1 else ()
    points = tuple(Point((n,) if keys else (), value, value - reach, value + reach, text, look) for n in names)
    measure = name if kind == "bars" else f"{name}: how far from the truth"
    return Chart(measure, keys, points, title=_TITLE, kind=kind, width=400), drowned


def _names(told: Mapping[str, Any], kinds: Mapping[str, str], tables: Mapping[str, Any]) -> Sequence[str]:
    """The groups' names where they are the declared values of one column; else their numbers."""
    count = told.get("groups") or 1
    measured = {str(c["name"]) for c in told["columns"]}
    keys = [name for name in kinds if name not in measured]
    if len(keys) == 1:
        for table in tables.values():
            values = _values((table.get("declared") or {}).get(keys[0], {}))
            if len(values) == count:
                return values[:_SHOWN]
    return [f"group {n + 1}" for n in range(min(count, _SHOWN))] if count > 1 else [""]


def _values(declared: Mapping[str, Any]) -> list[str]:
    other = [str(declared["others"])] if declared.get("other") and declared.get("others") else []
    return [str(value) for value in declared.get("one_of") or declared.get("labels") or ()] + other


def example(tables: Mapping[str, Any]) -> str:
    """A first question for somebody who knows nothing of the tables yet: how many there are, by a declared column."""
    private = [name for name, table in tables.items() if table.get("private")]
    if not private:
        return ""
    declared = tables[private[0]].get("declared") or {}
    fit = [column for column, what in declared.items() if 2 <= len(_values(what)) <= 8]
    if not fit:
        return f"SELECT COUNT(*) AS n\nFROM {private[0]}"
    return f"SELECT {fit[0]}, COUNT(*) AS n\nFROM {private[0]}\nGROUP BY {fit[0]}"
