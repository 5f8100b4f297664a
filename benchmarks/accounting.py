"""C1-C4: epsilon, certified bounds and calibration, against dp-accounting and (if installed) prv-accountant.

`python -m benchmarks.accounting`. Truth is the narrowest certified interval; the errors are distances from
it. One warm call each; a rival that fails says how. prv-accountant runs where
`.venvs/prv-accountant` holds it, in a process of its own.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable

from benchmarks import peers
from benchmarks.timing import best, machine, table
from hubbub import accounting as acc
from hubbub.accounting import certify, questions

GAUSS, LAPLACE, SAMPLED = "gaussian", "laplace", "sampled"
PROBLEMS = [
    ("Gaussian s=50 x1000", GAUSS, 50.0, 1.0, 1000, 1e-6),
    ("Gaussian s=4", GAUSS, 4.0, 1.0, 1, 1e-6),
    ("Gaussian s=20 x100, 1e-14", GAUSS, 20.0, 1.0, 100, 1e-14),
    ("Laplace b=10 x100", LAPLACE, 10.0, 1.0, 100, 1e-6),
    ("Laplace b=2 x5", LAPLACE, 2.0, 1.0, 5, 1e-3),
    ("DP-SGD q=.01 s=1.1 x1e4", SAMPLED, 1.1, 0.01, 10000, 1e-5),
    ("DP-SGD the same, 1e-12", SAMPLED, 1.1, 0.01, 10000, 1e-12),
    ("DP-SGD the same, 1e-30", SAMPLED, 1.1, 0.01, 10000, 1e-30),
    ("DP-SGD MNIST", SAMPLED, 1.0, 256 / 60000, 14062, 1e-5),
    ("DP-SGD q=.1 s=.7 x1e3", SAMPLED, 0.7, 0.1, 1000, 1e-5),
    ("DP-SGD q=.02 s=1.7 x3e3", SAMPLED, 1.7, 0.02, 3000, 1e-5),
]


def ours(kind: str, scale: float, rate: float, times: int) -> acc.Event:
    """The problem as an event."""
    if kind == LAPLACE:
        return acc.Repeated(acc.Laplace(scale), times)
    inner: acc.Event = acc.Gaussian(scale)
    return acc.Repeated(acc.PoissonSampled(inner, rate) if kind == SAMPLED else inner, times)


def google(kind: str, scale: float, rate: float, times: int, delta: float) -> Callable[[], float]:
    """dp-accounting's epsilon at its own default settings."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    def work() -> float:
        if kind == LAPLACE:
            one = pld.from_laplace_mechanism(scale)
        else:
            one = pld.from_gaussian_mechanism(scale, sampling_prob=rate)
        return float(one.self_compose(times).get_epsilon_for_delta(delta))

    return work


PRV = """
import json, sys, time
from prv_accountant import LaplaceMechanism, PoissonSubsampledGaussianMechanism, PRVAccountant
kind, scale, rate, times, delta = sys.argv[1], *map(float, sys.argv[2:])
if kind == "laplace":
    one = LaplaceMechanism(mu=1 / scale)
else:
    one = PoissonSubsampledGaussianMechanism(noise_multiplier=scale, sampling_probability=rate)
start = time.perf_counter()
made = PRVAccountant(prvs=[one], max_self_compositions=[int(times)], eps_error=0.01, delta_error=delta / 1000)
low, near, high = made.compute_epsilon(delta=delta, num_self_compositions=[int(times)])
print(json.dumps([float(low), float(near), float(high), time.perf_counter() - start]))
"""


def prv(kind: str, scale: float, rate: float, times: int, delta: float) -> str:
    """prv-accountant's interval (asked to be 0.01 wide on either side), estimate and time, or why there are none."""
    try:
        low, near, high, seconds = peers.run("prv-accountant", PRV, kind, scale, rate, times, delta, timeout=120)
    except peers.MissingPeer:
        return "not installed"
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        return (str(error).strip().splitlines() or ["failed"])[-1][:40]
    return f"{near:.6g} in [{low:.5g}, {high:.5g}], {seconds * 1e3:.0f} ms"


def rival(make: Callable[..., Callable[[], float]], *problem: object) -> tuple[float, float, str]:
    """(epsilon, seconds, what went wrong)."""
    try:
        work = make(*problem)
        found = [math.nan]

        def run() -> None:
            found[0] = work()

        seconds = best(run, repeats=1, warm=False)
        return found[0], seconds, ""
    except Exception as error:
        return math.nan, math.nan, type(error).__name__


def fresh(work: Callable[[], object]) -> Callable[[], object]:
    """`work` without our caches."""

    def run() -> object:
        certify.certified_epsilon.cache_clear()
        certify.upper_epsilon.cache_clear()
        return work()

    return run


def main() -> None:
    """Prints the tables."""
    print(machine())
    rows = []
    for name, kind, scale, rate, times, delta in PROBLEMS:
        event = ours(kind, scale, rate, times)
        epsilon = acc.epsilon(event, delta)
        fast = best(fresh(lambda event=event, delta=delta: acc.epsilon(event, delta)), repeats=3)
        low, high = acc.bounds(event, delta, width=1e-4 if epsilon < 20 else 1e-2)
        sure = best(fresh(lambda event=event, delta=delta: acc.bounds(event, delta)), repeats=3)
        off = max(low - epsilon, epsilon - high, 0.0)
        theirs, slow, failed = rival(google, kind, scale, rate, times, delta)
        rows.append(
            [
                name,
                f"{epsilon:.9g}",
                f"{fast * 1e3:.2f} ms",
                f"{off:.0e}",
                f"{high - low:.0e}",
                f"{sure * 1e3:.0f} ms",
                failed or f"{theirs:.7g}",
                failed or f"{slow * 1e3:.0f} ms",
                failed or f"{max(low - theirs, theirs - high, 0.0):.0e}",
                failed or f"{slow / fast:.0f}x",
                prv(kind, scale, rate, times, delta),
            ]
        )
    head = ["problem", "epsilon", "time", "outside", "interval", "certified"]
    print(table([*head, "dp-accounting", "time", "outside", "ratio", "prv-accountant"], rows))
    event = ours(SAMPLED, 1.1, 0.01, 10000)
    for goal, asked in (("C2 width 1e-2", 1e-2), ("C2 width 1e-4", 1e-4)):
        seconds = best(fresh(lambda asked=asked: acc.bounds(event, 1e-5, width=asked)), repeats=3)
        found = acc.bounds(event, 1e-5, width=asked)
        print(f"{goal}: [{found[0]:.6f}, {found[1]:.6f}], {seconds * 1e3:.0f} ms")
    make = lambda sigma: acc.Repeated(acc.PoissonSampled(acc.Gaussian(sigma), 0.02), 3000)  # noqa: E731
    seconds = best(fresh(lambda: questions.calibrate(make, 3, "1e-5")), repeats=3)
    print(f"C3 calibrate: sigma = {questions.calibrate(make, 3, '1e-5'):.10f}, {seconds * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
