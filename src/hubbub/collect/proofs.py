"""Fully linear proofs of validity: draft-irtf-cfrg-vdaf-20, section 7.3 (Boneh et al. 2019, Theorem 4.3).

The prover evaluates the circuit, and makes of each of the gadget's wires the polynomial that has a random seed at
a^0 = 1 and the wire's value in call k at a^k; the gadget, applied to these polynomials, is the *gadget polynomial*, of
twice the degree. The proof is the seeds and its values. Everything the verifier computes is linear in measurement and
proof, so each aggregator computes a share of

    v   the circuit's outputs, with the gadget's taken from the gadget polynomial, in a random combination
    w   the wires' polynomials at a random t,   y   the gadget polynomial at t

and the sum of the shares is accepted if v = 0 and the gadget of w is y. A false proof passes with probability at most
2 p / |F| plus that of the combination, p the wires' length; w and y hide the measurement because of the seeds, which is
why t may be no node.
"""

from __future__ import annotations

import numpy as np

from hubbub.collect.circuits import Circuit
from hubbub.collect.field import Elements, Flags
from hubbub.collect.polynomials import doubled, weights_at

__all__ = ["decide", "prove", "query"]


def prove(circuit: Circuit, measurement: Elements, seeds: Elements, joint: Elements) -> Elements:
    """Proofs (limbs, proof, n) of valid measurements; `seeds` are the prover's random (limbs, arity, n)."""
    field, p = circuit.field, circuit.lengths.wire
    wires = circuit.wires(measurement, field.scaled(joint), field.constants([1]))
    values = np.zeros((field.limbs, p, circuit.gadget.arity, measurement.shape[-1]), np.int64)
    values[:, 0] = seeds
    values[:, 1 : 1 + circuit.gadget.calls] = wires.swapaxes(1, 2)
    gadgets = circuit.gadget(doubled(field, values).swapaxes(1, 2))
    return np.concatenate([seeds, gadgets[:, : circuit.lengths.gadget]], axis=1)


def query(
    circuit: Circuit, measurement: Elements, proof: Elements, random: Elements, joint: Elements, shares: int
) -> tuple[Elements, Flags]:
    """Shares of verifiers (limbs, verifier, n), and whether the test point of each report is not a node."""
    field, p, calls = circuit.field, circuit.lengths.wire, circuit.gadget.calls
    inverse = field.constants([pow(shares, -1, field.modulus)])
    seeds, gadgets = proof[:, : circuit.gadget.arity], proof[:, circuit.gadget.arity :]
    random = field.scaled(random)
    outputs = circuit.evaluate(measurement, gadgets[:, 2 : 2 * calls + 2 : 2], inverse)
    v = field.dot(random[:, :-1], outputs) if circuit.checks > 1 else outputs[:, 0]
    t = random[:, -1]
    power = t
    for _ in range(p.bit_length() - 1):
        power = field.mul(power, power)
    good = ~field.is_zero(power - field.constants([1], scaled=True)[:, 0])
    weights = weights_at(field, t, p)
    wires = circuit.wires(measurement, field.scaled(joint), inverse)
    at_t = field.mul(weights[:, :1], seeds) + field.dot(weights[:, 1 : 1 + calls, None], wires.swapaxes(1, 2))
    gadget_at_t = field.dot(weights_at(field, t, 2 * p, short=True), gadgets)
    return np.concatenate([v[:, None], at_t, gadget_at_t[:, None]], axis=1), good


def decide(circuit: Circuit, verifier: Elements) -> Flags:
    """Which of n verifiers (limbs, verifier, n) are those of valid measurements."""
    field = circuit.field
    gadget = circuit.gadget(field.loose(verifier[:, 1:-1]))
    return field.is_zero(verifier[:, 0]) & field.is_zero(gadget - verifier[:, -1])
