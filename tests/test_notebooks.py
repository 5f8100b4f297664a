"""The notebooks that a newcomer opens first run as they are kept, and show what they showed, but for the noise.

`HUBBUB_GOLDEN=write` writes their outputs anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import notebooks

FOLDER = Path(__file__).parents[1] / "docs/notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def test_there_are_three_to_begin_with() -> None:
    assert NAMES == ["analyst.ipynb", "publishing.ipynb", "steward.ipynb"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_what_it_showed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("statsmodels")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    kept = notebooks.read(FOLDER / name)
    seen = notebooks.execute(kept)
    cells = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    if os.environ.get("HUBBUB_GOLDEN") == "write":
        for i, (cell, outputs) in enumerate(zip(cells, seen, strict=True)):
            cell["outputs"], cell["execution_count"] = outputs, i + 1
        notebooks.write(FOLDER / name, kept)
    for cell, outputs in zip(cells, seen, strict=True):
        if "varies" in cell["metadata"].get("tags", []):
            assert [one["output_type"] for one in outputs] == [one["output_type"] for one in cell["outputs"]]
            continue
        assert notebooks.shape(outputs) == notebooks.shape(cell["outputs"]), "".join(cell["source"])


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_one_that_jupyter_opens(name: str) -> None:
    kept = notebooks.read(FOLDER / name)
    assert (kept["nbformat"], kept["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in kept["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in kept["cells"]:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
        assert str(Path.home()) not in "".join(map(str, cell.get("outputs", [])))


def test_a_run_that_shows_something_else_is_noticed() -> None:
    def shown(text: str) -> list[dict[str, object]]:
        return [{"output_type": "stream", "name": "stdout", "text": [text]}]

    assert notebooks.shape(shown("n = 17 ± 3")) == notebooks.shape(shown("n = 1,204 ± 12"))
    assert notebooks.shape(shown("n = 17")) != notebooks.shape(shown("m = 17"))
    cell = {"cell_type": "code", "metadata": {"tags": ["raises-exception"]}, "source": ["1 + 1"]}
    with pytest.raises(AssertionError, match="nothing was raised"):
        notebooks.execute({"cells": [cell]})
