"""Public rows that two questions meet at one time: each is priced by the very rows that it meets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.engines.outer import OuterSide
from hubbub.tables.kinds import Kind
from hubbub.tables.relations import PublicRelation

RANDOM = "SELECT CAST(random() * 1e15 AS BIGINT) AS k"


def relation(sql: str, *tables: str) -> PublicRelation:
    return PublicRelation("p", sql, tables, (), {"k": Kind.INTEGER}, lambda _: None, lambda _: False)


def test_rows_that_another_question_has_drawn_meanwhile_are_nobody_else_s(monkeypatch: pytest.MonkeyPatch) -> None:
    public = OuterSide({})
    one, other = public.pinned(), public.pinned()
    plain, priced = OuterSide.run, list[Any]()

    def met_on_the_way(
        side: OuterSide, sql: str, tables: tuple[str, ...], released: Mapping[str, pa.Table]
    ) -> pa.Table:
        answer = plain(side, sql, tables, released)
        if side is one and not priced:  # the other one asks the same, and is done before this one is
            priced.append(other.values(RANDOM, (), "k"))
        return answer

    monkeypatch.setattr(OuterSide, "run", met_on_the_way)
    told = [one.values(RANDOM, (), "k"), *priced]
    met = [tuple(side.leaf(relation(RANDOM), {}).column("k").to_pylist()) for side in (one, other)]
    assert met == told


def test_a_file_that_was_written_between_two_questions_is_another_question(tmp_path: Path) -> None:
    path = tmp_path / "pub.csv"
    path.write_text("k\n1\n2\n")
    public = OuterSide({"pub": hb.public(path)})
    one, other = public.pinned(), public.pinned()  # nothing was read before either of them
    sql = "SELECT k FROM pub"
    told = [one.fingerprint("pub"), one.unique(sql, ("pub",), ("k",))]
    path.write_text("k\n1\n1\n1\n")
    told += [other.fingerprint("pub"), other.unique(sql, ("pub",), ("k",))]
    met = [side.leaf(relation(sql, "pub"), {}).column("k").to_pylist() for side in (one, other)]
    assert met == [[1, 2], [1, 1, 1]]
    assert told[1::2] == [True, False]
    assert told[0] != told[2]
    assert [told[0], told[2]] == [one.fingerprint("pub"), other.fingerprint("pub")]


def test_equal_public_relations_have_one_hash_whoever_looks_their_values_up() -> None:
    one, other = relation("SELECT 1 AS k"), relation("SELECT 1 AS k")
    assert one.values is not other.values
    assert (one == other, hash(one) == hash(other), one == relation("SELECT 2 AS k")) == (True, True, False)
