"""The words of a ledger's lines, beside the chain: a line holds a commitment to them, so that they can be removed.

    commitment = "#" + SHA-256(salt, words)      salt: 128 random bits of its own for each line

A question's text, the text of a refused one and the payload of an answer stand in the table `wording`; the row that the
chain covers holds the commitment alone. While the words are there, `verify` compares. Once a steward has removed them
(`Steward.redact`, a line of its own), the chain is as it was, link by link, and the salt, which went with them, keeps
whoever guesses a text from testing the guess. Rows of older schemas hold their words themselves, and keep them.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hubbub.ledger.hash_chain import Value

__all__ = ["REMOVED", "WORDS", "commitment", "is_commitment", "separated", "shown", "shown_by",
           "without_now", "words_of"]  # fmt: skip

WORDS: Final = {"charge": "sql", "schedule": "ask", "refusal": "sql", "release": "payload"}
"""The tables whose lines commit to words, and the column of the commitment."""

REMOVED: Final = "(removed)"
"""What is shown in place of words that were removed."""

_COMMITMENT: Final = re.compile(r"#[0-9a-f]{64}")


def commitment(salt: str, words: str) -> str:
    """What a line holds in place of its words.

    >>> commitment("00", "SELECT 1")[:9]
    '#f77dc04e'
    """
    return f"#{hashlib.sha256(f'{salt} {words}'.encode()).hexdigest()}"


def is_commitment(text: object) -> bool:
    """Whether a row holds a commitment; those of older schemas hold the words themselves."""
    return isinstance(text, str) and _COMMITMENT.fullmatch(text) is not None


def separated(row: Sequence[Value], at: int) -> tuple[list[Value], str, str]:
    """A row with a commitment at place `at`, its salt, and the words."""
    salt, words = uuid.uuid4().hex, str(row[at])
    return [*row[:at], commitment(salt, words), *row[at + 1 :]], salt, words


def words_of(kind: str, name: str | None = None) -> str:
    """SQL for the words of a row of `kind`: from `wording`, or as an older schema kept them; else the commitment.

    name: that of the table in the statement.

    >>> words_of("release")
    'COALESCE((SELECT w.content FROM wording AS w WHERE w.serial = release.serial), release.payload)'
    """
    table = name or kind
    return f"COALESCE((SELECT w.content FROM wording AS w WHERE w.serial = {table}.serial), {table}.{WORDS[kind]})"


def shown(words: str) -> str:
    """Words as people read them.

    >>> shown("SELECT 1"), shown(f"#{'0' * 64}")
    ('SELECT 1', '(removed)')
    """
    return REMOVED if is_commitment(words) else words


def shown_by(ask: str) -> tuple[Any, Any]:
    """What an answer is shown by, beside what was drawn."""
    asked = json.loads(ask)
    options = {name: value for name, value in asked.get("options", {}).items() if name not in ("epsilon", "rho")}
    return str(asked.get("sql", "")).strip(), options


def without_now(ask: str) -> dict[str, Any]:
    """What is asked, whenever it is, and whatever had been found of it by then."""
    return {name: value for name, value in json.loads(ask).items() if name not in ("now", "known", "capped")}
