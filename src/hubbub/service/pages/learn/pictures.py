"""The drawings of Learn as SVG: numbers in, text out; colours are the style sheet's, light and dark; no scripts.

Each has a title and a description for those who hear the page, and the page has a table of the same numbers beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

__all__ = ["bars_over_truth", "belief", "closing_in"]

_WIDE, _LEFT, _RIGHT = 440.0, 56.0, 8.0


def _svg(name: str, height: float, title: str, what: str, lines: Sequence[str]) -> Markup:
    """A drawing with its name for screen readers. Its words are ours or numbers; both are escaped all the same."""
    opening = Markup(
        '<svg class="learn-drawing" viewBox="0 0 {} {}" role="img" aria-labelledby="{}-t {}-d">'
        '<title id="{}-t">{}</title><desc id="{}-d">{}</desc>'
    ).format(_n(_WIDE), _n(height), name, name, name, title, name, what)
    return opening + Markup("".join(lines)) + Markup("</svg>")


def _n(x: float) -> str:
    return f"{x:.1f}".rstrip("0").rstrip(".")


def _line(kind: str, *points: tuple[float, float]) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in points)}"/>'


def _word(kind: str, x: float, y: float, text: object, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{Markup.escape(text)}</text>'


def _minus(x: float) -> str:
    return f"{x:g}".replace("-", "−")


def closing_in(presses: Sequence[dict[str, Any]], *, most: int, budget_presses: int, many: float | None) -> Markup:
    """The difference of each press as a dot, and the average so far as a line, between "Zoe said no" and "yes"."""
    height, top, bottom = 222.0, 22.0, 38.0
    ends = [p["difference"] for p in presses]
    low, high = min([-4, *ends]) - 0.5, max([5, *ends]) + 0.5
    right = _RIGHT + (64 if many is not None else 0)

    def across(press: float) -> float:
        return _LEFT + (press - 0.5) / most * (_WIDE - _LEFT - right)

    def up(value: float) -> float:
        return float(top + (high - value) / (high - low) * (height - top - bottom))

    end = _WIDE - _RIGHT
    lines = [_line("guide", (_LEFT, up(0)), (end, up(0))), _line("guide truth", (_LEFT, up(1)), (end, up(1)))]
    lines += [_word("tick", _LEFT - 6, up(0) + 11, "no: 0", "end"), _word("tick", _LEFT - 6, up(1), "yes: 1", "end")]
    fence = across(budget_presses + 0.5)
    lines += [_line("fence", (fence, top - 6), (fence, height - bottom))]
    lines += [_word("note", fence + 5, top + 2, f"a budget of {budget_presses} ends here")]
    lines += [_word("tick", across(p), height - bottom + 17, p, "middle") for p in range(1, most + 1)]
    lines += [_word("note", (_LEFT + _WIDE - right) / 2, height - 2, "press", "middle")]
    lines += [
        f'<circle class="dot" cx="{_n(across(p["press"]))}" cy="{_n(up(p["difference"]))}" r="4.5"/>' for p in presses
    ]
    if presses:
        lines += [_line("mean", *((across(p["press"]), up(p["average"])) for p in presses))]
        last = presses[-1]
        x, y = across(last["press"]), up(last["average"])
        lines += [f'<rect class="mean-end" x="{_n(x - 5)}" y="{_n(y - 5)}" width="10" height="10"/>']
    if many is not None:
        x = _WIDE - _RIGHT - 24
        lines += [f'<rect class="mean-end" x="{_n(x - 5)}" y="{_n(up(many) - 5)}" width="10" height="10"/>']
        lines += [_word("tick", x, height - bottom + 17, "1,000", "middle")]
    what = f"{len(presses)} of {most} presses."
    if presses:
        what += f" The average so far is {_minus(round(presses[-1]['average'], 2))}; 0 is no, 1 is yes."
    return _svg("closing", height, "Answers less what the others said, and their average", what, lines)


def bars_over_truth(answers: Sequence[dict[str, Any]], *, truth: int, most: int) -> Markup:
    """Answers, each with its error bar, beside the truth; a bar that misses is dashed and has a cross."""
    height, top, bottom = 200.0, 12.0, 20.0
    ends = [0, most, *(a["low"] for a in answers), *(a["high"] for a in answers)]
    low, high = max(min(ends), -2 * most), min(max(ends), 3 * most)

    def across(place: float) -> float:
        return _LEFT + (place + 0.5) / max(1, len(answers)) * (_WIDE - _LEFT - _RIGHT)

    def up(value: float) -> float:
        inside = min(max(value, low), high)
        return float(top + (high - inside) / (high - low) * (height - top - bottom))

    lines = [_line("guide truth", (_LEFT, up(truth)), (_WIDE - _RIGHT, up(truth)))]
    lines += [_word("tick", _LEFT - 6, up(truth) + 4, truth, "end")]
    if up(0) - up(truth) > 12:
        lines += [
            _word("tick", _LEFT - 6, up(0) + 4, 0, "end"),
            _line("guide", (_LEFT, up(0)), (_WIDE - _RIGHT, up(0))),
        ]
    if up(truth) - up(most) > 12:
        lines += [_word("tick", _LEFT - 6, up(most) + 4, most, "end")]
        lines += [_line("guide", (_LEFT, up(most)), (_WIDE - _RIGHT, up(most)))]
    for place, answer in enumerate(answers):
        x, kind = across(place), "bar" if answer["holds"] else "bar missed"
        y0, y1 = up(answer["low"]), up(answer["high"])
        lines += [_line(kind, (x, y0), (x, y1)), _line(kind, (x - 4, y0), (x + 4, y0))]
        lines += [_line(kind, (x - 4, y1), (x + 4, y1))]
        lines += [f'<circle class="dot" cx="{_n(x)}" cy="{_n(up(answer["answer"]))}" r="4"/>']
        if not answer["holds"]:
            lines += [_word("cross", x, height - 4, "✕", "middle")]
    held = sum(a["holds"] for a in answers)
    what = f"{len(answers)} answers; the error bars of {held} of them hold the truth, {truth}."
    return _svg("bars", height, "Twenty answers to one question, with error bars", what, lines)


def belief(least: float, prior: float, most: float) -> Markup:
    """From 0 to 100 in 100: what was believed before, and the band in which the belief is after any answer."""
    height, y = 82.0, 28.0
    left, right = 24.0, 24.0

    def across(share: float) -> float:
        return left + share * (_WIDE - left - right)

    a, b = across(least), across(most)
    lines = [f'<rect class="trough" x="{_n(left)}" y="{_n(y)}" width="{_n(_WIDE - left - right)}" height="22" rx="3"/>']
    lines += [f'<rect class="band" x="{_n(a)}" y="{_n(y)}" width="{_n(max(2.0, b - a))}" height="22"/>']
    lines += [_line("before", (across(prior), y - 6), (across(prior), y + 28))]
    lines += [_word("note", across(prior), y - 11, f"before: {100 * prior:g}", "middle")]
    lines += [_word("tick", across(share / 100), y + 44, share, "middle") for share in (0, 25, 50, 75, 100)]
    what = f"Before the answer {100 * prior:g} in 100; after it, from {100 * least:.3g} to {100 * most:.4g} in 100."
    return _svg("belief", height, "How far one answer can move a belief about Zoe", what, lines)
