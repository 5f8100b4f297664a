"""The bit source: fresh in every process and thread, renewed, and replaceable in tests only."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable

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
        keys.append(source._local.stream.encryptor)
    assert len({id(k) for k in keys}) == 3
    source.fill(np.empty(350_000, np.uint8))  # more than one key in one call
    assert source._local.stream.left >= 0


def test_a_new_key_on_demand_reaches_every_thread() -> None:
    source = SystemBits()
    source.word()
    before = source._local.stream
    source.rekey()
    pooled = source.word()
    assert source._local.stream is not before
    assert pooled != next(before.words)


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
assert not hasattr(noise.system_bits()._local, "stream")
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
