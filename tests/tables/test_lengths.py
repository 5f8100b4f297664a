"""The range of the length of a text that is cut."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.tables.expressions import Call, Column, Literal
from hubbub.tables.kinds import Kind
from hubbub.tables.spans import span
from people import HUGE, session

TEXTS = ["", "a", "abcd", "äöü", "\U0001f9d1\u200d\U0001f680x", "e\u0301e\u0301", "ß", None, " " * 9]
CUTS = ["LEFT(s, 3)", "LEFT(s, 0)", "RIGHT(s, 2)", "SUBSTR(s, 2, 3)", "SUBSTR(s, -2, 2)", "SUBSTR(s, 0, 2)"]


@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_text_is_as_long_as_it_says_at_most(cut: str) -> None:
    """No row is clamped: the sum is the engine's own, over every kind of character; and lengths can be groups."""
    frame = pa.table({"id": range(len(TEXTS)), "s": pa.array(TEXTS)})
    most = int(cut.rstrip(")").split(", ")[-1])
    with duckdb.connect() as con, session(t=hb.table(frame, unit="id", max_groups=1, max_rows=1)) as opened:
        con.register("t", frame)
        (truth,) = con.execute(f"SELECT SUM(LENGTH({cut})) FROM t").fetchone() or (None,)
        assert opened.sql(f"SELECT SUM(LENGTH({cut})) AS n FROM t", epsilon=HUGE).to_dict() == {"n": [truth]}
        groups = opened.sql(f"SELECT LENGTH({cut}) AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=HUGE).to_dict()
        counted = dict(con.execute(f"SELECT LENGTH({cut}), COUNT(*) FROM t WHERE s IS NOT NULL GROUP BY 1").fetchall())
    assert groups == {"k": list(range(most + 1)), "n": [counted.get(k, 0) for k in range(most + 1)]}


@pytest.mark.parametrize(
    "cut",
    [
        Call("LEFT", (Column("t.s", Kind.TEXT), Literal(-1))),
        Call("RIGHT", (Column("t.s", Kind.TEXT), Literal(None))),
        Call("LEFT", (Column("t.s", Kind.TEXT), Literal(Fraction(5, 2)))),
        Call("SUBSTR", (Column("t.s", Kind.TEXT), Literal(2))),
        Call("SUBSTR", (Column("t.s", Kind.TEXT), Literal(2), Literal(-3))),
        Call("LOWER", (Column("t.s", Kind.TEXT),)),
    ],
)
def test_what_does_not_say_how_long_it_is_has_no_longest(cut: Call) -> None:
    assert span(Call("LENGTH", (cut,)), {}) == (0, None)
