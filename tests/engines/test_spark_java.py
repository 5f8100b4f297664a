"""The Java of a driver is known, so that whoever keeps the driver sees when it ends alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def test_the_java_that_a_session_started_is_known(spark: Any) -> None:
    from hubbub.engines.spark.session import java_process

    java = java_process()
    assert java is not None
    assert java.poll() is None
    assert b"java" in Path(f"/proc/{java.pid}/cmdline").read_bytes().split(b"\0")[0]
