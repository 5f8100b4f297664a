"""The auditor (target K2): broken mechanisms flagged, correct ones quiet; and Laplace noise of three libraries by its
bits.

python -m benchmarks.audit [broken] [correct] [floats]
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.timing import machine, table
from hubbub.audit import float_support, lower_bound
from hubbub.noise import laplace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from audit.zoo import BROKEN, CORRECT

SEEDS = 200
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


def broken() -> None:
    """Every broken mechanism, by the black box: at most 1e7 samples and 60 s."""
    rows = []
    for name, case in BROKEN.items():
        found = lower_bound(case.run(1), case.d, case.d_prime, delta=case.delta, seconds=60)
        mark = "yes" if found.epsilon > case.claim else "NO"
        rows.append(
            [name, f"{case.claim:g}", f"{found.epsilon:.4g}", mark, f"{found.samples:,}", f"{found.seconds:.1f}"]
        )
    print(table(["broken mechanism", "claim", "shown", "flagged", "samples", "seconds"], rows), flush=True)


def correct() -> None:
    """Every correct mechanism, 200 seeds, 1 s each: alarms are allowed in at most 20."""
    rows = []
    for name, case in CORRECT.items():
        found = [lower_bound(case.run(seed), case.d, case.d_prime, seconds=1) for seed in range(SEEDS)]
        rows.append([
            name, f"{case.claim:g}", str(sum(f.epsilon > case.claim for f in found)),
            f"{max(f.epsilon for f in found):.4f}", f"{max(f.samples for f in found):,}",
            f"{max(f.seconds for f in found):.2f}",
        ])  # fmt: skip
    print(table(["correct mechanism", "claim", f"alarms of {SEEDS}", "worst", "samples", "seconds"], rows), flush=True)


def floats() -> None:
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
    """Print what is named on the command line, or everything."""
    print(machine())
    parts = {"broken": broken, "correct": correct, "floats": floats}
    for name in sys.argv[1:] or parts:
        parts[name]()
        print()


if __name__ == "__main__":
    main()
