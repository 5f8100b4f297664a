"""A policy names a database by its address or by a variable; what may be a password is shown and remembered nowhere."""

from __future__ import annotations

import pickle
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import hubbub as hb
from hubbub.addresses import Address, masked, read_address, shown_address
from hubbub.errors import PolicyError
from hubbub.ledger.difference import differences
from hubbub.ledger.policy import Policy, load_policy, read_policy
from hubbub.ledger.redact import without_passwords
from people import visits

SECRET = "tell-nobody-5"
GOOD = """\
[ledger]
file = "budget.db"
[budget]
epsilon = 3
[tables.visits]
source = "env:HUBBUB_PG"
table = "public.visits"
unit = "patient_id"
trusted_view = true
[tables.beds]
source = "spark:hospital.beds"
unit = "patient_id"
[public.wards]
source = "wards.csv"
"""


def policy(text: str) -> Policy:
    return read_policy(text, Path("/nowhere/hubbub.toml"))


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_a_policy_names_tables_that_are_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HUBBUB_PG", raising=False)  # to read a policy needs no variable
    found = policy(GOOD)
    visits, beds = found.tables["visits"], found.tables["beds"]
    assert (visits.source, visits.table, visits.trusted_view) == (Address.of("env:HUBBUB_PG"), "public.visits", True)
    assert (str(beds.source), beds.table, beds.trusted_view) == ("spark:hospital.beds", None, False)
    assert [name for name, _ in found.files()] == ["wards"]
    assert [table.name for table in found.remote()] == ["visits", "beds"]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('table = "public.visits"', "", 6, 'a database needs table = "SCHEMA.NAME" beside it'),
        ("env:HUBBUB_PG", "env:HUBBUB PG", 6, "allowed: env:NAME, of letters, digits and underscores"),
        ("env:HUBBUB_PG", f"postgre://ada:{SECRET}@db/x", 6, r"found 'postgre://\.\.\.@db/x'; allowed: a file"),
        ("env:HUBBUB_PG", f"host=db password={SECRET}", 6, "allowed: a file that ends in .*, env:NAME or spark:TABLE"),
        ("env:HUBBUB_PG", "spark:visits", 6, "write the table after the colon"),
        ('"spark:hospital.beds"', '"spark: "', 11, "write the table after the colon"),
        ("trusted_view = true", "trusted_view = 1", 9, "found 1; allowed: true or false"),
        (
            'source = "spark:hospital.beds"',
            'source = "b.csv"\ntrusted_view = true',
            12,
            "a file of rows holds no views: leave `trusted_view` out",
        ),
        ('"wards.csv"', f'"postgresql://ada:{SECRET}@db/x"', 14, "a public table is a file"),
        ('"wards.csv"', '"spark:wards"', 14, "a public table is a file"),
        ('file = "budget.db"', f'url = "mysql://ada:{SECRET}@db/x"', 2, "begins with postgresql://, or env:NAME"),
        ('file = "budget.db"', 'url = "env:"', 2, "allowed: env:NAME"),
        ("[public.wards]", f"[public]\nwards = 'postgresql://ada:{SECRET}@db/x'\n[public.more]", 14, r"://\.\.\.@db/x"),
    ],
)
def test_what_is_wrong_is_shown_with_its_line_and_without_a_password(
    old: str, new: str, line: int, message: str
) -> None:
    with pytest.raises(PolicyError) as error:
        policy(changed(old, new))
    assert str(error.value).startswith(f"/nowhere/hubbub.toml:{line}: "), str(error.value)
    assert re.search(message, str(error.value)), str(error.value)
    assert SECRET not in str(error.value)


def test_a_password_is_in_no_text_of_a_policy() -> None:
    url = f"postgresql://ada:{SECRET}@db.example/clinic?password={SECRET}"
    text = changed("env:HUBBUB_PG", url).replace('file = "budget.db"', f'url = "{url}"')
    found = policy(text)
    assert found.ledger == url
    source = found.tables["visits"].source
    assert isinstance(source, Address)
    assert source.written == url
    moved = policy(GOOD.replace('file = "budget.db"', 'url = "env:BOOKS"'))
    for shown in (found, found.text, found.tables, source, *differences(found, moved), *differences(moved, found)):
        assert SECRET not in f"{shown!r} {shown}"
    assert differences(found, policy(found.text)) == []
    with pytest.raises(TypeError, match="password"):
        pickle.dumps(source)


def test_what_a_steward_vouches_for_is_said_when_it_changes() -> None:
    (said,) = differences(policy(changed("trusted_view = true\n", "")), policy(GOOD))
    assert said.startswith("visits: trusted_view is true now: a view is accepted")
    (said,) = differences(policy(GOOD), policy(changed("trusted_view = true\n", "")))
    assert said == "visits: trusted_view is false now: the source has to be a base table."


WRITTEN = [
    ('"postgresql://ada:{}@db/x"', "postgresql://ada@db/x"),
    ("'postgres://ada:{}@db/x'", "postgresql://ada@db/x"),
    ('"postgresql://ada:{}/?#@db/x"', "postgresql://..."),
    ('"postgresql://ada:1{}?2@db/x"', "postgresql://..."),
    ('"postgresql://ada:a\\"{}@db/x"', "postgresql://..."),
    ('"\\u0070ostgresql://ada:{}@db/x"', "postgresql://ada@db/x"),
    ('"""postgresql://ada:{}@db/x"""', "postgresql://ada@db/x"),
    ("'''postgresql://ada:{}@db/x'''", "postgresql://ada@db/x"),
    ('"""\npostgresql://db/x?password={}"""', "postgresql://db/x"),
    ('"env:X"  # was "postgresql://ada:{}@db/x"', "env:X"),
    ('"env:X"  # password = {}', "env:X"),
]


@pytest.mark.parametrize(("written", "value"), WRITTEN)
def test_however_an_address_is_written_it_is_remembered_without_its_password(written: str, value: str) -> None:
    text = f"# its own\nx = {written.format(SECRET)}\ny = 'it''s' # z\n".replace("'it''s'", '"it\'s # \\" no"')
    found = without_passwords(text)
    assert SECRET not in found
    assert tomllib.loads(found) == {"x": value, "y": "it's # \" no"}
    assert found.startswith("# its own\nx = ")


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"))), st.sampled_from(["@h/d", "/@h", "?a@h"]))
def test_no_password_is_shown_whatever_characters_it_has(middle: str, end: str) -> None:
    secret = f"hush{middle}hush"
    assert "hush" not in shown_address(f"postgresql://ada:{secret}{end}")
    assert "hush" not in masked(f"found 'postgre://ada:{secret}@h/d'")


def test_a_policy_without_addresses_is_remembered_letter_by_letter(tmp_path: Path) -> None:
    text = GOOD + "# a comment: 'quoted\n"
    (tmp_path / "hubbub.toml").write_text(text)
    assert load_policy(tmp_path / "hubbub.toml").text == text


def test_a_variable_holds_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_PG", f" postgresql://ada:{SECRET}@db/x\n")
    assert read_address("env:HUBBUB_PG") == f"postgresql://ada:{SECRET}@db/x"
    declared = hb.table("env:HUBBUB_PG", table="public.visits", unit="id")
    assert str(declared.source) == "postgresql://ada@db/x"
    monkeypatch.setenv("HUBBUB_PG", SECRET)
    for name, says in (("env:HUBBUB_PG", "holds no Postgres address"), ("env:a b", "names no variable")):
        with pytest.raises(PolicyError, match=says) as error:
            hb.table(name, table="public.visits", unit="id")
        assert SECRET not in str(error.value)
    monkeypatch.delenv("HUBBUB_PG")
    for place in (lambda: hb.table("env:HUBBUB_PG", unit="id"), lambda: hb.public("env:HUBBUB_PG")):
        with pytest.raises(PolicyError, match=r"HUBBUB_PG of the environment is not set.*Nothing was charged"):
            place()


def test_public_rows_are_in_files() -> None:
    tables = {"v": visits(), "w": hb.public("postgresql://db/x", table="w")}
    with pytest.raises(PolicyError, match="table 'w': postgresql://db/x holds private tables alone"):
        hb.Session(tables, budget=hb.Budget(1), ledger=None)
