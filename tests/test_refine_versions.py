"""Two answers are combined only where both are of the same rows."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.session import ask
from hubbub.session.data import OpenTables
from hubbub.session.run import Door
from hubbub.session.session import Session

COUNT = "SELECT COUNT(*) AS n FROM t"


def write(file: Path, rows: int) -> None:
    file.write_text("pid\n" + "".join(f"{i:04d}\n" for i in range(rows)))


def opened(file: Path) -> Session:
    table = hb.table(file, unit="pid", max_groups=1, max_rows=1, types={"pid": "integer"})
    return Session({"t": table}, budget=hb.Budget(1000), ledger=file.with_name("b.db"), analyst="ada")


def between(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, then: Callable[[], object], *, after: bool
) -> None:
    """Do something just before, or after, a step of a question."""
    step = getattr(where, name)

    def run(*args: Any, **kwargs: Any) -> Any:
        if not after:
            then()
        found = step(*args, **kwargs)
        if after:
            then()
        return found

    monkeypatch.setattr(where, name, run)


@pytest.mark.parametrize(
    ("where", "step", "after"),
    [(Door, "release", False), (OpenTables, "mark", False), (ask, "foreseen", True)],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_rows_that_change_before_the_charge_refuse_it(tmp_path, monkeypatch, where, step, after):
    """Before, a file written anew between the look and the charge gave the mean of two versions' answers as one."""
    file = tmp_path / "t.csv"
    write(file, 1000)
    with opened(file) as s:
        first = s.sql(COUNT, epsilon=1)
        between(monkeypatch, where, step, lambda: write(file, 3000), after=after)
        with pytest.raises(hb.QueryError, match=r"rows have changed since.*Nothing was charged"):
            first.refine(2)
        assert s.remaining == Fraction(999)


@pytest.mark.parametrize("then", [lambda file: write(file, 3000), os.remove])
@pytest.mark.parametrize(
    ("where", "step"),
    [(Door, "_claimed"), (OpenTables, "run"), (Door, "record")],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_rows_that_change_after_the_charge_leave_the_second_answer_alone(tmp_path, monkeypatch, where, step, then):
    file = tmp_path / "t.csv"
    write(file, 1000)
    with opened(file) as s:
        first = s.sql(COUNT, epsilon=1)
        between(monkeypatch, where, step, lambda: then(file), after=True)
        if step == "_claimed" and then is os.remove:
            with pytest.raises(hb.EngineError):
                first.refine(20)
            return
        again = first.refine(20)
        assert again.epsilon == 20
        assert any("second answer alone" in note for note in again.text.notes)
        ((count,),) = again.rows()
        assert min(abs(count - 1000), abs(count - 3000)) < 20  # beyond by chance: less than 1e-150


def test_rows_that_stay_are_combined(tmp_path):
    file = tmp_path / "t.csv"
    write(file, 1000)
    with opened(file) as s:
        again = s.sql(COUNT, epsilon=1).refine(2)
    assert again.epsilon == 3
    assert again.text.notes == ()
