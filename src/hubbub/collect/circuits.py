"""What a report may hold, as a circuit that is 0 for valid ones: draft-irtf-cfrg-vdaf-20, section 7.4.

A *measurement* is encoded as field elements that are 0 or 1. A circuit calls one *gadget* (`gadgets`) some times, each
time on some wires, and its outputs are affine in measurement and gadgets' outputs; a valid measurement makes all of
them 0.

    Count               C(x) = x^2 - x
    Sum                 x^2 - x for each bit; the bits' weights are 1, 2, 4, ... and a last one, so that all of them
                        make `largest`, which bounds every measurement by construction
    SumVec, Histogram,  sum over elements x of r x (x - 1), r a fresh power of joint randomness for each: 0 with
    MultihotCountVec    probability 1 if all are bits, else with probability about length / p; and one-hotness, or the
                        reported weight, as a second output

On a share of a measurement, a constant is divided by the number of shares (`inverse`). Arrays are (limbs, k, n): k
elements for each of n reports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.collect.field import FIELD64, FIELD128, Elements, Field
from hubbub.collect.gadgets import Gadget, Products, Range
from hubbub.collect.polynomials import next_power_of_two
from hubbub.errors import ParameterError, QueryError, what_was_given
from hubbub.moved import Moved

__all__ = ["MAX_ELEMENTS", "Circuit", "Count", "Histogram", "MultihotCountVec", "Sum", "SumVec", "circuit", "whole"]

MAX_ELEMENTS: Final = 1 << 20
"""How many field elements one measurement may have; a share of that size is 16 MiB."""


def whole(value: Any, name: str, least: int, most: int) -> int:
    """A whole number between two others."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise ParameterError(f"{name} = {what_was_given(value)} was asked; give a whole number from {least} to {most}.")
    return int(value)


def range_weights(largest: int) -> list[int]:
    """The weights of the bits of a number from 0 to `largest`: powers of two, and a last one that makes them whole.

    >>> range_weights(10)
    [1, 2, 4, 3]
    """
    bits = largest.bit_length()
    return [1 << i for i in range(bits - 1)] + [largest - (1 << bits - 1) + 1]


def range_bits(values: NDArray[Any], largest: int) -> NDArray[Any]:
    """Bits with these weights that make each value, shape (bits, ...); one way where there are two, the draft's."""
    weights = range_weights(largest)
    ones = (1 << len(weights) - 1) - 1
    last = values > ones
    rest = np.where(last, values - weights[-1], values)
    rows = [(rest >> i) & 1 for i in range(len(weights) - 1)]
    return np.stack([*rows, last]).astype(np.int64)


@dataclass(frozen=True)
class Change:
    """How far one report, replaced by another, moves the aggregate at most: the sum of absolute changes, of squares."""

    l1: int
    l2_squared: int


@dataclass(frozen=True)
class Lengths:
    """How many field elements there are of what travels, and of what is computed on the way.

    wire: values in each wire polynomial (a seed, one for each call, zeros). gadget: values in the gadget polynomial.
    proof, verifier, query, joint: PROOF_LEN, VERIFIER_LEN, QUERY_RAND_LEN, JOINT_RAND_LEN.
    """

    wire: int
    gadget: int
    proof: int
    verifier: int
    query: int
    joint: int


class Circuit(Moved, ABC):
    """The base of the five. `algorithm`: its number in the registry, section 10. `words`: what a measurement is."""

    _moved: ClassVar = {"arity": "gadget.arity", "calls": "gadget.calls"}

    algorithm: ClassVar[int]
    name: ClassVar[str]
    words: ClassVar[str]
    field: ClassVar[Field]
    _joint: int = 0

    @property
    @abstractmethod
    def elements(self) -> int:
        """MEAS_LEN: how many field elements a measurement has."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """OUTPUT_LEN: how many numbers an aggregate has."""

    @property
    @abstractmethod
    def checks(self) -> int:
        """EVAL_OUTPUT_LEN: how many outputs the circuit has."""

    @property
    @abstractmethod
    def gadget(self) -> Gadget:
        """What is called, how often, and on how many wires."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, int]:
        """What it was made of, under the names of the draft's test vectors."""

    @property
    @abstractmethod
    def change(self) -> Change:
        """How far one report, replaced by another, moves the aggregate."""

    @abstractmethod
    def encode(self, measurements: Sequence[Any]) -> NDArray[np.int64]:
        """Measurements as bits, shape (elements, n).

        Raises:
            QueryError: one of them is not a valid measurement; its value is not told.
        """

    @abstractmethod
    def truncate(self, measurement: Elements) -> Elements:
        """What is added up of (shares of) measurements, (limbs, outputs, n)."""

    @abstractmethod
    def wires(self, measurement: Elements, joint: Elements, inverse: Elements) -> Elements:
        """The gadget's inputs, (limbs, arity, calls, n); `joint` is scaled."""

    @abstractmethod
    def evaluate(self, measurement: Elements, gadgets: Elements, inverse: Elements) -> Elements:
        """The outputs (limbs, checks, n) from the gadget's own, (limbs, calls, n)."""

    def decode(self, total: Sequence[int]) -> Any:
        """The aggregate as a caller sees it: a list of numbers."""
        return list(total)

    @property
    def lengths(self) -> Lengths:
        """What follows from the arity and the calls of the gadget."""
        arity, wire = self.gadget.arity, next_power_of_two(1 + self.gadget.calls)
        gadget = 2 * (wire - 1) + 1
        query = 1 + (self.checks if self.checks > 1 else 0)
        return Lengths(wire, gadget, arity + gadget, 2 + arity, query, self._joint)

    def _refuse(self) -> QueryError:
        return QueryError(f"some value is not {self.words}; give only such values to {self.name}.")

    def _integers(self, values: Any, largest: int, shape: tuple[int, ...]) -> NDArray[Any]:
        """Whole numbers from 0 to `largest`, of a shape."""
        try:
            raw = np.asarray(values)
            array = raw if raw.dtype.kind in "iub" else np.array(values, object)
        except (ValueError, OverflowError):
            raise self._refuse() from None
        if array.dtype == object and not all(isinstance(v, int | np.integer | np.bool_) for v in array.ravel()):
            raise self._refuse()
        if array.shape != shape or bool(np.any(array < 0)) or bool(np.any(array > largest)):
            raise self._refuse()
        return array.astype(np.int64) if largest < 1 << 62 else array.astype(object)


@dataclass(frozen=True)
class Count(Circuit):
    """How many measurements are 1.

    >>> Count().lengths.proof, Count().lengths.verifier
    (5, 4)
    """

    algorithm, name, words, field = 1, "Prio3Count", "0 or 1", FIELD64
    elements = outputs = checks = 1
    gadget = Products(FIELD64, arity=2, calls=1)
    change = Change(1, 1)

    @property
    def parameters(self) -> dict[str, int]:
        return {}

    def encode(self, measurements: Sequence[Any]) -> NDArray[np.int64]:
        return self._integers(measurements, 1, (len(measurements),)).reshape(1, -1)

    def truncate(self, measurement: Elements) -> Elements:
        return measurement

    def wires(self, measurement: Elements, joint: Elements, inverse: Elements) -> Elements:
        return np.stack([measurement, measurement], axis=1)

    def evaluate(self, measurement: Elements, gadgets: Elements, inverse: Elements) -> Elements:
        return gadgets - measurement

    def decode(self, total: Sequence[int]) -> int:
        return total[0]


@dataclass(frozen=True)
class Sum(Circuit):
    """The sum of whole numbers from 0 to `largest`."""

    largest: int

    algorithm, name, field = 2, "Prio3Sum", FIELD64
    outputs = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", whole(self.largest, "largest", 1, FIELD64.modulus - 1))

    @property
    def words(self) -> str:  # type: ignore[override]
        """What a measurement is."""
        return f"a whole number from 0 to {self.largest}"

    @property
    def elements(self) -> int:
        """One for each bit."""
        return self.largest.bit_length()

    @property
    def checks(self) -> int:
        return self.elements

    @property
    def gadget(self) -> Gadget:
        return Range(self.field, arity=1, calls=self.elements)

    @property
    def change(self) -> Change:
        return Change(self.largest, self.largest**2)

    @property
    def parameters(self) -> dict[str, int]:
        return {"max_measurement": self.largest}

    def encode(self, measurements: Sequence[Any]) -> NDArray[np.int64]:
        return range_bits(self._integers(measurements, self.largest, (len(measurements),)), self.largest)

    def truncate(self, measurement: Elements) -> Elements:
        return self.field.dot(self.field.constants(range_weights(self.largest), scaled=True), measurement)[:, None]

    def wires(self, measurement: Elements, joint: Elements, inverse: Elements) -> Elements:
        return measurement[:, None]

    def evaluate(self, measurement: Elements, gadgets: Elements, inverse: Elements) -> Elements:
        return gadgets

    def decode(self, total: Sequence[int]) -> int:
        return total[0]


class _Chunked(Circuit):
    """What the three with joint randomness share: all elements are bits, checked in `calls` chunks."""

    length: int
    chunk_length: int

    field = FIELD128

    def _check(self) -> None:
        object.__setattr__(self, "length", whole(self.length, "length", 1, MAX_ELEMENTS))
        object.__setattr__(self, "chunk_length", whole(self.chunk_length, "chunk_length", 1, MAX_ELEMENTS))
        if self.elements > MAX_ELEMENTS:
            raise ParameterError(f"a measurement of {self.elements} field elements was asked; the most is 2^20.")

    @property
    def gadget(self) -> Gadget:
        return Products(self.field, arity=2 * self.chunk_length, calls=-(-self.elements // self.chunk_length))

    @property
    def _joint(self) -> int:  # type: ignore[override]
        """One element for each call."""
        return self.gadget.calls

    @property
    def outputs(self) -> int:
        return self.length

    @property
    def checks(self) -> int:
        return 2

    def wires(self, measurement: Elements, joint: Elements, inverse: Elements) -> Elements:
        """Of element j of call i: r_i^(j+1) x, and x - 1."""
        n, chunk, calls = measurement.shape[-1], self.chunk_length, self.gadget.calls
        padded = np.zeros((self.field.limbs, calls * chunk, n), np.int64)
        padded[:, : self.elements] = measurement
        x = padded.reshape(self.field.limbs, calls, chunk, n).swapaxes(1, 2)
        powers = np.empty((self.field.limbs, chunk, *joint.shape[1:]), np.int64)
        powers[:, 0] = joint
        for j in range(1, chunk):
            powers[:, j] = self.field.mul(powers[:, j - 1], joint)
        out = np.empty((self.field.limbs, chunk, 2, calls, n), np.int64)
        out[:, :, 0] = self.field.mul(powers, x)
        out[:, :, 1] = x - inverse[:, None]
        return out.reshape(self.field.limbs, 2 * chunk, calls, n)

    def evaluate(self, measurement: Elements, gadgets: Elements, inverse: Elements) -> Elements:
        outputs = [gadgets.sum(axis=1), *self._more_checks(measurement, inverse)]
        return self.field.loose(np.stack(outputs, axis=1))

    def _more_checks(self, measurement: Elements, inverse: Elements) -> list[Elements]:
        """What has to be 0 beside the bits; nothing, where any bits are a measurement."""
        return []


@dataclass(frozen=True)
class SumVec(_Chunked):
    """The sums of vectors of `length` whole numbers from 0 to `largest`."""

    length: int
    largest: int
    chunk_length: int

    algorithm, name, checks = 3, "Prio3SumVec", 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", whole(self.largest, "largest", 1, FIELD128.modulus - 1))
        self._check()

    @property
    def words(self) -> str:  # type: ignore[override]
        """What a measurement is."""
        return f"a vector of {self.length} whole numbers from 0 to {self.largest}"

    @property
    def elements(self) -> int:
        return self.length * self.largest.bit_length()

    @property
    def change(self) -> Change:
        return Change(self.length * self.largest, self.length * self.largest**2)

    @property
    def parameters(self) -> dict[str, int]:
        return {"length": self.length, "max_measurement": self.largest, "chunk_length": self.chunk_length}

    def encode(self, measurements: Sequence[Any]) -> NDArray[np.int64]:
        values = self._integers(measurements, self.largest, (len(measurements), self.length))
        bits = range_bits(values, self.largest)
        return np.asarray(bits.transpose(2, 0, 1).reshape(self.elements, len(values)))

    def truncate(self, measurement: Elements) -> Elements:
        shape = (self.field.limbs, self.length, self.largest.bit_length(), measurement.shape[-1])
        bits = measurement.reshape(shape).swapaxes(1, 2)
        weights = self.field.constants(range_weights(self.largest), scaled=True)
        return self.field.dot(weights[..., None], bits)


@dataclass(frozen=True)
class Histogram(_Chunked):
    """How many measurements lie in each of `length` buckets."""

    length: int
    chunk_length: int

    algorithm, name, change = 4, "Prio3Histogram", Change(2, 2)

    def __post_init__(self) -> None:
        self._check()

    @property
    def words(self) -> str:  # type: ignore[override]
        """What a measurement is."""
        return f"the number of a bucket, from 0 to {self.length - 1}"

    @property
    def elements(self) -> int:
        return self.length

    @property
    def parameters(self) -> dict[str, int]:
        return {"length": self.length, "chunk_length": self.chunk_length}

    def encode(self, measurements: Sequence[Any]) -> NDArray[np.int64]:
        places = self._integers(measurements, self.length - 1, (len(measurements),))
        out = np.zeros((self.length, places.size), np.int64)
        out[places, np.arange(places.size)] = 1
        return out

    def truncate(self, measurement: Elements) -> Elements:
        return measurement

    def _more_checks(self, measurement: Elements, inverse: Elements) -> list[Elements]:
        return [np.asarray(measurement.sum(axis=1) - inverse[:, 0])]


@dataclass(frozen=True)
class MultihotCountVec(_Chunked):
    """How many measurements, vectors of `length` yes-or-no with at most `largest_weight` times yes, say yes to each."""

    length: int
    largest_weight: int
    chunk_length: int

    algorithm, name = 5, "Prio3MultihotCountVec"

    def __post_init__(self) -> None:
        most = whole(self.length, "length", 1, MAX_ELEMENTS)
        object.__setattr__(self, "largest_weight", whole(self.largest_weight, "largest_weight", 1, most))
        self._check()

    @property
    def words(self) -> str:  # type: ignore[override]
        """What a measurement is."""
        return f"a vector of {self.length} truth values, at most {self.largest_weight} of them true"

    @property
    def elements(self) -> int:
        return self.length + self.largest_weight.bit_length()

    @property
    def change(self) -> Change:
        most = min(2 * self.largest_weight, self.length)
        return Change(most, most)

    @property
    def parameters(self) -> dict[str, int]:
        return {"length": self.length, "max_weight": self.largest_weight, "chunk_length": self.chunk_length}

    def encode(self, measurements: Sequence[Any]) -> NDArray[np.int64]:
        values = self._integers(measurements, 1, (len(measurements), self.length))
        weights = values.sum(axis=1)
        if bool(np.any(weights > self.largest_weight)):
            raise self._refuse()
        return np.concatenate([values.T, range_bits(weights, self.largest_weight)]).astype(np.int64)

    def truncate(self, measurement: Elements) -> Elements:
        return measurement[:, : self.length]

    def _more_checks(self, measurement: Elements, inverse: Elements) -> list[Elements]:
        weights = self.field.constants(range_weights(self.largest_weight), scaled=True)
        reported = self.field.dot(weights, measurement[:, self.length :])
        return [np.asarray(measurement[:, : self.length].sum(axis=1) - reported)]


def circuit(parameters: dict[str, Any]) -> Circuit:
    """The circuit with these parameters, under the names of the draft's test vectors.

    >>> circuit({"length": 4, "chunk_length": 2})
    Histogram(length=4, chunk_length=2)

    Raises:
        ParameterError: no circuit has such parameters.
    """
    names = set(parameters)
    if names == set():
        return Count()
    if names == {"max_measurement"}:
        return Sum(parameters["max_measurement"])
    if names == {"length", "chunk_length"}:
        return Histogram(parameters["length"], parameters["chunk_length"])
    if names == {"length", "chunk_length", "max_measurement"}:
        return SumVec(parameters["length"], parameters["max_measurement"], parameters["chunk_length"])
    if names == {"length", "chunk_length", "max_weight"}:
        return MultihotCountVec(parameters["length"], parameters["max_weight"], parameters["chunk_length"])
    raise ParameterError(
        f"{', '.join(sorted(names))} are the parameters of no circuit; Count has none, Sum max_measurement, Histogram "
        "length and chunk_length, SumVec also max_measurement, MultihotCountVec also max_weight."
    )
