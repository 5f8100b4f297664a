"""A public key is one where people's rows meet it: not in its stored type, nor in texts longer than what is read.

`JOIN public ON public.k = people.k` gives each person one row where k is a key of the public relation, and nothing is
bounded. Whether it is a key was asked of whole texts, of which the first 65,536 characters meet.
"""

from __future__ import annotations

import datetime as dt
import decimal
import warnings
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.tables.growth import CUT

LONG = "a" * CUT
PAIRS: dict[str, tuple[pa.DataType, Any, list[Any]]] = {
    "texts alike as far as they are read": (pa.string(), LONG, [LONG + "1", LONG + "2", LONG]),
    "texts of signs of several bytes": (pa.string(), "é" * CUT, ["é" * CUT + "x", "é" * CUT + "y"]),
    "texts that end in zero bytes": (pa.string(), "x", ["x\0", "x", "x\0\0"]),
    "zeros": (pa.float64(), 0.0, [0.0, -0.0]),
    "not numbers": (pa.float64(), float("nan"), [float("nan"), float("inf")]),
    "decimals that are one double": (
        pa.decimal128(38, 20),
        decimal.Decimal("0.1"),
        [decimal.Decimal("0.1"), decimal.Decimal("0.10000000000000000001")],
    ),
    "whole numbers of 64 bits that are one double": (pa.int64(), 2**53, [2**53, 2**53 + 1]),
    "whole numbers without a sign": (pa.uint64(), 2**64 - 1, [2**64 - 1, 2**64 - 2]),
    "nanoseconds": (pa.timestamp("ns"), dt.datetime(2025, 1, 1), [10**18, 10**18 + 1]),
    "dates": (pa.date32(), dt.date(2025, 1, 1), [dt.date(2025, 1, 1), dt.date(2025, 1, 2)]),
    "truths": (pa.bool_(), True, [True, False]),
}
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM (SELECT id, MIN(k) AS k FROM people GROUP BY id) p JOIN q ON q.k = p.k",
    "SELECT COUNT(*) AS n FROM (SELECT id, MIN(k) AS k FROM people GROUP BY id) p LEFT JOIN q ON q.k = p.k",
    "SELECT COUNT(*) AS n FROM (SELECT id, MIN(k) AS k FROM people GROUP BY id) p "
    "JOIN (SELECT DISTINCT k FROM q) r ON r.k = p.k",
]


@pytest.mark.parametrize("question", QUESTIONS, ids=["join", "left join", "distinct"])
@pytest.mark.parametrize("pair", PAIRS)
def test_one_person_moves_a_count_by_no_more_than_is_claimed(pair: str, question: str) -> None:
    kind, own, keys = PAIRS[pair]
    public = pa.table({"k": pa.array([*keys, None], kind)})
    counts = []
    for people in ([1], [1, 2]):
        rows = pa.table({"id": people, "k": pa.array([own] * len(people), kind)})
        table = hb.table(rows, unit="id", max_groups=1, max_rows=40)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            tables = {"people": table, "q": hb.public(public)}
            with hb.Session(tables, budget=hb.Budget(10**9), ledger=None) as session:
                release = session.sql(question, epsilon=10**6)
                ((count,),) = release.rows()
                counts.append(count)
                claimed = session.receipt(release.charge_id)["measurements"][0]["sensitivity"]
    assert counts[1] - counts[0] <= claimed
