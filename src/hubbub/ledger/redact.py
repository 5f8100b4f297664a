"""The text of a policy as the ledger may keep it: the same declarations, no password.

Every address in a string is written as a record keeps it, and everything after one in a comment is left out
(`hubbub.addresses`). The rest stays letter by letter, so that what a steward reviewed can be found again.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Final

from hubbub.addresses import UNREADABLE, is_address, kept_address, masked

__all__ = ["without_passwords"]

_TOKEN: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*",
    re.DOTALL,
)
_SCHEME: Final = re.compile(r"postgres(?:ql)?(?:\+\w+)?:(?:/|(?=\S)[^\n]*@).*", re.DOTALL | re.IGNORECASE)


def without_passwords(text: str) -> str:
    """A policy's text, every address in it as it may be shown.

    >>> without_passwords('url = "postgresql://ada:secret@db/x"  # was postgresql://eve:hush@db/x')
    'url = "postgresql://ada@db/x"  # was postgresql://...'
    """
    return _TOKEN.sub(lambda token: _shown(token[0]), text)


def _shown(token: str) -> str:
    if token.startswith("#"):
        return masked(_SCHEME.sub(UNREADABLE, token))
    try:
        value = tomllib.loads(f"x = {token}")["x"]
    except tomllib.TOMLDecodeError:  # quotes that are not a string of TOML: they stand in a longer text
        return token
    shown = kept_address(value) if is_address(value) else _SCHEME.sub(UNREADABLE, value)
    return token if shown == value else json.dumps(shown, ensure_ascii=False)
