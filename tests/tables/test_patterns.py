"""Regular expressions of a linear kind: what is accepted means in every engine what it means in Python."""

from __future__ import annotations

import re

import duckdb
import pytest

from hubbub.tables.patterns import BadPattern, parsed, printed

TEXTS = [
    "",
    "a",
    "A1",
    "aab",
    "cats",
    "cat\n",
    "x-1",
    "12",
    "1234",
    "a.b",
    "a\nb",
    "\\",
    "]",
    "^",
    "é",
    "tab\t",
    "[x]",
    "a-z",
]
GOOD = [
    "", "a", "^a", "b$", "^$", "^[^a-z]+$", "a.b", r"a\.b", r"\d{2,}$", r"^\w+$", r"\W", r"\s", "^(cat|dog)s?$",
    "a|^1|2$",
    "(?:a|x)[-.](1|b)", r"[\]\\^]", "[]a]", "[a-]", r"^\d{1,3}$", "[^\n]$", r"[\d.]+b?", "x{0}a", ".*b", "[A-Z][0-9]?",
]  # fmt: skip
BAD = {
    "(a)*": "a group is not repeated",
    "a*b*": "one \\* or \\+",
    "a+?": "repeated once",
    "a?b?c?d?": "at most 3",
    "(a": "not closed",
    "a)": "closes nothing",
    "[a": "not closed",
    "[z-a]": "no characters",
    "*a": "nothing stands before",
    "{2}": "nothing stands before",
    "é": "ASCII",
    r"\b": "not supported",
    r"\1": "not supported",
    "(?i)a": "not supported",
    "[[:alpha:]]": "spell the class out",
    r"[\W]": "do not stand in a class",
    "a{x}": "write",
    "a{3,1}": "write",
    "a" * 201: "at most 200",
    "(a|b)" * 20: "too many parts",
}


@pytest.mark.parametrize("pattern", GOOD)
def test_a_pattern_means_what_it_means_in_python(pattern: str) -> None:
    """Python's `$` also stands before a last new line; `\\Z` does not."""
    python = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    with duckdb.connect() as con:
        for text in TEXTS:
            found = con.execute("SELECT regexp_matches(?, ?)", [text, printed(pattern, r"\z")]).fetchall()
            assert found == [(bool(python.search(text)),)], text


@pytest.mark.parametrize("pattern", BAD)
def test_what_engines_do_not_read_alike_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern, match=BAD[pattern]):
        parsed(pattern)


def test_the_largest_pattern_is_one_that_the_engine_takes() -> None:
    with duckdb.connect() as con:
        for pattern in (r"\W{190}", "[^a]{190}", r"(\w|\W{99})\W{50}"):
            assert con.execute("SELECT regexp_matches('x', ?)", [printed(pattern, r"\z")]).fetchone() is not None
