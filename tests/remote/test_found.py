"""Bounds that are found, limits that are looked at, and shares of an answer, from afar: as a session's."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.ledger import hash_chain
from remote.living import Hurrying, Living

COUNT = "SELECT COUNT(*) AS n FROM v"
UNITS = "SELECT COUNT(DISTINCT id) AS n FROM v"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    rows = [u for u in range(3000) for _ in range(2 ** (u % 4))]
    frame = pa.table({"id": rows, "x": [2] * len(rows)})
    tables = {"v": hb.table(frame, unit="id", columns={"x": hb.between(0, "auto")})}
    clock = Hurrying()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hash_chain, "now", clock.wall)
        living = Living(tmp_path_factory.mktemp("found"), tables, hb.Budget(300, "1e-6"), clock=clock)
        yield living
        living.close()


@pytest.fixture
def service(place):
    with warnings.catch_warnings(), hb.connect(place.url, token=place.token("ada")) as connection:
        warnings.simplefilter("ignore", UserWarning)
        yield connection


def test_a_bound_is_found_in_the_charge_and_the_answer_says_so(service):
    assert [bound for bound, _ in service.check(COUNT, epsilon=4, max_rows="auto").bounds] == [4, 32, 256]
    r = service.sql(COUNT, epsilon=4, max_rows="auto")
    assert r.text.notes[0].startswith("found: at most 8 rows of one id; with probability .95 at most ")
    assert r.receipt["found"][0]["bound"] == "8"
    s = service.sql("SELECT SUM(x) AS s FROM v", epsilon=4)
    assert s.text.bounded[0].startswith("bounded: at most a sum of x of 16 of one id")


def test_limits_are_looked_at(service):
    check = service.check_bounds(COUNT, epsilon=4, at="0.5")
    assert "recommended: max_rows = 8" in str(check)
    again = service.check_bounds(COUNT, epsilon=4, at="0.5")
    assert (check.charged, again.charged, again.cost, again.limits) == (True, False, 0, check.limits)
    with pytest.raises(hb.PolicyError, match="asked about limits"):
        service.answer(check.charge_id)
    with pytest.raises(hb.PolicyError, match="fresh=True: not through a service"):
        service.check_bounds(COUNT, epsilon=4, fresh=True)
    with pytest.raises(hb.ParameterError, match="at = 'much' is not a number"):
        service.check_bounds(COUNT, epsilon=4, at="much")
    with pytest.raises(hb.QueryError, match="unknown table 'elsewhere'"):
        service.check_bounds("SELECT COUNT(*) FROM elsewhere", epsilon=4)


def test_a_share_of_the_answer_gives_back_what_it_did_not_use(service):
    before = service.remaining
    r = service.sql(UNITS, within="10 %", at_most=20)
    assert r.text.notes[0].startswith("stopped after step ")
    assert r.cost < 1
    assert before - service.remaining < 2


def test_too_few_units_are_told_as_a_session_tells_them(place):
    """Of somebody who has found no bound before: one that was found for all rows would be taken."""
    with hb.connect(place.url, token=place.token("ben")) as service:
        with pytest.raises(hb.QueryError, match=r"too few units to find a bound.*the rest came back"):
            service.sql("SELECT COUNT(*) AS n FROM v WHERE id < 2", epsilon=1, max_rows="auto")
