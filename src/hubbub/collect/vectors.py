"""Replay of test vectors in the layout of draft-irtf-cfrg-vdaf-20, appendix C: Prio3's, and XofTurboShake128's.

Every operation is run on the vector's own messages, in the order given. It *holds* if it succeeds with exactly the
expected output where success is expected, and fails where failure is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from hubbub.collect import xof
from hubbub.collect.circuits import circuit
from hubbub.collect.field import FIELD128, Bytes
from hubbub.collect.prio3 import Prio3, State
from hubbub.errors import HubbubError, PolicyError

__all__ = ["MAX_FILE", "check_vector", "read_vector"]

MAX_FILE: Final = 64 << 20
_PARAMETERS: Final[tuple[str, ...]] = ("length", "chunk_length", "max_measurement", "max_weight")
_NEEDED: Final = ("ctx", "operations", "reports", "shares", "verify_key", "agg_shares", "agg_result", "agg_param")


class _Broken(Exception):
    """An operation failed, as a bad report makes it."""


def read_vector(path: Path) -> dict[str, Any]:
    """A vector file.

    Raises:
        PolicyError: it is not there, too large, or no vector.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE + 1)
        vector = json.loads(text) if len(text) <= MAX_FILE else None
    except OSError as error:
        raise PolicyError(f"{path} could not be read ({error.strerror}); name a vector file.") from None
    except (ValueError, RecursionError):
        vector = None
    if not isinstance(vector, dict):
        raise PolicyError(f"{path} is not a test vector: it holds no JSON object, or is larger than 64 MiB.")
    return vector


def _row(text: str) -> Bytes:
    return np.frombuffer(bytes.fromhex(text), np.uint8).reshape(1, -1)


def check_vector(vector: dict[str, Any]) -> Iterator[str]:
    """What does not hold, one line for each; nothing at all if the vector holds.

    Raises:
        PolicyError: it is a vector of something that hubbub does not have, or none.
    """
    if {"dst", "binder", "derived_seed", "expanded_vec_field128"} <= set(vector):
        yield from _check_xof(vector)
        return
    if {"bits", "proofs"} & set(vector) or not set(_NEEDED) <= set(vector):
        raise PolicyError("hubbub replays vectors of Prio3 with one proof and of XofTurboShake128; this is neither.")
    try:
        yield from _Replay(vector).run()
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise PolicyError(f"the vector is not of the draft's layout ({type(error).__name__}).") from None


def _check_xof(vector: dict[str, Any]) -> Iterator[str]:
    try:
        dst, binder, seed = (bytes.fromhex(vector[name]) for name in ("dst", "binder", "seed"))
        row, length = np.frombuffer(seed, np.uint8).reshape(1, xof.SEED_SIZE), int(vector["length"])
    except (KeyError, TypeError, ValueError):
        raise PolicyError("the vector is not of the draft's layout.") from None
    if xof.derive_seeds(dst, row, [binder]).tobytes().hex() != vector["derived_seed"]:
        yield "derive_seed: another seed"
    if (
        xof.expand_into_field(FIELD128, dst, row, [binder], length)[1].tobytes().hex()
        != vector["expanded_vec_field128"]
    ):
        yield "expand_into_vec: other elements"


@dataclass
class _Replay:
    vector: dict[str, Any]
    prio3: Prio3 = field(init=False)
    states: dict[tuple[int, int], State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parameters = {name: self.vector[name] for name in _PARAMETERS if name in self.vector}
        context = bytes.fromhex(self.vector["ctx"])
        self.prio3 = Prio3(circuit(parameters), self.vector["shares"], context)

    def run(self) -> Iterator[str]:
        """What does not hold."""
        for place, operation in enumerate(self.vector["operations"]):
            name, expected = operation["operation"], operation["success"]
            where = f"operation {place} ({name})"
            try:
                different = getattr(self, f"_{name}")(operation, expected)
            except (_Broken, HubbubError):
                if expected:
                    yield f"{where}: it fails, and should succeed"
            else:
                if not expected:
                    yield f"{where}: it succeeds, and should fail"
                elif different:
                    yield f"{where}: another {different}"

    def _report(self, operation: dict[str, Any]) -> dict[str, Any]:
        report: dict[str, Any] = self.vector["reports"][operation["report_index"]]
        return report

    def _shard(self, operation: dict[str, Any], expected: bool) -> str:
        report = self._report(operation)
        public, inputs = self.prio3.shard([report["measurement"]], _row(report["nonce"]), _row(report["rand"]))
        if public.tobytes().hex() != report["public_share"]:
            return "public share"
        return "" if [share.tobytes().hex() for share in inputs] == report["input_shares"] else "input share"

    def _verify_init(self, operation: dict[str, Any], expected: bool) -> str:
        report, aggregator = self._report(operation), operation["aggregator_id"]
        key = bytes.fromhex(self.vector["verify_key"])
        state, share = self.prio3.verify_init(
            key,
            aggregator,
            _row(report["nonce"]),
            _row(report["public_share"]),
            _row(report["input_shares"][aggregator]),
        )
        if not state.good[0]:
            raise _Broken
        self.states[operation["report_index"], aggregator] = state
        return "" if share.tobytes().hex() == report["verifier_shares"][0][aggregator] else "verifier share"

    def _verifier_shares_to_message(self, operation: dict[str, Any], expected: bool) -> str:
        report = self._report(operation)
        message, good = self.prio3.combine([_row(share) for share in report["verifier_shares"][0]])
        if not good[0]:
            raise _Broken
        return "" if not expected or message.tobytes().hex() == report["verifier_messages"][0] else "verifier message"

    def _verify_next(self, operation: dict[str, Any], expected: bool) -> str:
        report, aggregator = self._report(operation), operation["aggregator_id"]
        state = self.states.get((operation["report_index"], aggregator))
        if state is None or not self.prio3.verify_next(state, _row(report["verifier_messages"][0]))[0]:
            raise _Broken
        if not expected:
            return ""
        share = self.prio3.circuit.field.encode(state.shares).tobytes().hex()
        given = report["out_shares"][aggregator]
        return "" if share == (given if isinstance(given, str) else "".join(given)) else "output share"

    def _aggregate(self, operation: dict[str, Any], expected: bool) -> str:
        aggregator, total = operation["aggregator_id"], [0] * self.prio3.circuit.outputs
        for report in self.vector["reports"]:
            given = report["out_shares"][aggregator]
            encoded = bytes.fromhex(given if isinstance(given, str) else "".join(given))
            total = self.prio3.merge([total, self.prio3.decode_aggregate(encoded)])
        share = self.prio3.encode_aggregate(total).hex()
        return "" if share == self.vector["agg_shares"][aggregator] else "aggregate share"

    def _unshard(self, operation: dict[str, Any], expected: bool) -> str:
        shares = [self.prio3.decode_aggregate(bytes.fromhex(share)) for share in self.vector["agg_shares"]]
        return "" if self.prio3.unshard(shares) == self.vector["agg_result"] else "result"
