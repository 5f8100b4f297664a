"""The room's docstrings and pages run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hubbub.noise

ROOT = Path(__file__).resolve().parents[2]


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
