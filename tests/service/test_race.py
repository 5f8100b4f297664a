"""Fifty clients of a real service race for the last tenth of its budget: exactly one gets it, by HTTP, each with a
token of his own."""

from __future__ import annotations

import threading
from fractions import Fraction

import pytest

import hubbub as hb
from hubbub.ledger.store import Ledger
from hubbub.service.serve import Service
from service.helpers import token_of
from service.test_before_asking import policy as write_policy
from service.test_processes import Client, free_port

pytest.importorskip("starlette", reason="the service needs the extra `serve`")

CLIENTS = 50


def test_fifty_clients_race_for_the_last_tenth_and_one_gets_it(tmp_path):
    file, port = write_policy(tmp_path), free_port()
    text = file.read_text().replace("answer_time = 1.5", "answer_time = 4")
    assert text.count("epsilon = 5\n") == 1
    file.write_text(text.replace("epsilon = 5\n", "epsilon = 0.1\n"))
    hb.Session.from_policy(file, create_ledger=True).close()
    tokens = [token_of(file, f"analyst{k}") for k in range(CLIENTS)]
    made = Service(file, host="127.0.0.1", port=port, say=lambda _: None)
    made.start()
    start, told = threading.Barrier(CLIENTS), dict[int, tuple[int, dict]]()

    def race(k: int) -> None:
        client = Client(port, tokens[k])
        body = {"sql": f"SELECT COUNT(*) AS n FROM v WHERE x < {k + 1}", "options": {"epsilon": "0.1"}}
        start.wait(60)
        for _ in range(20):  # a machine that is behind may not plan it in two seconds, and nothing is charged then
            told[k] = client.call("/api/v1/ask", body, key="one")
            if told[k][0] in (202, 409):
                return

    try:
        Client(port, tokens[0]).ready()
        threads = [threading.Thread(target=race, args=(k,)) for k in range(CLIENTS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(120)
        assert sorted(status for status, _ in told.values()) == [202] + [409] * (CLIENTS - 1)
        (winner,) = (k for k, (status, _) in told.items() if status == 202)
        lost = {(said["kind"], said["asked"], said["left"]) for status, said in told.values() if status == 409}
        assert lost == {("budget", "0.1", "0")}
    finally:
        made.stop()
    with Ledger.inspect(tmp_path / "l.db") as ledger:
        assert ledger.record.verify().problems == ()
        assert [entry.analyst for entry in ledger.record.history()] == [f"analyst{winner}"]
        assert ledger.balance.spent("id") == Fraction(1, 10)
