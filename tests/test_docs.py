"""The documentation runs: its Python, its command lines, its SQL, and the lists that must be complete.

How a page is written, so that it can be run:

- Blocks of one page share a namespace and a fresh folder that holds `visits.parquet` and `wards.csv`
  (docs/reference/index.md says what they are).
- A `python` block is executed. A `text` block right after it is what it prints; `text noisy` where noise is in it,
  `text wrapped` where long lines are broken.
- A `toml` block that begins with `# hubbub.toml` becomes that file.
- In a `console` block, each `$ hubbub ...` must be a command with options that exist. On the pages of `PLAYED` it is
  also run, on a terminal of 80 columns, and what follows is the screen, but for the noise.
- A `sql` block is a question that `visits` answers. In a table headed "refused", the first column is refused and
  the second answered.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import io
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from cli.helpers import terminal
from hubbub.cli.main import COMMANDS, commands
from hubbub.ledger.life import _NEXT
from hubbub.ledger.records import OPEN, State
from hubbub.tables.aggregates import FAMILIES
from hubbub.tables.functions import FUNCTIONS

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)])
NAMES = [str(p.relative_to(ROOT)) for p in PAGES]
PLAYED = {"docs/tutorial/your-own-table.md"}
RUNNABLE = {"python", "console", "bash", "toml"}
_FENCE = re.compile(r"^(`{3,})([^\n]*)\n(.*?)^\1`*[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what it holds, its first line's number, and whether the next block adjoins it."""

    info: str
    text: str
    line: int
    follows: bool


def blocks(page: Path) -> Iterator[Block]:
    text, end = page.read_text("utf-8"), 0
    for found in _FENCE.finditer(text):
        adjoins = end > 0 and not text[end : found.start()].strip()
        end = found.end()
        yield Block(found[2].strip(), found[3], text.count("\n", 0, found.start()) + 2, adjoins)


def make_tables(folder: Path) -> None:
    """The examples' tables: 2,000 patients with 1, 2 or 3 visits each, and three wards."""
    rows = [
        {
            "patient_id": patient,
            "ward": "ABC"[(patient + visit) % 3],
            "age": float(20 + patient % 60),
            "cost": (patient * 37 + visit * 11) % 500,
            "day": dt.date(2025, 1, 1) + dt.timedelta(days=(patient * 31 + visit * 50) % 365),
            "urgent": patient % 7 == 0,
        }
        for patient in range(2000)
        for visit in range(1 + patient % 3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "visits.parquet")
    (folder / "wards.csv").write_text("ward,beds\nA,40\nB,25\nC,30\n")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    make_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def without_noise(screen: str) -> list[str]:
    """Lines with numbers, rules and runs of blanks alike: what two runs of one question share."""
    screen = re.sub(r"\x1b\[[0-9;]*m", "", screen)
    screen = re.sub(r"[-─━┃│|]{2,}", "-", screen)
    screen = re.sub(r"[+-]?\d[\d,.]*(e[+-]\d+)?", "#", screen)
    return [" ".join(line.split()) for line in screen.strip().splitlines()]


def without_ids(text: str) -> list[str]:
    return [re.sub(r"\b[0-9a-f]{12,}\b", "ID", line).rstrip() for line in text.strip().splitlines()]


def same(shown: str, seen: str, how: Sequence[str]) -> None:
    """What a page shows is what was seen: exactly, or but for the noise, or but for the ends of the lines."""
    if "wrapped" in how:
        assert " ".join(without_ids(seen)).split() == " ".join(without_ids(shown)).split()
    elif "noisy" in how:
        assert without_noise("\n".join(without_ids(seen))) == without_noise("\n".join(without_ids(shown)))
    else:
        assert without_ids(seen) == without_ids(shown)


@pytest.mark.parametrize(
    "name", [n for n, p in zip(NAMES, PAGES, strict=True) if {b.info for b in blocks(p)} & RUNNABLE]
)
def test_every_block_of_the_page_runs(name: str, folder: Path) -> None:
    space: dict[str, object] = {"__name__": "page"}
    printed: str | None = None
    for block in blocks(ROOT / name):
        match block.info.split():
            case ["python"]:
                code = "\n" * (block.line - 1) + block.text
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(compile(code, name, "exec"), space)
                printed = out.getvalue()
                continue
            case ["text", *more] if block.follows and printed is not None:
                same(block.text, printed, more)
            case ["toml"] if block.text.startswith("# hubbub.toml"):
                Path("hubbub.toml").write_text(block.text)
            case ["console" | "bash"]:
                for line, screen in typed(block.text):
                    run(line, screen, played=name in PLAYED, folder=folder)
        printed = None


def typed(text: str) -> Iterator[tuple[list[str], str]]:
    """The `hubbub` commands of a console block, and what the page shows after each."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith(("$ ", "hubbub "))]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        command, end = lines[start].removeprefix("$ "), start + 1
        while command.count('"') % 2 and end < stop:
            command, end = f"{command}\n{lines[end].removeprefix('> ')}", end + 1
        words = shlex.split(command, comments=True)
        if words[:1] == ["hubbub"]:
            yield words[1:], "\n".join(lines[end:stop])


def run(words: Sequence[str], screen: str, *, played: bool, folder: Path) -> None:
    check_command(words)
    if played:
        _, seen = terminal(*words, cwd=folder)
        same(screen, seen, ["noisy"])


def check_command(words: Sequence[str]) -> None:
    """The command exists and takes these options; nothing is run."""
    group: click.Command = commands
    context = click.Context(commands)
    rest = list(words)
    while isinstance(group, click.Group) and rest and not rest[0].startswith("-"):
        found = group.get_command(context, rest.pop(0))
        assert found is not None, words
        group = found
    with contextlib.suppress(click.exceptions.Exit), contextlib.redirect_stdout(io.StringIO()):
        group.make_context(words[0] if words else "hubbub", rest, parent=context)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hb.Session]:
    folder = tmp_path_factory.mktemp("visits")
    make_tables(folder)
    columns = {
        "age": hb.between(0, 120),
        "ward": hb.one_of("A", "B", "C"),
        "cost": hb.between(0, 500),
        "at": hb.between("2025-01-01", "2025-12-31"),
    }
    rows = pq.read_table(folder / "visits.parquet")
    rows = rows.append_column("at", rows["day"].cast(pa.timestamp("us")))  # an example beside those of the page's table
    visits = hb.table(rows, unit="patient_id", max_groups=3, max_rows=2, columns=columns)
    tables = {"visits": visits, "wards": hb.public(folder / "wards.csv")}
    with hb.Session(tables, budget=hb.Budget(epsilon=1), ledger=folder / "budget.db") as opened:
        yield opened


def sql_blocks() -> list[tuple[str, str]]:
    return [(n, b.text) for n, p in zip(NAMES, PAGES, strict=True) for b in blocks(p) if b.info == "sql"]


def test_a_question_fits_the_width_of_its_page() -> None:
    """At 1280 px a line of the built pages has room for 88 characters of code."""
    assert [(page, line) for page, sql in sql_blocks() for line in sql.splitlines() if len(line) > 84] == []


def refusals() -> list[tuple[str, str, str]]:
    """Rows of tables headed "refused": page, what is refused, what is answered (in backticks)."""
    found = []
    for name, page in zip(NAMES, PAGES, strict=True):
        for table in re.findall(r"^\| refused.*\n\|[-| ]+\n((?:\|.*\n)+)", page.read_text("utf-8"), re.MULTILINE):
            for row in table.splitlines():
                asked, instead = re.split(r"(?<!\\)\|", row.strip("|"))[:2]
                found.append((name, asked.strip(" `"), "".join(re.findall(r"`(SELECT .*?)`", instead))))
    return found


@pytest.mark.parametrize(("page", "sql"), sql_blocks())
def test_every_sql_block_is_answered(session: hb.Session, page: str, sql: str) -> None:
    assert session.check(sql, epsilon=0.1).affordable


@pytest.mark.parametrize(("page", "asked", "instead"), refusals())
def test_what_a_page_calls_refused_is_and_what_it_offers_is_answered(
    session: hb.Session, page: str, asked: str, instead: str
) -> None:
    with pytest.raises((hb.QueryError, hb.PolicyError)):
        session.check(asked, epsilon=0.1)
    if instead:
        assert session.check(instead, epsilon=0.1).affordable


_AGGREGATES = re.compile(r"(?<=\n\| aggregate \| value \| what it needs \|\n\|---\|---\|---\|\n)(\|.*\n)+")
_GROUPING = ("`GROUPING(key, ...)`", "which keys a row of ROLLUP, CUBE or GROUPING SETS sums over, as bits; exact", "")


def test_the_table_of_aggregates_is_that_of_the_registry() -> None:
    """`HUBBUB_GOLDEN=write` writes it anew."""
    page = ROOT / "docs/reference/sql.md"
    rows = [row for family in FAMILIES for row in family.reference]
    told = "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |") for row in (*rows, _GROUPING))
    text = page.read_text("utf-8")
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        page.write_text(_AGGREGATES.sub(lambda _: told, text), "utf-8")
    found = _AGGREGATES.search(page.read_text("utf-8"))
    assert found is not None
    assert found[0] == told


def function_examples() -> list[str]:
    page = (ROOT / "docs/reference/sql.md").read_text("utf-8")
    rows = page.split("\n| function | example | value |\n|---|---|---|\n")[1].split("\n\n")[0].splitlines()
    return [re.split(r"(?<!\\)\|", row)[2].strip(" `").replace("\\|", "|") for row in rows]


@pytest.mark.parametrize("example", function_examples())
def test_every_function_s_example_is_answered(session: hb.Session, example: str) -> None:
    assert session.check(f"SELECT COUNT({example}) FROM visits", epsilon=0.1).affordable


@pytest.mark.parametrize("word", ["DATE", "TIMESTAMP"])
def test_the_constants_of_the_page_are_read(session: hb.Session, word: str) -> None:
    entry = (ROOT / "docs/reference/sql.md").read_text("utf-8").split("\n`constant`\n: ")[1].split("\n\n")[0]
    (constant,) = re.findall(rf"`({word} '[^']+')`", entry)
    assert session.check(f"SELECT COUNT(*) FROM visits WHERE day < {constant}", epsilon=0.1).affordable


def test_every_function_has_its_place() -> None:
    page = (ROOT / "docs/reference/sql.md").read_text("utf-8")
    assert [n for n in FUNCTIONS if f"`{n}`" not in page and not n.startswith("CAST_")] == []


def reference() -> str:
    return "\n".join(p.read_text("utf-8") for p in (ROOT / "docs/reference").rglob("*.md"))


def headings(text: str) -> set[str]:
    return {h.strip("` ") for h in re.findall(r"^#+ +(.*)$", re.sub(_FENCE, "", text), re.MULTILINE)}


def test_every_public_name_has_its_place_in_the_reference() -> None:
    text = reference()
    entries = headings(text) | set(re.findall(r"^(?:\| )?`(?:hubbub\.|hb\.)?([\w]+)[`(]", text, re.MULTILINE))
    entries |= {re.split(r"[(\s]", h.removeprefix("hubbub."))[0] for h in headings(text)}
    assert [n for n in hb.__all__ if n not in entries] == []


@pytest.mark.parametrize("name", ["Session", "Release", "Check"])
def test_every_method_of_a_handle_has_its_place(name: str) -> None:
    home = {"Session": "hubbub.session", "Check": "hubbub.session.check", "Release": "hubbub.answer.release"}[name]
    thing = getattr(importlib.import_module(home), name)
    text = (ROOT / "docs/reference" / ("release.md" if name == "Release" else "session.md")).read_text("utf-8")
    fields = getattr(thing, "__dataclass_fields__", {})
    for member in {m for m in (*vars(thing), *fields) if not m.startswith("_")}:
        assert re.search(rf"`(?:\w+\.)?{member}\b", text), member


def test_every_error_class_has_its_page_with_an_example_and_a_way_out() -> None:
    errors = {n for n in hb.__all__ if isinstance(getattr(hb, n), type) and issubclass(getattr(hb, n), Exception)}
    assert errors >= {"QueryError", "PolicyError", "BudgetError", "EngineError", "InternalError"}
    assert "HubbubError" in headings((ROOT / "docs/reference/errors.md").read_text("utf-8"))
    for name in errors - {"HubbubError"}:
        page = ROOT / "docs/reference/errors" / (re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower() + ".md")
        text = page.read_text("utf-8")
        assert text.startswith(f"# `{name}`\n")
        assert any(b.info.startswith("text") and b.follows for b in blocks(page)), name
        assert "**What to do.**" in text
        assert f"Exit code {getattr(hb, name).exit_code}." in text


def test_the_picture_of_a_charge_has_the_states_and_steps_of_the_ledger() -> None:
    drawn = (ROOT / "docs/reference/states-of-a-charge.svg").read_text("utf-8")
    assert set(re.findall(r'data-state="(\w+)"', drawn)) | {"closed"} == set(get_args(State))
    steps = {(a, b) for a, b in re.findall(r'data-from="(\w+)" data-to="(\w+)"', drawn)}
    assert {(a, b) for a, following in _NEXT.items() for b in following} <= steps
    opened = {(a, b) for a in OPEN for b in ("withdrawn", "lost")}
    assert steps - opened - {(a, b) for a, following in _NEXT.items() for b in following} == {
        ("drawing", "stored"), ("withdrawn", "retried"), ("lost", "retried"),
    }  # fmt: skip
    assert opened <= steps | {("retried", b) for b in ("withdrawn", "lost")}
    assert "#" not in re.sub(r"url\(#[\w-]+\)", "", drawn), "a colour of its own is lost on a dark page"


def test_every_command_has_its_heading() -> None:
    found = headings((ROOT / "docs/reference/command-line.md").read_text("utf-8"))
    for name in COMMANDS:
        assert any(h == f"hubbub {name}" or h.startswith(f"hubbub {name} ") for h in found), name


def test_every_page_is_linked_and_every_link_leads_somewhere() -> None:
    for name, page in zip(NAMES, PAGES, strict=True):
        text = re.sub(_FENCE, "", page.read_text("utf-8"))
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target:
                place = ROOT / "docs" / target.lstrip("/") if target.startswith("/") else page.parent / target
                assert place.exists(), (name, target)
        for target in re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", text):
            path = ROOT / "docs" / target.lstrip("/") if target.startswith("/") else page.parent / target
            assert any(Path(os.path.normpath(path) + end).exists() for end in (".md", ".ipynb")), (name, target)


OPENDP = (
    "make_alp_queryable", "make_canonical_noise", "make_composition", "make_fully_adaptive_composition",
    "make_gaussian",
    "make_gaussian_threshold", "make_geometric", "make_laplace", "make_laplace_threshold", "make_noisy_max",
    "make_noisy_top_k", "make_privacy_filter", "make_private_expr", "make_private_group_by", "make_private_lazyframe",
    "make_private_quantile", "make_randomized_response", "make_randomized_response_bitvec",
    "make_randomized_response_bool", "make_report_noisy_max_gumbel", "make_select_private_candidate",
    "make_user_measurement",
)  # fmt: skip


def test_who_knows_opendp_finds_each_measurement_on_one_page() -> None:
    page = (Path(__file__).parents[1] / "docs/coming-from/from-opendp.md").read_text("utf-8")
    assert [name for name in OPENDP if f"`{name}`" not in page] == []


def test_the_cookbook_answers_forty_questions_and_each_is_run() -> None:
    recipes = [
        part for p in (ROOT / "docs/cookbook").glob("*.md") for part in re.split(r"(?m)^## ", p.read_text("utf-8"))[1:]
    ]
    assert len(recipes) >= 40
    assert [
        recipe.splitlines()[0] for recipe in recipes if not re.search(r"(?m)^```(python|sql|console)", recipe)
    ] == []


def test_no_page_says_what_this_machine_is_called() -> None:
    for name, page in zip(NAMES, PAGES, strict=True):
        assert not re.search(r"/work/|/root/|/tmp/|/home/", page.read_text("utf-8")), name
