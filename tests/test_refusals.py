"""Each refusal has its way out as data, or a reason why there is none that a program could apply.

`refusals.txt` says the reason of each, from a small closed set.
"""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import test_remedies
import test_remedies_of_declarations
import test_remedies_of_options
import test_remedies_of_tables
import test_rewrites

CASES = (
    test_remedies.CASES,
    test_remedies_of_options.CASES,
    test_remedies_of_declarations.CASES,
    test_remedies_of_tables.CASES,
)
SOURCE = Path(__file__).parents[1] / "src/hubbub"
LIST = Path(__file__).parent / "refusals.txt"
ROOMS = "answer cli engines learning ledger remote service session sql synthesis tables verbs".split()
ERRORS = ("QueryError", "PolicyError", "ParameterError", "BudgetError", "refuse", "marked")
REASON = re.compile(r"^#   ([a-z-]+): ", re.MULTILINE)
MOST_IN_WORDS = 730
"""How many refusals have words alone: a number that only becomes smaller."""
ELSEWHERE = {
    "tables/price.py:assemble",  # tests/tables/test_price.py: no session comes so far
    "session/whole_rows.py:ask_marginals",  # test_remedies.test_marginals_that_would_be_noise
    "session/ask.py:to_refine",  # tests/tables/test_refine.py: what is asked is an answer
    "synthesis/session_adapter.py:hardly_any",  # the text of synthetic_table
    "engines/postgres/catalog.py:_missing",  # tests/engines/test_postgres_sources.py, which has a server
    "engines/postgres/engine.py:add",
    "ledger/charging.py:_relate",  # test_remedies_of_tables.test_neighbours_that_another_session_settled
    "service/sent.py:check_most",  # tests/service/test_caps.py
    "ledger/policy_values.py:wrong",  # test_remedies_of_declarations.test_a_policy_that_is_put_right_is_read
}
HANDED_ON = {
    # what another function says, in its words and with its remedies
    "sql/bind/context.py:refuse", "sql/bind/expression.py:refuse", "sql/text/locate.py:refuse",
    "sql/text/locate.py:marked", "session/ask.py:answered", "session/prepare.py:_noted",
    "engines/duckdb/sheets.py:sheet_columns",
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
    cases = {c.site for room in CASES for c in room.values()}
    tried = cases | {site for site, _, _ in test_rewrites.REWRITTEN} | ELSEWHERE
    assert set(_errors(with_remedy=True)) - tried - HANDED_ON == set()


def _listed() -> tuple[list[str], list[list[str]]]:
    """The first lines of the list, which say what each reason means, and count, reason and place of each other line."""
    lines = LIST.read_text("utf-8").splitlines()
    head = [line for line in lines if line.startswith("#")]
    return head, [line.split(" ", 2) for line in lines[len(head) :]]


def test_every_refusal_in_words_alone_has_a_reason() -> None:
    """The list is complete, and only becomes shorter. HUBBUB_GOLDEN=write renews its numbers; give the reasons."""
    there = Counter(_errors(with_remedy=False))
    head, listed = _listed()
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        listed = _renewed(listed, there)
        LIST.write_text("".join(f"{line}\n" for line in [*head, *map(" ".join, listed)]), "utf-8")
    assert {reason for _, reason, _ in listed} == set(REASON.findall("\n".join(head)))
    assert len({(reason, where) for _, reason, where in listed}) == len(listed)
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
