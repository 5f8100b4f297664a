"""Every public name with its signature, as recorded: none goes away by accident, and none changes unseen.

`HUBBUB_GOLDEN=write` writes `public_names.txt` anew. A name goes only after a release that warns, with a line under
Removed in the changelog and an error that names its new place.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from pathlib import Path

FILE = Path(__file__).parent / "public_names.txt"
ROOMS = [
    "",
    "accounting",
    "attacks",
    "audit",
    "collect",
    "games",
    "learning",
    "local",
    "mechanisms",
    "noise",
    "plots",
    "queries",
]
ROOMS += ["remedies", "synthesis", "verbs"]


def _signature(found: object) -> str:
    if not callable(found):
        return ""
    try:
        written = inspect.signature(found)
        public = [_short(p) for p in written.parameters.values() if not p.name.startswith("_")]
        text = str(written.replace(parameters=public))
    except (TypeError, ValueError):
        return "(...)"
    return re.sub(r" at 0x[0-9a-f]+", "", text).replace("hubbub.", "")


def _short(parameter: inspect.Parameter) -> inspect.Parameter:
    """A default that fills a page is not a part of the name: a list of questions grows."""
    return parameter if len(repr(parameter.default)) < 80 else parameter.replace(default=...)


def names() -> list[str]:
    """A line for each name of a room, and for each public name of a class that it holds."""
    lines = []
    for room in ROOMS:
        module = importlib.import_module(f"hubbub.{room}".rstrip("."))
        for name in sorted(module.__all__):
            found, whole = getattr(module, name), f"{room}.{name}".lstrip(".")
            lines.append(f"{whole}{_signature(found)}")
            if inspect.isclass(found):
                lines += [
                    f"{whole}.{n}{_signature(getattr(found, n, None))}" for n in dir(found) if not n.startswith("_")
                ]
    return lines


def test_every_public_name_is_there_with_its_signature() -> None:
    found = "\n".join(names()) + "\n"
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        FILE.write_text(found, "utf-8")
    before = FILE.read_text("utf-8").splitlines()
    assert sorted(set(before) - set(found.splitlines())) == []  # gone, or changed
    assert sorted(set(found.splitlines()) - set(before)) == []  # new: record it
