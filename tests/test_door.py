"""The one door: what is charged is what is run, in one process or in two."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.accounting import ZCDP, PureDP, cost
from hubbub.errors import InternalError
from hubbub.session.options import Options
from hubbub.session.run import Order, Outcome, Request, Steps
from hubbub.session.runner import Runner, request_again
from hubbub.session.statement import request_of
from hubbub.session.whole_rows import ask_marginals, ask_synthesis

SRC = Path(__file__).parents[1] / "src/hubbub"
SQL = "SELECT ward, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY ward"


def tables(folder: Path) -> dict[str, Any]:
    path = folder / "visits.parquet"
    if not path.exists():
        n = 3000
        pq.write_table(
            pa.table({"id": list(range(n)), "ward": ["A", "B", "C"] * (n // 3), "age": [i % 80 for i in range(n)]}),
            path,
        )
    declared = {"ward": hb.one_of("A", "B", "C"), "age": hb.between(0, 80)}
    return {"visits": hb.table(path, unit="id", columns=declared, max_groups=1, max_rows=1)}


def opened(folder: Path, *, delta: str | None = "1e-6", epsilon: object = 3) -> hb.Session:
    budget = hb.Budget(epsilon, delta=delta) if delta else hb.Budget(epsilon)
    return hb.Session(tables(folder), budget=budget, ledger=folder / "ledger.db", analyst="ada")


def statement(s: hb.Session, sql: str = SQL, **options: Any) -> Request:
    given = Options.of(options)
    asked = s._data.ask(sql, given, s.ledger.balance.budget)
    return request_of(asked, s._data, given)  # type: ignore[arg-type]


def test_rows_are_charged_for_in_one_file() -> None:
    """Every other file that charged, or took a charge over, would be a second door.

    The aggregators of Prio3 hold no table of ours: they charge for a batch of reports before they send a share.
    A training by Opacus reads its rows itself, and is charged to the share that the budget has for that alone. A
    steward frees at the command line what a dead process had reserved, and reads no rows.
    """
    calls = re.compile(
        r"(ledger|book)(\.charges)?\.(charge|charge_once|resume|reserve|close_block|give_back|keep_incident)\("
        r"|timetable\.submit\w*\("
    )
    found = {p.relative_to(SRC).as_posix() for p in SRC.rglob("*.py") if calls.search(p.read_text())}
    assert {name for name in found if not name.startswith(("ledger/", "collect/"))} == {
        "cli/ledger.py",
        "learning/opacus.py",
        "session/run.py",
    }


def test_private_rows_are_read_in_one_file() -> None:
    calls = re.compile(r"engine\.(run|rows|totals)\(")
    assert {p.relative_to(SRC).as_posix() for p in SRC.rglob("*.py") if calls.search(p.read_text())} == {
        "session/data.py"
    }


RUN = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_door import tables
from hubbub.session.run import Order
from hubbub.session.runner import Runner
with Runner(tables(Path({folder!r}))) as runner:
    for line in sys.stdin:
        done = runner.execute(Order.from_wire(line), drawing=lambda: None)  # recorded before the order was sent
        print(done.to_wire(), flush=True)
"""


def test_a_process_without_the_ledger_executes_what_another_charged(tmp_path: Path) -> None:
    rows, books = tmp_path / "rows", tmp_path / "books"
    rows.mkdir()
    books.mkdir()
    declared = tables(rows)
    with hb.Session(declared, budget=hb.Budget(3, delta="1e-6"), ledger=books / "l.db", analyst="ada") as s:
        budget = s.ledger.balance.budget
        requests = [
            statement(s, epsilon=1, keys={"ward": ["A", "B"]}),
            ask_synthesis(s._data, budget, "visits", epsilon="0.5").request(s._data),
            ask_marginals(s._data, budget, "visits", [("ward",), ("age",)], epsilon="0.5").request(s._data),
        ]
        orders = [s._door.open(request, sent=True) for request in requests]
        assert all(isinstance(order, Order) for order in orders)
        for order in orders:
            s._ledger.charges.advance(order.charge, "drawing")  # type: ignore[union-attr]
        books.rename(tmp_path / "away")  # no ledger where the runner could look
        program = RUN.format(tests=str(Path(__file__).parent), folder=str(rows))
        done = subprocess.run(
            [sys.executable, "-c", program],
            input="".join(order.to_wire() + "\n" for order in orders),  # type: ignore[union-attr]
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        (tmp_path / "away").rename(books)
        for order, line in zip(orders, done.stdout.splitlines(), strict=True):
            outcome = Outcome.from_wire(line, order)  # type: ignore[arg-type]
            s._door.record(outcome)
            assert s._door.close(outcome).payload == outcome.payload
        # And they are this session's stored answers, of the very same questions.
        again = s.sql(SQL, epsilon=1, keys={"ward": ["A", "B"]})
        assert not again.charged
        assert [r[0] for r in again.rows()] == ["A", "B"]
        assert abs(again.to_dict()["n"][0] - 1000) < 100
        assert not s.synthesize("visits", epsilon="0.5").charged
        assert not s.marginals("visits", [("ward",), ("age",)], epsilon="0.5").charged


def tampered(order: Order, **change: Any) -> Order:
    asked = change.get("ask")
    return replace(order, **change | ({} if asked is None else {"ask": lambda: asked}))


@pytest.mark.parametrize(
    "change",
    [
        {"key": "0" * 64},
        {"version": "of other rows"},
        {"event": '{"format": 1, "event": {"type": "PureDP", "epsilon": "3"}}'},
        {"ask": {"sql": "SELECT COUNT(*) FROM visits", "now": "2026-01-01", "options": {"epsilon": "1"}}},
        {"ask": {"sql": SQL, "now": "2026-01-01", "options": {"epsilon": "2"}}},
        {"kind": "marginals", "ask": {"table": "visits", "marginals": [["ward"]], "epsilon": "1"}},
        {"kind": "census"},
        {"space": "another"},
    ],
    ids=["key", "version", "event", "sql", "amount", "kind", "unknown kind", "space"],
)
def test_a_runner_runs_nothing_but_what_was_charged(tmp_path: Path, change: dict[str, Any]) -> None:
    with opened(tmp_path) as s, Runner(tables(tmp_path)) as runner:
        order = s._door.open(statement(s, epsilon=1))
        assert isinstance(order, Order)
        began: list[bool] = []
        with pytest.raises(InternalError):
            runner.execute(tampered(order, **change), drawing=lambda: began.append(True))
        assert not began
        assert runner.execute(order, drawing=lambda: began.append(True)).payload
        assert began == [True]


def test_an_order_that_is_sent_twice_is_drawn_once(tmp_path: Path) -> None:
    with opened(tmp_path) as s, Runner(tables(tmp_path)) as runner:
        order = s._door.open(statement(s, epsilon=1))
        assert isinstance(order, Order)
        with pytest.raises(TypeError):
            runner.execute(order)  # type: ignore[call-arg]

        def drawing() -> None:
            s._ledger.charges.advance(order.charge, "drawing")

        first = runner.execute(order, drawing=drawing)
        with pytest.raises(InternalError, match="one draw"):
            runner.execute(order, drawing=lambda: None)
        with Runner(tables(tmp_path)) as another, pytest.raises(InternalError, match="'drawing'"):
            another.execute(order, drawing=drawing)
        s._door.record(first)
        assert s._door.close(first).payload == first.payload


def test_what_a_runner_says_is_about_its_own_order(tmp_path: Path) -> None:
    """Else one runner answers what another draws, or gives back a charge that is being drawn."""
    with opened(tmp_path) as s:
        order = s._door.open(statement(s, epsilon="1/2"))
        other = s._door.open(statement(s, "SELECT COUNT(*) FROM visits", epsilon="1/2"))
        capped = s._door.open(ask_synthesis(s._data, s.ledger.balance.budget, "visits", epsilon="0.5").request(s._data))
        assert isinstance(order, Order)
        assert isinstance(other, Order)
        assert isinstance(capped, Order)
        less = cost(ZCDP("1/1000"))
        fine = Outcome(order.charge, payload="{}")
        assert Outcome.from_wire(fine.to_wire(), order) == fine
        assert Outcome.from_wire(Outcome(capped.charge, "{}", used=less).to_wire(), capped).used == less
        assert Order.from_wire(capped.to_wire()).capped
        for said in (
            Outcome(other.charge, payload="{}"),
            Outcome(other.charge, incident="17ab"),
            Outcome(order.charge, payload="{}", used=less),
            Outcome(order.charge, payload="{}", incident="17ab"),
            Outcome(order.charge),
        ):
            with pytest.raises(hb.ParameterError, match=order.charge):
                Outcome.from_wire(said.to_wire(), order)
        unread = json.loads(fine.to_wire()) | {"used": "not even an amount"}
        with pytest.raises(hb.ParameterError, match="gives nothing back"):
            Outcome.from_wire(json.dumps(unread), order)


def test_an_order_is_of_one_look_at_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at twice, a charge that is taken over for one version of the rows would be executed on another."""
    with opened(tmp_path) as s:
        looked: list[str] = []
        mark = s._data.mark
        monkeypatch.setattr(s._data, "mark", lambda name: [looked.append(name), mark(name)][1])
        first = s._door.open(statement(s, epsilon=1), name="k")
        assert isinstance(first, Order)
        assert looked == ["visits"]
        s._ledger.charges.let_go(first.charge)
        again = s._door.open(statement(s, epsilon=1), name="k")
        assert isinstance(again, Order)
        assert (again.charge, again.key, looked) == (first.charge, first.key, ["visits"] * 2)
        s._ledger.charges.let_go(again.charge)
        s.sql(SQL, epsilon="1/2")
        looked.clear()
        assert not s.sql(SQL, epsilon="1/2").charged
        assert looked == ["visits"]


def test_a_runner_draws_nothing_of_rows_that_changed(tmp_path: Path) -> None:
    with opened(tmp_path) as s, Runner(tables(tmp_path)) as runner:
        order = s._door.open(statement(s, epsilon=1))
        assert isinstance(order, Order)
        path = tmp_path / "visits.parquet"
        pq.write_table(pq.read_table(path).slice(1), tmp_path / "new.parquet")
        (tmp_path / "new.parquet").rename(path)
        with pytest.raises(hb.PolicyError, match="changed since the charge"):
            runner.execute(order, drawing=lambda: pytest.fail("drawn"))


def test_a_runner_has_no_ledger_and_no_key(tmp_path: Path) -> None:
    with Runner(tables(tmp_path)) as runner:
        held = [runner, runner._data, *vars(runner._data).values()]
        names = {type(one).__module__ for one in held}
        assert not any(name.startswith("hubbub.ledger") for name in names), names


def toy(s: hb.Session, steps: Callable[[list[Fraction]], Steps], *, capped: bool, event: Any) -> Request:
    """A request of three steps, each of which reads and draws."""
    return Request(
        kind="toy",
        text="a toy",
        ask=dict,
        space=s._data.space(None),
        tables=("visits",),
        epsilon=Fraction(1),
        event=event,
        key=lambda version: f"toy of {version}",
        details={"neighbours": "add_remove"},
        steps=lambda bits: steps([]),
        capped=capped,
    )


def spent(s: hb.Session) -> Any:
    return s.ledger.balance.total(s._data.space(None)).cost


def test_a_capped_order_of_three_steps_gives_back_what_it_did_not_use(tmp_path: Path) -> None:
    with opened(tmp_path) as s:
        drawn: list[Fraction] = []

        def steps(_: list[Fraction]) -> Steps:
            for part in ("1/100", "1/50", "1/25"):
                assert s.history()[-1].state == ("drawing" if drawn else "charged")
                s._data.cells("visits", ["age"])
                yield ZCDP(Fraction(part))
                assert s.history()[-1].state == "drawing"
                drawn.append(Fraction(part))
            return json.dumps({"steps": len(drawn)})

        stored, charged = s._door.release(toy(s, steps, capped=True, event=ZCDP(Fraction(1, 10))))
        assert charged
        assert json.loads(stored.payload) == {"steps": 3}
        assert spent(s).rho == Fraction(7, 100)
        assert [e.kind for e in s.history()] == ["question", "return"]
        again, charged = s._door.release(toy(s, steps, capped=True, event=ZCDP(Fraction(1, 10))))
        assert (again.charge_id, charged, len(drawn)) == (stored.charge_id, False, 3)


def test_a_capped_order_runs_no_more_than_its_cap(tmp_path: Path) -> None:
    with opened(tmp_path) as s:
        drawn: list[Fraction] = []

        def steps(_: list[Fraction]) -> Steps:
            for part in ("1/20", "1/20", "1/1000000"):
                yield ZCDP(Fraction(part))
                drawn.append(Fraction(part))
            return "never"

        with pytest.raises(InternalError, match="no more than was charged"):
            s._door.release(toy(s, steps, capped=True, event=ZCDP(Fraction(1, 10))))
        assert drawn == [Fraction(1, 20)] * 2
        assert spent(s).rho == Fraction(1, 10)
        assert s.history()[-1].state == "withdrawn"


@pytest.mark.parametrize("events", [[ZCDP(Fraction(1, 5))], [PureDP(Fraction(1, 100))], [ZCDP(Fraction(1, 10))] * 2])
def test_a_fixed_order_runs_its_event_and_that_once(tmp_path: Path, events: list[Any]) -> None:
    with opened(tmp_path) as s:

        def steps(_: list[Fraction]) -> Steps:
            yield from events
            return "never"

        with pytest.raises(InternalError, match="what was charged, once"):
            s._door.release(toy(s, steps, capped=False, event=ZCDP(Fraction(1, 10))))


def test_a_step_that_fails_on_rows_says_nothing_of_them(tmp_path: Path) -> None:
    with opened(tmp_path) as s:

        def steps(_: list[Fraction]) -> Steps:
            raise hb.QueryError("the age of Ann is 51")
            yield ZCDP(Fraction(1))  # pragma: no cover

        with pytest.raises(hb.EngineError) as failed:
            s._door.release(toy(s, steps, capped=False, event=ZCDP(Fraction(1, 10))))
        assert "Ann" not in "".join(map(str, (failed.value, failed.value.__cause__, failed.value.__context__)))
        assert s.history()[-1].state == "failed"


def test_what_an_event_costs_is_what_is_charged(tmp_path: Path) -> None:
    with opened(tmp_path) as s:
        request = statement(s, epsilon=1)
        s._door.release(request)
        assert spent(s) == cost(request.event)


OPTIONS = [
    {"epsilon": 0.1},
    {"rho": "1/3", "max_groups": 2, "max_rows": 3, "bounding": "norm", "weights": {"n": 3}},
    {"epsilon": Fraction(1, 7), "keys": {"ward": ["A", None, 1, 1.5, True], "day": [dt.date(2024, 2, 29)]}},
    {"epsilon": Decimal("0.3"), "params": {"a": dt.datetime(2024, 1, 1, 3), "b": Decimal("1.10"), "c": float("inf")}},
    {"within": {"n": 3.5}, "at_most": 1, "params": ["x", 2], "assume_rows": 50},
    {"epsilon": 1, "keys": {"$date": [{"a": 1}]}},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_options_are_the_same_after_the_wire(options: dict[str, Any]) -> None:
    sent = json.loads(json.dumps(Options.of(options).to_wire()))
    back = Options.from_wire(sent)
    assert back.to_wire() == sent
    for name, value in options.items():
        told = getattr(back, name)
        amounts = name in ("epsilon", "rho", "at_most")
        assert (Fraction(str(told)) == Fraction(str(value))) if amounts else told == value


def test_options_of_another_hubbub_are_refused() -> None:
    for wire in ({"epsilon": "1", "params": {"$pickle": "x"}}, {"epsilon": "1", "keys": {"$date": "no"}}, {"e": 1}):
        with pytest.raises(hb.ParameterError):
            Options.from_wire(wire)
    with pytest.raises(hb.ParameterError, match="Did you mean 'epsilon'"):
        Options.of({"epsilom": 1})
    with pytest.raises(hb.ParameterError, match="cannot be sent"):
        Options.of({"epsilon": 1, "params": [b"\x00"]}).to_wire()


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"format": "order 0"}', '{"format": "order 1"}'])
def test_what_is_not_an_order_is_refused(text: str) -> None:
    with pytest.raises(hb.ParameterError, match="order"):
        Order.from_wire(text)
    order = Order("17ab", "sql", {}, "id", hb.Budget(1), "key", "version", "{}")
    with pytest.raises(hb.ParameterError, match="outcome"):
        Outcome.from_wire(text, order)


def test_a_statement_made_again_is_the_same_question(tmp_path: Path) -> None:
    """With every option, and at an epsilon that `within` found: the same plans, price and key."""
    asked = [
        {"epsilon": 1, "weights": {"n": 5}, "keys": {"ward": ["B", "A"]}},
        {"rho": "1/50", "max_rows": 1, "bounding": "norm"},
        {"within": {"n": 60}, "at_most": 2},
        {"epsilon": "0.5", "noise": "laplace", "params": {"most": 70}},
        {"epsilon": "0.25", "keys": {"late": [2027, 2028]}},
    ]
    with opened(tmp_path, epsilon=20) as s:
        for options in asked:
            sql = SQL.replace("GROUP", "WHERE age < $most GROUP") if "params" in options else SQL
            if "late" in options.get("keys", {}):  # the moment goes with the order: what now() is told is the same
                sql = "SELECT EXTRACT(year FROM now()) + age // 60 AS late, COUNT(*) AS n FROM visits "
                sql += "WHERE now() > TIMESTAMP '2020-01-01' GROUP BY 1"
            order = s._door.open(statement(s, sql, **options))
            assert isinstance(order, Order)
            request = request_again(Order.from_wire(order.to_wire()), s._data)
            assert request.key(order.version) == order.key
            s._ledger.charges.let_go(order.charge)


def test_refining_goes_through_the_door(tmp_path: Path) -> None:
    with opened(tmp_path) as s:
        first = s.sql(SQL, epsilon="0.2", weights={"n": 4})
        again = first.refine("0.4")
        assert again.epsilon == Fraction(3, 5)
        assert [e.kind for e in s.history()] == ["question", "question"]


def test_what_cannot_be_sent_is_refused_before_the_charge_and_needs_no_sending_here(tmp_path: Path) -> None:
    """Found by reading: the wire form was made after the charge, also where nothing was sent."""
    from uuid import uuid4

    odd = {"most": uuid4()}
    with opened(tmp_path) as s:
        request = statement(s, epsilon=1)
        request = replace(request, ask=lambda: Options.of({"epsilon": 1, "params": odd}).to_wire())
        with pytest.raises(hb.ParameterError, match="cannot be sent"):
            s._door.open(request, sent=True)
        assert s.history() == []
        assert s._door.release(request)[1]


@pytest.mark.parametrize("weight", [True, 0, 10**6 + 1, 1.5])
def test_what_is_no_weight_of_an_aggregate_is_refused_before_the_charge(tmp_path: Path, weight: Any) -> None:
    with opened(tmp_path) as s, pytest.raises(hb.ParameterError, match="whole number from 1 to 1,000,000"):
        s.check(SQL, epsilon="0.2", weights={"n": weight})
