"""Source mutations: a module with one constant changed by 1 %, put in place of the real one while a test runs.

The mutated source is executed into a fresh module; then every hubbub module and the test module that hold a class or
function of the real one get the mutated one, until the block ends.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class Mutant:
    """A place in a module: `text` occurs exactly once in its source, but for one mark, where the change goes in.

    The marks: § takes a float factor ("1.01 * "), ¤ an exact one (a Fraction), ± a summand ("1 + ").
    """

    module: str
    text: str

    def __str__(self) -> str:
        return f"{self.module.removeprefix('hubbub.')}: {self.text}"

    def source(self, change: str) -> str:
        """The mutated source. Raises AssertionError where `text` is not there exactly once."""
        source = Path(str(importlib.import_module(self.module).__file__)).read_text()
        inserted = {"§": f"{change} * ", "¤": f"Fraction('{change}') * ", "±": f"{change} + "}
        mark = next(m for m in inserted if m in self.text)
        old, new = self.text.replace(mark, ""), self.text.replace(mark, inserted[mark])
        assert source.count(old) == 1, f"{old!r} occurs {source.count(old)} times in {self.module}"
        return source.replace(old, new)


@contextmanager
def in_place(mutant: Mutant, change: str, test_module: ModuleType) -> Iterator[None]:
    """Within the block, the mutated module stands in for the real one."""
    real = importlib.import_module(mutant.module)
    changed = ModuleType(mutant.module)
    changed.__file__ = real.__file__
    exec(compile(mutant.source(change), str(real.__file__), "exec"), changed.__dict__)
    own = {
        name: value
        for name, value in vars(real).items()
        if getattr(value, "__module__", None) == mutant.module and name in vars(changed)
    }
    holders = [m for n, m in list(sys.modules.items()) if n.startswith("hubbub") and m is not real] + [test_module]
    undo = []
    for holder in holders:
        for name, value in list(vars(holder).items()):
            if name in own and value is own[name]:
                undo.append((holder, name, value))
                setattr(holder, name, getattr(changed, name))
    try:
        yield
    finally:
        for holder, name, value in undo:
            setattr(holder, name, value)
