"""Which frequency oracle: the one of least variance whose reports are small enough.

By variance factor, subset selection is never behind k-ary response or the unary encodings, but its reports have k bits
and its clients do the order of k / (e^epsilon + 1) draws. For many categories, local hashing is next (18 bytes,
slow server), then Hadamard response (2 or 3 bytes, the fastest server).
"""

from __future__ import annotations

from hubbub.accounting.amounts import Number
from hubbub.local.direct import DirectEncoding
from hubbub.local.hadamard import HadamardResponse
from hubbub.local.hashing import LocalHashing
from hubbub.local.oracle import Categories, FrequencyOracle, whole
from hubbub.local.subset import SubsetSelection
from hubbub.local.unary import OptimizedUnary, SymmetricUnary

__all__ = ["ORACLES", "best_oracle"]

ORACLES: dict[str, type[FrequencyOracle]] = {
    kind.name: kind
    for kind in (DirectEncoding, SubsetSelection, OptimizedUnary, SymmetricUnary, LocalHashing, HadamardResponse)
}


def best_oracle(epsilon: Number, categories: Categories, *, report_bytes: int = 64) -> FrequencyOracle:
    """The oracle of least variance factor among those whose reports have at most `report_bytes` bytes; among equals,
    the smallest reports.

    >>> best_oracle(1, 16).name, best_oracle(1, 10_000).name, best_oracle(4, 16).name
    ('subset', 'hashing', 'direct')
    """
    limit = whole(report_bytes, "report_bytes", 4, 1 << 20)
    fits: list[FrequencyOracle] = []
    for kind in (DirectEncoding, SubsetSelection, LocalHashing, HadamardResponse):
        size = categories if isinstance(categories, int) else len(categories)
        if kind is SubsetSelection and size > 8 * min(limit, 1 << 13):
            continue
        oracle = kind(epsilon, categories)
        if oracle.report_bytes <= limit:
            fits.append(oracle)
    return min(fits, key=lambda oracle: (round(oracle.variance_factor, 9), oracle.report_bytes))
