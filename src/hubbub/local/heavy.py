"""Heavy hitters: common strings among answers that nobody listed beforehand, by extending prefixes.

Strings over a declared alphabet are cut to `length` characters (characters outside it count as its last), and padded
with an end mark. Level i = 1 .. L looks at prefixes of ends[i] characters. Each client draws a level uniformly and
reports its prefix of that length through local hashing with all of epsilon (Wang, Li, Jha 2018, "PEM"; Bassily,
Nissim, Stemmer, Thakurta 2017): the level is chance, so the report costs epsilon.

The server keeps, level by level, the prefixes whose estimated count stands out, and tests only their extensions at the
next. *False positives*: a prefix that nobody has is supported by Bin(n_i, q) reports at most (a hash of its own). It is
kept if that count is so large that it would be reached with probability at most beta / (L m_i), m_i the number tested,
by the exact binomial tail. So, by a union bound, with probability 1 - beta no string is found, at any level, that
nobody has (unless its 32-bit digest is that of one that somebody has: m_i times the number of those, over 2^32).
*Misses*: a string of share f is found about surely once f (p-q) sqrt(n/L) is several times sqrt(q(1-q) ln(m L/beta)).

The final shares are those of the last level. They were chosen for being large, so they lean upwards, by less than their
interval; ask anew, by a frequency oracle over the found strings, for unbiased ones.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from hubbub.accounting.amounts import Number, probability
from hubbub.errors import ParameterError
from hubbub.local.draws import Array, Floats, Integers, uniform
from hubbub.local.estimate import normal_quantile
from hubbub.local.hashing import (
    REPORT,
    HashingRandomizer,
    best_buckets,
    clean_hashed,
    hashed_reports,
    hashed_supporters,
    rates,
)
from hubbub.local.oracle import epsilon_above_zero, valid_rows, whole
from hubbub.local.randomizer import LocalOracle, Randomizer
from hubbub.noise import Bits

__all__ = ["Found", "HeavyHitters", "HeavyTally"]

_REPORT = np.dtype([("level", "u1"), ("hashed", REPORT)])
_END = "\x00"


@dataclass(frozen=True)
class Found:
    """One string that stands out: its estimated share of all people, and the share's standard deviation."""

    text: str
    share: float
    sd: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Normal interval, cut to [0, 1]."""
        reach = normal_quantile(level) * self.sd
        return max(0.0, self.share - reach), min(1.0, self.share + reach)


@dataclass(frozen=True)
class HeavyRandomizer(Randomizer):
    """A client for strings of up to `length` characters of an `alphabet`: a level, and local hashing of the prefix."""

    alphabet: str
    length: int

    @property
    def ends(self) -> tuple[int, ...]:
        """The prefix lengths: the first as long as 4096 prefixes allow, then one more character each."""
        first = max(1, int(math.log(4096) / math.log(len(self.alphabet) + 1)))
        return tuple(range(min(first, self.length), self.length + 1))

    @property
    def buckets(self) -> int:
        """Buckets of the local hashing."""
        return best_buckets(self.epsilon)

    @property
    def lie(self) -> Fraction:
        """The chance of naming another bucket."""
        return 1 - rates(self.buckets, self.epsilon)[0]

    @property
    def report_type(self) -> np.dtype[Any]:
        return _REPORT

    @property
    def parameters(self) -> dict[str, object]:
        return {"ends": list(self.ends), "buckets": self.buckets, "lie": str(self.lie)}

    def padded(self, text: str) -> str:
        """`text` cut, with characters outside the alphabet as its last one, and end marks up to `length`."""
        last = self.alphabet[-1]
        known = "".join(c if c in self.alphabet else last for c in text[: self.length])
        return known.ljust(self.length, _END)

    def chance(self, report: Any, data: str) -> Fraction:
        """P(report | the person's string is `data`), exactly."""
        hashing = HashingRandomizer(self.epsilon, 1 << 32, self.buckets)
        place = int(_inputs([self.padded(data)[: self.ends[int(report["level"])]]])[0])
        return hashing.chance(report["hashed"], place) / len(self.ends)

    def release(self, data: Iterable[str], *, bits: Bits | None = None) -> Array:
        """One report for each string."""
        distinct: dict[str, int] = {}
        places = np.array([distinct.setdefault(text, len(distinct)) for text in data], np.int64)
        words = [self.padded(text) for text in distinct]
        level = uniform(len(self.ends), places.size, bits).astype(np.int64)
        inputs = np.array([_inputs([w[:end] for w in words]) for end in self.ends], np.uint64)
        inputs = inputs.reshape(len(self.ends), -1)
        out = np.empty(places.size, _REPORT)
        out["level"] = level
        out["hashed"] = hashed_reports(inputs[level, places], self.buckets, self.lie, bits)
        return out


@dataclass(frozen=True, repr=False)
class HeavyHitters(LocalOracle):
    """Common strings of up to `length` characters of an `alphabet`.

    >>> hitters = HeavyHitters(4, "abcdefghijklmnopqrstuvwxyz_", length=6)
    >>> hitters.randomizer.ends
    (2, 3, 4, 5, 6)
    """

    randomizer: HeavyRandomizer

    name: ClassVar[str] = "heavy_hitters"

    def __init__(self, epsilon: Number, alphabet: str, *, length: int) -> None:
        if not isinstance(alphabet, str) or len(set(alphabet)) != len(alphabet) or _END in alphabet:
            raise ParameterError("the alphabet is a text of different characters, without the character of code 0.")
        whole(len(alphabet), "the number of characters in the alphabet", 2, 1024)
        client = HeavyRandomizer(epsilon_above_zero(epsilon), alphabet, whole(length, "length", 1, 64))
        object.__setattr__(self, "randomizer", client)

    def __repr__(self) -> str:
        return f"HeavyHitters({repr(self.randomizer).partition('(')[2]}"

    @property
    def arguments(self) -> dict[str, object]:
        """What the constructor was given, as plain values."""
        client = self.randomizer
        return {"epsilon": str(client.epsilon), "alphabet": client.alphabet, "length": client.length}

    def privatize(self, texts: Iterable[str], *, bits: Bits | None = None) -> Array:
        """One report for each string."""
        return self.randomizer.release(texts, bits=bits)

    def aggregate(self, reports: Any) -> HeavyTally:
        """Keep the valid reports; what no client can have sent is dropped and counted."""
        array, dropped = valid_rows(reports, _REPORT)
        good = (array["level"] < len(self.randomizer.ends)) & clean_hashed(array["hashed"], self.randomizer.buckets)
        kept = array[good]
        levels = tuple(kept["hashed"][kept["level"] == i] for i in range(len(self.randomizer.ends)))
        return HeavyTally(self, levels, dropped + len(array) - len(kept))


def _inputs(prefixes: Sequence[str]) -> Array:
    """32-bit inputs of the hashes: the first 4 bytes of SHA-256 of the prefix in UTF-8, little-endian."""
    return np.array([int.from_bytes(hashlib.sha256(p.encode()).digest()[:4], "little") for p in prefixes], np.uint64)


@dataclass(frozen=True, eq=False)
class HeavyTally:
    """The valid reports by level. Tallies of one oracle add; candidates are only known at the end, so they are kept."""

    oracle: HeavyHitters
    levels: tuple[Array, ...]
    dropped: int

    @property
    def n(self) -> int:
        """Valid reports."""
        return sum(len(level) for level in self.levels)

    def __add__(self, other: HeavyTally) -> HeavyTally:
        if not isinstance(other, HeavyTally) or other.oracle != self.oracle:
            raise ParameterError("tallies of different oracles were added; add those of one oracle.")
        pairs = zip(self.levels, other.levels, strict=True)
        return HeavyTally(self.oracle, tuple(np.concatenate(pair) for pair in pairs), self.dropped + other.dropped)

    def __radd__(self, other: object) -> HeavyTally:
        if other == 0:  # so that sum() works
            return self
        return NotImplemented

    def find(self, *, beta: Number = "0.05", most: int = 256) -> list[Found]:
        """Strings that stand out, the most common first.

        `beta`: with probability 1 - beta none of them is one that nobody has. `most`: at most so many prefixes go on
        from a level to the next (those with most support; this can lose strings, never add any).
        """
        chance = float(probability(beta, "beta"))
        if chance == 0:
            raise ParameterError("beta = 0 was asked; give the chance of a false positive that you accept.")
        kept = [""]
        shares: Floats = np.empty(0)
        base = 0.0
        for level, end in zip(self.levels, self.oracle.randomizer.ends, strict=True):
            candidates = _extensions(kept, end, self.oracle.randomizer.alphabet)
            kept, shares, base = self._standing_out(level, candidates, chance / len(self.levels), most)
        sd = math.sqrt(base)
        hitters = [Found(text.rstrip(_END), float(share), sd) for text, share in zip(kept, shares, strict=True)]
        return sorted(hitters, key=lambda f: -f.share)

    def _standing_out(
        self, level: Array, candidates: list[str], beta: float, most: int
    ) -> tuple[list[str], Floats, float]:
        from scipy.stats import binom

        p, q = (float(v) for v in rates(self.oracle.randomizer.buckets, self.oracle.randomizer.epsilon))
        if not len(level) or not candidates:
            return [], np.empty(0), 0.0
        support: Integers = hashed_supporters(level, self.oracle.randomizer.buckets, _inputs(candidates))
        chances = binom.sf(support - 1, len(level), q)
        good = np.flatnonzero(chances <= beta / len(candidates))
        good = good[np.argsort(-support[good], kind="stable")][:most]
        shares = (support[good] / len(level) - q) / (p - q)
        return [candidates[i] for i in good], shares, q * (1 - q) / (p - q) ** 2 / len(level)


def _extensions(prefixes: list[str], end: int, alphabet: str) -> list[str]:
    """All ways to go on to `end` characters; after an end mark come end marks only."""
    out = prefixes
    while out and len(out[0]) < end:
        out = [p + c for p in out for c in ((_END,) if p.endswith(_END) else (*alphabet, _END))]
    return out
