"""Prio3 in batches, a whole collection over files, and Figure M3: whom to trust with a sum, and what it costs.

python -m benchmarks.collect                      batches, a collection of 20,000 reports, the figure's table
python -m benchmarks.collect load 1000000         a collection of so many, whose parties are killed on the way
python -m benchmarks.collect figure FILE.svg
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import machine, table
from hubbub import local
from hubbub.collect import Circuit, Count, Histogram, Prio3, PrivateSum, Sum, SumVec
from hubbub.collect.collector import collect
from hubbub.collect.create import create
from hubbub.collect.task import random_token, read_task
from hubbub.ledger.budget import Budget
from hubbub.noise import Polya, laplace
from hubbub.plots import curves, save

N = 10_000
RUNS = 200_000


def _random(n: int, width: int) -> np.ndarray:
    return np.frombuffer(random_token(n * width), np.uint8).reshape(n, width)


def _took(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and seconds of a processor."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def _party(prio3: Prio3, key: bytes, aggregator: int, messages: tuple[Any, ...], wire: Connection) -> None:
    """One aggregator in a process of its own: its step, what it hears of the other's, its sum."""
    wire.recv()
    state, verifier = prio3.verify_init(key, aggregator, *messages)
    wire.send(verifier)
    heard, valid = wire.recv()
    wire.send(prio3.aggregate(state, valid & prio3.verify_next(state, heard)))


def _together(prio3: Prio3, key: bytes, nonces: Any, public: Any, inputs: Any) -> float:
    """Seconds for two processes to verify a batch and add it up."""
    pipes = [Pipe() for _ in inputs]
    fork = get_context("fork")
    children = [
        fork.Process(target=_party, args=(prio3, key, j, (nonces, public, share), theirs))
        for j, (share, (_, theirs)) in enumerate(zip(inputs, pipes, strict=True))
    ]
    for child in children:
        child.start()
    ours = [our for our, _ in pipes]
    start = time.perf_counter()
    for pipe in ours:
        pipe.send("go")
    messages, valid = prio3.combine([pipe.recv() for pipe in ours])
    assert valid.all()
    for pipe in ours:
        pipe.send((messages, valid))
    prio3.merge([pipe.recv() for pipe in ours])
    took = time.perf_counter() - start
    for child in children:
        child.join()
    return took


def _rates(circuit: Circuit, values: list[Any]) -> list[str]:
    """Reports a second: sharding, each aggregator's step, both by CPU, and by the clock with a process for each."""
    prio3, n = Prio3(circuit, context=b"benchmark"), len(values)
    nonces, rand, key = _random(n, 16), _random(n, prio3.rand_size), random_token(32)
    (public, inputs), sharding = _took(lambda: prio3.shard(values, nonces, rand))

    def step(aggregator: int) -> float:
        return min(
            _took(lambda: prio3.verify_init(key, aggregator, nonces, public, inputs[aggregator]))[1] for _ in "abc"
        )

    steps = [step(0), step(1)]
    times = (sharding, *steps, sum(steps), min(_together(prio3, key, nonces, public, inputs) for _ in range(3)))
    return [str(circuit), *(f"{n / t:,.0f}" for t in times)]


def batches() -> None:
    """One batch of 10,000 reports of each circuit, 1,000 of vectors."""
    rows = [
        _rates(Count(), [1] * N),
        _rates(Sum(2**32 - 1), [12345] * N),
        _rates(Histogram(10, 4), [i % 10 for i in range(N)]),
        _rates(Histogram(100, 10), [i % 100 for i in range(N)]),
        _rates(SumVec(100, 255, 28), [[i % 256] * 100 for i in range(N // 10)]),
    ]
    print(table(["reports a second", "shard", "leader", "helper", "both, one core", "two processes, clock"], rows))


def _killed_on_the_way(words: list[str], kills: int) -> int:
    """Run a party, kill it `kills` times at random moments, and let it end; how often it was killed."""
    killed = 0
    while True:
        child = subprocess.Popen([sys.executable, "-m", "hubbub", "collect", *words], stderr=subprocess.DEVNULL)
        if killed < kills:
            try:
                child.wait(random.uniform(3, 20))
            except subprocess.TimeoutExpired:
                os.kill(child.pid, signal.SIGKILL)
                child.wait()
                killed += 1
                continue
        assert child.wait() == 0
        return killed


def load(n: int, kills: int) -> None:
    """A histogram of 10 over files, from devices to totals, each aggregator killed now and then."""
    with tempfile.TemporaryDirectory() as name:
        at, parts = Path(name), max(1, n // 100_000)
        mail = at / "mail"
        mail.mkdir()
        task = create(at / "task", PrivateSum(Histogram(10, 4), epsilon=1), budget=Budget(2), min_batch=n)
        values = [i % 10 for i in range(n // parts)]
        (at / "values").write_text("\n".join(map(str, values)))
        folders = [str(at / "task" / role) for role in ("leader", "helper", "collector")]
        boxes = ["--inbox", str(mail), "--outbox", str(mail)]
        steps: list[list[str]] = []
        died = 0

        def timed(what: str, *runs: list[str], kills: int = 0) -> None:
            nonlocal died
            before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            died += sum(_killed_on_the_way(words, kills) for words in runs)
            after, took = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - wall
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            steps.append([what, f"{took:.0f}", f"{cpu:.0f}", f"{n / cpu:,.0f}"])

        client = ["client", str(at / "values"), "--task", str(at / "task/task.json"), "--time", "7200"]
        timed("devices: reports", *([*client, "-o", str(mail / f"{i:03}.reports")] for i in range(parts)))
        size = sum(path.stat().st_size for path in mail.iterdir()) / n
        timed("leader: reports to jobs", ["leader", folders[0], *boxes], kills=kills)
        timed("helper: jobs to answers", ["helper", folders[1], *boxes], kills=kills)
        timed("leader: answers to sums", ["leader", folders[0], *boxes], kills=kills)
        timed("collector: query", ["collector", folders[2], "--from", "7200", "--to", "10800", "--outbox", str(mail)])
        timed("both: their shares", ["leader", folders[0], *boxes], ["helper", folders[1], *boxes])
        total = collect(Path(folders[2]), sorted(mail.glob("*.share")))
        assert total.reports == parts * len(values)
        errors = [v - total.reports // 10 for v in total.values]
        assert max(map(abs, errors)) < 200
        print(table(["step", "seconds", "CPU seconds", "reports a CPU second"], steps))
        state = (at / "task/leader/state.db").stat().st_size / 2**20
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        print(
            f"{total.reports:,} reports of {size:.0f} bytes; parties killed {died} times; largest process {largest} MiB"
        )
        print(f"errors {errors}, noise within {total.half_width(0.95)} at 95 %; leader's state {state:.0f} MiB")
        assert read_task(at / "task/task.json") == task


def _shuffled(n: int) -> local.FrequencyOracle:
    """Binary response at the largest epsilon that shuffling n reports brings to 1 at delta 1e-6."""
    low, high = 1.0, 20.0
    while high - low > 1e-2:
        middle = (low + high) / 2
        low, high = (middle, high) if local.shuffle(middle, n, "1e-6", categories=2).upper <= 1 else (low, middle)
    return local.DirectEncoding(low, 2)


def _rms(errors: Any) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def _of_oracle(oracle: local.FrequencyOracle, n: int) -> float:
    values = (np.arange(n) < 0.3 * n).astype(np.int64)
    repeats = max(20, min(400, 20_000_000 // n))
    return _rms([oracle.estimate(oracle.privatize(values)).shares[1] - 0.3 for _ in range(repeats)])


def _of_one_server(n: int) -> float:
    """Every client's share drawn, up to 1,000 of them; above, their sum by its law, which tests show to be the same."""
    if n <= 1000:
        share = Polya(1, Fraction(1, n))
        return _rms([share.sample((n, 1000)).sum(axis=0) / n for _ in range(60)])
    return _rms(Polya(1, 1).sample(RUNS) / n)


def figure(picture: str | None) -> None:
    """Figure M3: the error of one share at epsilon 1 by whom one trusts, over n, from runs."""
    people = [10**i for i in range(2, 7)]
    two = PrivateSum(Count(), epsilon=1)
    found: dict[str, list[float]] = {
        "local": [_of_oracle(local.best_oracle(1, 2), n) for n in people],
        "shuffled": [_of_oracle(_shuffled(n), n) for n in people],
        "two companies": [_rms(two.error.sample(RUNS) / n) for n in people],
        "one server": [_of_one_server(n) for n in people],
        "central": [_rms(laplace(1, RUNS) / n) for n in people],
    }
    rows = [[f"{n:,}", *(f"{line[i]:.3g}" for line in found.values())] for i, n in enumerate(people)]
    print(table(["people", *found], rows))
    ratios = [a / b for a, b in zip(found["one server"], found["central"], strict=True)]
    print("one server / central: " + ", ".join(f"{r:.3f}" for r in ratios))
    assert all(abs(r - 1) < 0.03 for r in ratios)
    if picture:
        lines = [(name, people, line) for name, line in found.items()]
        ax = curves(lines, title="Error of one share at epsilon 1", xlabel="people", ylabel="standard error", log=True)
        ax.set_xscale("log")
        save(ax, picture)
        print(f"picture: {picture}")


def main() -> None:
    """Print everything, or one part."""
    print(machine())
    match sys.argv[1:]:
        case ["load", n]:
            load(int(n), 3)
        case ["figure", picture]:
            figure(picture)
        case _:
            batches()
            print()
            load(20_000, 0)
            print()
            figure(None)


if __name__ == "__main__":
    main()
