"""How many groups an answer has is said before the charge, and a policy may bound it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.errors import QueryError

POLICY = """
[ledger]
file = "ledger.db"

[budget]
epsilon = 10

[service]
max_answer_groups = 40

[tables.v]
source = "v.parquet"
unit = "id"
max_groups = 1
max_rows = 1

[tables.v.columns]
at = { between = ["2022-01-01", "2024-12-31"] }
ward = { one_of = ["A", "B"] }
"""


def test_more_groups_than_the_policy_allows_are_refused_with_coarser_ones(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "at": [dt.datetime(2022, 5, 1), dt.datetime(2023, 5, 1)], "ward": ["A", "B"]})
    pq.write_table(rows, tmp_path / "v.parquet")
    (tmp_path / "hubbub.toml").write_text(POLICY)
    with hb.Session.from_policy(tmp_path / "hubbub.toml", create_ledger=True) as s:
        checked = s.check("SELECT DATE_TRUNC('month', at) AS m, COUNT(*) AS n FROM v GROUP BY 1", epsilon=1)
        assert "groups: 36, each answered." in checked.notes
        with pytest.raises(QueryError, match=r"1,096 groups; 40 are allowed \(`max_answer_groups`.*longer stretches"):
            s.check("SELECT CAST(at AS DATE) AS d, COUNT(*) AS n FROM v GROUP BY 1", epsilon=1)
        with pytest.raises(QueryError, match=r"72 groups \(36 times 2\)"):
            s.sql("SELECT DATE_TRUNC('month', at) AS m, ward, COUNT(*) AS n FROM v GROUP BY 1, 2", epsilon=1)
        text = "SELECT CAST(at AS DATE) AS d, COUNT(*) AS n FROM v WHERE at < '2022-02-01' GROUP BY 1"
        assert "groups: 31, each answered." in s.check(text, epsilon=1).notes
