"""A ledger is made of parts; an analyst sees those that read."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import ParameterError, QueryError
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger, LedgerView
from ledger.helpers import SPACE, asked


def public(found: object) -> set[str]:
    return {name for name in dir(found) if not name.startswith("_")}


@pytest.fixture
def ledger():
    with Ledger.in_memory({SPACE: Budget(1)}) as made:
        yield made


def test_no_part_of_a_ledger_has_more_than_twenty_names(ledger):
    parts = (
        ledger, ledger.charges, ledger.balance, ledger.record, ledger.chain, ledger.steward, ledger.versions,
        ledger.view,
    )  # fmt: skip
    assert max(len(public(part)) for part in parts) <= 20


def test_what_an_analyst_sees_neither_charges_nor_changes(ledger):
    """By name: nothing that a steward does, or that makes a charge, stands in what a session shows."""
    table = hb.table(pa.table({"pid": [1, 2]}), unit="pid", max_rows=1)
    with (
        pytest.warns(UserWarning, match="in memory"),
        hb.Session({"t": table}, budget=hb.Budget(1), ledger=None) as session,
    ):
        assert isinstance(session.ledger, LedgerView)
        seen = public(session.ledger) | public(session.ledger.balance) | public(session.ledger.record)
        assert not seen & (public(ledger.steward) | public(ledger.charges) | public(ledger.versions))
        assert not seen & public(ledger.chain)  # its keys are there
        assert not seen & {"close", "open", "manage", "charges", "chain", "steward", "versions", "name_anchor"}
        with pytest.raises(dataclasses.FrozenInstanceError):
            session.ledger.balance = None
        assert session.ledger.balance.remaining("pid") == 1


def test_a_charge_is_checked_when_it_is_made():
    assert asked("0.1").spend.epsilon == asked("0.1").epsilon
    with pytest.raises(ParameterError):
        asked(0)
    for change in ({"sql": "\ud800"}, {"analyst": "*"}, {"purpose": ""}, {"analyst": "x" * 201}):
        with pytest.raises(QueryError):
            asked(1, **change)
    with pytest.raises(dataclasses.FrozenInstanceError):
        asked(1).space = "other"
