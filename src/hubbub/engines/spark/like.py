r"""LIKE on Spark, in a time that grows with the length of a text and not with a power of it.

Spark reads `'%a%b%c%'` as `.*a.*b.*c.*`, and looks at all a and b of a text again for each c that is missing. For one
row with 65,536 characters that has no end, so one person's row would decide whether there is an answer. A pattern with
several % is written as a regular expression instead: each segment between two % is taken where it stands first, which
leaves the most for the others, and is never looked for again (`(?>...)`).
"""

from __future__ import annotations

from typing import Final

__all__ = ["in_segments", "linear"]

_SIGNS: Final = frozenset("\\.[]{}()<>*+-=!?^$|&#")


def linear(parts: tuple[str, ...]) -> bool:
    """Whether Spark's own LIKE looks at a text once: one %, or one at each end and none between."""
    between = parts[1:-1] if parts[:1] == parts[-1:] == ("%",) else parts
    return parts.count("%") < 2 or "%" not in between


def in_segments(parts: tuple[str, ...]) -> str:
    r"""A pattern of LIKE with a % as a regular expression of Java's, to be found in a text.

    All its signs are small letters: its LOWER is the pattern of the text's LOWER.

    >>> in_segments(("=a.", "%", "=b", "_", "%", "=c"))
    '(?s)^a\\.(?>.*?b.).*c\\z'
    """
    segments = [""]
    for part in parts:
        if part == "%":
            segments.append("")
        else:
            segments[-1] += "." if part == "_" else "".join(f"\\{c}" if c in _SIGNS else c for c in part[1:])
    first, *middle, last = segments
    looked_for = "".join(f"(?>.*?{segment})" for segment in middle if segment)
    return f"(?s)^{first}{looked_for}" + (f".*{last}\\z" if last else "")
