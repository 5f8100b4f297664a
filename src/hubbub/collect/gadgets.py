"""The parts of a circuit that are not affine: draft-irtf-cfrg-vdaf-20, section 7.3.2. Both are of degree 2.

A circuit calls its gadget `calls` times, each time on `arity` wires. Arrays are (limbs, arity, ...) in, (limbs, ...)
out, nothing scaled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from hubbub.collect.field import Elements, Field

__all__ = ["Gadget", "Products", "Range"]


@dataclass(frozen=True)
class Gadget(ABC):
    """What a circuit calls `calls` times, each time on `arity` wires."""

    field: Field
    arity: int
    calls: int

    @abstractmethod
    def __call__(self, wires: Elements) -> Elements:
        """The outputs, (limbs, ...), of wires (limbs, arity, ...)."""


class Products(Gadget):
    """The sum of products of pairs of wires: `Mul`, `ParallelSum(Mul)`."""

    def __call__(self, wires: Elements) -> Elements:
        return self.field.dot(self.field.scaled(wires[:, 0::2]), wires[:, 1::2])


class Range(Gadget):
    """x^2 - x, of one wire."""

    def __call__(self, wires: Elements) -> Elements:
        x = wires[:, 0]
        return self.field.loose(self.field.mul(self.field.scaled(x), x) - x)
