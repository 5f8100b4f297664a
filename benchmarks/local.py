"""Local privacy: clients and servers against pure-ldp and multi-freq-ldpy (targets F1, F2), errors against theory,
the price of trusting nobody (central against local), and ten million reports within a gigabyte.

python -m benchmarks.local install   the rivals, each in an environment of its own
python -m benchmarks.local [PICTURE.svg]
"""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np

from benchmarks import peers
from benchmarks.timing import best, machine, table
from hubbub import local, noise
from hubbub.plots import curves, save

EPSILON, K, K_UNARY, N = 1, 128, 128, 1_000_000

# pure-ldp imports its sub-packages' dependencies without declaring them.
peers.PEERS["pure-ldp"] = ["pure-ldp==1.2.0", "scikit-learn", "bitarray", "bitstring", "statsmodels", "xxhash"]
peers.PEERS["multi-freq-ldpy"] = ["multi-freq-ldpy==0.2.5", "xxhash"]
RIVALS = ("pure-ldp", "multi-freq-ldpy")

# Newer xxhash hashes bytes only; both rivals pass texts.
SHIM = """
import json, time, xxhash
_xxh32 = xxhash.xxh32
xxhash.xxh32 = lambda text, seed=0: _xxh32(text.encode() if isinstance(text, str) else text, seed=int(seed))
import numpy as np
def rate(n, work):
    start = time.perf_counter()
    work()
    return n / (time.perf_counter() - start)
out = {}
"""

PURE_LDP = (
    SHIM
    + """
from pure_ldp.frequency_oracles.direct_encoding import DEClient
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient
client, server = LHClient(epsilon=1, d=128, use_olh=True), LHServer(epsilon=1, d=128, use_olh=True)
reports = [client.privatise(i % 128 + 1) for i in range(2000)]
out["hashing server"] = rate(2000, lambda: ([server.aggregate(r) for r in reports], server.estimate_all(range(1, 129))))
k_ary, unary = DEClient(epsilon=1, d=16), UEClient(epsilon=1, d=128, use_oue=True)
out["k-ary client"] = rate(100000, lambda: [k_ary.privatise(i % 16 + 1) for i in range(100000)])
out["unary client"] = rate(2000, lambda: [unary.privatise(i % 128 + 1) for i in range(2000)])
print(json.dumps(out))
"""
)

MULTI_FREQ = (
    SHIM
    + """
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
reports = [LH_Client(i % 128, 128, 1) for i in range(2000)]
GRR_Client(1, 16, 1), UE_Client(1, 128, 1)  # compiled on first use
out["hashing server"] = rate(2000, lambda: LH_Aggregator_MI(reports, 128, 1))
out["k-ary client"] = rate(200000, lambda: [GRR_Client(i % 16, 16, 1) for i in range(200000)])
out["unary client"] = rate(20000, lambda: [UE_Client(i % 128, 128, 1) for i in range(20000)])
print(json.dumps(out))
"""
)


def rival(name: str, code: str) -> dict[str, float]:
    """The rival's reports per second; empty, with the reason printed, where it does not run."""
    try:
        return dict(peers.run(name, code))
    except (peers.MissingPeer, RuntimeError) as error:
        print(f"({name}: {str(error).strip().splitlines()[-1]})")
        return {}


def ours() -> dict[str, float]:
    """Reports per second of the three jobs that are compared."""
    hashing, k_ary, unary = (
        local.LocalHashing(EPSILON, K),
        local.DirectEncoding(EPSILON, 16),
        local.OptimizedUnary(EPSILON, K_UNARY),
    )
    values, few = np.arange(N) % K, np.arange(N) % 16
    reports = hashing.privatize(values)
    return {
        "hashing server": N / best(lambda: hashing.estimate(reports), repeats=3),
        "k-ary client": N / best(lambda: k_ary.privatize(few)),
        "unary client": N / best(lambda: unary.privatize(values), repeats=3),
    }


def against_rivals() -> None:
    """F1 and F2."""
    theirs = {"pure-ldp": rival("pure-ldp", PURE_LDP), "multi-freq-ldpy": rival("multi-freq-ldpy", MULTI_FREQ)}
    rows = []
    goals = {"hashing server": 0.3e6, "k-ary client": 20e6, "unary client": 0.5e6}
    for job, speed in ours().items():
        cells = [theirs[name].get(job) for name in RIVALS]
        ratios = [f"{speed / cell:,.0f}x" if cell else "-" for cell in cells]
        rates = [f"{cell:,.0f}" if cell else "-" for cell in cells]
        rows.append(
            [job, f"{speed:,.0f}", f"{goals[job]:,.0f}", *(v for pair in zip(rates, ratios, strict=True) for v in pair)]
        )
    head = ["reports a second", "hubbub", "target", "pure-ldp", "ratio", "multi-freq-ldpy", "ratio"]
    print(table(head, rows))
    print("k-ary: 16 categories; unary and hashing: 128; epsilon 1; secure bits here, seeded generators there")


def every_oracle() -> None:
    """Speed and error of all protocols, for one skewed answer."""
    weights = 1 / np.arange(1, 17)
    truth = np.round(weights / weights.sum() * N).astype(int)
    truth[0] += N - truth.sum()
    values = np.repeat(np.arange(16), truth)
    oracles = [
        local.DirectEncoding(EPSILON, 16),
        local.SymmetricUnary(EPSILON, 16),
        local.OptimizedUnary(EPSILON, 16),
        local.SubsetSelection(EPSILON, 16),
        local.LocalHashing(EPSILON, 16),
        local.LocalHashing(EPSILON, 16, buckets=2),
        local.HadamardResponse(EPSILON, 16),
        local.CountMeanSketch(EPSILON, 16),
        local.Rappor(4, 16),
    ]
    rows = []
    for oracle in oracles:
        reports = oracle.privatize(values)
        client = best(lambda o=oracle: o.privatize(values), repeats=2, warm=False)
        server = best(lambda o=oracle, r=reports: o.estimate(r), repeats=2, warm=False)
        # 16 categories x 200 surveys: the ratio has a standard error of about 2.5 %.
        errors = [oracle.estimate(oracle.privatize(values[::50])) for _ in range(200)]
        shares = np.bincount(values[::50], minlength=16) / len(values[::50])
        ratio = np.mean([((e.shares - shares) ** 2 / e.variance).mean() for e in errors])
        rows.append(
            [
                f"{oracle.name} ({float(oracle.epsilon):g})",
                f"{N / client / 1e6:.1f}",
                f"{N / server / 1e6:.1f}",
                str(oracle.report_bytes),
                f"{math.sqrt(float(oracle.estimate(reports).variance.mean()) * N):.2f}",
                f"{ratio:.2f}",
            ]
        )
    print(table(["16 categories (epsilon)", "client M/s", "server M/s", "bytes", "sd sqrt n", "error^2/theory"], rows))


def central_against_local(picture: str | None) -> None:
    """M3: the measured error of one share at epsilon 1, by n; 200 repetitions each."""
    people = [10**i for i in range(2, 8)]
    oracle = local.best_oracle(EPSILON, 2)
    central, found = [], []
    for n in people:
        repeats = max(20, min(200, 20_000_000 // n))
        values = (np.arange(n) < 0.3 * n).astype(np.int64)
        errors = [oracle.estimate(oracle.privatize(values)).shares[1] - 0.3 for _ in range(repeats)]
        found.append(float(np.sqrt(np.mean(np.square(errors)))))
        draws = noise.laplace(EPSILON, 20_000)
        central.append(float(np.sqrt(np.mean(np.square(draws / n)))))
    rows = [
        [f"{n:,}", f"{c:.2g}", f"{m:.2g}", f"{math.sqrt(oracle.variance(n, 0.3)):.2g}", f"{m / c:,.0f}x"]
        for n, c, m in zip(people, central, found, strict=True)
    ]
    print(table(["people", "central", "local", "local, theory", "local / central"], rows))
    if picture:
        lines = [("local, measured", people, found), ("central, measured", people, central)]
        ax = curves(lines, title="Error of one share at epsilon 1", xlabel="people", ylabel="standard error", log=True)
        ax.set_xscale("log")
        save(ax, picture)
        print(f"picture: {picture}")


MEMORY = """
import resource, time
import numpy as np
from hubbub import local
oracle = local.best_oracle(1, 16)
start = time.perf_counter()
total = oracle.empty()
for _ in range(10):
    total += oracle.aggregate(oracle.privatize(np.arange(10**6) % 16))
error = np.abs(total.estimate().shares - 1 / 16).max()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"10,000,000 reports ({oracle.name}, made and counted): {time.perf_counter() - start:.1f} s, "
      f"peak {peak:.0f} MiB, largest error {error:.5f}")
"""


def main() -> None:
    """Print everything."""
    if sys.argv[1:2] == ["install"]:
        for name in RIVALS:
            peers.install(name)
        return
    print(machine())
    against_rivals()
    print()
    every_oracle()
    print()
    central_against_local(sys.argv[1] if len(sys.argv) > 1 else None)
    print()
    subprocess.run([sys.executable, "-c", MEMORY], check=True)


if __name__ == "__main__":
    main()
