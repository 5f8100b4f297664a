"""The policy is edited, or a public file is, while answers are kept and questions wait: what was drawn is read by the
plan that it was drawn by, or not at all, whichever door asks for it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.ledger.schedule import SECOND
from hubbub.ledger.timetable import Scheduled
from hubbub.service.whole_desk import WholeDesk
from hubbub.session.ask import joined, release_of
from hubbub.session.empty import EmptyTables, schema_of
from hubbub.session.options import Options, written_value
from hubbub.session.prepare import PricedStatement
from hubbub.session.run import Order, Outcome
from hubbub.session.runner import Runner
from hubbub.session.statement import estimates_of, evaluated
from service.helpers import SPACE, World

AT = {"epsilon": "1"}
COUNT = "SELECT COUNT(*) AS n FROM v"
WARDS = "SELECT w, COUNT(*) AS n FROM v GROUP BY w"
NAMED = "SELECT p.name AS k, COUNT(*) AS n FROM v JOIN wards p ON p.w = v.w GROUP BY p.name"
KEYED = "SELECT p.w AS k, COUNT(v.id) AS n FROM wards p LEFT JOIN v ON p.w = v.w GROUP BY p.w"
SUM, MEAN, MEDIAN = (f"SELECT {f}(x) AS m FROM v" for f in ("SUM", "AVG", "MEDIAN"))
ABC = hb.one_of("a", "b", "c")
EDITS: dict[str, dict[str, Any]] = {
    "order": {"w": hb.one_of("c", "b", "a")},
    "other": {"w": hb.one_of("x", "y", "z")},
    "fewer": {"w": hb.one_of("a", "b")},
    "more": {"w": hb.one_of("a", "b", "c", "d")},
    "text": {"w": hb.text()},
    "range": {"x": hb.between(10, 60)},
    "wider": {"x": hb.between(0, 500)},
    "gone": {"x": None},
}
READ_WITH = {"w": (WARDS,), "x": (SUM, MEAN, MEDIAN)}


def declared(wards: Path, **edited: Any) -> dict[str, Any]:
    rows = pa.table({"id": range(90), "x": [i % 50 for i in range(90)], "w": ["a"] * 60 + ["b"] * 20 + ["c"] * 10})
    columns: dict[str, Any] = {
        name: what for name, what in ({"x": hb.between(0, 50), "w": ABC} | edited).items() if what is not None
    }
    private = hb.table(rows, unit="id", columns=columns, max_groups=1, max_rows=1, unit_space=SPACE)
    return {"v": private, "wards": hb.public(str(wards))}


def write(place: Path, wards: str) -> None:
    with place.open("w", newline="") as to:
        csv.writer(to).writerows([("w", "name"), *((w, w.upper() + str(n)) for n, w in enumerate(wards))])


class Edited(World):
    """A world whose steward edits what is declared, and the file of a public table."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wards = folder / "wards.csv"
        write(self.wards, "abc")
        self.tables = declared(self.wards)
        super().__init__(folder / "ledger.db", monkeypatch, desk=WholeDesk)

    def opened(self) -> WholeDesk:
        self.runner = Runner(self.tables)
        data = EmptyTables(self.tables, schema_of(self.runner._data))
        times = {"v": 5 * SECOND}
        return WholeDesk(
            data, self.ledger, policy="{}", times=times, queue=self.queue, start=self.start, log=self.lines.append
        )

    def start(self, one: Scheduled, order: Order) -> None:
        try:
            brought = self.runner.execute(Order.from_wire(order.to_wire()), drawing=lambda: None)
        except hb.errors.HubbubError as error:  # as the process of a runner does it
            brought = Outcome(order.charge, incident="of the runner", words=str(error))
        self._due.append((self.clock.seconds + 0.2, one, brought))

    def edit(self, **edited: Any) -> None:
        """The policy is edited, and the service starts again."""
        self.tables = declared(self.wards, **edited)
        self.restart()

    def asked(self, sql: str, **more: Any) -> str:
        """The id of a question that is told."""
        return self.told(self.desk.ask("ada", sql, AT | more, f"{sql} {more}"))

    def told(self, one: Any) -> str:
        self.until(self.clock.seconds + 11)
        assert self.desk.answer("ada", one["id"])["state"] == "answered"
        return str(one["id"])

    def refused(self, charge: str) -> None:
        """No door shows it, and nobody pays for that."""
        before = [self.desk.budget(who) for who in ("ada", "bob")]
        for who, act, *form in (
            ("ada", self.desk.answer),
            ("ada", self.desk.answer, 0.9, "csv"),
            ("ada", self.desk.answer, None, "arrow"),
            ("ada", self.desk.read),
            ("bob", self.desk.read),
            ("bob", self.desk.read, None, "csv"),
        ):
            if not (self.about_bounds and form):
                with pytest.raises((hb.QueryError, hb.PolicyError), match=r"declared then|has no declared|declare "):
                    act(who, charge, *form)
        assert [self.desk.budget(who) for who in ("ada", "bob")] == before

    about_bounds = False


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Edited]:
    made = Edited(tmp_path, monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize("name", EDITS)
def test_an_answer_is_not_read_by_another_policy(world: Edited, name: str) -> None:
    (column,) = EDITS[name]
    charges = {sql: world.asked(sql) for sql in READ_WITH[column]}
    others = {sql: world.asked(sql) for each, several in READ_WITH.items() if each != column for sql in several}
    before = {charge: world.desk.answer("ada", charge)["answer"] for charge in (*charges.values(), *others.values())}
    world.edit(**EDITS[name])
    for charge in charges.values():
        world.refused(charge)
        with pytest.raises((hb.QueryError, hb.PolicyError)):
            world.desk.answer("ada", charge, order="1")
        with pytest.raises((hb.QueryError, hb.PolicyError)):
            world.desk.check_refine("ada", charge, "4")
    for charge in others.values():
        assert world.desk.answer("ada", charge)["answer"] == before[charge]
    world.edit()
    assert {charge: world.desk.answer("ada", charge)["answer"] for charge in before} == before


@pytest.mark.parametrize("wards", ["cba", "abz", "ab", "abcd"])
def test_an_answer_is_not_read_by_another_public_file(world: Edited, wards: str) -> None:
    charges = [world.asked(sql) for sql in (NAMED, KEYED)]
    alone = world.asked(COUNT)
    before = world.desk.answer("ada", alone)["answer"]
    write(world.wards, wards)
    for charge in charges:
        world.refused(charge)
    assert world.desk.answer("ada", alone)["answer"] == before


def test_an_answer_is_not_read_where_its_table_is_public_by_now(world: Edited) -> None:
    charge = world.asked("SELECT COUNT(*) AS n FROM v")
    world.tables = {"wards": hb.public(str(world.wards)), "v": hb.public(pa.table({"id": [1, 2]}))}
    world.tables["u"] = declared(world.wards)["v"]
    world.desk = world.opened()
    world.refused(charge)


def test_what_limits_leave_out_is_not_read_by_another_policy(world: Edited) -> None:
    world.about_bounds = True
    charge = world.told(world.desk.check_bounds("ada", WARDS, AT, "r"))
    before = world.desk.answer("ada", charge)["bounds"]
    world.edit(w=hb.one_of("x", "y"))
    world.refused(charge)
    world.edit()
    assert world.desk.answer("ada", charge)["bounds"] == before


@pytest.mark.parametrize("options", [{}, {"weights": written_value({"n": 3}, "weights")}])
def test_neither_part_of_a_refined_answer_is(world: Edited, options: dict[str, Any]) -> None:
    """The second is asked without weights: each part is read by its own question."""
    first = world.asked("SELECT w, COUNT(*) AS n, SUM(x) AS s FROM v GROUP BY w", **options)
    both = world.told(world.desk.refine("ada", first, "4", "again"))
    before = world.desk.answer("ada", both)["answer"]
    world.edit(w=hb.one_of("c", "b", "a"))
    world.refused(both)
    world.edit()
    assert world.desk.answer("ada", both)["answer"] == before


def test_no_reading_of_a_stored_draw_forgets_that(world: Edited) -> None:
    """Below the doors: whatever reads the numbers of a draw compares whose they are."""
    stored = world.ledger.record.release(world.asked(WARDS))
    assert stored is not None
    door, given = world.desk._door, Options.from_wire(AT)
    with Runner(declared(world.wards, w=hb.one_of("c", "b", "a"))) as other:
        asked = other._data.ask(WARDS, given, world.ledger.balance.budget)
        assert isinstance(asked, PricedStatement)
        for read in (
            lambda: estimates_of(asked, stored),
            lambda: evaluated(door, asked, stored),
            lambda: release_of(door, asked, given, stored, charged=False),
            lambda: joined(door, asked, stored, hb.Release(Fraction(0), False, "", {})),
        ):
            with pytest.raises(hb.QueryError, match="declared then"):
                read()


def waiting(world: Edited, sqls: list[str], **more: Any) -> list[str]:
    """Questions of eve's that wait behind one that has begun."""
    world.desk.ask("bob", COUNT, AT, "first")
    return [world.desk.ask("eve", sql, AT | more, f"r{n}")["id"] for n, sql in enumerate(sqls)]


def left(world: Edited, who: str = "eve") -> list[Any]:
    return [(each["left"], each["yours"]["spent"]) for each in world.desk.budget(who)["spaces"]]


@pytest.mark.parametrize("name", ["order", "fewer", "text"])
def test_what_waits_while_the_policy_is_edited_is_not_run(world: Edited, name: str) -> None:
    charges = waiting(world, [WARDS.replace(" GROUP", f" WHERE x > {n} GROUP") for n in range(5)])
    assert [spent for _, spent in left(world)] == ["5"]
    world.edit(**EDITS[name])
    world.until(60)
    assert {world.desk.answer("eve", charge)["state"] for charge in charges} == {"no answer"}
    assert [spent for _, spent in left(world)] == ["0"]
    assert "eve" not in world.ledger.balance.failures(SPACE)
    assert sum("is not run" in line for line in world.lines) == 5
    assert world.desk.ask("eve", COUNT, {"epsilon": "0.5"}, "anew")["state"] == "asked"
    world.edit()
    assert world.asked(WARDS)


def test_what_waits_while_a_public_file_is_edited_is_not_run(world: Edited) -> None:
    one = NAMED.replace(" GROUP", " WHERE x > {n} GROUP")
    charges = waiting(world, [one.format(n=n) for n in range(4)])
    found = world.desk.ask("eve", one.format(n=7), AT | {"max_rows": "auto"}, "found")["id"]
    other = world.desk.ask("eve", MEAN, AT, "other")["id"]
    shared = world.desk.ask("ada", one.format(n=1), AT, "shared")["id"]
    bounds = world.desk.check_bounds("eve", one.format(n=9), AT, "bounds")["id"]
    failures = world.ledger.balance.failures(SPACE)
    write(world.wards, "abcd")
    world.until(80)
    told = [world.desk.answer("eve", charge)["state"] for charge in (*charges, found, bounds)]
    assert (set(told), world.desk.answer("ada", shared)["state"]) == ({"no answer"}, "no answer")
    assert world.desk.answer("eve", other)["state"] == "answered"
    assert [spent for _, spent in left(world)] == ["1"]
    assert [spent for _, spent in left(world, "ada")] == ["0"]
    assert world.ledger.balance.failures(SPACE) == failures
    assert sum("is not run" in line for line in world.lines) == 6


def test_what_waits_over_a_restart_without_an_edit_is_run(world: Edited) -> None:
    charges = waiting(world, [NAMED, WARDS, MEAN])
    charges.append(world.desk.check_bounds("eve", NAMED, AT, "bounds")["id"])
    world.restart()
    world.until(60)
    assert {world.desk.answer("eve", charge)["state"] for charge in charges} == {"answered"}


def test_what_a_plan_paid_for_stays_paid_where_it_is_not_run(world: Edited) -> None:
    """What a plan did not use came back when it was charged: it is closed."""
    world.desk.ask("bob", COUNT, AT, "first")
    placed = world.desk.plan("eve", [{"sql": sql, "options": AT} for sql in (NAMED, MEAN)], "plan")
    spent = left(world)
    write(world.wards, "abcd")
    world.until(60)
    assert [world.desk.answer("eve", one["id"])["state"] for one in placed] == ["no answer", "answered"]
    assert left(world) == spent
