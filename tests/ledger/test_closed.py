"""What is asked after a session was closed is refused before it is charged: nothing reads its rows any more."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.ledger import incidents
from hubbub.ledger.store import Ledger

COUNT = "SELECT COUNT(*) AS n FROM t"
WAYS: dict[str, Callable[[hb.Session, hb.Release], object]] = {
    "sql": lambda session, _: session.sql(f"{COUNT} WHERE x > 3", epsilon=1),
    "what is stored": lambda session, _: session.sql(COUNT, epsilon=1),
    "fresh": lambda session, _: session.sql(COUNT, epsilon=1, fresh=True),
    "check": lambda session, _: session.check(COUNT, epsilon=1),
    "refine": lambda _, answer: answer.refine(1),
    "another analyst": lambda session, _: session.as_analyst("bob").sql(COUNT, epsilon=1),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_closed_session_charges_nothing_and_counts_no_failure(place, way):
    table = hb.table(pa.table({"id": range(9), "x": range(9)}), unit="id", max_total=1)
    with hb.Session({"t": table}, budget=hb.Budget(9), ledger=place, analyst="ada") as session:
        answer = session.sql(COUNT, epsilon=1)
    for _ in range(2):
        with pytest.raises(hb.PolicyError, match="closed"):
            way(session, answer)
    session.close()
    with Ledger.open(place, budgets={"id": hb.Budget(9)}) as ledger:
        assert [(each.kind, each.state) for each in ledger.record.history()] == [("question", "shown")]


def test_a_steward_reads_the_words_of_an_incident_whatever_store_the_ledger_is_in(place, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    table = hb.table(pa.table({"id": range(9)}), unit="id", max_total=1)
    with hb.Session({"t": table}, budget=hb.Budget(9), ledger=place, analyst="ada") as session:
        session._data.engine._con.close()  # type: ignore[attr-defined]  # the engine fails once, after the charge
        with pytest.raises(hb.EngineError) as failed:
            session.sql(COUNT, epsilon=1)
        assert "closed" in incidents.read(session._ledger.path, failed.value.incident)
