"""What an analyst may do beside asking: refine, plan, read what others asked, see what is left. None of it tells."""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.answer.release import Release
from hubbub.ledger.timetable import Queue, QueueFull
from hubbub.service.desk import Unknown
from hubbub.service.whole_desk import WholeDesk
from service.helpers import ANSWER_TIME, COUNT, World, empty
from service.test_desk import AT, AVERAGE, plain

WARDS = "SELECT w, COUNT(*) AS n FROM v GROUP BY w"


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = []

    def make(**more):
        made.append(World(tmp_path / f"{len(made)}.db", monkeypatch, desk=WholeDesk, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


def answered(w, sql=COUNT, at=AT, who="ada", key="r", until=5):
    one = w.desk.ask(who, sql, at, key)
    w.until(until)
    return one["id"]


def test_a_refined_answer_combines_both_draws(world):
    w = world()
    first = answered(w)
    told = w.desk.check_refine("ada", first, "0.4")
    assert (told["epsilon"], told["helps"], told["fits"], told["answer_time"]) == ("2/5", True, True, ANSWER_TIME)
    two = w.desk.refine("ada", first, "0.4", "again")
    assert w.desk.refine("ada", first, "0.4", "again") == two
    w.until(10)
    before, after = (Release.from_wire(w.desk.answer("ada", each)["answer"]) for each in (first, two["id"]))
    again = Release.from_wire(w.desk.ask("ada", COUNT, {"epsilon": "0.4"}, "s")["answer"])
    assert after.epsilon == hb.Budget("1/2").epsilon
    assert [name for name, *_ in told["columns"]] == ["n"]
    assert after.error.half_widths()["n"][0] == pytest.approx(told["columns"][0][2], rel=0.01)
    assert after.error.half_widths()["n"][0] <= min(
        before.error.half_widths()["n"][0], again.error.half_widths()["n"][0]
    )
    low, high = sorted(r.to_dict()["n"][0] for r in (before, again))
    assert low <= after.to_dict()["n"][0] <= high
    with pytest.raises(hb.QueryError, match="cannot be refined"):
        w.desk.check_refine("ada", two["id"], "0.4")
    with pytest.raises(hb.QueryError, match="stands for another question"):
        w.desk.refine("ada", first, "0.5", "again")


def test_what_was_drawn_is_shown_as_the_answer_to_other_words_for_nothing(world):
    w = world()
    one = answered(w, WARDS)
    left = w.desk.budget("ada")["left"]
    told = w.desk.answer("ada", one)
    plain_rows = Release.from_wire(told["answer"]).rows()
    assert told["clauses"] == {"having": "", "order": "", "limit": ""}
    told = w.desk.answer("ada", one, order="n DESC", limit="2")
    shown = Release.from_wire(told["answer"])
    assert shown.rows() == sorted(plain_rows, key=lambda row: -row[1])[:2]
    assert told["clauses"] == {"having": "", "order": "n DESC", "limit": "2"}
    again = w.desk.answer("ada", one, sql=shown.receipt["sql"], having="n > 1000000", order="")
    assert Release.from_wire(again["answer"]).rows() == []
    assert again["clauses"] == {"having": "n > 1000000", "order": "", "limit": "2"}
    twice = Release.from_wire(w.desk.answer("ada", one, sql=f"SELECT 2 * n AS m FROM ({WARDS})")["answer"])
    assert sorted(twice.to_dict()["m"]) == sorted(2 * n for _, n in plain_rows)
    assert w.desk.answer("ada", one) == w.desk.answer("ada", one)
    assert w.desk.budget("ada")["left"] == left
    assert len(w.ledger.record.history()) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"having": "SUM(x) > 3"},
        {"sql": COUNT},
        {"sql": f"{WARDS} UNION ALL SELECT 'all', COUNT(*) FROM v"},
        {"sql": "SELECT w, COUNT(*) AS n FROM v WHERE x < 40 GROUP BY w"},
        {"sql": "SELECT 1 AS one"},
        {"having": "n > 1) OR (SELECT COUNT(*) FROM v) > (3"},
        {"order": "n; SELECT 1"},
        {"limit": "(SELECT COUNT(*) FROM v)"},
        {"having": "n > (SELECT COUNT(*) FROM v WHERE x = 3)"},
    ],
)
def test_other_words_that_want_another_draw_are_refused_and_nothing_is_charged(world, other):
    w = world()
    one = answered(w, WARDS)
    with pytest.raises(hb.QueryError):
        w.desk.answer("ada", one, **other)
    assert len(w.ledger.record.history()) == 1


def test_a_question_that_is_not_told_yet_is_not_told_in_other_words(world):
    w = world()
    one = w.desk.ask("ada", WARDS, AT, "r")["id"]
    assert w.desk.answer("ada", one, order="n DESC") == w.desk.answer("ada", one)
    assert "answer" not in w.desk.answer("ada", one, order="n DESC")
    w.until(5)
    with pytest.raises(Unknown):
        w.desk.answer("bob", one, order="n DESC")


def test_the_price_of_a_stored_answer_says_since_when_and_what_it_counts(world):
    w = world()
    one = w.desk.ask("ada", WARDS, AT, "r")
    assert "released_at" not in w.desk.check("ada", WARDS, AT)
    w.until(5)
    for who, counts in (("ada", "0"), ("bob", "1/10")):
        told = w.desk.check(who, WARDS, AT)
        assert (told["stored"], told["released_at"], told["counts"]) == (True, one["release_at"], counts)
    w.desk.read("bob", one["id"])
    assert w.desk.check("bob", WARDS, AT)["counts"] == "0"


def test_what_was_asked_outside_of_the_service_counts_what_its_price_says(world, monkeypatch):
    w = world()
    answered(w, WARDS)
    monkeypatch.setattr(w.ledger.timetable, "find", lambda charge: None)  # as of a charge that has no slot
    told = {who: w.desk.check(who, WARDS, AT) for who in ("ada", "bob")}
    assert [(each["stored"], each["counts"]) for each in told.values()] == [(True, "0"), (True, "1/10")]
    assert all("released_at" not in each for each in told.values())
    before = w.desk.budget("bob")
    assert w.desk.ask("bob", WARDS, AT, "b")["state"] == "answered"
    assert w.desk.budget("bob") != before
    assert w.desk.check("bob", WARDS, AT)["counts"] == "0"


def test_what_would_not_help_is_refused_before_the_charge(world):
    w = world()
    first = answered(w, AVERAGE)
    left = w.desk.budget("ada")["left"]
    with pytest.raises(hb.QueryError, match="would not make this answer better"):
        w.desk.refine("ada", first, "0.000001", "again")
    waiting = w.desk.ask("ada", WARDS, AT, "w")["id"]
    with pytest.raises(hb.QueryError, match="no answer to refine"):
        w.desk.check_refine("ada", waiting, "0.4")
    assert float(eval(left)) - float(eval(w.desk.budget("ada")["left"])) == pytest.approx(0.1)


def test_another_s_answer_is_read_at_the_cost_of_one_s_own_limit(world):
    w = world()
    first = answered(w)
    for act in (w.desk.answer, w.desk.receipt):
        with pytest.raises(Unknown, match="no such question of yours"):
            act("bob", first)
    (listed,) = w.desk.answers("bob")
    assert (listed["by"], listed["mine"], listed["costs"]) == ("ada", False, "1/10")
    joint = w.desk.budget("bob")["spaces"][0]
    release = Release.from_wire(w.desk.read("bob", first)["answer"])
    assert (release.charged, release.cost) == (False, 0)
    after = w.desk.budget("bob")["spaces"][0]
    assert after["left"] == joint["left"]
    assert after["yours"] | {"left": "x"} == {"limit": "30", "spent": "1/10", "left": "x"}
    assert w.desk.answers("bob")[0]["costs"] == "0"
    assert "answer" in w.desk.answer("bob", first)
    w.desk.read("bob", first)
    assert w.desk.budget("bob")["spaces"][0] == after
    assert [(each["kind"], each["reads"]) for each in w.desk.history("bob")] == [("reading", first)]
    assert w.desk.answers("ada")[0]["mine"]


def test_without_shared_answers_nobody_sees_another_s(world):
    w = world(shared_answers=False)
    first = answered(w)
    assert w.desk.answers("bob") == []
    for act in (w.desk.answer, w.desk.read):
        with pytest.raises(Unknown):
            act("bob", first)


def test_reading_a_refined_answer_counts_both_draws(world):
    w = world()
    first = answered(w)
    two = w.desk.refine("ada", first, "0.4", "again")["id"]
    w.until(10)
    assert next(each for each in w.desk.answers("bob") if each["id"] == two)["costs"] == "1/2"
    w.desk.read("bob", two)
    assert w.desk.budget("bob")["spaces"][0]["yours"]["spent"] == "1/2"


def test_a_plan_is_charged_as_one_or_not_at_all(world):
    w = world(queue=Queue(lanes=1, tick=100_000, most=3))
    asked = [{"sql": sql, "options": {"epsilon": "0.2"}} for sql in (COUNT, WARDS, COUNT)]
    told = w.desk.plan("ada", asked, "p")
    assert [each["state"] for each in told] == ["asked"] * 3
    assert told[0] == told[2]
    assert w.desk.plan("ada", asked, "p") == told
    with pytest.raises(hb.QueryError, match="stands for another"):
        w.desk.plan("ada", [asked[0], {"sql": AVERAGE, "options": {"epsilon": "0.2"}}], "p")
    spent = w.desk.budget("ada")["spaces"][0]["yours"]["spent"]
    assert spent == "2/5"
    full = [{"sql": f"{COUNT} WHERE x < {k}", "options": {"epsilon": "0.2"}} for k in (1, 2, 3)]
    with pytest.raises(QueueFull):
        w.desk.plan("ada", full, "q")
    assert w.desk.budget("ada")["spaces"][0]["yours"]["spent"] == spent
    dear = [{"sql": f"{COUNT} WHERE x < {k}", "options": {"epsilon": "20"}} for k in (1, 2)]
    with pytest.raises(hb.BudgetError):
        w.desk.plan("bob", dear, "q")
    assert w.desk.budget("bob")["spaces"][0]["yours"]["spent"] == "0"
    assert len(w.ledger.record.refusals()) <= 1
    w.until(10)
    assert {w.desk.answer("ada", each["id"])["state"] for each in told} == {"answered"}
    again = w.desk.plan("ada", asked[:2], "another")
    assert [each["state"] for each in again] == ["answered"] * 2
    assert w.desk.budget("ada")["spaces"][0]["yours"]["spent"] == spent


def test_an_answer_in_other_forms_and_at_other_levels(world):
    w = world()
    one = answered(w, WARDS)
    wide, usual = (Release.from_wire(w.desk.answer("ada", one, **more)["answer"]) for more in ({"level": "0.97"}, {}))
    assert wide.error.half_widths(0.97)["n"] > usual.error.half_widths(0.95)["n"]
    with pytest.raises(hb.errors.ParameterError, match="sent with intervals at"):
        usual.error.half_widths(0.97)
    told = base64.b64decode(w.desk.answer("ada", one, form="arrow")["arrow"])
    table = pa.ipc.open_stream(told).read_all()
    assert table.to_pydict() == usual.to_dict()
    assert json.loads(table.schema.metadata[b"hubbub"])["charge_id"] == one
    lines = w.desk.answer("ada", one, 0.9, "csv")["csv"].splitlines()
    assert lines[0] == '"w","n","n_low","n_high"'
    assert len(lines) == 4
    for wrong in ({"level": "2"}, {"level": "much"}, {"form": "xls"}):
        with pytest.raises(hb.errors.ParameterError):
            w.desk.answer("ada", one, **wrong)


def test_what_is_declared_and_what_is_left_is_told(world):
    w = world()
    table = w.desk.declared.table("ada", "V")
    assert (table["name"], table["unit"], table["limits"]) == ("v", "id", {"max_groups": 1, "max_rows": 1})
    told = {"text": "between(0, 50)", "between": [0, 50], "numeric": True}
    assert table["declared"]["x"] == {**told, "as": table["declared"]["x"]["as"]}
    assert table["declared"]["x"]["as"][0] == "Between"
    assert table["declared"]["w"]["one_of"] == ["a", "b", "c"]
    with pytest.raises(hb.QueryError, match="there is no table"):
        w.desk.declared.table("ada", "visit")
    assert w.desk.budget("ada")["left"] == "30"
    assert empty().catalog["v"].private


@pytest.mark.parametrize("outcome", ["answer", "failure", "silence"])
def test_nothing_of_it_tells_of_a_run_before_its_release(world, outcome):
    """Two worlds, in one of which runs take long, or fail: what is told until the release is the same."""
    told = []
    for takes, ends in ((0.2, "answer"), (4.8, outcome)):
        w = world(takes=takes)
        first = answered(w)
        w.outcome = ends
        heard = [w.desk.refine("ada", first, "0.4", "a"), w.desk.plan("bob", [{"sql": WARDS, "options": AT}], "p")]
        for at in (5.1, 7, 9.8, 9.9):
            w.until(at)
            for who in ("ada", "bob"):
                heard += [w.desk.answers(who), w.desk.budget(who), w.desk.history(who), w.desk.events(who)]
            heard.append(w.desk.check_refine("ada", first, "0.4"))
        told.append(plain(heard))
    assert told[0] == told[1]


def test_an_answer_whose_text_was_removed_is_told_of_and_keeps_nobody_from_the_others(world):
    w = world()
    first, other = answered(w), answered(w, sql=WARDS, key="s", until=10)
    w.desk.read("bob", first)
    w.ledger.steward.redact(first, author="grace")
    assert [each["id"] for each in w.desk.answers("bob")] == [each["id"] for each in w.desk.answers("ada")] == [other]
    for act in (w.desk.answer, w.desk.read):
        for who in ("ada", "bob"):
            with pytest.raises(hb.QueryError, match="text of this question was removed"):
                act(who, first)
    with pytest.raises(hb.QueryError, match="text of this question was removed"):
        w.desk.check_refine("ada", first, "0.4")
    assert w.desk.ask("ada", COUNT, AT, "again")["state"] == "answered"


def test_a_plan_that_is_sent_again_is_the_one_that_it_was_also_where_part_of_it_is_told(world):
    w = world()
    asked = [{"sql": sql, "options": AT} for sql in (COUNT, AVERAGE)]
    placed = w.desk.plan("ada", asked, "both")
    spent = w.desk.budget("ada")["left"]
    for seconds, states in ((5, ["answered", "asked"]), (10, ["answered", "answered"])):
        w.until(seconds)
        again = w.desk.plan("ada", asked, "both")
        assert ([each["state"] for each in again], [each["id"] for each in again]) == (
            states, [each["id"] for each in placed],
        )  # fmt: skip
    assert w.desk.budget("ada")["left"] == spent
    with pytest.raises(hb.QueryError, match="stands for another question"):
        w.desk.plan("ada", [{"sql": WARDS, "options": AT}], "both")


def test_the_same_numbers_in_other_words_wait_until_they_are_told(world):
    """One's own question that is under way is not the answer to another text: that was shown once, by the first's."""
    w = world()
    first = w.desk.ask("ada", WARDS, AT, "one")
    for options in (AT, {"epsilon": "0.05"}):
        with pytest.raises(QueueFull, match=r"other words\. They are told in 5\.0 seconds") as why:
            w.desk.ask("ada", WARDS + " ORDER BY n DESC LIMIT 1", options, "two")
    assert why.value.retry_after == 5
    assert w.desk.ask("ada", f" {WARDS}\n", AT, "three")["id"] == first["id"]
    bob = w.desk.ask("bob", WARDS + " ORDER BY n DESC LIMIT 1", AT, "b")  # another's is a question of its own
    left = w.desk.budget("ada")
    w.until(10)
    told = w.desk.ask("ada", WARDS + " ORDER BY n DESC LIMIT 1", AT, "two")
    whole = Release.from_wire(w.desk.answer("ada", first["id"])["answer"])
    one, two = (Release.from_wire(t["answer"]) for t in (told, w.desk.answer("bob", bob["id"])))
    assert (len(whole.rows()), one.rows()) == (3, two.rows())
    assert len(one.rows()) == 1
    assert w.desk.budget("ada") == left


def test_a_plan_of_one_question_in_two_wordings_is_refused(world):
    w = world()
    both = [{"sql": WARDS, "options": AT}, {"sql": WARDS + " ORDER BY n DESC LIMIT 1", "options": AT}]
    with pytest.raises(hb.QueryError, match="two questions of this plan need the same noisy numbers"):
        w.desk.plan("ada", both, "p")
    assert w.ledger.record.history() == []
    answered(w, WARDS)
    told = w.desk.plan("ada", both, "p")  # stored by now: both are free, each in its own words
    assert [len(Release.from_wire(each["answer"]).rows()) for each in told] == [3, 1]


def test_no_text_of_a_csv_is_a_formula(world):
    """Whoever reads another's answer opens a file whose names and texts another wrote."""
    w = world()
    sql = """SELECT w AS "=HYPERLINK(""http://evil.example"")", COUNT(*) AS "-n", '@SUM(1)' AS t, '-5' AS five FROM v
        GROUP BY w"""
    one = answered(w, sql)
    lines = w.desk.answer("ada", one, None, "csv")["csv"].splitlines()
    assert lines[0].startswith('"\'=HYPERLINK(""http://evil.example"")","\'-n"')
    assert all('"\'@SUM(1)"' in line and '"-5"' in line for line in lines[1:])
    exact = Release.from_wire(w.desk.answer("ada", one)["answer"])
    assert exact.columns[0] == '=HYPERLINK("http://evil.example")'
