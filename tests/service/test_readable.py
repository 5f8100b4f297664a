"""What a runner may read: the files of its policy, however they are named."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hubbub.ledger.policy import load_policy
from hubbub.service.runner import readable


def test_files_of_a_pattern_and_behind_a_link_are_readable(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for name in ("elsewhere/a.parquet", "elsewhere/b.parquet"):
        pq.write_table(pa.table({"id": [1]}), tmp_path / name)
    (tmp_path / "linked.parquet").symlink_to(tmp_path / "elsewhere" / "a.parquet")
    policy = '[ledger]\nfile = "b.db"\n[budget]\nepsilon = 1\n'
    for name, source in (("many", "elsewhere/*.parquet"), ("one", "linked.parquet")):
        policy += f'[tables.{name}]\nsource = "{source}"\nunit = "id"\n'
    (tmp_path / "hubbub.toml").write_text(policy)
    found = set(readable(load_policy(tmp_path / "hubbub.toml")))
    assert {tmp_path / "elsewhere/a.parquet", tmp_path / "elsewhere/b.parquet", tmp_path / "linked.parquet"} <= found
