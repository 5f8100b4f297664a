"""The toolbox (attacks, audit, local, games, collect) takes of a room of the core only what stands in its `__all__`.

`toolbox_names.txt` lists what it takes besides: a list that can only become shorter. Most of it checks arguments and
rounds outward; it has the same meaning everywhere, and is of no use to somebody who asks questions.
"""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).parent / "toolbox_names.txt"
TOOLBOX = ("attacks", "audit", "local", "games", "collect")


def _taken() -> Iterator[tuple[str, str]]:
    """The room of the core and the whole name of each import of the toolbox, those inside functions among them."""
    for room in TOOLBOX:
        for file in sorted((ROOT / "src/hubbub" / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hubbub."):
                    assert node.module is not None
                    yield from ((node.module.split(".")[1], f"{node.module}.{name.name}") for name in node.names)
                elif isinstance(node, ast.Import):
                    named = (name.name for name in node.names)
                    yield from ((name.split(".")[1], name) for name in named if name.startswith("hubbub."))


def _is_shown(room: str, name: str) -> bool:
    """Whether a room shows the name; a module beside the rooms is a room of its own."""
    return name.rpartition(".")[2] in getattr(importlib.import_module(f"hubbub.{room}"), "__all__", ())


def test_the_toolbox_takes_what_rooms_show() -> None:
    """HUBBUB_GOLDEN=write takes out what is not taken any more; what is new is never written."""
    hidden = {name for room, name in _taken() if room not in TOOLBOX and not _is_shown(room, name)}
    listed = set(LIST.read_text("utf-8").split())
    assert hidden - listed == set()
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        LIST.write_text("".join(f"{name}\n" for name in sorted(hidden)), "utf-8")
    else:
        assert listed - hidden == set(), "HUBBUB_GOLDEN=write"
