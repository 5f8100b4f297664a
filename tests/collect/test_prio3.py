"""Prio3: sums are right, every invalid report is dropped alone, and nothing else is learned from a share."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from collect.helpers import KEY, random_bytes, sharded, verified
from hubbub.collect import Circuit, Count, Histogram, MultihotCountVec, Prio3, Sum, SumVec
from hubbub.collect.circuits import circuit, range_bits, range_weights
from hubbub.errors import ParameterError, PolicyError, QueryError
from seeded import SeededBits

pytest.importorskip("Crypto.Hash.TurboSHAKE128", reason="pycryptodome (extra collect) is not installed")

CASES: list[tuple[Circuit, list[Any], Any]] = [
    (Count(), [1, 0, 1, 1, True], 4),
    (Sum(1), [1, 0, 1], 2),
    (Sum(1000), [0, 1000, 511, 512, 999, 3], 3025),
    (Sum(2**63 + 11), [2**63 + 11, 0, 1], 2**63 + 12),
    (Histogram(1, 1), [0, 0], [2]),
    (Histogram(11, 3), [0, 10, 10, 4], [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2]),
    (Histogram(5, 20), [4, 0], [1, 0, 0, 0, 1]),
    (SumVec(3, 9, 4), [[0, 9, 8], [7, 1, 0]], [7, 10, 8]),
    (SumVec(1, 2**70, 7), [[2**70], [5]], [2**70 + 5]),
    (MultihotCountVec(4, 2, 2), [[0, 1, 1, 0], [0, 0, 0, 0], [True, False, True, False]], [1, 1, 2, 0]),
    (MultihotCountVec(4, 4, 3), [[1, 1, 1, 1]], [1, 1, 1, 1]),
]


def _name(case: object) -> str:
    return str(case) if isinstance(case, Circuit) else ""


@pytest.mark.parametrize(("circuit", "measurements", "total"), CASES, ids=_name)
@pytest.mark.parametrize("aggregators", [2, 3])
def test_the_sum_is_right(circuit: Circuit, measurements: list[Any], total: Any, aggregators: int) -> None:
    prio3 = Prio3(circuit, aggregators, b"a context")
    good, shares = verified(prio3, *sharded(prio3, measurements, SeededBits("sum")))
    assert all(flags.all() for flags in good)
    assert prio3.unshard(shares) == total
    assert prio3.merge(shares) != shares[0]


@pytest.mark.parametrize("case", CASES[::2], ids=lambda case: str(case[0]))
def test_a_circuits_gadget_says_what_it_is_called_on_and_makes(case: tuple[Circuit, list[Any], Any]) -> None:
    """Against Python's integers: the sum of products of pairs, or x^2 - x, of so many wires in so many calls."""
    kind, measurements, _ = case
    field, gadget, n = kind.field, kind.gadget, len(measurements)
    joint = field.scaled(field.constants([3] * kind.lengths.joint).repeat(n, axis=-1))
    wires = kind.wires(field.small(kind.encode(measurements)), joint, field.constants([1]))
    assert wires.shape == (field.limbs, gadget.arity, gadget.calls, n)
    assert kind.lengths.proof == gadget.arity + kind.lengths.gadget
    x = [field.integers(wires[:, i]) for i in range(gadget.arity)]
    made = [a * a - a for a in x[0]]
    if gadget.arity > 1:
        made = [sum(a * b for a, b in zip(calls[::2], calls[1::2], strict=True)) for calls in zip(*x, strict=True)]
    assert field.integers(gadget(wires)) == [v % field.modulus for v in made]
    for name in ("arity", "calls"):
        with pytest.warns(DeprecationWarning, match=rf"\.{name} is now {type(kind).__name__}\.gadget\.{name};"):
            assert getattr(kind, name) == getattr(gadget, name)
        assert name not in dir(kind)
    with pytest.raises(AttributeError, match="nothing"):
        _ = kind.nothing  # type: ignore[attr-defined]


def test_sizes_are_those_that_the_messages_have() -> None:
    for kind, measurements, _ in CASES:
        prio3 = Prio3(kind, 3)
        nonces, public, inputs = sharded(prio3, measurements, SeededBits(1))
        assert public.shape[1] == prio3.public_size
        for j in range(3):
            assert inputs[j].shape[1] == prio3.input_size(j)
            state, verifier = prio3.verify_init(KEY, j, nonces, public, inputs[j])
            assert verifier.shape[1] == prio3.verifier_size
            total = prio3.aggregate(state, state.good)
            assert len(prio3.encode_aggregate(total)) == prio3.aggregate_size
            assert prio3.decode_aggregate(prio3.encode_aggregate(total)) == total


@pytest.mark.parametrize(("circuit", "measurements", "total"), CASES, ids=_name)
def test_a_batch_in_one_and_in_many_parts_is_the_same(circuit: Circuit, measurements: list[Any], total: Any) -> None:
    prio3 = Prio3(circuit)
    nonces, public, inputs = sharded(prio3, measurements, SeededBits(2))
    whole = prio3.verify_init(KEY, 0, nonces, public, inputs[0])[1]
    alone = [
        prio3.verify_init(KEY, 0, nonces[i : i + 1], public[i : i + 1], inputs[0][i : i + 1])[1]
        for i in range(len(measurements))
    ]
    assert np.array_equal(whole, np.concatenate(alone))
    empty = prio3.verify_init(KEY, 1, nonces[:0], public[:0], inputs[1][:0])
    assert prio3.aggregate(empty[0], empty[0].good) == [0] * circuit.outputs


class _AnyBits(Circuit):
    """The encoding is given as it is: what a client of one's own making could send."""

    def encode(self, measurements: Any) -> Any:
        return np.array(measurements, np.int64).T


def _lying(circuit: Circuit) -> Circuit:
    kind = type(circuit)
    return type("Lying", (_AnyBits, kind), {})(
        **{f.name: getattr(circuit, f.name) for f in dataclasses.fields(circuit)}
    )


@pytest.mark.parametrize(
    ("circuit", "encodings", "valid"),
    [
        (Count(), [[1], [2], [0], [5]], [True, False, True, False]),
        (Sum(10), [[1, 1, 1, 1], [0, 0, 2, 0], [1, 0, 0, 0]], [True, False, True]),
        (Histogram(4, 3), [[0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 1]],
         [True, False, False, False, True]),
        (SumVec(2, 3, 2), [[1, 1, 0, 1], [1, 0, 3, 0]], [True, False]),
        (MultihotCountVec(3, 2, 2), [[1, 1, 0, 1, 1], [1, 1, 1, 1, 1], [1, 0, 0, 0, 1], [1, 0, 0, 1, 0]],
         [True, False, True, True]),
    ],
    ids=_name,
)  # fmt: skip
def test_what_no_honest_client_encodes_is_dropped_alone(
    circuit: Circuit, encodings: list[list[int]], valid: list[bool]
) -> None:
    prio3 = Prio3(_lying(circuit))
    good, shares = verified(prio3, *sharded(prio3, encodings, SeededBits("lies")))
    assert [flags.tolist() for flags in good] == [valid, valid]
    honest = Prio3(circuit)
    kept = circuit.field.small(np.array([e for e, v in zip(encodings, valid, strict=True) if v]).T)
    assert honest.merge(shares) == circuit.field.integers(circuit.truncate(kept).sum(axis=-1))


@pytest.mark.parametrize(
    ("circuit", "measurements"), [(Count(), [1] * 12), (Sum(9), [5] * 12), (Histogram(4, 2), [1] * 12)], ids=_name
)
def test_one_changed_byte_anywhere_drops_that_report_and_no_other(circuit: Circuit, measurements: list[int]) -> None:
    prio3, bits = Prio3(circuit), SeededBits("bytes")
    nonces, public, inputs = sharded(prio3, measurements, bits)
    for which, array in enumerate((public, *inputs, nonces)):
        if which == 3 and not prio3.joint:
            continue  # without joint randomness the proof is not bound to the nonce; ids are checked elsewhere
        places = np.linspace(0, array.shape[1] - 1, min(10, array.shape[1])).astype(int) if array.size else []
        for i, place in enumerate(places):
            array[i % 12, place] ^= 1 << (i % 8)
        good, _ = verified(prio3, nonces, public, inputs)
        touched = np.zeros(12, bool)
        touched[: len(places)] = True
        assert all(np.array_equal(flags, ~touched) for flags in good), which
        for i, place in enumerate(places):
            array[i % 12, place] ^= 1 << (i % 8)


def test_another_verification_key_or_context_drops_everything() -> None:
    prio3 = Prio3(Histogram(4, 2), context=b"mine")
    nonces, public, inputs = sharded(prio3, [1, 2, 3], SeededBits("keys"))
    state, leader = prio3.verify_init(KEY, 0, nonces, public, inputs[0])
    _, helper = prio3.verify_init(bytes(32), 1, nonces, public, inputs[1])
    assert not prio3.combine([leader, helper])[1].any()
    other = Prio3(Histogram(4, 2), context=b"yours")
    assert not any(flags.any() for flags in verified(other, nonces, public, inputs)[0])
    message, _ = prio3.combine([leader, prio3.verify_init(KEY, 1, nonces, public, inputs[1])[1]])
    assert prio3.verify_next(state, message).all()
    assert not prio3.verify_next(state, message ^ np.uint8(1)).any()


def test_a_share_alone_is_uniform_whatever_the_measurement() -> None:
    """Leader's and helper's share of Count over 5,000 clients: the top byte's chi-square, false alarms 1e-9 each."""
    prio3, n = Prio3(Count()), 5000
    for measurement in (0, 1):
        nonces, public, inputs = sharded(prio3, [measurement] * n, SeededBits(f"uniform {measurement}"))
        for aggregator in (0, 1):
            state, _ = prio3.verify_init(KEY, aggregator, nonces, public, inputs[aggregator])
            top = prio3.circuit.field.encode(state.shares)[:, 7]
            counts = np.bincount(top, minlength=256)
            assert ((counts - n / 256) ** 2 / (n / 256)).sum() < 408  # chi-square, 255 degrees, 1 - 1e-9


@pytest.mark.parametrize(
    ("circuit", "bad"),
    [(Count(), 2), (Count(), -1), (Count(), "1"), (Count(), 0.5), (Sum(7), 8), (Histogram(4, 2), 4),
     (Histogram(4, 2), [1]), (SumVec(2, 3, 1), [1]), (SumVec(2, 3, 1), [1, 4]), (MultihotCountVec(3, 1, 1), [1, 1, 0]),
     (MultihotCountVec(3, 1, 1), None), (Sum(7), 10**40)],
    ids=str,
)  # fmt: skip
def test_a_measurement_that_is_none_is_refused_and_not_told(circuit: Circuit, bad: Any) -> None:
    prio3 = Prio3(circuit)
    with pytest.raises(QueryError) as told:
        sharded(prio3, [bad], SeededBits(3))
    assert circuit.name in str(told.value)
    assert repr(bad) not in str(told.value).replace("0 or 1", "").replace(str(getattr(circuit, "largest", "")), "")


def test_parameters_are_checked_when_built() -> None:
    for build in (
        lambda: Sum(0),
        lambda: Sum(2**64),
        lambda: Histogram(0, 1),
        lambda: Histogram(4, 0),
        lambda: SumVec(2**20, 3, 10),
        lambda: MultihotCountVec(3, 4, 1),
        lambda: Prio3(Count(), 1),
        lambda: Prio3(Count(), 256),
        lambda: Prio3(Count(), 2, bytes(1 << 16)),
        lambda: circuit({"bits": 4}),
    ):
        with pytest.raises(ParameterError):
            build()


def test_messages_of_another_shape_are_refused() -> None:
    prio3 = Prio3(Count())
    nonces, public, inputs = sharded(prio3, [1, 0], SeededBits(4))
    with pytest.raises(ParameterError):
        prio3.verify_init(KEY, 0, nonces, public, inputs[1])
    with pytest.raises(ParameterError):
        prio3.verify_init(KEY[:31], 0, nonces, public, inputs[0])
    with pytest.raises(ParameterError):
        prio3.shard([1], nonces, random_bytes(SeededBits(5), 1, prio3.rand_size))
    state, verifier = prio3.verify_init(KEY, 0, nonces, public, inputs[0])
    with pytest.raises(ParameterError):
        prio3.combine([verifier])
    with pytest.raises(ParameterError):
        prio3.verify_next(state, verifier)
    for wrong in (b"", bytes(9), b"\xff" * 8):
        with pytest.raises(PolicyError):
            prio3.decode_aggregate(wrong)


def test_bits_weigh_up_to_the_largest_measurement_and_no_further() -> None:
    for largest in (1, 2, 3, 10, 255, 256):
        weights = np.array(range_weights(largest))
        assert weights.sum() == largest
        values = np.arange(largest + 1)
        assert np.array_equal(weights @ range_bits(values, largest), values)


@pytest.mark.soak
def test_ten_thousand_histograms_take_two_thousand_a_second_on_two_cores() -> None:
    """Both aggregators' steps of Histogram(100): at most 10 seconds of processor time, 5 for each core."""
    import time

    prio3 = Prio3(Histogram(100, 10))
    nonces, public, inputs = sharded(prio3, [i % 100 for i in range(10_000)], SeededBits("speed"))
    start = time.process_time()
    good, shares = verified(prio3, nonces, public, inputs)
    assert time.process_time() - start < 10
    assert good[0].all()
    assert prio3.unshard(shares) == [100] * 100
