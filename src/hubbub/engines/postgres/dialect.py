"""Postgres (13 and later): the rules of `hubbub.sql.emit.dialect` where a cast, a division or a product may raise.

Postgres has no TRY. What could raise stands behind a CASE whose condition says that it cannot: a text is cast after a
pattern has matched all of it (calendar and leap years included), a number after its range is known. Arithmetic is
done on magnitudes from 2^-300 to 2^300: smaller ones count as 0, larger ones are NULL (`checked`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from hubbub._typing import override
from hubbub.errors import QueryError
from hubbub.sql.emit.dialect import Dialect, Spelling, constant_of, power
from hubbub.sql.text.functions import WRITE
from hubbub.tables.columns import BLANKS
from hubbub.tables.growth import CUT, NAME
from hubbub.tables.kinds import Kind
from hubbub.tables.patterns import LOOKED_AT

__all__ = ["LONG", "POSTGRES", "Postgres"]

LONG: Final = CUT
"""Bytes from which on a unit is named by its beginning and its SHA-256."""
_SPACE = "[ \\t\\n\\r\\f\\v]*"
_LEAP = "(([0-9][0-9](0[48]|[2468][048]|[13579][26]))|((0[48]|[2468][048]|[13579][26])00))"
DAY: Final = (
    "(([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    f"|02-(0[1-9]|1[0-9]|2[0-8])))|{_LEAP}-02-29)"
)
"""A day of the Gregorian calendar in the years 0 to 9999, as ISO 8601 writes it."""
TIME: Final = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
DECIMAL: Final = "[+-]?([0-9]{1,250}([.][0-9]{0,250})?|[.][0-9]{1,250})([eE][+-]?[0-9]{1,3})?"
TRUE_WORDS: Final = ("true", "t", "yes", "y", "1")
FALSE_WORDS: Final = ("false", "f", "no", "n", "0")
_SECONDS = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_WHOLE = "BETWEEN CAST('-9223372036854775808' AS numeric) AND CAST('9223372036854775807' AS numeric)"


class Postgres(Dialect):
    """fold: the collation whose rules LOWER, UPPER and ILIKE follow; "C" knows ASCII alone.

    encoding: that of the database, as Postgres calls it: UTF8 or LATIN1.
    """

    name = "postgres"
    spelling = Spelling("octet_length", end_of_text=r"\Z", fence="\n  OFFSET 0")
    types: ClassVar[dict[Kind, str]] = {
        Kind.INTEGER: "bigint",
        Kind.NUMBER: "double precision",
        Kind.TEXT: "text",
        Kind.BOOLEAN: "boolean",
        Kind.DATE: "date",
        Kind.TIMESTAMP: "timestamp",
    }
    checked = True
    full_joins = False

    def __init__(self, fold: str = "C", *, encoding: str = "UTF8") -> None:
        self.fold, self.encoding = fold, encoding

    @override
    def tried(self, sql: str) -> str:
        return sql

    def holds(self, value: str) -> bool:
        """Whether a text of the database can be this one."""
        try:
            value.encode("latin-1" if self.encoding == "LATIN1" else "utf-8")
        except UnicodeEncodeError:
            return False
        return "\0" not in value

    @override
    def leaf_column(self, name: str, place: int) -> str:
        # The server cuts a name at 63 bytes: two of them may be one there.
        return f"p{place}"

    @override
    def literal(self, value: str) -> str:
        if not self.holds(value):
            why = "a zero byte" if "\0" in value else f"characters that its encoding, {self.encoding}, does not have"
            shown = ascii(value) if len(value) <= 40 else f"{value[:40]!a}..."
            raise QueryError(
                f"the text {shown} cannot stand in a text of this database: it has {why}. No row has it; leave it out "
                "of the question, or of the declared keys. Nothing was charged."
            )
        return "'" + value.replace("'", "''") + "'"

    @override
    def text(self, value: str) -> str:
        return f'(CAST({self.literal(value)} AS text) COLLATE "C")'

    @override
    def like(self, operand: str, parts: tuple[str, ...], ignore_case: bool) -> str:
        pattern = self.text("".join(p if p[0] != "=" else _escaped(p[1:]) for p in parts))
        if not ignore_case:
            return f"({operand} LIKE {pattern} ESCAPE '\\')"
        return f"({self._folded('lower', operand)} LIKE {self._folded('lower', pattern)} ESCAPE '\\')"

    def _folded(self, word: str, sql: str) -> str:
        return f'({word}({sql} COLLATE "{self.fold}") COLLATE "C")'

    @override
    def finite(self, sql: str) -> str:
        return sql  # operands are kept in a range in which no result is infinite

    @override
    def divisor(self, sql: str) -> str:
        return f"nullif({sql}, 0)"

    @override
    def not_nan(self, sql: str) -> str:
        return f"nullif({sql}, CAST('NaN' AS double precision))"

    @override
    def unit_double(self, sql: str) -> str:
        return f"(nullif({self.double(sql)}, CAST('NaN' AS double precision)) + 0.0)"

    @override
    def unit_text(self, sql: str) -> str:
        """No text beside it fits into the gigabyte of a value; a long one ends with its SHA-256, which no short one is
        as long as."""
        bytes_of = f"convert_to({sql}, '{self.encoding}')"  # the database's own: nothing is converted
        long = f"left({sql}, {LONG}) || encode(sha256({bytes_of}), 'hex')"
        return f'((CASE WHEN octet_length({sql}) > {LONG} THEN {long} ELSE {sql} END) COLLATE "C")'

    @override
    def unit(self, sql: str, physical: str) -> str:
        if physical == "BLOB":  # as text twice as long, and more than a gigabyte is an error
            long = f"'x' || encode(sha256({sql}), 'hex')"  # the others begin with a backslash
            return f'((CASE WHEN octet_length({sql}) > {LONG} THEN {long} ELSE CAST({sql} AS text) END) COLLATE "C")'
        if physical == "DECIMAL":  # 1 and 1.0 are equal, and yet two texts; NaN is nobody
            return f"nullif(trim_scale({sql}), CAST('NaN' AS numeric))"
        return sql

    @override
    def unit_name(self, sql: str, unit_type: str) -> str:
        if unit_type not in ("text", "blob", "decimal"):  # bytes are their digits here
            return sql
        sql = self.column_text(sql) if unit_type == "decimal" else sql  # up to 131,072 digits
        long = f"'x' || encode(sha256(convert_to({sql}, '{self.encoding}')), 'hex')"
        return f'((CASE WHEN octet_length({sql}) > {NAME} THEN {long} ELSE {sql} END) COLLATE "C")'

    @override
    def own(self, sql: str, kind: Kind) -> str:
        return f"bool_or({sql})" if kind is Kind.BOOLEAN else f"min({sql})"

    @override
    def decimal(self, sql: str) -> str:
        return _within_double(sql)

    @override
    def column_text(self, sql: str) -> str:
        return f'(CAST({sql} AS text) COLLATE "C")'

    @override
    def instant(self, sql: str) -> str:
        return f"({sql} AT TIME ZONE 'UTC')"

    @override
    def whole_text(self, sql: str) -> str:
        # A pattern takes four bytes for each character, and none beyond a gigabyte.
        return f"(CASE WHEN octet_length({sql}) <= {LONG} THEN {sql} ~ '^{_SPACE}[+-]?[0-9]{{1,250}}{_SPACE}$' END)"

    @override
    def cast(self, sql: str, kind: Kind, to: Kind) -> str:
        if kind is to or kind is Kind.NULL:
            return f"CAST({sql} AS {self.types[to]})"
        rule = _CASTS.get((kind, to))
        if rule is None:
            return f"CAST(NULL AS {self.types[to]})"
        return rule(sql)

    @override
    def steps(self, x: str, exponent: int) -> str:
        return self.double(x)

    @override
    def clamped(self, x: str, exponent: int, floor: int, ceiling: int, centre: int, missing: str) -> str:
        """Compared before it is multiplied: the product neither overflows nor underflows."""
        # A floor of 0 is met by -0.4 steps, too: the ends are whole steps, exact as doubles.
        low, high, half = floor * power(exponent), ceiling * power(exponent), power(exponent - 1)
        kind = (
            "integer" if max(abs(floor), abs(ceiling), abs(floor - centre), abs(ceiling - centre)) < 2**31 else "bigint"
        )
        return (
            f"CASE WHEN {x} IS NULL THEN {missing} WHEN {x} <= {self.real(low)} THEN {floor - centre} "
            f"WHEN {x} >= {self.real(high)} THEN {ceiling - centre} WHEN abs({x}) <= {self.real(half)} THEN {-centre} "
            f"ELSE CAST(round({x} * {self.real(power(-exponent))}) AS {kind}) - ({centre}) END"
        )

    @override
    def on_grid(self, x: str, exponent: int) -> str:
        x = self.double(x)
        top, half = self.real(power(min(exponent + 62, 1023))), self.real(power(exponent - 1))
        return (
            f"(CASE WHEN abs({x}) < {half} THEN 0 WHEN abs({x}) < {top} "
            f"THEN CAST(round({x} * {self.real(power(-exponent))}) AS bigint) END)"
        )

    @override
    def millionths(self, x: str) -> str:
        """A whole number of millionths, rounded half away from zero: a bigint, whose sum is a numeric and exact."""
        x = self.double(x)
        whole = f"CAST({_half_away(f'{x} * 1000000')} AS bigint)"
        return f"(CASE WHEN abs({x}) < 1e-9 THEN 0 WHEN abs({x}) < 1e12 THEN {whole} END)"

    @override
    def real_total(self, total: str) -> str:
        return self.double(f"({total} * 0.000001)")  # of a numeric: exact until it is made a double

    @override
    def total_as(self, total: str, kind: Kind) -> str:
        if kind is Kind.INTEGER:
            return f"(CASE WHEN {total} {_WHOLE} THEN CAST({total} AS bigint) END)"
        return f"CAST({total} AS {self.types[kind]})"

    @override
    def total(self, sql: str) -> str:
        return f"sum({sql})"

    @override
    def grand_total(self, sql: str) -> str:
        return f"coalesce(sum({sql}), 0)"

    @override
    def product(self, a: str, b: str) -> str:
        return f"(CAST({a} AS bigint) * {b})"

    @override
    def quotient(self, a: str, b: int) -> str:
        return f"{a} / {b}"

    @override
    def rank(self, x: str, cuts: Sequence[float]) -> str:
        return f"width_bucket({x}, CAST('{{{','.join(map(repr, cuts))}}}' AS double precision[]))"

    @override
    def pick(self, values: Sequence[int], place: str) -> str:
        return f"(CAST('{{{','.join(map(str, values))}}}' AS bigint[]))[{place} + 1]"

    @override
    def beside(self, sql: str, kind: Kind) -> str:
        return sql  # a common type is found, or the statement refused before it runs

    @override
    def wide(self, x: str) -> str:
        return f"CAST({x} AS numeric)"

    @override
    def divided(self, a: str, b: str) -> str:
        return f"div({a}, {b})"

    @override
    def scaled(self, total: str, rows: int, count: str) -> str:
        return f"div(CAST({total} AS numeric) * {rows}, greatest({count}, 1))"

    @override
    def hash(self, *parts: str) -> str:
        text = f"concat_ws(chr(31), {', '.join(f'CAST({p} AS text)' for p in parts)})"
        text = text if self.encoding == "UTF8" else f"convert_to({text}, 'UTF8')"
        return f'md5({text}) COLLATE "C"'

    @override
    def first(self, source: str, columns: str, partition: str, order: str, bound: int) -> str:
        return (
            f"  SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY {partition} ORDER BY {order}) "
            f"AS place FROM {source}) AS ranked\n  WHERE place <= {bound}"
        )

    @override
    def meets(self, key: str, domain: str, kind: Kind, nullable: bool) -> str:
        """As equalities, which can be hashed: IS NOT DISTINCT FROM would compare every row with every group."""
        if not nullable:
            return f"{key} = {domain}.key"
        zero = _ZERO[kind]
        return f"({key} IS NULL) = ({domain}.key IS NULL) AND coalesce({key}, {zero}) = coalesce({domain}.key, {zero})"

    @override
    def extreme(self, word: str, x: str, kind: Kind) -> str:
        if word == "median":
            return self.not_nan(f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {self.double(x)})")
        if kind is Kind.NULL:
            return self.null(kind)
        if kind is Kind.BOOLEAN:
            return f"{'bool_and' if word == 'min' else 'bool_or'}({x})"
        chosen = f"{word}({x})"
        if kind is Kind.TEXT:
            return f'({chosen} COLLATE "C")'
        # Whole numbers that are computed are doubles, which may be beyond 64 bits.
        fits = f"WHEN {chosen} >= -9223372036854775808 AND {chosen} < 9223372036854775808 " * (kind is Kind.INTEGER)
        made = f"CAST({chosen} AS {self.types[kind]})"
        return f"(CASE {fits}THEN {made} END)" if fits else made

    @override
    def call(self, name: str, arguments: Sequence[str], kinds: Sequence[Kind]) -> str:
        a = list(arguments)
        if name.startswith("CAST_"):
            return self.cast(a[0], kinds[0], Kind[name.removeprefix("CAST_")])
        if name in ("LOWER", "UPPER"):
            return self._folded(name.lower(), a[0])
        if name in _TRIMS:
            return f"{_TRIMS[name]}({a[0]}, '{''.join(filter(self.holds, BLANKS))}')"
        sql = _FUNCTIONS[name](a)
        return self.in_years(sql, Kind.TIMESTAMP) if name == "DATE_ADD" else sql

    @override
    def _moment(self, value: dt.datetime) -> str:
        return f"CAST('{value.isoformat(sep=' ')}' AS timestamp)"

    # As DuckDB writes it

    @override
    def quote(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    @override
    def double(self, sql: str) -> str:
        return f"CAST({sql} AS {self.types[Kind.NUMBER]})"

    @override
    def floor(self, sql: str, *, toward_zero: bool = False) -> str:
        return f"{'trunc' if toward_zero else 'floor'}({sql})"

    @override
    def row_number(self) -> str:
        return "row_number() OVER ()"

    @override
    def whole_sum(self, x: str) -> str:
        return x

    @override
    def same(self, a: str, b: str) -> str:
        return f"{a} IS NOT DISTINCT FROM {b}"

    @override
    def semi(self, columns: str, left: str, right: str, on: str, negated: bool) -> str:
        word = "NOT EXISTS" if negated else "EXISTS"
        return f"  SELECT {columns} FROM {left} AS a\n  WHERE {word} (SELECT 1 FROM {right} AS b WHERE {on})"


_TRIMS: Final = {"TRIM": "btrim", "LTRIM": "ltrim", "RTRIM": "rtrim"}
_ZERO = {
    Kind.INTEGER: "0",
    Kind.NUMBER: "0",
    Kind.TEXT: "CAST('' AS text) COLLATE \"C\"",
    Kind.BOOLEAN: "FALSE",
    Kind.DATE: "DATE '2000-01-01'",
    Kind.TIMESTAMP: "CAST('2000-01-01' AS timestamp)",
}


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\%_" else c for c in text)


def _within_double(numeric: str) -> str:
    """A numeric as a double; too large is NULL, too small is 0. NaN is larger than any number."""
    return (
        f"(CASE WHEN abs({numeric}) < 1e-290 THEN 0 WHEN abs({numeric}) < 1.7e308 "
        f"THEN CAST({numeric} AS double precision) END)"
    )


def _half_away(x: str) -> str:
    """A double rounded to a whole one, halves away from zero."""
    return f"(trunc({x}) + CASE WHEN abs({x} - trunc({x})) >= 0.5 THEN sign({x}) ELSE 0 END)"


def _text_number(sql: str) -> str:
    value = _within_double(f"CAST({sql} AS numeric)")
    return f"(CASE WHEN {sql} ~ '^{_SPACE}{DECIMAL}{_SPACE}$' THEN {value} END)"


def _text_integer(sql: str) -> str:
    number = f"round(CAST({sql} AS numeric))"
    return (
        f"(CASE WHEN {sql} ~ '^{_SPACE}{DECIMAL}{_SPACE}$' THEN CASE WHEN {number} {_WHOLE} "
        f"THEN CAST({number} AS bigint) END END)"
    )


def _number_integer(sql: str) -> str:
    x = f"CAST({sql} AS double precision)"
    return f"(CASE WHEN {x} >= -9223372036854775808 AND {x} < 9223372036854775808 THEN CAST({x} AS bigint) END)"


def _text_boolean(sql: str) -> str:
    yes, no = (", ".join(f"'{w}'" for w in words) for words in (TRUE_WORDS, FALSE_WORDS))
    return f"(CASE WHEN lower({sql}) IN ({yes}) THEN TRUE WHEN lower({sql}) IN ({no}) THEN FALSE END)"


def _text_time(target: str, pattern: str) -> Callable[[str], str]:
    def rule(sql: str) -> str:
        # The year 0 is none; a text with another shape is never cast.
        year = f"{sql} !~ '^{_SPACE}0000'"
        return f"(CASE WHEN {sql} ~ '^{_SPACE}{pattern}{_SPACE}$' AND {year} THEN CAST({sql} AS {target}) END)"

    return rule


def _number_text(sql: str) -> str:
    """A double as its shortest decimal, with a point."""
    text = f'(CAST({sql} + 0.0 AS text) COLLATE "C")'  # -0.0 is equal to 0.0, and its text must be too
    return f"(CASE WHEN {text} ~ '^-?[0-9]+$' THEN {text} || '.0' ELSE {text} END)"


def _plain(target: str) -> Callable[[str], str]:
    return lambda sql: f"CAST({sql} AS {target})"


def _as_text(sql: str) -> str:
    return f'(CAST({sql} AS text) COLLATE "C")'


_TRUTH = "(CASE WHEN {0} THEN 1 WHEN NOT {0} THEN 0 END)"
_CASTS: Final[dict[tuple[Kind, Kind], Callable[[str], str]]] = {
    (Kind.NUMBER, Kind.INTEGER): _number_integer,
    (Kind.TEXT, Kind.INTEGER): _text_integer,
    (Kind.BOOLEAN, Kind.INTEGER): lambda s: f"CAST({_TRUTH.format(s)} AS bigint)",
    (Kind.INTEGER, Kind.NUMBER): _plain("double precision"),
    (Kind.TEXT, Kind.NUMBER): _text_number,
    (Kind.BOOLEAN, Kind.NUMBER): lambda s: f"CAST({_TRUTH.format(s)} AS double precision)",
    (Kind.INTEGER, Kind.TEXT): _as_text,
    (Kind.NUMBER, Kind.TEXT): _number_text,
    (Kind.BOOLEAN, Kind.TEXT): _as_text,
    (Kind.DATE, Kind.TEXT): _as_text,
    (Kind.TIMESTAMP, Kind.TEXT): _as_text,
    (Kind.INTEGER, Kind.BOOLEAN): lambda s: f"({s} <> 0)",
    (Kind.NUMBER, Kind.BOOLEAN): lambda s: f"({s} <> 0)",
    (Kind.TEXT, Kind.BOOLEAN): _text_boolean,
    (Kind.TEXT, Kind.DATE): _text_time("date", f"{DAY}([T ]{TIME})?"),
    (Kind.TIMESTAMP, Kind.DATE): _plain("date"),
    (Kind.TEXT, Kind.TIMESTAMP): _text_time("timestamp", f"{DAY}([T ]{TIME}Z?)?"),
    (Kind.DATE, Kind.TIMESTAMP): _plain("timestamp"),
}
"""A total cast for each pair of kinds that has one."""


def _round(a: list[str]) -> str:
    places = int(a[1].strip("()")) if len(a) > 1 else 0
    if places == 0:
        return _half_away(a[0])
    if abs(places) > 15:
        return a[0] if places > 0 else f"({a[0]} * 0)"
    if places > 0:
        return f"({_half_away(f'({a[0]} * {10**places})')} / {10**places})"
    return f"({_half_away(f'({a[0]} / {10**-places})')} * {10**-places})"


def whole_constant(text: str) -> int:
    """A constant number of characters, within 32 bits."""
    return max(-(2**31) + 2, min(2**31 - 2, int(float(text.strip("()")))))


def _substr(a: list[str]) -> str:
    s, start = a[0], whole_constant(a[1])
    length = whole_constant(a[2]) if len(a) > 2 else None
    first = str(start) if start >= 0 else f"(length({s}) + {start + 1})"
    if length is None:
        return f"substr({s}, greatest({first}, 1))"
    if length >= 0:
        # Places before the first character count as taken.
        return (
            f"substr({s}, greatest({first}, 1), greatest({length} + least({first} - 1, 0), 0))"
            if start < 0
            else (f"substr({s}, {max(start, 1)}, {max(length - (start < 1), 0)})")
        )
    end = f"greatest({first} - 1, 0)"
    return f"substr({s}, greatest({end} + 1 - {-length}, 1), least({end}, {-length}))"


def _date_trunc(a: list[str]) -> str:
    return f"date_trunc('{constant_of(a[0]).lower()}', CAST({a[1]} AS timestamp))"


def _time_bucket(a: list[str]) -> str:
    """Buckets are counted from Monday 2000-01-03, as by DuckDB, and so are those before it."""
    return f"date_bin(interval '{whole_width(a[0])} microseconds', CAST({a[1]} AS timestamp), timestamp '2000-01-03')"


def whole_width(text: str) -> int:
    """A constant number of microseconds."""
    return int(text.strip("()"))


def _extract(a: list[str]) -> str:
    return f"CAST(floor(extract({constant_of(a[0]).lower()} FROM CAST({a[1]} AS timestamp))) AS bigint)"


def _date_diff(a: list[str]) -> str:
    unit, x, y = constant_of(a[0]), a[1], a[2]

    def part(name: str, operand: str) -> str:
        return f"CAST(extract({name} FROM {operand}) AS bigint)"

    if unit in ("YEAR", "QUARTER", "MONTH"):
        times = {"YEAR": 1, "QUARTER": 4, "MONTH": 12}[unit]
        rest = "" if unit == "YEAR" else f" + {part(unit.lower(), y)} - {part(unit.lower(), x)}"
        return f"(({part('year', y)} - {part('year', x)}) * {times}{rest})"
    if unit in ("DAY", "WEEK"):
        days = f"(CAST({y} AS date) - CAST({x} AS date))"
        return f"CAST({days} / 7 AS bigint)" if unit == "WEEK" else f"CAST({days} AS bigint)"
    if unit == "MICROSECOND":  # part by part: in old versions the epoch is a double
        parts = [("hour", 3_600_000_000), ("minute", 60_000_000), ("microseconds", 1)]
        rest = "".join(f" + ({part(name, y)} - {part(name, x)}) * {times}" for name, times in parts)
        return f"(CAST(CAST({y} AS date) - CAST({x} AS date) AS bigint) * 86400000000{rest})"
    ends = [f"floor(extract(epoch FROM date_trunc('{unit.lower()}', {t})) / {_SECONDS[unit]})" for t in (y, x)]
    return f"CAST({ends[0]} - {ends[1]} AS bigint)"


_AS_DUCKDB: Final = "ABS CEIL COALESCE CONCAT FLOOR GREATEST LEAST LENGTH NULLIF REPLACE SPLIT_PART STARTS_WITH".split()
"""The functions that are written as for DuckDB."""

_FUNCTIONS: Final[dict[str, Callable[[list[str]], str]]] = {
    **{name: WRITE[name] for name in _AS_DUCKDB},
    "SIGN": lambda a: f"sign({a[0]})",
    "ROUND": _round,
    "SQRT": lambda a: f"(CASE WHEN {a[0]} >= 0 THEN sqrt({a[0]}) END)",
    "EXP": lambda a: f"(CASE WHEN {a[0]} < -690 THEN 0 WHEN {a[0]} <= 709.78271289338 THEN exp({a[0]}) END)",
    "LN": lambda a: f"(CASE WHEN {a[0]} > 0 THEN ln({a[0]}) END)",
    "LOG10": lambda a: f"(CASE WHEN {a[0]} > 0 THEN log({a[0]}) END)",
    "REVERSE": lambda a: f"reverse({a[0]})",
    "LEFT": lambda a: f"left({a[0]}, {whole_constant(a[1])})",
    "RIGHT": lambda a: f"right({a[0]}, {whole_constant(a[1])})",
    "SUBSTR": _substr,
    "ENDS_WITH": lambda a: f"(right({a[0]}, length({a[1]})) = {a[1]})",
    "CONTAINS": lambda a: f"(strpos({a[0]}, {a[1]}) > 0)",
    "DATE_TRUNC": _date_trunc,
    "TIME_BUCKET": _time_bucket,
    "LAST_DAY": lambda a: f"CAST(date_trunc('month', CAST({a[0]} AS timestamp)) + interval '1 month - 1 day' AS date)",
    "EXTRACT": _extract,
    "DATE_DIFF": _date_diff,
    "DATE_ADD": lambda a: f"(CAST({a[2]} AS timestamp) + {a[1]} * CAST('1 {constant_of(a[0]).lower()}' AS interval))",
    "REGEXP_MATCHES": lambda a: f"(left({a[0]}, {LOOKED_AT}) ~ {a[1]})",
}

POSTGRES: Final = Postgres()
