"""One SQL statement to a `Statement`, through an allow-list.

Below the private aggregates stand owned relations (joins on the unit, per-unit groups, windows, set operations, all by
the rules of ownership); above them any SQL over their releases and public tables. A statement whose tables are all
public is answered exactly, in an engine that holds public tables only. Everything else is refused before anything is
read or charged.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hubbub.errors import QueryError
from hubbub.remedies import GiveKeys, GiveOptions, GiveParameter, LeaveOut, Rewrite
from hubbub.sql.bind.context import PrivateRelation, Reader, is_release, printed, public_tables
from hubbub.sql.bind.declared import about_declarations
from hubbub.sql.bind.group_by import has_aggregate
from hubbub.sql.bind.lineage import noisy_outputs, traced
from hubbub.sql.bind.scope import Catalog, PublicSide, TableInfo, did_you_mean, find_name, meant
from hubbub.sql.bind.select import select, set_operation
from hubbub.sql.bind.zoned import NOW
from hubbub.sql.text.hints import questions_instead
from hubbub.sql.text.locate import in_place, marked, refuse, written
from hubbub.sql.text.read import AsWritten
from hubbub.sql.text.repairs import from_table, misspelt_start, one_statement, readable, without_pair
from hubbub.tables.aggregate_query import Output, Statement
from hubbub.tables.aggregates import spelled
from hubbub.tables.columns import one_of
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import scans

__all__ = ["Catalog", "PublicQuestion", "TableInfo", "did_you_mean", "find_name", "parse"]

MAX_TEXT = 100_000


@dataclass(frozen=True)
class PublicQuestion:
    """A statement over public tables alone, printed again from its tree."""

    sql: str
    tables: tuple[str, ...]


def parse(
    text: str,
    catalog: Catalog,
    *,
    public: PublicSide | None = None,
    params: Mapping[str, object] | Sequence[object] = (),
    keys: Mapping[str, Sequence[object]] | None = None,
    weight: str | None = None,
    now: Callable[[], dt.datetime] | None = None,
) -> Statement | PublicQuestion:
    """Read one statement.

    public: answers what the reader asks about public data. params: values for `$name` or `?`. keys: the groups of
    columns that GROUP BY names. weight: the column by which rows count in COUNT, SUM and AVG. now: tells what
    now() is, in UTC, where it is used; this moment unless said.

    Raises QueryError for anything that is not on the allow-list, with a caret at its place.
    """
    if not isinstance(text, str):
        raise QueryError(f"a question is SQL text; got {type(text).__name__}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QueryError("the statement holds half a character (a lone surrogate); write it in Unicode.") from None
    if len(text) > MAX_TEXT:
        raise QueryError(f"the statement has {len(text):,} characters; at most {MAX_TEXT:,} are read.")
    declared = about_declarations(text, catalog)
    if declared is not None:
        return PublicQuestion(declared, ())
    try:
        text = _numbered(text)
        statement = _one_statement(text)
        _check_functions(statement, text)
        _check_nulls(statement, text)
        _check_names(statement, text)
        _fill(statement, text, params)
        tables = _tables(statement, text, catalog)
        if tables and not any(catalog[t].private for t in tables):
            if weight is not None:
                raise QueryError(
                    f"weight: rows of people count by it; of public tables alone ask {_UNWEIGHTED.in_python()}.",
                    remedy=_UNWEIGHTED,
                )
            return PublicQuestion(_printed(statement, text), tuple(tables))
        _freeze(statement, now)
        _name_aggregates(statement)
        return _statement(
            statement, Reader(text, catalog, public, _keys(keys), weight, select=select, set_operation=set_operation)
        )
    except RecursionError:
        raise QueryError("the statement is nested too deeply to be read; write it flatter.") from None


def _statement(node: exp.Query, reader: Reader) -> Statement:
    try:
        relation = reader.resolve(node, {})
    except QueryError:
        _no_rows(_unordered(node), replace(reader, questions=[], common=[]))
        raise
    if isinstance(relation, PrivateRelation):
        raise _rows(relation, node, reader)
    if not reader.questions:
        raise _no_table(node, reader)
    _check_keys(reader)
    tree = relation.tree
    rowwise = relation.rowwise
    if rowwise is not None:
        # Ties are broken by the place, so that the order of an answer is a function of the released values alone.
        place = exp.column("place", "r", quoted=True)
        order = tree.args.get("order") or exp.Order(expressions=[])
        order.append("expressions", exp.Ordered(this=place.copy(), nulls_first=False))
        tree.set("order", order)
        tree.append("expressions", exp.alias_(place.copy(), "its place", quoted=True))
        rowwise.set("from_", tree.args["from_"].copy())
        draw = exp.column("draw", "r", quoted=True)
        rowwise.set("order", exp.Order(expressions=[exp.Ordered(this=draw), exp.Ordered(this=place.copy())]))
    full = reader.with_common(tree)
    sql = printed(full, last=True)
    outer_tables = public_tables(reader, full)
    outputs = relation.outputs if rowwise is not None else None
    described: Mapping[str, Kind] = {}
    if reader.public is not None:
        described = reader.public.describe(sql, outer_tables, reader.schemas(), answer=True)
    if outputs is None:
        outputs = tuple(Output(name) for name in described or [s.alias_or_name for s in tree.selects])
    if rowwise is not None:
        noisy = noisy_outputs(rowwise)
        outputs = tuple(replace(o, exact=not n) for o, n in zip(outputs, noisy, strict=True))
    else:
        columns = {name: reader.catalog[name].columns for name in outer_tables}
        outputs = traced(sql, outputs, reader.questions, {**columns, **reader.schemas()})
    if len({o.name.lower() for o in outputs}) < len(outputs):
        twice = next(o.name for i, o in enumerate(outputs) if o.name.lower() in {p.name.lower() for p in outputs[:i]})
        raise QueryError(f"two columns of the answer are named {twice!r}.")
    return Statement(
        questions=tuple(reader.questions),
        sql=sql,
        public=outer_tables,
        outputs=outputs,
        rowwise=printed(rowwise, last=True) if rowwise is not None else None,
    )


def _no_table(node: exp.Query, reader: Reader) -> QueryError:
    """What refuses a question without FROM; one of aggregates is asked of the tables that have what it names."""
    ways = _with_from(node, reader)
    hint = " or ".join(way.example for way in ways) or "FROM"
    return reader.refuse(f"the question names no table: add {hint}.", node, remedy=ways)


def _with_from(node: exp.Query, reader: Reader) -> tuple[Rewrite, ...]:
    if not isinstance(node, exp.Select) or not any(map(has_aggregate, node.selects)) or node.find(exp.Table):
        return ()
    named = {column.name for column in node.find_all(exp.Column)}
    with_all = [name for name, info in reader.catalog.items() if all(find_name(n, info.columns) for n in named)]
    return from_table(reader.text, with_all[:3])


def _check_keys(reader: Reader) -> None:
    """Raises QueryError for keys of what the question does not group by."""
    unused = set(reader.keys) - reader.keys_read - {n for q in reader.questions for n in q.names}
    if unused:
        raise QueryError(
            f"keys: the question does not group by {', '.join(map(repr, sorted(unused)))}: write GROUP BY "
            f"{min(unused)}.",
            remedy=Rewrite(f"GROUP BY {min(unused)}"),
        )


def _rows(relation: PrivateRelation, node: exp.Query, reader: Reader) -> QueryError:
    scan = scans(relation.relation)[0]
    questions = questions_instead(scan.table, scan.declared)
    return reader.refuse(
        "rows of people are never shown: every answer is an aggregate, such as COUNT(*) or AVG(x). Ask: "
        f"{'; or '.join(way.example for way in questions)}.",
        node.selects[0] if node.selects else node,
        word="*" if node.is_star else None,
        remedy=questions,
    )


def _unordered(node: exp.Query) -> exp.Query | None:
    """A statement that has LIMIT or ORDER BY, without them."""
    if not any(node.args.get(name) for name in _ORDERED):
        return None
    copy = node.copy()
    for name in _ORDERED:
        copy.set(name, None)
    return copy


def _no_rows(node: exp.Query | None, reader: Reader) -> None:
    """Raises QueryError for a statement that shows rows: that goes before what its LIMIT would do wrong."""
    relation = None
    with contextlib.suppress(QueryError):
        relation = None if node is None else reader.resolve(node, {})
    if node is not None and isinstance(relation, PrivateRelation):
        raise _rows(relation, node, reader) from None


_UNWEIGHTED = LeaveOut(("weight",))
_ORDERED = ("limit", "offset", "order")
_OF_THE_ENGINE = frozenset(
    "CURRENT_SETTING GETENV GETVARIABLE WRITE_LOG VERSION CURRENTVERSION CURRENT_DATABASE CURRENTDATABASE "
    "CURRENT_SCHEMA CURRENTSCHEMA CURRENT_SCHEMAS CURRENT_CATALOG CURRENTCATALOG CURRENT_USER CURRENTUSER SESSION_USER "
    "SESSIONUSER USER IN_SEARCH_PATH NEXTVAL CURRVAL TXID_CURRENT QUERY QUERY_TABLE".split()
)


def _check_functions(statement: exp.Query, text: str) -> None:
    """Refuse functions that tell of the engine, its settings and its user, wherever they stand."""
    for node in statement.find_all(exp.Func):
        plain = str(node.this).upper() if isinstance(node, exp.Anonymous) else node.key.upper()
        names = {plain} if isinstance(node, exp.Anonymous) else {plain, *node.sql_names()}
        if names & _OF_THE_ENGINE:
            raise refuse("this function tells of the engine, not of tables; it is not supported.", text, node)


def _check_nulls(statement: exp.Query, text: str) -> None:
    """Refuse IGNORE NULLS and RESPECT NULLS behind a call that is no window's: what reads the call would drop them."""
    for call in statement.find_all(exp.IgnoreNulls, exp.RespectNulls):
        word = "IGNORE" if isinstance(call, exp.IgnoreNulls) else "RESPECT"
        if not isinstance(call.parent, exp.Window) and not isinstance(call.this, exp.AnyValue):  # which is read as one
            ways = without_pair(text, word, "NULLS")
            hint = "".join(f" Write {way.example}." for way in ways)
            said = f"{word} NULLS is for windows; an aggregate leaves NULLs out.{hint}"
            raise refuse(said, text, call, word=word, remedy=ways)


def _printed(statement: exp.Query, text: str) -> str:
    """A question about public tables alone, as it is asked: all of it, or it is refused."""
    fetch = statement.find(exp.Fetch)
    if fetch is not None:
        said = "FETCH takes a number of rows: FETCH FIRST 3 ROWS ONLY; or write LIMIT 3."
        raise refuse(said, text, None, word="FETCH", remedy=Rewrite("LIMIT 3"))
    return printed(statement)


_RESERVED: Final = ("ALL", "ANY", "ARRAY", "UNIQUE")
"""Words that DuckDB takes for no name, and the parser for one."""
_OF_SIGNS: Final = re.compile(r"(?![_$])[!-/:-@\[-`{-~]")
"""A sign that stands in no name without quotes. Whatever is not ASCII does, as in m²."""


def _check_names(statement: exp.Query, text: str) -> None:
    """Refuse names that are none: of `FROM t SAMPLE (10)` and `FROM t ANY JOIN u` the parser makes other ones of t."""
    for alias in statement.find_all(exp.TableAlias):
        for name in filter(None, (alias.this, *(alias.args.get("columns") or ()))):
            if name.args.get("quoted"):
                continue
            if name.name[:1].isdigit():
                said = f"{name.name} is not the name of a column; and SAMPLE is not supported: every row may count."
                raise refuse(said, text, name)
            if name.name.upper() in _RESERVED or _OF_SIGNS.search(name.name):
                raise refuse(f"{name.name} is a word of SQL, and not a name. Leave it out, or quote it.", text, name)


def _name_aggregates(statement: exp.Query) -> None:
    """Aggregates of ours that the parser takes for functions that it does not know."""
    for node in list(statement.find_all(exp.Anonymous)):
        if spelled(str(node.this).upper()) is not None:
            known = exp.AnonymousAggFunc(this=str(node.this).upper(), expressions=node.expressions)
            known.meta.update(node.meta)
            node.replace(known)


def _freeze(statement: exp.Query, now: Callable[[], dt.datetime] | None) -> None:
    """now() and current_date are constants of the moment in which the question is asked, in UTC."""
    moment = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    now = now or (lambda: moment)
    for node in list(statement.find_all(exp.CurrentTimestamp, exp.CurrentDate, exp.Anonymous)):
        if isinstance(node, exp.Anonymous) and (str(node.this).upper() != "NOW" or node.expressions):
            continue
        if isinstance(node, exp.CurrentDate) and node.this:
            continue  # of a zone, which nothing reads
        constant = _constant(now().date() if isinstance(node, exp.CurrentDate) else now(), "now")
        constant.meta[NOW] = True
        node.replace(constant)


def _keys(keys: Mapping[str, Sequence[object]] | None) -> dict[str, tuple[object, ...]]:
    keys_by_name: dict[str, tuple[object, ...]] = {}
    if keys is not None and not (isinstance(keys, Mapping) and all(isinstance(name, str) for name in keys)):
        without = LeaveOut(("keys",))
        raise QueryError(
            'keys: expected a mapping of columns to their groups, as in {"city": ["Bern", "Thun"]}. If the groups '
            f"are declared, ask {without.in_python()}.",
            remedy=without,
        )
    for name, values in (keys or {}).items():
        listed = values.to_pylist() if hasattr(values, "to_pylist") else values
        listed = listed.to_list() if hasattr(listed, "to_list") else listed
        if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Iterable):
            way = GiveKeys(name)
            raise QueryError(f"keys: {name!r} needs a list of values: {way.in_python()}.", remedy=way)
        try:
            distinct = dict.fromkeys(listed)
        except TypeError:  # what has no hash: a list, a signaling NaN
            raise QueryError(
                f"keys: {name!r} holds something that is not a value of a column. Allowed: texts, numbers, booleans, "
                f"dates and None, as {GiveKeys(name).in_python()}. Nothing was charged.",
                remedy=GiveKeys(name),
            ) from None
        if not distinct:
            way = GiveKeys(name)
            raise QueryError(f"keys: no value is given for {name!r}: {way.in_python()}.", remedy=way)
        keys_by_name[name] = tuple(one_of(*distinct).values)
    return keys_by_name


def _numbered(text: str) -> str:
    """The text with every `?` written `$1`, `$2`, ... in the order in which they stand."""
    if "?" not in text:
        return text
    try:
        places = [t.start for t in sqlglot.tokenize(text, read="duckdb") if t.token_type.name == "PLACEHOLDER"]
    except SqlglotError:
        return text  # refused by the parser, with its place
    pieces, end = [], 0
    for number, place in enumerate(places, 1):
        pieces += [text[end:place], f"${number}"]
        end = place + 1
    return "".join([*pieces, text[end:]])


_PARAMS: Final = GiveOptions(("params",))


def _fill(statement: exp.Query, text: str, params: Mapping[str, object] | Sequence[object]) -> None:
    """Parameters as constants in the tree: they are values, never text."""
    fine = isinstance(params, Mapping) and all(isinstance(name, str) for name in params)
    if not fine and not isinstance(params, list | tuple):
        raise QueryError(
            f"params: expected a mapping for $name, or a list for ?: {_PARAMS.in_python()}.", remedy=_PARAMS
        )
    named = dict(params) if isinstance(params, Mapping) else {}
    listed = [] if isinstance(params, Mapping) else list(params)
    used: set[str] = set()
    for node in list(statement.find_all(exp.Placeholder, exp.Parameter)):
        name = node.name
        if name and not (name.isascii() and name.isdigit()):
            if name not in named:
                remedy = GiveParameter(name)
                raise refuse(f"the parameter {name!r} has no value: {remedy.in_python()}.", text, node, remedy=remedy)
            value = named[name]
            used.add(name)
        else:
            at = int(name) - 1 if name else len(used)
            if not 0 <= at < len(listed):
                said = f"parameter {at + 1} has no value: {_PARAMS.in_python()} has {len(listed)}."
                raise refuse(said, text, node, remedy=_PARAMS)
            value = listed[at]
            used.add(str(at))
        node.replace(_constant(value, name))
    left = set(named) - used
    if left or (listed and len(used) < len(listed)):
        way = GiveOptions(("params",)) if used else LeaveOut(("params",))
        raise QueryError(
            f"params: {', '.join(sorted(left)) or 'a value'} is not in the statement. Ask "
            f"{'with ' if used else ''}{way.in_python()}.",
            remedy=way,
        )


def _constant(value: object, name: str) -> exp.Expr:
    item = getattr(value, "item", None)
    if callable(item) and type(value).__module__ == "numpy" and getattr(value, "shape", ()) == ():
        value = item()
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() | float() | Decimal() | Fraction():
            if isinstance(value, int) and abs(value) >= 2**1000:
                raise _no_value(name, "is too large a number")
            number = format(Decimal(repr(value)), "f") if isinstance(value, float) else str(value)
            if not number.lstrip("-").replace(".", "", 1).isdigit():
                raise _no_value(name, f"= {value!r} is not a finite decimal number")
            literal = exp.Literal.number(number.lstrip("-"))
            return exp.Paren(this=exp.Neg(this=literal)) if number.startswith("-") else literal
        case str():
            return exp.Literal.string(value)
        case dt.datetime():
            kind = "timestamp" if value.tzinfo is None else "timestamptz"
            return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), kind)
        case dt.date():
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
    raise _no_value(name, f"is a {type(value).__name__}; give text, a number, a date or None")


def _no_value(name: str, why: str) -> QueryError:
    """What says that a parameter cannot be a constant, and how to give another."""
    way = GiveParameter(name) if name and not name.isdigit() else _PARAMS
    return QueryError(f"params: {name or 'a value'} {why}: {way.in_python()}.", remedy=way)


def _one_statement(text: str) -> exp.Query:
    """The only statement of a text, a SELECT. What else there may be is refused by its tokens, unparsed."""
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
        while tokens and tokens[-1].token_type.name == "SEMICOLON":
            tokens.pop()  # with the comments behind it
        if not tokens:
            raise QueryError(
                "the statement is empty. Ask something like: SELECT COUNT(*) FROM table",
                remedy=Rewrite("SELECT COUNT(*) FROM table"),
            )
        first = tokens[0]
        if first.text.upper() not in ("SELECT", "WITH", "FROM", "("):
            message = (
                f"{first.text.upper()} is not a question. Only SELECT is allowed; DESCRIBE, SHOW TABLES and SUMMARIZE "
                "say what is declared."
            )
            near = misspelt_start(text, first)
            hint = "".join(f" Did you mean {way.example}?" for way in near)
            raise marked(f"{message}{hint}", text, first.start, first.end, remedy=near)
        end = next((t for t in tokens if t.token_type.name == "SEMICOLON"), None)
        if end is not None:
            each = one_statement(text)
            hint = f" Ask {' and '.join(way.example for way in each)}." if each else ""
            said = f"one statement at a time: this text holds several.{hint}"
            raise marked(said, text, end.start, end.end, remedy=each)
        top = _top(tokens)
        if top:
            statement: exp.Expr | None = sqlglot.parse_one(_with_limit(text, top, tokens[-1]), read=AsWritten)
        else:
            (statement,) = AsWritten().parser().parse(tokens, text[: tokens[-1].end + 1])
    except SqlglotError as error:
        raise _syntax_error(text, error) from None
    if top and not isinstance(statement, exp.Select):  # a limit at the end would be one of the whole
        raise marked(_TOP, text, top[0].start, top[-1].end, remedy=Rewrite("LIMIT 3"))
    if not isinstance(statement, exp.Query):
        raise refuse("this is not a question. Only SELECT is allowed.", text, statement)
    return statement


_TOP: Final = "TOP is not read here; write LIMIT 3 at the end:"


def _top(tokens: Sequence[Any]) -> Sequence[Any]:
    """The tokens of TOP 3 or TOP (3) where a statement begins so, behind SELECT; none else."""
    if [t.text.upper() for t in tokens[:2]] != ["SELECT", "TOP"] or len(tokens) < 6:
        return ()
    top = tokens[1:5] if (tokens[2].text, tokens[4].text) == ("(", ")") else tokens[1:3]
    number, following = top[len(top) // 2], tokens[1 + len(top)]
    return () if number.token_type.name != "NUMBER" or following.text.upper() in ("PERCENT", "WITH") else top


def _with_limit(text: str, top: Sequence[Any], last: Any) -> str:
    """The same with LIMIT at the end; all that is left of it stands where it stood."""
    start, end = top[0].start, top[-1].end + 1
    return f"{text[:start]}{' ' * (end - start)}{text[end : last.end + 1]}\nLIMIT {top[len(top) // 2].text}"


def _syntax_error(text: str, error: SqlglotError) -> QueryError:
    details = getattr(error, "errors", None)
    if not details or details[0].get("highlight") is None:
        closed = readable(text, len(text))
        hint = f" Write {closed.example} at the end." if closed is not None else ""
        return QueryError(
            f"this is not SQL that can be read: a quote or a comment is not closed, perhaps.{hint}",
            remedy=() if closed is None else closed,
        )
    first = details[0]
    start = max(0, len(first["start_context"] or ""))
    context = (first["start_context"] or "") + first["highlight"]
    at = text.find(context)
    start = at + len(first["start_context"] or "") if at >= 0 else 0
    end = start + len(first["highlight"]) - 1
    if text.upper().split()[:2] == ["SELECT", "TOP"]:
        return marked(_TOP, text, start, end, remedy=Rewrite("LIMIT 3"))
    near = readable(text, start)
    hint = "" if near is None else f"; write {near.example}"
    return marked(
        f"this is not SQL that can be read, from here on{hint}:", text, start, end, remedy=() if near is None else near
    )


def _tables(statement: exp.Expr, text: str, catalog: Catalog) -> list[str]:
    """The names of all tables a statement reads; refuses unknown ones and table functions."""
    own = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
    tables = []
    for node in statement.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier):
            what = written(node.this, text) if isinstance(node.this, exp.Func) else str(node.this).upper()
            raise refuse(f"{what} reads from outside; only declared tables can be asked.", text, node)
        if node.args.get("db") or node.args.get("catalog"):
            way = in_place(node.name, text, node)
            raise refuse(
                f"table names have one part, the name declared in the session: {way.example}.", text, node, remedy=way
            )
        if node.name.lower() in own:
            continue
        name = find_name(node.name, catalog)
        if is_release(node.name) and name is None:
            raise refuse(f"unknown table {node.name!r}.", text, node.this)
        if name is None:
            raise refuse(
                f"unknown table {node.name!r}. {did_you_mean(node.name, catalog)}",
                text,
                node.this,
                remedy=meant(node.name, catalog, text, node.this),
            )
        tables.append(name)
    return tables
