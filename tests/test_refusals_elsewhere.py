"""Refusals of the rooms that ask no question of their own: words alone, each with a reason, and never more of them.

`test_refusals.py` counts function by function where questions are refused. Here a reason is given for a room, or for a
file whose reason is another one: the longest name that a file's begins with decides. A way out as data is better, where
a program could apply it; then the number of its room goes down.
"""

from __future__ import annotations

import ast
from collections import Counter

from test_refusals import REASONS as OF_QUESTIONS, SOURCE, _made

REASONS = {
    **OF_QUESTIONS,
    "argument": "an argument of an algorithm of its own, of a command or of a form, and the text states what it may be",
    "outside": "a file, a server, a library or another process; what helps is done there, and not in a question",
}
"""Why a refusal may have words alone."""
WHY = {
    "cli/": "argument",
    "cli/evidence.py": "state",
    "cli/keeping.py": "state",
    "cli/ledger.py": "state",
    "cli/policy.py": "declaring",
    "cli/receipt.py": "state",
    "engines/": "outside",
    "engines/fields.py": "declaring",
    "engines/outer": "size",
    "engines/outer.py": "types",
    "engines/registry.py": "declaring",
    "learning/": "argument",
    "learning/features.py": "declaring",
    "learning/opacus.py": "state",
    "ledger/": "state",
    "ledger/budget.py": "declaring",
    "ledger/charge.py": "form",
    "ledger/policy.py": "declaring",
    "ledger/service_policy.py": "declaring",
    "ledger/spaces.py": "declaring",
    "remote/": "outside",
    "remote/not_here.py": "absent",
    "service/": "state",
    "service/acts.py": "argument",
    "service/calibrate.py": "argument",
    "service/forms.py": "form",
    "service/people/": "argument",
    "service/serve.py": "outside",
    "synthesis/": "argument",
    "synthesis/session_adapter.py": "declaring",
    "verbs/": "form",
    "verbs/pandas_words.py": "promise",
    "verbs/read": "absent",
}
MOST = {
    "cli": 39,
    "engines": 97,
    "learning": 70,
    "ledger": 172,
    "remote": 16,
    "service": 68,
    "synthesis": 84,
    "verbs": 39,
}
"""How many each room has: a number that only becomes smaller."""


def _in_words() -> Counter[str]:
    """The file of each refusal without a remedy."""
    files = (file for room in MOST for file in sorted((SOURCE / room).rglob("*.py")))
    return Counter(
        file.relative_to(SOURCE).as_posix()
        for file in files
        for _ in _made(ast.parse(file.read_text("utf-8")), "", False)
    )


def _why(file: str) -> str:
    return max((name for name in WHY if file.startswith(name)), key=len)


def test_every_refusal_of_the_other_rooms_has_a_reason() -> None:
    used = {_why(file) for file in _in_words()}
    assert used == set(WHY)  # none stands here for nothing
    assert set(WHY.values()) <= set(REASONS)


def test_refusals_in_words_alone_become_fewer_in_each_room() -> None:
    there = Counter[str]()
    for file, count in _in_words().items():
        there[file.partition("/")[0]] += count
    assert {room: (n, MOST[room]) for room, n in there.items() if n > MOST[room]} == {}
