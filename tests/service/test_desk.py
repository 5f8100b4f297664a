"""Each way in which a service could tell when a run ended, and that it does not: two worlds, one script.

In one world a run takes 0.2 s, in the other 4.8 of the 5 it has. Whatever an analyst does, what he is told at
any moment is the same, until the release; and there it is the same again.
"""

from __future__ import annotations

import json
import re

import pytest

import hubbub as hb
from hubbub.answer.release import Release
from hubbub.ledger.timetable import Queue, QueueFull
from hubbub.service.desk import Unknown
from service.helpers import COUNT, QUEUE, World

AT = {"epsilon": "0.1"}
AVERAGE = "SELECT AVG(x) AS m FROM v"


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = []

    def make(**more):
        made.append(World(tmp_path / f"{len(made)}.db", monkeypatch, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def plain(told):
    """What was told, without what is random: ids are numbered as they come."""
    names: dict[str, str] = {}

    def number(match):
        return names.setdefault(match[0], f"#{len(names)}")

    return re.sub(
        r"\b([0-9a-f]{64}|[0-9a-f]{32}|[0-9a-f]{12})\b", number, json.dumps(told, sort_keys=True, default=str)
    )


def same(world, script, *, outcome="answer", **more):
    """Run a script in both worlds; what it says must be the same."""
    told = []
    for takes in (0.2, 4.8):
        here = world(takes=takes, outcome=outcome, **more)
        told.append(plain(script(here)))
    assert told[0] == told[1]
    return json.loads(told[0])


def refused(act):
    try:
        return act()
    except hb.errors.HubbubError as error:
        return [type(error).__name__, str(error)]


def test_an_answer_comes_at_its_release_whenever_it_was_there(world):
    def script(w):
        one = w.desk.ask("ada", COUNT, AT, "r")
        told = []
        for step in range(110):
            w.until(step * 0.05)
            found = w.desk.answer("ada", one["id"])
            told.append((step, found["state"], "answer" in found))
        return told

    told = same(world, script)
    assert [t for t in told if t[1] == "asked"] == told[:100]
    assert told[100] == [100, "answered", True]


def test_the_answer_is_the_one_that_was_drawn_and_its_receipt_names_no_line(world):
    w = world()
    one = w.desk.ask("ada", COUNT, AT, "r")
    w.until(5)
    release = Release.from_wire(w.desk.answer("ada", one["id"])["answer"])
    assert release.to_arrow().schema.names == ["n"]
    assert release.charge_id == one["id"]
    assert "serial" not in json.dumps(release.receipt)
    assert w.ledger.record.verify(release.receipt).sound
    again = w.desk.ask("ada", COUNT, AT, "another")
    assert again["state"] == "answered"
    assert Release.from_wire(again["answer"]).to_arrow().equals(release.to_arrow())


def test_the_stored_flag_of_check(world):
    def script(w):
        w.desk.ask("ada", COUNT, AT, "r")
        told = []
        for w_at in (0, 1, 4.9, 5, 6):
            w.until(w_at)
            told.append([(c["stored"], c["cost"], c["left"]) for c in (w.desk.check(a, COUNT, AT) for a in "ab")])
        return told

    assert [t[0][0] for t in same(world, script)] == [False, False, False, True, True]


def test_a_second_asker(world):
    def script(w):
        w.desk.ask("ada", COUNT, AT, "r")
        w.until(1)
        two = w.desk.ask("bob", COUNT, AT, "r")
        told = [two]
        for at in (4.9, 5, 9.9, 10):
            w.until(at)
            told.append(w.desk.answer("bob", two["id"])["state"])
        return [*told, w.desk.check("bob", COUNT, AT)["left"]]

    assert same(world, script)[1:5] == ["asked", "asked", "asked", "answered"]


def test_the_second_asker_of_what_failed(world):
    def script(w):
        w.desk.ask("ada", COUNT, AT, "r")
        w.until(1)
        two = w.desk.ask("bob", COUNT, AT, "r")
        w.until(10)
        return w.desk.answer("bob", two["id"])["state"], w.desk.check("bob", COUNT, AT)["left"]

    assert same(world, script, outcome="failure") == ["no answer", "299/10"]


def test_cancelling(world):
    def script(w):
        one = w.desk.ask("ada", COUNT, AT, "r")
        told = []
        for at in (0, 1, 4.9, 5.5):
            w.until(at)
            told += [w.desk.cancel("ada", one["id"]), w.desk.answer("ada", one["id"])["state"]]
            told.append(w.desk.check("ada", AVERAGE, AT)["left"])
        return told

    told = same(world, script)
    assert told[-2:] == ["answered", "299/10"]


def test_a_disconnect(world):
    def script(w):
        one = w.desk.ask("ada", COUNT, AT, "r")
        w.until(1)
        w.desk.disconnected("ada", one["id"])
        w.until(5)
        return w.desk.answer("ada", one["id"])["state"]

    assert same(world, script) == "answered"


@pytest.mark.parametrize("outcome", ["answer", "failure", "silence"])
@pytest.mark.parametrize("door", ["history", "receipt", "events", "metrics", "logs"])
def test_history_receipt_events_metrics_and_logs(world, door, outcome):
    def script(w):
        one = w.desk.ask("ada", COUNT, AT, "r")
        w.desk.ask("ada", AVERAGE, AT, "s")
        told = []
        for at in (0, 0.5, 3, 4.9, 5, 7, 10, 20):
            w.until(at)
            told.append(
                {
                    "history": lambda: w.desk.history("ada"),
                    "receipt": lambda: w.desk.receipt("ada", one["id"]),
                    "events": lambda: w.desk.events("ada"),
                    "metrics": w.desk.metrics,
                    "logs": lambda: list(w.lines),
                }[door]()
            )
        return told

    told = same(world, script, outcome=outcome)
    assert told[2] != told[-1] or door == "logs"
    assert "serial" not in json.dumps(told)


def test_the_chain_as_receipts_of_others_show_it(world):
    """Two of bob's questions around ada's run: what their receipts hold says nothing of it."""

    def script(w):
        told = []
        w.desk.ask("ada", COUNT, AT, "r")
        for k, at in enumerate((1, 4.5)):
            w.until(at)
            one = w.desk.ask("bob", f"SELECT COUNT(*) AS c{k}, SUM(x) AS s FROM v", {"epsilon": f"0.{k + 2}"}, str(k))
            told.append(w.desk.receipt("bob", one["id"]))
        w.until(20)
        return [*told, [w.desk.receipt("bob", one["id"])["chain"] for one in w.desk.history("bob")]]

    same(world, script)


@pytest.mark.parametrize("outcome", ["answer", "failure"])
def test_a_restart_before_the_release(world, outcome):
    def script(w):
        one, two = w.desk.ask("ada", COUNT, AT, "r"), w.desk.ask("ada", AVERAGE, AT, "s")
        w.until(3)  # in one world the run has ended
        w.restart()
        told = [w.desk.history("ada")]
        for at in (4.9, 5, 8, 13):
            w.until(at)
            told.append([w.desk.answer("ada", o["id"])["state"] for o in (one, two)])
        return told

    told = same(world, script, outcome=outcome)
    assert told[1:3] == [["asked", "asked"], ["no answer", "asked"]]
    assert told[3][1] == ("answered" if outcome == "answer" else "no answer")


@pytest.mark.parametrize("outcome", ["failure", "silence"])
def test_the_lock_before_the_release(world, outcome):
    queue = Queue(lanes=4)

    def script(w):
        for k in range(3):
            w.desk.ask("ada", f"SELECT COUNT(*) AS n FROM v WHERE x < {k + 5}", AT, str(k))
        told = []
        for k, at in enumerate((0.5, 3, 4.9, 5, 6)):
            w.until(at)
            told.append(
                refused(
                    lambda k=k: w.desk.ask("ada", f"SELECT SUM(x) AS s FROM v WHERE x < {k + 20}", AT, f"s{k}")["state"]
                )
            )
            told.append(refused(lambda: w.desk.ask("bob", AVERAGE, AT, "b")["state"]))
        return told

    told = same(world, script, outcome=outcome, queue=queue)
    assert told[4] == "asked"
    assert told[6][0] == "Locked"


@pytest.mark.parametrize("outcome", ["failure", "silence"])
def test_retries_and_incident_ids(world, outcome):
    def script(w):
        one = w.desk.ask("ada", COUNT, AT, "r")
        w.until(2)
        told = [one, w.desk.ask("ada", COUNT, AT, "r"), w.desk.ask("ada", COUNT, AT, "new")]
        w.until(5)
        told += [w.desk.answer("ada", one["id"]), w.desk.ask("ada", COUNT, AT, "r")]
        left = w.desk.check("ada", COUNT, AT)["left"]
        return [*told, left, w.desk.ask("ada", COUNT, AT, "new")["id"] == one["id"], w.desk.check("ada", COUNT, AT)]

    told = same(world, script, outcome=outcome)
    assert told[0]["incident"] == told[3]["incident"] == told[4]["incident"]
    assert told[5:7] == ["299/10", False]
    assert told[7]["left"] == "149/5"  # no free retry


def test_an_incident_is_the_one_of_its_submission_and_its_words_are_for_the_steward(world):
    w = world(outcome="failure")
    one = w.desk.ask("ada", COUNT, AT, "r")
    w.until(6)
    assert w.ledger.record.incident_words(one["incident"]) == "private words"
    assert "private words" not in json.dumps([w.desk.history("ada"), w.desk.receipt("ada", one["id"]), w.lines])


def test_room_in_the_queue(world):
    def script(w):
        w.desk.ask("ada", COUNT, AT, "r")
        told = []
        for k, at in enumerate((0.5, 4.9, 5.0)):
            w.until(at)
            told.append(refused(lambda k=k: w.desk.ask("ada", AVERAGE, AT, f"s{k}")["state"]))
        return told

    told = same(world, script, queue=Queue(most=1))
    assert [t[0] for t in told[:2]] == ["QueueFull", "QueueFull"]
    assert told[2] == "asked"


@pytest.mark.parametrize("outcome", ["answer", "failure", "silence"])
def test_refunds(world, outcome):
    def script(w):
        w.desk.ask("ada", COUNT, AT, "r")
        told = []
        for at in (0.5, 3, 4.9, 5, 6):
            w.until(at)
            told.append(w.desk.check("bob", AVERAGE, AT)["left"])
        return told

    assert set(same(world, script, outcome=outcome)) == {"299/10"}


def test_another_s_question_is_unknown_in_constant_words(world):
    w = world()
    one = w.desk.ask("ada", COUNT, AT, "r")
    for charge in (one["id"], "0" * 32, "", None):
        for act in (w.desk.answer, w.desk.cancel, w.desk.receipt):
            with pytest.raises(Unknown, match=r"^there is no such question of yours\.$"):
                act("bob", charge)
    assert w.desk.history("bob") == []
    assert w.desk.events("bob") == []


def test_declarations_and_check_are_free_and_immediate(world):
    w = world()
    assert w.desk.ask("ada", "SHOW TABLES", {}, "r")["state"] == "answered"
    assert w.desk.check("ada", "SHOW TABLES", {})["cost"] == "0"
    told = w.desk.check("ada", COUNT, AT)
    assert (told["answer_time"], told["types"]) == (5.0, [["n", "int64"]])
    assert w.desk.declared.tables("ada")["v"]["columns"] == {"id": "integer", "x": "integer", "w": "text"}
    assert w.ledger.balance.spent("patient_id") == 0


def test_what_a_runner_brings_late_or_wrong_is_no_answer(world):
    late = world(takes=5.2)
    one = late.desk.ask("ada", COUNT, AT, "r")
    late.until(6)
    assert late.desk.answer("ada", one["id"])["state"] == "no answer"
    w = world(takes=1)
    two = w.desk.ask("ada", COUNT, AT, "r")
    w._due = [(1.0, w._due[0][1], hb.session.run.Outcome(two["id"], payload="not an answer"))]
    w.until(5)
    with pytest.raises(hb.EngineError, match=two["incident"]):
        w.desk.answer("ada", two["id"])


def test_a_text_of_a_megabyte_is_not_read(world):
    w = world()
    with pytest.raises(hb.QueryError, match="100,000 characters"):
        w.desk.ask("ada", "SELECT 1" + " " * 100_000, AT, "r")
    assert QUEUE.most == 20
    assert issubclass(QueueFull, hb.PolicyError)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": {"$fraction": "1e5000"}},  # at 1e999999999 nobody else would be served for hours
        {"epsilon": "1", "params": [{"$fraction": "1e5000"}]},
        {"within": "10 %", "at_most": "1", "at_least": 10**400},
        {"epsilon": "1", "assume_rows": 10**400},
    ],
)
def test_a_number_of_thousands_of_digits_is_not_made(world, options):
    w = world()
    with pytest.raises(hb.ParameterError):
        w.desk.check("ada", COUNT, options)
