"""What a data frame computes: a list of what no row can make fail, and by which no row says what another is.

In Spark 4 a text that is no number, a sum that does not fit or a place that a list does not have are errors, unless
`spark.sql.ansi.enabled` is false (as in our session; a frame keeps the one of its own). Some functions fail in either
mode on what a format may hold: the first and the last moments of 64 bits, bytes that are no text. LIMIT, SAMPLE, a
window over all rows or a number of a row make one person's row decide about another's. What Python computes may do
anything. So a frame may hold what stands here alone; all else is kept first (`checkpoint`), or `trusted_view`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Set
from typing import Any, Final

from pyspark import SparkContext

__all__ = ["children_of", "constants_of", "unsure", "unsure_node"]

_NODES: Final = frozenset(
    "Project Filter SubqueryAlias View Join LateralJoin Union Aggregate Distinct Deduplicate Sort Repartition "
    "RepartitionByExpression RebalancePartitions ResolvedHint WithCTE CTERelationDef Window Generate Expand Intersect "
    "Except CollectMetrics InMemoryRelation".split()
)
_SAFE: Final = frozenset(
    # names, conditions, comparisons
    "Alias OuterReference And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan "
    "GreaterThanOrEqual In InSet ListQuery LateralSubquery IsNull IsNotNull AtLeastNNonNulls IsNaN "
    "NaNvl Coalesce If CaseWhen CaseKeyWhen Greatest Least With CommonExpressionDef CommonExpressionRef "
    "KnownNullable KnownNotNull KnownFloatingPointNormalized NormalizeNaNAndZero TypeOf NullIfResult "
    # numbers
    "Sqrt Cbrt Log Log2 Log10 Log1p Logarithm Exp Expm1 Pow Signum Rint WidthBucket Factorial Bin Hex Sin Cos Tan "
    "Asin Acos Atan Atan2 Sinh Cosh Tanh ToDegrees ToRadians Hypot BitwiseAnd BitwiseOr BitwiseXor BitwiseNot "
    "BitwiseCount ShiftLeft ShiftRight ShiftRightUnsigned Murmur3Hash XxHash64 Crc32 "
    # texts and bytes
    "Upper Lower StringTrim StringTrimLeft StringTrimRight Substring SubstringIndex Concat Length OctetLength "
    "BitLength Reverse InitCap StringTranslate StringInstr StringLocate Contains StartsWith EndsWith Md5 "
    "Sha1 Sha2 Ascii Chr Levenshtein SoundEx Overlay Mask GetJsonObject StringSplitSQL "
    # days and moments
    "Year YearOfWeek Quarter Month DayOfMonth DayOfWeek WeekDay DayOfYear WeekOfYear Hour Minute Second DateAdd "
    "DateSub DateDiff LastDay MicrosToTimestamp UnixMicros UnixMillis UnixSeconds UnixDate DateFromUnixDate DayName "
    "MonthName ExtractANSIIntervalDays CurrentDate CurrentTimestamp Now LocalTimestamp CurrentTimeZone "
    # lists, structs and maps
    "CreateArray CreateNamedStruct GetStructField GetArrayStructFields GetMapValue Size ArrayContains SortArray "
    "ArrayMax ArrayMin ArrayDistinct Flatten ArraysZip ArrayPosition ArrayRemove ArrayIntersect ArrayUnion "
    "ArrayExcept ArraysOverlap ArrayTransform ArrayFilter ArrayExists ArrayForAll LambdaFunction "
    "NamedLambdaVariable MapKeys MapValues MapEntries MapFilter TransformValues Explode PosExplode Inline Stack "
    "JsonTuple GeneratorOuter UpdateFields WithField "
    # of several rows
    "AggregateExpression Count Min Max MaxBy MinBy First Last AnyValue CollectList CollectSet StddevSamp StddevPop "
    "VarianceSamp VariancePop Corr CovPopulation CovSample Skewness Kurtosis Median ApproximatePercentile "
    "HyperLogLogPlusPlus Mode BoolAnd BoolOr BitAndAgg BitOrAgg BitXorAgg PivotFirst Grouping GroupingID SortOrder "
    "WindowExpression WindowSpecDefinition UnspecifiedFrame UnboundedPreceding CurrentRow "
    "UnboundedFollowing RowNumber Rank DenseRank PercentRank CumeDist NTile Lead Lag NthValue".split()
)
_REPLACED: Final = frozenset(
    "Nvl Nvl2 NullIf NullIfZero ZeroIfNull Between EqualNull CountIf DatePart DatetimeSub ParseToDate ParseToTimestamp "
    "Extract Left Right TryAdd TrySubtract TryMultiply TryDivide TryMod Get TryElementAt SplitPart ILike ArraySize "
    "ArrayAppend ArrayPrepend ArrayCompact Base64".split()
)
"""What Spark writes as something else, which is looked at."""
_OF_PEOPLE: Final = ("PythonUDF", "PythonUDAF", "ScalaUDF", "ScalaAggregator", "HiveSimpleUDF", "HiveGenericUDF")
_INVOKED: Final = ("CharVarcharCodegenUtils.readSidePadding", "Base64.encode")
"""The functions of Java that no value makes fail: of a CHAR(n), and from bytes to digits."""
_WHOLE: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_REAL: Final = ("FLOAT", "DOUBLE")
_TIMES: Final = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
_ANSI: Final = "ANSI"
_SUMMED: Final = 28
"""Decimals of so many digits Spark sums with ten more."""


def children_of(node: Any) -> list[Any]:
    """The children of a node of Spark's trees."""
    return _sequence(node.children())


def constants_of(nodes: Iterable[Any]) -> Set[int]:
    """The columns that nodes of a plan make of constants, by number."""
    entries = [e for node in nodes if _kind(node) == "Project" for e in _sequence(node.projectList())]
    return {e.exprId().id() for e in entries if _kind(e) == "Alias" and e.child().foldable()}


def unsure_node(node: Any, constants: Callable[[], Set[int]]) -> str | None:
    """Why one row may decide about another's by a node of a plan, or make it fail; None if it does not.

    constants: says which columns are the same on all rows, by number.
    """
    kind = _kind(node)
    if kind not in _NODES:
        return f"it is made by {kind!r}, of which it is not known that each row stays one person's own"
    if kind == "Window" and _same(_sequence(node.partitionSpec()), constants):
        return "it has a window over all rows, where one row says what others are"
    if kind == "Aggregate" and _same(_sequence(node.groupingExpressions()), constants):
        return "it has a value of all rows"
    if kind == "Deduplicate" and _same(_sequence(node.keys()), constants):
        return "it keeps one of all rows"
    return None


def _same(keys: Iterable[Any], constants: Callable[[], Set[int]]) -> bool:
    """Whether all rows have the same keys."""
    varied = [key for key in keys if not key.foldable()]
    return not varied or all(_kind(k) == "AttributeReference" and k.exprId().id() in constants() for k in varied)


def unsure(node: Any, expressions: Iterable[Any]) -> str | None:
    """Why a value that a node of a plan computes may fail on a row, or follow from another's, and what to do; None if
    it does not."""
    keeps, strict = _kind(node) in ("Filter", "Join"), None
    todo = [(one, keeps) for one in expressions]  # each with whether a NULL of it is the same as false
    while todo:
        one, keeps = todo.pop()
        kind = _kind(one)
        if kind in ("AttributeReference", "Literal") or (one.foldable() and _has_value(one)):
            continue  # of a constant no row decides, but whether it is computed where it fails
        if kind in _REPLACED:
            todo.append((one.replacement(), keeps))
        elif kind in _PARTS:
            why = _PARTS[kind](one, node, keeps)
            if why is not None:
                return why
        elif not _sure(kind, one):
            why, by_mode = _why(kind, one)
            if not by_mode:
                return why
            strict = strict or why  # but what is inside may fail in any mode
        todo += [(child, keeps and kind in ("And", "Or")) for child in children_of(one)]
    return strict


def _sure(kind: str, one: Any) -> bool:
    if kind in _BY_MODE:
        return _BY_MODE[kind](one, _strict(one))
    return kind in _SAFE or (kind in _RULES and _RULES[kind](one))


def _why(kind: str, one: Any) -> tuple[str, bool]:
    """Why a value may fail, and whether it does with the ANSI mode on alone."""
    word = f"it computes {str(one.prettyName())!r}, "
    if not one.deterministic():
        return f"{word}which need not be the same, or follow from the same row, each time it is read", False
    if kind in _OF_PEOPLE:
        return f"{word}which is a program that may fail on a row", False
    word += "of which it is not known that no value makes it fail"
    if one.foldable() or (kind in _BY_MODE and _BY_MODE[kind](one, False)):
        word += ". Use a `try_` function, or set spark.sql.ansi.enabled to false and make the frame again"
        return f"{word}; or leave that to the questions", True
    return f"{word}, whatever spark.sql.ansi.enabled says. Leave that to the questions", False


def _in_subquery(one: Any, node: Any, keeps: bool) -> str | None:
    """Of x IN (...) a NULL among the values makes NULL for everybody who is not there."""
    if keeps or not any(a.nullable() for a in _sequence(one.query().plan().output())):
        return None
    return (
        "it has NOT IN of a subquery, or another use of IN, where one NULL there leaves out all rows. Use NOT EXISTS, "
        "or a join that is `left_anti`"
    )


def _exists(one: Any, node: Any, keeps: bool) -> str | None:
    return None if one.children().size() else "it asks whether a subquery has any row: one row says what others are"


def _file_name(one: Any, node: Any, keeps: bool) -> str | None:
    """Behind what puts rows in order the name is that of the file that was read last."""
    while node.children().size():
        if _kind(node) not in ("Project", "Filter", "SubqueryAlias", "View"):
            break
        node = node.children().apply(0)
    if not node.children().size() and _kind(node) != "InMemoryRelation":
        return None
    return "it asks for names of files where rows are no more as they were read. Ask for them first"


_PARTS: Final[dict[str, Callable[[Any, Any, bool], str | None]]] = {
    "InSubquery": _in_subquery,
    "Exists": _exists,
    "InputFileName": _file_name,
}
"""What depends on where it stands."""


def _kind(one: Any) -> str:
    """The name of a class of Spark's own; a longer one of any other."""
    name = str(one.getClass().getName()).removesuffix("$")
    return name.rpartition(".")[2] if name.startswith(_SPARKS) else name


_SPARKS: Final = ("org.apache.spark.sql.catalyst.", "org.apache.spark.sql.execution.columnar.InMemoryRelation")
_NO_ROW: Final = None


def _has_value(one: Any) -> bool:
    """Whether a constant can be computed. What fails does so for those alone for whom a condition lets it be."""
    try:
        one.eval(_NO_ROW)
    except Exception:  # Py4J's
        return False
    return True


def _value(one: Any) -> str | None:
    """What a constant is, as a text."""
    with contextlib.suppress(Exception):  # Py4J's
        value = one.eval(_NO_ROW) if one.foldable() else None
        return None if value is None else str(value)
    return None


def _type(one: Any) -> str:
    return str(one.dataType().sql())


def _strict(one: Any) -> bool:
    """Whether what has no value is an error there, and not NULL."""
    asked: tuple[Callable[[], Any], ...] = (
        lambda: one.evalMode(),
        lambda: one.evalContext().evalMode(),
        lambda: one.failOnError(),
        lambda: one.ansiEnabled(),
    )
    for mode in asked:
        with contextlib.suppress(Exception):  # Py4J's, of what has no such thing
            return str(mode()) in (_ANSI, "True")
    return True


def _full(kind: str) -> bool:
    """Whether a type is a decimal of as many digits as there can be."""
    return kind.startswith("DECIMAL(38,")


def _cast(one: Any, strict: bool) -> bool:
    return _casts(_type(one.child()), _type(one), strict=strict)


def _casts(made: str, to: str, *, strict: bool) -> bool:
    if made == to or made == "VOID" or (to == "STRING" and "VARIANT" not in made):
        return True
    if made.startswith("ARRAY<") and to.startswith("ARRAY<"):
        return _casts(made[6:-1], to[6:-1], strict=strict)
    if "<" in made + to or "INTERVAL" in made + to or "VARIANT" in made + to:
        return False
    if made in _TIMES and to in _TIMES:
        return to == "DATE"  # its first and last days are no moments
    return not strict or _keeps(made, to)


def _keeps(made: str, to: str) -> bool:
    """Whether each value of one type has one in another."""
    if made == "BOOLEAN" or (made, to) in (("STRING", "BINARY"), ("TIMESTAMP", "BIGINT"), ("TIMESTAMP", "DOUBLE")):
        return True
    number = made in _WHOLE + _REAL or made.startswith("DECIMAL")
    if number and to in ("BOOLEAN", *_REAL):
        return True
    if made in _WHOLE and (to == "TIMESTAMP" or to in _WHOLE):
        return to == "TIMESTAMP" or _WHOLE.index(to) >= _WHOLE.index(made)
    wide, narrow = _digits(to), _digits(made)
    return None not in (wide, narrow) and all(a >= b for a, b in zip(wide or (), narrow or (), strict=True))


def _digits(kind: str) -> tuple[int, int] | None:
    """How many digits a type has before its point, and behind it."""
    if kind in _WHOLE:
        return (3, 5, 10, 20)[_WHOLE.index(kind)], 0
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind)
    return None if decimal is None else (int(decimal[1]) - int(decimal[2]), int(decimal[2]))


def _arithmetic(one: Any, strict: bool) -> bool:
    kind = _type(one)
    if kind.startswith("DECIMAL"):
        return not strict or not _full(kind)
    return kind in _REAL or (kind in _WHOLE and not strict)


def _divided(one: Any, strict: bool) -> bool:
    kind = _type(one)
    if kind not in _WHOLE + _REAL and not kind.startswith("DECIMAL"):
        return False
    constant = _constant(one.right())
    return not strict or (constant is not None and constant > 0 and not _full(kind))


def _constant(one: Any) -> float | None:
    try:
        return float(_value(one) or "")
    except ValueError:
        return None


def _signed(one: Any, strict: bool) -> bool:
    kind = _type(one)
    return kind in _REAL or kind.startswith("DECIMAL") or (kind in _WHOLE and not strict)


def _rounded(one: Any, strict: bool) -> bool:
    kind = _type(one)
    return kind in _REAL or not strict or (kind.startswith("DECIMAL") and not _full(kind))


def _to_whole(one: Any, strict: bool) -> bool:
    child = one.child()
    return not strict or _type(child) not in _REAL or _of_32_bits(child)


def _of_32_bits(one: Any) -> bool:
    """Whether a double is a whole number of 32 bits, divided by something from 1 on."""
    while _kind(one) == "Divide" and (_constant(one.right()) or 0) >= 1:
        one = one.left()
    return _kind(one) == "Cast" and _type(one.child()) in _WHOLE[:3]


def _at(one: Any, strict: bool) -> bool:
    made = _kind(one.child())
    # A text has a first part, and a pivot all of its parts.
    there = made == "StringSplit" and _constant(one.ordinal()) == 0
    there = there or (made == "AttributeReference" and str(one.child().name()).startswith("__pivot_"))
    return there or not strict


def _element(one: Any, strict: bool) -> bool:
    return _type(one.left()).startswith("MAP") or (not strict and bool(_constant(one.right())))


def _summed(one: Any, strict: bool) -> bool:
    kind, made = _type(one), _type(one.child())
    if "INTERVAL" in kind:
        return False
    return not strict or made in _WHOLE[:3] + _REAL or (kind.startswith("DECIMAL") and not _full(kind))


def _averaged(one: Any, strict: bool) -> bool:
    kind, made = _type(one), _type(one.child())
    room = not made.startswith("DECIMAL") or sum(_digits(made) or ()) <= _SUMMED  # for its sum
    return "INTERVAL" not in kind and (not strict or room)


def _of_json(one: Any) -> bool:
    """Of 1e999999999 no decimal is made in any time."""
    strict = "failfast" in str(one.options().toString()).lower()
    return not strict and "DECIMAL" not in str(one.schema().sql())


def _like(one: Any) -> bool:
    """With more than two % Spark looks at a text as often as it is long, or more."""
    return (_value(one.right()) or "%%%").count("%") <= 2


def _regular(one: Any) -> bool:
    """Java follows a group that is repeated by as many calls as a text is long, until it has no room left; of three
    runs of anything it looks at each way to part a text in three."""
    _, *rest = children_of(one)
    pattern, *more = (_value(r) for r in rest)
    if pattern is None or None in more or re.search(r"\)[*+{?]", pattern):
        return False
    if len(re.findall(r"(?:\.|\\[DSW])(?:[*+]|\{\d*,)", pattern)) > 2:
        return False
    if _kind(one) == "RegExpReplace":
        return not set(more[0] or "") & {"$", "\\"}
    return not _kind(one).startswith("RegExpExtract") or 0 <= int(more[0] or 0) <= _groups(pattern)


def _groups(pattern: str) -> int:
    """How many groups Java sees in a pattern; -1 where it is none."""
    with contextlib.suppress(Exception):  # Py4J's
        java: Any = SparkContext._active_spark_context
        return int(java._jvm.java.util.regex.Pattern.compile(pattern).matcher("").groupCount())
    return -1


def _formatted(one: Any) -> bool:
    """Whether each place of a format takes any value of its type: `%c` takes not every number."""
    form, *values = children_of(one)
    places = re.findall(r"%[-#+ 0,(]*\d{0,3}(?:\.\d{1,3})?([a-zA-Z])", re.sub("%[%n]", "", _value(form) or "%c"))
    kinds = [_FORMATS.get(place) for place in places]
    return len(kinds) == len(values) and all(k and re.match(k, _type(v)) for k, v in zip(kinds, values, strict=True))


_INTS: Final = "((TINY|SMALL|BIG)?INT)$"
_FORMATS: Final = {
    **dict.fromkeys("dx", _INTS),
    "f": "FLOAT|DOUBLE|DECIMAL",
    "s": f"{_INTS}|FLOAT|DOUBLE|DECIMAL|STRING|BOOLEAN|DATE|TIMESTAMP",
}
"""By what a format says, which types it takes every value of."""


def _truncated(one: Any) -> bool:
    """The first days of all are in a quarter that begins before them."""
    return (_value(one.format()) or "").upper() in ("YEAR", "YYYY", "YY", "MONTH", "MM", "MON", "WEEK")


def _aggregated(one: Any) -> bool:
    """A text that is put behind itself is as long as no room is, after as many steps as a list may have."""
    return _type(one.zero()).startswith((*_WHOLE, *_REAL, *_TIMES, "DECIMAL", "BOOLEAN"))


def _framed(one: Any) -> bool:
    """Of values, not of rows: from the last one on there are no more."""
    return str(one.frameType().toString()) == "RowFrame" or not any(bound.foldable() for bound in children_of(one))


def _parsed(one: Any, strict: bool) -> bool:
    return _by_constants(one) and (not strict or _type(children_of(one)[0]) == "TIMESTAMP")


def _by_constants(one: Any) -> bool:
    return all(child.foldable() for child in children_of(one)[1:])


_BY_MODE: Final[dict[str, Callable[[Any, bool], bool]]] = {
    "Cast": _cast,
    **dict.fromkeys(("Add", "Subtract", "Multiply"), _arithmetic),
    **dict.fromkeys(("Divide", "IntegralDivide", "Remainder", "Pmod"), _divided),
    **dict.fromkeys(("UnaryMinus", "Abs"), _signed),
    **dict.fromkeys(("Round", "BRound"), _rounded),
    **dict.fromkeys(("Ceil", "Floor"), _to_whole),
    "GetArrayItem": _at,
    "ElementAt": _element,
    "Sum": _summed,
    "Average": _averaged,
    **dict.fromkeys(("GetTimestamp", "UnixTimestamp", "ToUnixTimestamp"), _parsed),
    **dict.fromkeys(("Conv", "Elt", "NextDay", "Unhex"), lambda one, strict: not strict),
}
"""Of these an error is NULL with the ANSI mode off: strict says whether it is on."""
_RULES: Final[dict[str, Callable[[Any], bool]]] = {
    "JsonToStructs": _of_json,
    "Like": _like,
    **dict.fromkeys(("RLike", "RegExpReplace", "RegExpExtract", "RegExpExtractAll", "StringSplit"), _regular),
    # How long a text becomes, how it is written, how often a value counts: no row says that.
    **dict.fromkeys(("StringLPad", "StringRPad", "StringRepeat", "ArrayRepeat", "Slice", "ArrayJoin"), _by_constants),
    **dict.fromkeys(("FormatNumber", "DateFormatClass", "FromUnixTime", "Percentile"), _by_constants),
    "StringReplace": lambda one: bool(children_of(one)[2].foldable()),
    "ConcatWs": lambda one: bool(children_of(one)[0].foldable()),
    "FormatString": _formatted,
    "TruncDate": _truncated,
    "ArrayAggregate": _aggregated,
    "SpecifiedWindowFrame": _framed,
    "CreateMap": lambda one: all(key.foldable() for key in children_of(one)[::2]),
    "StaticInvoke": lambda one: f"{one.staticObject().getSimpleName()}.{one.functionName()}" in _INVOKED,
}


def _sequence(scala: Any) -> list[Any]:
    return [scala.apply(i) for i in range(scala.size())]
