"""What is said to be left is what the question at hand, or its unit space, has left; the same from every command."""

from __future__ import annotations

import json
import re

import pytest

from cli.helpers import COUNT, POLICY, shell
from hubbub.cli.main import run

STAFF = """
[tables.staff]
source = "staff.csv"
unit = "staff_id"
max_groups = 1
max_rows = 1
[tables.staff.types]
staff_id = "integer"
[public.wards]
source = "wards.csv"
"""
OTHER = "SELECT COUNT(*) AS n FROM staff"


def policy_of(epsilon: str) -> str:
    return POLICY.replace("epsilon = 1", epsilon) + STAFF


@pytest.fixture
def two(people, capsys):
    """Run a command where people and staff each have a budget of their own; gives code, stdout and stderr."""
    (people / "staff.csv").write_text("staff_id\n" + "".join(f"{i}\n" for i in range(50)))
    (people / "wards.csv").write_text("ward,beds\nA,40\n")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        return code, *capsys.readouterr()

    def made(epsilon: str = "epsilon = 1"):
        (people / "hubbub.toml").write_text(policy_of(epsilon))
        assert call("ledger", "create")[0] == 0
        return call

    return made


def test_a_question_says_what_is_left_of_its_own_unit_space(two):
    call = two()
    assert "; 0.25 is left." in call("query", COUNT, "--epsilon", "0.75", "--yes")[2]
    assert "left: 1;" in call("check", OTHER, "--epsilon", "0.1")[1]
    assert "; 0.9 is left." in call("query", OTHER, "--epsilon", "0.1", "--yes")[2]
    assert "epsilon 0.9 is left." in call("query", OTHER, "--epsilon", "0.1", "--yes")[2]


def test_the_shell_says_the_same_and_its_budget_has_a_line_for_each_unit_space(two, people):
    two()
    text = f"{COUNT};\n{OTHER};\nSELECT beds FROM wards;\n.budget\n"
    done = shell("shell", "--epsilon", "0.25", "--yes", "--format", "csv", cwd=people, stdin=text)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"; (\S+) is left", done.stderr) == ["0.75", "0.75"]
    assert "Public tables only: free.\n" in done.stderr
    assert "stored" not in done.stderr
    assert done.stdout.splitlines()[-2:] == [
        "person_id: epsilon 0.75 is left; each question may cost 0.25",
        "staff_id: epsilon 0.75 is left; each question may cost 0.25",
    ]


def test_a_question_about_public_tables_alone_is_free_and_no_stored_answer(two):
    assert two()("query", "SELECT beds FROM wards", "--epsilon", "0.1") == (
        0,
        "beds\n40\n",
        "Public tables only: free.\n",
    )


def test_what_an_analyst_may_spend_is_what_is_left_to_them(two):
    call = two("epsilon = 1\nper_analyst = 0.5")
    assert "left: 0.5;" in call("check", COUNT, "--epsilon", "0.1")[1]
    assert "; 0.4 is left." in call("query", COUNT, "--epsilon", "0.1", "--yes")[2]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_under_delta_every_command_says_the_same_in_six_digits(two, noise):
    call = two("epsilon = 3\ndelta = 1e-6")
    asked = call("query", COUNT, "--epsilon", "0.7", "--noise", noise, "--yes")[2]
    said = re.search(r"; (\S+) is left", asked)[1]
    assert ("more such question" in asked, "adds up more slowly" in asked) == (noise == "gaussian",) * 2
    assert len(said) <= 8
    assert f"left: {said};" in call("check", COUNT, "--epsilon", "0.1", "--noise", noise)[1]
    left = {row["unit_space"]: row["left"] for row in json.loads(call("budget", "--format", "json")[1])}
    assert left["staff_id"] == "3"
    assert len(left["person_id"]) <= 8
    assert f", {left['person_id']} left; spent over time:" in call("report")[1]
    if noise == "gaussian":
        assert left["person_id"] == said
