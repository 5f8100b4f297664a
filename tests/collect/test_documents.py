"""The room's docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import hubbub.collect

pytest.importorskip("Crypto.Hash.TurboSHAKE128", reason="pycryptodome (extra collect) is not installed")


@pytest.mark.parametrize("name", [f"hubbub.collect.{m.name}" for m in pkgutil.iter_modules(hubbub.collect.__path__)])
def test_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
