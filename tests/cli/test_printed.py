"""What people typed, and keys that are released, write no further row, no escape and no HTML of their own."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.answer.release import text_table
from hubbub.cli.formats import as_csv, as_markdown

HOSTILE = [
    "=1+1", "a\rb", "a\nb", "a\r\nb", "a\x0bb", "a\x85b", "a\u2028b", "\x1b[2J", "\x9b2J", "\u202eabc",
    "<img src=x onerror=alert(1)>", "a|b", "[x](javascript:alert(1))", "`x`", "&lt;", "\\| x", "\x00",
]  # fmt: skip


def test_a_csv_has_as_many_rows_as_the_answer():
    table = [[text, "1"] for text in HOSTILE]
    read = list(csv.reader(io.StringIO(as_csv(["k", "n"], table), newline="")))
    assert [len(row) for row in read] == [2] * (len(HOSTILE) + 1)
    assert [row[0] for row in read[1:]] == ["'=1+1", *HOSTILE[1:]]


def test_markdown_has_as_many_lines_as_the_answer_and_no_html_or_links():
    shown = as_markdown(["k", "n"], [[text, "1"] for text in HOSTILE], right=[False, True])
    assert len(shown.splitlines()) == len(HOSTILE) + 2
    assert "<" not in shown
    assert all(line.replace("\\\\", "").replace("\\|", "").count("|") == 3 for line in shown.splitlines())
    bare = shown.replace("\\\\", "").replace("\\`", "")
    assert not any(mark in bare for mark in ("](", "`"))


@pytest.mark.parametrize("words", [False, True])
def test_a_printed_table_has_as_many_lines_as_the_answer_and_steers_nothing(words):
    shown = text_table(["k", "n"], [[text, "1"] for text in HOSTILE], words=words)
    assert len(shown.splitlines()) == len(HOSTILE) + 2
    assert not any(hidden in shown for hidden in "\x1b\x9b\u202e\x00\r")


def test_an_answer_is_printed_so(tmp_path):
    keys = hb.one_of("a\nb  9 ± 0", "\x1b[2J")
    t = hb.table(pa.table({"id": [1, 2], "w": ["\x1b[2J"] * 2}), unit="id", max_total=1, columns={"w": keys})
    with hb.Session({"t": t}, budget=hb.Budget(2), ledger=tmp_path / "l.db") as session:
        told = session.sql("SELECT w, COUNT(*) AS n FROM t GROUP BY w", epsilon=1, max_groups=1, max_rows=1)
    assert "\x1b" not in str(told)
    assert "\n" not in str(told).split("± 0")[0].splitlines()[-1]
    assert "a\\nb  9 ± 0" in str(told)
