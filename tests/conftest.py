"""What holds for every test: no test of the suite is decided by chance."""

from __future__ import annotations

import gc
import hashlib
import os
import signal
from collections.abc import Iterator
from itertools import count

import pytest

from hubbub.noise import bits


class _Fixed:
    """`os`, but for `urandom`: in this process a stream that is fixed for each test, in its children the real one."""

    def __init__(self, name: str) -> None:
        self.name, self.process, self.calls = name, os.getpid(), count()

    def urandom(self, n: int) -> bytes:
        if os.getpid() != self.process:
            return os.urandom(n)
        return hashlib.shake_256(f"{self.name} {next(self.calls)}".encode()).digest(n)

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What asks Spark comes first: the worker of xdist that has the first tests starts a Java, and the others none."""
    items.sort(key=lambda item: "spark" not in getattr(item, "fixturenames", ()))


def pytest_collection() -> None:
    """What is imported and collected is kept to the end: to look through it for garbage took a fifth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Seventeen thousand tests and all that they import are garbage of no test: they are not looked through again."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.fixture(autouse=True)
def noise_of_the_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An interval of 95 % misses once in twenty: the suite draws the same noise each time, the soaks draw fresh noise.

    The tests of `tests/noise` look at the source itself, and keep it.
    """
    if "tests/noise/" not in request.node.nodeid and request.node.get_closest_marker("soak") is None:
        monkeypatch.setattr(bits, "os", _Fixed(request.node.nodeid))
        bits.system_bits()
    yield
    bits.system_bits()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Python's own way of SIGINT, which pyspark, once used, replaces; and nothing is collected meanwhile.

    What the signal raises in a callback of the collector (hypothesis has one) is dropped by Python.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()
    yield
    gc.enable()
    signal.signal(signal.SIGINT, before)
