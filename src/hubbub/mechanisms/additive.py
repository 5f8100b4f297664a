"""The one door between private integers and answers: value + exact integer noise.

Laplace mechanism on integers (geometric mechanism: Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing
privacy mechanisms", 2009; the vector form is Dwork, McSherry, Nissim, Smith 2006, Theorem 3.6). Let f map tables to
Z^d with ||f(D) - f(D')||_1 <= s for neighbours, and let Z have independent entries with P(Z = z) ~ exp(-|z| / b).
Then for every output y, P(f(D) + Z = y) / P(f(D') + Z = y) = exp((||y - f(D')||_1 - ||y - f(D)||_1) / b)
<= exp(s / b): the release is (s / b)-DP, and tight when some pair of neighbours reaches s. Python integers do not
overflow, so the proof holds for every value.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.errors import InternalError
from hubbub.mechanisms.recording import Recorded, recording, through
from hubbub.noise import Bits, DiscreteLaplace

__all__ = ["Recorded", "add_noise", "recording"]


def add_noise(
    values: Sequence[int], *, sensitivity: int, distribution: DiscreteLaplace, bits: Bits | None = None
) -> tuple[int, ...]:
    """Add one independent draw of `distribution` to each integer.

    values: the exact vector, Python integers. sensitivity: its l1 sensitivity, at least 1; the loss is
    sensitivity / distribution.scale. bits: a bit source for tests.

    Raises InternalError for a value that is not an integer, or a sensitivity below 1.
    """
    if any(type(v) is not int for v in values):
        raise InternalError("noise is added to integers only")
    if type(sensitivity) is not int or sensitivity < 1:
        raise InternalError("a sensitivity is a whole number of at least 1")

    def draw() -> tuple[int, ...]:
        noise = distribution.sample(len(values), bits=bits)
        return tuple(v + int(z) for v, z in zip(values, noise, strict=True))

    return through(values, sensitivity=sensitivity, norm="l1", law=distribution, draw=draw)
