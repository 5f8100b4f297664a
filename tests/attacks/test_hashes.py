"""Hashes of identifiers with a format are those identifiers."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from attacks.helpers import slack
from hubbub.attacks import TAXI_MEDALLIONS, Format, guess_ceiling, reverse_hashes
from hubbub.attacks.md5 import first_words
from hubbub.errors import ParameterError
from hubbub.mechanisms import KaryResponse
from hubbub.noise import uniform_below
from seeded import SeededBits


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def test_there_are_18278000_medallions():
    assert [f.size for f in TAXI_MEDALLIONS] == [26_000, 676_000, 17_576_000]
    assert sum(f.size for f in TAXI_MEDALLIONS) == 18_278_000


@pytest.mark.parametrize("length", [0, 1, 3, 4, 7, 20, 55])
def test_many_digests_at_once_are_those_of_hashlib(length):
    texts = [bytes((i * 37 + j * 11) % 256 for j in range(length)) for i in range(50)]
    blocks = [(t + b"\x80").ljust(56, b"\0") + (8 * length).to_bytes(8, "little") for t in texts]
    words = np.frombuffer(b"".join(blocks), "<u4").reshape(50, 16)
    assert first_words([words[:, w].copy() for w in range(16)], 50).tolist() == [
        int.from_bytes(hashlib.md5(t).digest()[:4], "little") for t in texts
    ]


def test_every_hashed_medallion_is_found():
    texts = ["5X41", "0A00", "9Z99", "AA000", "ZZ999", "SB042", "AAA000", "ZZZ999", "XYZ123", "MMM500"]
    unknown = [md5("NOT A MEDALLION"), md5("5x41"), md5("")]
    found = reverse_hashes([md5(t) for t in texts] + unknown)
    assert dict(found.found) == {md5(t): t for t in texts}
    assert found.success == 10 / 13
    assert found.tried == 18_278_000
    assert found.ceiling(1) == pytest.approx(np.e / (18_278_000 + np.e - 1))


def test_one_million_digests_each_once_are_all_found_back():
    form = Format("99X9x")
    texts = [t.decode() for t in form.texts()][::97]
    found = reverse_hashes([md5(t) for t in texts], [form])
    assert sorted(found.found.values()) == sorted(texts)


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256"])
def test_a_known_salt_helps_nobody(algorithm):
    form = Format("X99", before="pepper:", after="!")
    secret = hashlib.new(algorithm, b"pepper:Q42!").hexdigest().upper()
    assert reverse_hashes([secret], [form], algorithm=algorithm).found == {secret: "Q42"}


def test_literals_stand_for_themselves():
    form = Format(r"+4\9 9")
    assert form.size == 10
    assert next(form.texts()) == b"+49 0"
    assert reverse_hashes([md5("+49 7")], [form]).success == 1
    assert reverse_hashes([md5("é5")], [Format("é9")]).found == {md5("é5"): "é5"}


def test_randomised_identifiers_stay_below_the_ceiling():
    n, values, epsilon, bits = 20_000, 26_000, 3, SeededBits("medallions")
    truth = uniform_below(values, n, bits=bits)
    reports = np.asarray(KaryResponse(categories=values, epsilon=epsilon).release(truth, bits=bits))
    right = float((reports == truth).mean())
    assert right <= guess_ceiling(1 / values, epsilon) + slack(n)


@pytest.mark.parametrize(
    ("hashes", "options"),
    [(["zz"], {}), (["ab"], {}), ([], {}), ([md5("a")], {"algorithm": "crc"}), ([md5("a")], {"algorithm": "sha1"})],
)
def test_what_is_no_hash_is_refused_without_being_repeated(hashes, options):
    with pytest.raises(ParameterError) as caught:
        reverse_hashes(hashes, [Format("9")], **options)
    assert not any(h in str(caught.value) for h in hashes)


def test_formats_have_limits():
    with pytest.raises(ParameterError, match="empty"):
        Format("")
    with pytest.raises(ParameterError, match="56 bytes"):
        Format("9", before="x" * 55)
    with pytest.raises(ParameterError, match="identifiers"):
        Format("9" * 12)
    assert len(reverse_hashes([md5("7")], [Format("9")]).plot().lines) == 2
