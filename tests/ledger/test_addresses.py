"""A policy names a database by its address or by a variable; what may be a password is shown and remembered nowhere."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import hubbub as hb
from hubbub.addresses import Address, kept_address, looks_like_connection, masked, read_address, shown_address
from hubbub.errors import PolicyError
from hubbub.ledger.difference import differences
from hubbub.ledger.policy import Policy, load_policy, read_policy
from hubbub.ledger.redact import without_passwords
from hubbub.ledger.store import Ledger
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
        (
            "env:HUBBUB_PG",
            f"host=db password={SECRET}",
            6,
            "allowed: a file that ends in .*, s3://BUCKET/KEY or spark:TABLE",
        ),
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
        ('file = "budget.db"', f'file = "host=db password={SECRET}"', 2, "allowed: a file"),
        ('file = "budget.db"', f'file = "b.db"\nkey_file = "mysql://ada:{SECRET}@db/x"', 3, "allowed: a file"),
        ("env:HUBBUB_PG", f"host=db password='my {SECRET}' dbname=x", 6, "allowed: a file that ends in"),
        (
            "env:HUBBUB_PG",
            f"postgresql:ada:{SECRET}@db/x.csv",
            6,
            r"found 'postgresql:\.\.\.@db/x.csv'; allowed: a file",
        ),
        ("trusted_view = true", f'"postgresql://ada:{SECRET}@db/x" = 1', 9, r"unknown key 'postgresql://\.\.\.@db/x'"),
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
    ("\"env:X\"  # host=db password='my {}' dbname=x", "env:X"),
    ('"env:X"  # PGPASSWORD="a {}" hubbub', "env:X"),
    ('"env:X"  # POSTGRES_PASSWORD: {}', "env:X"),
    ('"env:X"  # password=my\\ {} dbname=x', "env:X"),
    ('"env:X"  # ada:{}@db/x', "env:X"),
    ('"env:X"  # POSTGRESQL:ada:{}@db/x', "env:X"),
    ('"postgresql:ada:{}@db/x"', "postgresql://..."),
    ('"postgresql://ada:{}@db/x?host=/run&password={}&sslmode=require"', "postgresql://ada@db/x?host=/run"),
    ('"postgresql://db/x?passwrd={}&options=-cmy.password%3D{}"', "postgresql://db/x?options=..."),
]


@pytest.mark.parametrize(("written", "value"), WRITTEN)
def test_however_an_address_is_written_it_is_remembered_without_its_password(written: str, value: str) -> None:
    text = f"# its own\nx = {written.replace('{}', SECRET)}\ny = 'it''s' # z\n".replace("'it''s'", '"it\'s # \\" no"')
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


SAID = [
    ("postgresql:ada:{}@h/db", "postgresql:...@h/db"),
    ("ada:{}@h", "ada:...@h"),
    ("url=ada:{}@h", "url=ada:...@h"),
    ("postgresql://h/db?user=a:b@c&password=x@{}", "postgresql://...@..."),
    ("password='a:b@ {}'", "password=..."),
    ("{{'password': '{}'}}", "{'password': ..."),
    (r"password=\\'a\\' {}\\'", "password=..."),
    ("--password={} -h db", "--password=... -h db"),
]


@pytest.mark.parametrize(("text", "said"), SAID)
def test_a_login_needs_no_slash_and_a_password_may_stand_in_quotes(text: str, said: str) -> None:
    assert masked(text.format(SECRET)) == said


def test_what_holds_no_login_is_said_as_it_is() -> None:
    for text in ("see: mail ada@db.example", "the password is in ~/.pgpass", "found 'a@b'; allowed: a file", "12:30"):
        assert masked(text) == text


MEANT = [
    f"host=h user=ada password={SECRET} dbname=db",
    f"host=h password = 'x {SECRET}'",
    f"POSTGRESQL://ada:{SECRET}@h/db",
    f" postgresql://ada:{SECRET}@h/db",
    f"postgresql+psycopg://ada:{SECRET}@h/db",
    f"jdbc:postgresql://h/db?password={SECRET}",
    f"postgresql:/ada:{SECRET}@h/db",
    f"postgresql:ada:{SECRET}@h/db",
    f"mysql://ada:{SECRET}@h/db",
    f"ENV:{SECRET}",
]


@pytest.mark.parametrize("written", MEANT)
def test_what_looks_like_a_connection_is_refused_and_not_shown(written: str) -> None:
    frame = visits()
    for tables, ledger in (
        ({"t": hb.table(written, unit="id")}, None),
        ({"t": frame, "p": hb.public(written)}, None),
        ({"t": frame}, written),
    ):
        with pytest.raises(PolicyError, match="postgresql://user@host/database") as caught:
            hb.Session(tables, budget=hb.Budget(1), ledger=ledger)
        assert SECRET not in everything(caught.value)


def test_a_missing_file_is_still_named() -> None:
    for name in ("visits.csv", "C:/rows/visits.csv", "host=3/visits.parquet"):
        assert not looks_like_connection(name)
        with pytest.raises(PolicyError, match=f"there is no file '{re.escape(name)}'"):
            hb.Session({"t": hb.table(name, unit="id")}, budget=hb.Budget(1), ledger=None)


def everything(error: BaseException) -> str:
    """All that hangs on an error: its words, what it was raised from, and what was being handled then."""
    chain = [error.__cause__, error.__context__]
    return f"{error!r} {error} {vars(error)}" + "".join(everything(part) for part in chain if part is not None)


FAILING = [
    f"postgresql://ada:p@{SECRET}@127.0.0.1:1/db",
    f"postgresql://ada:100%zz{SECRET}@127.0.0.1:1/db",
    f"postgresql://ada:{SECRET}@127.0.0.1:1/db",
    f"postgresql://ada:{SECRET}@a..b/db",
    f"postgresql://ada:{SECRET}@{'a' * 70}/db",
    f"postgresql://ada:p\udcff{SECRET}@127.0.0.1:1/db",
]


@pytest.mark.parametrize("way", ["written", "in the environment"])
@pytest.mark.parametrize("url", FAILING)
def test_nothing_behind_a_refusal_holds_a_password(url: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg", reason="needs the extra `postgres`")
    monkeypatch.setenv("HUBBUB_PG", url)
    place = url if way == "written" else "env:HUBBUB_PG"

    def table() -> object:
        return hb.Session({"t": hb.table(place, unit="u", table="x")}, budget=hb.Budget(1), ledger=None)

    for attempt in (table, lambda: Ledger.open(place, budgets={"u": hb.Budget(1)}, create=True, patience=2)):
        with pytest.raises(PolicyError) as caught:
            attempt()
        assert SECRET not in everything(caught.value)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None


def test_no_way_to_open_a_declaration_finds_the_password() -> None:
    declared = hb.table(f"postgresql://ada:{SECRET}@db/x", unit="u", table="t")
    for opened in (dataclasses.asdict(declared), dataclasses.astuple(declared), vars(declared)):
        assert SECRET not in f"{opened} {opened!r}"
    assert declared.source.written.count(SECRET) == 1
    assert copy.deepcopy(declared.source) is copy.copy(declared.source) is declared.source
    assert not hasattr(declared.source, "__dict__")


def located(source: str, ledger: str, table: str = "visits") -> Policy:
    text = f'[ledger]\nurl = "{ledger}"\n[budget]\nepsilon = 3\n[tables.v]\nsource = "{source}"\n'
    return policy(f'{text}table = "{table}"\nunit = "id"\n')


def test_a_moved_ledger_or_table_is_told_by_all_that_says_where_it_is() -> None:
    old = located(f"postgresql://ada:{SECRET}@h/db?host=/a", f"postgresql://ada@/l?host=/a&password={SECRET}")
    new = located(f"postgresql://ada:{SECRET}@h/db?host=/b&options=-cx%3Dy", "postgresql://ada@/l?host=/b")
    for before in (old, policy(old.text)):
        ledger, table = differences(before, new)
        assert ledger.startswith(
            "The ledger moves from postgresql://ada@/l?host=/a to postgresql://ada@/l?host=/b. What was spent stays"
        )
        assert table == (
            "v: its source moved from postgresql://ada@h/db?host=/a to postgresql://ada@h/db?host=/b&options=-cx%3Dy."
        )
    changed_password = located("postgresql://ada:other@h/db?host=/a", "postgresql://ada@/l?host=/a&password=other")
    assert differences(old, changed_password) == []
    (said,) = differences(old, located("postgresql://ada@h/db?host=/a", "postgresql://ada@/l?host=/a", "beds"))
    assert said == "v: moved: read from the table beds of postgresql://ada@h/db, not from its table visits."


def test_an_address_that_cannot_be_taken_apart_may_have_moved() -> None:
    old, new = (located(f"postgresql://ada:p/{SECRET}@{h}/db", f"postgresql://ada:p/{SECRET}@{h}/l") for h in "ab")
    assert kept_address(f"postgresql://ada:p/{SECRET}@a/db") == "postgresql://..."
    assert differences(old, old) == []
    for before in (old, policy(old.text)):
        ledger, table = differences(before, new)
        assert ledger.startswith("The ledger may have moved")
        assert table.startswith("v: its source may have moved")
        assert SECRET not in ledger + table


def test_a_key_of_a_broken_policy_is_no_way_round() -> None:
    key = f'"postgresql://ada:{SECRET}@db/x"'
    with pytest.raises(PolicyError, match="not valid TOML") as caught:
        policy(f"[{key}]\n[{key}]\n")
    assert SECRET not in everything(caught.value)
    with pytest.raises(PolicyError) as caught:
        policy(changed("trusted_view = true", f"columns = {{ {key} = 1 }}"))
    assert SECRET not in everything(caught.value)
