"""What the tests of this room share: random bytes, whole runs of Prio3, vectors in the draft's layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.collect import Prio3
from hubbub.collect.field import Bytes, Flags
from seeded import SeededBits

VECTORS = next(
    (p / "shared/data/vdaf" for p in Path(__file__).parents if (p / "shared/data/vdaf").is_dir()),
    Path("shared/data/vdaf"),
)
KEY = bytes(range(32))


def random_bytes(bits: SeededBits, n: int, width: int) -> Bytes:
    out = np.empty(n * width, np.uint8)
    bits.fill(out)
    return out.reshape(n, width)


def sharded(prio3: Prio3, measurements: Sequence[Any], bits: SeededBits) -> tuple[Bytes, Bytes, tuple[Bytes, ...]]:
    """Nonces, public shares, input shares."""
    n = len(measurements)
    nonces = random_bytes(bits, n, 16)
    return nonces, *prio3.shard(measurements, nonces, random_bytes(bits, n, prio3.rand_size))


def verified(
    prio3: Prio3, nonces: Bytes, public: Bytes, inputs: Sequence[Bytes], key: bytes = KEY
) -> tuple[list[Flags], list[list[int]]]:
    """What each aggregator takes for good, and its aggregate share."""
    started = [prio3.verify_init(key, j, nonces, public, share) for j, share in enumerate(inputs)]
    messages, valid = prio3.combine([share for _, share in started])
    good = [valid & prio3.verify_next(state, messages) for state, _ in started]
    return good, [prio3.aggregate(state, flags) for (state, _), flags in zip(started, good, strict=True)]


def _hex(rows: Bytes) -> list[str]:
    return [row.tobytes().hex() for row in rows]


def made_vector(prio3: Prio3, measurements: Sequence[Any], bits: SeededBits) -> dict[str, Any]:
    """A vector of our own in the draft's layout, all of whose operations succeed."""
    n, m = len(measurements), prio3.aggregators
    nonces, rand = random_bytes(bits, n, 16), random_bytes(bits, n, prio3.rand_size)
    public, inputs = prio3.shard(measurements, nonces, rand)
    started = [prio3.verify_init(KEY, j, nonces, public, share) for j, share in enumerate(inputs)]
    messages, good = prio3.combine([share for _, share in started])
    totals = [prio3.aggregate(state, good) for state, _ in started]
    outputs = [_hex(prio3.circuit.field.encode(state.shares)) for state, _ in started]
    operations: list[dict[str, Any]] = []
    for i in range(n):
        each = [{"aggregator_id": j, "report_index": i, "round": 0, "success": True} for j in range(m)]
        operations += [{"operation": "shard", "report_index": i, "success": True}]
        operations += [{"operation": "verify_init", **o} for o in each]
        operations += [{"operation": "verifier_shares_to_message", "report_index": i, "round": 0, "success": True}]
        operations += [{"operation": "verify_next", **o} for o in each]
    operations += [{"operation": "aggregate", "aggregator_id": j, "success": True} for j in range(m)]
    operations += [{"operation": "unshard", "success": True}]
    return {
        **prio3.circuit.parameters,
        "agg_param": "",
        "agg_result": prio3.unshard(totals),
        "agg_shares": [prio3.encode_aggregate(total).hex() for total in totals],
        "ctx": prio3.context.hex(),
        "operations": operations,
        "reports": [
            {
                "measurement": measurements[i],
                "nonce": nonces[i].tobytes().hex(),
                "rand": rand[i].tobytes().hex(),
                "public_share": public[i].tobytes().hex(),
                "input_shares": [share[i].tobytes().hex() for share in inputs],
                "verifier_shares": [[share[i].tobytes().hex() for _, share in started]],
                "verifier_messages": [messages[i].tobytes().hex()],
                "out_shares": [share[i] for share in outputs],
            }
            for i in range(n)
        ],
        "shares": m,
        "verify_key": KEY.hex(),
    }
