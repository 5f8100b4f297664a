"""What an audit says: claimed against shown, samples, seconds, confidence; as text, JSON or one HTML page.

A line never says "is private". It says what was shown, and the most that could have been.
"""

from __future__ import annotations

import html
import json
import math
from dataclasses import asdict, dataclass

from hubbub.audit.black_box import LowerBound

__all__ = ["Line", "Report", "line_of"]

_HEAD = ("mechanism", "audit", "claimed", "shown", "at most shown", "samples", "seconds", "confidence", "")


@dataclass(frozen=True)
class Line:
    """One audit of one mechanism.

    claimed, shown: epsilons (or violations, for the grey box, where 0 is claimed). ceiling: the most that could have
    been shown; None where the audit is exact. confidence 1: a proof. violated: whether the claim is refuted.
    """

    mechanism: str
    audit: str
    claimed: float
    shown: float
    violated: bool
    ceiling: float | None = None
    samples: int = 0
    seconds: float = 0.0
    confidence: float = 1.0
    detail: str = ""

    def cells(self) -> tuple[str, ...]:
        """As the columns of a table."""
        return (
            self.mechanism,
            self.audit,
            _number(self.claimed),
            _number(self.shown),
            "" if self.ceiling is None else _number(self.ceiling),
            f"{self.samples:,}" if self.samples else "",
            f"{self.seconds:.1f}",
            f"{self.confidence:g}",
            "VIOLATED" if self.violated else "nothing found",
        )


def line_of(mechanism: str, found: LowerBound, claimed: float, *, audit: str = "black box") -> Line:
    """The line of a black-box bound."""
    return Line(
        mechanism,
        audit,
        claimed,
        found.epsilon,
        found.epsilon > claimed,
        found.ceiling,
        found.samples,
        found.seconds,
        found.confidence,
        found.event,
    )


@dataclass(frozen=True)
class Report:
    """All lines of an audit."""

    lines: tuple[Line, ...]

    @property
    def violated(self) -> bool:
        """Whether any claim was refuted."""
        return any(line.violated for line in self.lines)

    def __str__(self) -> str:
        rows = [_HEAD, *(line.cells() for line in self.lines)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        left = {0, 1, len(_HEAD) - 1}
        text = [
            "  ".join(
                c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        details = [f"{line.mechanism}: {line.detail}" for line in self.lines if line.violated and line.detail]
        return "\n".join([*text, *details, self.conclusion, *self.luck])

    @property
    def conclusion(self) -> str:
        """One sentence."""
        broken = sum(line.violated for line in self.lines)
        if broken:
            return f"{broken} of {len(self.lines)} claims are refuted."
        return (
            "No claim was refuted. That does not prove them: nothing beyond the stated ceilings could have been seen."
        )

    @property
    def luck(self) -> tuple[str, ...]:
        """What of the numbers is chance: nothing in a line of confidence 1, which is computed exactly."""
        least = min((line.confidence for line in self.lines if line.confidence < 1), default=1.0)
        if least == 1:
            return ("Nothing here is drawn: each number is exact.",) if self.lines else ()
        runs = math.floor(1 / (1 - least) + 1e-6)
        return (
            "Lines of confidence 1 are exact. What another line shows is a draw, so another run shows another number; "
            f"by luck alone a true claim is refuted in at most 1 of {runs:,} runs. Run it again to see the spread, and "
            "with more --seconds to see more.",
        )

    def to_json(self) -> str:
        """A JSON object with `lines` and `violated`; infinite numbers are the text "inf"."""
        lines = [{k: _plain(v) for k, v in asdict(line).items()} for line in self.lines]
        said = {"violated": self.violated, "conclusion": self.conclusion, "luck": list(self.luck), "lines": lines}
        return json.dumps(said, indent=2)

    def to_html(self) -> str:
        """One page that needs nothing else."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in _HEAD)
        body = "".join(_row(line) for line in self.lines)
        return (
            '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Privacy audit</title>\n'
            "<style>:root{color-scheme:light dark}body{font-family:sans-serif;margin:2em}"
            "td,th{padding:.2em .8em;text-align:left;"
            "border-bottom:1px solid #8888}.violated{background:#f003}</style>\n"
            f"<h1>Privacy audit</h1>\n<table><tr>{head}</tr>{body}</table>\n"
            f"{''.join(f'<p>{html.escape(line)}</p>' for line in (self.conclusion, *self.luck))}</html>"
        )


def _row(line: Line) -> str:
    cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in line.cells())
    mark = ' class="violated"' if line.violated else ""
    return f'<tr{mark} title="{html.escape(line.detail)}">{cells}</tr>'


def _number(value: float) -> str:
    return f"{value:.4g}"


def _plain(value: object) -> object:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
