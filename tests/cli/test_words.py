"""A refusal at the command line names options and lines of the policy file, not Python's arguments; `--keys`."""

from __future__ import annotations

import csv
import io

import pytest

from cli.helpers import COUNT, POLICY

SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture
def bare(cli, people):
    """A folder whose table has columns that nobody declared, one of them with an odd name."""
    rows = "".join(
        f"{i},{i % 70},{'fm'[i % 2]},{'a,b' if i % 3 else 'c'}\n".replace("a,b", '"a,b"') for i in range(200)
    )
    (people / "people.csv").write_text("person_id,age,sex,the job\n" + rows)
    head = POLICY.split("[tables.people.types]")[0]
    types = '[tables.people.types]\nperson_id = "integer"\nage = "integer"\nsex = "text"\n"the job" = "text"\n'
    (people / "hubbub.toml").write_text(head + types)
    return cli


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["SELECT SUM(age) AS a FROM people"], "Declare them: age = { between = [low, high] } under the columns of"),
        (
            [SEX],
            "declare them: sex = { one_of = [...] } under the columns of its table in the policy file, or give them",
        ),
        ([SEX], "with the question: --keys 'sex=VALUE,VALUE'."),
        (['SELECT "the job", COUNT(*) AS n FROM people GROUP BY 1'], '"the job" = { one_of = [...] } under'),
        (["SELECT COUNT(*) AS n FROM people WHERE age > $least"], "has no value: -p least VALUE."),
        ([COUNT, "--rho", "1"], "as in delta = 1e-6 under [budget] of the policy file; this one is pure"),
        ([COUNT, "--within", "3"], "--within needs --at-most: "),
        ([COUNT, "--within", "0.001", "--at-most", "1"], "that width cannot be met at epsilon 1: "),
        ([COUNT, "--within", "0.001", "--at-most", "1"], "Allow more, --at-most, or ask for less."),
    ],
)
def test_what_to_write_is_an_option_or_a_line_of_the_policy(bare, asked, message):
    amount = [] if {"--rho", "--within"} & set(asked) else ["--epsilon", "0.1"]
    code, out, err = bare("check", *asked, *amount)
    assert code in (2, 3)
    assert message in err
    assert out == ""
    for python in ("hb.", "={", "=...", "keys=["):
        assert python not in err


def test_the_shell_speaks_so_too(bare, people):
    from cli.helpers import shell

    done = shell("shell", "--epsilon", "0.1", cwd=people, stdin="SELECT SUM(age) AS a FROM people;\n")
    assert "age = { between = [low, high] }" in done.stderr


def test_a_changed_ceiling_names_the_line_and_the_command(cli, people):
    (people / "hubbub.toml").write_text(POLICY.replace("epsilon = 1", "epsilon = 2\ndelta = 1e-6"))
    code, _, err = cli("check", COUNT, "--epsilon", "0.1")
    assert code == 3
    assert "Budget(epsilon=2, delta=0.000001) is declared for the unit space" in err
    assert "write epsilon = 1 under [budget] of the policy file again" in err
    assert "hubbub ledger raise --epsilon NUMBER --reason TEXT" in err
    assert "ask with" not in err


def test_text_of_a_question_stays_as_it_was_written(cli):
    asked = "SELECT COUNT(*) AS n FROM people WHERE oops = 'epsilon=... within at_most=...'"
    assert asked in cli("check", asked, "--epsilon", "0.1")[2]


def test_keys_give_the_groups_of_a_column(bare):
    code, out, err = bare("query", SEX, "--epsilon", "0.5", "--keys", "sex=f,x,null", "--yes")
    assert code == 0, err
    assert [row["sex"] for row in csv.DictReader(io.StringIO(out))] == ["f", "x", ""]
    jobs = 'SELECT "the job", COUNT(*) AS n FROM people GROUP BY 1'
    code, out, err = bare("query", jobs, "--epsilon", "0.5", "--keys", 'the job="a,b",c', "--yes")
    assert code == 0, err
    assert [row["the job"] for row in csv.DictReader(io.StringIO(out))] == ["a,b", "c"]


@pytest.mark.parametrize("wrong", [["sex"], ["=f"], ["sex="], ["sex=f", "sex=m"]])
def test_keys_that_say_nothing_are_refused(bare, wrong):
    given = [part for text in wrong for part in ("--keys", text)]
    code, _, err = bare("query", SEX, "--epsilon", "0.5", "--yes", *given)
    assert code == 2
    assert "write NAME=VALUE,VALUE, once for each column" in err
    assert bare("history", "--format", "json")[1] == "[]\n"
