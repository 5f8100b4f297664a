"""Window functions over one owner's rows: each becomes a column, computed below the projection."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from hubbub.errors import QueryError
from hubbub.remedies import Rewrite
from hubbub.sql.bind.context import Reader
from hubbub.sql.bind.expression import ExpressionReader
from hubbub.sql.bind.from_ import Rows
from hubbub.sql.bind.group_by import same_without_distinct
from hubbub.sql.bind.kinds import ONE_KIND, wrong_kind
from hubbub.sql.bind.scope import did_you_mean, meant
from hubbub.sql.text.arguments import unread
from hubbub.sql.text.hints import instead, ways
from hubbub.sql.text.locate import in_place, in_words, written
from hubbub.sql.text.repairs import called_otherwise, conditional
from hubbub.tables.expressions import Column, Expression, Literal, common_kind, comparable, whole
from hubbub.tables.kinds import NUMERIC, Kind
from hubbub.tables.relations import (
    Window,
    WindowCall,
    scans,
    units_of,
)

__all__ = ["Windows", "column_kind"]


def column_kind(node: Expression) -> Kind:
    """The kind of a column that holds an expression: whole numbers stay whole."""
    return Kind.INTEGER if node.kind in NUMERIC and whole(node) else node.kind


_WINDOWED: dict[type[exp.Expr], tuple[str, int]] = {
    exp.RowNumber: ("ROW_NUMBER", 0),
    exp.Rank: ("RANK", 0),
    exp.DenseRank: ("DENSE_RANK", 0),
    exp.Lag: ("LAG", 1),
    exp.Lead: ("LEAD", 1),
    exp.FirstValue: ("FIRST_VALUE", 1),
    exp.First: ("FIRST_VALUE", 1),
    exp.LastValue: ("LAST_VALUE", 1),
    exp.Last: ("LAST_VALUE", 1),
    exp.Sum: ("SUM", 1),
    exp.Avg: ("AVG", 1),
    exp.Min: ("MIN", 1),
    exp.Max: ("MAX", 1),
    exp.Count: ("COUNT", 1),
}


_FILTERED = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)


def _unsupported(reader: Reader, function: exp.Expr, node: exp.Expr) -> QueryError:
    name, known = written(function, reader.text), [name for name, _ in _WINDOWED.values()]
    return reader.refuse(
        f"the window function {name} is not supported. {instead(name, known)}Allowed: "
        f"{', '.join(dict.fromkeys(known))}.",
        node,
        remedy=called_otherwise(reader.text, name, ways(name, known)),
    )


@dataclass
class Windows:
    """The window functions of one SELECT: each becomes a column, computed below the projection."""

    rows: Rows
    node: exp.Select
    calls: list[tuple[str, WindowCall]] = field(default_factory=list)
    place: str = ""

    def reader(self, column: object = None) -> ExpressionReader:
        return ExpressionReader(
            self.rows.reader.text,
            column or self.rows.scope.column,  # type: ignore[arg-type]
            self._window,
            subquery=self.rows._subquery,
            moments=self.rows.reader.moments,
        )

    def attach(self) -> None:
        if self.calls:
            self.rows.relation = Window(self.rows.relation, tuple(self.calls))
            self.calls, self.place = [], ""

    def _window(self, node: exp.Expr) -> Expression:
        reader = self.rows.reader
        if not isinstance(node, exp.Window):
            raise reader.refuse(
                "an aggregate cannot stand here; conditions on answers go into HAVING.", node, remedy=Rewrite("HAVING")
            )
        node = self._with_name(node)
        function = node.this
        if isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
            filtered = isinstance(function, exp.Filter) and type(function.this) in _FILTERED
            plain = conditional(reader.text, function.expression.this) if filtered else ()
            hint = "".join(f" Write {way.example}." for way in plain)
            raise reader.refuse(f"IGNORE NULLS and FILTER are not supported in windows.{hint}", node, remedy=plain)
        if type(function) not in _WINDOWED:
            raise _unsupported(reader, function, node)
        modifier = unread(function)
        if modifier is not None:
            raise reader.refuse(f"{modifier} is not supported here.", node)
        name, takes = _WINDOWED[type(function)]
        rows = self.rows.expressions()
        if isinstance(function, exp.Count) and isinstance(function.this, exp.Star):
            name, takes = "COUNT_ROWS", 0
        arguments = self._arguments(node, name) if takes else ()
        partition = tuple(rows.read(p) for p in node.args.get("partition_by") or [])
        owners = units_of(self.rows.relation)
        if not any(isinstance(p, Column) and p.name in owners for p in partition):
            unit = scans(self.rows.relation)[0].unit
            by_unit = (Rewrite(f"PARTITION BY {unit}"),) if unit else ()
            hint = "".join(f": {way.in_python()}" for way in by_unit)
            raise reader.refuse(
                f"a window over people's rows is partitioned by the unit{hint}. Otherwise one person's row would "
                "change what is computed for another.",
                node,
                remedy=by_unit,
            )
        order = self._order(node, rows)
        frame = _frame(reader, node)
        if name in _RANKS:
            frame = ""
        if _of_peers(name, frame):
            partition, order, frame = (*partition, *(e for e, _, _ in order)), (), _WHOLE
        call = WindowCall(name, arguments, partition, order, frame, _window_kind(name, arguments))
        self.place = self.place or reader.place("w")
        for own, known in self.calls:
            if known == call:
                return Column(own, call.kind, in_words(node))
        own = f"{self.place}.{len(self.calls)}"
        self.calls.append((own, call))
        return Column(own, call.kind, in_words(node))

    def _arguments(self, node: exp.Window, name: str) -> tuple[Expression, ...]:
        """The value that a window function reads, with the offset and the default of LAG and LEAD."""
        reader, function, rows = self.rows.reader, node.this, self.rows.expressions()
        if isinstance(function.this, exp.Distinct):
            if name in ("MIN", "MAX"):
                raise same_without_distinct(reader, function, name)
            raise reader.refuse("DISTINCT is not supported in windows.", node)
        arguments: tuple[Expression, ...] = (rows.read(function.this),)
        for extra in ("offset", "default"):
            value = function.args.get(extra)
            if value is not None:
                arguments = (*arguments, rows.read(value))
        if name in ("LAG", "LEAD") and len(arguments) > 1:
            offset = arguments[1].value if isinstance(arguments[1], Literal) else None
            if not isinstance(offset, int) or isinstance(offset, bool) or abs(offset) > 10**6:
                raise reader.refuse(
                    f"{name} takes a constant whole number up to 1,000,000 as its offset, as in {name}(n, 1).",
                    node,
                    remedy=Rewrite(f"{name}(n, 1)"),
                )
        if len(arguments) > 2 and not comparable(arguments[0].kind, arguments[2].kind):
            raise reader.refuse(
                f"{name}: the value and its default must be of one kind: {ONE_KIND.example}.",
                node,
                remedy=ONE_KIND,
            )
        if name in ("SUM", "AVG") and arguments[0].kind not in NUMERIC:
            says, way = wrong_kind(f"{name} needs a number", arguments[0].kind, NUMERIC)
            raise reader.refuse(says, node, remedy=way)
        return arguments

    def _with_name(self, node: exp.Window) -> exp.Window:
        """A window that is named in the WINDOW clause, written out."""
        name = node.args.get("alias")
        if name is None:
            return node
        for named in self.node.args.get("windows") or []:
            if named.name.lower() == name.name.lower():
                full = node.copy()
                full.set("alias", None)
                for part in ("partition_by", "order", "spec"):
                    if named.args.get(part) is not None and full.args.get(part) is None:
                        value = named.args[part]
                        full.set(part, [v.copy() for v in value] if isinstance(value, list) else value.copy())
                return full
        known, text = [w.name for w in self.node.args.get("windows") or []], self.rows.reader.text
        raise self.rows.reader.refuse(
            f"there is no window {name.name!r}. {did_you_mean(name.name, known)}",
            node,
            remedy=meant(name.name, known, text, name)
            or tuple(in_place(n, text, name) for n in known if len(known) == 1),
        )

    def _order(self, node: exp.Window, rows: ExpressionReader) -> tuple[tuple[Expression, bool, bool], ...]:
        clause = node.args.get("order")
        return tuple(
            (rows.read(t.this), bool(t.args.get("desc")), bool(t.args.get("nulls_first")))
            for t in (clause.expressions if clause is not None else ())
        )


def _window_kind(name: str, arguments: tuple[Expression, ...]) -> Kind:
    if name in ("ROW_NUMBER", "RANK", "DENSE_RANK", "COUNT", "COUNT_ROWS"):
        return Kind.INTEGER
    if name == "AVG":
        return Kind.NUMBER
    return common_kind(column_kind(a) for i, a in enumerate(arguments) if i != 1)


# They read no frame; above one of ROWS, rows that ORDER BY leaves equal are told apart.
_RANKS = ("RANK", "DENSE_RANK")
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_ENDS = ("UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING")


def _of_peers(name: str, frame: str) -> bool:
    """Whether a function takes its value from the end of a frame that is all rows which ORDER BY leaves equal to this
    one. Of these it is the first or the last as they are told apart, the same for each of them: so it is read as the
    first or the last of them alone.
    """
    if frame.startswith("ROWS"):
        return False
    start, end = (frame or "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")[len("RANGE BETWEEN ") :].split(" AND ")
    return {"FIRST_VALUE": start, "LAST_VALUE": end}.get(name) == "CURRENT ROW"


def _backwards(start: str, end: str) -> bool:
    """Whether a frame ends before it starts: of most such an engine makes an error, of others no rows."""
    return _place(start) > _place(end) or start == _ENDS[-1] or end == _ENDS[0]


def _place(end: str) -> tuple[int, int]:
    """Where an end of a frame lies: its word, and the number of rows after this one."""
    if end in _ENDS:
        return _ENDS.index(end), 0
    number, word = end.split()
    return _ENDS.index(word), -int(number) if word == "PRECEDING" else int(number)


def _frame(reader: Reader, node: exp.Window) -> str:
    """The frame of a window, from its parts alone.

    Raises QueryError for a frame that counts in other steps than rows, and one that ends before it starts.
    """
    spec = node.args.get("spec")
    if spec is None:
        return ""
    kind = str(spec.args.get("kind") or "").upper()
    ends = []
    for end in ("start", "end"):
        value, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
        if value is None:
            ends.append("CURRENT ROW")
        elif isinstance(value, str):
            ends.append(f"{value.upper()} {side}".strip())
        elif (
            isinstance(value, exp.Literal)
            and not value.is_string
            and str(value.this).isdigit()
            and len(str(value.this)) < 10
            and kind == "ROWS"
            and side in ("PRECEDING", "FOLLOWING")
        ):
            ends.append(f"{value.this} {side}")
        else:
            raise reader.refuse(
                "a frame counts ROWS by whole numbers: ROWS BETWEEN 2 PRECEDING AND CURRENT ROW.",
                node,
                remedy=Rewrite("ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
            )
    known = {"UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING", "CURRENT ROW"}
    fine = all(e in known or e.split()[0].isdigit() for e in ends) and kind in ("ROWS", "RANGE")
    if not fine or spec.args.get("exclude") or _backwards(*ends):
        raise reader.refuse(
            "this frame is not supported; use such as ROWS BETWEEN 2 PRECEDING AND CURRENT ROW.",
            node,
            remedy=Rewrite("ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        )
    return f"{kind} BETWEEN {ends[0]} AND {ends[1]}"
