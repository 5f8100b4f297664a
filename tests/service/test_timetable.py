"""The schedule in the ledger: written once with the charge, told at its time, and silent about what the run did."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import pytest

from hubbub.errors import BudgetError, PolicyError, QueryError
from hubbub.ledger.schedule import SECOND
from hubbub.ledger.timetable import Asking, Queue, QueueFull
from ledger.helpers import asked as charge_of
from service.helpers import QUEUE, SPACE, START, Clock, ledger_at

D = 5 * SECOND


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger(tmp_path, clock, monkeypatch):
    with ledger_at(tmp_path / "b.db", clock, monkeypatch) as found:
        yield found
        assert found.record.verify().problems == ()


def submit(ledger, key="k", analyst="ada", epsilon="1/10", queue=QUEUE, shared=True, length=D, **more):
    asked = charge_of(Fraction(epsilon), question_key=key, analyst=analyst, **more)
    ask = json.dumps({"sql": key, "now": "n", "options": {}})
    return ledger.timetable.submit(asked, ask=ask, length=length, queue=queue, shared=shared)


def height(ledger):
    with ledger._handle.reading() as connection:
        return connection.execute("SELECT count(*) FROM journal").fetchone()[0]


def seconds(time):
    return (time - START) / SECOND


def test_charge_and_slot_are_written_in_one_transaction(ledger):
    before = height(ledger)
    one, two = submit(ledger, "a"), submit(ledger, "b")
    assert [seconds(t) for t in (one.slot.starts, one.slot.ends, one.slot.due)] == [0, 5, 5]
    assert [seconds(t) for t in (two.slot.starts, two.slot.ends, two.slot.due)] == [5, 10, 10]
    assert height(ledger) - before == 4
    assert ledger.timetable.fate(one) == "asked"
    assert ledger.balance.spent(SPACE) == Fraction(2, 10)


def test_a_run_begins_at_its_virtual_start_and_not_before(ledger, clock):
    one, two = submit(ledger, "a"), submit(ledger, "b")
    assert [b.id for b in ledger.timetable.tick()] == [one.id]
    assert ledger.timetable.tick() == []
    assert ledger.timetable.stage(one.id, "{}")
    clock.seconds = 4.999
    assert ledger.timetable.tick() == []
    clock.seconds = 5
    assert [b.id for b in ledger.timetable.tick()] == [two.id]
    assert ledger.timetable.fate(one) == "answered"


def test_an_answer_is_told_at_its_release_and_not_before(ledger, clock):
    one = submit(ledger)
    ledger.timetable.tick()
    clock.seconds = 0.2
    assert ledger.timetable.stage(one.id, '{"an": "answer"}')
    for clock.seconds in (0.2, 3, 4.99):
        ledger.timetable.tick()
        assert ledger.timetable.fate(one) == "asked"
        assert ledger.record.release(one.id) is None
        assert ledger.record.find_release(space=SPACE, question_key="k", at_least=Fraction(1, 10)) is None
    clock.seconds = 5
    ledger.timetable.tick()
    assert ledger.timetable.fate(one) == "answered"
    assert ledger.record.release(one.id).payload == '{"an": "answer"}'


def test_a_result_counts_only_while_its_window_is_open_and_once(ledger, clock):
    one, two = submit(ledger, "a"), submit(ledger, "b")
    assert not ledger.timetable.stage(one.id, "early")  # not drawing yet
    ledger.timetable.tick()
    assert ledger.timetable.stage(one.id, "first")
    assert not ledger.timetable.stage(one.id, "second")
    assert not ledger.timetable.stage("0" * 32, "no such")
    clock.seconds = 5
    ledger.timetable.tick()
    clock.seconds = 10
    assert not ledger.timetable.stage(two.id, "late")
    ledger.timetable.tick()
    assert [ledger.timetable.fate(each) for each in (one, two)] == ["answered", "no answer"]
    assert ledger.record.release(one.id).payload == "first"
    assert ledger.record.release(two.id) is None


def test_what_an_engine_said_is_kept_of_a_failure_alone(ledger):
    two = Queue(lanes=2, tick=QUEUE.tick)
    answered, failed = submit(ledger, "a", queue=two), submit(ledger, "b", queue=two)
    ledger.timetable.tick()
    assert ledger.timetable.stage(answered.id, "{}", words="a warning")
    assert ledger.timetable.stage(failed.id, None, words="division by zero")
    assert ledger.record.incident_words(failed.incident) == "division by zero"
    with pytest.raises(PolicyError):
        ledger.record.incident_words(answered.incident)


@pytest.mark.parametrize("world", ["answer", "failure", "nothing"])
def test_the_chain_grows_at_the_same_times_by_the_same_number_of_links(ledger, clock, world):
    heights = []
    one, two = submit(ledger, "a"), submit(ledger, "b")
    for step in range(13):
        clock.seconds = step
        for begun in ledger.timetable.tick():
            if world != "nothing":
                ledger.timetable.stage(begun.id, None if world == "failure" else "{}")
        heights.append(height(ledger))
    first = heights[0]
    assert [h - first for h in heights] == [0] * 5 + [3] * 5 + [5] * 3
    told = {ledger.timetable.fate(each) for each in (one, two)}
    assert told == {"answered" if world == "answer" else "no answer"}


def test_a_failure_counts_from_its_release_on(ledger, clock):
    for key in "abc":
        submit(ledger, key, queue=Queue(lanes=3))
    ledger.timetable.tick()
    with ledger._handle.reading() as connection:
        charges = [row[0] for row in connection.execute("SELECT id FROM charge").fetchall()]
    for made in charges:
        assert ledger.timetable.stage(made, None)
    clock.seconds = 4.9
    ledger.timetable.tick()
    submit(ledger, "d", queue=Queue(lanes=3))
    clock.seconds = 5
    ledger.timetable.tick()
    with pytest.raises(PolicyError, match="3 questions of the analyst 'ada' failed"):
        submit(ledger, "e")
    submit(ledger, "f", analyst="bob")


def test_of_however_many_that_wait_no_more_failures_are_told_than_may_be(ledger, clock):
    queue = Queue(lanes=8)
    made = [submit(ledger, str(k), queue=queue) for k in range(8)]
    ledger.timetable.tick()
    for k, one in enumerate(made):
        ledger.timetable.stage(one.id, "{}" if k in (1, 6) else None)
    clock.seconds = 5
    ledger.timetable.tick()
    assert [ledger.timetable.fate(one) for one in made] == ["no answer", "answered"] + ["no answer"] * 6
    assert [ledger.record.entry(one.id).state for one in made] == [
        "failed", "stored", "failed", "failed", "withdrawn", "withdrawn", "withdrawn", "withdrawn"
    ]  # fmt: skip


def test_there_is_no_free_retry_and_every_question_has_an_incident_from_the_start(ledger, clock):
    made = [submit(ledger, key, queue=Queue(lanes=2)) for key in "ab"]
    assert all(len(one.incident) == 12 for one in made)
    ledger.timetable.tick()
    ledger.timetable.stage(made[0].id, None)
    clock.seconds = 5
    ledger.timetable.tick()
    assert [ledger.timetable.find(one.id).incident for one in made] == [one.incident for one in made]
    for one in made:
        entry = ledger.record.entry(one.id)
        assert ledger.charges.resume(charge_of(Fraction(1, 10), question_key=entry.question_key)) is None
    assert submit(ledger, "a").new


def test_no_process_that_dies_marks_a_charge_of_the_service(ledger, clock):
    one = submit(ledger)
    ledger.timetable.tick()
    assert ledger.charges.mark_lost() == 0
    assert ledger.record.entry(one.id).state == "drawing"


def test_who_asks_what_is_under_way_shares_its_fate_at_a_release_of_his_own(ledger, clock):
    ledger.steward.grant(SPACE, "analyst:bob", Fraction(1, 2), author="steward")
    one = submit(ledger)
    clock.seconds = 1
    assert submit(ledger) == one  # his own question, asked again
    two = submit(ledger, analyst="bob")
    assert (two.shares, two.analyst) == (one.id, "bob")
    assert seconds(two.slot.due) == 10
    assert ledger.balance.spent(SPACE) == Fraction(1, 10)
    assert ledger.balance.remaining(SPACE, analyst="bob") == Fraction(4, 10)
    assert submit(ledger, analyst="bob") == two
    ledger.timetable.tick()
    ledger.timetable.stage(one.id, "{}")
    clock.seconds = 6
    ledger.timetable.tick()
    assert [ledger.timetable.fate(each) for each in (one, two)] == ["answered", "asked"]
    clock.seconds = 10
    assert ledger.timetable.tick() == []
    assert ledger.timetable.fate(two) == "answered"
    ledger.charges.share(ledger.record.release(one.id), "bob")
    assert ledger.balance.remaining(SPACE, analyst="bob") == Fraction(4, 10)  # paid once


def test_who_joins_at_a_shorter_answer_time_is_told_when_there_is_an_answer(ledger, clock):
    """The answer time of a table may have been lowered meanwhile; a lane is free, and his own slot would end first."""
    ledger.steward.grant(SPACE, "analyst:bob", Fraction(1, 2), author="steward")
    two_lanes = Queue(lanes=2, tick=QUEUE.tick)
    one = submit(ledger, queue=two_lanes)
    two = submit(ledger, analyst="bob", length=SECOND, queue=two_lanes)
    assert two.shares == one.id
    assert two.slot.due == one.slot.due > two.slot.ends


def test_one_late_look_writes_starts_and_releases_in_the_order_of_their_times(ledger, clock):
    lanes = Queue(lanes=2, tick=QUEUE.tick)
    long, short = submit(ledger, "a", queue=lanes), submit(ledger, "b", queue=lanes, length=SECOND)
    assert long.slot.due > short.slot.due
    for one in ledger.timetable.tick():
        ledger.timetable.stage(one.id, "{}")
    clock.seconds = 60
    ledger.timetable.tick()
    with ledger._handle.reading() as connection:
        told = connection.execute("SELECT charge FROM step WHERE state = 'stored' ORDER BY serial").fetchall()
    assert [serial for (serial,) in told] == [short.serial, long.serial]


def test_the_joiner_s_limit_pays_for_the_answer_that_he_gets(ledger, clock):
    """Not for the worse one that he asked for: a limit would be no limit."""
    ledger.steward.grant(SPACE, "analyst:bob", Fraction(1, 2), author="steward")
    submit(ledger)
    two = submit(ledger, analyst="bob", epsilon=Fraction(1, 100), request="b")
    assert two.shares
    assert ledger.balance.remaining(SPACE, analyst="bob") == Fraction(4, 10)
    assert submit(ledger, analyst="bob", epsilon=Fraction(1, 100), request="b") == two
    assert ledger.record.verify().problems == ()


def test_the_joiner_is_charged_nothing_anew_when_it_comes_to_nothing(ledger, clock):
    one = submit(ledger)
    two = submit(ledger, analyst="bob")
    ledger.timetable.tick()
    ledger.timetable.stage(one.id, None)
    clock.seconds = 10
    ledger.timetable.tick()
    assert [ledger.timetable.fate(each) for each in (one, two)] == ["no answer", "no answer"]
    assert ledger.balance.spent(SPACE) == Fraction(1, 10)


def test_without_shared_answers_each_pays_and_waits_for_his_own(ledger):
    one, two = submit(ledger, shared=False), submit(ledger, analyst="bob", shared=False)
    assert two.shares is None
    assert one.id != two.id
    assert ledger.balance.spent(SPACE) == Fraction(2, 10)


def test_a_question_of_a_plan_joins_what_is_under_way(ledger):
    """It is not drawn anew, and what the plan had set aside for it comes back."""
    one, queue = submit(ledger, "a"), Queue(lanes=2, tick=QUEUE.tick)
    each = [charge_of(Fraction(1, 10), question_key=key, analyst="bob") for key in "ab"]
    asks = [json.dumps({"sql": key, "now": "n", "options": {}}) for key in "ab"]
    plan = charge_of(Fraction(2, 10), question_key="plan", analyst="bob", kind="plan")
    questions = [Asking(charge, ask, D) for charge, ask in zip(each, asks, strict=True)]
    joined, own = ledger.timetable.submit_plan(plan, questions, queue=queue)
    assert (joined.shares, own.shares) == (one.id, None)
    assert ledger.balance.spent(SPACE) == Fraction(2, 10)


def test_where_the_policy_wants_a_purpose_nothing_is_placed_without_one(tmp_path, clock, monkeypatch):
    with ledger_at(tmp_path / "p.db", clock, monkeypatch, require_purpose=True) as ledger:
        before, silent = height(ledger), charge_of(Fraction(1, 10), question_key="a")
        with pytest.raises(QueryError, match=r"`require_purpose`.*Nothing was charged"):
            submit(ledger, "a")
        with pytest.raises(QueryError, match=r"`require_purpose`.*Nothing was charged"):
            ledger.timetable.submit_plan(silent, [Asking(silent, "{}", D)], queue=QUEUE)
        assert height(ledger) == before
        assert submit(ledger, "a", purpose="why").new


def test_a_place_in_the_queue_is_free_when_its_answer_is_told(ledger, clock):
    queue = Queue(lanes=1, most=2)
    one = submit(ledger, "a", queue=queue)
    submit(ledger, "b", queue=queue)
    ledger.timetable.tick()
    ledger.timetable.stage(one.id, "{}")
    clock.seconds = 4.9  # it ended long ago
    with pytest.raises(QueueFull, match=r"2 of your questions wait.*told in 0\.1 seconds") as found:
        submit(ledger, "c", queue=queue)
    assert found.value.retry_after == 1
    submit(ledger, "c", analyst="bob", queue=queue)
    clock.seconds = 5
    submit(ledger, "c", queue=queue)


def test_ten_minutes_of_one_analyst_may_wait(ledger):
    """Exactly so many where nothing else is said; the next one is too many, however short."""
    for key in "abc":
        submit(ledger, key, length=200 * SECOND, queue=Queue())
    with pytest.raises(
        QueueFull, match="3 of your questions wait, of 600 seconds in all; 20 questions and 600 seconds may"
    ):
        submit(ledger, "d", length=1, queue=Queue())


def test_as_many_seconds_of_one_analyst_wait_as_are_declared(ledger):
    queue = Queue(lanes=1, longest=12 * SECOND)
    submit(ledger, "a", queue=queue)
    submit(ledger, "b", queue=queue)
    with pytest.raises(QueueFull, match="10 seconds in all"):
        submit(ledger, "c", queue=queue)


def test_an_idempotency_key_stands_for_its_question_in_all_three_states(ledger, clock):
    one = submit(ledger, request="r")
    assert submit(ledger, request="r") == one
    assert not submit(ledger, request="r").new
    with pytest.raises(QueryError, match="stands for another question"):
        submit(ledger, "other", request="r")
    clock.seconds = 6
    ledger.timetable.tick()
    assert submit(ledger, request="r") == one
    assert ledger.timetable.fate(one) == "no answer"
    assert submit(ledger, request="another").new


def test_what_does_not_fit_is_refused_at_once_and_recorded(ledger):
    with pytest.raises(BudgetError, match="30 of 30 is left"):
        submit(ledger, epsilon="31")
    assert len(ledger.record.refusals()) == 1
    assert ledger.timetable.everybody() == []


def test_after_a_restart_what_had_started_is_a_failure_told_at_its_release(ledger, clock):
    one, two, three = (submit(ledger, key) for key in "abc")
    joined = submit(ledger, "b", analyst="bob")
    ledger.timetable.tick()
    assert ledger.timetable.stage(one.id, "{}")
    clock.seconds = 3
    moved = ledger.timetable.restart(QUEUE)
    assert [(m.id, seconds(m.slot.due)) for m in moved] == [(two.id, 8), (three.id, 13), (joined.id, 18)]
    assert not ledger.timetable.stage(one.id, "{}")
    assert ledger.timetable.tick()[0].id == two.id
    clock.seconds = 4.9
    ledger.timetable.tick()
    assert ledger.timetable.fate(one) == "asked"
    clock.seconds = 5
    ledger.timetable.tick()
    assert ledger.timetable.fate(one) == "no answer"
    ledger.timetable.stage(two.id, "{}")
    clock.seconds = 18
    ledger.timetable.tick()
    assert ledger.timetable.fate(ledger.timetable.find(joined.id)) == "answered"


def test_what_was_to_start_while_nobody_looked_gets_a_new_slot(ledger, clock):
    """It was charged, and no row was read for it: it is not a failure, of which three lock its analyst."""
    one = submit(ledger)
    joined = submit(ledger, analyst="bob")
    clock.seconds = 60  # nobody ticked
    moved = ledger.timetable.restart(QUEUE)
    assert [(m.id, seconds(m.slot.starts), seconds(m.slot.due)) for m in moved] == [
        (one.id, 60, 65),
        (joined.id, 65, 70),
    ]
    assert [b.id for b in ledger.timetable.tick()] == [one.id]
    ledger.timetable.stage(one.id, "{}")
    clock.seconds = 70
    ledger.timetable.tick()
    told = [ledger.timetable.find(each.id) for each in (one, joined)]
    assert ledger.timetable.fates(told) == ["answered", "answered"]
    assert ledger.balance.spent(SPACE) == Fraction(1, 10)


def test_what_was_to_run_while_the_machine_slept_gets_a_new_slot(ledger, clock):
    """The clock that nobody sets counts a sleep. No row was read, so it is no failure, of which three lock."""
    running, one, two = (submit(ledger, key) for key in "abc")
    joined = submit(ledger, "b", analyst="bob")
    late = submit(ledger, "late", analyst="cleo", length=60 * D)
    ledger.timetable.tick(QUEUE)
    clock.seconds = 22  # the windows of two questions are over, that of the joiner's slot is not
    assert [begun.id for begun in ledger.timetable.tick(QUEUE)] == [late.id]
    assert ledger.timetable.fate(running) == "no answer"
    assert ledger.timetable.stage(late.id, "{}")
    moved = [ledger.timetable.find(each.id) for each in (one, two, joined)]
    assert [seconds(each.slot.starts) for each in moved] == [320, 325, 330]
    assert ledger.timetable.find(late.id).slot == late.slot
    assert ledger.timetable.fates(moved) == ["asked"] * 3
    for at, begun in ((320, one), (325, two)):
        clock.seconds = at
        assert [each.id for each in ledger.timetable.tick(QUEUE)] == [begun.id]
        assert ledger.timetable.stage(begun.id, "{}")
    clock.seconds = 335
    ledger.timetable.tick(QUEUE)
    assert ledger.timetable.fates(moved) == ["answered"] * 3
    assert ledger.balance.failures(SPACE) == {None: (1, 10), "ada": (1, 3)}  # what ran, and no more
    assert ledger.balance.spent(SPACE) == Fraction(4, 10)


def test_what_has_some_of_its_window_left_keeps_its_slot(ledger, clock):
    """Else a clock that is late by a moment, as under a heavy run, would be told."""
    one, two = (submit(ledger, key) for key in "ab")
    ledger.timetable.tick(QUEUE)
    clock.seconds = 9.999
    assert [begun.id for begun in ledger.timetable.tick(QUEUE)] == [two.id]
    assert [ledger.timetable.find(each.id).slot for each in (one, two)] == [one.slot, two.slot]


def test_a_clock_set_forward_moves_nothing(ledger, clock):
    one = submit(ledger)
    ledger.timetable.running = lambda: (round(clock.seconds * SECOND) - 3600 * SECOND, "boot")
    clock.seconds = 3600
    ledger.timetable.tick(QUEUE)
    assert ledger.timetable.find(one.id).slot == one.slot


def test_a_stop_in_good_order_makes_no_failure_of_what_waits(ledger, clock):
    lanes = Queue(lanes=2)
    long = submit(ledger, "long", analyst="bob", length=12 * D, queue=lanes)
    asked = [submit(ledger, key, queue=lanes) for key in "abcd"]
    assert {one.slot.lane for one in asked} == {1 - long.slot.lane}
    ledger.timetable.tick()
    ledger.timetable.stage(long.id, "{}")
    ledger.timetable.stage(asked[0].id, "{}")
    clock.seconds = 60.5  # it waits for what runs, and starts nothing
    ledger.timetable.stop()
    clock.seconds = 62
    assert [moved.id for moved in ledger.timetable.restart(lanes)] == [one.id for one in asked[1:]]
    ledger.timetable.tick()
    told = [ledger.timetable.find(one.id) for one in (long, *asked)]
    assert ledger.timetable.fates(told) == ["answered", "answered", "asked", "asked", "asked"]
    assert "ada" not in ledger.balance.failures(SPACE)


def test_after_a_stop_in_good_order_what_ended_is_told(ledger, clock):
    one = submit(ledger, length=D + 1)  # its release is a tick later than its end
    ledger.timetable.tick()
    ledger.timetable.stage(one.id, "{}")
    clock.seconds = 5.05
    ledger.timetable.stop()
    clock.seconds = 90
    ledger.timetable.restart(QUEUE)
    ledger.timetable.tick()
    assert ledger.timetable.fate(one) == "answered"


def test_a_clock_set_forward_tells_nothing_early(ledger, clock):
    one = submit(ledger)
    ledger.timetable.tick()
    ledger.timetable.stage(one.id, "{}")
    ledger.timetable.running = lambda: (round(clock.seconds * SECOND) - 100 * SECOND, "boot")
    clock.seconds = 104.9
    ledger.timetable.tick()
    assert ledger.timetable.fate(one) == "asked"
    clock.seconds = 105
    ledger.timetable.tick()
    assert ledger.timetable.fate(one) == "answered"


def test_what_is_due_and_was_not_told_yet_is_not_charged_again(ledger, clock):
    one = submit(ledger)
    ledger.timetable.tick()
    ledger.timetable.stage(one.id, "{}")
    clock.seconds = 5  # its release has come, and no tick
    assert submit(ledger) == one
    joined = submit(ledger, analyst="bob")
    assert joined.shares == one.id
    ledger.timetable.tick()
    assert ledger.timetable.fate(one) == "answered"
    assert ledger.balance.spent(SPACE) == Fraction(1, 10)


def test_a_clock_set_forward_frees_no_lane_and_charges_nothing_again(ledger, clock):
    one = submit(ledger)
    ledger.timetable.tick()
    ledger.timetable.running = lambda: (round(clock.seconds * SECOND) - 100 * SECOND, "boot")
    clock.seconds = 101  # a second later
    other = submit(ledger, "other", analyst="bob")
    assert ledger.timetable.tick() == []
    assert other.slot.lane == one.slot.lane
    assert submit(ledger) == one
    assert ledger.balance.spent(SPACE) == Fraction(2, 10)


def test_links_shown_to_analysts_are_hashes_and_the_head_is_that_of_the_release(ledger, clock):
    one = submit(ledger)
    before = ledger.timetable.links(one)
    assert before.keys() == {"ledger", "charge"}
    ledger.timetable.tick()
    clock.seconds = 2
    assert ledger.timetable.links(one) == before
    clock.seconds = 5
    ledger.timetable.tick()
    told = ledger.timetable.links(one)
    assert told["charge"].keys() == told["head"].keys() == {"hash"}
    for k in range(3):
        submit(ledger, str(k), analyst="bob")
    clock.seconds = 50
    ledger.timetable.tick()
    assert ledger.timetable.links(one) == told
    for receipt in (before, told):
        assert ledger.record.verify({"chain": receipt}).sound
    other = {"chain": {**told, "head": {"hash": "0" * 64}}}
    assert ledger.record.verify(other).problems == (
        "the receipt's head is gone: the ledger was rewritten, or an earlier state was put back",
    )


def test_whatever_runs_do_what_is_told_before_is_the_same(tmp_path, monkeypatch):
    """Random worlds: the same submissions, runs that answer, fail or stay silent at random times."""

    def told(world):
        clock, coin, runs = Clock(), random.Random(5), random.Random(world)
        found, made = [], []
        with ledger_at(tmp_path / f"{world}.db", clock, monkeypatch, max_failures=10**6, max_failures_all=10**6) as one:
            under_way = {}
            for step in range(160):
                clock.seconds = step / 4
                for begun in one.timetable.tick():
                    under_way[begun.id] = step + runs.choice([0, 1, 3, 19, 20, 50])
                for charge, when in list(under_way.items()):
                    if when <= step:
                        one.timetable.stage(charge, runs.choice([None, "{}"]))
                        del under_way[charge]
                if coin.random() < 0.2:
                    who, key = coin.choice(["ada", "bob", "cat"]), str(coin.randrange(6))
                    try:
                        made.append(submit(one, f"{key}{step // 60}", analyst=who, queue=Queue(lanes=2, most=4)))
                    except QueueFull as full:
                        found.append(("full", full.retry_after))
                found.append((step, height(one), [one.timetable.fate(m) == "asked" for m in made]))
            assert one.record.verify().sound
        return found, [m.slot for m in made]

    # What is answered may be asked again for nothing, so the submissions are the same only while keys are new.
    assert told(1) == told(2) == told(3)
