"""Makes references.json: delta at epsilon for 60 problems, to 40 digits, by mpmath and exact integers.

Run from the repository root: `python tests/accounting/make_references.py`. Nothing of hubbub is used.
Methods: closed forms (Gaussian, one sampled Gaussian), exact sums (randomised response, Laplace by
Irwin-Hall), exact integer convolution (discrete Laplace and Gaussian), contour inversion with 60 digits
(sampled Gaussians); the inversion's trapezoid sums are checked by halving their steps.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath as mp

mp.mp.dps = 70


def gaussian(sigma: str, times: int, epsilon: str) -> Any:
    mu, e = mp.sqrt(times) / mp.mpf(sigma), mp.mpf(epsilon)
    return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


def response(epsilon0: str, delta0: str, times: int, epsilon: str) -> Any:
    e0, d0, e = mp.mpf(epsilon0), mp.mpf(delta0), mp.mpf(epsilon)
    up = 1 / (1 + mp.exp(-e0))
    low = int(mp.floor((e / e0 + times) / 2)) + 1
    term = mp.binomial(times, low) * up**low * (1 - up) ** (times - low)
    total = mp.mpf(0)
    for i in range(low, times + 1):
        total += term * (1 - mp.exp(e - (2 * i - times) * e0))
        term *= mp.mpf(times - i) / (i + 1) * up / (1 - up)
        if term < mp.mpf(10) ** -120:
            break
    kept = (1 - d0) ** times
    return 1 - kept + kept * total


def laplace(scale: str, times: int, epsilon: str) -> Any:
    """Atoms +-b and a continuous part of density e^((l - b)/2)/4 on [-b, b]; sums over how often each
    occurs.
    """
    b, e = 1 / mp.mpf(scale), mp.mpf(epsilon)
    total = mp.mpf(0)
    for j in range(times + 1):
        for a in range(times - j + 1):
            c = times - j - a
            ways = mp.binomial(times, j) * mp.binomial(times - j, a)
            weight = ways * mp.mpf(1) / 2**a * (mp.exp(-b) / 2) ** c
            shift = (a - c) * b
            if j == 0:
                total += weight * max(mp.mpf(0), 1 - mp.exp(e - shift))
                continue
            # j-fold: e^((l - j b)/2) / 4^j / (j-1)! sum_i (-1)^i C(j, i) (l + j b - 2 i b)_+^(j-1)
            part = mp.mpf(0)
            low, high = max(e - shift, -j * b), j * b
            if low >= high:
                continue
            for i in range(j + 1):
                start = max(low, (2 * i - j) * b)
                if start < high:
                    part += (-1) ** i * mp.binomial(j, i) * _moment(j - 1, (2 * i - j) * b, start, high, e - shift)
            total += weight * part * mp.exp(-j * b / 2) / mp.mpf(4) ** j / mp.factorial(j - 1)
    return total


def _moment(power: int, origin: Any, low: Any, high: Any, e: Any) -> Any:
    """Int over [low, high] of (l - origin)^power (e^(l/2) - e^(e - l/2))."""

    def primitive(rate: Any, x: Any) -> Any:
        y, total, factor = x - origin, mp.mpf(0), mp.mpf(1)
        for m in range(power + 1):
            total += factor * y ** (power - m) / rate ** (m + 1)
            factor *= -(power - m)
        return total * mp.exp(rate * x)

    half = mp.mpf(1) / 2
    up = primitive(half, high) - primitive(half, low)
    down = primitive(-half, high) - primitive(-half, low)
    return up - mp.exp(e) * down


def _power(base: list[int], times: int, unit: int) -> list[int]:
    """A fixed-point convolution power; the last digits of `unit` are lost, far below the 40 wanted."""
    result: list[int] | None = None
    while times:
        if times & 1:
            result = base if result is None else _times(result, base, unit)
        times >>= 1
        if times:
            base = _times(base, base, unit)
    assert result is not None
    return result


def _times(a: list[int], b: list[int], unit: int) -> list[int]:
    # Kronecker substitution: one big multiplication instead of a double loop.
    width = 8 * ((unit.bit_length() * 2 + 40) // 8)
    size = width // 8
    x = int.from_bytes(b"".join(v.to_bytes(size, "little") for v in a), "little")
    y = int.from_bytes(b"".join(v.to_bytes(size, "little") for v in b), "little")
    z = (x * y).to_bytes(size * (len(a) + len(b)), "little")
    return [int.from_bytes(z[i * size : (i + 1) * size], "little") // unit for i in range(len(a) + len(b) - 1)]


def _lattice(masses: list[Any], first: int, unit: Any, times: int, epsilon: str) -> Any:
    whole = 10**110
    power = _power([int(mp.nint(m * whole)) for m in masses], times, whole)
    e = mp.mpf(epsilon)
    total = mp.mpf(0)
    for k, mass in enumerate(power):
        loss = (first * times + k) * unit
        if loss > e:
            total += mp.mpf(mass) / whole * (1 - mp.exp(e - loss))
    return total


def discrete_laplace(scale: str, sensitivity: int, times: int, epsilon: str) -> Any:
    b, s = mp.mpf(scale), sensitivity
    head = mp.tanh(1 / (2 * b))
    masses = [mp.mpf(0)] * (2 * s + 1)
    for x in range(1, s):
        masses[2 * x] = head * mp.exp((x - s) / b)
    masses[0] = mp.exp(-s / b) / (1 + mp.exp(-1 / b))
    masses[2 * s] = 1 / (1 + mp.exp(-1 / b))
    return _lattice(masses, -s, 1 / b, times, epsilon)


def discrete_gaussian(sigma: str, sensitivity: int, times: int, epsilon: str) -> Any:
    s, variance = sensitivity, mp.mpf(sigma) ** 2
    reach = int(mp.sqrt(2 * variance * 260)) + 2
    weights = [mp.exp(-(mp.mpf(y) ** 2) / (2 * variance)) for y in range(-reach, reach + 1)]
    whole = mp.fsum(weights)
    # Losses (2 y + s) s / 2 sigma^2: every second point of the lattice of step s / 2 sigma^2.
    masses = [mp.mpf(0)] * (4 * reach + 1)
    for i, w in enumerate(weights):
        masses[2 * i] = w / whole
    return _lattice(masses, -2 * reach + s, s / (2 * variance), times, epsilon)


def sampled(sigma: str, rate: str, times: int, epsilon: str, adding: bool) -> Any:
    if times == 1:
        return _sampled_once(mp.mpf(sigma), mp.mpf(rate), mp.mpf(epsilon), adding)
    mp.mp.dps = 60
    found = [_contour(mp.mpf(sigma), mp.mpf(rate), times, mp.mpf(epsilon), adding, fine) for fine in (2, 3)]
    mp.mp.dps = 70
    assert abs(found[0] / found[1] - 1) < mp.mpf(10) ** -41, (sigma, rate, times, epsilon, adding)
    return found[1]


def _sampled_once(sigma: Any, q: Any, e: Any, adding: bool) -> Any:
    if not adding:
        x = mp.mpf(1) / 2 + sigma**2 * mp.log((mp.exp(e) - 1 + q) / q)
        above0, above1 = mp.ncdf(-x / sigma), mp.ncdf((1 - x) / sigma)
        return (1 - q) * above0 + q * above1 - mp.exp(e) * above0
    inner = mp.exp(-e) - 1 + q
    if inner <= 0:
        return mp.mpf(0)
    x = mp.mpf(1) / 2 + sigma**2 * mp.log(inner / q)
    below0, below1 = mp.ncdf(x / sigma), mp.ncdf((x - 1) / sigma)
    return below0 - mp.exp(e) * ((1 - q) * below0 + q * below1)


def _contour(sigma: Any, q: Any, times: int, e: Any, adding: bool, fine: int) -> Any:
    def grid(theta: Any) -> tuple[list[Any], list[Any]]:
        step = min(sigma * mp.mpf("0.3"), sigma**2 * mp.mpf("0.1")) / fine
        low, high = -15 * sigma - (theta if adding else 0), 15 * sigma + 1 + (0 if adding else theta)
        xs = [low + i * step for i in range(int((high - low) / step) + 2)]
        logs = [mp.log1p(q * mp.expm1((2 * x - 1) / (2 * sigma**2))) for x in xs]
        return logs, [mp.exp(-(x**2) / (2 * sigma**2)) * step / (sigma * mp.sqrt(2 * mp.pi)) for x in xs]

    def derivatives(theta: Any) -> tuple[Any, Any]:
        logs, ws = grid(theta)
        sign, p = (-1, -theta) if adding else (1, 1 + theta)
        tilted = [w * mp.exp(p * m) for m, w in zip(logs, ws, strict=True)]
        z = mp.fsum(tilted)
        mean = mp.fsum(t * m for t, m in zip(tilted, logs, strict=True)) / z
        square = mp.fsum(t * m * m for t, m in zip(tilted, logs, strict=True)) / z
        return sign * times * mean, times * (square - mean**2)

    low, high = mp.mpf("0.01"), mp.mpf(200)
    for _ in range(22):
        theta = mp.sqrt(low * high)
        low, high = (theta, high) if derivatives(theta)[0] < e else (low, theta)
    spread = mp.sqrt(derivatives(theta)[1])
    logs, ws = grid(theta)
    dt = 2 * mp.pi / (140 / theta + 36 * spread) / fine
    total, t = mp.mpf(0), mp.mpf(0)
    p0 = -theta if adding else 1 + theta
    base = [w * mp.exp(p0 * m) for m, w in zip(logs, ws, strict=True)]
    turn = [mp.expj((-1 if adding else 1) * m * dt) for m in logs]
    factor = [mp.mpc(b) for b in base]
    first = mp.mpf(0)
    for i in range(200000):
        s = mp.mpc(theta, t)
        value = mp.exp(times * mp.log(mp.fsum(factor)) - s * e) / (s * (s + 1))
        total += value.real / (2 if i == 0 else 1)
        first = max(first, abs(value))
        if abs(value) < first * mp.mpf(10) ** -46:
            break
        t += dt
        factor = [f * u for f, u in zip(factor, turn, strict=True)]
    else:
        raise AssertionError("the contour did not end")
    return total * dt / mp.pi


def problems() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for sigma, times, epsilons in (
        ("1", 1, ("1", "8")),
        ("4", 1, ("0.25", "2.5")),
        ("50", 1000, ("1", "2.9216", "7.5")),
        ("1000", 1000000, ("1", "5", "12")),
        ("20", 100, ("0.1", "3")),
        ("0.5", 3, ("20", "40")),
    ):
        found += [{"kind": "gaussian", "args": [sigma, times, e]} for e in epsilons]
    for e0, d0, times, epsilons in (
        ("1", "0", 1, ("0.5",)),
        ("0.1", "0", 100, ("1", "4.5", "7", "9.5")),
        ("0.1", "1e-8", 20, ("1.5", "1.79")),
        ("0.01", "0", 10000, ("2", "6", "12")),
        ("0.001", "0", 1000000, ("3", "11")),
    ):
        found += [{"kind": "response", "args": [e0, d0, times, e]} for e in epsilons]
    for scale, times, epsilons in (("1", 1, ("0.5", "0.9")), ("2", 5, ("1.2", "2.4")), ("10", 20, ("0.9", "1.9"))):
        found += [{"kind": "laplace", "args": [scale, times, e]} for e in epsilons]
    for scale, s, times, epsilons in (
        ("2", 3, 1, ("1.1",)),
        ("10", 3, 10, ("1.5", "2.9")),
        ("20", 1, 100, ("1", "4")),
    ):
        found += [{"kind": "discrete_laplace", "args": [scale, s, times, e]} for e in epsilons]
    for sigma, s, times, epsilons in (("2", 1, 1, ("1",)), ("3", 2, 10, ("4", "14")), ("5", 1, 100, ("6", "22"))):
        found += [{"kind": "discrete_gaussian", "args": [sigma, s, times, e]} for e in epsilons]
    for sigma, rate, times, epsilons in (
        ("2", "0.1", 1, ("0.05", "0.2")),
        ("1.1", "0.01", 10000, ("5.192583445883", "14.69")),
        ("0.8", "0.001", 100000, ("2.914478334988",)),
        ("1.5", "0.05", 1000, ("4",)),
        ("2", "0.3", 50, ("6",)),
        ("3", "0.05", 1000, ("6",)),
        ("1", "0.001", 1000000, ("7.5",)),
    ):
        for e in epsilons:
            found += [{"kind": "sampled", "args": [sigma, rate, times, e, adding]} for adding in (False, True)]
    return found


def main() -> None:
    methods = {
        "gaussian": gaussian,
        "response": response,
        "laplace": laplace,
        "discrete_laplace": discrete_laplace,
        "discrete_gaussian": discrete_gaussian,
        "sampled": sampled,
    }
    found = problems()
    for problem in found:
        problem["delta"] = mp.nstr(methods[problem["kind"]](*problem["args"]), 40)
        print(problem, flush=True)
    assert Fraction(found[0]["delta"]) > 0
    Path(__file__).with_name("references.json").write_text(json.dumps(found, indent=1) + "\n")
    print(len(found), "references")


if __name__ == "__main__":
    main()
