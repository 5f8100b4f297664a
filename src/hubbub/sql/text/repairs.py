"""A question whose text is changed in one place: ways out of a refusal that leave nothing to fill in.

What is changed is the text, and not its tree: parameters, and all that is not at that place, stay as they were written.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from hubbub.remedies import Rewrite
from hubbub.spelling import one_letter_apart
from hubbub.sql.text.locate import span_of
from hubbub.sql.text.read import AsWritten
from hubbub.sql.text.texts import as_name

__all__ = [
    "behind_word",
    "called_otherwise",
    "conditional",
    "from_table",
    "kept_names",
    "misspelt_start",
    "one_statement",
    "only_term",
    "readable",
    "renamed_call",
    "star_with",
    "texts_of",
    "without_before",
    "without_brackets",
    "without_order",
    "without_pair",
    "without_word",
]

LONGEST: Final = 5_000
"""Longer texts are not looked at: each guess reads the whole."""
_OTHERS: Final = ("XOR", "NOR", "NIN")
"""Words that are none here, and no slip of one: each says the contrary, or less."""
_ALIKE: Final = frozenset(
    "Abs Add Alias And Avg Between Boolean Case Ceil Coalesce Column Count CTE Day DecodeCase Distinct EQ Except "
    "Exists Floor From Group GT GTE Having Hour Identifier If In Intersect Is Join Like Limit Literal Lower LT LTE "
    "Max Min Minute Mod Month Mul Neg NEQ Not Null Nullif Offset Or Order Ordered Paren Second Select Star Sub "
    "Subquery Sum Table TableAlias TsOrDsToDate Union Upper Where With Year".split()
)
"""Parts of a question that all dialects read in one way, as the parser calls them."""
_UNREADABLE: Final = (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError)
"""What the parser raises at a text that is no SQL of a dialect: it is made for texts that are."""
_DIALECTS: Final = ("mysql", "tsql", "bigquery", "snowflake", "oracle")
_STARTS: Final = ("SELECT", "WITH", "FROM")
_WORDS: Final = (
    "FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET JOIN LEFT INNER FULL ON USING AND OR NOT IN BETWEEN LIKE ILIKE IS "
    "NULL AS CASE WHEN THEN ELSE END DISTINCT OVER PARTITION UNION INTERSECT EXCEPT QUALIFY FILTER DESC ASC"
).split()
_TURNED: Final = {"=>": ">=", "=<": "<=", "=!": "!="}
_AFTER_FROM: Final = frozenset(
    "WHERE GROUP HAVING ORDER LIMIT OFFSET QUALIFY WINDOW UNION INTERSECT EXCEPT FETCH".split()
)


def _spliced(text: str, start: int, end: int, instead: str, example: str = "") -> Rewrite:
    """The question with `instead` in place of what stands from `start` to before `end`."""
    return Rewrite(example or instead, f"{text[:start]}{instead}{text[end:]}")


def _tokens(text: str) -> Sequence[Any]:
    try:
        return sqlglot.tokenize(text, read="duckdb")
    except SqlglotError:
        return ()


def _word(token: Any) -> str:
    """The first word of a token, in capitals; nothing of a text or of a name in quotes."""
    return "" if token.token_type.name.endswith(("STRING", "IDENTIFIER")) else token.text.upper().partition(" ")[0]


def _reads(text: str, dialect: Any = AsWritten) -> exp.Query | None:
    """The query that a text is; None where it is none."""
    with contextlib.suppress(*_UNREADABLE):
        tree = sqlglot.parse_one(text, read=dialect)
        return tree if isinstance(tree, exp.Query) else None
    return None


def misspelt_start(text: str, first: Any) -> tuple[Rewrite, ...]:
    """The question with the word that its first one is near to.

    >>> misspelt_start("SELCT 1", sqlglot.tokenize("SELCT 1")[0])
    (Rewrite(example='SELECT', sql='SELECT 1'),)
    """
    ways = [_spliced(text, first.start, first.end + 1, word) for word in one_letter_apart(first.text.upper(), _STARTS)]
    return tuple(way for way in ways if _reads(way.sql or "") is not None)


def one_statement(text: str) -> tuple[Rewrite, ...]:
    """Each statement of a text by itself, where all of them are questions.

    >>> [way.sql for way in one_statement("SELECT 1; SELECT ';'")]
    ['SELECT 1', "SELECT ';'"]
    """
    if len(text) > LONGEST:
        return ()
    pieces, start = [], 0
    for end in [*(t.start for t in _tokens(text) if t.token_type.name == "SEMICOLON"), len(text)]:
        pieces.append(text[start:end].strip())
        start = end + 1
    pieces = [piece for piece in pieces if piece]
    fine = 1 < len(pieces) <= 10 and all(
        piece.upper().startswith(_STARTS) and _reads(piece) is not None for piece in pieces
    )
    return tuple(Rewrite(" ".join(piece.split()), piece) for piece in pieces) if fine else ()


def readable(text: str, at: int) -> Rewrite | None:
    """The question nearest to a text that is none: a word that is misspelt, a bracket or a quote that is not closed, a
    sign that is turned round, or SQL of another dialect, said in DuckDB's. None where two texts are as near.

    >>> readable("SELECT COUNT(*) FORM t", 21).sql
    'SELECT COUNT(*) FROM t'
    >>> readable("SELECT COUNT(*) FROM `t`", 21).sql
    'SELECT COUNT(*) FROM "t"'
    """
    if len(text) > LONGEST:
        return None
    near = {way.sql: way for way in _near(text, at) if _reads(way.sql or "") is not None}
    if len(near) > 1:
        return None  # ILKE may be LIKE or ILIKE
    return next(iter(near.values()), None) or _said_otherwise(text)


def _near(text: str, at: int) -> Iterator[Rewrite]:
    """Texts with one change near a place."""
    tokens = _tokens(text)
    if not tokens:
        if not any(word in _WORDS for word in text[text.rfind("'") + 1 :].upper().split()):
            yield _spliced(text, len(text), len(text), "'")
        return
    before = [t for t in tokens if t.start <= at][-3:]
    for token in reversed([*before, *[t for t in tokens if t.start > at][:1]]):
        if _word(token).isalpha() and _word(token) not in (*_WORDS, *_OTHERS):
            for word in one_letter_apart(_word(token), _WORDS) if len(_word(token)) > 2 else ():
                yield _spliced(text, token.start, token.end + 1, word)
    for start in range(max(0, at - 3), at + 1):
        turned = _TURNED.get(text[start : start + 2])
        if turned is not None:
            yield _spliced(text, start, start + 2, turned)
    if opened := _left_open(tokens):
        yield _spliced(text, tokens[-1].end + 1, len(text), ")" * opened)
    elif text[at : at + 1] == ")" and not _depends_on_brackets({*map(_word, tokens)} - {"SELECT"}):
        yield _spliced(text, at, at + 1, "", " ".join(f"{text[:at]}{text[at + 1 :]}".split()))


def _left_open(tokens: Sequence[Any]) -> int:
    """How many brackets are not closed; 0 where it matters before which word they are."""
    opened: list[int] = []
    inside: list[tuple[int, str]] = []  # words, with the bracket in which each stands
    for i, token in enumerate(tokens):
        if _word(token) == ")" and opened:
            begin = opened.pop()
            inside = [(bracket, word) for bracket, word in inside if bracket != begin]
        elif opened:
            inside.append((opened[-1], _word(token)))
        if _word(token) == "(":
            opened.append(i)
    before = {_word(tokens[i - 1]) for i in opened if i}
    return 0 if _depends_on_brackets({word for _, word in inside} | (before & {"NOT"})) else len(opened)


def _depends_on_brackets(words: Set[str]) -> bool:
    """Whether conditions of these words mean something else where a bracket ends elsewhere."""
    return len(words & {"AND", "OR"}) > (not words & {"NOT", "SELECT"})


def _said_otherwise(text: str) -> Rewrite | None:
    """A question of another dialect, in DuckDB's SQL; none of one with what dialects read differently.

    Signs: those of parameters; `"note" = 'x'`, which compares two texts in MySQL; `||`, which is OR there; `a / 2`,
    which is a whole number in T-SQL; `#`, behind which MySQL reads nothing; the backslash in a text. Functions, but for
    a few: DAYOFWEEK is 1 on a Sunday in MySQL, and 0 in DuckDB; and no text says in which of several dialects it is.
    And none that a dialect reads without all of its numbers and texts: ISNULL(a, 0) has one argument in MySQL.
    """
    if any(sign in text for sign in ("$", "?", '"', "||", "|>", "/", "#", "\\")):
        return None
    constants = _constants(text)
    for dialect in _DIALECTS:
        tree = _reads(text, dialect)
        if tree is None or not all(map(_read_alike, tree.walk())):
            continue
        with contextlib.suppress(*_UNREADABLE):
            said = tree.sql(AsWritten, comments=False, unsupported_level=ErrorLevel.RAISE)
            if said and _reads(said) is not None and constants <= _constants(said):
                return Rewrite(said, said)
    return None


def _constants(text: str) -> Counter[str]:
    """The numbers and texts of a question, and how often each stands in it."""
    kinds = ("NUMBER", "STRING")
    with contextlib.suppress(*_UNREADABLE):
        return Counter(token.text for token in sqlglot.tokenize(text, read=AsWritten) if token.token_type.name in kinds)
    return Counter()


def _read_alike(node: exp.Expr) -> bool:
    """Whether all dialects read a part of a question in one way."""
    match node:
        case exp.Like(expression=exp.Literal(this=str(pattern))):
            return "[" not in pattern  # of these letters one, in T-SQL
        case exp.TableAlias(columns=[_, *_]):
            return False  # `FROM t SAMPLE (10)`, in a dialect that has other words for it
        case exp.Distinct(expressions=[_, _, *_]):
            return False
    return type(node).__name__ in _ALIKE


def only_term(text: str, select: exp.Expr, name: str) -> tuple[Rewrite, ...]:
    """A question with one column of a SELECT in it, and not the others: the one of that name, or each of them.

    One that groups keeps its columns, which may be all the aggregates that it has, below a SELECT of the one.
    """
    if not isinstance(select, exp.Select):
        return ()
    begin, terms = _terms(text, select)
    called = [item.alias_or_name for item in select.selects]
    chosen = [i for i, column in enumerate(called) if terms and column.lower() == name.lower()][:1] or range(len(terms))
    if select.args.get("group") is None:
        end = terms[-1][1] if terms else 0
        return tuple(_spliced(text, terms[0][0], end, text[terms[i][0] : terms[i][1]]) for i in chosen)
    tokens = _tokens(text)
    closed = _closed(tokens, next((i for i, t in enumerate(tokens) if t.start == begin), 0))
    end = len(text) if closed is None else tokens[closed].start
    outside = [
        f"SELECT {exp.to_identifier(called[i]).sql('duckdb')} FROM ({text[begin:end]})" for i in chosen if called[i]
    ]
    return tuple(_spliced(text, begin, end, words) for words in outside)


def _terms(text: str, select: exp.Select) -> tuple[int, list[tuple[int, int]]]:
    """Where a SELECT begins in the text, and from where to where each column stands; none where that is unclear."""
    spans = [span_of(item) for item in select.expressions]
    first = min((span[0] for span in spans if span is not None), default=-1)
    tokens = _tokens(text) if first >= 0 and len(text) <= LONGEST else ()
    for i in reversed([i for i, t in enumerate(tokens) if t.token_type.name == "SELECT" and t.start < first]):
        terms = _split(tokens[i + 1 :])
        if len(terms) == len(spans) and all(
            span is None or (start <= span[0] and span[1] < end)
            for span, (start, end) in zip(spans, terms, strict=True)
        ):
            return tokens[i].start, terms
    return 0, []


def _split(tokens: Sequence[Any]) -> list[tuple[int, int]]:
    """The terms of a list up to FROM, or to the bracket that ends it."""
    terms: list[tuple[int, int]] = []
    inside: list[Any] = []
    depth = 0
    for token in tokens:
        if depth == 0 and (_word(token) in (")", ",") or _word(token) in ("FROM", *_AFTER_FROM)):
            if inside:
                terms.append((inside[0].start, inside[-1].end + 1))
            inside = []
            if _word(token) != ",":
                return terms
            continue
        depth += (_word(token) in ("(", "[")) - (_word(token) in (")", "]"))
        if inside or _word(token) not in ("DISTINCT", "ALL"):
            inside.append(token)
    return [*terms, (inside[0].start, inside[-1].end + 1)] if inside else terms


def from_table(text: str, tables: Iterable[str]) -> tuple[Rewrite, ...]:
    """A question without FROM, asked of the table that there is; of several, which one was meant is left open.

    >>> [way.sql for way in from_table("SELECT COUNT(*) WHERE a > 2", ["t"])]
    ['SELECT COUNT(*) FROM t WHERE a > 2']
    """
    depth, place = 0, len(text.rstrip("; \n\t"))
    for token in _tokens(text):
        depth += (_word(token) == "(") - (_word(token) == ")")
        if depth == 0 and _word(token) in _AFTER_FROM:
            place = len(text[: token.start].rstrip())
            break
    words = [f"FROM {as_name(name)}" for name in tables]
    if len(words) > 1:
        return tuple(map(Rewrite, words))
    return tuple(_spliced(text, place, place, f" {word}", word) for word in words)


def kept_names(text: str, names: Sequence[exp.Expr], most: int) -> tuple[Rewrite, ...]:
    """A question with the first names of a list alone, as in AS t(a, b)."""
    spans = [span_of(name) for name in names]
    last, end = spans[most - 1], spans[-1]
    first = spans[0]
    if last is None or end is None or first is None:
        return ()
    return (_spliced(text, last[1] + 1, end[1] + 1, "", text[first[0] : last[1] + 1]),)


def without_word(text: str, word: str) -> tuple[Rewrite, ...]:
    """A question without a word that stands in it once, behind another, and what is then written there.

    >>> without_word("WITH RECURSIVE a AS (SELECT 1) SELECT 1", "RECURSIVE")[0].example
    'WITH'
    """
    tokens = _tokens(text)
    places = [i for i, token in enumerate(tokens) if _word(token) == word]
    if len(places) != 1 or not places[0]:
        return ()
    before, token = tokens[places[0] - 1], tokens[places[0]]
    return (_spliced(text, before.end + 1, token.end + 1, "", before.text),)


def behind_word(text: str, word: str, more: str) -> Rewrite:
    """A question with one word more behind another; the two alone where that one does not stand in it once.

    >>> behind_word("SELECT COUNT(*) FROM t GROUP BY CUBE (a, a)", "GROUP BY", "DISTINCT").sql
    'SELECT COUNT(*) FROM t GROUP BY DISTINCT CUBE (a, a)'
    """
    ends = [token.end + 1 for token in _tokens(text) if token.text.upper() == word]
    example = f"{word} {more}"
    return _spliced(text, ends[0], ends[0], f" {more}", example) if len(ends) == 1 else Rewrite(example)


def without_before(text: str, word: str, node: exp.Expr, example: str) -> Rewrite:
    """A question without the last such word before a part of it, as DISTINCT in MIN(DISTINCT x)."""
    span = span_of(node)
    places = [t for t in _tokens(text) if _word(t) == word and span is not None and t.start < span[0]]
    if not places or span is None:
        return Rewrite(example)
    return _spliced(text, places[-1].start, span[0], text[places[-1].end + 1 : span[0]].lstrip(), example)


def without_pair(text: str, first: str, second: str) -> tuple[Rewrite, ...]:
    """A question without two words that stand in it once, one behind the other.

    >>> without_pair("SELECT SUM(n) IGNORE NULLS FROM t", "IGNORE", "NULLS")[0].sql
    'SELECT SUM(n) FROM t'
    """
    pairs = [p for p in itertools.pairwise(_tokens(text)) if (_word(p[0]), _word(p[1])) == (first, second)]
    if len(pairs) != 1:
        return ()
    whole = f"{text[: pairs[0][0].start].rstrip()}{text[pairs[0][1].end + 1 :]}"
    return (Rewrite(whole, whole),)


def without_order(text: str, ordered: exp.Expr) -> tuple[Rewrite, ...]:
    """A question without the ORDER BY inside of a call, which ends at the bracket of the call."""
    span = span_of(ordered)
    tokens = _tokens(text) if span is not None else ()
    places = [i for i, t in enumerate(tokens) if _word(t) == "ORDER" and span is not None and t.start < span[0]]
    if not places:
        return ()
    opened = _opened(tokens, places[-1])
    closed = _closed(tokens, places[-1])
    if opened is None or closed is None:
        return ()
    start, end = tokens[places[-1] - 1].end + 1, tokens[closed].start
    example = f"{text[tokens[opened - 1].start : start]})"
    return (_spliced(text, start, end, "", example),)


def conditional(text: str, condition: exp.Expr) -> tuple[Rewrite, ...]:
    """A question with CASE in an aggregate in place of the FILTER behind it."""
    span = span_of(condition)
    tokens = _tokens(text) if span is not None else ()
    places = [i for i, t in enumerate(tokens) if _word(t) == "FILTER" and span is not None and t.start < span[0]]
    if not places or [_word(t) for t in tokens[places[-1] + 1 : places[-1] + 3]] != ["(", "WHERE"]:
        return ()
    at = places[-1]
    opened, closed = _opened(tokens, at - 1), _closed(tokens, at + 2)
    if opened is None or closed is None or _word(tokens[opened + 1]) == "DISTINCT":
        return ()
    value = text[tokens[opened].end + 1 : tokens[at - 1].start].strip()
    where = text[tokens[at + 2].end + 1 : tokens[closed].start].strip()
    start = tokens[opened - 1].start
    call = f"{tokens[opened - 1].text}(CASE WHEN {where} THEN {'1' if value == '*' else value} END)"
    return (_spliced(text, start, tokens[closed].end + 1, call),)


def _opened(tokens: Sequence[Any], at: int) -> int | None:
    """Where the bracket is that is open at a token, behind the name of what is called."""
    depth = 0
    for i in range(at - 1, 0, -1):
        depth += (_word(tokens[i]) == ")") - (_word(tokens[i]) == "(")
        if depth < 0:
            return i
    return None


def _closed(tokens: Sequence[Any], at: int) -> int | None:
    """Where the bracket that is open at a token is closed."""
    depth = 0
    for i in range(at + 1, len(tokens)):
        depth += (_word(tokens[i]) == "(") - (_word(tokens[i]) == ")")
        if depth < 0:
            return i
    return None


def star_with(text: str, star: exp.Star, names: Iterable[str]) -> tuple[Rewrite, ...]:
    """A question in which the columns that REPLACE or RENAME of a star lists stand behind it, and not in it.

    None where columns may go by their places, as in UNION and AS q(a, b).
    """
    tree = _reads(text)
    if tree is None or tree.find(exp.SetOperation) or any(a.columns for a in tree.find_all(exp.TableAlias)):
        return ()
    tokens = _tokens(text)
    at = next((i for i, t in enumerate(tokens) if t.start == star.meta.get("start")), None)
    closed = None if at is None or at + 3 > len(tokens) else _closed(tokens, at + 2)
    if (
        at is None
        or closed is None
        or _word(tokens[at + 1]) not in ("REPLACE", "RENAME")
        or _word(tokens[at + 2]) != "("
    ):
        return ()
    inside = text[tokens[at + 2].end + 1 : tokens[closed].start]
    left_out = ", ".join(exp.to_identifier(name).sql("duckdb") for name in names)
    return (_spliced(text, tokens[at].start, tokens[closed].end + 1, f"* EXCLUDE ({left_out}), {inside}"),)


def without_brackets(text: str, node: exp.Expr) -> tuple[Rewrite, ...]:
    """A question with a name in place of `[name]`, as in Transact-SQL."""
    names = node.expressions if isinstance(node, exp.Array) else []
    span = span_of(node) if len(names) == 1 and isinstance(names[0], exp.Column) else None
    if span is None or (text[span[0] - 1], text[span[1] + 1 : span[1] + 2]) != ("[", "]"):
        return ()
    return (_spliced(text, span[0] - 1, span[1] + 2, text[span[0] : span[1] + 1]),)


def texts_of(text: str, nodes: Iterable[exp.Expr]) -> tuple[Rewrite, ...]:
    """A question in which each of these names is a text, and what the first is then."""
    spans = [(span_of(node), exp.Literal.string(node.name).sql()) for node in nodes]
    whole = text
    for span, constant in reversed(spans):
        if span is None:
            return ()
        whole = f"{whole[: span[0]]}{constant}{whole[span[1] + 1 :]}"
    return tuple(Rewrite(constant, whole) for _, constant in spans[:1])


def called_otherwise(text: str, old: str, ways: Iterable[Rewrite]) -> tuple[Rewrite, ...]:
    """Ways out of a function that is not there: where one is another name, the whole question with it."""
    return tuple(renamed_call(text, old, way.example) if way.example.isidentifier() else way for way in ways)


def renamed_call(text: str, old: str, new: str) -> Rewrite:
    """A question with another name for a function: all of it, where the function stands in it once.

    >>> renamed_call("SELECT LENGHT(a) FROM t", "LENGHT", "LENGTH").sql
    'SELECT LENGTH(a) FROM t'
    """
    tokens = _tokens(text)
    called = [t for t, then in itertools.pairwise(tokens) if _word(t) == old and then.text == "("]
    if len(called) != 1:
        return Rewrite(new)
    return _spliced(text, called[0].start, called[0].end + 1, new)
