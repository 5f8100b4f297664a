"""Prio3: a sum over clients that nobody sees, of measurements that nobody sees; draft-irtf-cfrg-vdaf-20, section 7.

A client splits its encoded measurement x into additive *shares* modulo a prime, one for each aggregator, and proves
that x is valid. The first aggregator (the leader) gets its share in full, the others (helpers) a seed that expands to
theirs. The aggregators exchange a few numbers a report, learn that x is valid and nothing else, and add up the shares
of valid reports; the collector adds the aggregators' sums. *Privacy* holds if one aggregator is honest; *robustness*
(an invalid report is dropped) only if all of them are.

Methods work on n reports at once; messages are bytes, shape (n, width), in the draft's encoding (section 7.2.7), and
what is malformed or false is marked in `good`, (n,), not raised: a stranger's report stops nobody else's.

    shard           client: measurements, nonces, randomness -> public shares, one input share for each aggregator
    verify_init     aggregator: its shares -> a state to keep, and a verifier share to exchange
    combine         anybody: verifier shares -> messages
    verify_next     aggregator: state, message -> whether the report counts
    aggregate       aggregator: the sum of the output shares of good reports, as integers modulo p
    unshard         collector: aggregate shares -> the result

One proof for each report; joint randomness where the circuit asks for it. Comparisons of secrets are by numpy, on whole
batches; they are not constant-time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from hubbub.collect import xof
from hubbub.collect.circuits import Circuit
from hubbub.collect.field import Bytes, Elements, Flags
from hubbub.collect.proofs import decide, prove, query
from hubbub.errors import ParameterError, PolicyError

__all__ = ["NONCE_SIZE", "VERSION", "Prio3", "State"]

VERSION: Final = 18
NONCE_SIZE: Final = 16
_PROOFS: Final = b"\x01"
_MEASUREMENT, _PROOF, _JOINT, _PROVE, _QUERY, _JOINT_SEED, _JOINT_PART = range(1, 8)
# So many elements at a time, so that what is computed stays in the processor's cache.
_CHUNK: Final = 1 << 16


@dataclass(frozen=True)
class State:
    """What an aggregator keeps between two steps: output shares (limbs, outputs, n), seeds (n, 32) or (n, 0), good."""

    shares: Elements
    seeds: Bytes
    good: Flags


@dataclass(frozen=True)
class Prio3:
    """One task's computation: a circuit, so many aggregators, and a context that binds reports to the task.

    >>> from hubbub.collect import Histogram
    >>> Prio3(Histogram(length=4, chunk_length=2), context=b"my task").rand_size
    128

    Raises ParameterError for fewer than 2 or more than 255 aggregators, or a context of more than 2^15 bytes.
    """

    circuit: Circuit
    aggregators: int = 2
    context: bytes = b""

    def __post_init__(self) -> None:
        if not 2 <= self.aggregators <= 255:
            raise ParameterError(f"{self.aggregators} aggregators were asked; there are 2 to 255.")
        if len(self.context) > 1 << 15:
            raise ParameterError("the context has more than 2^15 bytes; give a shorter one.")

    # Sizes, in bytes.

    @property
    def joint(self) -> bool:
        """Whether the circuit needs joint randomness."""
        return self.circuit.lengths.joint > 0

    @property
    def rand_size(self) -> int:
        """Random bytes for one report."""
        return xof.SEED_SIZE * self.aggregators * (2 if self.joint else 1)

    @property
    def public_size(self) -> int:
        """Of a public share."""
        return xof.SEED_SIZE * self.aggregators if self.joint else 0

    def input_size(self, aggregator: int) -> int:
        """Of the input share of an aggregator, 0 the leader."""
        blind = xof.SEED_SIZE if self.joint else 0
        if aggregator:
            return xof.SEED_SIZE + blind
        return self.circuit.field.size * (self.circuit.elements + self.circuit.lengths.proof) + blind

    @property
    def verifier_size(self) -> int:
        """Of a verifier share."""
        return self.circuit.field.size * self.circuit.lengths.verifier + self.message_size

    @property
    def message_size(self) -> int:
        """Of a verifier message."""
        return xof.SEED_SIZE if self.joint else 0

    @property
    def aggregate_size(self) -> int:
        """Of an aggregate share."""
        return self.circuit.field.size * self.circuit.outputs

    @cached_property
    def _rows(self) -> int:
        return max(1, _CHUNK // (self.circuit.elements + self.circuit.lengths.proof))

    def _tag(self, usage: int) -> bytes:
        algorithm = self.circuit.algorithm.to_bytes(4, "big")
        return bytes([VERSION, 0]) + algorithm + usage.to_bytes(2, "big") + self.context

    def _expand(self, usage: int, seeds: Bytes, binders: list[bytes], length: int) -> tuple[Elements, Bytes]:
        return xof.expand_into_field(self.circuit.field, self._tag(usage), seeds, binders, length)

    # The client.

    def shard(self, measurements: Sequence[Any], nonces: Bytes, rand: Bytes) -> tuple[Bytes, tuple[Bytes, ...]]:
        """Public shares (n, public_size) and the input shares of each aggregator, of n measurements.

        nonces: (n, 16), rand: (n, rand_size), both from a secure source and never used twice.

        Raises:
            QueryError: a measurement is not valid. ParameterError: nonces or rand have another shape.
        """
        n = len(measurements)
        if nonces.shape != (n, NONCE_SIZE) or rand.shape != (n, self.rand_size):
            raise ParameterError(f"give {NONCE_SIZE} bytes of nonce and {self.rand_size} random bytes for each report.")
        bits = self.circuit.encode(measurements)
        parts = [
            self._shard(bits[:, rows], nonces[rows], rand[rows])
            for rows in (slice(i, i + self._rows) for i in range(0, max(n, 1), self._rows))
        ]
        public = np.concatenate([part[0] for part in parts])
        return public, tuple(np.concatenate([part[1][i] for part in parts]) for i in range(self.aggregators))

    def _shard(self, bits: Elements, nonces: Bytes, rand: Bytes) -> tuple[Bytes, list[Bytes]]:
        circuit, field = self.circuit, self.circuit.field
        n, step = nonces.shape[0], 2 if self.joint else 1
        seeds = rand.reshape(n, self.rand_size // xof.SEED_SIZE, xof.SEED_SIZE)
        helpers = seeds[:, : (self.aggregators - 1) * step]
        blinds = [seeds[:, -2], *(helpers[:, i] for i in range(1, helpers.shape[1], 2))] if self.joint else []
        measurement = field.small(bits)
        shares = [self._helper_measurement(j, helpers[:, (j - 1) * step]) for j in range(1, self.aggregators)]
        leader = field.encode(measurement - sum(elements for elements, _ in shares))
        joint, public = field.small(np.zeros((0, n), np.int64)), np.empty((n, 0), np.uint8)
        if self.joint:
            encoded = [leader, *(e for _, e in shares)]
            parts = [self._joint_part(j, blinds[j], e, nonces) for j, e in enumerate(encoded)]
            public = np.concatenate(parts, axis=1)
            joint = self._joint_random(self._joint_seed(public))
        random, _ = self._expand(_PROVE, seeds[:, -1], [_PROOFS] * n, circuit.gadget.arity)
        proof = prove(circuit, measurement, random, joint)
        proof = proof - sum(self._helper_proof(j, helpers[:, (j - 1) * step]) for j in range(1, self.aggregators))
        inputs = [np.concatenate([leader, field.encode(proof), *blinds[:1]], axis=1)]
        inputs += [helpers[:, i : i + step].reshape(n, step * xof.SEED_SIZE) for i in range(0, helpers.shape[1], step)]
        return public, inputs

    def _helper_measurement(self, aggregator: int, seeds: Bytes) -> tuple[Elements, Bytes]:
        return self._expand(_MEASUREMENT, seeds, [bytes([aggregator])] * len(seeds), self.circuit.elements)

    def _helper_proof(self, aggregator: int, seeds: Bytes) -> Elements:
        binders = [_PROOFS + bytes([aggregator])] * len(seeds)
        return self._expand(_PROOF, seeds, binders, self.circuit.lengths.proof)[0]

    def _joint_part(self, aggregator: int, blinds: Bytes, encoded: Bytes, nonces: Bytes) -> Bytes:
        head = bytes([aggregator])
        binders = [head + nonce.tobytes() + share.tobytes() for nonce, share in zip(nonces, encoded, strict=True)]
        return xof.derive_seeds(self._tag(_JOINT_PART), blinds, binders)

    def _joint_seed(self, parts: Bytes) -> Bytes:
        zeros = np.zeros((len(parts), xof.SEED_SIZE), np.uint8)
        return xof.derive_seeds(self._tag(_JOINT_SEED), zeros, [row.tobytes() for row in parts])

    def _joint_random(self, seeds: Bytes) -> Elements:
        return self._expand(_JOINT, seeds, [_PROOFS] * len(seeds), self.circuit.lengths.joint)[0]

    # The aggregators.

    def verify_init(
        self, verify_key: bytes, aggregator: int, nonces: Bytes, public: Bytes, inputs: Bytes
    ) -> tuple[State, Bytes]:
        """An aggregator's first step: a state to keep, and verifier shares (n, verifier_size) for the others."""
        n = len(nonces)
        self._fits(verify_key, aggregator, nonces, public, inputs)
        parts = [
            self._verify_init(verify_key, aggregator, nonces[rows], public[rows], inputs[rows])
            for rows in (slice(i, i + self._rows) for i in range(0, max(n, 1), self._rows))
        ]
        states, verifiers = zip(*parts, strict=True)
        state = State(
            np.concatenate([s.shares for s in states], axis=-1),
            np.concatenate([s.seeds for s in states]),
            np.concatenate([s.good for s in states]),
        )
        return state, np.concatenate(verifiers)

    def _fits(self, verify_key: bytes, aggregator: int, nonces: Bytes, public: Bytes, inputs: Bytes) -> None:
        n = len(nonces)
        shapes = ((n, NONCE_SIZE), (n, self.public_size), (n, self.input_size(aggregator)))
        if (nonces.shape, public.shape, inputs.shape) != shapes:
            raise ParameterError(f"nonces, public and input shares have shapes {shapes}, as bytes.")
        if len(verify_key) != xof.SEED_SIZE:
            raise ParameterError(f"a verification key has {xof.SEED_SIZE} bytes; {len(verify_key)} were given.")

    def _verify_init(
        self, verify_key: bytes, aggregator: int, nonces: Bytes, public: Bytes, inputs: Bytes
    ) -> tuple[State, Bytes]:
        circuit, field, n = self.circuit, self.circuit.field, len(nonces)
        blinds = inputs[:, inputs.shape[1] - self.message_size :]
        if aggregator:
            measurement, encoded = self._helper_measurement(aggregator, inputs[:, : xof.SEED_SIZE])
            proof, good = self._helper_proof(aggregator, inputs[:, : xof.SEED_SIZE]), np.ones(n, np.bool_)
        else:
            encoded = inputs[:, : circuit.elements * field.size]
            decoded, good = field.decode(inputs[:, : (circuit.elements + circuit.lengths.proof) * field.size])
            measurement, proof = decoded[:, : circuit.elements], decoded[:, circuit.elements :]
        joint, seeds, parts = field.small(np.zeros((0, n), np.int64)), np.empty((n, 0), np.uint8), []
        if self.joint:
            parts = [self._joint_part(aggregator, blinds, encoded, nonces)]
            corrected = public.copy()
            corrected[:, aggregator * xof.SEED_SIZE : (aggregator + 1) * xof.SEED_SIZE] = parts[0]
            seeds = self._joint_seed(corrected)
            joint = self._joint_random(seeds)
        keys = np.broadcast_to(np.frombuffer(verify_key, np.uint8), (n, xof.SEED_SIZE))
        binders = [_PROOFS + nonce.tobytes() for nonce in nonces]
        random, _ = self._expand(_QUERY, keys, binders, circuit.lengths.query)
        verifier, possible = query(circuit, measurement, proof, random, joint, self.aggregators)
        state = State(circuit.truncate(measurement), seeds, good & possible)
        return state, np.concatenate([field.encode(verifier), *parts], axis=1)

    def combine(self, verifiers: Sequence[Bytes]) -> tuple[Bytes, Flags]:
        """Verifier shares of all aggregators, in order -> messages (n, message_size), and which reports are valid."""
        circuit, field = self.circuit, self.circuit.field
        if len(verifiers) != self.aggregators or any(v.shape != (len(v), self.verifier_size) for v in verifiers):
            raise ParameterError(f"give {self.aggregators} verifier shares of {self.verifier_size} bytes each.")
        width = circuit.lengths.verifier * field.size
        decoded = [field.decode(share[:, :width]) for share in verifiers]
        total = field.loose(np.sum([elements for elements, _ in decoded], axis=0))
        good = np.logical_and.reduce([flags for _, flags in decoded]) & decide(circuit, total)
        parts = np.concatenate([share[:, width:] for share in verifiers], axis=1)
        return self._joint_seed(parts) if self.joint else parts, np.asarray(good)

    def verify_next(self, state: State, messages: Bytes) -> Flags:
        """Which reports count: those that were well-formed, and whose joint randomness is the aggregators' own."""
        if messages.shape != state.seeds.shape:
            raise ParameterError(f"give a message of {self.message_size} bytes for each report.")
        return np.asarray(state.good & (messages == state.seeds).all(axis=1))

    def aggregate(self, state: State, good: Flags) -> list[int]:
        """The sum of the output shares of the reports marked in `good`, as integers modulo p."""
        field, total = self.circuit.field, [0] * self.circuit.outputs
        chosen = field.canonical(state.shares)[..., good]
        for start in range(0, max(1, chosen.shape[-1]), 1 << 30):
            part = field.integers(chosen[..., start : start + (1 << 30)].sum(axis=-1))
            total = [(a + b) % field.modulus for a, b in zip(total, part, strict=True)]
        return total

    # Aggregate shares on the wire, and the collector.

    def encode_aggregate(self, total: Sequence[int]) -> bytes:
        """Integers modulo p, one for each output, as bytes."""
        size, p = self.circuit.field.size, self.circuit.field.modulus
        return b"".join((v % p).to_bytes(size, "little") for v in total)

    def decode_aggregate(self, encoded: bytes) -> list[int]:
        """What `encode_aggregate` wrote.

        Raises:
            PolicyError: it is not an aggregate share of this task.
        """
        size, p = self.circuit.field.size, self.circuit.field.modulus
        total = [int.from_bytes(encoded[i : i + size], "little") for i in range(0, len(encoded), size)]
        if len(encoded) != self.aggregate_size or any(v >= p for v in total):
            raise PolicyError("this is not an aggregate share of the task: another length, or numbers too large.")
        return total

    def merge(self, shares: Sequence[Sequence[int]]) -> list[int]:
        """The sum of aggregate shares modulo p, in [0, p)."""
        return [sum(column) % self.circuit.field.modulus for column in zip(*shares, strict=True)]

    def unshard(self, shares: Sequence[Sequence[int]]) -> Any:
        """The result without noise: a number for `Count` and `Sum`, a list of them for the others."""
        return self.circuit.decode(self.merge(shares))
