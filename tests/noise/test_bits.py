"""The bit source: fresh in every process and thread, renewed, and replaceable in tests only."""

from __future__ import annotations

import hashlib
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from hubbub import noise
from hubbub.noise import SystemBits, bits as bits_module, system_bits

FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")


def _in_child(work: Callable[[], bytes]) -> bytes:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover
        try:
            os.write(write, work())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer


def _some() -> bytes:
    return system_bits().u64(4).tobytes() + system_bits().word().to_bytes(8, "little")


@FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_two_children_share_a_stream_with_each_other_or_the_parent() -> None:
    _some()  # the parent's key and pool exist before the forks
    answers = [_in_child(_some) for _ in range(8)] + [_some()]
    pieces = [answer[i : i + 8] for answer in answers for i in range(0, 40, 8)]
    assert all(len(answer) == 40 for answer in answers)
    # 45 words of 64 bits: a chance repeat has probability below 1e-16.
    assert len(set(pieces)) == len(pieces)


@FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_thread_has_a_stream_of_its_own() -> None:
    answers: list[bytes] = []

    def thread() -> None:
        answers.append(_some())
        answers.extend(_in_child(_some) for _ in range(3))
        answers.append(_some())

    worker = threading.Thread(target=thread)
    worker.start()
    worker.join()
    assert len(set(answers)) == 5


@FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_grandchild_with_a_used_process_id_has_a_stream_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process ids are reused, so the id alone would not do: forks are counted too."""
    _some()
    mine = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: mine)
    assert len({_in_child(_some), _in_child(_some), _some()}) == 3


def test_threads_share_nothing() -> None:
    answers: list[bytes] = []
    lock = threading.Lock()
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        for _ in range(50):
            answer = system_bits().u64(1000).tobytes()
            with lock:
                answers.append(answer)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    words = np.frombuffer(b"".join(answers), np.uint64)
    # 4e5 words: a chance repeat has probability below 1e-8 * 1e-0; two are never seen.
    assert words.size - np.unique(words).size <= 1


def test_threads_draw_from_one_table_without_disturbing_each_other() -> None:
    """Each thread's draws with its own source equal those of the same source alone."""
    from seeded import SeededBits

    def draws(seed: int) -> np.ndarray:
        return np.concatenate(
            [noise.laplace(10, 200_000, bits=SeededBits(seed)), noise.gaussian(1000, 200_000, bits=SeededBits(seed))]
        )

    alone = [draws(i) for i in range(4)]
    found: dict[int, np.ndarray] = {}

    def work(i: int) -> None:
        for _ in range(5):
            found[i] = draws(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for i in range(4):
        assert np.array_equal(found[i], alone[i])


def test_a_key_serves_one_gibibyte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits_module, "_BYTES_PER_KEY", 100_000)
    source = SystemBits()
    buffer = np.empty(40_000, np.uint8)
    keys = []
    for _ in range(6):
        source.fill(buffer)
        keys.append(source._release().stream)
    assert len({id(k) for k in keys}) == 3
    source.fill(np.empty(350_000, np.uint8))  # more than one key in one call
    assert source._release().stream.left >= 0


def test_a_new_key_on_demand_reaches_every_thread() -> None:
    source = SystemBits()
    source.word()
    before = source._release()
    source.rekey()
    pooled = source.word()
    assert source._release() is not before
    assert pooled != next(before.words)


class _FakeSystem:
    """An operating system whose bytes are told apart: each call gives another block, and all are kept."""

    def __init__(self) -> None:
        self.given: list[bytes] = []

    def urandom(self, n: int) -> bytes:
        self.given.append(hashlib.shake_256(len(self.given).to_bytes(8, "big")).digest(n))
        return self.given[-1]


def _releases() -> list[Callable[[], Any]]:
    """Draws of every family and size, as small as one and large enough for a table."""
    scales = np.linspace(1, 9, 50)
    sizes: list[int | None] = [None, 3, 600, 200_000]
    both = [noise.laplace, noise.geometric, noise.gaussian]
    many = [partial(draw, 10**6, size) for draw in both for size in sizes]
    hardened = [partial(draw, 10, size, mode="hardened") for draw in both for size in (None, 50)]
    cells = [partial(draw, scales) for draw in both]
    others = [
        partial(noise.bernoulli, Fraction(1, 3), 40),
        partial(noise.bernoulli_exp, Fraction(1, 3), 40),
        partial(noise.uniform_below, 10**6, 40),
        partial(noise.choice, [1, 2, 3], 40),
    ]
    return [*many, *hardened, *cells, *others]


def test_noise_is_a_function_of_what_the_system_gave_within_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of an earlier release is left to draw from: with the same system bytes the noise is the same, whatever
    was drawn before.
    """
    for release in _releases():
        answers = []
        for history in (0, 1, 5, 3000):
            monkeypatch.undo()
            for _ in range(min(history, 5)):
                noise.laplace(10, history)
            monkeypatch.setattr(os, "urandom", _FakeSystem().urandom)
            answers.append(np.asarray(release()))
        assert all(np.array_equal(answers[0], other) for other in answers[1:]), release


def test_two_releases_never_share_a_key_or_a_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    system = _FakeSystem()
    monkeypatch.setattr(os, "urandom", system.urandom)
    keys: list[tuple[int, bytes]] = []
    original = bits_module._Stream.__init__
    number = 0

    def counted(self: Any) -> None:
        before = len(system.given)
        original(self)
        keys.append((number, b"".join(system.given[before:])))

    monkeypatch.setattr(bits_module._Stream, "__init__", counted)
    for number, release in enumerate([*_releases(), *_releases()]):  # noqa: B007
        before = len(system.given)
        release()
        assert len(system.given) > before, release
    assert len({key for _, key in keys}) == len(keys) > 10
    assert all(len(key) == 48 for _, key in keys)


@FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_machine_that_was_copied_before_a_release_draws_other_noise_in_each_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The copies share all memory, and nothing tells them: neither a fork that was counted nor a new process id."""
    mine, forks = os.getpid(), bits_module._forks
    monkeypatch.setattr(os, "getpid", lambda: mine)

    def copy(work: Callable[[], Any]) -> Callable[[], bytes]:
        def run() -> bytes:
            bits_module._forks = forks
            return np.asarray(work()).tobytes()[:400]

        return run

    for work in (
        lambda: [noise.laplace(2**50) for _ in range(4)],
        lambda: [noise.gaussian(2**50) for _ in range(4)],
        lambda: noise.laplace(2**50, 40),
        lambda: noise.gaussian(2**50, 200_000),
        lambda: noise.uniform_below(2**60, 4),
    ):
        noise.laplace(10, 3000)  # a key and words are there when the copies are made
        noise.laplace(10)
        answers = [_in_child(copy(work)) for _ in range(3)] + [copy(work)()]
        # Draws of at least 50 bits each: a chance repeat of four has probability below 1e-55.
        assert len(set(answers)) == 4


def test_the_stream_is_not_constant_and_covers_every_byte() -> None:
    for n in (1, 7, 8, 65_536, 2**20 - 1, 2**20, 2**20 + 1, 3_000_000):
        buffer = np.zeros(n, np.uint8)
        system_bits().fill(buffer)
        if n > 60_000:
            counts = np.bincount(buffer, minlength=256)
            # Chi-square with 255 degrees of freedom exceeds 450 with probability below 1e-12.
            assert ((counts - n / 256) ** 2).sum() / (n / 256) < 450
            # A run of 8 zero bytes, 4 times over, would be a chunk left out: below 1e-70.
            assert buffer[-32:].any()


def test_without_cryptography_every_byte_comes_from_the_operating_system() -> None:
    code = """
import sys
sys.modules["cryptography"] = None
sys.modules["cryptography.hazmat.primitives.ciphers"] = None
from hubbub import noise
x = noise.laplace(10, 200_000)
assert 8 < abs(x).mean() < 12 and isinstance(noise.gaussian(3), int)
assert noise.system_bits()._release().stream is None
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_room_loads_neither_scipy_nor_cryptography() -> None:
    code = "import sys, hubbub.noise; sys.exit(bool({'scipy', 'cryptography'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_takes_a_seed() -> None:
    for name in noise.__all__:
        thing = getattr(noise, name)
        if callable(thing):
            for parameter in inspect.signature(thing).parameters:
                assert "seed" not in parameter
    assert not inspect.signature(SystemBits).parameters


def test_the_state_of_the_source_cannot_be_pickled() -> None:
    import pickle

    system_bits().word()
    with pytest.raises(TypeError):
        pickle.dumps(system_bits())


def test_the_same_question_twice_draws_twice() -> None:
    # Two equal arrays of 20 draws at this scale: probability below 1e-200.
    assert not np.array_equal(noise.laplace(1e12, 20), noise.laplace(1e12, 20))
    assert not np.array_equal(noise.laplace(1e12, 200_000), noise.laplace(1e12, 200_000))
