"""Spark (4.0 and later), the same whether ANSI mode is on or off, and in any session time zone.

Arithmetic of doubles is IEEE's, as in DuckDB. What ANSI mode raises on (division by 0, casts, whole numbers that do
not fit) stands behind a CASE, and below that is a `try_` form. Times are TIMESTAMP_NTZ, which no time zone moves. Sums
of whole numbers are decimals of 38 digits.

Of a text that somebody wrote only letters, digits and a few signs stand between quotes; all else is written by its
bytes, so that nothing reads it in another way: neither the lexer (whether a backslash is an escape is a setting) nor
what rewrites a statement before it (`${env:HOME}`, markers of parameters). Names of columns with more than small
letters, digits and `_` are written by their bytes, too.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from hubbub._typing import override
from hubbub.engines.postgres.dialect import DAY, DECIMAL, FALSE_WORDS, LONG, TIME, TRUE_WORDS, whole_constant
from hubbub.engines.spark.like import in_segments, linear
from hubbub.sql.emit.dialect import Dialect, Spelling, constant_of, power
from hubbub.sql.text.functions import WRITE
from hubbub.tables.columns import BLANKS
from hubbub.tables.growth import NAME
from hubbub.tables.kinds import Kind
from hubbub.tables.patterns import LOOKED_AT

__all__ = ["SPARK", "Spark"]

_HALF = f"CAST({10**19} AS DECIMAL(38, 0))"
_SPACE = "[ \t\n\r\f\v]*"


class Spark(Dialect):
    name = "spark"
    checked = False
    spelling = Spelling("octet_length", null_last=" NULLS LAST")
    types: ClassVar[dict[Kind, str]] = {
        Kind.INTEGER: "BIGINT",
        Kind.NUMBER: "DOUBLE",
        Kind.TEXT: "STRING",
        Kind.BOOLEAN: "BOOLEAN",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP_NTZ",
    }

    def shown_as(self, name: str) -> str:
        """The name under which the engine shows a column: it has small letters, digits and _ alone.

        >>> SPARK.shown_as("ward"), SPARK.shown_as("Größe")
        ('ward', 'x_4772c3b6c39f65')
        """
        plain = _NAME.fullmatch(name) and not name.startswith("x_")
        return name if plain else f"x_{name.encode('utf-8', 'surrogatepass').hex()}"

    @override
    def quote(self, name: str) -> str:
        return f"`{self.shown_as(name)}`"

    @override
    def tried(self, sql: str) -> str:
        return sql

    @override
    def literal(self, value: str) -> str:
        return _literal(value)

    @override
    def _moment(self, value: dt.datetime) -> str:
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"

    @override
    def like(self, operand: str, parts: tuple[str, ...], ignore_case: bool) -> str:
        if linear(parts):
            spelt = "".join(p if p[0] != "=" else "".join(_escaped(c) for c in p[1:]) for p in parts)
            word, pattern, escape = "LIKE", _literal(spelt), " ESCAPE '!'"
        else:
            word, pattern, escape = "RLIKE", _literal(in_segments(parts)), ""
        if ignore_case:
            operand, pattern = f"lower({operand})", f"lower({pattern})"
        return f"({operand} {word} {pattern}{escape})"

    @override
    def finite(self, sql: str) -> str:
        return f"(CASE WHEN abs({sql}) < double('Infinity') THEN {sql} END)"

    @override
    def divisor(self, sql: str) -> str:
        return f"(CASE WHEN abs({sql}) < double('Infinity') AND {sql} <> 0 THEN {sql} END)"

    @override
    def floor(self, sql: str, *, toward_zero: bool = False) -> str:
        return _whole(sql, f"try_cast({sql} AS BIGINT)" if toward_zero else f"floor({sql})")

    @override
    def unit_double(self, sql: str) -> str:
        return f"(CASE WHEN isnan({sql}) THEN NULL ELSE {self.double(sql)} + 0.0D END)"

    @override
    def decimal(self, sql: str) -> str:
        return self.double(sql)

    @override
    def column_text(self, sql: str) -> str:
        """What is not UTF-8 is NULL: as bytes texts are told apart that are one text (U+FFFD) once they leave Spark."""
        text = f"try_cast({sql} AS STRING)"
        return f"(CASE WHEN is_valid_utf8({text}) THEN {text} END)"

    @override
    def unit_text(self, sql: str) -> str:
        """As for Postgres: no text beside it fits into an array of 2 GiB."""
        long = f"concat(left({sql}, {LONG}), sha2(CAST({sql} AS BINARY), 256))"
        return f"(CASE WHEN octet_length({sql}) > {LONG} THEN {long} ELSE {sql} END)"

    @override
    def unit(self, sql: str, physical: str) -> str:
        """An instant by its microseconds: its text depends on the time zone. Bytes by their digits, many by a hash."""
        match physical:
            case "TIMESTAMP WITH TIME ZONE":
                return f"unix_micros({sql})"
            case "BLOB":
                long = f"concat('x', sha2({sql}, 256))"
                return f"(CASE WHEN octet_length({sql}) > {LONG} THEN {long} ELSE hex({sql}) END)"
        return sql

    @override
    def unit_name(self, sql: str, unit_type: str) -> str:
        long = f"concat('x', sha2(CAST({sql} AS BINARY), 256))"
        named = f"(CASE WHEN octet_length({sql}) > {NAME} THEN {long} ELSE {sql} END)"
        return named if unit_type in ("text", "blob") else sql  # bytes are their digits here

    @override
    def instant(self, sql: str) -> str:
        moment = f"try_add(TIMESTAMP_NTZ '1970-01-01 00:00:00', unix_micros({sql}) * INTERVAL '0.000001' SECOND)"
        return f"(CASE WHEN unix_micros({sql}) BETWEEN -62135596800000000 AND 253402300799999999 THEN {moment} END)"

    @override
    def whole_text(self, sql: str) -> str:
        return _matches(sql, "[+-]?[0-9]{1,250}")

    @override
    def row_number(self) -> str:
        return "monotonically_increasing_id()"

    @override
    def cast(self, sql: str, kind: Kind, to: Kind) -> str:
        if kind is to or kind is Kind.NULL:
            return f"try_cast({sql} AS {self.types[to]})"
        rule = _CASTS.get((kind, to))
        return f"CAST(NULL AS {self.types[to]})" if rule is None else rule(sql)

    @override
    def double(self, sql: str) -> str:
        return f"try_cast({sql} AS DOUBLE)"

    @override
    def steps(self, x: str, exponent: int) -> str:
        return f"rint({self.double(x)} * {self.real(power(-exponent))})"

    @override
    def clamped(self, x: str, exponent: int, floor: int, ceiling: int, centre: int, missing: str) -> str:
        return (
            f"CASE WHEN {x} IS NULL OR isnan({x}) THEN {missing} WHEN {x} <= {floor} THEN {floor - centre}L "
            f"WHEN {x} >= {ceiling} THEN {ceiling - centre}L ELSE try_subtract(try_cast({x} AS BIGINT), {centre}L) END"
        )

    @override
    def on_grid(self, x: str, exponent: int) -> str:
        return _number_integer(f"rint({self.double(x)} * {self.real(power(-exponent))})", wide=True)

    @override
    def millionths(self, x: str) -> str:
        """A whole number of millionths, rounded half away from zero."""
        x = self.double(x)
        whole = f"try_cast({_half_away(f'{x} * 1000000')} AS BIGINT)"
        return f"(CASE WHEN abs({x}) < 1e12D THEN try_cast({whole} AS DECIMAL(28, 0)) END)"

    @override
    def real_total(self, total: str) -> str:
        return f"({self.double(total)} / 1000000)"

    @override
    def total_as(self, total: str, kind: Kind) -> str:
        if kind is Kind.INTEGER:
            return f"(CASE WHEN {total} BETWEEN {-(2**63)} AND {2**63 - 1} THEN try_cast({total} AS BIGINT) END)"
        return f"try_cast({total} AS {self.types[kind]})"

    @override
    def whole_sum(self, x: str) -> str:
        return f"try_cast({x} AS DECIMAL(28, 0))"

    @override
    def total(self, sql: str) -> str:
        return f"sum(try_cast({sql} AS DECIMAL(28, 0)))"

    @override
    def grand_total(self, sql: str) -> str:
        return f"coalesce(sum(try_cast({sql} AS DECIMAL(28, 0))), 0)"

    @override
    def beside(self, sql: str, kind: Kind) -> str:
        return sql  # a common type is found, or the statement refused before it runs

    @override
    def wide(self, x: str) -> str:
        return f"try_cast({x} AS DECIMAL(38, 0))"

    @override
    def divided(self, a: str, b: str) -> str:
        """Spark's `div` ends at 64 bits, its `/` after as few as 20 digits: what is beyond goes in two halves.

        With E = 10^19, h = a div E and r = h % b, a / b is (h / b) E + (r E + a % E) / b. For b >= 1 and |a| <= 2^126
        each quotient has at most 19 digits, and |r E + a % E| <= |a|.
        """
        a, b = self.wide(a), self.wide(b)
        short = f"abs({self.double(a)}) < 9e18D * {self.double(b)}"
        high, low = _quotient(a, _HALF), f"({a} % {_HALF})"
        rest = f"try_add(try_multiply({high} % {b}, {_HALF}), {low})"
        long = f"try_add(try_multiply({_quotient(high, b)}, {_HALF}), {_quotient(rest, b)})"
        both = (f"try_cast({q} AS DECIMAL(38, 0))" for q in (f"{a} div {b}", long))
        return f"(CASE WHEN {short} THEN {next(both)} ELSE {next(both)} END)"

    @override
    def quotient(self, a: str, b: int) -> str:
        return f"{a} div {b}"

    @override
    def rank(self, x: str, cuts: Sequence[float]) -> str:
        # A binary search: Spark compiles each test of a `CASE`, for 512 cuts in seconds.
        listed = self._listed(cuts, "DOUBLE")
        steps = ", ".join(str(1 << i) for i in reversed(range(len(cuts).bit_length())))
        step = f"p + s <= {len(cuts)} AND element_at({listed}, least(p + s, {len(cuts)})) <= {x}"
        return f"aggregate(array({steps}), 0, (p, s) -> CASE WHEN {step} THEN p + s ELSE p END)" if cuts else "0"

    def _listed(self, values: Sequence[float], form: str) -> str:
        """Public numbers as one word: Spark parses, checks and compiles each that is written by itself."""
        return f"CAST(split('{','.join(map(repr, values))}', ',') AS ARRAY<{form}>)"

    @override
    def pick(self, values: Sequence[int], place: str) -> str:
        return f"element_at({self._listed(values, 'BIGINT')}, CAST({place} + 1 AS INT))"

    @override
    def scaled(self, total: str, rows: int, count: str) -> str:
        rows_of = f"try_cast(greatest({count}, 1) AS DECIMAL(20, 0))"
        return f"try_cast(try_multiply({total}, {rows}) div {rows_of} AS DECIMAL(38, 0))"

    @override
    def hash(self, *parts: str) -> str:
        return f"md5(CAST(concat_ws(chr(31), {', '.join(f'CAST({p} AS STRING)' for p in parts)}) AS BINARY))"

    @override
    def first(self, source: str, columns: str, partition: str, order: str, bound: int) -> str:
        return (
            f"  SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY {partition} ORDER BY {order}) "
            f"AS place FROM {source}) AS ranked\n  WHERE place <= {bound}"
        )

    @override
    def same(self, a: str, b: str) -> str:
        return f"{a} <=> {b}"

    @override
    def semi(self, columns: str, left: str, right: str, on: str, negated: bool) -> str:
        word = "LEFT ANTI JOIN" if negated else "LEFT SEMI JOIN"
        return f"  SELECT {columns} FROM {left} AS a {word} {right} AS b ON {on}"

    @override
    def extreme(self, word: str, x: str, kind: Kind) -> str:
        if word == "median":
            return self.not_nan(f"percentile({self.double(x)}, 0.5D)")
        return f"try_cast({word}({x}) AS {self.types.get(kind, 'BIGINT')})"

    @override
    def call(self, name: str, arguments: Sequence[str], kinds: Sequence[Kind]) -> str:
        a = list(arguments)
        if name.startswith("CAST_"):
            return self.cast(a[0], kinds[0], Kind[name.removeprefix("CAST_")])
        sql = _FUNCTIONS[name](a)
        return self.in_years(sql, Kind.TIMESTAMP) if name == "DATE_ADD" else sql

    # As DuckDB writes it

    @override
    def leaf_column(self, name: str, place: int) -> str:
        return self.quote(name)

    @override
    def text(self, value: str) -> str:
        return self.literal(value)

    @override
    def not_nan(self, sql: str) -> str:
        return f"(CASE WHEN isnan({sql}) THEN NULL ELSE {sql} END)"

    @override
    def own(self, sql: str, kind: Kind) -> str:
        return f"min({sql})"

    @override
    def product(self, a: str, b: str) -> str:
        return self.tried(f"({a} * {b})")

    @override
    def meets(self, key: str, domain: str, kind: Kind, nullable: bool) -> str:
        return self.same(key, f"{domain}.key")


def _quotient(a: str, b: str) -> str:
    """a / b of whole decimals, truncated toward zero, where it has at most 20 digits."""
    return f"try_cast(try_divide(try_subtract({a}, {a} % {b}), {b}) AS DECIMAL(38, 0))"


_NAME: Final = re.compile("[a-z][a-z0-9_]*")
_SIGNS: Final = frozenset(" _.,:-+/%!=@")


def _literal(value: str) -> str:
    """A text: letters, digits and a few signs in quotes, the rest by its bytes in UTF-8.

    >>> _literal("it's ${HOME}")
    "concat('it', CAST(X'27' AS STRING), 's ', CAST(X'247B' AS STRING), 'HOME', CAST(X'7D' AS STRING))"
    """
    parts = []
    for plain, run in itertools.groupby(value, lambda c: c.isalnum() or c in _SIGNS):
        text = "".join(run)
        parts.append(
            f"'{text}'" if plain else f"CAST(X'{text.encode('utf-8', 'surrogatepass').hex().upper()}' AS STRING)"
        )
    return "''" if not parts else parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"


def _whole(x: str, part: str) -> str:
    """What is made of a double as a whole number of 64 bits; from 2^52 on every double is whole."""
    return f"(CASE WHEN abs({x}) < 4503599627370496D THEN try_cast({part} AS DOUBLE) ELSE {x} END)"


def _escaped(c: str) -> str:
    return f"!{c}" if c in "!%_" else c


def _half_away(x: str) -> str:
    """A double below 2^52 rounded to a whole one, halves away from zero."""
    low = f"try_cast(floor(abs({x})) AS DOUBLE)"
    return f"(signum({x}) * ({low} + CASE WHEN abs({x}) - {low} >= 0.5D THEN 1D ELSE 0D END))"


def _number_integer(sql: str, *, wide: bool = False) -> str:
    value = f"try_cast(rint({sql}) AS BIGINT)"
    value = f"try_cast({value} AS DECIMAL(28, 0))" if wide else value
    return f"(CASE WHEN {sql} >= -9223372036854775808D AND {sql} < 9223372036854775808D THEN {value} END)"


def _matches(sql: str, pattern: str) -> str:
    """Whether all of a text is as a pattern of our own says, but for blanks around it.

    Nothing at all may follow: Java's `$` stands before a last line's end, too, U+2028 and U+0085 among them.
    """
    return f"{sql} RLIKE '(?s)^{_SPACE}{pattern}{_SPACE}(?!.)'"


def _text_number(sql: str) -> str:
    return f"(CASE WHEN {_matches(sql, DECIMAL)} THEN try_cast({sql} AS DOUBLE) END)"


def _text_integer(sql: str) -> str:
    decimal = f"try_cast({sql} AS DECIMAL(38, 10))"
    return f"(CASE WHEN {_matches(sql, DECIMAL)} THEN try_cast(round({decimal}) AS BIGINT) END)"


def _text_boolean(sql: str) -> str:
    yes, no = (", ".join(f"'{w}'" for w in words) for words in (TRUE_WORDS, FALSE_WORDS))
    return f"(CASE WHEN lower({sql}) IN ({yes}) THEN TRUE WHEN lower({sql}) IN ({no}) THEN FALSE END)"


def _text_time(target: str, pattern: str) -> Callable[[str], str]:
    def rule(sql: str) -> str:
        trimmed = f"rtrim('Z', trim({sql}))"
        fits = f"{_matches(sql, pattern)} AND NOT {sql} RLIKE '^ *0000'"
        return f"(CASE WHEN {fits} THEN try_cast({trimmed} AS {target}) END)"

    return rule


def _plain(target: str) -> Callable[[str], str]:
    return lambda sql: f"try_cast({sql} AS {target})"


_CASTS: Final[dict[tuple[Kind, Kind], Callable[[str], str]]] = {
    (Kind.NUMBER, Kind.INTEGER): _number_integer,
    (Kind.TEXT, Kind.INTEGER): _text_integer,
    (Kind.BOOLEAN, Kind.INTEGER): _plain("BIGINT"),
    (Kind.INTEGER, Kind.NUMBER): _plain("DOUBLE"),
    (Kind.TEXT, Kind.NUMBER): _text_number,
    (Kind.BOOLEAN, Kind.NUMBER): _plain("DOUBLE"),
    **{(kind, Kind.TEXT): _plain("STRING") for kind in Kind if kind is not Kind.TEXT},
    # -0.0 is equal to 0.0, and its text must be too: which of them MIN or LAG gives is decided by the order of rows.
    (Kind.NUMBER, Kind.TEXT): lambda s: f"try_cast({s} + 0.0D AS STRING)",
    (Kind.INTEGER, Kind.BOOLEAN): lambda s: f"({s} <> 0)",
    (Kind.NUMBER, Kind.BOOLEAN): lambda s: f"({s} <> 0)",
    (Kind.TEXT, Kind.BOOLEAN): _text_boolean,
    (Kind.TEXT, Kind.DATE): _text_time("DATE", f"{DAY}([T ]{TIME})?"),
    (Kind.TIMESTAMP, Kind.DATE): _plain("DATE"),
    (Kind.TEXT, Kind.TIMESTAMP): _text_time("TIMESTAMP_NTZ", f"{DAY}([T ]{TIME}Z?)?"),
    (Kind.DATE, Kind.TIMESTAMP): _plain("TIMESTAMP_NTZ"),
}
"""A total cast for each pair of kinds that has one."""


def _round(a: list[str]) -> str:
    places, x = int(a[1].strip("()")) if len(a) > 1 else 0, a[0]
    if abs(places) > 15:
        return x if places > 0 else f"({x} * 0)"
    scaled = f"({x} * {10**places}D)" if places >= 0 else f"({x} / {10**-places}D)"
    back = f"/ {10**places}D" if places >= 0 else f"* {10**-places}D"
    near = f"WHEN abs({scaled}) < 4503599627370496D THEN {_half_away(scaled)} {back}"
    # DuckDB scales there and back what is whole already, too.
    return f"(CASE {near} WHEN abs({scaled}) < double('Infinity') THEN {scaled} {back} END)"


def _place(text: str) -> int:
    """A place in a text, or a length of one: a whole number of 32 bits, with room to add others to it."""
    return max(-(2**29), min(2**29, whole_constant(text)))


def _substr(a: list[str]) -> str:
    s, start = a[0], _place(a[1])
    length = _place(a[2]) if len(a) > 2 else None
    first = str(start) if start >= 0 else f"(length({s}) + {start + 1})"
    if length is None:
        return f"substring({s}, greatest({first}, 1))"
    if length >= 0:
        taken = f"greatest({length} + least({first} - 1, 0), 0)"
        return f"substring({s}, greatest({first}, 1), {taken})"
    end = f"greatest({first} - 1, 0)"
    return f"substring({s}, greatest({end} + 1 - {-length}, 1), least({end}, {-length}))"


def _left(a: list[str]) -> str:
    n = _place(a[1])
    return f"substring({a[0]}, 1, {n if n >= 0 else f'greatest(length({a[0]}) - {-n}, 0)'})"


def _right(a: list[str]) -> str:
    n, s = _place(a[1]), a[0]
    return (
        f"substring({s}, greatest(length({s}) - {n} + 1, 1))"
        if n > 0
        else f"substring({s}, {1 - n})"
        if n
        else f"left({s}, 0)"
    )


def _trunc(unit: str, x: str) -> str:
    day = f"try_cast({x} AS DATE)"
    if unit in ("YEAR", "QUARTER", "MONTH", "WEEK"):
        return f"try_cast(trunc({day}, '{unit}') AS TIMESTAMP_NTZ)"
    start = f"try_cast({day} AS TIMESTAMP_NTZ)"
    if unit == "DAY":
        return start
    moment = f"try_cast({x} AS TIMESTAMP_NTZ)"
    seconds = f"hour({moment}) * 3600"
    seconds += f" + minute({moment}) * 60" if unit != "HOUR" else ""
    seconds += f" + second({moment})" if unit == "SECOND" else ""
    return f"timestampadd(SECOND, {seconds}, {start})"


def _time_bucket(a: list[str]) -> str:
    """Buckets are counted from Monday 2000-01-03, as by DuckDB, and so are those before it."""
    width, origin = int(a[0].strip("()")), "TIMESTAMP_NTZ '2000-01-03 00:00:00'"
    since = f"timestampdiff(MICROSECOND, {origin}, try_cast({a[1]} AS TIMESTAMP_NTZ))"
    over = f"pmod({since}, {width}L)"
    return f"timestampadd(MICROSECOND, -{over}, try_cast({a[1]} AS TIMESTAMP_NTZ))"


def _extract(a: list[str]) -> str:
    part, x = constant_of(a[0]), f"try_cast({a[1]} AS TIMESTAMP_NTZ)"
    rule = {
        "WEEK": f"weekofyear({x})",
        "DOW": f"(dayofweek({x}) - 1)",
        "ISODOW": f"(weekday({x}) + 1)",
        "DOY": f"dayofyear({x})",
        "QUARTER": f"quarter({x})",
    }
    return f"try_cast({rule.get(part, f'{part.lower()}({x})')} AS BIGINT)"


def _date_diff(a: list[str]) -> str:
    unit, x, y = constant_of(a[0]), a[1], a[2]
    if unit in ("YEAR", "QUARTER", "MONTH"):
        times = {"YEAR": 1, "QUARTER": 4, "MONTH": 12}[unit]
        rest = "" if unit == "YEAR" else f" + {unit.lower()}({y}) - {unit.lower()}({x})"
        return f"try_cast((year({y}) - year({x})) * {times}{rest} AS BIGINT)"
    if unit in ("DAY", "WEEK"):
        days = f"datediff(try_cast({y} AS DATE), try_cast({x} AS DATE))"
        return f"try_cast({days} div 7 AS BIGINT)" if unit == "WEEK" else f"try_cast({days} AS BIGINT)"
    if unit == "MICROSECOND":
        return f"timestampdiff(MICROSECOND, try_cast({x} AS TIMESTAMP_NTZ), try_cast({y} AS TIMESTAMP_NTZ))"
    return f"timestampdiff({unit}, {_trunc(unit, x)}, {_trunc(unit, y)})"


def _date_add(a: list[str]) -> str:
    """Seconds as days and seconds: a number of units has 32 bits."""
    unit, amount, moment = constant_of(a[0]), int(a[1].strip("()")), f"try_cast({a[2]} AS TIMESTAMP_NTZ)"
    if unit != "SECOND":
        return f"timestampadd({unit}, {amount}, {moment})"
    days, seconds = divmod(amount, 86_400)
    return f"timestampadd(SECOND, {seconds}, timestampadd(DAY, {days}, {moment}))"


_AS_DUCKDB: Final = (
    "ABS COALESCE CONCAT CONTAINS EXP GREATEST LEAST LENGTH LOWER NULLIF REPLACE REVERSE SPLIT_PART SQRT UPPER"
).split()
"""The functions that are written as for DuckDB."""

_FUNCTIONS: Final[dict[str, Callable[[list[str]], str]]] = {
    **{name: WRITE[name] for name in _AS_DUCKDB},
    "SIGN": lambda a: f"signum({a[0]})",
    "FLOOR": lambda a: _whole(a[0], f"floor({a[0]})"),
    "CEIL": lambda a: _whole(a[0], f"ceil({a[0]})"),
    "ROUND": _round,
    "LN": lambda a: f"(CASE WHEN {a[0]} > 0 THEN ln({a[0]}) END)",
    "LOG10": lambda a: f"(CASE WHEN {a[0]} > 0 THEN log10({a[0]}) END)",
    "TRIM": lambda a: f"trim(BOTH '{BLANKS}' FROM {a[0]})",
    "LTRIM": lambda a: f"trim(LEADING '{BLANKS}' FROM {a[0]})",
    "RTRIM": lambda a: f"trim(TRAILING '{BLANKS}' FROM {a[0]})",
    "LEFT": _left,
    "RIGHT": _right,
    "SUBSTR": _substr,
    "STARTS_WITH": lambda a: f"startswith({a[0]}, {a[1]})",
    "ENDS_WITH": lambda a: f"endswith({a[0]}, {a[1]})",
    "DATE_TRUNC": lambda a: _trunc(constant_of(a[0]), a[1]),
    "TIME_BUCKET": _time_bucket,
    "LAST_DAY": lambda a: f"last_day(try_cast({a[0]} AS DATE))",
    "EXTRACT": _extract,
    "DATE_DIFF": _date_diff,
    "DATE_ADD": _date_add,
    "REGEXP_MATCHES": lambda a: f"(substring({a[0]}, 1, {LOOKED_AT}) RLIKE {a[1]})",
}

SPARK: Final = Spark()
