"""Large draws by several threads: every part once, no stream twice, through forks, signals and errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hubbub import noise
from hubbub.noise import bits as bits_module, draw, system_bits, workers
from hubbub.noise.workers import in_parts
from seeded import SeededBits

FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
N = 3_000_000


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four workers, whatever the machine has and does."""
    monkeypatch.setattr(workers, "_idle", lambda: 4)


@pytest.mark.parametrize("idle", [1, 2, 3, 50])
@pytest.mark.parametrize("n", [0, 1, 99, 100, 101, 1000, 1001])
def test_every_part_is_worked_on_once(idle: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_idle", lambda: idle)
    for threads in (False, True):
        seen = np.zeros(n, np.int64)
        idents = set()

        def work(start: int, stop: int, seen: Any = seen, idents: set[int] = idents) -> None:
            assert 0 <= start < stop <= min(n, start + 100)
            seen[start:stop] += 1
            idents.add(threading.get_ident())

        in_parts(work, n, 100, threads=threads)
        assert np.all(seen == 1)
        assert len(idents) <= (min(idle, 6) if threads else 1)
        assert threads or idents <= {threading.get_ident()}


def _met(results: list[Any], give: Callable[[], Any]) -> None:
    """Four parts that wait for each other, so that each has a thread of its own."""
    barrier = threading.Barrier(4)

    def work(start: int, stop: int) -> None:
        barrier.wait(timeout=60)
        results.append(give())

    in_parts(work, 4, 1, threads=True)


def _some() -> bytes:
    return system_bits().u64(4).tobytes() + system_bits().word().to_bytes(8, "little")


def _words(answers: list[bytes]) -> list[bytes]:
    return [answer[i : i + 8] for answer in answers for i in range(0, 40, 8)]


@pytest.mark.usefixtures("four")
def test_no_two_workers_share_a_stream_before_or_after_a_new_key() -> None:
    answers: list[bytes] = []
    _met(answers, _some)
    _met(answers, _some)
    system_bits().rekey()
    _met(answers, _some)
    # 60 words of 64 bits: a chance repeat has probability below 1e-15.
    assert len(answers) == 12
    assert len(set(_words(answers))) == 60


@FORK
@pytest.mark.usefixtures("four")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_worker_of_a_child_shares_a_stream_with_a_sibling_or_the_parent() -> None:
    answers: list[bytes] = []
    _met(answers, _some)
    for _ in range(3):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:  # pragma: no cover
            try:
                mine: list[bytes] = []
                _met(mine, _some)
                os.write(write, b"".join(mine))
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            theirs = pipe.read()
        os.waitpid(pid, 0)
        assert len(theirs) == 160
        answers += [theirs[i : i + 40] for i in range(0, 160, 40)]
    _met(answers, _some)
    assert len(set(_words(answers))) == 5 * len(answers) == 100


@pytest.mark.usefixtures("four")
def test_every_key_of_a_large_draw_is_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes] = []
    random = os.urandom

    def recorded(n: int) -> bytes:
        keys.append(random(n))
        return keys[-1]

    monkeypatch.setattr(bits_module.os, "urandom", recorded)
    system_bits().rekey()
    for _ in range(3):
        noise.laplace(10, 1_200_000)
    keys = [key for key in keys if len(key) == 32]
    # The first one; and in each of three draws the caller's, and one for each of three helpers that came to draw.
    assert 1 <= len(keys) <= 1 + 3 * 4
    assert len(set(keys)) == len(keys)


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("name", ["laplace", "gaussian", "geometric"])
def test_parts_of_a_large_draw_repeat_nothing(name: str) -> None:
    """At scale 2^53, 1.2e6 draws repeat one another fewer than 60 times, short of 1e-100; a shared part 2^18 times."""
    draws = getattr(noise, name)(2**53, 1_200_000)
    assert draws.size - np.unique(draws).size < 60
    cells = getattr(noise, name)(np.full(150_000, 2.0**53))
    assert cells.size - np.unique(cells).size < 10


@pytest.mark.usefixtures("four")
def test_large_draws_by_threads_have_the_moments_of_their_law() -> None:
    """n = 3e6 from the production source; mean and second moment within 7 standard deviations: false alarm 1e-11."""
    for law, fourth in ((noise.DiscreteLaplace(10), 6), (noise.DiscreteGaussian(1000), 3)):
        draws = law.sample(N).astype(np.float64)
        assert abs(draws.mean()) < 7 * np.sqrt(law.variance / N)
        # Var X^2 = (kurtosis - 1) Var^2; the kurtosis of the discrete law is within 1 % of the continuous one.
        assert abs((draws**2).mean() - law.variance) < 7.1 * np.sqrt((fourth - 1) / N) * law.variance


def test_a_source_passed_by_a_test_and_hardened_draws_stay_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("a second thread")

    monkeypatch.setattr(workers, "_idle", lambda: 4)
    monkeypatch.setattr(workers, "start_new_thread", never)
    noise.laplace(10, 600_000, bits=SeededBits())
    noise.laplace(np.full(200_000, 3.0), bits=SeededBits())
    noise.laplace(10, 600_000, mode="hardened")
    noise.gaussian(np.full(200_000, 3.0), mode="hardened")
    noise.laplace(10, 1000)
    with pytest.raises(AssertionError, match="second"):
        noise.laplace(10, 600_000)


@pytest.mark.usefixtures("four")
def test_threads_and_none_agree_on_what_the_parts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that depends on nothing but the size asked for: threads change no draw."""

    class Constant(noise.Bits):
        def fill(self, buffer: Any) -> None:
            buffer[:] = np.random.default_rng(buffer.size).integers(0, 256, buffer.size, np.uint8)

    monkeypatch.setattr(draw, "system_bits", Constant)
    for scale in (10, 10**6):
        table = draw._table(draw._LAPLACE, noise.DiscreteLaplace(scale).scale, 10**6)
        alone = np.empty(1_000_001, np.int64)
        for start in range(0, alone.size, 250_001):
            table.fill(alone[start : start + 250_001], Constant())  # type: ignore[union-attr]
        assert np.array_equal(noise.laplace(scale, 1_000_001), alone)


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("where", ["helper", "caller"])
def test_an_error_in_any_thread_reaches_the_caller_after_all_have_ended(where: str) -> None:
    mine = threading.get_ident()
    barrier = threading.Barrier(4)
    ended = []

    def work(start: int, stop: int) -> None:
        try:
            if start < 4:
                barrier.wait(timeout=60)
            if (threading.get_ident() == mine) == (where == "caller"):
                raise KeyboardInterrupt(where)
            time.sleep(0.01)
        finally:
            ended.append(start)

    with pytest.raises(KeyboardInterrupt, match=where):
        in_parts(work, 10_000, 1, threads=True)
    count = len(ended)
    assert 4 <= count < 10_000
    assert len(ended) == count


def test_without_a_thread_to_be_had_the_caller_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    real = workers.start_new_thread

    def one_only(*arguments: Any) -> int:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(1)
        return real(*arguments)

    monkeypatch.setattr(workers, "_idle", lambda: 4)
    monkeypatch.setattr(workers, "start_new_thread", one_only)
    draws = noise.laplace(2**53, N)
    assert np.count_nonzero(draws) > N - 10


def test_a_busy_machine_gets_no_more_threads(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 8 processors, 2 of them ours to use; the count of running tasks includes this one."""
    import builtins

    real = open
    answer = tmp_path / "loadavg"
    monkeypatch.setattr(
        builtins, "open", lambda path, *a, **k: real(answer if "loadavg" in str(path) else path, *a, **k)
    )
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5}, raising=False)
    for text, idle in (
        ("0.1 0.2 0.3 1/200 999\n", 2),
        ("0.1 0.2 0.3 7/200 999\n", 2),
        ("0.1 0.2 0.3 8/200 999\n", 1),
        ("0.1 0.2 0.3 90/200 999\n", 1),
        ("0.1 0.2\n", 2),
        ("a b c d e\n", 2),
    ):
        answer.write_text(text)
        assert workers._idle() == idle
    answer.unlink()
    assert workers._idle() == 2


# --- signals, forks, the end of the interpreter -------------------------------------------------------------

SIGNALS = """
import signal, time
import numpy as np
from hubbub import noise
from hubbub.noise import workers
workers._idle = lambda: 4
inner = []
def handler(*_):
    inner.append(noise.laplace(2**53, 600_000)[:100_000])
    inner.append(np.array([noise.laplace(2**53) for _ in range(10)]))
    noise.system_bits().rekey()
    noise.laplace(1000 + len(inner), 150_000)  # a new table
signal.signal(signal.SIGALRM, handler)
outer = []
for delay in range(1, 13):
    signal.setitimer(signal.ITIMER_REAL, delay / 2000)
    outer.append(noise.laplace(2**53, 600_000)[:100_000])
    noise.gaussian(2000 + len(outer), 150_000)
    while len(inner) < 2 * len(outer):
        time.sleep(0.001)
draws = np.concatenate(outer + inner)
assert len(inner) == 24 and draws.size - np.unique(draws).size < 100, len(inner)
"""

FORKS = """
import os, signal, sys
import numpy as np
from hubbub import noise
from hubbub.noise import workers
from hubbub.noise.workers import in_parts
workers._idle = lambda: 3
child, pids = [], []
def handler(*_):
    pid = os.fork()
    if pid:
        pids.append(pid)
    else:
        child.append(1)
        pids.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, handler)
read, write = os.pipe()
for _ in range(10):
    signal.setitimer(signal.ITIMER_REAL, 0.004)
    draws = noise.laplace(2**53, 2_000_000)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if child:
        os.write(write, draws[:64].tobytes() + draws[-64:].tobytes())
        os._exit(0 if np.count_nonzero(draws) > 1_999_990 else 3)
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
    pids.clear()
os.close(write)
with os.fdopen(read, "rb") as pipe:
    words = np.frombuffer(pipe.read(), np.int64)
print(words.size // 128)
"""

EXIT = """
import atexit, os
from hubbub import noise
from hubbub.noise import workers
workers._idle = (4).__index__
class Late:
    def __del__(self, noise=noise, write=os.write):
        write(1, b"del ")
        write(1, b"%d " % noise.laplace(2**53, 1_000_000).size)
late = Late()
atexit.register(noise.laplace, 10, 1_000_000)
noise.laplace(10, 1_000_000)
"""


def _run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the platform has no interval timer")
def test_a_signal_handler_may_draw_in_the_midst_of_a_draw() -> None:
    _run(SIGNALS)


@FORK
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the platform has no interval timer")
def test_a_child_forked_in_the_midst_of_a_draw_draws_all_of_it_anew() -> None:
    """The child has no helpers; it must neither wait for them nor leave their parts out."""
    _run(FORKS)


@FORK
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_within_a_part_works_on_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's thread forks in its part while three helpers are in theirs."""
    monkeypatch.setattr(workers, "_idle", lambda: 4)
    barrier = threading.Barrier(4)
    mine, pid, worked = threading.get_ident(), -1, []

    def work(start: int, stop: int) -> None:
        nonlocal pid
        if pid == 0:  # pragma: no cover
            worked.append(start)
            return
        barrier.wait(timeout=60)
        if threading.get_ident() == mine:
            pid = os.fork()
        if pid != 0 or threading.get_ident() != mine:
            barrier.wait(timeout=60)

    try:
        in_parts(work, 4, 1, threads=True)
    finally:
        if pid == 0:  # pragma: no cover
            os._exit(0 if worked == [0, 1, 2, 3] else 3)
    assert os.waitpid(pid, 0)[1] == 0


def test_draws_at_the_end_of_the_interpreter() -> None:
    """At exit, and in a destructor that runs when threads no longer start."""
    for _ in range(3):
        assert _run(EXIT).split() == ["del", "1000000"]
