"""An answer as a file: what was released, and nothing else."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

if TYPE_CHECKING:
    from hubbub.service.pages.answering import ShownAnswer

__all__ = ["FORMS", "file_of"]

FORMS: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
    "svg": "image/svg+xml",
}
"""The forms in which an answer is a file, and their media types."""


def file_of(shown: ShownAnswer, form: str, text: str, name: str) -> Response | None:
    """An answer as a file; None where it cannot be one of this form. text: as the clerk told it."""
    content = _content(shown, form, text)
    if content is None:
        return None
    headers = {
        "Content-Disposition": f'attachment; filename="hubbub-{name[:12]}.{form}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, headers=headers, media_type=FORMS[form])


def _content(shown: ShownAnswer, form: str, text: str) -> bytes | None:
    if form == "json":
        return text.encode("utf-8")
    if form == "svg":
        return None if shown.chart is None else shown.chart.svg().encode("utf-8")
    if form not in FORMS:
        return None
    import pyarrow as pa

    table = shown.release.intervals(shown.level)
    sink = io.BytesIO()
    if form == "csv":
        from hubbub.answer.wire import csv_text

        sink.write(csv_text(table).encode("utf-8"))
    elif form == "arrow":
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, sink)
    return sink.getvalue()
