"""The copies of objects that runners share: which stay, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from hubbub.addresses import ObjectAddress
from hubbub.errors import PolicyError
from hubbub.service import shared_objects
from hubbub.service.shared_objects import SharedObjects


def test_a_copy_that_is_being_made_stays_and_one_that_failed_goes(tmp_path: Path, monkeypatch: Any) -> None:
    """The clock looks for copies that nobody reads at any time, between two files of one too."""
    table = Mock(source=Mock(spec=ObjectAddress))
    table.name = "v"
    policy = Mock(tables={"v": table}, remote=lambda: [table])
    shared: list[SharedObjects] = []
    read: list[str] = []

    def copied(policy: Any, name: str, place: Path) -> str:
        place.mkdir()
        (place / "1.parquet").write_text("rows")
        for each in shared:
            each.keep(read)
        (place / "2.parquet").write_text("more")
        if len(list(tmp_path.iterdir())) > 2:
            raise PolicyError("the store is full")
        return str(place)

    monkeypatch.setattr(shared_objects, "copied_objects", copied)
    shared.append(SharedObjects(policy, tmp_path))
    first = shared[0].paths["v"]
    read.append(first)
    shared[0].copy("v")
    second = shared[0].paths["v"]
    assert len(list(Path(second).iterdir())) == 2
    with pytest.raises(PolicyError, match="full"):
        shared[0].copy("v")
    assert shared[0].paths["v"] == second
    assert sorted(map(str, tmp_path.iterdir())) == [first, second]
    shared[0].keep([])
    assert list(tmp_path.iterdir()) == [Path(second)]
