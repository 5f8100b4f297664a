"""Which classes have more than twenty public names, inherited ones included: a list that can only become shorter.

What a class inherits from outside hubbub does not count, nor what it overrides of that: sqlglot itself writes 31 of its
names into each of its dialects. A dialect of ours is a table of texts, and does not count either; a session and the
verbs on rows are what people type, and have a number of their own. Records that are read field by field stand in the
list with the others, which are to come down by values that group their names.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import hubbub
from hubbub.sql.emit.dialect import Dialect

LIST = Path(__file__).parent / "wide_classes.txt"
MOST = 20
TYPED = {"hubbub.session.session.Session": 28, "hubbub.verbs.rows.Rows": 36}


def _classes() -> Iterator[type]:
    for found in pkgutil.walk_packages(hubbub.__path__, "hubbub."):
        if found.name.rpartition(".")[2] == "__main__":
            continue
        try:
            module = importlib.import_module(found.name)
        except ImportError:  # of an extra that is not installed
            continue
        yield from (c for c in vars(module).values() if _counts(c, found.name))


def _counts(what: object, module: str) -> bool:
    return inspect.isclass(what) and what.__module__ == module and not issubclass(what, Dialect)


def _public(one: type) -> set[str]:
    own, others = [], set()
    for c in one.__mro__:
        if c.__module__.partition(".")[0] == "hubbub":
            own += [*vars(c), *getattr(c, "__dataclass_fields__", ())]
        else:
            others |= set(vars(c))
    return {name for name in own if not name.startswith("_")} - others


def test_classes_of_more_than_twenty_public_names_only_become_fewer() -> None:
    """HUBBUB_GOLDEN=write takes out what has become narrower; a class that has become wider is never written."""
    every = {f"{c.__module__}.{c.__qualname__}": len(_public(c)) for c in _classes()}
    wide = {where: n for where, n in every.items() if n > TYPED.get(where, MOST)}
    listed = {where: int(n) for n, where in (line.split(" ", 1) for line in LIST.read_text("utf-8").splitlines())}
    assert {where: n for where, n in wide.items() if n > listed.get(where, MOST)} == {}
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        LIST.write_text("".join(f"{n} {where}\n" for where, n in sorted(wide.items())), "utf-8")
    else:
        assert {where: n for where, n in listed.items() if n > wide.get(where, MOST)} == {}, "HUBBUB_GOLDEN=write"
