"""Exact noise, and the only room that touches random bits.

Every draw comes from exactly the distribution it names: floats may answer where their error bound allows,
certified integer arithmetic answers the rest. Noise is an integer (int64, or a Python int where one draw is
asked); reals go through a `Grid`. Bits come from the operating system through AES-CTR; nothing takes a
seed, tests pass `bits`.

Draws      `laplace`, `gaussian`, `geometric`, `polya`, `bernoulli`, `bernoulli_exp`, `uniform_below`, `choice`
Laws       `DiscreteLaplace`, `DiscreteGaussian`, `Geometric`, `Polya`: log_pmf, pmf, cdf, tail, quantile, variance
Reals      `Grid`
Bits       `Bits` (the interface), `SystemBits`, `system_bits`
Modes      `mode`, `set_mode`: `fast`, or `hardened`: bytes and look-ups do not depend on what is drawn
"""

from hubbub.noise.bits import Bits, SystemBits, system_bits
from hubbub.noise.draw import Mode, gaussian, geometric, laplace, mode, set_mode
from hubbub.noise.finite import bernoulli, bernoulli_exp, choice, uniform_below
from hubbub.noise.gaussian_law import DiscreteGaussian
from hubbub.noise.grid import Grid
from hubbub.noise.laplace_law import DiscreteLaplace, Geometric
from hubbub.noise.parameters import MAX_SCALE
from hubbub.noise.polya import MAX_SHARED_SCALE, Polya, polya

__all__ = [
    "MAX_SCALE",
    "MAX_SHARED_SCALE",
    "Bits",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Geometric",
    "Grid",
    "Mode",
    "Polya",
    "SystemBits",
    "bernoulli",
    "bernoulli_exp",
    "choice",
    "gaussian",
    "geometric",
    "laplace",
    "mode",
    "polya",
    "set_mode",
    "system_bits",
    "uniform_below",
]


def __dir__() -> list[str]:
    return sorted(__all__)
