"""A policy whose tables are in Postgres or Spark: every command that reads it works, and none shows a password."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.conftest import spark
from engines.places import Postgres
from hubbub.cli.main import run
from ledger.conftest import postgres_server
from people import HUGE, visits

__all__ = ["postgres_server", "spark"]

ROWS = visits().source
SECRET = "tell-nobody-9"
COUNT = "SELECT ward, COUNT(*) AS c FROM visits GROUP BY ward"
POLICY = """\
[ledger]
file = "budget.db"
[budget]
epsilon = {epsilon}
[tables.visits]
source = "{source}"  # a steward once wrote postgresql://ada:tell-nobody-9@db/x here
{table}
unit = "id"
max_groups = 3
max_rows = 3
[tables.visits.columns]
ward = {{ one_of = ["A", "B"] }}
n = {{ between = [0, 9] }}
"""
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def place(postgres_server: str) -> Iterator[Postgres]:
    found = Postgres(postgres_server, {"visits": visits()}, {"visits": ROWS})
    yield found
    found.close()


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Call:
    """Run a command where `hubbub.toml` is: its code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def given(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return given


def declare(source: str, table: str = 'table = "visits"') -> None:
    Path("hubbub.toml").write_text(POLICY.format(epsilon=4 * HUGE, source=source, table=table))


def true_counts() -> dict[str, int]:
    return {ward: ROWS["ward"].to_pylist().count(ward) for ward in ("A", "B")}


def answered(out: str) -> dict[str, int]:
    return {row["ward"]: round(row["c"]) for row in json.loads(out)["rows"]}


@pytest.mark.parametrize("how", ["in the environment", "in the file"])
def test_every_command_works_on_a_table_of_postgres_and_none_shows_its_password(
    place: Postgres, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    url = place.url.replace("reader@", f"reader:{SECRET}@") + f"&password={SECRET}"
    monkeypatch.setenv("HUBBUB_PG", url)
    declare("env:HUBBUB_PG" if how == "in the environment" else url)
    query = ("query", COUNT, "--epsilon", str(HUGE), "--yes", "--format", "json")
    commands: list[tuple[str, ...]] = [
        ("policy", "check"),
        ("ledger", "create"),
        ("policy", "check"),
        ("doctor",),
        ("check", COUNT, "--epsilon", "1"),
        ("check", COUNT, "--epsilon", "1", "--format", "json"),
        query,
        ("shell", "--epsilon", "1", "--yes"),
        ("budget",),
        ("history", "--format", "json"),
        ("report",),
        ("ledger", "verify"),
        ("ledger", "export"),
    ]
    shown = ""
    for words in commands:
        monkeypatch.setattr("sys.stdin", io.StringIO(".tables\nSELECT COUNT(*) AS c FROM visits;\n"))
        code, out, err = call(*words)
        assert code == 0, (words, err)
        shown += out + err
        if words == query:
            assert answered(out) == true_counts()
            found = json.loads(out)
            receipt = call("receipt", found["charge"])
            assert receipt[0] == 0
            diff = call("policy", "diff", found["receipt"]["policy"][:12])
            assert "Nothing changed" in diff[2]
            shown += str(receipt) + str(diff)
    Path("hubbub.toml").unlink()
    assert SECRET not in shown
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_variable_that_is_not_set_is_said_before_anything(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HUBBUB_PG", raising=False)
    declare("env:HUBBUB_PG")
    for words in (("ledger", "create"), ("check", COUNT, "--epsilon", "1"), ("policy", "check")):
        code, _, err = call(*words)
        assert code == 3
        assert "table 'visits': the variable HUBBUB_PG of the environment is not set" in err.replace("\n", " ")
    assert not (tmp_path / "budget.db").exists()
    assert call("doctor")[0] == 3
    monkeypatch.setenv("HUBBUB_PG", f"host=db password={SECRET}")
    code, _, err = call("ledger", "create")
    assert code == 3
    assert "holds no Postgres address" in err
    assert SECRET not in err


def test_a_server_that_is_not_there_is_said_without_the_password(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_PG", f"postgresql://ada:{SECRET}@127.0.0.1:1/none")
    declare("env:HUBBUB_PG")
    for words in (("doctor",), ("policy", "check"), ("ledger", "create")):
        code, out, err = call(*words)
        assert code == 3
        assert "postgresql://ada@127.0.0.1:1/none cannot be read" in (out + err).replace("\n", " ")
        assert SECRET not in out + err


@pytest.mark.parametrize(
    "ledger",
    [
        f'file = "host=h password={SECRET} dbname=db"',
        f'''file = "host=h password='my {SECRET}' dbname=db"''',
        f'file = "budget.db"\nkey_file = "mysql://ada:{SECRET}@db/x"',
        f'file = "budget.db"\n"postgresql://ada:{SECRET}@db/x" = 1',
        'url = "env:HUBBUB_LEDGER"',
    ],
)
def test_no_command_shows_a_password_that_stands_where_none_belongs(
    call: Call, monkeypatch: pytest.MonkeyPatch, ledger: str
) -> None:
    monkeypatch.setenv("HUBBUB_LEDGER", f"postgresql://ada:p@{SECRET}@127.0.0.1:1/none")
    monkeypatch.setenv("HUBBUB_PG", f"postgresql://ada:{SECRET}@a..b/none")
    declare("env:HUBBUB_PG")
    policy = Path("hubbub.toml")
    policy.write_text(policy.read_text().replace('file = "budget.db"', ledger))
    for words in (("doctor",), ("policy", "check"), ("ledger", "create"), ("check", COUNT, "--epsilon", "1")):
        code, out, err = call(*words)
        assert code == 3, (words, out, err)
        assert SECRET not in out + err
        assert "Traceback" not in out + err


def test_policy_diff_tells_a_table_that_moved_behind_its_address(call: Call) -> None:
    declare(f"postgresql://ada:{SECRET}@/db?host=/a", 'table = "visits"')
    Path("hubbub.toml").rename("old.toml")
    declare(f"postgresql://ada:{SECRET}@/db?host=/b", 'table = "visits"')
    code, out, err = call("policy", "diff", "old.toml")
    assert code == 0
    assert "source moved from postgresql://ada@/db?host=/a to postgresql://ada@/db?host=/b." in out.replace("\n", " ")
    assert SECRET not in out + err


def test_the_ledger_s_address_may_be_in_the_environment(
    place: Postgres, postgres_server: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    with psycopg.connect(f"postgresql://hubbub@/postgres?host={postgres_server}", autocommit=True) as con:
        con.execute("CREATE DATABASE books")
    monkeypatch.setenv("HUBBUB_LEDGER", f"postgresql://hubbub:{SECRET}@/books?host={postgres_server}")
    monkeypatch.setenv("HUBBUB_PG", place.url)
    declare("env:HUBBUB_PG")
    policy = Path("hubbub.toml")
    policy.write_text(policy.read_text().replace('file = "budget.db"', 'url = "env:HUBBUB_LEDGER"'))
    code, _, err = call("policy", "check")
    assert (code, "is sound. Its ledger is not there yet: hubbub ledger create" in err) == (0, True), err
    assert call("ledger", "create")[0] == 0
    code, _, err = call("policy", "check")
    assert (code, "is sound, and its ledger agrees" in err) == (0, True), err
    code, out, _ = call("query", COUNT, "--epsilon", str(HUGE), "--yes", "--format", "json")
    assert (code, answered(out)) == (0, true_counts())
    code, out, err = call("doctor")
    assert code == 0
    assert "postgresql:///books is whole" in out
    assert SECRET not in out + err
    monkeypatch.delenv("HUBBUB_LEDGER")
    code, _, err = call("budget")
    assert code == 3
    assert "variable HUBBUB_LEDGER" in err


def test_synth_and_init_say_that_they_read_files(place: Postgres, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_PG", place.url)
    declare("env:HUBBUB_PG")
    Path("hubbub.toml").write_text(
        Path("hubbub.toml").read_text().replace("[tables.visits]", "delta = 1e-6\n[tables.visits]")
    )
    assert call("ledger", "create")[0] == 0
    code, _, err = call("synth", "visits", "--epsilon", "1", "-o", "out.csv", "--yes")
    assert code == 3
    assert "made of files and frames. Nothing was charged." in err
    assert json.loads(call("history", "--format", "json")[1]) == []
    code, _, err = call("synth", "other.parquet", "--epsilon", "1")
    assert "env:HUBBUB_PG" in err
    code, _, err = call("init", f"postgresql://ada:{SECRET}@db/x", "--unit", "id")
    assert code == 2
    assert "a database needs the table too" in err
    assert SECRET not in err


def test_the_commands_work_on_a_table_of_spark(spark: Any, call: Call, tmp_path: Path) -> None:
    kinds = "id BIGINT, ward STRING, age DOUBLE, n BIGINT, ok BOOLEAN, day DATE"
    frame = spark.createDataFrame(list(zip(*(c.to_pylist() for c in ROWS.columns), strict=True)), kinds)
    frame.write.mode("overwrite").option("path", str(tmp_path / "rows")).saveAsTable("house_visits")
    try:
        declare("spark:default.house_visits", "")
        for words in (("policy", "check"), ("ledger", "create"), ("check", COUNT, "--epsilon", "1"), ("report",)):
            assert call(*words)[0] == 0, words
        code, out, _ = call("query", COUNT, "--epsilon", str(HUGE), "--yes", "--format", "json")
        assert (code, answered(out)) == (0, true_counts())
        code, out, _ = call("doctor")
        assert code == 0
        assert re.search(r"-\s+the source of 'visits', spark:default.house_visits, was not looked for", out)
    finally:
        spark.sql("DROP TABLE house_visits")
