"""The pages about the command line and the policy file do not drift from the code."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import click
import pytest

from cli.helpers import shell
from hubbub import errors
from hubbub.cli.main import COMMANDS, commands
from hubbub.errors import HubbubError
from hubbub.ledger.policy import load_policy

DOCS = Path(__file__).parents[2] / "docs"
COMMAND_LINE = (DOCS / "reference" / "command-line.md").read_text("utf-8")
POLICY_FILE = (DOCS / "reference" / "policy-file.md").read_text("utf-8")
FIRST_ANSWER = (DOCS / "tutorial" / "first-answer.md").read_text("utf-8")


def leaves() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = commands.get_command(click.Context(commands), name)
        inner = command.commands if isinstance(command, click.Group) else {"": command}
        found |= {f"{name} {sub}".strip(): leaf for sub, leaf in inner.items()}
    return found


def section(name: str) -> str:
    """The section of a command; the verbs of a group may share the group's."""
    own = name if f"\n## `hubbub {name}`\n" in COMMAND_LINE else name.split()[0]
    return COMMAND_LINE.split(f"\n## `hubbub {own}`\n")[1].split("\n## ")[0]


@pytest.mark.parametrize("name", leaves())
def test_every_command_has_its_heading_and_every_option_its_place(name):
    text = section("budget" if name == "history" else name)
    for parameter in leaves()[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[-1] in text, parameter.opts


def test_every_exit_code_is_explained():
    codes = {
        error.exit_code for error in vars(errors).values() if isinstance(error, type) and issubclass(error, HubbubError)
    }
    table = COMMAND_LINE.split("\n## Exit codes\n")[1]
    assert codes | {0, 130} <= {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}


def test_every_key_of_the_policy_is_explained():
    here = Path(load_policy.__code__.co_filename)
    source = "\n".join(here.with_name(name).read_text("utf-8") for name in ("policy.py", "column_policy.py"))
    allowed = re.findall(
        r'"([a-z_]+)"', " ".join(re.findall(r"(?:known\(.*|allowed = .*|_LIMITS: Final = .*)", source))
    )
    keys = set(allowed) - {"tables", "public", "ledger", "budget", "service", "columns", "types", "csv"}
    assert {"file", "epsilon", "source", "unit", "each_row", "max_rows", "between", "one_of", "null"} <= keys
    for key in keys:
        assert f"\n`{key}`\n: " in POLICY_FILE, key
    for name in (
        "ledger",
        "budget",
        "service",
        "tables.NAME",
        "tables.NAME.columns",
        "tables.NAME.types",
        "public.NAME",
    ):
        assert f"\n## `[{name}]`\n" in POLICY_FILE


def test_the_policy_on_the_page_loads(tmp_path):
    text = re.search(r"```toml\n(.*?)```", POLICY_FILE, re.DOTALL)[1]
    tomllib.loads(text)
    (tmp_path / "hubbub.toml").write_text(text)
    assert load_policy(tmp_path / "hubbub.toml").tables["visits"].max_groups == 3


def without_noise(screen: str) -> list[str]:
    """The screen with every number, bar and guess alike, and any run of blanks as one."""
    screen = re.sub(r"[█▒░]+", "=", screen)
    screen = re.sub(r"[+-]?\d[\d,.]*", "#", screen)
    screen = re.sub(r"\b(yes|no)$", "?", screen, flags=re.MULTILINE)
    return [re.sub(r" +", " ", line).rstrip() for line in screen.strip().splitlines()]


def test_the_screen_in_the_tutorial_is_the_demo_s(tmp_path):
    pytest.importorskip("statsmodels", reason="the survey ships with statsmodels (extra demo)")
    entered = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # as in an environment
    shown = re.search(r"```text\n(.*?)```", FIRST_ANSWER, re.DOTALL)[1]
    shown = shown.replace("    . .venv/bin/activate\n", "")  # said where the environment is not entered yet
    assert without_noise(shown) == without_noise(shell("demo", cwd=tmp_path, PATH=entered).stdout)
