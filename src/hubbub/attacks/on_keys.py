"""Attacks that need no table: the keys are made for the purpose. What `hubbub attack tracing` runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hubbub.accounting.amounts import Number
from hubbub.attacks.inputs import chosen
from hubbub.attacks.report import Finding, Report
from hubbub.attacks.tracing import Accusation, Pirate, TracingScheme, draw_staircases, private_pirate, tracing_repeats
from hubbub.errors import ParameterError
from hubbub.noise import Bits

__all__ = ["TwoDecoders", "tracing"]


@dataclass(frozen=True, eq=False)
class TwoDecoders:
    """What was found of a decoder that answers exactly, and of a private one."""

    exact: Accusation
    private: Accusation

    def plot(self, ax: Any = None) -> Any:
        """Both staircases: the first jumps at pirates, the second is flat."""
        return draw_staircases({"exact pirate": self.exact, "private pirate": self.private}, ax=ax)


def tracing(
    *,
    users: int,
    pirates: int,
    epsilon: Number,
    strategy: str = "majority",
    beta: Number = "0.05",
    bits: Bits | None = None,
) -> Report:
    """A random coalition's decoder is traced, and the same coalition's private one, of Laplace noise at epsilon."""
    if not 1 <= pirates < users:
        raise ParameterError(f"{pirates} pirates of {users} users were asked; give at least 1, and leave one innocent.")
    scheme = TracingScheme(users=users, beta=beta, bits=bits)
    guilty = [int(u) + 1 for u in chosen(users, pirates, bits)]
    keys, repeats = scheme.coalition(guilty), tracing_repeats(users, beta)
    columns = (users + 1) * repeats
    exact = scheme.trace(Pirate(keys, strategy, bits), pirates=guilty, bits=bits)
    noisy = private_pirate(keys, columns=columns, epsilon=epsilon, bits=bits)
    private = scheme.trace(noisy, pirates=guilty, bits=bits)
    return Report(
        (
            Finding("a pirate is accused", exact.success, private.success, min(1.0, pirates * exact.ceiling(epsilon))),
            Finding(f"largest gap; accused from {1 / users:.3f}", exact.gap, private.gap),
            Finding("ones among honest ciphertexts of 0", float(exact.shares[0]), float(private.shares[0])),
            Finding("ones among honest ciphertexts of 1", float(exact.shares[-1]), float(private.shares[-1])),
        ),
        (
            f"{columns:,} columns, {repeats:,} of each kind; an innocent is accused with probability {beta} at most.",
            "The private pirate is a mechanism at epsilon for all columns together; it is not a useful decoder.",
        ),
        TwoDecoders(exact, private),
    )
