"""The examples in the docstrings of every module say what comes out."""

from __future__ import annotations

import doctest
import importlib
import warnings
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_say_what_comes_out(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_the_examples_are_many() -> None:
    assert len(MODULES) > 200
