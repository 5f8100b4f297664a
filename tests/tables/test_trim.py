"""`trim`: blanks around texts are cut off before anything looks at them, and never around who is protected."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.session.open import private_of
from hubbub.tables.columns import BLANKS, trimmed
from hubbub.tables.declare import PrivateTable
from people import HUGE, session

WARDS = [" A", "A ", "A", "\u00a0A\u3000", "B", " B C ", "\tA", "  ", "", None]


def visits(**changes: Any) -> PrivateTable:
    frame = pa.table({"id": range(len(WARDS)), "ward": WARDS, "n": [1] * len(WARDS)})
    what = changes.pop("ward", hb.one_of("A", "B", "B C", "", None, trim=True))
    return hb.table(frame, unit="id", max_groups=1, max_rows=1, columns={"ward": what, **changes})


def counts(s: hb.Session, sql: str, **given: Any) -> dict[Any, Any]:
    return dict(s.sql(sql, epsilon=HUGE, **given).rows())


def test_groups_conditions_and_functions_see_the_text_without_its_blanks() -> None:
    by_ward = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
    with session(visits=visits()) as s:
        assert counts(s, by_ward) == {"A": 4, "B": 1, "B C": 1, "": 2, None: 1}
        for where, n in (("ward = 'A'", 4), ("ward IN ('B C')", 1), ("ward LIKE 'A%'", 4), ("LENGTH(ward) = 1", 5)):
            assert s.sql(f"SELECT COUNT(*) FROM visits WHERE {where}", epsilon=HUGE).rows() == [(n,)]
        inner = "SELECT w, COUNT(*) FROM (SELECT id, MIN(ward) AS w FROM visits GROUP BY id) GROUP BY w"
        assert counts(s, inner, keys={"w": ["A", "\tA"]}) == {"A": 4, "\tA": 1}  # a tab is not a blank
    with session(visits=visits(ward=hb.one_of("A", "B", "B C", "", None))) as s:
        assert counts(s, by_ward) == {"A": 1, "B": 1, "B C": 0, "": 1, None: 1}


def test_a_column_of_text_without_declared_values_is_trimmed_too() -> None:
    with session(visits=visits(ward=hb.text(trim=True))) as s:
        keys = {"ward": ["A", " A"]}
        assert counts(s, "SELECT ward, COUNT(*) FROM visits GROUP BY ward", keys=keys) == {"A": 4, " A": 0}
        with pytest.raises(hb.PolicyError, match=r"it is declared as text\(trim=True\)"):
            s.check("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=1)


def test_every_blank_is_cut_off_and_nothing_else() -> None:
    others = ["\t", "\n", "\r", "\v", "\u200b", "\ufeff", "\u180e"]
    frame = pa.table({"id": range(len(BLANKS + "".join(others))), "w": [f"{b}A{b}" for b in [*BLANKS, *others]]})
    table = hb.table(frame, unit="id", max_groups=1, max_rows=1, columns={"w": hb.one_of("A", trim=True)})
    with session(t=table) as s:
        assert counts(s, "SELECT w, COUNT(*) FROM t GROUP BY w") == {"A": len(BLANKS)}


def test_another_trim_is_another_question() -> None:
    """Else the answer about untrimmed texts would be handed out for trimmed ones, deep inside a sub-query too."""
    sql = "SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS c FROM visits WHERE ward LIKE 'A%' GROUP BY id) WHERE c > 0"
    keys = []
    for what in (hb.text(), hb.text(trim=True)):
        with session(visits=visits(ward=what)) as s:
            assert s.sql(sql, epsilon=HUGE).rows() == [(4 if trimmed(what) else 2,)]
            keys.append(s.history()[0].question_key)
    assert keys[0] != keys[1]


def test_synthetic_tables_are_made_of_trimmed_texts() -> None:
    frame = pa.table({"id": range(400), "ward": [" A", "B "] * 200})
    table = hb.table(frame, unit="id", max_groups=1, max_rows=1, columns={"ward": hb.one_of("A", "B", trim=True)})
    with hb.Session({"t": table}, budget=hb.Budget(50, "1e-6"), ledger=None) as s:
        made = s.synthesize("t", epsilon=20, rows=400)
    assert 150 < made.to_dict()["ward"].count("A") < 250


@pytest.mark.parametrize("declared", [hb.one_of("a", trim=True), hb.text(trim=True)])
def test_who_is_protected_is_never_trimmed(declared: Any) -> None:
    """Two people whose names differ in blanks would share one budget and one bound."""
    frame = pa.table({"id": ["a", " a"], "key": ["k", " k"]})
    with pytest.raises(hb.PolicyError, match="two people whose names differ in blanks"):
        hb.table(frame, unit="ID", columns={"id": declared})
    with pytest.raises(hb.PolicyError, match="two people"):
        hb.table(frame, unit="owners.id", through="key", columns={"key": declared})
    with pytest.raises(hb.PolicyError, match="two people"):
        hb.table(frame, unit="owners.id", through={"key": "k2"}, columns={"key": declared})
    owners = hb.table(frame, unit="id", columns={"key": declared})
    items = hb.table(frame, unit="owners.id", through="key")
    with pytest.raises(hb.PolicyError, match=r"finds its units by owners\.key"):
        hb.Session({"owners": owners, "items": items}, budget=hb.Budget(1), ledger=None)
    with session(t=hb.table(frame, unit="id", max_groups=1, max_rows=1, columns={"key": declared})) as s:
        assert s.sql("SELECT COUNT(DISTINCT id) FROM t", epsilon=HUGE).rows() == [(2,)]


def test_what_cannot_be_trimmed_is_refused() -> None:
    for wrong, says in (
        (lambda: hb.one_of(1, 2, trim=True), "is for texts"),
        (lambda: hb.one_of("A ", trim=True), "write 'A'"),
        (lambda: hb.one_of("A", trim="yes"), "expected True or False"),  # type: ignore[arg-type]
        (lambda: hb.text(trim=1), "expected True or False"),  # type: ignore[arg-type]
    ):
        with pytest.raises(hb.PolicyError, match=says):
            wrong()
    for what in (hb.text(), hb.one_of(None, trim=True)):
        with pytest.raises(hb.PolicyError, match="which have no blanks around them"), session(visits=visits(n=what)):
            pass


def test_a_policy_file_says_trim(tmp_path) -> None:
    from hubbub.ledger.policy import load_policy

    text = (
        '[ledger]\nfile = "l.db"\n[budget]\nepsilon = 1\n[tables.t]\nsource = "t.csv"\nunit = "id"\n[tables.t.types]\n'
        'id = "integer"\nward = "text"\nfree = "text"\n[tables.t.columns]\n'
        'ward = { one_of = ["A"], trim = true }\nfree = { trim = true }\n'
    )
    (tmp_path / "hubbub.toml").write_text(text)
    declared = private_of(load_policy(tmp_path / "hubbub.toml").tables["t"])
    assert declared.columns == {"ward": hb.one_of("A", trim=True), "free": hb.text(trim=True)}
    for wrong, says in (("trim = 1 }", "trim is 1; allowed: true or false"), ("}", "declare between")):
        (tmp_path / "hubbub.toml").write_text(text.replace("free = { trim = true }", f"free = {{ {wrong}"))
        with pytest.raises(hb.PolicyError, match=says):
            load_policy(tmp_path / "hubbub.toml")
