"""Habits of the house: light imports, one home for each public name, floors that hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.errors import how_to_install

ROOT = Path(__file__).parents[1]
HEAVY = "numpy pandas polars scipy duckdb pyarrow sqlglot matplotlib cryptography".split()
LOADED = f"import sys; print([m for m in {HEAVY!r} if m in sys.modules])"


@pytest.mark.parametrize(
    "program",
    [
        "import hubbub",
        "import hubbub; hubbub.Budget(epsilon=1); hubbub.PolicyError",
        "import hubbub.accounting, hubbub.ledger.store, hubbub.ledger.policy",
        "import hubbub; hubbub.one_of('A'); hubbub.table('x.parquet', unit='id')",
        "import hubbub.cli.main as m; m.run(['--help'])",
    ],
    ids=["import", "budget", "ledger", "declare", "help"],
)
def test_the_door_is_light(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{LOADED}"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_public_name_is_there_and_has_a_docstring() -> None:
    for name in hb.__all__:
        thing = getattr(hb, name)
        assert name == "__version__" or getattr(thing, "__doc__", None), name
    assert set(dir(hb)) == set(hb.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = hb.nothing


def test_every_room_has_a_docstring_at_its_door() -> None:
    for door in sorted((ROOT / "src/hubbub").rglob("__init__.py")):
        assert re.match(r'"""\S', door.read_text()), door


def test_imports_point_down_only() -> None:
    done = subprocess.run([Path(sys.executable).parent / "lint-imports"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_every_error_class_has_a_page() -> None:
    pages = [ROOT / "docs/reference/errors.md", *(ROOT / "docs/reference/errors").glob("*.md")]
    page = "\n".join(p.read_text() for p in pages)
    for name in hb.__all__:
        thing = getattr(hb, name)
        if isinstance(thing, type) and issubclass(thing, Exception):
            assert re.search(rf"^#+ `?{name}`?$", page, re.MULTILINE), name


def test_no_file_outside_noise_touches_random_bits() -> None:
    banned = re.compile(r"np\.random|default_rng|^\s*(import|from) (random|secrets)\b|os\.urandom", re.MULTILINE)
    for file in (ROOT / "src/hubbub").rglob("*.py"):
        if "noise" not in file.parts:
            assert not banned.search(file.read_text()), file


def test_no_text_says_to_install_a_name_that_is_not_ours() -> None:
    """Until our name on a package index is ours, whoever registers it would own everybody who follows such a text."""
    told = re.compile(
        r"(pip3?|uv|pipx|conda|poetry) (tool )?(install|add|pip install)[^\n]*[\s'\"`]hubbub|['\"`]hubbub\["
    )
    pages = [*ROOT.glob("*.md"), *(p for of in ("src", "docs") for p in (ROOT / of).rglob("*"))]
    for page in (p for p in pages if p.suffix in (".md", ".py", ".toml", ".sh")):
        found = told.search(page.read_text("utf-8"))
        assert found is None, f"{page}: {found and found[0]}"
    assert all(told.search(f"pip install {name}") for name in ("hubbub", "'hubbub[demo]'", "-U hubbub"))
    assert not told.search(how_to_install("demo"))
    assert not told.search("pip install '.[demo]'")


def test_every_statement_and_pitfall_that_is_cited_stands_in_the_documentation() -> None:
    stated = set(re.findall(r"(?m)^\| ([A-Z]\d+) \|", (ROOT / "docs/theorems.md").read_text("utf-8")))
    pitfalls = set(re.findall(r"(?m)^\| (P\d+) \|", (ROOT / "docs/contributing/pitfalls.md").read_text("utf-8")))
    for file in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]):
        text = file.read_text("utf-8")
        assert set(re.findall(r"theorems\.md`, ([A-Z]\d+)", text)) <= stated, file
        assert set(re.findall(r"pitfalls? (P\d+)", text)) <= pitfalls, file
    assert {f"P{n}" for n in range(1, 33)} <= pitfalls


def test_what_contributing_names_is_there() -> None:
    named = re.findall(r"`([\w/]+(?:/|\.py|\.md))`", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    places = [
        ROOT,
        ROOT / "src/hubbub",
        ROOT / "src/hubbub/sql/bind",
        ROOT / "src/hubbub/noise",
        ROOT / "src/hubbub/accounting",
    ]
    places += [ROOT / "src/hubbub/engines/duckdb", ROOT / "tests"]
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert missing == []
    assert len(named) > 30


@cache
def _modules() -> dict[str, tuple[int, ast.Module]]:
    """The modules of the source: how many lines each has, and its tree. They are read once for all tests."""
    files = {
        file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in sorted((ROOT / "src").rglob("*.py"))
    }
    return {name: (len(text.splitlines()), ast.parse(text)) for name, text in files.items()}


def _statements(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function below its signature and docstring."""
    body = function.body
    if (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        body = body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_no_function_and_no_file_is_too_long_to_be_read() -> None:
    long_files = [name for name, (lines, _) in _modules().items() if lines > 550]
    long_functions = [
        f"{name}: {node.name}"
        for name, (_, tree) in _modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _statements(node) > 50
    ]
    assert long_files == []
    assert long_functions == []


WRITTEN_BY_NAME = (
    "attacks/hashes.py", "attacks/tracing.py", "audit/report.py", "local/estimate.py", "local/set_valued.py",
    "mechanisms/quantiles.py", "verbs/functions.py",
)  # fmt: skip
"""Where a public argument or field has such a name: `f.mean(of=...)`, `interval(of="population")`, `reversal.found`."""


def test_results_have_the_name_of_what_they_are() -> None:
    """Nothing is called `found`, and no argument, variable or field `of`, but what people write by name."""
    wrong = [
        f"{name}:{node.lineno} {word}"
        for name, node, word in _bound_names()
        if word in ("found", "of", "gives") and not name.endswith(WRITTEN_BY_NAME)
    ]
    assert wrong == []


def _bound_names():
    for name, (_, tree) in _modules().items():
        for node in ast.walk(tree):
            match node:
                case ast.Name(id=word, ctx=ast.Store()) | ast.arg(arg=word):
                    yield name, node, word
                case ast.MatchAs(name=str(word)) | ast.MatchStar(name=str(word)):
                    yield name, node, word
                case ast.FunctionDef(name=word, args=arguments) if not _is_method(arguments):
                    yield name, node, word


def _is_method(arguments: ast.arguments) -> bool:
    first = [*arguments.posonlyargs, *arguments.args][:1]
    return [a.arg for a in first] in (["self"], ["cls"])


def test_what_people_hold_has_no_more_names_than_they_can_look_through(tmp_path: Path) -> None:
    """By `dir` of an instance: inherited names and the fields that only an instance has. The ledger's parts
    have a test of their own (tests/ledger)."""
    table = hb.table(pa.table({"who": [1, 2]}), unit="who", max_rows=1)
    with hb.Session({"people": table}, budget=hb.Budget(1), ledger=str(tmp_path / "budget.db")) as session:
        held = {session: 28, session.table("people"): 36}
        assert {type(one).__name__: len(names) for one, most in held.items() if len(names := _public(one)) > most} == {}


def _public(one: object) -> list[str]:
    return [name for name in dir(one) if not name.startswith("_")]


def test_no_child_looks_for_modules_in_the_folder_where_it_is_started() -> None:
    """A `json.py` that lies there would run with the rights of whoever types the command: `-P` leaves it out."""
    started = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.List) and [ast.unparse(e) for e in node.elts[:1]] == ["sys.executable"]
        if [ast.unparse(e) for e in node.elts[1:2]] != ["'-P'"]
    ]
    assert started == []
