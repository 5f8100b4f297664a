"""A digit is one of 0 to 9: what Python calls a digit beside them is no number of SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hubbub as hb

pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")


@pytest.mark.parametrize("digit", ["\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT THREE}", "\N{FULLWIDTH DIGIT ONE}"])
def test_an_interval_is_written_in_ascii(digit: str) -> None:
    rows = hb.table(pa.table({"id": [1, 2]}), unit="id", max_total=1)
    text = f"SELECT COUNT(*) FROM t WHERE DATE '2025-01-01' + INTERVAL '{digit}' DAY > DATE '2025-01-01'"
    with hb.Session({"t": rows}, budget=hb.Budget(1), ledger=None) as session:
        with pytest.raises(hb.QueryError, match="whole number"):
            session.check(text, epsilon=1)
