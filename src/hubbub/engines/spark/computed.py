"""What a data frame computes: a list of what no row can make fail, and by which no row says what another is.

In Spark 4 a text that is no number, a sum that does not fit or a place that a list does not have are errors, unless
`spark.sql.ansi.enabled` is false (as in our session; a frame keeps the one of its own). Some functions fail in either
mode on what a format may hold: the first and the last moments of 64 bits, bytes that are no text. LIMIT, SAMPLE, a
window over all rows or a number of a row make one person's row decide about another's. What Python computes may do
anything. So a frame may hold what stands here alone; all else is kept first (`checkpoint`), or `trusted_view`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

__all__ = ["children_of", "unsure", "unsure_node"]

_NODES: Final = frozenset(
    "Project Filter SubqueryAlias View Join LateralJoin Union Aggregate Distinct Deduplicate Sort Repartition "
    "RepartitionByExpression RebalancePartitions ResolvedHint WithCTE CTERelationDef Window Generate Expand Intersect "
    "Except CollectMetrics InMemoryRelation".split()
)
_SAFE: Final = frozenset(
    # names, conditions, comparisons
    "Alias OuterReference And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan "
    "GreaterThanOrEqual In InSet InSubquery ListQuery Exists LateralSubquery IsNull IsNotNull AtLeastNNonNulls IsNaN "
    "NaNvl Coalesce If CaseWhen CaseKeyWhen Greatest Least With CommonExpressionDef CommonExpressionRef "
    "KnownNullable KnownNotNull KnownFloatingPointNormalized NormalizeNaNAndZero TypeOf InputFileName NullIfResult "
    # numbers
    "Sqrt Cbrt Log Log2 Log10 Log1p Logarithm Exp Expm1 Pow Signum Rint WidthBucket Factorial Bin Hex Sin Cos Tan "
    "Asin Acos Atan Atan2 Sinh Cosh Tanh ToDegrees ToRadians Hypot BitwiseAnd BitwiseOr BitwiseXor BitwiseNot "
    "BitwiseCount ShiftLeft ShiftRight ShiftRightUnsigned Murmur3Hash XxHash64 Crc32 "
    # texts and bytes
    "Upper Lower StringTrim StringTrimLeft StringTrimRight Substring SubstringIndex Concat ConcatWs Length OctetLength "
    "BitLength Reverse InitCap StringTranslate StringReplace StringInstr StringLocate Contains StartsWith EndsWith Md5 "
    "Sha1 Sha2 Ascii Chr FormatNumber Levenshtein SoundEx Overlay Mask GetJsonObject StringSplitSQL "
    # days and moments
    "Year YearOfWeek Quarter Month DayOfMonth DayOfWeek WeekDay DayOfYear WeekOfYear Hour Minute Second DateAdd "
    "DateSub DateDiff LastDay TruncDate DateFormatClass FromUnixTime MicrosToTimestamp UnixMicros UnixMillis "
    "UnixSeconds UnixDate DateFromUnixDate DayName MonthName ExtractANSIIntervalDays "
    # lists, structs and maps
    "CreateArray CreateNamedStruct GetStructField GetArrayStructFields GetMapValue Size ArrayContains SortArray "
    "ArrayMax ArrayMin ArrayDistinct Flatten ArrayJoin ArraysZip ArrayPosition ArrayRemove ArrayIntersect ArrayUnion "
    "ArrayExcept ArraysOverlap ArrayTransform ArrayFilter ArrayExists ArrayForAll ArrayAggregate LambdaFunction "
    "NamedLambdaVariable MapKeys MapValues MapEntries MapFilter TransformValues Explode PosExplode Inline Stack "
    "JsonTuple GeneratorOuter UpdateFields WithField "
    # of several rows
    "AggregateExpression Count Min Max MaxBy MinBy First Last AnyValue CollectList CollectSet StddevSamp StddevPop "
    "VarianceSamp VariancePop Corr CovPopulation CovSample Skewness Kurtosis Median Percentile ApproximatePercentile "
    "HyperLogLogPlusPlus Mode BoolAnd BoolOr BitAndAgg BitOrAgg BitXorAgg PivotFirst Grouping GroupingID SortOrder "
    "WindowExpression WindowSpecDefinition SpecifiedWindowFrame UnspecifiedFrame UnboundedPreceding CurrentRow "
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


def children_of(node: Any) -> list[Any]:
    """The children of a node of Spark's trees."""
    return _sequence(node.children())


def unsure_node(kind: str, node: Any) -> str | None:
    """Why one row may decide about another's by a node of a plan, or make it fail; None if it does not."""
    if kind not in _NODES:
        return f"it is made by {kind!r}, of which it is not known that each row stays one person's own"
    if kind == "Window" and not node.partitionSpec().size():
        return "it has a window over all rows, where one row says what others are"
    if kind == "Aggregate" and not node.groupingExpressions().size():
        return "it has a value of all rows"
    return None


def unsure(expressions: Iterable[Any]) -> str | None:
    """Why a value that a frame computes may fail on a row, or follow from another's, and what to do; None if it does
    not."""
    todo = list(expressions)
    while todo:
        one = todo.pop()
        kind = _kind(one)
        if kind in ("AttributeReference", "Literal") or one.foldable():
            continue  # of a constant no row decides
        if kind in _REPLACED:
            todo.append(one.replacement())
        elif kind not in _SAFE and not (kind in _RULES and _RULES[kind](one)):
            word = f"it computes {str(one.prettyName())!r}, "
            if not one.deterministic():
                return f"{word}which need not be the same, or follow from the same row, each time it is read"
            if kind in _OF_PEOPLE:
                return f"{word}which is a program that may fail on a row"
            return (
                f"{word}of which it is not known that no value makes it fail. Use a `try_` function, or set "
                "spark.sql.ansi.enabled to false and make the frame again; or leave that to the questions"
            )
        todo += children_of(one)
    return None


def _kind(one: Any) -> str:
    return str(one.getClass().getSimpleName()).removesuffix("$")


def _type(one: Any) -> str:
    return str(one.dataType().sql())


def _strict(one: Any) -> bool:
    try:
        mode = one.evalMode()
    except Exception:  # Py4J's, of a sum: its mode stands elsewhere
        mode = one.evalContext().evalMode()
    return str(mode) == _ANSI


def _full(kind: str) -> bool:
    """Whether a type is a decimal of as many digits as there can be."""
    return kind.startswith("DECIMAL(38,")


def _cast(one: Any) -> bool:
    return _casts(_type(one.child()), _type(one), strict=_strict(one))


def _casts(made: str, to: str, *, strict: bool) -> bool:
    if made == to or to == "STRING" or made == "VOID":
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


def _arithmetic(one: Any) -> bool:
    kind = _type(one)
    if kind.startswith("DECIMAL"):
        return not _strict(one) or not _full(kind)
    return kind in _REAL or (kind in _WHOLE and not _strict(one))


def _divided(one: Any) -> bool:
    kind = _type(one)
    if kind not in _WHOLE + _REAL and not kind.startswith("DECIMAL"):
        return False
    constant = _constant(one.right())
    return not _strict(one) or (constant is not None and constant > 0 and not _full(kind))


def _constant(one: Any) -> float | None:
    while _kind(one) == "Cast":
        one = one.child()
    try:
        return float(str(one.value())) if _kind(one) == "Literal" else None
    except ValueError:
        return None


def _signed(one: Any) -> bool:
    kind = _type(one)
    return kind in _REAL or kind.startswith("DECIMAL") or (kind in _WHOLE and not one.failOnError())


def _rounded(one: Any) -> bool:
    kind = _type(one)
    return kind in _REAL or not one.ansiEnabled() or (kind.startswith("DECIMAL") and not _full(kind))


def _to_whole(one: Any) -> bool:
    child = one.child()
    return not one.failOnError() or _type(child) not in _REAL or _of_32_bits(child)


def _of_32_bits(one: Any) -> bool:
    """Whether a double is a whole number of 32 bits, divided by something from 1 on."""
    while _kind(one) == "Divide" and (_constant(one.right()) or 0) >= 1:
        one = one.left()
    return _kind(one) == "Cast" and _type(one.child()) in _WHOLE[:3]


def _at(one: Any) -> bool:
    made = _kind(one.child())
    # A text has a first part, and a pivot all of its parts.
    there = made == "StringSplit" and _constant(one.ordinal()) == 0
    there = there or (made == "AttributeReference" and str(one.child().name()).startswith("__pivot_"))
    return there or not one.failOnError()


def _element(one: Any) -> bool:
    return _type(one.left()).startswith("MAP") or (not one.failOnError() and bool(_constant(one.right())))


def _summed(one: Any) -> bool:
    kind, made = _type(one), _type(one.child())
    if "INTERVAL" in kind:
        return False
    return not _strict(one) or made in _WHOLE[:3] + _REAL or (kind.startswith("DECIMAL") and not _full(kind))


def _averaged(one: Any) -> bool:
    kind = _type(one)
    return "INTERVAL" not in kind and (not _strict(one) or not _full(kind))


def _of_json(one: Any) -> bool:
    """Of 1e999999999 no decimal is made in any time."""
    strict = "failfast" in str(one.options().toString()).lower()
    return not strict and "DECIMAL" not in str(one.schema().sql())


def _like(one: Any) -> bool:
    """With more than two % Spark looks at a text as often as it is long, or more."""
    return one.right().foldable() and str(one.right().toString()).count("%") <= 2


def _regular(one: Any) -> bool:
    """Java follows a group that is repeated by as many calls as a text is long, until it has no room left."""
    _, *rest = children_of(one)
    if not all(r.foldable() for r in rest):
        return False
    pattern, *more = (str(r.toString()) for r in rest)
    if re.search(r"\)[*+{?]", pattern):
        return False
    if _kind(one) == "RegExpReplace":
        return not set(more[0]) & {"$", "\\"}
    return not _kind(one).startswith("RegExpExtract") or int(more[0]) <= pattern.count("(")


def _by_constants(one: Any) -> bool:
    return all(child.foldable() for child in children_of(one)[1:])


_RULES: Final[dict[str, Callable[[Any], bool]]] = {
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
    "JsonToStructs": _of_json,
    "Like": _like,
    **dict.fromkeys(("RLike", "RegExpReplace", "RegExpExtract", "RegExpExtractAll", "StringSplit"), _regular),
    **dict.fromkeys(("StringLPad", "StringRPad", "StringRepeat", "ArrayRepeat", "Slice"), _by_constants),
    "FormatString": lambda one: bool(children_of(one)[0].foldable()),
    "CreateMap": lambda one: all(key.foldable() for key in children_of(one)[::2]),
    "Conv": lambda one: not one.ansiEnabled(),
    **dict.fromkeys(
        ("GetTimestamp", "UnixTimestamp", "ToUnixTimestamp", "MakeDate", "MakeTimestamp", "Elt", "NextDay"),
        lambda one: not one.failOnError(),
    ),
    "Unhex": lambda one: not one.failOnError(),
    "StaticInvoke": lambda one: f"{one.staticObject().getSimpleName()}.{one.functionName()}" in _INVOKED,
}


def _sequence(scala: Any) -> list[Any]:
    return [scala.apply(i) for i in range(scala.size())]
