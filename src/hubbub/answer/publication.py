"""A release as a folder that can be handed out: tables as CSV, what they mean as JSON, and a page to look at.

A publication is made of what was released, and of its receipt: post-processing, so it costs nothing. It says of the
people in the data who is protected, by how much, and how far off the numbers are; of the ledger, the data's version and
who asked it says nothing.

    release.publish("visits-by-ward")
    visits-by-ward/visits.csv        the numbers; an estimate x has x_low and x_high beside it
    visits-by-ward/metadata.json     epsilon, delta, unit, bounding, error
    visits-by-ward/index.html        both, to read; no scripts
"""

from __future__ import annotations

import csv
import datetime as dt
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from hubbub.answer.cells import free_name
from hubbub.errors import ParameterError, PolicyError
from hubbub.file_formats import spreadsheet_text
from hubbub.plots.page import html_page, html_table

__all__ = ["Publication", "described", "promise"]

FORMAT: Final = "hubbub publication 1"
_EACH_ROW: Final = "each row"
"""What a receipt calls the unit of a table of which each row is its own."""

_OWN: Final = ("metadata.json", "index.html")


@dataclass(frozen=True)
class Publication:
    """What is handed out. tables: by name, columns of values. about: the metadata. body: the page's middle, as HTML."""

    title: str
    tables: Mapping[str, Mapping[str, Sequence[object]]]
    about: Mapping[str, Any]
    body: str = field(repr=False)

    def write(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write it into a folder, which is made. force: replace the files of an earlier publication.

        Raises PolicyError where a file is in the way, or nothing can be written; ParameterError for no folder's name.
        """
        if not str(folder).strip():
            raise ParameterError("publish: name the folder, such as publish('visits-by-ward').")
        place, texts = Path(folder), self.texts()
        taken = [name for name in texts if (place / name).exists()]
        if taken and not force:
            raise PolicyError(f"{place} holds {taken[0]} already. Name another folder, or replace it: force=True.")
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (place / name).write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            raise PolicyError(f"cannot write {place}: {error.strerror}. Nothing was charged for publishing.") from error
        return place

    def texts(self) -> dict[str, str]:
        """Each file's name and text."""
        stems: list[str] = []
        for name in self.tables:  # two long names may begin alike
            stems.append(free_name(_file_name(name), stems))
        files = {f"{stem}.csv": _csv(table) for stem, table in zip(stems, self.tables.values(), strict=True)}
        from hubbub import __version__

        by = f"hubbub {__version__}"
        about = {"format": FORMAT, "made_by": by, "title": self.title, **self.about, "files": sorted(files)}
        shown = json.dumps(about, indent=2, ensure_ascii=False, default=_plain, allow_nan=False) + "\n"
        return {**files, "metadata.json": shown, "index.html": self._page(about)}

    def _page(self, about: Mapping[str, Any]) -> str:
        rows = [
            (_words(key), _shown(value))
            for key, value in about.items()
            if key not in ("format", "made_by", "title", "error")
        ]
        links = "".join(f'<li><a href="{name}">{name}</a></li>' for name in (*about["files"], "metadata.json"))
        told = f"<h2>What this is</h2>{html_table(('', ''), rows)}<h2>Files</h2><ul>{links}</ul>"
        return html_page(self.title, self.body + told)


def promise(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """What a receipt says of the people in the data: who is protected, by how much, and what was bounded.

    Noise that is accounted in rho holds at each pair of an epsilon and a delta; the delta here is the one of the
    epsilon that was asked, rounded up (Bun and Steinke 2016, Proposition 1.3; tighter where that is known).
    """
    if "unit_space" not in receipt:
        return {"epsilon": "0", "delta": 0, "protected": "public tables only: answered exactly"}
    unit = None if receipt.get("unit") == _EACH_ROW else receipt.get("unit")
    said: dict[str, Any] = {
        "question": receipt.get("sql"),
        "epsilon": receipt["epsilon"],
        "delta": _delta(receipt),
        "unit": unit or _EACH_ROW,
        "protected": f"all rows with one {unit}, together" if unit else "each single row",
        "neighbours": receipt.get("neighbours"),
        "composition": "of this release alone; other releases about the same people add up",
        "mechanism": receipt.get("mechanism"),
        "rho": receipt.get("rho"),
        "bounding": {
            key: receipt[key]
            for key in ("bounding", "max_groups", "max_rows", "max_total", "rows_per_unit")
            if receipt.get(key) is not None
        },
    }
    return {key: value for key, value in said.items() if value not in (None, {})}


def _delta(receipt: Mapping[str, Any]) -> float:
    thresholds = float(Fraction(str(receipt.get("delta") or 0)))
    if receipt.get("rho") is None:
        return thresholds
    from hubbub.accounting import ZCDP, delta_bounds

    whole = thresholds + delta_bounds(ZCDP(str(receipt["rho"])), str(receipt["epsilon"]))[1]
    if whole == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(whole)) - 2)
    return float(f"{math.ceil(whole / step) * step:.3g}")


def described(title: str, receipt: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The metadata of a publication: the promise, and what the kind of release adds."""
    return {"made": dt.datetime.now(dt.UTC).date().isoformat(), **promise(receipt), **more}


def _file_name(name: str) -> str:
    plain = re.sub(r"[^\w-]+", "_", name).strip("_").lower()[:80] or "table"
    return f"{plain}_" if f"{plain}.csv" in _OWN else plain


def _csv(table: Mapping[str, Sequence[object]]) -> str:
    """RFC 4180 with a header, in which no name and no text is a formula, and plain newlines; NULL is an empty field."""
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    quoting = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)  # a lone CR ends a line for who reads it
    for row in itertools.chain([list(table)], zip(*table.values(), strict=True)):
        cells = [spreadsheet_text(v) if isinstance(v, str) else _plain(v) for v in row]
        (quoting if any(isinstance(c, str) and "\r" in c for c in cells) else writer).writerow(cells)
    return out.getvalue()


def _plain(value: object) -> object:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case dt.date() | dt.time():
            return value.isoformat()
        case Decimal() | Fraction():
            return float(value)
        case _:
            return str(value)


def _words(key: str) -> str:
    return key.replace("_", " ")


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(str(k))}: {_shown(v)}" for k, v in value.items())
    return ", ".join(map(_shown, value)) if isinstance(value, list | tuple) else str(value)
