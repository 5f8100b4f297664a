"""What a refusal adds where the reader can guess what was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from hubbub.remedies import Rewrite
from hubbub.spelling import meant_by
from hubbub.tables.columns import Between, Declaration, OneOf

__all__ = ["ALLOWED", "clause_refused", "instead", "questions_instead", "ways"]

ALLOWED: Final = (
    "Allowed: comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, + - * / // %, CASE, casts, and the functions on "
    "the page of the SQL reference."
)

_TEXT_OF_A_DATE: Final = "Group dates by EXTRACT(year FROM day), or by DATE_TRUNC('month', day)."
_RANGES: Final = "For ranges of numbers declare hb.edges(0, 10, 20) for the column, or write FLOOR(x / 10)."
_MATCHES: Final = "Write REGEXP_MATCHES(x, '^[A-C]'), LIKE or CONTAINS(x, 'text')."
_BETWEEN: Final = "Write DATE_DIFF('day', a, b), EXTRACT(YEAR FROM AGE(b, a)), or EXTRACT(epoch FROM b - a)."
_TRUNCATED: Final = "Write SIGN(x) * FLOOR(ABS(x)), or CAST(x AS BIGINT), which rounds."
_LARGEST: Final = (
    "One row decides it; ask for the group with the largest total: SELECT k FROM (SELECT k, SUM(x) AS s FROM t "
    "GROUP BY k) ORDER BY s DESC LIMIT 1."
)
_SHAPE: Final = "Ask for QUANTILE_CONT(x, [0.05, 0.5, 0.95]), or for counts in bands: GROUP BY FLOOR(x / 10)."
_MEAN: Final = "Did you mean AVG?"
_CONTAINS: Final = "Write CONTAINS(x, 'text')."
_TELLS: Final = "One row's value tells of a person; write MEDIAN(x), or group by x."
_COUNTED: Final = "Rows are not listed; count them: SELECT x, COUNT(*) AS n FROM t GROUP BY x."
_ROOTS: Final = "Write POWER(x, 0.5) for roots, LN(x) / LN(2) for logarithms."
_JOINED: Final = "Write CONCAT(a, '-', b), or STRFTIME(day, '%Y-%m')."
_PRODUCT: Final = "Write EXP(SUM(LN(x)))."
_KNOWN: Final = "Write COALESCE(x, 0), or x IS NULL."
_DAY: Final = "Write CAST(x AS DATE)."
_NUMBER: Final = "Write CAST(x AS DOUBLE)."
_NOW: Final = "Did you mean NOW?"
_TODAY: Final = "Did you mean TODAY?"
_PART: Final = "Did you mean SUBSTR?"
_MONTHS: Final = "Write day + INTERVAL 1 MONTH."
_QUOTIENT: Final = "Write x / NULLIF(y, 0)."
_SQUARE: Final = "Write POWER(x, 2)."
_ZERO: Final = "Write NULLIF(x, 0)."
_HOLDS: Final = "Write x ILIKE '%text%'."
_DIFFERENT: Final = "Write COUNT(DISTINCT x)."
_ROWS: Final = "Did you mean COUNT?"
_TOTAL: Final = "Did you mean SUM?"
_VARIANCE: Final = "Did you mean VAR_POP?"
_DEVIATION: Final = "Did you mean STDDEV_POP?"
_WHERE: Final = "Write SUM(x) FILTER (WHERE a > 0)."
_BOTH: Final = "Between conditions write AND."
_PIECE: Final = "Write SPLIT_PART(x, ',', 1)."
_WRITE: Final = {
    _TEXT_OF_A_DATE: "DATE_TRUNC('month', day)",
    _RANGES: "FLOOR(x / 10)",
    _MATCHES: "REGEXP_MATCHES(x, '^[A-C]')",
    _BETWEEN: "DATE_DIFF('day', a, b)",
    _TRUNCATED: "SIGN(x) * FLOOR(ABS(x))",
    _LARGEST: "SELECT k FROM (SELECT k, SUM(x) AS s FROM t GROUP BY k) ORDER BY s DESC LIMIT 1",
    _SHAPE: "QUANTILE_CONT(x, [0.05, 0.5, 0.95])",
    _MEAN: "AVG",
    _CONTAINS: "CONTAINS(x, 'text')",
    _TELLS: "MEDIAN(x)",
    _COUNTED: "SELECT x, COUNT(*) AS n FROM t GROUP BY x",
    _ROOTS: "LN(x) / LN(2)",
    _JOINED: "CONCAT(a, '-', b)",
    _PRODUCT: "EXP(SUM(LN(x)))",
    _KNOWN: "COALESCE(x, 0)",
    _DAY: "CAST(x AS DATE)",
    _NUMBER: "CAST(x AS DOUBLE)",
    _NOW: "NOW",
    _TODAY: "TODAY",
    _PART: "SUBSTR",
    _MONTHS: "day + INTERVAL 1 MONTH",
    _QUOTIENT: "x / NULLIF(y, 0)",
    _SQUARE: "POWER(x, 2)",
    _ZERO: "NULLIF(x, 0)",
    _HOLDS: "x ILIKE '%text%'",
    _DIFFERENT: "COUNT(DISTINCT x)",
    _ROWS: "COUNT",
    _TOTAL: "SUM",
    _VARIANCE: "VAR_POP",
    _DEVIATION: "STDDEV_POP",
    _WHERE: "SUM(x) FILTER (WHERE a > 0)",
    _BOTH: "AND",
    _PIECE: "SPLIT_PART(x, ',', 1)",
}
"""The part of each hint that is SQL to write in its place."""
_CLAUSES: Final = {"SAMPLE": " Noise keeps people private; every row may count."}
_FILTERED: Final = Rewrite("COUNT(*) FILTER (WHERE k = 'a') AS a")
_INSTEAD: Final = {
    **dict.fromkeys(("TO_CHAR", "STRFTIME", "FORMAT_DATE", "MONTHNAME", "DAYNAME"), _TEXT_OF_A_DATE),
    **dict.fromkeys(("WIDTH_BUCKET", "EQUI_WIDTH_BINS", "HISTOGRAM", "CUT"), _RANGES),
    **dict.fromkeys(("REGEXP_EXTRACT", "REGEXP_REPLACE", "GLOB", "REGEXP_SUBSTR", "REGEXP_INSTR"), _MATCHES),
    **dict.fromkeys(("MEAN", "AVERAGE"), _MEAN),
    **dict.fromkeys(("AGE", "TIMESTAMPDIFF", "TIMESTAMP_DIFF", "DATE_SUB", "DATESUB", "MONTHS_BETWEEN"), _BETWEEN),
    **dict.fromkeys(("TRUNC", "TRUNCATE"), _TRUNCATED),
    **dict.fromkeys(("STRPOS", "INSTR", "POSITION", "STR_POSITION", "CHARINDEX", "LOCATE", "PATINDEX"), _CONTAINS),
    **dict.fromkeys(("ANY_VALUE", "ARBITRARY", "FIRST", "LAST"), _TELLS),
    **dict.fromkeys(("STRING_AGG", "LIST", "ARRAY_AGG", "GROUP_CONCAT"), _COUNTED),
    "CBRT": _ROOTS,
    **dict.fromkeys(("FORMAT", "PRINTF", "LPAD", "RPAD"), _JOINED),
    "PRODUCT": _PRODUCT,
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "MAX_BY", "MIN_BY"), _LARGEST),
    **dict.fromkeys(("KURTOSIS", "SKEWNESS"), _SHAPE),
    **dict.fromkeys(("ISNULL", "NVL2", "ZEROIFNULL"), _KNOWN),
    "TO_DATE": _DAY,
    **dict.fromkeys(("TO_NUMBER", "TO_DOUBLE", "TO_DECIMAL", "VAL"), _NUMBER),
    **dict.fromkeys(("GETDATE", "GETUTCDATE", "SYSDATETIME", "SYSUTCDATETIME", "UTC_TIMESTAMP"), _NOW),
    **dict.fromkeys(("CURDATE", "UTC_DATE"), _TODAY),
    "MID": _PART,
    "ADD_MONTHS": _MONTHS,
    **dict.fromkeys(("SAFE_DIVIDE", "DIV0", "DIV0NULL"), _QUOTIENT),
    "SQUARE": _SQUARE,
    "NULLIFZERO": _ZERO,
    "CONTAINS_SUBSTR": _HOLDS,
    **dict.fromkeys(("UNIQ", "UNIQEXACT", "COUNT_DISTINCT", "COUNTD"), _DIFFERENT),
    "COUNT_BIG": _ROWS,
    "TOTAL": _TOTAL,
    "VARP": _VARIANCE,
    **dict.fromkeys(("STDEVP", "STDDEVP"), _DEVIATION),
    "SUMIF": _WHERE,
    "ARRAY_OVERLAPS": _BOTH,
    "SUBSTRING_INDEX": _PIECE,
}


def clause_refused(word: str) -> tuple[str, tuple[Rewrite, ...]]:
    """Why a question with a clause is refused, and what to write: in words, and as data where there is such."""
    way = _FILTERED if word == "PIVOT" else None
    hint = _CLAUSES.get(word, "") if way is None else f" Write {way.example}, once for each column."
    return f"{word} is not supported in a private question.{hint}", () if way is None else (way,)


def instead(name: str, known: Iterable[str]) -> str:
    """What to write for a function that is not supported, and a space: a way to do the same, or the nearest name.

    >>> instead("LENGHT", ["LENGTH", "LOWER"])
    'Did you mean LENGTH? '
    """
    if name.upper() in _INSTEAD:
        return f"{_INSTEAD[name.upper()]} "
    near = _meant(name, known) or _nearest(name, known)
    return f"Did you mean {near}? " if near is not None else ""


def ways(name: str, known: Iterable[str]) -> tuple[Rewrite, ...]:
    """What `instead` says, as data; nothing where it says nothing, or guesses among functions.

    >>> [way.example for way in ways("LENGHT", ["LENGTH", "LOWER"])]
    ['LENGTH']
    """
    hint = _INSTEAD.get(name.upper())
    example = _meant(name, known) if hint is None else _WRITE[hint]
    return () if example is None else (Rewrite(example),)


def _meant(name: str, known: Iterable[str]) -> str | None:
    meant = meant_by(name.upper(), known)
    return meant if meant != name.upper() else None


def _nearest(name: str, known: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(name.upper(), sorted(known), n=1, cutoff=0.75)
    return near[0] if near and near[0] != name.upper() else None


def questions_instead(table: str, declared: Mapping[str, Declaration]) -> tuple[Rewrite, ...]:
    """Questions that a table answers, for somebody who wanted to see its rows."""
    table = _name(table)
    questions = [f"SELECT COUNT(*) FROM {table}"]
    groups = next((_name(name) for name, what in declared.items() if isinstance(what, OneOf)), None)
    number = next((_name(name) for name, what in declared.items() if _is_number(what)), None)
    if groups is not None:
        mean = f", AVG({number})" if number is not None else ""
        questions.append(f"SELECT {groups}, COUNT(*){mean} FROM {table} GROUP BY {groups}")
    elif number is not None:
        questions.append(f"SELECT AVG({number}) FROM {table}")
    return tuple(Rewrite(question, question) for question in questions)


def _name(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'


def _is_number(what: Declaration) -> bool:
    return isinstance(what, Between) and isinstance(what.low, Fraction)
