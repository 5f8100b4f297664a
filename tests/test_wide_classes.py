"""No class has more than twenty public names, inherited ones included.

What a class inherits from outside hubbub does not count, nor what it overrides of that: sqlglot itself writes 31 of its
names into each of its dialects. A dialect of ours is a table of texts, and does not count either; a session and the
verbs on rows are what people type, and have a number of their own, and so have the verbs on columns, whose words are
those of SQL's functions. A frozen record is read field by field: its fields are its data, and what
is counted is what it does.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import hubbub
from hubbub.sql.emit.dialect import Dialect

MOST = 20
TYPED = {"hubbub.session.session.Session": 28, "hubbub.verbs.rows.Rows": 36, "hubbub.verbs.terms.Term": 55}


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
            own += vars(c)
            if "__dataclass_params__" in vars(c):
                fields = set(c.__dataclass_fields__)  # type: ignore[attr-defined]
                own += fields
                others |= fields if c.__dataclass_params__.frozen else set()  # type: ignore[attr-defined]
        else:
            others |= set(vars(c))
    return {name for name in own if not name.startswith("_")} - others


def test_no_class_has_more_public_names_than_a_reader_keeps_in_mind() -> None:
    every = {f"{c.__module__}.{c.__qualname__}": len(_public(c)) for c in _classes()}
    assert {where: n for where, n in every.items() if n > TYPED.get(where, MOST)} == {}
    assert every.keys() >= TYPED.keys()
