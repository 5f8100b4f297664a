"""An answer time is suggested from invented rows of the declared size; the real ones are not opened."""

from __future__ import annotations

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.policy import load_policy
from hubbub.service.calibrate import invented, questions, suggested

POLICY = """\
[ledger]
file = "l.db"
[budget]
epsilon = 1
[tables.visits]
source = "not-there.parquet"
unit = "id"
max_groups = 2
max_rows = 3
[tables.visits.columns]
ward = { one_of = ["A", "B"] }
age = { between = [0, 110] }
height = { between = [0.5, 2.5] }
day = { between = [2026-01-01, 2026-12-31] }
written = { between = ["2026-01-01", "2026-12-31"] }
at = { between = ["2026-01-01 00:00:00", "2026-12-31 12:00:00"] }
[tables.lines]
source = "nor-this.parquet"
each_row = true
max_groups = 1
[tables.lines.columns]
n = { between = [0, 9] }
"""


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "hubbub.toml").write_text(POLICY)
    return load_policy(tmp_path / "hubbub.toml")


def test_a_time_is_suggested_for_each_table_without_opening_any(policy):
    said: list[str] = []
    times = suggested(policy, 2000, say=said.append)
    assert set(times) == {"visits", "lines"}
    assert all(seconds >= 1 for seconds in times.values())
    assert "2000 invented rows took" in said[0]


def test_the_heaviest_unit_has_all_the_rows(policy):
    table = invented(policy.tables["visits"], 1000, 1).source
    assert (table.num_rows, len(set(table["id"].to_pylist()))) == (1000, 1)
    assert set(table["ward"].to_pylist()) == {"A", "B"}
    assert 0 <= min(table["age"].to_pylist()) <= max(table["age"].to_pylist()) <= 110
    assert len(list(questions(policy.tables["visits"]))) == 6


@pytest.mark.parametrize("rows", [0, 10**9])
def test_so_many_rows_are_refused(policy, rows):
    with pytest.raises(PolicyError, match="--calibrate"):
        suggested(policy, rows)
