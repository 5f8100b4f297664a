"""Collecting without a centre that has to be trusted: Prio3 of draft-irtf-cfrg-vdaf-20, and noise on top of it.

    from hubbub import collect

    prio3 = collect.Prio3(collect.Histogram(length=4, chunk_length=2), context=b"my task")
    public, inputs = prio3.shard(measurements, nonces, rand)          # on the devices
    state, verifiers = prio3.verify_init(key, 0, nonces, public, inputs[0])   # each aggregator, its own share

`Prio3` is the computation, on many reports at once; `Count`, `Sum`, `SumVec`, `Histogram`, `MultihotCountVec` say what
a report may hold. `PrivateSum` is the noise that each aggregator adds, what it costs and the error that it makes; a
`PrivateTotal` is the outcome. `check_vector` replays a test vector of the draft.

`SecureSum` needs one server and no second company: masks that cancel, and shares of noise (`SumClient`, `SumServer`,
`simulate_secure_sum`).
"""

from hubbub.collect.circuits import Circuit, Count, Histogram, MultihotCountVec, Sum, SumVec
from hubbub.collect.prio3 import Prio3
from hubbub.collect.private import GaussianSum, PrivateSum, PrivateTotal
from hubbub.collect.secure_sum import SecureSum, SumClient, SumServer, simulate_secure_sum
from hubbub.collect.vectors import check_vector, read_vector

__all__ = [
    "Circuit",
    "Count",
    "GaussianSum",
    "Histogram",
    "MultihotCountVec",
    "Prio3",
    "PrivateSum",
    "PrivateTotal",
    "SecureSum",
    "Sum",
    "SumClient",
    "SumServer",
    "SumVec",
    "check_vector",
    "read_vector",
    "simulate_secure_sum",
]


def __dir__() -> list[str]:
    return sorted(__all__)
