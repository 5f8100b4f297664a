"""The same refusal in the words of the command line: what Python takes as an argument is an option here, or a line of
the policy file.

Only what a message says to write next is put otherwise; what it says was found stays. A message that is not known here
is shown as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

__all__ = ["at_the_command_line"]

_Match = re.Match[str]


def _key(name: str) -> str:
    """A name as TOML writes it before an equals sign.

    >>> _key("ward"), _key("cost (EUR)")
    ('ward', '"cost (EUR)"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _between(match: _Match) -> str:
    return f"{_key(match[1])} = {{ between = [{match[2]}] }} under the columns of its table in the policy file"


def _one_of(match: _Match) -> str:
    return f"{_key(match[1])} = {{ one_of = [...] }} under the columns of its table in the policy file"


def _ceiling(match: _Match) -> str:
    lines = " and ".join(f"{part.replace('=', ' = ').replace(chr(39), chr(34))}" for part in match[1].split(", "))
    return (
        f"write {lines} under [budget] of the policy file again. A steward raises a ceiling: `hubbub ledger raise "
        "--epsilon NUMBER --reason TEXT`, then the policy file says the same number."
    )


_WORDS: Final[tuple[tuple[str, str | Callable[[_Match], str]], ...]] = (
    (r'columns=\{"([^"]*)": hb\.between\(([^()]*)\)\}', _between),
    (r'columns=\{"([^"]*)": hb\.one_of\(\.\.\.\)\}', _one_of),
    (r'keys=\{"([^"]*)": \[\.\.\.\]\}', r"--keys '\1=VALUE,VALUE'"),
    (r"params=\{'([^']*)': \.\.\.\}", r"-p \1 VALUE"),
    (r"hb\.one_of\(\.\.\., others=True\)", "others = true beside its one_of in the policy file"),
    (r"hb\.one_of\(\.\.\., trim=True\)", "trim = true beside a column's one_of in the policy file"),
    (r"\(hb\.one_of, keys=\)", "(one_of in the policy file, or --keys)"),
    (r"\bas in hb\.Budget\(epsilon=3, delta=1e-6\)", "as in delta = 1e-6 under [budget] of the policy file"),
    (r"\bask with Budget\(([^()]*)\)\.", _ceiling),
    (r"^this session declares Budget", "the policy file declares Budget"),
    (r"\b(epsilon|rho|within|at_most)=\.\.\.", lambda match: "--" + match[1].replace("_", "-")),
    (r"\b(max_total|max_groups|max_rows)=\.\.\.", r"\1 = ..."),
    (r"\brows_per_unit=\.\.\.", "--max-rows"),
    (r"^within=", "--within"),
    (r"\bwith at_most\b", "with --at-most"),
)


def at_the_command_line(message: str) -> str:
    """The first line of an error, in these words.

    >>> at_the_command_line('Declare them: columns={"age": hb.between(low, high)}; or clamp.')
    'Declare them: age = { between = [low, high] } under the columns of its table in the policy file; or clamp.'
    """
    for written, here in _WORDS:
        message = re.sub(written, here, message)
    return message
