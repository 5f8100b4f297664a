"""The steward's commands: grants, receipts, reports, the ledger's verbs, policies, and the doctor."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import shutil
import stat
from fractions import Fraction

import pytest

from cli.helpers import COUNT, WARDS
from hubbub.cli.main import run
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Charge, Ledger


@pytest.fixture
def asked(cli):
    """A ledger with one answer at a quarter; the charge's id."""
    assert cli("query", COUNT, "--epsilon", "0.25", "--yes")[0] == 0
    return json.loads(cli("history", "--format", "json")[1])[0]["id"]


def test_a_grant_and_its_end_show_in_the_budget(cli, asked):
    code, out, err = cli("grant", "ada", "--epsilon", "0.5", "--until", "2090-12-31", "--reason", "flu")
    assert (code, out) == (0, "")
    assert err == "analyst:ada may spend epsilon 0.5 in all, until 2090-12-31 (person_id).\n"
    rows = list(csv.DictReader(io.StringIO(cli("budget", "--accounts", "--format", "csv")[1])))
    found = {row["account"]: (row["limit"], row["until"], row["spent"], row["left"]) for row in rows}
    assert found["analyst:ada"] == ("0.5", "2090-12-31", "0", "0.5")
    assert found["everyone"] == ("", "", "0.25", "0.75")
    assert found["table:people"] == ("", "", "0.25", "0.75")
    assert cli("revoke", "ada")[2] == "analyst:ada may spend nothing more (person_id).\n"
    assert ",analyst:ada,revoked,," in cli("budget", "--accounts", "--format", "csv")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["grant", "ada", "--epsilon", "2"], 3, "above the ceiling"),
        (["grant", "ada", "--epsilon", "0.5", "--until", "soon"], 2, "'soon' is not a date as ISO 8601 writes it"),
        (["grant", "ada", "--epsilon", "0.5", "--unit-space", "x"], 2, "name one of person_id"),
        (["receipt", "ffffffff"], 3, "no charge with the id 'ffffffff'"),
        (["ledger", "close", "x"], 3, "no charge 'x'"),
        (["ledger", "raise", "--epsilon", "0.5", "--reason", "r", "--yes"], 3, "not above it"),
        (["policy", "diff", "ffff"], 3, "no policy with the hash"),
    ],
)
def test_what_a_steward_cannot_do_is_said(cli, asked, arguments, code, message):
    found, out, err = cli(*arguments)
    assert (found, out) == (code, "")
    assert message in err


def test_a_receipt_is_verified_now_and_later(cli, asked, people):
    code, out, err = cli("receipt", asked[:8], "--verify")
    assert code == 0
    assert "The chain is sound" in err
    assert json.loads(out)["sql"] == COUNT
    shutil.copy(people / "budget.db", people / "old.db")
    cli("query", WARDS, "--epsilon", "0.25", "--yes")
    cli("receipt", asked, "-o", "receipt.json")
    assert cli("ledger", "verify", "--receipt", "receipt.json")[0] == 0
    code, _, err = cli("ledger", "verify", "--receipt", "receipt.json", "--ledger", "old.db")
    assert code == 3
    assert "an earlier state of the ledger was put back" in err


def test_the_receipt_of_an_answer_can_be_verified_too(cli, people):
    (people / "answer.json").write_text(cli("query", COUNT, "--epsilon", "0.25", "--yes", "--format", "json")[1])
    assert cli("ledger", "verify", "--receipt", "answer.json")[0] == 0
    (people / "broken.json").write_text("{")
    assert cli("ledger", "verify", "--receipt", "broken.json")[0] == 3


def test_a_report_says_who_asked_what_and_what_was_refused(cli, asked, people):
    cli("query", WARDS, "--epsilon", "5", "--yes")
    rows = list(csv.DictReader(io.StringIO(cli("report", "--format", "csv")[1])))
    assert [(row["epsilon"], row["outcome"], row["question"]) for row in rows] == [
        ("0.25", "shown", COUNT),
        ("5", "refused: everyone had 0.75 left", WARDS),
    ]
    text = cli("report")[1]
    assert "0.25 of 1" in text
    assert text.index("questions") < text.index("spent over time") < text.index("the newest first")
    page = cli("report", "--format", "html")[1]
    assert page.index("refused: everyone had 0.75 left") < page.index(COUNT)
    assert cli("report", "--since", "2090-01-01", "--format", "csv")[1].count("\n") == 1
    pytest.importorskip("matplotlib", reason="drawing needs the extra `plot`")
    assert cli("report", "--plot", "course.svg")[0] == 0
    assert "<svg" in (people / "course.svg").read_text()


def test_a_report_names_first_who_is_near_a_limit_as_text_and_as_a_page(cli, asked, people):
    limits = "at most 1 rows in each of 1 groups of one unit (person_id)"
    for report in (cli("report"), cli("report", "--format", "html")):
        assert f"Each of these: {limits}." in "".join(report[1:])
    cli("query", WARDS, "--epsilon", "0.6", "--yes")
    cli("grant", "ada", "--epsilon", "0.5", "--reason", "a study")
    (everyone, *others) = [line.split()[1:] for line in cli("report")[1].splitlines()[2:5]]
    assert everyone == ["everyone", "2", "0", "0.85", "1", "0.15", "near", "it"]
    assert others[-1] == ["ada", "0", "0", "0", "0.5", "0.15"]
    assert others[0][1:] == ["2", "0", "0.85", "1", "0.15", "near", "it"]
    assert cli("report", "--format", "html", "-o", "report.html")[0] == 0
    page = (people / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.index("near it") < page.index("<svg") < page.index("the newest first")
    assert "<script" not in page
    assert cli("report", "-o", "report.txt")[0] == 2
    cli("query", WARDS, "--epsilon", "5", "--yes")  # refused: nothing of anybody is in it
    text, page = ("".join(cli("report", *form)[1:]) for form in ((), ("--format", "html")))
    assert limits in page
    assert "   bounded" in text
    assert "Each of these" not in text + page


def test_an_answer_is_drawn_where_a_plot_is_asked_for(cli, asked, people):
    assert cli("query", WARDS, "--epsilon", "0.1", "--plot", "wards.png")[0] == 2
    assert cli("query", WARDS, "--epsilon", "0.1", "--plot", "nowhere/wards.svg")[0] == 2
    code, _, said = cli("query", WARDS, "--epsilon", "0.1", "--yes", "--plot", "wards.svg")
    assert (code, "Drew wards.svg." in said) == (0, True)
    assert (people / "wards.svg").read_text().startswith("<svg")


def test_the_ledger_is_exported_backed_up_migrated_refreshed_and_raised(cli, asked, people):
    lines = [json.loads(line) for line in cli("ledger", "export")[1].splitlines()]
    assert lines[0]["kind"] == "ledger"
    assert cli("ledger", "export", "-o", "all.jsonl")[0] == 0
    assert (people / "all.jsonl").stat().st_mode & 0o777 == 0o600  # as the ledger: every analyst's questions are in it
    assert len((people / "all.jsonl").read_text().splitlines()) == len(lines)
    assert cli("ledger", "export", "-o", "all.jsonl")[0] == 3
    assert cli("ledger", "backup", "copy")[0] == 0
    assert cli("ledger", "verify", "--ledger", "copy/ledger.db")[0] == 0
    assert "up to date" in cli("ledger", "migrate")[2]
    assert "data version" in cli("ledger", "refresh", "people")[2]
    assert cli("query", COUNT, "--epsilon", "0.25")[0] == 2  # new rows: charged again, and nobody agreed
    assert "no question of 'ada' about person_id failed; nobody's did" in cli("ledger", "unlock", "ada")[2]
    assert (
        cli("ledger", "unlock", "--all")[2]
        == "All analysts who are not locked themselves may ask about person_id again.\n"
    )
    assert cli("ledger", "unlock")[0] == cli("ledger", "unlock", "ada", "--all")[0] == 2
    assert "is Budget(epsilon=2) from now on" in cli("ledger", "raise", "--epsilon", "2", "--reason", "r", "--yes")[2]
    assert cli("check", COUNT, "--epsilon", "1")[0] == 3  # the policy still says 1
    (people / "hubbub.toml").write_text((people / "hubbub.toml").read_text().replace("epsilon = 1", "epsilon = 2"))
    assert "left: 1.75" in cli("check", COUNT, "--epsilon", "1")[1]


def test_a_changed_policy_is_told_in_words(cli, asked, people):
    policy = people / "hubbub.toml"
    shutil.copy(policy, people / "old.toml")
    assert cli("policy", "diff", "old.toml") == (0, "", "Nothing changed but comments and order.\n")
    text = policy.read_text().replace("max_rows = 1", 'max_rows = 2\nneighbours = "replace"')
    policy.write_text(text.replace("[0, 120]", "[0, 100]").replace("epsilon = 1", "epsilon = 1\nper_analyst = 0.5"))
    lines = cli("policy", "diff", "old.toml")[1].splitlines()
    assert lines == [
        "The limit of each analyst changes from none to epsilon 0.5.",
        "people: neighbours are replace, not add_remove: that somebody is in the table at all is no longer hidden.",
        "people: max_rows changes from 1 to 2: with how many rows a person counts in one group at most.",
        "people.age: between 0 and 120 before, between 0 and 100 now. Questions on it are asked anew.",
    ]
    digest = json.loads(cli("receipt", asked)[1])["policy"]
    assert cli("policy", "diff", digest[:12])[1].splitlines() == lines
    policy.write_text(policy.read_text().replace('neighbours = "replace"', ""))
    assert cli("policy", "check")[0] == 3  # the new limit is not recorded yet
    assert cli("ledger", "create")[0] == 0
    assert cli("policy", "check")[0] == 0


def test_a_policy_is_checked_before_its_ledger_is_there(people, capsys):
    from hubbub.cli.main import run

    assert run(["policy", "check"]) == 0
    assert "not there yet: hubbub ledger create" in capsys.readouterr().err
    (people / "people.csv").unlink()
    assert run(["policy", "check"]) == 3
    assert "source of 'people' is missing" in capsys.readouterr().err


def test_the_doctor_finds_what_is_wrong(cli, asked, people):
    code, out, _ = cli("doctor")
    assert code == 0, out
    assert "DuckDB answers" in out
    assert "rows is sound" in out
    assert "can read the rows of 'people': chmod o= " in out
    (people / "people.csv").chmod(0o640)
    assert "other users" not in cli("doctor")[1]
    assert cli("ledger", "backup", "kept")[0] == 0
    (people / "kept" / "ledger.db").rename(people / "kept.db")
    ledger = people / "budget.db"
    for file in (ledger, people / "kept.db"):
        file.chmod(0o644)  # as an older hubbub made them
    (line,) = (line for line in cli("doctor")[1].splitlines() if "other users" in line)
    assert line.startswith("-  ")
    assert line.endswith(f"chmod o= {ledger} {people / 'kept.db'}")
    ledger.chmod(0o660)  # for a group, as the docs say
    (people / "kept.db").chmod(0o600)
    assert "other users" not in cli("doctor")[1]
    (people / "people.csv").unlink()
    code, out, _ = cli("doctor")
    assert code == 3
    assert "FAIL the source of 'people'" in out


@pytest.mark.parametrize(
    ("says", "line"),
    [
        ("", "no Java was found; pyspark 4.0.1 needs Java 17 or newer"),
        ("exit 1", "java does not run; pyspark"),
        ("echo 'openjdk version \"1.8.0_402\"' >&2", "java is Java 8; pyspark 4.0.1 needs Java 17 or newer"),
        ("echo hello >&2", "java is of an unknown version; pyspark"),
        ("echo 'openjdk version \"21.0.2\" 2024' >&2", "ok   Java 21, for pyspark: "),
    ],
)
def test_the_doctor_looks_for_the_java_of_spark(tmp_path, monkeypatch, capsys, says, line):
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "4.0.1" if name == "pyspark" else version(name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/nowhere")
    if says:
        (tmp_path / "java").write_text(f"#!/bin/sh\n{says}\n")
        (tmp_path / "java").chmod(0o755)
    assert run(["doctor"]) == 0  # all but Spark works without it
    assert line in capsys.readouterr().out


def test_explain_puts_an_epsilon_into_words(cli):
    code, out, _ = cli("explain", "--epsilon", "0.5", "--prior", "0.1")
    assert code == 0
    assert out.startswith("epsilon = 0.5: ")
    assert cli("explain", "--epsilon", "-1")[0] == 2


def test_the_budget_says_what_failed_and_who_is_locked(cli, asked, people):
    policy = people / "hubbub.toml"
    policy.write_text(policy.read_text().replace("[budget]", "max_failures = 2\nmax_failures_all = 3\n[budget]", 1))
    with Ledger.open(people / "budget.db", budgets={"person_id": Budget(1)}) as ledger:
        for number, analyst in enumerate(("ada", "ada", "ada", "bob")):
            made = ledger.charges.charge(Charge(
                space="person_id", dataset="people", analyst=analyst, question_key=str(number), sql="s",
                epsilon=Fraction(1, 100), event="{}", details="{}",
            ))  # fmt: skip
            ledger.charges.advance(made, "failed")
            if number == 1:
                ledger.steward.unlock("person_id", "ada", author="steward")
    assert (
        "person_id: failures ada 1 of 2, bob 1 of 2, all together 4 of 3 (locked: hubbub ledger unlock --all)."
        in cli("budget")[2]
    )
    code, _, err = cli("query", WARDS, "--epsilon", "0.25", "--yes")
    assert code == 3
    assert "4 questions about the unit space 'person_id' failed" in err
    assert cli("query", COUNT, "--epsilon", "0.25")[0] == 0  # stored, and free
    assert cli("ledger", "unlock", "--all")[0] == 0
    code, _, err = cli("ledger", "unlock", "adda")  # a slip of the pen clears nobody, and says so
    assert (code, "those with failures are ada, bob" in err) == (2, True)
    assert cli("ledger", "unlock", "ada")[2] == "ada may ask again. Cleared: 1 failure.\n"
    assert cli("query", WARDS, "--epsilon", "0.25", "--yes")[0] == 0


def test_a_grant_says_that_an_earlier_end_is_gone(cli, asked):
    assert "ended" not in cli("grant", "ada", "--epsilon", "0.5", "--until", "2999-12-31")[2]
    said = cli("grant", "ada", "--epsilon", "0.6")[2]
    assert "The grant before ended 2999-12-31; that end holds no more." in said
    assert "ended" not in cli("grant", "ada", "--epsilon", "0.7")[2]


def test_the_budget_shows_what_everyone_may_spend(cli, asked):
    assert "everyone" not in cli("budget")[2]
    assert cli("revoke", "everyone")[0] == 0
    _, out, err = cli("budget", "--format", "json")
    assert json.loads(out)[0]["left"] == "0"
    assert "holds `everyone` to 0; the ceiling itself has 0.75 left" in err
    assert cli("grant", "everyone", "--epsilon", "0.5")[0] == 0
    assert json.loads(cli("budget", "--format", "json")[1])[0]["left"] == "0.25"


def test_a_unit_space_that_is_new_to_a_policys_ledger_waits_for_a_steward(cli, asked, people):
    policy = people / "hubbub.toml"
    text = policy.read_text()
    policy.write_text(text.replace('unit = "person_id"', 'unit = "person_id"\nunit_space = " PERSON_ID"'))
    assert cli("check", COUNT, "--epsilon", "0.5")[0] == 0  # the same space
    (people / "others.csv").write_bytes((people / "people.csv").read_bytes())
    others = text.replace('unit = "person_id"', "each_row = true").replace('"people.csv"', '"others.csv"')
    policy.write_text(others)
    for command in (["query", WARDS, "--epsilon", "0.5", "--yes"], ["policy", "check"]):
        code, _, err = cli(*command)
        assert code == 3
        assert "the unit space 'each row' is new to the ledger" in err
    code, _, err = cli("ledger", "create")
    assert code == 0
    assert "A new budget: Budget(epsilon=1) for the unit space 'each row'." in err
    assert "The ledger holds budgets for 'each row', 'person_id'. Be sure that they are about other people" in err
    assert cli("query", WARDS, "--epsilon", "0.5", "--yes")[0] == 0
    assert "A new budget" not in cli("ledger", "create")[2]


def test_one_create_records_every_limit_that_the_policy_names(cli, asked, people):
    """A limit that equals the default was not recorded: lowering the default needed `ledger create` twice."""
    policy = people / "hubbub.toml"
    text = policy.read_text()

    def say(each: str, *named: str) -> None:
        lines = "".join(f"{name} = {amount}\n" for name, amount in (one.split("=") for one in named))
        policy.write_text(text.replace("epsilon = 1", f"epsilon = 1\nper_analyst = {each}\n[budget.analysts]\n{lines}"))

    for each, *named in (("0.5", "bob=0.5", "cleo=1"), ("0.3", "bob=0.5", "cleo=1"), ("0.3", "bob=0.3"), ("0.4",)):
        say(each, *named)
        assert cli("ledger", "create")[0] == 0
        assert cli("check", COUNT, "--epsilon", "0.1")[0] == 0
        rows = list(csv.DictReader(io.StringIO(cli("budget", "--accounts", "--format", "csv")[1])))
        found = {row["account"]: row["limit"] for row in rows}
        assert found.items() >= {f"analyst:{n.split('=')[0]}": n.split("=")[1] for n in named}.items()
    assert found["analyst:bob"] == found["analyst:cleo"] == "0.4"
    say("0.3")
    assert cli("check", COUNT, "--epsilon", "0.1")[0] == 3  # not recorded yet


def test_an_older_ledger_is_found_by_its_head_and_by_the_anchor(cli, asked, people):
    policy = people / "hubbub.toml"
    policy.write_text(policy.read_text().replace("[budget]", 'anchor = "elsewhere"\n[budget]', 1))
    code, _, err = cli("budget")
    assert code == 3
    assert "is missing" in err
    assert cli("ledger", "anchor")[2].startswith(f"The anchor {people / 'elsewhere'} names line ")
    shutil.copy(people / "budget.db", people / "old.db")
    assert cli("query", WARDS, "--epsilon", "0.5", "--yes")[0] == 0
    head = cli("ledger", "verify")[2].split("Head: ")[1].strip()
    assert cli("ledger", "verify", "--head", head)[0] == 0
    assert cli("ledger", "verify", "--head", head[:24])[0] == 0
    assert cli("ledger", "verify", "--head", "17")[0] == 2
    shutil.copy(people / "old.db", people / "budget.db")
    for command in (
        ["query", WARDS, "--epsilon", "0.5", "--yes"],
        ["budget"],
        ["doctor"],
        ["grant", "a", "--epsilon", "1"],
    ):
        code, out, err = cli(*command)
        assert code == 3
        assert "An older copy was put back" in out + err
    code, _, err = cli("ledger", "verify", "--head", head)
    assert code == 3
    assert "the head that was noted (line" in err
    assert "the anchor (line" in err
    assert cli("ledger", "anchor")[0] == 3
    assert cli("ledger", "anchor", "--accept-older", "--yes")[0] == 0
    assert (
        cli("query", WARDS, "--epsilon", "0.5", "--yes")[0] == 4
    )  # what was spent since is not known: nothing is left
    assert cli("grant", "everyone", "--epsilon", "1")[0] == 0
    assert cli("query", WARDS, "--epsilon", "0.5", "--yes")[0] == 0


def test_a_ledger_with_an_anchor_is_not_opened_without_it_until_a_steward_removes_it(cli, asked, people):
    policy = people / "hubbub.toml"
    without = policy.read_text()
    named = without.replace("[budget]", 'anchor = "elsewhere"\n[budget]', 1)
    policy.write_text(named)
    assert cli("ledger", "anchor")[0] == 0
    policy.write_text(without)
    for command in (["query", WARDS, "--epsilon", "0.5", "--yes"], ["grant", "a", "--epsilon", "1"]):
        code, _, err = cli(*command)
        assert code == 3
        assert "has an anchor, and was opened without it" in err
    code, _, err = cli("ledger", "verify")
    assert (code, "Note: it has an anchor, and was read without it" in err) == (0, True)
    assert cli("ledger", "anchor", "--remove")[0] == 3  # for that, name it
    policy.write_text(named)
    assert cli("ledger", "anchor", "--remove", "--accept-older")[0] == 2
    code, _, err = cli("ledger", "anchor", "--remove")
    assert (code, "The ledger has no anchor any more." in err) == (0, True)
    policy.write_text(without)
    assert cli("query", WARDS, "--epsilon", "0.5", "--yes")[0] == 0


def test_what_a_question_was_asked_for_is_shown(cli, asked, people):
    with Ledger.manage(people / "budget.db") as ledger:
        before = ledger.record.history()[0]
        ledger.charges.charge(Charge(
            space=before.space, dataset=before.dataset, analyst=before.analyst, question_key="k", sql="SELECT 1",
            epsilon=before.epsilon / 10, event="{}", details="{}", purpose="the yearly\nreport",
        ))  # fmt: skip
        charge = ledger.record.history()[-1].id
    assert "SELECT 1  [the yearly report]" in cli("history", "--format", "md")[1]
    rows = list(csv.DictReader(io.StringIO(cli("history", "--format", "csv")[1])))
    assert [row["purpose"] for row in rows][-2:] == ["", "the yearly\nreport"]
    assert json.loads(cli("receipt", charge)[1])["purpose"] == "the yearly\nreport"
    assert "yearly" in cli("report")[1]
    rows = list(csv.DictReader(io.StringIO(cli("report", "--format", "csv")[1])))
    assert rows[-1]["purpose"] == "the yearly\nreport"


def test_a_walk_goes_on_from_the_checkpoint_that_another_one_kept(cli, asked, people):
    assert cli("ledger", "verify", "--checkpoint", "kept.json")[0] == 0
    assert stat.S_IMODE((people / "kept.json").stat().st_mode) == 0o600
    assert cli("query", WARDS, "--epsilon", "0.5", "--yes")[0] == 0
    code, _, err = cli("ledger", "verify", "--from-checkpoint", "kept.json", "--checkpoint", "kept.json")
    assert code == 0
    assert "Note: what stands before line" in err
    (people / "kept.json").write_text("{}")
    code, _, err = cli("ledger", "verify", "--from-checkpoint", "kept.json")
    assert (code, "not a checkpoint of a ledger" in err) == (3, True)
