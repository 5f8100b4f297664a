"""The one door between private integers and answers: value + exact integer noise.

Laplace mechanism on integers (geometric mechanism: Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing
privacy mechanisms", 2009; the vector form is Dwork, McSherry, Nissim, Smith 2006, Theorem 3.6). Let f map tables to
Z^d with ||f(D) - f(D')||_1 <= s for neighbours, and let Z have independent entries with P(Z = z) ~ exp(-|z| / b).
Then for every output y, P(f(D) + Z = y) / P(f(D') + Z = y) = exp((||y - f(D')||_1 - ||y - f(D)||_1) / b)
<= exp(s / b): the release is (s / b)-DP, and tight when some pair of neighbours reaches s. Python integers do not
overflow, so the proof holds for every value.

Gaussian mechanism on integers (Canonne, Kamath, Steinke 2020, Theorem 4 and its vector form): if
||f(D) - f(D')||_2^2 <= s and Z is discrete Gaussian of parameter sigma^2, the release is (s / 2 sigma^2)-zCDP.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.errors import InternalError
from hubbub.mechanisms.recording import Norm, Recorded, recording, through
from hubbub.noise import Bits, DiscreteGaussian, DiscreteLaplace

__all__ = ["Recorded", "add_noise", "recording"]


def add_noise(
    values: Sequence[int],
    *,
    sensitivity: int,
    distribution: DiscreteLaplace | DiscreteGaussian,
    bits: Bits | None = None,
) -> tuple[int, ...]:
    """Add one independent draw of `distribution` to each integer.

    values: the exact vector, Python integers. sensitivity: at least 1; for Laplace noise its l1 sensitivity (the loss
    is sensitivity / scale), for Gaussian noise the square of its l2 sensitivity (rho is sensitivity / 2 sigma^2).
    bits: a bit source for tests.

    Raises InternalError for a value that is not an integer, or a sensitivity below 1.
    """
    if set(map(type, values)) - {int}:
        raise InternalError("noise is added to integers only")
    if type(sensitivity) is not int or sensitivity < 1:
        raise InternalError("a sensitivity is a whole number of at least 1")

    def draw() -> tuple[int, ...]:
        noise = distribution.sample(len(values), bits=bits)
        return tuple(map(int.__add__, values, noise.tolist()))

    norm: Norm = "l1" if isinstance(distribution, DiscreteLaplace) else "l2_squared"
    return through(values, sensitivity=sensitivity, norm=norm, law=distribution, draw=draw)
