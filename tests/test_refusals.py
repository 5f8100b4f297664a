"""Each refusal of a question has its way out as data, or a reason why there is none that a program could apply."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import test_remedies
import test_remedies_of_options
import test_rewrites

SOURCE = Path(__file__).parents[1] / "src/hubbub"
LIST = Path(__file__).parent / "refusals.txt"
ROOMS = ("sql", "tables", "answer", "session")
ERRORS = ("QueryError", "PolicyError", "ParameterError", "BudgetError", "refuse", "marked")
MOST_IN_WORDS = 205
REASONS = {
    "form": "an option or a constant has not the form that the text states; which was meant only its writer knows",
    "meaning": "no one meaning in SQL (an unknown name, a part too many or too few), and only its writer knows",
    "absent": "SQL that is not computed over people's rows, with nothing in its place that would be the same",
    "promise": "nobody may be told: rows of people, the engine's own state, what only one unit space may decide",
    "size": "larger than is read or computed; which part to leave out only its writer knows",
    "types": "the source holds values of a type that is not read, or keys of two types: store them otherwise",
    "declaring": "a declaration, a table or a session that cannot be made: no question is asked yet",
    "state": "what stands in a ledger, an answer, a file or another process, and no question or declaration changes",
}
"""Why a refusal may have words alone."""
ELSEWHERE = {
    "tables/price.py:assemble",  # tests/tables/test_price.py: no session comes so far
    "session/whole_rows.py:ask_marginals",  # test_remedies.test_marginals_that_would_be_noise
    "synthesis/session_adapter.py:hardly_any",  # the text of synthetic_table
}
HANDED_ON = {
    # what another function says, in its words and with its remedies
    "sql/bind/context.py:refuse", "sql/bind/expression.py:refuse", "sql/text/locate.py:refuse",
    "sql/text/locate.py:marked", "session/ask.py:answered", "session/prepare.py:_noted",
    # `ways` and `questions_instead` of sql/text/hints.py, whose cases are theirs
    "sql/bind/aggregate.py:_check_called", "sql/bind/aggregate.py:_unsupported",
    "sql/bind/expression.py:_unsupported", "sql/bind/query.py:_rows",
}  # fmt: skip


def _errors(*, with_remedy: bool) -> Iterator[str]:
    """The file and function of each error that is made, once for each."""
    for file in sorted(file for room in ROOMS for file in (SOURCE / room).rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        yield from (f"{name}:{where}" for where in _made(ast.parse(file.read_text("utf-8")), "", with_remedy))


def _made(node: ast.AST, function: str, with_remedy: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef) else function
        if isinstance(child, ast.Call):
            called = child.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name in ERRORS and any(k.arg == "remedy" for k in child.keywords) is with_remedy:
                yield inside
        yield from _made(child, inside, with_remedy)


def test_every_refusal_with_a_remedy_has_a_case() -> None:
    cases = {c.site for m in (test_remedies, test_remedies_of_options) for c in m.CASES.values()}
    tried = cases | {site for site, _, _ in test_rewrites.REWRITTEN} | ELSEWHERE
    assert set(_errors(with_remedy=True)) - tried - HANDED_ON == set()


def test_every_refusal_in_words_alone_has_a_reason() -> None:
    """The list is complete, and only becomes shorter. HUBBUB_GOLDEN=write renews its numbers; give the reasons."""
    there = Counter(_errors(with_remedy=False))
    listed = [line.split(" ", 2) for line in LIST.read_text("utf-8").splitlines()]
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        listed = _renewed(listed, there)
        LIST.write_text("".join(f"{' '.join(line)}\n" for line in listed), "utf-8")
    assert {reason for _, reason, _ in listed} == set(REASONS)
    counted = Counter[str]()
    for count, _, where in listed:
        counted[where] += int(count)
    assert counted == there
    assert there.total() <= MOST_IN_WORDS


def _renewed(listed: list[list[str]], there: Counter[str]) -> list[list[str]]:
    """The lines of functions whose number is still right, and one without a reason for each other."""
    known = Counter[str]()
    for count, _, where in listed:
        known[where] += int(count)
    kept = [line for line in listed if known[line[2]] == there[line[2]]]
    new = [[str(count), "why?", where] for where, count in there.items() if known[where] != count]
    return sorted([*kept, *new], key=lambda line: (line[2], line[1]))
