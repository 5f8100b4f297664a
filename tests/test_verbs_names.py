"""A column that a verb computes anew is the new one wherever its name stands after that, in whatever spelling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub import col
from hubbub.verbs.facts import Facts
from people import HUGE, session

VISITS = pa.table({"id": [1, 1, 2, 3], "ward": ["A", "B", "A", "B"], "n": [1, 2, 3, 4]})
PEOPLE = pa.table({"id": [1, 2, 3], "ward": ["A", "A", "B"], "age": [20, 30, 40]})
WARDS = pa.table({"ward": ["A", "B"], "beds": [5, 7]})
NUMBERS: dict[str, Any] = {"n": hb.between(0, 9), "age": hb.between(0, 99)}
ONE = "SELECT id, n, age FROM visits JOIN people USING (id)"


def table(rows: pa.Table) -> Any:
    columns = {name: what for name, what in NUMBERS.items() if name in rows.column_names}
    return hb.table(rows, unit="id", max_groups=9, max_rows=9, max_total=20, columns=columns)


@pytest.fixture(scope="module")
def opened() -> Iterator[hb.Session]:
    with session(100 * HUGE, visits=table(VISITS), people=table(PEOPLE), wards=hb.public(WARDS)) as made:
        yield made


Chain = Callable[[Any, Any, Any], Any]
"""A question about visits, people and wards."""


CHAINS: dict[str, tuple[Chain, str]] = {
    "other case": (
        lambda v, p, w: v.with_columns(n=col("n") * 2).filter(col("N") > 3).agg(s=hb.sum("n")),
        "SELECT SUM(n * 2) FROM visits WHERE n * 2 > 3",
    ),
    "computed in another case": (
        lambda v, p, w: v.with_columns(N=col("n") * 2).filter(col("n") > 3).distinct().agg(s=hb.sum("n")),
        "SELECT SUM(n * 2) FROM visits WHERE n * 2 > 3",
    ),
    "twice": (
        lambda v, p, w: v.with_columns(n=col("n") * 2).with_columns(N=col("n") + 1).agg(s=hb.sum("n")),
        "SELECT SUM(n * 2 + 1) FROM visits",
    ),
    "selected": (
        lambda v, p, w: v.select("id", "n").with_columns(N=col("n") * 2).distinct().agg(s=hb.sum("n")),
        "SELECT SUM(n * 2) FROM visits",
    ),
    "swapped": (
        lambda v, p, w: v.select("id", n=col("id"), m=col("n")).filter(col("n") > 1).agg(s=hb.sum("m")),
        "SELECT SUM(n) FROM visits WHERE id > 1",
    ),
    "join and distinct": (
        lambda v, p, w: v.join(p, on="id").with_columns(n=col("n") * 2).distinct().agg(s=hb.sum("n")),
        f"SELECT SUM(n * 2) FROM ({ONE})",
    ),
    "join and alias": (
        lambda v, p, w: v.join(p, on="id").with_columns(AGE=col("age") + 1).alias("q").agg(s=hb.sum("age")),
        f"SELECT SUM(age + 1) FROM ({ONE})",
    ),
    "join of names once": (
        lambda v, p, w: v.join(p, on=["id", "ward"]).with_columns(n=col("n") * 2).distinct().agg(s=hb.sum("n")),
        "SELECT SUM(n * 2) FROM visits JOIN people USING (id, ward)",
    ),
    "join and window": (
        lambda v, p, w: (
            v.join(p, on="id")
            .with_columns(n=col("n") * 2)
            .with_columns(k=hb.row_number().over("id", order_by="n"))
            .filter(col("k") == 1)
            .agg(s=hb.sum("n"))
        ),
        f"SELECT SUM(n * 2) FROM ({ONE} QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY n) = 1)",
    ),
    "join and join": (
        lambda v, p, w: v.join(w, on="ward").with_columns(n=col("n") * 2).join(p, on="id").agg(s=hb.sum("n")),
        "SELECT SUM(n * 2) FROM visits JOIN wards USING (ward) JOIN people USING (id)",
    ),
    "join on a condition": (
        lambda v, p, w: (
            v.join(p, on=col("id", table="visits") == col("id", table="people"))
            .with_columns(n=col("n") * 2)
            .distinct()
            .agg(s=hb.sum("n"))
        ),
        f"SELECT SUM(n * 2) FROM ({ONE})",
    ),
    "union of joins": (
        lambda v, p, w: (
            v.join(w, on="ward").with_columns(n=col("n") * 2).union(v.join(w, on="ward")).agg(s=hb.sum("n"))
        ),
        "SELECT SUM(n) * 3 FROM visits JOIN wards USING (ward)",
    ),
}


@pytest.mark.parametrize("name", list(CHAINS))
def test_a_column_that_is_computed_anew_is_meant_from_then_on(opened: hb.Session, name: str) -> None:
    chain, sql = CHAINS[name]
    with duckdb.connect() as con:
        for held, rows in {"visits": VISITS, "people": PEOPLE, "wards": WARDS}.items():
            con.register(held, rows)
        meant = con.execute(sql).fetchall()
    asked = chain(*(opened.table(t) for t in ("visits", "people", "wards")))
    assert asked.run(epsilon=HUGE).rows() == meant


@pytest.mark.parametrize("verb", ["union", "intersect", "minus"])
def test_sides_of_a_set_operation_meet_by_name_where_all_names_are_the_same(opened: hb.Session, verb: str) -> None:
    """SQL puts them together by position: two columns of one kind would change places."""
    visits = opened.table("visits")
    one = visits.select("id", "n", m=col("id"))
    other = one.filter(col("n") > 2).select("n", "m", "id")
    asked = getattr(one, verb)(other).agg(s=hb.sum("n"))
    assert asked.run(epsilon=HUGE).rows() == [({"union": 17, "intersect": 7, "minus": 3}[verb],)]


def test_two_columns_that_differ_in_case_alone_stay_two() -> None:
    """Where an engine tells them apart."""
    assert Facts(("id", "n")).hides("N", "n")
    assert not Facts(("id", "n", "N")).hides("N", "n")
    assert Facts(("id", "n", "N")).with_these(["N", "m"]) == ("id", "n", "N", "m")


def test_a_side_of_a_union_whose_columns_would_change_their_places_is_refused(opened: hb.Session) -> None:
    """Columns are put together by position; of two of one name it is not known which is meant."""
    joined = opened.table("visits").join("people", on="id")
    asked = joined.with_columns(id=col("id")).with_columns(n=col("n") * 2).union(joined).agg(s=hb.sum("n"))
    with pytest.raises(hb.QueryError, match="'ward' is a column of"):
        asked.run(epsilon=HUGE)
