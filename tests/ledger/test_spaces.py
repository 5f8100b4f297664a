"""People have one budget, however their unit space is spelled, and whichever session names it first."""

from __future__ import annotations

import os
import sqlite3
import unicodedata
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import hubbub as hb
from hubbub.cli.main import run
from hubbub.errors import BudgetError, PolicyError, QueryError
from hubbub.ledger import store
from hubbub.ledger.books import AccountState
from hubbub.ledger.budget import Budget
from hubbub.ledger.policy import read_policy
from hubbub.ledger.store import Charge, Ledger
from hubbub.session.sources import source_places
from hubbub.spelling import one_spelling, space_name
from ledger.helpers import SPACE, charge

ROWS = pa.table({"pid": list(range(50)), "other": list(range(50))})
SPELLINGS = ("pid", "PID", " pid ", "Pid", "ｐｉｄ", "p​id", "pid\N{SOFT HYPHEN}", "p\N{COMBINING GRAPHEME JOINER}id")


def table(source: object = ROWS, **more: object) -> hb.PrivateTable:
    return hb.table(source, unit=more.pop("unit", "pid"), max_groups=1, max_rows=1, **more)  # type: ignore[arg-type]


def session(path: object, tables: dict[str, hb.PrivateTable], **more: object) -> hb.Session:
    given: dict[str, object] = {"budget": Budget(1), "ledger": path, "analyst": "ada"} | more
    return hb.Session(tables, **given)  # type: ignore[arg-type]


def spend(path: Path, tables: dict[str, hb.PrivateTable], number: int, **more: object) -> None:
    """A whole budget, asked of the first table."""
    with session(path, tables, **more) as s:
        s.sql(f"SELECT COUNT(*) AS n FROM {next(iter(tables))} WHERE other > {number}", epsilon=1)


@pytest.mark.parametrize("second", SPELLINGS)
def test_another_spelling_is_no_second_budget(tmp_path, second):
    """Each of these was a new budget for the same people, and nobody was told."""
    spend(tmp_path / "b.db", {"t": table(unit_space="pid")}, 0)
    for tables in ({"t": second}, {"t2": second}):
        with pytest.raises((hb.BudgetError, PolicyError), match=r"budget is spent|cannot be seen"):
            spend(tmp_path / "b.db", {name: table(unit_space=space) for name, space in tables.items()}, 1)
    with Ledger.inspect(tmp_path / "b.db") as ledger:
        assert (ledger.balance.spaces(), ledger.balance.spent("pid")) == (["pid"], 1)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12))
def test_a_name_and_its_normal_form_are_one_budget(name):
    """Whatever is accepted at all is a fixed point, and every usual rewriting of it ends there."""
    try:
        found = space_name(name)
    except PolicyError:
        return
    assert space_name(found) == found
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert one_spelling(unicodedata.normalize(form, name)) == found
    assert one_spelling(f" {name}​\t") == found
    assert one_spelling(found.upper()) == one_spelling(found.upper().lower())


@pytest.mark.parametrize("name", ["pаtient", "pid\N{GREEK SMALL LETTER OMICRON}", "​", "a\x00b", "ㅤ", " "])
def test_a_name_that_only_looks_like_another_is_refused(name):
    """The second letter of the first is Cyrillic."""
    with pytest.raises(PolicyError, match=r"look alike|cannot be seen|names nothing"):
        table(unit_space=name)


def test_a_space_that_is_new_to_a_ledger_needs_a_word(tmp_path):
    with session(tmp_path / "b.db", {"t": table()}):
        pass
    for more in ({"unit": "other"}, {"unit": hb.EACH_ROW}):
        tables = {"u": hb.table(ROWS, max_groups=1, max_rows=1, **more)}
        with pytest.raises(PolicyError, match=r"is new to the ledger .*budgets for 'pid'.*new_unit_spaces=\['"):
            session(tmp_path / "b.db", tables)
    with session(tmp_path / "b.db", {"u": table(unit="other")}, new_unit_spaces=["Other"]) as s:
        assert s.ledger.balance.spaces() == ["other", "pid"]
    with session(tmp_path / "b.db", {"u": table(unit="other")}):
        pass  # known by now


def test_the_same_source_and_unit_in_two_spaces_is_refused(tmp_path):
    file = tmp_path / "t.parquet"
    pq.write_table(ROWS, file)
    (tmp_path / "link.parquet").symlink_to(file)
    link = str(tmp_path / "link.parquet")
    with pytest.raises(PolicyError, match="stands in two unit spaces"):
        session(None, {"a": table(file), "b": table(link, unit_space="others")})
    with session(tmp_path / "b.db", {"a": table(file)}):
        pass
    for again in (table(link, unit_space="others"), table(file, unit="PID", unit_space="others")):
        with pytest.raises(PolicyError, match=r"stands in the unit space 'pid' of this ledger.*second budget"):
            session(tmp_path / "b.db", {"c": again}, new_unit_spaces=["others"])
    with session(tmp_path / "b.db", {"c": table(file, unit="other")}, new_unit_spaces=["other"]) as s:
        assert s.ledger.record.verify().problems == ()


@pytest.mark.parametrize("ledger", [None, "b.db"])
def test_one_source_brings_two_new_budgets_by_a_word_alone(tmp_path, ledger):
    """Before, a second session needed a word for the other unit's budget, and one session took both without."""
    file, path = tmp_path / "t.parquet", None if ledger is None else tmp_path / ledger
    pq.write_table(ROWS, file)
    os.link(file, tmp_path / "again.parquet")
    for one, again in ((file, file), (file, tmp_path / "again.parquet"), (ROWS, ROWS)):
        both = {"a": table(one), "b": table(again, unit="other")}
        for more in ({}, {"new_unit_spaces": ["third"]}):
            with pytest.raises(PolicyError, match=r"'b'.* each would get a whole budget.*unit_space='pid'.*'other'\]"):
                session(path, both, **more)
    assert path is None or Ledger.inspect(path).balance.spaces() == []
    for shared in (table(one, unit="other", unit_space="pid"), table(ROWS.slice(0, 9), unit="other")):
        session(None, {"a": table(one), "b": shared}).close()  # one budget; other rows
    for said in (["pid"], ["other"]):
        session(None, both, new_unit_spaces=said).close()
    if path is not None:
        session(path, {"a": table(one)}).close()
        session(path, both, new_unit_spaces=["other"]).close()
        session(path, both).close()  # both are known by now


def test_a_policy_of_two_budgets_for_one_source_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pq.write_table(ROWS, tmp_path / "t.parquet")
    text = '[ledger]\nfile = "b.db"\n[budget]\nepsilon = 1\n'
    for name, unit in (("a", "pid"), ("b", "other")):
        text += f'[tables.{name}]\nsource = "t.parquet"\nunit = "{unit}"\nmax_groups = 1\nmax_rows = 1\n'
    (tmp_path / "hubbub.toml").write_text(text)
    assert run(("ledger", "create")) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "holds budgets for 'other', 'pid'. Be sure that they are about other people" in said


@pytest.mark.parametrize("first", [hb.EACH_ROW, "pid"])
def test_a_source_whose_people_have_a_budget_gets_none_row_by_row(tmp_path, first):
    """Before, the same rows were asked about as people and as rows, each with a full budget."""
    file = tmp_path / "t.parquet"
    pq.write_table(ROWS, file)
    one, other = (table(file, unit=unit) for unit in sorted((hb.EACH_ROW, "pid"), key=lambda unit: unit != first))
    with pytest.raises(PolicyError, match="stands in two unit spaces"):
        session(None, {"a": one, "b": other})
    path = tmp_path / "b.db"
    with session(path, {"a": one}):
        pass
    with pytest.raises(PolicyError, match=r"stands in the unit space .* of this ledger.*second budget"):
        session(path, {"a": other}, new_unit_spaces=[other.space])
    shared = replace(other, unit_space=one.space)
    if first == "pid":
        with pytest.raises(PolicyError, match=r"would hold for single rows alone: declare unit='pid'"):
            session(path, {"a": shared})
    else:  # its budget is a promise to rows, whoever asks in people
        with session(path, {"a": shared}) as s:
            assert s.ledger.record.verify().problems == ()


def test_a_source_is_the_same_by_every_name_of_it(tmp_path):
    """A frame under two names, and a file with two (hard) links, each had two budgets."""
    file = tmp_path / "t.parquet"
    pq.write_table(ROWS, file)
    os.link(file, tmp_path / "again.parquet")
    for one, again in ((ROWS, ROWS), (file, tmp_path / "again.parquet")):
        with pytest.raises(PolicyError, match="stands in two unit spaces"):
            session(None, {"a": table(one), "b": table(again, unit_space="others")})
        session(None, {"a": table(one), "b": table(again)}).close()


@pytest.mark.parametrize("again", ["postgresql://bob@localhost/clinic", "postgresql://127.0.0.1:5432/clinic",
                                   "postgresql://LocalHost:5432/clinic", "postgresql://[::1]/clinic"])  # fmt: skip
def test_an_address_has_one_spelling(again):
    """Before, one database had as many budgets as its address has spellings."""
    tables = {"a": table("postgresql://ada@localhost/clinic", table="visits"),
              "b": table(again, table="visits", unit_space="others")}  # fmt: skip
    with pytest.raises(PolicyError, match="stands in two unit spaces"):
        source_places(tables)
    source_places(tables | {"b": table(again.replace("clinic", "other"), table="visits", unit_space="others")})
    source_places(tables | {"b": table("postgresql://localhost:5433/clinic", table="visits", unit_space="others")})


@pytest.mark.parametrize("name", ["t​", "cafe\N{COMBINING ACUTE ACCENT}", "t\N{CYRILLIC SMALL LETTER A}"])
def test_a_table_has_one_spelling(name):
    with pytest.raises(PolicyError, match=r"another spelling|cannot be seen|look alike"):
        session(None, {name: table()})
    text = f'[ledger]\nfile = "b.db"\n[budget]\nepsilon = 1\n[tables."{name}"]\nsource = "t.csv"\nunit = "p"\n'
    with pytest.raises(PolicyError, match=r":5: .*(another spelling|cannot be seen|look alike)"):
        read_policy(text, Path("/hubbub.toml"))


def old_ledger(path: Path | str, *spaces: str) -> None:
    """A ledger that took every spelling for a space of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "space_name", lambda name: name)
        patch.setattr(store, "recorded_space", lambda *_: None)
        with Ledger.open(path, budgets={space: Budget(1) for space in spaces}) as ledger:
            for space in spaces:
                charge(ledger, "0.25", space=space, details='{"neighbours": "add_remove"}')


def test_an_old_ledgers_own_spelling_stays_its_budget(tmp_path):
    old_ledger(tmp_path / "b.db", "Patients")
    for spelling in ("Patients", "patients ", "PATIENTS"):
        with session(tmp_path / "b.db", {"t": table(unit_space=spelling)}) as s:
            assert s.remaining == Fraction(3, 4)
            assert s.check("SELECT COUNT(*) AS n FROM t", epsilon=1).fits is False
    with session(tmp_path / "b.db", {"t": table(unit_space="patients")}) as s:
        s.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.75")
        assert (s.ledger.balance.spaces(), s.remaining, s.ledger.record.verify().problems) == (["Patients"], 0, ())


def test_of_an_old_ledgers_two_spellings_a_steward_ends_one(tmp_path):
    old_ledger(tmp_path / "b.db", "PID", "pid")
    tables = {"t": table()}
    with pytest.raises(PolicyError, match=r"several budgets for one unit space, by its spellings 'PID', 'pid'"):
        session(tmp_path / "b.db", tables)
    with Ledger.manage(tmp_path / "b.db") as ledger:
        ledger.steward.revoke("pid", "everyone", author="steward")
    with session(tmp_path / "b.db", tables) as s:
        # Before, what the ended one had spent was forgotten: they are the same people.
        assert s.remaining == Fraction(1, 2)
        with pytest.raises(BudgetError, match=r"0\.5 of 1 is left"):
            s.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.51")
        s.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.5")
        assert s.remaining == 0
        assert (s.ledger.balance.spent("PID"), s.ledger.balance.spent("pid")) == (Fraction(3, 4), Fraction(1, 4))
        assert s.ledger.record.verify().problems == ()


def test_verifying_finds_what_was_overspent_under_two_spellings_together(tmp_path):
    """Each is within its own budget, and they are one people."""
    for number, spaces in enumerate([("PID", "pid"), ("PID", "pid", " Pid", "PiD", "pId")]):
        with pytest.MonkeyPatch.context() as patch:  # a quarter of 1 under each, of which none knew the others
            patch.setattr(AccountState, "spellings", lambda _, space: [space])
            old_ledger(tmp_path / f"{number}.db", *spaces)
        with Ledger.manage(tmp_path / f"{number}.db") as ledger:
            problems = ledger.record.verify().problems
        assert len(problems) == (0 if number == 0 else len(spaces))
        assert all("overspent with what was spent under its other spellings" in said for said in problems)


def test_two_spellings_in_postgres_count_together_from_version_3_on(database):
    import psycopg

    address = database()
    old_ledger(address, "PID", "pid")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE hubbub.joint_clearance")
        connection.execute("DROP TABLE hubbub.source")
        connection.execute("ALTER TABLE hubbub.charge DROP COLUMN purpose")
        connection.execute("DROP TABLE hubbub.anchoring, hubbub.schedule, hubbub.silence, hubbub.pending")
        connection.execute("DROP TABLE hubbub.rekeying, hubbub.redaction, hubbub.restoring, hubbub.training")
        connection.execute("CREATE TABLE kept AS SELECT * FROM hubbub.wording")  # its lines held their words then
        connection.execute("DROP TABLE hubbub.wording")
        connection.execute("UPDATE hubbub.version SET number = 3")
    with pytest.raises(PolicyError, match="several budgets for one unit space"):
        session(address, {"t": table()})
    with Ledger.manage(address) as ledger:
        ledger.steward.revoke("PID", "everyone", author="steward")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("INSERT INTO hubbub.wording SELECT * FROM kept")
    with session(address, {"t": table()}) as s:
        assert s.remaining == Fraction(1, 2)
        with pytest.raises(BudgetError, match=r"0\.5 of 1 is left"):
            s.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.51")
        s.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.5")
        assert s.ledger.record.verify().problems == ()


def test_a_space_whose_name_is_no_text_is_damage(tmp_path):
    Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1)}).close()
    with sqlite3.connect(tmp_path / "b.db") as connection:
        (rule,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'unit_space_no_update'").fetchone()
        connection.execute("DROP TRIGGER unit_space_no_update")
        connection.execute("UPDATE unit_space SET name = x'00ff'")
        connection.execute(rule)
    with pytest.raises(PolicyError, match="unit spaces are damaged"):
        Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1)})


def test_nobody_is_called_every_analyst():
    with Ledger.in_memory({SPACE: Budget(1)}) as ledger, pytest.raises(QueryError, match="is not an analyst"):
        charge(ledger, "0.1", analyst="*")
    text = '[ledger]\nfile = "b.db"\n[budget]\nepsilon = 1\n[budget.analysts]\n"*" = 0.9\n'
    text += '[tables.t]\nsource = "t.csv"\nunit = "p"\n'
    with pytest.raises(PolicyError, match=r":6: .*is not an analyst.*per_analyst"):
        read_policy(text, Path("/hubbub.toml"))


@pytest.mark.parametrize("again", ["ada", " ADA", "\uff21da", "A\u200bda"])
def test_an_analyst_is_held_to_a_limit_by_every_spelling_of_the_name(tmp_path, again):
    """Before, the limit, and a steward's revocation, were of one spelling alone."""
    path = tmp_path / "b.db"
    with session(path, {"a": table(ROWS)}, analyst="Ada") as s:
        s._ledger.steward.grant(
            space="pid", account="analyst:Ada", epsilon=Fraction(1, 2), reason="a limit", author="s"
        )
        s.sql("SELECT COUNT(*) FROM a", epsilon=Fraction(1, 4))
    for name in ("bob", "Ada"):  # nobody else is meant
        with session(path, {"a": table(ROWS)}, analyst=name) as s:
            s.sql("SELECT COUNT(*) + 1 FROM a", epsilon=Fraction(1, 8))
    with Ledger.open(tmp_path / "blocks.db", budgets={"pid": Budget(1)}) as ledger:
        asked = Charge(
            space="pid", analyst=again, epsilon=Fraction(1, 8), dataset="a", question_key="k", sql="a question"
        )
        block = ledger.charges.reserve(space="pid", analyst=again, epsilon=Fraction(1, 4))
        ledger.steward.revoke(space="pid", account="analyst:Ada", reason="gone", author="s")
        with pytest.raises(PolicyError, match="has a limit for 'analyst:Ada'"):
            ledger.charges.charge(replace(asked, block=block))
    with session(path, {"a": table(ROWS)}, analyst=again) as s:
        with pytest.raises(PolicyError, match="has a limit for 'analyst:Ada'"):
            s.sql("SELECT COUNT(*) + 2 FROM a", epsilon=Fraction(1, 8))
        s._ledger.steward.revoke(space="pid", account="analyst:Ada", reason="gone", author="s")
        with pytest.raises(PolicyError, match="has a limit for 'analyst:Ada'"):
            s.sql("SELECT COUNT(*) + 3 FROM a", epsilon=Fraction(1, 8))
        s._ledger.steward.grant(space="pid", account=f"analyst:{again}", epsilon=1, reason="another", author="s")
        s.sql("SELECT COUNT(*) + 4 FROM a", epsilon=Fraction(1, 8))
        assert s.ledger.record.verify().problems == ()


def test_a_ledger_of_its_own_makes_no_space_by_a_second_spelling(tmp_path):
    with Ledger.open(tmp_path / "b.db", budgets={SPACE: Budget(1)}) as ledger:
        charge(ledger, 1)
    with Ledger.open(tmp_path / "b.db", budgets={"Patient_ID": Budget(1)}, new_spaces=["Patient_ID"]) as ledger:
        assert ledger.spelling == {"Patient_ID": SPACE}
        assert ledger.balance.spaces() == [SPACE]
    with pytest.raises(PolicyError, match="is written 'household'"):
        Ledger.open(tmp_path / "b.db", budgets={"Household": Budget(1)}, new_spaces=["Household"])
    assert sqlite3.connect(tmp_path / "b.db").execute("SELECT count(*) FROM unit_space").fetchone() == (1,)


def refused_and_nothing_added(path: Path, tables: dict[str, hb.PrivateTable], match: str) -> None:
    with Ledger.inspect(path) as ledger:
        before = ledger.balance.spaces()
    with pytest.raises(PolicyError, match=match):
        session(path, tables, new_unit_spaces=["more"])
    with Ledger.inspect(path) as ledger:
        assert ledger.balance.spaces() == before


def test_a_session_refused_for_its_source_leaves_no_budget_behind(tmp_path):
    """The space stood in the ledger then: another session found it there, and needed no new_unit_spaces."""
    file = tmp_path / "people.parquet"
    pq.write_table(ROWS, file)
    spend(tmp_path / "b.db", {"t": table(file)}, 0)
    refused_and_nothing_added(tmp_path / "b.db", {"t": table(file, unit_space="more")}, "second budget")


def test_nor_does_one_refused_for_its_relation(tmp_path):
    spend(tmp_path / "b.db", {"t": table()}, 0)
    more = table(pa.table({"pid": [1], "other": [1]}), unit_space="more", neighbours="replace")
    refused_and_nothing_added(tmp_path / "b.db", {"t": table(neighbours="replace"), "m": more}, "two relations")
