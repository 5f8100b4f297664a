"""Fields, polynomials and the hash function against Python's integers and the definitions."""

from __future__ import annotations

import random

import numpy as np
import pytest

from collect.helpers import random_bytes
from hubbub.collect import xof
from hubbub.collect.field import FIELD64, FIELD128, Field
from hubbub.collect.polynomials import doubled, weights_at
from hubbub.errors import ParameterError
from seeded import SeededBits

FIELDS = [FIELD64, FIELD128]


def numbers(field: Field, n: int, seed: int) -> list[int]:
    """Random elements, every third one at an edge."""
    p, chosen = field.modulus, random.Random(seed)
    edges = [0, 1, 2, p - 1, p - 2, 2**26 - 1, 2**26, 2**52, (p - 1) // 2, p - 2**52, field.factor << field.shift]
    return [chosen.choice(edges) if chosen.random() < 1 / 3 else chosen.randrange(p) for _ in range(n)]


@pytest.mark.parametrize("field", FIELDS)
def test_products_sums_and_dots_are_those_of_integers(field: Field) -> None:
    a, b, p = numbers(field, 900, 1), numbers(field, 900, 2), field.modulus
    plain = field.constants(a).reshape(field.limbs, 90, 10)
    scaled = field.constants(b, scaled=True).reshape(field.limbs, 90, 10)
    other = field.constants(b).reshape(field.limbs, 90, 10)
    assert field.integers(field.mul(plain, scaled)) == [x * y % p for x, y in zip(a, b, strict=True)]
    assert field.integers(field.mul(plain - other, scaled)) == [(x - y) * y % p for x, y in zip(a, b, strict=True)]
    assert field.integers(field.scaled(other)) == field.integers(scaled)
    dots = [sum(a[k * 10 + i] * b[k * 10 + i] for k in range(90)) % p for i in range(10)]
    assert field.integers(field.dot(plain, scaled)) == dots
    assert field.is_zero(plain - plain).all()
    assert field.is_zero(plain).reshape(-1).tolist() == [x == 0 for x in a]


@pytest.mark.parametrize("field", FIELDS)
def test_the_canonical_form_is_below_the_prime_whatever_the_limbs(field: Field) -> None:
    a, b = numbers(field, 600, 3), numbers(field, 600, 4)
    x, y = field.constants(a), field.constants(b)
    for combined, factors in ((3 * x - 7 * y, (3, -7)), (y - 2**20 * x, (-(2**20), 1)), (x + y, (1, 1))):
        whole = field.canonical(combined)
        assert whole.min() >= 0
        assert whole.max() < 2**26
        found = [sum(v << 26 * i for i, v in enumerate(limbs)) for limbs in whole.reshape(field.limbs, -1).T.tolist()]
        wanted = [(factors[0] * u + factors[1] * v) % field.modulus for u, v in zip(a, b, strict=True)]
        assert found == wanted


@pytest.mark.parametrize("field", FIELDS)
def test_bytes_are_little_endian_and_numbers_beyond_the_field_are_seen(field: Field) -> None:
    a = numbers(field, 60, 5)
    encoded = field.encode(field.constants(a).reshape(field.limbs, 6, 10))
    whole = [b"".join(a[k * 10 + i].to_bytes(field.size, "little") for k in range(6)) for i in range(10)]
    assert [row.tobytes() for row in encoded] == whole
    again, good = field.decode(encoded)
    assert good.all()
    assert field.integers(again) == a
    for value, fits in ((field.modulus - 1, True), (field.modulus, False), (2 ** (8 * field.size) - 1, False)):
        row = np.frombuffer(value.to_bytes(field.size, "little"), np.uint8).reshape(1, -1)
        assert field.decode(row)[1].tolist() == [fits]


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_another_form_is_refused(field: Field) -> None:
    with pytest.raises(ParameterError):
        Field(size=8, factor=1, shift=20)
    with pytest.raises(ParameterError):
        field.root(3)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("n", [1, 2, 8, 32])
def test_values_elsewhere_are_those_of_the_polynomial(field: Field, n: int) -> None:
    p, coefficients = field.modulus, numbers(field, n, n)
    at = lambda x, c=coefficients: sum(a * pow(x, i, p) for i, a in enumerate(c)) % p  # noqa: E731
    values = field.constants([at(x) for x in field.roots(n)])
    assert field.integers(doubled(field, values)) == [at(x) for x in field.roots(2 * n)]
    points = numbers(field, 7, 100 + n)
    t = field.constants(points, scaled=True)[:, :, 0]
    assert field.integers(field.dot(weights_at(field, t, n), values)) == [at(x) for x in points]
    if n > 1:
        low = coefficients[: n - 1]
        short = field.constants([at(x, low) for x in field.roots(n)[: n - 1]])
        assert field.integers(field.dot(weights_at(field, t, n, short=True), short)) == [at(x, low) for x in points]


@pytest.mark.parametrize("field", FIELDS)
def test_roots_are_those_of_the_draft(field: Field) -> None:
    generator = {8: pow(7, 4294967295, FIELD64.modulus), 16: pow(7, 4611686018427387897, FIELD128.modulus)}[field.size]
    order = {8: 2**32, 16: 2**66}[field.size]
    for n in (1, 2, 16, 1024):
        assert field.root(n) == pow(generator, order // n, field.modulus)


@pytest.mark.parametrize("field", FIELDS)
def test_elements_at_or_above_the_prime_are_passed_over(field: Field, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in 2^32 or 2^59: a stream of our own has three of them."""
    good = [5, field.modulus - 1, 7, 9]
    stream = [good[0], field.modulus, good[1], 2 ** (8 * field.size) - 1, field.modulus + 1, good[2], good[3]]
    data = b"".join(v.to_bytes(field.size, "little") for v in stream)

    class Stream:
        def __init__(self, domain: int, data: bytes) -> None:
            self.place = 0

        def read(self, length: int) -> bytes:
            self.place += length
            return data[self.place - length : self.place]

    monkeypatch.setattr(xof, "_turboshake", lambda: Stream)
    seeds = np.zeros((2, 32), np.uint8)
    elements, encoded = xof.expand_into_field(field, b"", seeds, [b"", b""], 4)
    assert field.integers(elements[..., 0]) == good == field.integers(elements[..., 1])
    assert encoded[0].tobytes() == b"".join(v.to_bytes(field.size, "little") for v in good)


def test_the_hash_function_is_that_of_rfc_9861() -> None:
    """TurboSHAKE128 of the empty message with domain byte 31: the RFC's first example; the tag and seed come first."""
    pytest.importorskip("Crypto.Hash.TurboSHAKE128", reason="pycryptodome (extra collect) is not installed")
    stream = xof._turboshake()(domain=0x1F, data=b"").read(32)
    assert stream.hex() == "1e415f1c5983aff2169217277d17bb538cd945a397ddec541f1ce41af2c1b74c"
    seeds = random_bytes(SeededBits("xof"), 3, 32)
    out = xof.expand(b"tag", seeds, [b"a", b"b", b"c"], 50)
    for seed, binder, row in zip(seeds, b"abc", out, strict=True):
        message = b"\x03\x00tag\x20" + seed.tobytes() + bytes([binder])
        assert xof._turboshake()(domain=1, data=message).read(50) == row.tobytes()
