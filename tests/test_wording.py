"""What a person reads is written subject first: in texts of the code, helps of commands, and the documentation.

Newcomers read these turns twice, or not at all. A turn that is refused here has a plain one beside it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src/hubbub").rglob("*.py"))
TEMPLATES = sorted((ROOT / "src/hubbub/service/pages/templates").glob("*.html"))
PAGES = sorted(
    [
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
        *(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts),
    ]
)

EVERYWHERE = {
    r"\bof which nothing\b": "that nothing ...",
    r"\bpromises the same but\b": "makes the same promise, except with probability ...",
    r"\bsmall vocabulary\b": "a short list of allowed operations",
    r"\bmore of those present\b": "percentage points more often",
    r"\bWhoever (?:believes|says so)\b": "Someone who ...",
    r"\blying one\b": "one dishonest report",
    r"\bless wrongly found\b": "members found minus non-members wrongly accused",
    r"\bspent included\b": "what it has already spent counts toward it",
}
IN_CODE = {
    r"\b[Ww]hoever\b": "someone who, all who",
    r"(?:^|[.:;\n] )Where (?!to |the \w+ (?:is|are), )[^?.]*, ": "If ..., ...",
    r"(?<!here )\b(?:is|are) none\b": "is not one of ..., is not valid",
    r"(?<!here )\b(?:is|are) no (?!longer\b|more\b)[a-z]": "is not a ..., are not ...",
    r"\bas anybody\b": "like everybody else",
    r"^Even so ": "Still, ...",
}


@cache
def texts(source: str) -> tuple[tuple[int, str], ...]:
    """A module's strings that are no docstrings, and docstrings of commands, which are their helps. Each module is read
    by a dozen tests, and parsed once.
    """
    return tuple(_texts(source))


def _texts(source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(body=[ast.Expr(value=ast.Constant() as first), *_]) if any(
                "command" in ast.unparse(d) or "group" in ast.unparse(d) for d in node.decorator_list
            ):
                yield first.lineno, str(first.value)
                skipped.add(first)
            case ast.Expr(value=ast.Constant() as alone):
                skipped.add(alone)
            case ast.JoinedStr():
                skipped.update(node.values)
                yield node.lineno, "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
            case ast.Constant(value=str()) if node not in skipped:
                yield node.lineno, node.value


def old_words(text: str, refused: dict[str, str]) -> list[str]:
    return [f"{found[0]!r}: write {new!r}" for turn, new in refused.items() if (found := re.search(turn, text))]


def test_texts_of_the_code_are_subject_first() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {wrong}"
        for path in SOURCES
        for line, text in texts(path.read_text("utf-8"))
        if " " in text
        for wrong in old_words(text, EVERYWHERE | IN_CODE)
    ]
    assert found == []


def prose(page: str) -> str:
    """A page without what stands in it as code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "x", page, flags=re.DOTALL)


def notebook(path: Path) -> str:
    """What a notebook says between its cells of code."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def test_pages_are_subject_first() -> None:
    """The documentation, the notebooks, and what people read first of all in the repository."""
    read = {page: page.read_text("utf-8") for page in PAGES}
    read |= {path: notebook(path) for path in sorted((ROOT / "docs/notebooks").glob("*.ipynb"))}
    assert len(read) > 100
    found = [
        f"{page.relative_to(ROOT)}: {wrong}"
        for page, text in read.items()
        for wrong in (*old_words(text, EVERYWHERE), *old_words(prose(text), IN_CODE))
    ]
    assert found == []
    assert len(old_words(prose("Look. Where `x` is missing, nothing is said: `whoever` may ask."), IN_CODE)) == 1


def as_read(template: str) -> str:
    """What a browser shows of a template, about: without its tags, and a letter for what is filled in."""
    bare = re.sub(r"\{[%#].*?[%#]\}|</?(?:strong|em|a|bdi|q|code)\b[^>]*>", "", template, flags=re.DOTALL)
    return re.sub(r"\{\{.*?\}\}", "x", re.sub(r"<[^>]+>", "\n", bare), flags=re.DOTALL)


def test_pages_of_the_service_are_subject_first() -> None:
    wrong = [
        f"{p.name}: {turn}"
        for p in TEMPLATES
        for turn in old_words(as_read(p.read_text("utf-8")), EVERYWHERE | IN_CODE)
    ]
    assert wrong == []
    assert len(old_words(as_read("<p>Look: <em>who</em>ever {{ x }}</p>"), IN_CODE)) == 1


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('raise E(f"the file {p} is none.")', 1),
        ('note("Where it holds, nothing is done.")', 1),
        ('@click.command("x")\ndef f():\n    """Let A spend, what it has spent included."""', 1),
        ('def f():\n    """Whoever reads this wrote it."""', 0),
        ('x = "there is no file of that name"', 0),
        ('x = "Where to write it, as JSON."', 0),
        ('x = "it is no longer there"', 0),
        ('x = "whoever asks"', 1),
    ],
)
def test_the_search_finds_them_where_a_person_reads(source: str, count: int) -> None:
    assert sum(len(old_words(text, EVERYWHERE | IN_CODE)) for _, text in texts(source)) == count


def test_comments_and_docstrings_say_is_not_a() -> None:
    """That something is no X is read twice; that there is none of it is not, nor that it is no longer or no more."""
    turn = re.compile(
        r"(?<!here )\b(?:is|are) no (?!longer\b|more\b|less\b|larger\b|worse\b|retry\b|direction\b)[a-z]+ "
    )
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if turn.search(line)
    ]
    assert found == []
