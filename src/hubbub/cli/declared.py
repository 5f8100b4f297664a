"""Values and bounds as people write them, checked against the kind of their column, and as a policy writes them.

Dates are read in the form of the column's own file, in ISO's, and with dots, where the day comes first everywhere. A
date with slashes may be read in two ways, so it is read only where the file's form says in which.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
from typing import Final

import click

__all__ = ["KINDS_WITH_BOUNDS", "between_toml", "date_format", "is_number", "number_signs", "one_of_toml"]

KINDS_WITH_BOUNDS: Final = ("integer", "number", "date", "timestamp")
_DOTTED: Final = ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S")
_EXAMPLE: Final = dt.datetime(2025, 12, 31, 18, 5)
_DAYS: Final = tuple("%d.%m.%Y;%d/%m/%Y;%m/%d/%Y;%d-%m-%Y;%Y/%m/%d;%Y%m%d;%d.%m.%y;%d/%m/%y;%m/%d/%y;%Y-%m-%d;"
                     "%d %b %Y;%d %B %Y".split(";"))  # fmt: skip
_TIMES: Final = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p")


def is_number(text: str) -> bool:
    """Whether a text is a number as TOML writes it."""
    return re.fullmatch(r"[+-]?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", text) is not None


def one_of_toml(text: str, kind: str, form: str | None = None) -> str:
    """Values as TOML: texts, dates and times in quotes, numbers and booleans as they are.

    Raises click's UsageError for a value that is not of the column's kind.
    """
    values = [value.strip() for value in next(csv.reader([text], skipinitialspace=True))]
    if kind in ("integer", "number", "boolean"):
        for value in values:
            if not (value in ("false", "true") if kind == "boolean" else is_number(value)):
                raise click.UsageError(f"{text}: {value!r} is not a value of type {kind}.")
    elif kind in ("date", "timestamp"):
        values = [json.dumps(_moment(value, kind, form)) for value in values]
    else:
        values = [json.dumps(value, ensure_ascii=False) for value in values]
    return f"{{ one_of = [{', '.join(values)}] }}"


def between_toml(text: str, kind: str, form: str | None = None) -> str:
    """Bounds as TOML: numbers as they are, dates and times in quotes, as ISO writes them.

    form: how the column's file writes dates. A semicolon may stand between the bounds; numbers may then have a decimal
    comma.

    Raises click's UsageError where they are not two values of the column's kind, the lower one first.
    """
    if kind not in KINDS_WITH_BOUNDS:
        raise click.UsageError(
            f"{text}: a column of type {kind} has no bounds. List its values (--values COLUMN=A,B), or say what it "
            "holds: --kind COLUMN=number, or integer, date, timestamp."
        )
    sign = ";" if ";" in text else ","
    ends = [end.strip() for end in text.split(sign)]
    if len(ends) != 2 or not all(ends):
        raise click.UsageError(f"{text}: write two bounds, LOW,HIGH, as in 0,120 or 2025-01-01,2025-12-31.")
    if kind in ("date", "timestamp"):
        low, high = _moments([_moment(end, kind, form) for end in ends])
        if not dt.datetime.fromisoformat(low) < dt.datetime.fromisoformat(high):
            raise _out_of_order(text)
        return f"{{ between = [{json.dumps(low)}, {json.dumps(high)}] }}"
    low, high = (end.replace(",", ".") if sign == ";" else end for end in ends)
    for end in (low, high):
        if not is_number(end) and not (end == "auto" and end is high):
            raise click.UsageError(f"{text}: {end!r} is not a number; write two bounds, LOW,HIGH, as in 0,120.")
    if high == "auto":
        return f'{{ between = [{low}, "auto"] }}'
    if not float(low) < float(high):
        raise _out_of_order(text)
    return f"{{ between = [{low}, {high}] }}"


def date_format(example: str) -> str | None:
    """The format in which 31 December 2025, and five past six in the evening, are written as in `example`; None for
    ISO's, which needs no format. A format with percent signs is taken as it is.

    Raises click's UsageError where the example is another day, or in a form that is not known.

    >>> date_format("31.12.2025"), date_format("12/31/2025 6:05 PM"), date_format("2025-12-31")
    ('%d.%m.%Y', '%m/%d/%Y %I:%M %p', None)
    """
    if "%" in example:
        return example
    forms = [day + time for day in _DAYS for time in _TIMES]
    fitting = [form for form in forms if _read(example, form) in (_EXAMPLE, _EXAMPLE.replace(hour=0, minute=0))]
    if not fitting:
        raise click.UsageError(
            f"{example}: write 31 December 2025 (18:05) as the file would, such as 31.12.2025 or 12/31/2025 6:05 PM, "
            "or a format such as %d.%m.%Y."
        )
    return None if fitting[0].startswith("%Y-%m-%d") else fitting[0]


def number_signs(example: str) -> tuple[str, str | None]:
    """The decimal sign, and what stands between thousands, where 1234.5 is written as in `example`.

    Raises click's UsageError where the example is another number.

    >>> number_signs("1234.5"), number_signs("1.234,5")
    (('.', None), (',', '.'))
    """
    for decimal in ".,":
        for thousands in ("", *".,' _\N{NO-BREAK SPACE}"):
            if thousands != decimal and example == f"1{thousands}234{decimal}5":
                return decimal, thousands or None
    raise click.UsageError(f"{example}: write 1234.5 as the file would, such as 1234,5 or 1.234,5.")


def _out_of_order(text: str) -> click.UsageError:
    return click.UsageError(f"{text}: the first bound must be below the second one.")


def _moment(text: str, kind: str, form: str | None) -> str:
    """A date or a time as ISO writes it; of a time that says no hour, the day."""
    own = () if form is None else (form, re.split(r"[ T]%[HI]", form)[0])
    read = [moment for moment in (_read(text, one) for one in (*own, *_DOTTED)) if moment is not None]
    try:
        moment = read[0] if read else dt.datetime.fromisoformat(text)
    except ValueError:
        example = "2025-12-31 or 2025-12-31 18:05" if kind == "timestamp" else "2025-12-31"
        raise click.UsageError(
            f"{text} is not a day that can be read in one way only; write it as {example}."
        ) from None
    return moment.isoformat(" ") if kind == "timestamp" and ":" in text else moment.date().isoformat()


def _moments(ends: list[str]) -> list[str]:
    """Two bounds of one kind: beside a time, a day stands for its first or its last second."""
    if len({len(end) > 10 for end in ends}) == 1:
        return ends
    return [end if len(end) > 10 else f"{end} {time}" for end, time in zip(ends, ("00:00:00", "23:59:59"), strict=True)]


def _read(text: str, form: str) -> dt.datetime | None:
    try:
        return dt.datetime.strptime(text, form)
    except ValueError:
        return None
