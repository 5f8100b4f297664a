"""Frozen dataclasses are the same however they were made: each class of the package, in both ways."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from hubbub.cli.query import agree

COMPARED = """
import dataclasses, importlib, inspect, pkgutil
standard = dataclasses.dataclass
from hubbub.cli import values
import hubbub
values.begin()
seen = {}
made = values.dataclass
def both(cls=None, /, **options):
    if cls is None:
        return lambda cls: both(cls, **options)
    body = dict(vars(cls))
    quick = made(cls, **options)
    if quick in values._made:
        seen[quick] = (body, options, dict(vars(quick)))
    return quick
dataclasses.dataclass = both
for module in pkgutil.walk_packages(hubbub.__path__, "hubbub."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            assert "hubbub" not in (error.name or ""), error
twin = {}
METHODS = ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__match_args__")
for quick, (body, options, after) in seen.items():
    bases = tuple(twin.get(base, base) for base in quick.__bases__)
    body = {k: v for k, v in body.items() if k not in ("__dict__", "__weakref__")}
    plain = standard(type(quick)(quick.__name__, bases, body), **options)
    twin[quick] = plain
    for name in METHODS:
        there, here = vars(plain).get(name), after.get(name)
        assert (there is None) == (here is None), (quick, name)
        if name in body and body[name] is not None:
            assert here is there, (quick, name)
    inits = plain.__init__, after.get("__init__", quick.__init__)
    a, b = (list(inspect.signature(init).parameters.values()) for init in inits)
    assert [(p.name, p.kind) for p in a] == [(p.name, p.kind) for p in b], quick
    for p, q in zip(a, b):
        assert (p.default is p.empty) == (q.default is q.empty), (quick, p)
        assert p.default is q.default or "factory" in repr(p.default), (quick, p)
    for c in (plain, quick):
        c.__abstractmethods__ = frozenset()
    x, y, z, w, u = (object.__new__(c) for c in (plain, quick, plain, quick, quick))
    fields = dataclasses.fields(quick)
    for one, values_ in ((x, 1), (y, 1), (z, 2), (w, 2), (u, 1)):
        for i, field in enumerate(fields):
            object.__setattr__(one, field.name, i * values_)
    if "__repr__" not in body and "repr" not in options:
        assert plain.__repr__(x).split("(", 1)[1] == quick.__repr__(y).split("(", 1)[1], quick
    if options.get("eq", True) and "__eq__" not in body:
        assert quick.__eq__(y, u) is True
        assert quick.__eq__(y, w) == plain.__eq__(x, z)
        assert quick.__eq__(y, x) is NotImplemented
        if "__hash__" not in body or body["__hash__"] is None:
            assert quick.__hash__(y) == plain.__hash__(x), quick
    for one, c in ((x, plain), (y, quick)):
        for act in (lambda: c.__setattr__(one, "anything", 1), lambda: c.__delattr__(one, "anything")):
            try:
                act()
            except dataclasses.FrozenInstanceError:
                continue
            raise AssertionError(quick)
print(len(seen))
"""


@pytest.mark.filterwarnings("ignore")
def test_every_frozen_class_is_as_the_standard_library_makes_it() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", COMPARED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1500:]
    assert int(done.stdout) > 300


TAKEN = """
import os
os.environ.pop("OPENBLAS_NUM_THREADS", None)
from hubbub.cli import light, values
light.begin([{command!r}])
import hubbub.tables.plan
print(hubbub.tables.plan.Plan in values._made, "OPENBLAS_NUM_THREADS" in os.environ)
"""


@pytest.mark.parametrize(("command", "taken"), [("query", True), ("check", True), ("serve", False)])
def test_it_is_done_where_one_question_is_asked(command: str, taken: bool) -> None:
    text = TAKEN.format(command=command)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(taken)] * 2


def test_who_agreed_beforehand_is_not_told_the_price() -> None:
    class Priceless:
        def check(self, *arguments: Any, **named: Any) -> Any:
            raise AssertionError("priced")

    session: Any = Priceless()
    agree(session, "SELECT 1", yes=True, fresh=False, epsilon=1)
    with pytest.raises(AssertionError, match="priced"):
        agree(session, "SELECT 1", yes=False, fresh=False, epsilon=1)
