"""LIKE on Spark: it means what it means elsewhere, and one long text in a row does not hold it up."""

from __future__ import annotations

import itertools
import re
from typing import Any

import duckdb
import pytest

import hubbub as hb
from hubbub.engines.spark.dialect import SPARK
from hubbub.engines.spark.like import in_segments, linear
from hubbub.tables.kinds import Kind
from hubbub.tables.patterns import like_parts

TEXTS = [
    "",
    "ab",
    "a\nb\u2028c",
    "a.b|c",
    "A[B]C",
    "a\\b%c",
    "ÄbÇ",
    "aXbbc",
    "cba",
    "a^b$c",
    "ab\U0001f600c",
    "a#b&c d",
]
PATTERNS = ["a%b%c", "%a%_%c", "a%.%|%", "%a%\\%\\%%c", "%a%b%c%", "a_%b%%c", "%a%[B]%c", "Ä%b%ç", "%^%$%", "% %d"]
PATTERNS += ["a%\U0001f600%c", "%#%&%", "%", "%%%", "a%c", "%b%", "_%_%_"]


def _parts(pattern: str) -> tuple[str, ...]:
    parts = like_parts(pattern, None)
    assert parts is not None
    return parts


def test_segments_mean_what_the_pattern_means() -> None:
    """Every pattern of up to 5 signs over every text of up to 5 letters; Python's `\\Z` is Java's `\\z`."""
    texts = ["".join(t) for n in range(6) for t in itertools.product("ab", repeat=n)]
    for pattern in ("".join(p) for n in range(1, 6) for p in itertools.product("%_ab", repeat=n)):
        if "%" in pattern:
            whole = re.compile("".join({"%": ".*", "_": "."}.get(c, c) for c in pattern), re.DOTALL)
            ours = re.compile(in_segments(_parts(pattern)).replace(r"\z", r"\Z"))
            for text in texts:
                assert bool(ours.search(text)) == bool(whole.fullmatch(text)), (pattern, text)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("ignore_case", [False, True])
def test_no_pattern_looks_at_a_text_again(pattern: str, ignore_case: bool) -> None:
    """Where % stands between two parts, what is written has none that is looked for again when another is missing."""
    parts = _parts(pattern)
    sql = SPARK.like("t", parts, ignore_case)
    again = sum(part == "%" for part in parts[1:-1] if len(parts) > 2)
    assert linear(parts) or again
    assert (" LIKE " in sql) == linear(parts)
    if not linear(parts):
        assert len(re.findall(r"(?<!\(\?>)\.\*", in_segments(parts))) <= 1


def test_patterns_are_those_of_duckdb_and_a_long_text_ends(spark: Any) -> None:
    rows = spark.createDataFrame([(i, t) for i, t in enumerate([*TEXTS, "ab" * 32_000])], "id LONG, t STRING")
    rows = rows.localCheckpoint()
    with duckdb.connect() as con:
        con.execute("CREATE TABLE v AS SELECT unnest(?) AS t", [[*TEXTS, "ab" * 32_000]])
        with hb.Session({"v": hb.table(rows, unit="id", max_total=1)}, budget=hb.Budget(10**9), ledger=None) as session:
            asked = [f"t {w} '{p}'" for w in ("LIKE", "ILIKE") for p in (*PATTERNS, "%a%a%a%a%bb%", "a%b%a%b%bb")]
            counts = ", ".join(f"COUNT(*) FILTER (WHERE {a}) AS c{i}" for i, a in enumerate(asked))
            wanted = con.execute(f"SELECT {counts} FROM v").fetchone()
            assert session.sql(f"SELECT {counts} FROM v", epsilon=10**7).rows() == [wanted]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_text_is_a_number_or_a_day_to_its_very_end(spark: Any, ansi: str) -> None:
    """Java's `$` stands before a last line's end, too: '12\\u2028' was whole, and '... 03:04\\u2028' had a day."""
    texts = {"whole": "12", "integer": "12", "number": "1.5e3", "date": "2020-01-02 03:04", "timestamp": "2020-01-02"}
    casts = {name: SPARK.cast("x", Kind.TEXT, Kind[name.upper()]) for name in texts if name != "whole"}
    rules = {"whole": f"nullif({SPARK.whole_text('x')}, FALSE)", **casts}
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    for end, blank in (("", True), ("\n", True), ("\r\n", True), ("\x85", False), ("\u2028", False), ("\u2029", False)):
        for name, text in texts.items():
            for x in (text + end, end + text):
                rows = spark.createDataFrame([(x,)], "x STRING").selectExpr(f"{rules[name]} IS NOT NULL AS known")
                assert rows.collect()[0].known == blank, (name, x)
