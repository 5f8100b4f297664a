"""The room's docstrings and pages run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import hubbub.noise

ROOT = Path(__file__).resolve().parents[2]
MODULES = [f"hubbub.noise.{m.name}" for m in pkgutil.iter_modules(hubbub.noise.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("page", ["docs/concepts/exact-noise.md", "docs/reference/noise.md"])
def test_pages_run(page: str) -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    assert hubbub.noise.mode() == "fast"


def test_the_reference_names_everything_public() -> None:
    text = (ROOT / "docs/reference/noise.md").read_text()
    for name in hubbub.noise.__all__:
        assert name in text or name in ("MAX_SCALE", "Mode", "mode"), name
