"""A question is told by the tick of another thread, after it was looked for and before it is charged: whoever asks the
same has its answer, and nothing is charged twice.
"""

from __future__ import annotations

import threading
from fractions import Fraction

import pytest

import hubbub as hb
from hubbub.ledger.timetable import Timetable
from hubbub.service.people.person import TokenLimits
from service.helpers import ANSWER_TIME, COUNT, SPACE
from service.test_found_in_service import AUTO, Found

ONE = {"epsilon": "1", "max_total": 8}
BARE = {"epsilon": "1"}
SUM = "SELECT SUM(y) AS s FROM v"


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = Found(tmp_path / "l.db", monkeypatch)
    yield made
    made.close()


def told_between(w, monkeypatch, seconds):
    """From now on, the next charge comes after the release of what is under way: another thread told it just before."""
    due = [seconds]

    def late(submit):
        def submitted(self, *given, **more):
            if due:
                w.clock.seconds = due.pop()
                other = threading.Thread(target=w.desk.tick)
                other.start()
                other.join()
            return submit(self, *given, **more)

        return submitted

    for name in ("submit", "submit_plan"):
        monkeypatch.setattr(Timetable, name, late(getattr(Timetable, name)))
    return due


def joint(w):
    return w.ledger.balance.total(SPACE).epsilon


@pytest.mark.parametrize("who", ["ada", "bob"])
@pytest.mark.parametrize(("options", "passes"), [(ONE, 1), (AUTO, 2)])
def test_the_same_question_has_the_answer_that_was_told_meanwhile(world, monkeypatch, who, options, passes):
    one = world.desk.ask("ada", COUNT, options, "r")
    world.until(passes * ANSWER_TIME - 0.1)
    due = told_between(world, monkeypatch, passes * ANSWER_TIME + 0.1)
    told = world.desk.ask(who, COUNT, options, "s")
    assert due == []  # it came between
    assert (told["state"], told["id"], joint(world)) == ("answered", one["id"], 1)
    assert "answer" in told
    own = Fraction(world.desk.budget(who)["spaces"][0]["yours"]["spent"])
    assert own == 1  # of another's answer, as reading it counts
    kinds = [e.kind for e in world.ledger.record.history() if e.kind != "return"]
    assert kinds == ["question"] + ["reading"] * (who == "bob")


def test_limits_that_were_told_meanwhile_are_not_bought_again(world, monkeypatch):
    one = world.desk.check_bounds("ada", COUNT, BARE, "r")
    world.until(ANSWER_TIME - 0.1)
    due = told_between(world, monkeypatch, ANSWER_TIME + 0.1)
    told = world.desk.check_bounds("ada", COUNT, BARE, "s")
    assert (due, told["state"], told["id"], joint(world)) == ([], "answered", one["id"], 1)
    assert "bounds" in told


def test_a_plan_pays_for_none_of_its_questions_that_was_told_meanwhile(world, monkeypatch):
    one = world.desk.ask("ada", COUNT, ONE, "r")
    world.until(ANSWER_TIME - 0.1)
    due = told_between(world, monkeypatch, ANSWER_TIME + 0.1)
    first, second = world.desk.plan("ada", [{"sql": sql, "options": ONE} for sql in (COUNT, SUM)], "p")
    assert due == []
    assert (first["state"], first["id"], second["state"], joint(world)) == ("answered", one["id"], "asked", 2)


def test_what_is_told_meanwhile_is_read_within_one_s_own_limits(world, monkeypatch):
    """It counts against the cap of the token, as reading it a moment later does; what does not fit is refused."""
    world.ledger.steward.grant(SPACE, "token:feedbeef", "0.5", author="test", reason="its cap")
    token = TokenLimits("feedbeef", None, Fraction(1, 2))
    world.desk.ask("ada", COUNT, ONE, "r")
    world.until(ANSWER_TIME - 0.1)
    due = told_between(world, monkeypatch, ANSWER_TIME + 0.1)
    with pytest.raises(hb.BudgetError):
        world.desk.ask("bob", COUNT, {**ONE, "epsilon": "0.5"}, "s", token=token)
    assert (due, joint(world)) == ([], 1)
