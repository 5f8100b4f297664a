"""The auditor: how near it comes to the best possible bound (target V3), what it flags (K2), and noise by its bits.

python -m benchmarks.audit [--cpu | --outputs N] [ideal] [quiet] [broken] [correct] [floats] [NAME ...]

Without names of parts: ideal and quiet, which take a quarter of an hour at most. NAME: part of a mechanism's name.
--cpu: seconds are those of the processor, for a machine that others use as well. --outputs: ideal and quiet look at no
clock at all; N outputs of each mechanism are drawn, half of them a side, however long that takes, so that a busy
machine finds what an idle one does. In 30 seconds at most 5,000,000 are drawn.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.timing import machine, table
from hubbub.audit import LowerBound, float_support, lower_bound
from hubbub.noise import laplace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from audit.laws import GRADED, ideal as ideal_of
from audit.zoo import BROKEN, CORRECT, Case

SEEDS = 200
CONFIDENCE, SECONDS = 0.99, 30
SAMPLES = 50_000

# Draws on demand: a line "value count" in, `count` float64 out.
_SERVE = """
import sys, numpy as np
for line in sys.stdin:
    value, count = line.split()
    sys.stdout.buffer.write(np.asarray(draw(float(value), int(count)), dtype=np.float64).tobytes())
    sys.stdout.buffer.flush()
"""
OPENDP = (
    """
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
noise = space >> dp.m.then_laplace(scale=10.0)
draw = lambda value, count: noise([value] * count)
"""
    + _SERVE
)
DIFFPRIVLIB = (
    """
from diffprivlib.mechanisms import Laplace
noise = Laplace(epsilon=0.1, sensitivity=1)
draw = lambda value, count: [noise.randomise(value) for _ in range(count)]
"""
    + _SERVE
)


@contextmanager
def rival(name: str, code: str) -> Iterator[Callable[[Any, int], Any]]:
    """A library's Laplace noise, scale 10, drawn in its own environment. Raises MissingPeer."""
    child = subprocess.Popen([str(peers.interpreter(name)), "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    source, sink = child.stdin, child.stdout

    def run(data: Any, count: int) -> Any:
        source.write(f"{data} {count}\n".encode())
        source.flush()
        return np.frombuffer(sink.read(8 * count), dtype=np.float64)

    try:
        yield run
    finally:
        source.close()
        child.wait(timeout=30)


Asked = Callable[[str], bool]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Effort:
    """How much is spent on each mechanism: seconds of a clock, or a number of outputs and all the time they take."""

    clock: Clock
    outputs: int | None = None

    def bound(self, case: Case) -> LowerBound:
        """What the black box shows."""
        clock = self.clock if self.outputs is None else lambda: 0.0
        return lower_bound(
            case.run(1), case.d, case.d_prime, delta=case.delta, confidence=CONFIDENCE, seconds=SECONDS, clock=clock,
            max_samples=self.outputs,
        )  # fmt: skip


def ideal(asked: Asked, effort: Effort) -> None:
    """What is found on mechanisms whose law is known, beside the best possible.

    ideal: the Clopper-Pearson bound that the Neyman-Pearson event shows with all outputs drawn, half of them a side,
    those that were drawn to learn from included. sharp: the same by the test of the ratio of two Poisson means.
    """
    rows = []
    for name, graded in GRADED.items():
        if not asked(name):
            continue
        case, began = graded.case, (time.monotonic(), time.process_time())
        found = effort.bound(case)
        wall, cpu = time.monotonic() - began[0], time.process_time() - began[1]
        law, n = graded.law(), found.samples // 2
        best, sharp = (ideal_of(law, n, confidence=CONFIDENCE, delta=case.delta, ratio=r) for r in (False, True))
        rows.append([
            name, graded.kind, "yes" if graded.known else "no", f"{best:.4f}", f"{found.epsilon:.4f}",
            f"{found.epsilon / best:.3f}", f"{sharp:.4f}", f"{found.epsilon / sharp:.3f}", f"{wall:.1f}", f"{cpu:.1f}",
            f"{found.samples:,}",
        ])  # fmt: skip
        print(".", end="", file=sys.stderr, flush=True)
    head = "mechanism|kind of evidence|known|ideal|found|ratio|sharp|to sharp|seconds|processor|draws"
    print(table(head.split("|"), rows), flush=True)


def quiet(asked: Asked, effort: Effort) -> None:
    """Every correct mechanism, once, with as much effort as the broken ones."""
    rows = []
    for name, case in CORRECT.items():
        if asked(name):
            began = time.monotonic()
            found = effort.bound(case)
            alarm = "ALARM" if found.epsilon > case.claim else "quiet"
            wall = time.monotonic() - began
            rows.append([name, f"{case.claim:g}", f"{found.epsilon:.4f}", alarm, f"{wall:.1f}", f"{found.samples:,}"])
            print(".", end="", file=sys.stderr, flush=True)
    print(table(["correct mechanism", "truth", "shown", "", "seconds", "draws"], rows), flush=True)


def broken(asked: Asked, effort: Effort) -> None:
    """Every broken mechanism, by the black box: at most 1e7 samples and 60 s."""
    rows = []
    for name, case in BROKEN.items():
        if not asked(name):
            continue
        found = lower_bound(case.run(1), case.d, case.d_prime, delta=case.delta, seconds=60, clock=effort.clock)
        mark = "yes" if found.epsilon > case.claim else "NO"
        rows.append(
            [name, f"{case.claim:g}", f"{found.epsilon:.4g}", mark, f"{found.samples:,}", f"{found.seconds:.1f}"]
        )
    print(table(["broken mechanism", "claim", "shown", "flagged", "samples", "seconds"], rows), flush=True)


def correct(asked: Asked, effort: Effort) -> None:
    """Every correct mechanism, 200 seeds, 1 s each: alarms are allowed in at most 20."""
    rows = []
    for name, case in CORRECT.items():
        if not asked(name):
            continue
        found = [
            lower_bound(case.run(seed), case.d, case.d_prime, seconds=1, clock=effort.clock) for seed in range(SEEDS)
        ]
        rows.append([
            name, f"{case.claim:g}", str(sum(f.epsilon > case.claim for f in found)),
            f"{max(f.epsilon for f in found):.4f}", f"{max(f.samples for f in found):,}",
            f"{max(f.seconds for f in found):.2f}",
        ])  # fmt: skip
    print(table(["correct mechanism", "claim", f"alarms of {SEEDS}", "worst", "samples", "seconds"], rows), flush=True)


def floats(asked: Asked, effort: Effort) -> None:
    """Laplace noise of scale 10 on 0 and on 1, by its bits."""
    generator = np.random.default_rng(1)
    rows = [
        _float_row("hubbub", lambda d, n: d + laplace(10, n)),
        _float_row("numpy", lambda d, n: d + generator.laplace(0, 10, n)),
    ]
    for name, code in (("opendp", OPENDP), ("diffprivlib", DIFFPRIVLIB)):
        try:
            with rival(name, code) as run:
                rows.append(_float_row(name, run))
        except peers.MissingPeer as missing:
            print(f"({missing})")
    print(table(["Laplace, scale 10, 0 against 1", "outputs that name it", "epsilon by bits", "ceiling"], rows))


def _float_row(name: str, run: Callable[[Any, int], Any]) -> list[str]:
    found = float_support(run, 0, 1, samples=SAMPLES, seconds=30)
    return [name, f"{found.identifying:.4f}", f"{found.bound.epsilon:.3f}", f"{found.bound.ceiling:.2f}"]


def main() -> None:
    """Print what is named on the command line."""
    parts = {"ideal": ideal, "quiet": quiet, "broken": broken, "correct": correct, "floats": floats}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description="How near the auditor comes.")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--cpu", action="store_true", help="seconds are those of the processor")
    how.add_argument("--outputs", type=int, help="draw so many outputs of each mechanism, and look at no clock")
    parser.add_argument("words", nargs="*", metavar="NAME", help=f"{', '.join(parts)}; parts of mechanisms' names")
    given = parser.parse_args()
    names = [word for word in given.words if word not in parts]
    effort = Effort(time.process_time if given.cpu else time.monotonic, given.outputs)

    def asked(name: str) -> bool:
        return not names or any(part in name for part in names)

    print(machine())
    for part in [word for word in given.words if word in parts] or ["ideal", "quiet"]:
        parts[part](asked, effort)
        print()


if __name__ == "__main__":
    main()
