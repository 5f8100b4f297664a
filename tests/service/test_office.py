"""The office: what waits for a yes, grants and unlocking behind a passphrase, and what an auditor reads."""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager, nullcontext
from fractions import Fraction

import pytest

import hubbub as hb
from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.policy import load_policy
from hubbub.ledger.store import Ledger, verify_beside
from hubbub.service import clerk
from hubbub.service.gate import Gate
from hubbub.service.http.schemas import SCHEMAS
from hubbub.service.office import Office
from hubbub.service.people import keys
from hubbub.service.people.at_home import opened_people
from hubbub.service.people.people import People
from hubbub.service.people.person import NotAllowed, TooMany
from hubbub.service.requests import take_up
from hubbub.service.states import STATES
from hubbub.service.whole_desk import WholeDesk
from hubbub.session.empty import schema_of
from hubbub.session.open import declared_tables
from hubbub.session.runner import Runner
from service.helpers import COUNT, SPACE, World, rooms_behind
from service.test_before_asking import policy as write_policy

TENTH, TWO = {"epsilon": "0.1"}, {"epsilon": "2"}
PHRASE = "correct horse battery"


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "_N", 2)
    made = World(tmp_path / "l.db", monkeypatch, desk=WholeDesk)
    yield made
    made.close()


@pytest.fixture
def people(world, tmp_path):
    made = People(tmp_path / "service.db", ledger=world.ledger)
    for name, role in (("ada", "analyst"), ("bob", "analyst"), ("sue", "steward"), ("aud", "auditor")):
        made.roll.add(name, [role], by="test")
    made.accept(made.roll.reset("sue", by="test")[0], PHRASE)
    yield made
    assert made.store.verify().sound
    made.close()


@pytest.fixture
def act(world, people):
    """An act of somebody's, by a token of his."""
    rooms = rooms_behind(world.desk, people, world.ledger, {"v": SPACE}, above=Fraction(1))
    world.archive, gate = rooms["archive"], Gate(people, rooms, checks=(1e6, 1000))
    tokens = {name: people.new_token(name, by="test")["token"] for name in ("ada", "bob", "sue", "aud")}

    def done(who, name, /, **given):
        return gate.done(name, given, {"token": tokens[who]})

    return done


def asked(act, who="ada", sql=COUNT, options=TWO, request="r"):
    return act(who, "ask", sql=sql, options=options, request=request, purpose="a first look")


def spent(world):
    return world.ledger.balance.total(SPACE).epsilon


def test_a_question_at_much_waits_for_a_yes_and_charges_nothing_until_then(world, act):
    told = asked(act)
    assert (told["state"], told["id"][0], spent(world)) == ("waiting", "w", 0)
    assert asked(act) == told  # the same request
    with pytest.raises(QueryError, match="stands for another question"):
        asked(act, options={"epsilon": "3"})
    assert act("ada", "answer", charge=told["id"])["state"] == "waiting"
    with pytest.raises(hb.errors.HubbubError, match="no such question of yours"):
        act("bob", "answer", charge=told["id"])
    (waits,) = act("sue", "requests", state="open")
    assert (waits["analyst"], waits["epsilon"], waits["sql"], waits["left"]) == ("ada", "2", COUNT, "30")
    act("sue", "decide", request=told["id"], yes=True, reason="for the report")
    assert spent(world) == 2
    one = act("ada", "answer", charge=told["id"])
    assert one["state"] == "asked"
    world.until(10)
    assert "answer" in act("ada", "answer", charge=told["id"])
    assert act("ada", "answer", charge=one["id"])["state"] == "answered"
    with pytest.raises(PolicyError, match="does not wait any more"):
        act("sue", "decide", request=told["id"], yes=False, reason="x")
    assert "answer" in asked(act, options=TWO, request="again")  # what is stored needs no yes


def test_a_no_is_told_with_its_reason_and_charges_nothing(world, act):
    told = asked(act)
    act("sue", "decide", request=told["id"], yes=False, reason="too much for a first look")
    again = act("ada", "answer", charge=told["id"])
    assert (again["state"], again["reason"]) == ("declined", "too much for a first look")
    assert asked(act)["state"] == "declined"
    assert spent(world) == 0
    assert act("ada", "ask", sql=COUNT, options=TENTH, request="s")["state"] == "asked"


def test_a_yes_that_the_budget_does_not_hold_stays_open(world, act):
    told = asked(act, options={"epsilon": "29"})
    asked(act, "bob", options={"epsilon": "1"}, request="b")
    act("bob", "ask", sql="SELECT SUM(x) AS s FROM v", options={"epsilon": "1"}, request="c")
    with pytest.raises(hb.BudgetError):
        act("sue", "decide", request=told["id"], yes=True, reason="x")
    assert act("ada", "answer", charge=told["id"]) == told  # and no reason of a yes that was none


@pytest.mark.parametrize("stored", ["by the service", "by a session"])
def test_one_yes_is_for_one_charge_at_its_amount(world, act, people, monkeypatch, stored):
    """What was answered from the store has used its yes: new rows want a new one."""
    first, second = asked(act), asked(act, request="again")
    act("sue", "decide", request=first["id"], yes=True, reason="x")
    world.until(10)
    with monkeypatch.context() as by:
        if stored == "by a session":  # whose answers the schedule does not know
            by.setattr(world.ledger.timetable, "find", lambda _: None)
        act("sue", "decide", request=second["id"], yes=True, reason="x")
    assert "answer" in asked(act, request="again")
    world.ledger.steward.refresh(SPACE, "v")
    with pytest.raises(QueryError, match="before the rows or its cost changed"):
        asked(act, request="again")
    take_up(people, world.ledger, [SPACE])
    with pytest.raises(QueryError, match="before the rows or its cost changed"):
        asked(act, request="again")
    assert (asked(act, request="new")["state"], spent(world)) == ("waiting", 2)


@contextmanager
def killed_at(monkeypatch, *places):
    """The process dies as soon as it comes to one of these, each an object and the name of its method."""

    def died(*_, **__):
        raise SystemExit("killed")

    with monkeypatch.context() as dying:
        for at, name in places:
            dying.setattr(at, name, died)
        with pytest.raises(SystemExit):
            yield


def test_a_yes_is_not_for_more_than_was_shown_to_whoever_said_it(world, act, people, monkeypatch):
    told = asked(act)
    with killed_at(monkeypatch, (world.desk.requests, "ask"), (people.wishes, "reopen")):
        act("sue", "decide", request=told["id"], yes=True, reason="x")
    said = {"sql": COUNT, "options": TWO, "request": "r", "purpose": "a first look"}
    assert world.desk.requests.hold("ada", Fraction(2), said, None) is None
    with pytest.raises(QueryError, match="before the rows or its cost changed"):
        world.desk.requests.hold("ada", Fraction(3), said, None)


@pytest.mark.parametrize("name", ["Ada", "\uff21da", "ada ", "adda", "analyst:ada", ""])
@pytest.mark.parametrize("name_of", ["grant", "revoke_grant", "unlock"])
def test_what_is_said_of_nobody_is_refused_and_says_who_may_be_meant(world, act, name, name_of):
    """A revocation of another spelling said that it was done, and ada asked on."""
    told = {"reason": "x", **({} if name_of == "revoke_grant" else {"passphrase": PHRASE})}
    given = {"analyst": name} if name_of == "unlock" else {"account": f"analyst:{name}"}
    lines = world.ledger.chain.lines()
    if name_of == "grant":
        given["epsilon"] = "0.1"
    with pytest.raises((QueryError, hb.ParameterError)) as refused:
        act("sue", name_of, **given, **told)
    assert ("Is it 'analyst:ada'?" in str(refused.value)) == (name in ("Ada", "\uff21da"))
    assert world.ledger.chain.lines() == lines
    given = {**given, **({"analyst": "ada"} if name_of == "unlock" else {"account": "analyst:ada"})}
    assert act("sue", name_of, **given, **told)


def test_a_yes_whose_process_died_before_it_asked_waits_again(world, act, people, monkeypatch):
    """Before, it stood as granted for ever: nobody asked it, and nobody could decide it."""
    told = asked(act)
    with killed_at(monkeypatch, (world.desk.requests, "ask"), (people.wishes, "reopen")):
        act("sue", "decide", request=told["id"], yes=True, reason="x")
    assert act("ada", "answer", charge=told["id"])["state"] == "granted"
    take_up(people, world.ledger, [SPACE])
    assert act("ada", "answer", charge=told["id"])["state"] == "waiting"
    assert spent(world) == 0
    act("sue", "decide", request=told["id"], yes=True, reason="x")
    assert act("ada", "answer", charge=told["id"])["state"] == "asked"
    assert spent(world) == 2


def test_a_yes_whose_process_died_after_the_charge_is_that_question(world, act, people, monkeypatch):
    told = asked(act)
    with killed_at(monkeypatch, (people.wishes, "became"), (people.wishes, "reopen")):
        act("sue", "decide", request=told["id"], yes=True, reason="x")
    assert (act("ada", "answer", charge=told["id"])["state"], spent(world)) == ("granted", 2)
    for _ in range(2):
        take_up(people, world.ledger, [SPACE])
        assert act("ada", "answer", charge=told["id"])["state"] == "asked"
    assert asked(act)["state"] == "asked"
    world.until(10)
    assert "answer" in act("ada", "answer", charge=told["id"])
    assert spent(world) == 2
    with pytest.raises(PolicyError, match="does not wait any more"):
        act("sue", "decide", request=told["id"], yes=True, reason="x")


@pytest.mark.parametrize("step", ["before the grant", "after the grant", "after its note"])
def test_a_yes_to_more_budget_whose_process_died_waits_again_or_is_its_grant(world, act, people, monkeypatch, step):
    """Before, it stood as granted for ever, without a grant."""
    act("sue", "grant", account="analyst:ada", epsilon="2", reason="x", passphrase=PHRASE)
    told = act("ada", "request_budget", epsilon="0.5", reason="the yearly report")
    noted = [(people.wishes, "became"), (people.wishes, "reopen")]
    places = {"before the grant": [(Office, "grant"), *noted], "after the grant": noted, "after its note": None}[step]
    with killed_at(monkeypatch, *places) if places else nullcontext():
        act("sue", "decide", request=told["id"], yes=True, reason="x", passphrase=PHRASE)
    if step == "before the grant":  # an end for the same reason is no grant
        world.ledger.steward.revoke(SPACE, "analyst:ada", author="sue", reason="x")
        assert not world.ledger.balance.limit(SPACE, "ada")
        take_up(people, world.ledger, [SPACE])
        assert act("ada", "my_requests")[0]["state"] == "open"
        act("sue", "grant", account="analyst:ada", epsilon="2", reason="again", passphrase=PHRASE)
    for _ in range(2):
        take_up(people, world.ledger, [SPACE])
        made = step != "before the grant"
        assert world.ledger.balance.limit(SPACE, "ada") == (Fraction(5, 2) if made else 2)
        (one,) = act("ada", "my_requests")
        assert (one["state"], one["question"]) == ("granted" if made else "open", None)
    if not made:
        act("sue", "decide", request=told["id"], yes=True, reason="x", passphrase=PHRASE)
        assert world.ledger.balance.limit(SPACE, "ada") == Fraction(5, 2)
        assert act("ada", "my_requests")[0]["state"] == "granted"


class NoLanes:
    """Runners that are always there, and run nothing."""

    each, respawn = 1000, 0.0

    def __init__(self, policy, finished):
        with closing(Runner(declared_tables(policy))._data) as data:
            self.described = schema_of(data)

    def wait(self):
        pass

    sweep = close = wait


def test_a_clerk_takes_up_at_its_start_what_another_had_granted(tmp_path, monkeypatch):
    file = write_policy(tmp_path)
    hb.Session.from_policy(file, create_ledger=True).close()
    policy = load_policy(file)
    with Ledger.inspect(policy.ledger) as ledger:
        people = opened_people(policy, ledger)
        people.roll.add("ada", ["analyst"], by="test")
        told = {"sql": COUNT, "options": TWO, "epsilon": "2", "token": None, "request": "r", "purpose": None}
        ids = [people.wishes.add("question", "ada", told, name="r").id]
        ids.append(people.wishes.add("budget", "ada", {"epsilon": "1", "space": "id", "reason": "x"}).id)
        for identity, outcome in zip(ids, (None, "0"), strict=True):
            people.wishes.settle(identity, "granted", by="sue", reason="x", outcome=outcome)
        people.close()
    monkeypatch.setattr(clerk, "Lanes", NoLanes)
    monkeypatch.setattr(clerk, "keep_ready", lambda: None)
    one = clerk.Clerk(policy)
    try:
        assert [one.people.wishes.one(identity).state for identity in ids] == ["open", "open"]
    finally:
        one.close()


def test_a_yes_that_fails_does_not_open_what_somebody_asked_who_was_disabled_meanwhile(world, act, people):
    """Nobody would withdraw it any more, and it could be granted once he is enabled again, for other reasons."""
    told = asked(act)

    def disabled(*_, **__):
        people.roll.disable("ada", by="sue")
        raise PolicyError("it was too late")

    world.desk.requests.ask = disabled
    with pytest.raises(PolicyError, match="too late"):
        act("sue", "decide", request=told["id"], yes=True, reason="x")
    assert [one["state"] for one in act("sue", "requests")] == ["withdrawn"]
    people.roll.enable("ada", by="sue")
    assert act("ada", "answer", charge=told["id"])["state"] == "withdrawn"
    with pytest.raises(PolicyError, match="does not wait any more"):
        act("sue", "decide", request=told["id"], yes=True, reason="x")
    assert spent(world) == 0


def test_the_states_that_are_told_are_those_that_the_api_names(world, act):
    """Each is brought about, and each that the schema names is told."""
    told, steps = {}, SCHEMAS["Answer"]["properties"]["state"]["enum"]

    def look(one):
        state = act("ada", "answer", charge=one["id"])["state"]
        told[state] = one

    def granted(*given, **more):
        look(yes)
        return world.desk.ask(*given, **more)

    world.desk.requests.ask = granted
    no, yes, back = (asked(act, request=name) for name in ("no", "yes", "back"))
    look(no)
    act("sue", "decide", request=no["id"], yes=False, reason="x")
    act("sue", "decide", request=yes["id"], yes=True, reason="x")
    act("ada", "withdraw_request", request=back["id"])
    for one in (no, yes, back):
        look(one)
    world.until(10)
    look(yes)
    world.outcome = "failure"
    failed = act("ada", "ask", sql="SELECT SUM(x) AS s FROM v", options=TENTH, request="s")
    world.until(20)
    look(failed)
    assert sorted(told) == sorted(steps) == sorted(STATES)
    histories = SCHEMAS["History"]["items"]["properties"]["state"]["enum"]
    assert {each["state"] for each in act("ada", "history")} <= set(histories) < set(steps)


def test_what_waits_for_a_yes_goes_in_no_plan_and_refines_nothing(world, act):
    with pytest.raises(PolicyError, match="asked by itself"):
        act("ada", "plan", questions=[{"sql": COUNT, "options": TWO}], request="p")
    one = act("ada", "ask", sql=COUNT, options=TENTH, request="r")
    world.until(10)
    with pytest.raises(PolicyError, match="asked by itself"):
        act("ada", "refine", charge=one["id"], epsilon="2", request="f")
    assert spent(world) == Fraction(1, 10)


def test_somebody_who_left_gets_no_yes(world, act, people):
    told = asked(act)
    act("sue", "leave", name="ada")
    assert [one["state"] for one in act("sue", "requests")] == ["withdrawn"]
    with pytest.raises(PolicyError, match="does not wait any more"):
        act("sue", "decide", request=told["id"], yes=True, reason="x")
    assert world.ledger.balance.limit(SPACE, "ada") == 0
    assert people.keys.of("ada")[0]["live"] is False


def test_a_yes_to_more_budget_is_a_grant_behind_the_passphrase(world, act):
    act("sue", "grant", account="analyst:ada", epsilon="2", reason="to begin", passphrase=PHRASE)
    told = act("ada", "request_budget", epsilon="0.5", reason="the yearly report")
    assert (told["state"], told["space"]) == ("open", SPACE)
    for given in ({}, {"passphrase": "wrong"}):
        with pytest.raises(NotAllowed, match="passphrase is not right"):
            act("sue", "decide", request=told["id"], yes=True, reason="x", **given)
    assert world.ledger.balance.limit(SPACE, "ada") == 2
    act("sue", "decide", request=told["id"], yes=True, reason="x", passphrase=PHRASE, until="2030-01-01")
    assert world.ledger.balance.limit(SPACE, "ada") == Fraction(5, 2)
    assert act("ada", "my_requests")[0]["decided_by"] == "sue"
    (ada,) = [one for one in act("aud", "people") if one["name"] == "ada"]
    assert (ada["accounts"][0]["limit"], ada["accounts"][0]["until"][:10]) == ("5/2", "2030-01-01")
    mine = act("bob", "request_budget", epsilon="1", reason="more")
    with pytest.raises(PolicyError, match="there is no request"):
        act("ada", "withdraw_request", request=mine["id"])
    act("bob", "withdraw_request", request=mine["id"])
    assert [one["state"] for one in act("bob", "my_requests")] == ["withdrawn"]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("grant", {"account": "analyst:ada", "epsilon": "1"}),
        ("unlock", {"analyst": "ada"}),
        ("raise_ceiling", {"space": SPACE, "epsilon": "31"}),
    ],
)
def test_what_weakens_asks_for_the_passphrase_and_a_reason(world, act, people, name, given):
    for missing in ({"reason": "r"}, {"passphrase": PHRASE}):
        with pytest.raises(QueryError, match="missing"):
            act("sue", name, **given, **missing)
    for _ in range(4):
        with pytest.raises(NotAllowed):
            act("sue", name, **given, passphrase="a guess", reason="r")
    act("sue", name, **given, passphrase=PHRASE, reason="because")
    with pytest.raises(TooMany):
        act("sue", name, **given, passphrase=PHRASE, reason="because")
    last = people.store.lines()[-1]
    assert (last["who"], last["about"]["reason"]) == ("sue", "because")


def test_a_token_s_cap_is_not_granted_more(act):
    with pytest.raises(QueryError, match="fixed when it is made"):
        act("sue", "grant", account="token:1f0c5a7e", epsilon="9", reason="r", passphrase=PHRASE)


def test_incidents_are_read_by_stewards_and_each_reading_is_a_line(world, act, people):
    world.outcome = "failure"
    one = act("ada", "ask", sql=COUNT, options=TENTH, request="r")
    assert act("sue", "incidents") == []
    world.until(10)
    (seen,) = act("sue", "incidents")
    assert (seen["incident"], seen["analyst"], seen["looked_at"]) == (one["incident"], "ada", None)
    assert act("sue", "incident", incident=one["incident"])["words"] == "private words"
    assert act("sue", "incidents")[0]["looked_at"] is not None
    with pytest.raises(NotAllowed):
        act("aud", "incident", incident=one["incident"])
    assert "private words" not in str(people.store.lines())


def test_auditors_read_charges_limits_and_the_chain(world, act):
    act("ada", "ask", sql=COUNT, options=TENTH, request="r")
    (charge,) = act("aud", "charges")
    assert (charge["analyst"], charge["epsilon"]) == ("ada", "1/10")
    assert act("aud", "chain")["sound"] is True
    assert act("aud", "spaces")[0]["spent"] == "1/10"
    assert act("aud", "limits") == []
    for name in ("charges", "chain", "spaces", "people", "requests", "audit"):
        with pytest.raises(NotAllowed):
            act("ada", name)
    with pytest.raises(NotAllowed):
        act("aud", "refresh", table="v", reason="r")
    act("sue", "refresh", table="v", reason="new rows")
    assert act("ada", "ask", sql=COUNT, options=TENTH, request="s")["state"] == "asked"


def _walked(act, who):
    while (told := act(who, "chain_walk"))["state"] == "walking":
        time.sleep(0.01)
    return told


def test_a_walk_goes_on_while_others_ask_and_tells_how_far_it_is(world, act):
    act("ada", "ask", sql=COUNT, options=TENTH, request="r")
    half, go, ledger = threading.Event(), threading.Event(), world.desk.ledger

    def walking(receipt, told):
        assert receipt == {"chain": {}}
        told(1)
        half.set()
        assert go.wait(60)
        return ledger.record.verify(told=told)

    world.archive.walking = walking
    assert act("sue", "chain_walk") == {"state": "none"}
    lines = ledger.chain.lines()
    begun = act("sue", "begin_chain", receipt={"chain": {}}, head="9f")
    assert half.wait(60)
    assert act("sue", "begin_chain") == act("sue", "chain_walk"), "one of each person"
    assert act("sue", "chain_walk") == begun | {"done": 1, "state": "walking"}
    assert (begun["lines"], begun["head"], begun["receipt"]) == (lines, "9f", True)
    assert act("aud", "chain_walk") == {"state": "none"}
    assert act("bob", "ask", sql=COUNT, options=TENTH, request="s")["state"] == "asked"
    go.set()
    told = _walked(act, "sue")
    assert (told["state"], told["done"], told["found"]["sound"]) == ("done", lines, True)
    assert told["found"]["links"] > lines
    (line,) = [one for one in act("aud", "audit") if one["act"] == "chain verified"]
    assert (line["who"], line["about"]["sound"]) == ("sue", True)
    for name in ("begin_chain", "chain_walk"):
        with pytest.raises(NotAllowed):
            act("ada", name)


def test_a_walk_that_cannot_go_on_says_so_and_the_next_one_does(world, act):
    def refuses(receipt, told):
        raise PolicyError("it is not there.")

    world.archive.walking = refuses
    act("aud", "begin_chain")
    told = _walked(act, "aud")
    assert (told["state"], told["problem"]) == ("failed", "it is not there.")
    world.archive.walking = lambda kept, told: verify_beside(world.desk.ledger, world.desk.ledger.path, kept, told)
    act("aud", "begin_chain")
    assert _walked(act, "aud")["found"]["sound"] is True


def test_a_steward_sees_what_each_asked_and_nobody_else_does(world, act):
    for who, request in (("ada", "r"), ("bob", "s")):
        act(who, "ask", sql=COUNT, options=TENTH, request=request)
    assert [one["analyst"] for one in act("sue", "charges")] == ["bob", "ada"]
    (one,) = act("sue", "charges", analyst="ada")
    assert (one["analyst"], one["epsilon"]) == ("ada", "1/10")
    assert act("sue", "charges", analyst="nobody") == []
    with pytest.raises(NotAllowed):
        act("ada", "charges", analyst="ada")


def test_what_a_bound_costs_is_what_a_check_predicts_and_charges_nothing(world, act):
    told = act("sue", "bound_costs")
    assert told == act("aud", "bound_costs")
    assert set(told["v"]) == {"max_groups", "max_rows"}
    for bound, costs in told["v"].items():
        for size, width in costs["widths"]:
            sql = "SELECT w, COUNT(*) AS n FROM v GROUP BY w"
            check = act("ada", "check", sql=sql, options={"epsilon": costs["epsilon"], bound: size})
            assert check["columns"][0]["plus_minus"] == width
        widths = [width for _, width in costs["widths"]]
        assert widths == sorted(widths)
    assert act("aud", "charges") == []
    with pytest.raises(NotAllowed):
        act("ada", "bound_costs")


def test_the_policy_file_is_compared_with_what_holds(world, act, tmp_path):
    from hubbub.ledger.policy import load_policy

    assert act("sue", "policy_changes") == {"changes": [], "problem": ""}
    file = tmp_path / "hubbub.toml"
    text = '[ledger]\nfile = "l.db"\n[budget]\nepsilon = 3\nper_analyst = 2\n[tables.v]\nsource = "v.csv"\nunit = "u"\n'
    file.write_text(text)
    world.archive.policy = load_policy(file)
    assert act("sue", "policy_changes") == {"changes": [], "problem": ""}
    file.write_text(text.replace("per_analyst = 2", "per_analyst = 1"))
    assert act("aud", "policy_changes")["changes"] == ["The limit of each analyst changes from epsilon 2 to epsilon 1."]
    file.write_text("[")
    assert "hubbub.toml" in act("sue", "policy_changes")["problem"]
    with pytest.raises(NotAllowed):
        act("ada", "policy_changes")
