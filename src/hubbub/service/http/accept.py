"""In which form something is told: by `?format=`, else by the header Accept (RFC 9110, 12.5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from starlette.requests import Request

from hubbub.service.http.problem import HTTPProblem

__all__ = ["FORMS", "accepted", "form_of"]

FORMS: Final[Mapping[str, str]] = {
    "json": "application/json",
    "arrow": "application/vnd.apache.arrow.stream",
    "csv": "text/csv",
}
"""The media type of each form of an answer; the first is told where all are welcome."""


def accepted(header: str, offered: Mapping[str, str]) -> str | None:
    """The form of highest quality that a header accepts, of those that are offered; None where it accepts none.

    >>> accepted("text/csv, application/json;q=0.5", FORMS), accepted("", FORMS), accepted("image/png", FORMS)
    ('csv', 'json', None)
    """
    wanted = [_read(part) for part in header.split(",") if part.strip()] or [("*/*", 1.0)]
    best: tuple[float, str] | None = None
    for form, media in offered.items():
        ranges = {media: 3, f"{media.partition('/')[0]}/*": 2, "*/*": 1}
        matching = [(ranges[name], quality) for name, quality in wanted if name in ranges]
        quality = max(matching)[1] if matching else 0.0
        if quality > 0 and (best is None or quality > best[0]):
            best = quality, form
    return None if best is None else best[1]


def _read(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        if parameter.startswith("q="):
            with suppress(ValueError):
                quality = min(1.0, max(0.0, float(parameter[2:])))
    return name, quality


def form_of(request: Request, offered: Mapping[str, str] = FORMS) -> str:
    """The form that a request wants.

    Raises HTTPProblem where none is offered that it accepts.
    """
    written = request.query_params.get("format")
    if written is not None:
        if written not in offered:
            raise HTTPProblem("request", f"format: expected one of {', '.join(offered)}.")
        return written
    form = accepted(request.headers.get("accept", ""), offered)
    if form is None:
        raise HTTPProblem("form", f"this is told as {', '.join(offered.values())}.")
    return form
