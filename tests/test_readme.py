"""The front door: the README's first screen, its example, and what it says exists."""

from __future__ import annotations

import re
from pathlib import Path

import hubbub as hb

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
SCREEN = re.search(r"```text\n(.*?)```", (ROOT / "docs/tutorial/first-answer.md").read_text("utf-8"), re.DOTALL)[1]


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_first_screen_says_how_to_begin_what_it_is_and_shows_an_answer() -> None:
    first = README.splitlines()[:30]
    assert [line.split("#")[0].strip() for line in first[3:5]] == ["$ make demo", "$ make test"]
    assert any("You hear the room, never the person." in line for line in first)
    assert sum(" ± " in line for line in first) >= 5


def test_the_answer_on_the_first_screen_is_the_demo_s() -> None:
    shown = re.search(r"```text\n(.*?)```", README, re.DOTALL)[1]
    assert shown in SCREEN


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)`", README)) | set(re.findall(r"^\$ make ([a-z]+)", README, re.MULTILINE))
    assert {"demo", "test", "bench", "docs", "peers"} <= named <= targets


def test_every_room_named_exists() -> None:
    rooms = re.findall(r"`(\w+(?:/|\.py))`", section("The rooms"))
    assert len(rooms) >= 8
    for room in rooms:
        assert (ROOT / "src/hubbub" / room).exists(), room


def test_every_extra_named_exists() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    extras = re.findall(r"`(\w+)` \(", section("Install"))
    assert extras
    for extra in extras:
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra


def test_every_benchmark_named_exists() -> None:
    for name in re.findall(r"python -m (benchmarks\.\w+)", README):
        assert (ROOT / f"{name.replace('.', '/')}.py").exists(), name


def test_the_python_example_has_about_twenty_lines() -> None:
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    assert len(example.splitlines()) <= 20


def test_the_changelog_names_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{hb.__version__}]" in text or ("## [Unreleased]" in text and f"### {hb.__version__}" in text)
