"""check, query, budget, history: what they print, where, and what they spend."""

from __future__ import annotations

import csv
import io
import json
import subprocess

import pyarrow as pa
import pytest

from cli.helpers import COUNT, PROGRAM, WARDS, shell, terminal


def left(cli) -> str:
    return cli("budget", "--format", "csv")[1].splitlines()[1].split(",")[3]


def test_check_shows_cost_and_error_and_spends_nothing(cli):
    code, out, err = cli("check", WARDS, "--epsilon", "0.5")
    assert (code, err) == (0, "")
    assert "cost: epsilon 0.5; left: 1" in out
    assert left(cli) == "1"


def test_check_as_json_is_exact(cli):
    found = json.loads(cli("check", COUNT, "--epsilon", "1/3", "--format", "json")[1])
    assert (found["epsilon"], found["left"], found["affordable"], found["stored"]) == ("1/3", "1", True, False)
    assert [column["name"] for column in found["columns"]] == ["people"]
    assert not json.loads(cli("check", COUNT, "--epsilon", "2", "--format", "json")[1])["affordable"]


def test_check_reads_no_row(cli, people):
    cli("check", COUNT, "--epsilon", "0.1")
    before = cli("check", WARDS, "--epsilon", "0.1")
    (people / "people.csv").write_text("person_id,age,ward\n")
    assert cli("check", WARDS, "--epsilon", "0.1") == before


def test_a_query_answers_on_stdout_and_tells_its_cost_on_stderr(cli):
    code, out, err = cli("query", COUNT, "--epsilon", "0.5", "--yes")
    assert code == 0
    assert out.splitlines()[0] == "people,people_low,people_high"
    assert len(out.splitlines()) == 2
    bounded = "bounded: at most 1 row of one person_id; what that leaves out is not in the ±\n"
    assert err == f"{bounded}Charged epsilon 0.5; 0.5 is left. Asked again, it is free.\n"


def test_asked_again_it_is_free_and_needs_no_consent(cli):
    _, first, _ = cli("query", COUNT, "--epsilon", "0.5", "--yes")
    code, second, err = cli("query", COUNT, "--epsilon", "0.5")
    assert (code, second) == (0, first)
    assert err.splitlines()[1:] == ["A stored answer: nothing charged; epsilon 0.5 is left."]


def test_a_fresh_draw_is_charged(cli):
    cli("query", COUNT, "--epsilon", "0.25", "--yes")
    cli("query", COUNT, "--epsilon", "0.25", "--yes", "--fresh")
    assert left(cli) == "0.5"
    assert cli("query", COUNT, "--epsilon", "0.25", "--fresh")[0] == 2


def test_all_formats_tell_the_same_numbers(cli):
    cli("query", WARDS, "--epsilon", "1", "--yes")
    forms = {
        form: cli("query", WARDS, "--epsilon", "1", "--format", form)[1] for form in ("csv", "json", "md", "table")
    }
    table = list(csv.DictReader(io.StringIO(forms["csv"])))
    assert [row["ward"] for row in table] == ["A", "B|C"]
    assert list(table[0]) == ["ward", "people", "people_low", "people_high", "age", "age_low", "age_high"]
    document = json.loads(forms["json"])
    assert [{k: str(v) for k, v in row.items()} for row in document["rows"]] == table
    assert (document["cost"], document["charged"], document["level"]) == ("0", False, 0.95)
    assert document["receipt"]["epsilon"] == "1"
    for row in table:
        shown = f"{int(row['people']):,} ± "
        assert shown in forms["md"]
        assert shown in forms["table"]
    assert "| ward | people | age |\n| --- | ---: | ---: |\n| A | " in forms["md"]
    assert "| B\\|C | " in forms["md"]


def test_an_answer_goes_to_a_file(cli, people):
    code, out, _ = cli("query", COUNT, "--epsilon", "0.5", "--yes", "-o", "answer.csv")
    assert (code, out) == (0, "")
    assert (people / "answer.csv").read_text().startswith("people,people_low,people_high\n")
    beside = json.loads((people / "answer.csv-metadata.json").read_text())
    assert (beside["url"], beside["notes"]) == ("answer.csv", beside["bounded"])
    assert beside["bounded"][0].startswith("bounded: at most 1 row of one person_id")
    report = list(csv.DictReader(io.StringIO(cli("report", "--format", "csv")[1])))
    assert report[-1]["bounded"].startswith("at most 1 rows in each of 1 groups of one unit (person_id)")


def test_an_answer_that_cannot_be_written_is_stored_and_free(cli, people):
    for form in ("csv", "arrow"):
        code, _, err = cli("query", COUNT, "--epsilon", "0.5", "--yes", "--format", form, "-o", "/dev/full")
        assert code == 3
        assert "cannot write /dev/full: No space left on device. The answer is stored" in err
    assert left(cli) == "0.5"


def test_arrow_goes_to_files_and_pipes(cli, people):
    cli("query", WARDS, "--epsilon", "0.5", "--yes", "--format", "arrow", "-o", "answer.arrow")
    with pa.ipc.open_stream((people / "answer.arrow").read_bytes()) as reader:
        table = reader.read_all()
    assert table.column_names == ["ward", "people", "people_low", "people_high", "age", "age_low", "age_high"]
    ask = [*PROGRAM, "query", WARDS, "--epsilon", "0.5", "--format", "arrow"]
    piped = subprocess.run(ask, cwd=people, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    with pa.ipc.open_stream(piped) as reader:
        assert reader.read_all() == table


def test_a_wider_level_gives_wider_intervals(cli):
    cli("query", COUNT, "--epsilon", "0.5", "--yes")
    low, high = (
        [float(x) for x in cli("query", COUNT, "--epsilon", "0.5", "--level", level)[1].splitlines()[1].split(",")]
        for level in ("0.5", "0.99")
    )
    assert high[1] < low[1] <= low[0] == high[0] <= low[2] < high[2]


def test_without_a_terminal_spending_needs_yes(cli, people):
    found = shell("query", COUNT, "--epsilon", "0.5", cwd=people)
    assert (found.returncode, found.stdout) == (2, "")
    assert "costs epsilon 0.5 of the 1 left, and nobody is there to agree: add --yes" in found.stderr
    assert left(cli) == "1"


def test_history_and_budget_tell_what_was_asked(cli):
    cli("query", COUNT, "--epsilon", "0.1", "--yes")
    cli("query", WARDS, "--epsilon", "0.3", "--yes")
    entries = json.loads(cli("history", "--format", "json")[1])
    assert [(e["epsilon"], e["state"], e["dataset"], e["unit_space"], e["sql"]) for e in entries] == [
        ("0.1", "shown", "people", "person_id", COUNT),
        ("0.3", "shown", "people", "person_id", WARDS),
    ]
    assert json.loads(cli("budget", "--format", "json")[1]) == [
        {"unit_space": "person_id", "epsilon": "1", "spent": "0.4", "left": "0.6", "charges": 2}
    ]
    assert "| person_id | 1 | 0.4 | 0.6 | 2 |" in cli("budget", "--format", "md")[1]
    assert f"| 0.1 | shown | {COUNT} |" in cli("history", "--format", "md")[1]
    assert "shown" in cli("history", "--format", "table")[1]
    assert "0.6" in cli("budget", "--ledger", "budget.db")[1]


def test_an_empty_history_says_so_on_stderr(cli):
    assert cli("history", "--format", "table") == (0, "", "Nothing has been asked yet.\n")
    assert cli("history", "--format", "json")[1] == "[]\n"


def test_a_ledger_created_twice_keeps_its_charges(cli):
    cli("query", COUNT, "--epsilon", "0.75", "--yes")
    assert cli("ledger", "create") == (0, "", "The ledger is ready: epsilon 0.25 of 1 is left.\n")


def test_a_changed_budget_is_refused_by_the_ledger(cli, people):
    policy = people / "hubbub.toml"
    policy.write_text(policy.read_text().replace("epsilon = 1", "epsilon = 2"))
    code, _, err = cli("check", COUNT, "--epsilon", "0.1")
    assert code == 3
    assert "Budget(epsilon=2) is declared" in err
    assert "created with Budget(epsilon=1)" in err


@pytest.mark.parametrize(("answer", "code", "spent"), [("y\n", 0, "0.5"), ("n\n", 130, "1"), ("\x03", 130, "1"),
                                                       ("\x04", 130, "1")])  # fmt: skip
def test_on_a_terminal_a_question_asks_first(cli, people, answer, code, spent):
    prompt = "This costs epsilon 0.5 of the 1 left. Ask?"
    found, screen = terminal("query", COUNT, "--epsilon", "0.5", cwd=people, answer=answer, prompt=prompt)
    assert found == code, screen
    assert prompt in screen
    assert ("±" in screen) == (code == 0)
    assert "Traceback" not in screen
    assert left(cli) == spent


def test_on_a_terminal_an_answer_is_a_table(cli, people):
    code, screen = terminal("query", WARDS, "--epsilon", "0.5", "--yes", cwd=people)
    assert code == 0
    assert "─" in screen
    assert "±" in screen
    assert "\x1b[1m" in screen  # a bold header
    plain = terminal("query", WARDS, "--epsilon", "0.5", cwd=people, NO_COLOR="1")[1]
    assert "±" in plain
    assert "\x1b[3" not in plain


def test_on_a_terminal_an_error_is_red_unless_colour_is_unwanted(people):
    code, screen = terminal("budget", cwd=people)
    assert code == 3
    assert "\x1b[31m" in screen
    assert "\x1b" not in terminal("budget", cwd=people, NO_COLOR="1")[1]


def test_binary_is_not_thrown_at_a_terminal(cli, people):
    code, screen = terminal("query", COUNT, "--epsilon", "0.5", "--yes", "--format", "arrow", cwd=people)
    assert code == 2
    assert "--format arrow is binary" in screen
    assert left(cli) == "1"


def test_a_value_that_is_not_declared_is_refused_in_the_words_of_the_policy(cli, people):
    """And with `others = true` it is answered; a list that holds a declared one is answered with a note."""
    code, out, err = cli("query", "SELECT COUNT(*) AS n FROM people WHERE ward = 'a'", "--epsilon", "0.1", "--yes")
    assert (code, out) == (2, "")
    assert "ward has no declared value 'a'; did you mean 'A'? Nothing was charged." in err
    assert "declare that: others = true beside its one_of in the policy file" in err
    some = ["SELECT COUNT(*) AS n FROM people WHERE ward IN ('a', 'A')", "--epsilon", "0.1"]
    note = "note: ward has no declared value 'a'; did you mean 'A'? That part of the question finds nothing"
    assert note in cli("check", *some)[1]
    code, out, err = cli("query", *some, "--yes")
    assert code == 0
    assert note in err
    assert json.loads(cli("query", *some, "--yes", "--format", "json")[1])["notes"][0].startswith(note)
    policy = people / "hubbub.toml"
    policy.write_text(policy.read_text().replace('"B|C"] }', '"B|C"], others = true }'))
    code, out, err = cli("query", "SELECT COUNT(*) AS n FROM people WHERE ward = 'a'", "--epsilon", "0.1", "--yes")
    assert code == 0
    assert "note:" not in err
