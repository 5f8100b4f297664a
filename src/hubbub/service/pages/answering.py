"""What the page of an answer says: a sentence, a chart, a table, the receipt line by line, two groups compared.

All of it is computed from what was released: reading it at another level, drawing it in another way, comparing two
groups costs nothing more.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from hubbub.errors import ParameterError
from hubbub.service.pages.words import amount, moment, number

if TYPE_CHECKING:
    from hubbub.answer.release import Release
    from hubbub.plots.chart import Chart

__all__ = ["LEVELS", "Compared", "Line", "ShownAnswer", "explained", "snippets"]

LEVELS: Final = (0.8, 0.9, 0.95, 0.99)
_KINDS: Final = {
    "bars": "bars", "points": "points", "lines": "lines", "grouped": "groups", "multiples": "small pictures",
    "heat": "grid", "calendar": "calendar",
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A line of a receipt: what it is called, what it says, what that means. whole: a fingerprint in full."""

    name: str
    value: str
    means: str
    whole: str = ""


@dataclass(frozen=True)
class Compared:
    """Two groups beside each other. clear: whether their intervals do not meet."""

    first: str
    second: str
    text: str
    clear: bool


class ShownAnswer:
    """An answer at a level, one of its columns drawn in a way. level, column, kind: as asked for, "" for the usual."""

    def __init__(self, release: Release, *, level: str = "", column: str = "", kind: str = "") -> None:
        self.release = release
        asked = {f"{one:g}": one for one in LEVELS}
        self.level = asked.get(level, 0.95)
        self.column = column if column in self.estimates else next(iter(self.estimates), "")
        self._kind = kind

    @cached_property
    def estimates(self) -> tuple[str, ...]:
        """The columns that have error bars."""
        return tuple(self.release.error.half_widths(0.95))

    @cached_property
    def chart(self) -> Chart | None:
        """The column that is drawn; None where no column has an error bar."""
        if not self.column or not len(self.release):
            return None
        chart: Chart = self.release.plot(self.column, level=self.level)
        return replace(chart, kind=self._kind) if self._kind in chart.kinds else chart

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """The ways in which it can be drawn, with their names."""
        return () if self.chart is None else tuple((kind, _KINDS[kind]) for kind in self.chart.kinds)

    @property
    def kind(self) -> str:
        """How it is drawn."""
        return "" if self.chart is None else self.chart.kind or self.chart.kinds[0]

    @cached_property
    def heads(self) -> tuple[tuple[str, str], ...]:
        """The columns of the table, each with how it is set."""
        keys = {self.release.columns[i] for i in self.release._keys()}
        numbers = {n for n, v in self.release.to_dict().items() if n not in keys and _numeric(v)} | {*self.estimates}
        return tuple((name, "number" if name in numbers else "text") for name in self.release.columns)

    @cached_property
    def rows(self) -> list[tuple[str, ...]]:
        """The rows of the table, each estimate with its error."""
        return self.release.text.rows(self.level)

    @property
    def marked(self) -> bool:
        """Whether a number is marked as one whose error is a large part of it."""
        return any(cell.startswith("~") for row in self.rows for cell in row)

    @property
    def sentence(self) -> str:
        """The answer, or what it is of, in words."""
        release, share = self.release, round(self.level * 100)
        if not self.estimates:
            return "This is exact: it comes from public data and declarations alone, and has no noise in it."
        if not len(release):
            return "No group is shown: those there may be are too small to be told from noise."
        if len(release) > 1:
            keys = ", ".join(release.columns[i] for i in release._keys()) or "row"
            return (
                f"{self.column} for {len(release):,} groups of {keys}. Each number has noise in it: in {share} of 100 "
                "such answers its ± holds the truth."
            )
        low, high = (float(x) for x in self._ends(0))
        reach = release.error.half_widths(self.level)[self.column][0]
        value = release.to_dict()[self.column][0]
        if not isinstance(value, int | float) or reach != reach:
            return f"{self.column}: {dict(zip(release.columns, self.rows[0], strict=True))[self.column]}."
        return (
            f"{self.column} is about {number(value)}: in {share} of 100 such answers the truth is between "
            f"{number(_rounded(low, reach))} and {number(_rounded(high, reach))}."
        )

    def _ends(self, row: int) -> tuple[Any, Any]:
        _, _, low, high = self.release._drawn(self.column, self.level)
        return low[row], high[row]

    @cached_property
    def groups(self) -> list[str]:
        """The rows by their keys, where there are several with an estimate."""
        if self.chart is None or len(self.chart.points) < 2:
            return []
        return [", ".join(point.names) or f"row {n + 1}" for n, point in enumerate(self.chart.points)]

    def compare(self, first: str, second: str) -> Compared | None:
        """Two rows of the drawn column, by their places; None where there are no such two."""
        places = {str(n) for n in range(len(self.groups))}
        if self.chart is None or self.chart.moments or first == second or not {first, second} <= places:
            return None
        a, b = (self.chart.points[int(n)] for n in (first, second))
        if a.value is None or b.value is None:
            return None
        apart = a.least > b.most or b.least > a.most
        names = self.groups[int(first)], self.groups[int(second)]
        more, less = names if a.value >= b.value else names[::-1]
        share = round(self.level * 100)
        if apart:
            text = f"{more} has more than {less}: their {share} % intervals do not meet."
        else:
            text = f"Not told apart: the {share} % intervals of {more} and {less} meet. The difference may be noise."
        return Compared(*names, text, apart)


def _numeric(values: list[Any]) -> bool:
    known = [v for v in values if v is not None]
    return bool(known) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)


def _rounded(x: float, reach: float) -> float:
    """To as many digits as the error has two of."""
    if not reach or reach in (float("inf"), float("-inf")):
        return x
    digits = 1 - len(str(int(reach))) + 1 if reach >= 1 else 3
    return round(x, digits)


def explained(receipt: Mapping[str, Any], *, charged: bool) -> list[Line]:
    """A receipt line by line. Raises nothing: what is not there is left out."""
    unit = str(receipt.get("unit") or "person")
    one = "row" if unit == "each row" else unit
    lines = [
        Line("Asked", f"{moment(receipt.get('time'))}, by {receipt.get('analyst', '')}", "When it was charged."),
        Line("Spent", f"epsilon {_amount(receipt.get('epsilon'))}", _spent(charged)),
        Line("Protected", f"everything one {one} contributed" if one != "row" else "each single row", _PROTECTED),
        Line("Counts", _limits(receipt, one), "What is beyond is left out before anything is added up."),
        Line("Noise", _noise(receipt), "Drawn exactly, of whole steps, once: asked again, the answer is the same."),
        Line("Exceptions", _delta(receipt), "How likely the promise may fail; 0 where it never does."),
        _printed("Data", receipt.get("data_version"), "The version of the rows, until a steward renews it."),
        _printed("Declarations", receipt.get("policy"), "What was declared of the tables then."),
        _printed("Charge", receipt.get("id"), "Its name in the ledger."),
        _printed("Fingerprint", _link(receipt), "Keep it: it shows whether the ledger was rewritten."),
    ]  # fmt: skip
    return [line for line in lines if line.value]


def _printed(name: str, told: object, means: str) -> Line:
    """A line of letters and digits, which nobody reads: the first of them, and all where they are wanted."""
    whole = str(told or "")
    short = f"{whole[:8]}…" if len(whole) > 12 and " " not in whole else whole
    return Line(name, short, f"{means} {_LETTERS}" if short != whole else means, whole if short != whole else "")


_LETTERS: Final = "The letters are not to be read, only compared."
_PROTECTED: Final = "Whether any one of them is in the data changes the odds of this answer by no more than was spent."


def _amount(told: Any) -> str:
    return "0" if told is None else amount(told)


def _spent(charged: bool) -> str:
    if charged:
        return "Taken from the joint budget and from your own limit, for good: the answer cannot be unlearned."
    return "It was spent before: for the data this reading was free. Another's answer counts against your own limit."


def _limits(receipt: Mapping[str, Any], unit: str) -> str:
    rows, groups = receipt.get("max_rows"), receipt.get("max_groups")
    if receipt.get("unit") == "each row" or not (rows or groups):
        return ""
    parts = [f"{rows:,} rows" if rows else "", f"{groups:,} groups" if groups else ""]
    if rows and groups:
        return f"at most {rows:,} rows in each of {groups:,} groups of one {unit}"
    return f"at most {''.join(parts)} of one {unit}"


def _noise(receipt: Mapping[str, Any]) -> str:
    told = str(receipt.get("mechanism") or "")
    for part in receipt.get("measurements") or ():
        step = Fraction(str(part.get("step") or 1))
        if part.get("scale"):
            return f"{told}, of scale {number(float(Fraction(str(part['scale'])) * step))}"
        if part.get("sigma2"):
            return f"{told}, of standard deviation {number(float(Fraction(str(part['sigma2']))) ** 0.5 * float(step))}"
    return told


def _delta(receipt: Mapping[str, Any]) -> str:
    try:
        delta = Fraction(str(receipt.get("delta") or 0))
    except ValueError:
        return ""
    return "none (delta 0)" if delta == 0 else f"delta {float(delta):.2g}"


def _link(receipt: Mapping[str, Any]) -> str:
    charge = (receipt.get("chain") or {}).get("charge") or {}
    return str(charge.get("hash") or "")


def snippets(sql: str, epsilon: str, url: str) -> dict[str, str]:
    """The same question from elsewhere. The token is not in it: it is read from the environment."""
    odd = '"""' in sql or "\\" in sql or sql.endswith('"')
    python_sql = repr(sql) if odd else f'"""{sql}"""'
    body = json.dumps({"sql": sql, "options": {"epsilon": epsilon}})
    quoted = json.dumps(sql, ensure_ascii=False)
    return {
        "Python": (
            "import os\nimport hubbub as hb\n\n"
            f'service = hb.connect("{url}", token=os.environ["HUBBUB_TOKEN"])\n'
            f'answer = service.sql({python_sql}, epsilon="{epsilon}")\nprint(answer)'
        ),
        "pandas": (
            "# after the lines above; each estimate with its ends, _low and _high\n"
            "frame = answer.intervals(0.95).to_pandas()"
        ),
        "R": (
            f'library(httr2)\nservice <- request("{url}") |>\n'
            '  req_auth_bearer_token(Sys.getenv("HUBBUB_TOKEN"))\n'
            'asked <- service |> req_url_path("/api/v1/ask") |>\n'
            '  req_headers("Idempotency-Key" = format(Sys.time(), "%Y%m%d%H%M%OS6")) |>\n'
            f"  req_body_json(list(\n    sql = {quoted},\n    options = list(epsilon = '{epsilon}'))) |>\n"
            "  req_perform() |> resp_body_json()\n"
            'told <- service |> req_url_path("/api/v1/answers", asked$id) |>\n'
            '  req_url_query(format = "csv", wait = 60) |> req_perform()\n'
            "frame <- read.csv(text = resp_body_string(told))"
        ),
        "curl": (
            f'asked=$(curl -s {url}/api/v1/ask -H "Authorization: Bearer $HUBBUB_TOKEN" \\\n'
            f'  -H "Idempotency-Key: $(date +%s%N)" --json {shlex.quote(body)})\n'
            'id=$(echo "$asked" | grep -o \'"id": *"[^"]*"\' | head -1 | cut -d\\" -f4)\n'
            f'curl -s "{url}/api/v1/answers/$id?wait=60&format=csv" -H "Authorization: Bearer $HUBBUB_TOKEN"'
        ),
    }


def read(text: str) -> Release:
    """An answer as the clerk told it.

    Raises ParameterError for what is none.
    """
    from hubbub.answer.release import Release

    if not isinstance(text, str):
        raise ParameterError("this is not an answer.")
    return Release.from_wire(text)
