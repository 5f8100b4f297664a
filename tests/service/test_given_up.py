"""Planning may be given up at any moment, by an exception from outside: so it holds no lock of the ledger's, ever.

Else a statement that takes as long as one may, to the millisecond, leaves the ledger locked for everybody: nothing is
told any more, and what was paid is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hubbub.service.whole_desk import WholeDesk
from service.helpers import COUNT, World

TENTH = {"epsilon": "0.1"}
OTHER = "SELECT w, COUNT(*) AS n FROM v GROUP BY w"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path / "l.db", monkeypatch, desk=WholeDesk)
    yield made
    made.close()


@pytest.fixture
def planned(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often anything was planned, and what was done with the ledger meanwhile."""
    done: list[str] = []
    store, planning = world.ledger._handle.store, [False]
    for name in ("reading", "writing"):
        act = getattr(store, name)

        def noted(*, act: Callable[[], Any] = act, name: str = name) -> Any:
            done.extend([name] * planning[0])
            return act()

        monkeypatch.setattr(store, name, noted)

    def plan(statement: Callable[[], Any]) -> Any:
        done.append("planned")
        planning[0] = True
        try:
            return statement()
        finally:
            planning[0] = False

    monkeypatch.setattr(world.desk, "_planned", plan)
    return done


def test_no_act_looks_at_the_ledger_while_it_plans(world: World, planned: list[str]) -> None:
    desk = world.desk
    assert isinstance(desk, WholeDesk)
    asked = desk.ask("ada", COUNT, TENTH, "a")["id"]
    bounds = desk.check_bounds("ada", COUNT, TENTH, "b", at="0.5")["id"]
    world.until(15)
    acts: dict[str, Callable[[], Any]] = {
        "check": lambda: desk.check("ada", OTHER, TENTH),
        "ask": lambda: desk.ask("ada", OTHER, TENTH, "c"),
        "plan": lambda: desk.plan("ada", [{"sql": OTHER, "options": {"epsilon": "0.2"}}], "d"),
        "check_bounds": lambda: desk.check_bounds("ada", OTHER, TENTH, "e", at="0.5"),
        "answer": lambda: desk.answer("ada", asked),
        "answer otherwise": lambda: desk.answer("ada", asked, limit="1"),
        "answer of bounds": lambda: desk.answer("ada", bounds),
        "read": lambda: desk.read("bob", asked),
        "check_refine": lambda: desk.check_refine("ada", asked, "0.1"),
        "refine": lambda: desk.refine("ada", asked, "0.1", "f"),
        "bound_costs": lambda: desk.declared.bound_costs("ada"),
    }
    for name, act in acts.items():
        planned.clear()
        act()
        assert set(planned) == {"planned"}, name
