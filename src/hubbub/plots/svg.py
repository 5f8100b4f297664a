"""Small pictures as SVG text, drawn by hand: no scripts, no links, every text escaped."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from hubbub.errors import ParameterError

__all__ = ["bars"]

_ROW, _LABEL, _WIDTH = 18, 140, 480


def bars(
    labels: Sequence[str], values: Sequence[float], lows: Sequence[float], highs: Sequence[float], *, title: str
) -> str:
    """Horizontal bars with whiskers from low to high, one per label; where the value is NaN, the word NULL and no bar.

    Raises ParameterError for columns of different lengths.

    >>> "<script" in bars(["<script>"], [1.0], [0.5], [1.5], title="n")
    False
    """
    if len({len(labels), len(values), len(lows), len(highs)}) > 1:
        raise ParameterError("bars: give one value, low and high for each label.")
    ends = [x for x in (*values, *lows, *highs) if math.isfinite(x)]
    least, most = min([0.0, *ends]), max([0.0, *ends])
    span = (most - least) or 1.0

    def at(x: float) -> float:
        inside = min(max(x, least), most)
        return round(_LABEL + (inside - least) / span * (_WIDTH - _LABEL - 10), 1)

    lines = []
    for i, (label, value, low, high) in enumerate(zip(labels, values, lows, highs, strict=True)):
        y = 22 + i * _ROW
        text = label if len(label) <= 20 else label[:19] + "…"
        lines.append(f'<text x="{_LABEL - 6}" y="{y + 12}" text-anchor="end">{html.escape(text)}</text>')
        if math.isnan(value):
            lines.append(f'<text x="{at(0.0) + 4}" y="{y + 12}" fill="#777">NULL</text>')
            continue
        left, right = sorted((at(0.0), at(value)))
        lines.append(
            f'<rect x="{left}" y="{y + 3}" width="{round(right - left, 1)}" height="{_ROW - 6}" fill="#56B4E9"/>'
        )
        if not (math.isnan(low) or math.isnan(high)):
            lines.append(
                f'<path d="M{at(low)} {y + 9}H{at(high)}M{at(low)} {y + 5}v8M{at(high)} {y + 5}v8" stroke="#0072B2" '
                'stroke-width="1.5" fill="none"/>'
            )
    height = 26 + len(lines) * _ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'role="img" font-family="sans-serif" font-size="11"><text x="{_LABEL}" y="14" font-weight="bold">'
        f"{html.escape(title)}</text>{''.join(lines)}</svg>"
    )
