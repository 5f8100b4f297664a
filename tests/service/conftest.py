"""What the service's tests share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder for a socket, whose path has about a hundred bytes: `tmp_path` takes 95 of them where CI runs."""
    folder = tempfile.mkdtemp(dir="/tmp")
    yield Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
