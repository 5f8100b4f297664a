"""Reversing hashed identifiers: who knows the format tries every one (`docs/theorems.md`, A3).

In 2014 New York published 173 million taxi trips with medallion numbers under MD5. A medallion has the form 9X99, XX999
or XXX999 (digit, letter), of which there are 26,000 + 676,000 + 17,576,000 = 18,278,000; all can be hashed in
seconds (Pandurangan 2014, "On taxis and rainbows"). A hash hides nothing that comes from a small set.

MD5 is computed for tens of thousands of candidates at a time (`md5`); a table of the wanted digests' first bits throws
out nearly all, the rest are hashed again by `hashlib`. SHA-1 and SHA-256 go through `hashlib` one by one.

**Ceiling.** One of N identifiers, equally likely before, under epsilon (replace): right with probability at most
e^epsilon/(N - 1 + e^epsilon), reached by k-ary randomised response.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.amounts import Number
from hubbub.attacks.ceilings import guess_ceiling
from hubbub.attacks.md5 import LONGEST, Words, first_words
from hubbub.errors import ParameterError, what_was_given

__all__ = ["ALGORITHMS", "TAXI_MEDALLIONS", "Format", "HashReversal", "reverse_hashes"]

ALGORITHMS: Final = ("md5", "sha1", "sha256")
_CLASSES: Final = {"9": b"0123456789", "X": b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "x": b"abcdefghijklmnopqrstuvwxyz"}
_MOST: Final = 10**11
# So that a block's working arrays stay in the processor's cache.
_BLOCK: Final = 1 << 16
_FILTER_BITS: Final = (16, 27)


@dataclass(frozen=True)
class Format:
    r"""A form of identifiers: `9` is any digit, `X` a capital letter, `x` a small one, `\` takes the next as it stands.

    Any other character stands for itself. before, after: a known salt around the identifier.

    >>> Format("9X99").size, Format(r"+4\9 171 99").size
    (26000, 100)

    Raises ParameterError for an empty form, one of more than 55 bytes with its salt, or of more than 10^11 identifiers.
    """

    pattern: str
    before: str = ""
    after: str = ""

    def __post_init__(self) -> None:
        if not self.places:
            raise ParameterError("the format is empty; write 9 for a digit, X for a capital letter, x for a small one.")
        length = len(self.places) + len(self.before.encode()) + len(self.after.encode())
        if length > LONGEST:
            raise ParameterError(
                f"the format {what_was_given(self.pattern)} has {length} bytes with its salt; give at most {LONGEST}."
            )
        if self.size > _MOST:
            raise ParameterError(
                f"the format {what_was_given(self.pattern)} has {self.size:,} identifiers; give at most {_MOST:,}."
            )

    @property
    def places(self) -> tuple[bytes, ...]:
        """The characters that may stand at each place."""
        letter_sets, letters = [], iter(self.pattern)
        for letter in letters:
            literal = next(letters, "\\") if letter == "\\" else ""
            letter_sets += (
                [_CLASSES[letter]] if letter in _CLASSES else [bytes([b]) for b in (literal or letter).encode()]
            )
        return tuple(letter_sets)

    @property
    def size(self) -> int:
        """How many identifiers there are."""
        return int(np.prod([len(p) for p in self.places], dtype=object))

    def texts(self) -> Iterator[bytes]:
        """All identifiers, in order."""
        return (bytes(t) for t in itertools.product(*self.places))


TAXI_MEDALLIONS: Final = (Format("9X99"), Format("XX999"), Format("XXX999"))
"""The medallion numbers of New York's taxis: 18,278,000."""


@dataclass(frozen=True)
class HashReversal:
    """Identifiers found for hashes.

    found: hash as it was given -> identifier. hashes: how many were given. tried: how many identifiers there are.
    """

    found: Mapping[str, str]
    hashes: int
    tried: int

    @property
    def success(self) -> float:
        """The share of different hashes that were reversed."""
        return len(self.found) / self.hashes

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """The chance of finding an identifier under (epsilon, delta)-DP instead of a hash: one of `tried`."""
        return guess_ceiling(1 / self.tried, epsilon, delta)

    def plot(self, ax: Any = None) -> Any:
        """The share that is found over the share of identifiers tried, and the ceiling at epsilon from 0 to 30."""
        from hubbub import plots

        grid = [i / 5 for i in range(151)]
        lines = [
            ("hash", grid, [self.success] * len(grid)),
            ("ceiling under epsilon", grid, [self.ceiling(e) for e in grid]),
        ]
        return plots.curves(lines, title="Identifiers found", xlabel="epsilon", ylabel="share", ax=ax)


def reverse_hashes(
    hashes: Iterable[str], formats: Sequence[Format] = TAXI_MEDALLIONS, *, algorithm: str = "md5"
) -> HashReversal:
    """Finds the identifiers of hexadecimal hashes by hashing all of the formats.

    >>> secret = hashlib.md5(b"5X41").hexdigest()
    >>> reverse_hashes([secret], [Format("9X99")]).found[secret]
    '5X41'

    Raises ParameterError for text that is not such a hash (the text is not repeated), and for an unknown algorithm.
    """
    if algorithm not in ALGORITHMS:
        raise ParameterError(f"algorithm = {what_was_given(algorithm)} was asked; allowed are {', '.join(ALGORITHMS)}.")
    given = {str(h): _digest(str(h), hashlib.new(algorithm).digest_size) for h in hashes}
    if not given or not formats:
        raise ParameterError("there are no hashes or no formats; give at least one of each.")
    wanted, by_digest = set(given.values()), {}
    for form in formats:
        search = _search_md5 if algorithm == "md5" else _search_all
        by_digest.update(search(form, wanted, algorithm))
    texts = {text: by_digest[digest] for text, digest in given.items() if digest in by_digest}
    return HashReversal(texts, len(given), sum(form.size for form in formats))


def _digest(text: str, size: int) -> bytes:
    try:
        digest = bytes.fromhex(text.strip())
    except ValueError:
        digest = b""
    if len(digest) != size:
        raise ParameterError(f"a hash is not {2 * size} hexadecimal digits; name its algorithm, or clean the column.")
    return digest


def _search_all(form: Format, wanted: set[bytes], algorithm: str) -> dict[bytes, str]:
    before, after, new = form.before.encode(), form.after.encode(), getattr(hashlib, algorithm)
    texts = {}
    for text in form.texts():
        digest = new(before + text + after).digest()
        if digest in wanted:
            texts[digest] = text.decode()
    return texts


def _search_md5(form: Format, wanted: set[bytes], algorithm: str) -> dict[bytes, str]:
    """Candidates are a fixed beginning and every ending; endings are laid out once, beginnings are added to them."""
    before, after, places = form.before.encode(), form.after.encode(), form.places
    split, endings = len(places), 1
    while split and endings * len(places[split - 1]) <= _BLOCK:
        split -= 1
        endings *= len(places[split])
    tails = _blocks(len(before) + split, places[split:], endings)
    likely = _filter(wanted)
    shift = np.uint32(33 - likely.size.bit_length())
    texts = {}
    for start in itertools.product(*places[:split]):
        head = np.frombuffer(_padded(before + bytes(start), len(places) - split, after), "<u4")
        words = [int(h) if t is None else t | h for h, t in zip(head, tails, strict=True)]
        first = first_words(words, endings)
        for i in np.flatnonzero(likely[first >> shift]).tolist():
            text = bytes(start) + _ending(places[split:], i)
            digest = hashlib.md5(before + text + after, usedforsecurity=False).digest()
            if digest in wanted:
                texts[digest] = text.decode()
    return texts


def _padded(before: bytes, gap: int, after: bytes) -> bytes:
    """A message with `gap` zero bytes in it, padded to one block."""
    message = before + bytes(gap) + after
    return (message + b"\x80").ljust(56, b"\0") + (8 * len(message)).to_bytes(8, "little")


def _blocks(start: int, places: Sequence[bytes], n: int) -> list[Words | None]:
    """The 16 words of every ending, written from byte `start` on; None where no ending reaches."""
    block = np.zeros((n, 64), np.uint8)
    inner = n
    for i, letters in enumerate(places):
        inner //= len(letters)
        block[:, start + i] = np.frombuffer(letters, np.uint8)[np.arange(n) // inner % len(letters)]
    words = block.view("<u4")
    reached = {(start + i) // 4 for i in range(len(places))}
    return [np.ascontiguousarray(words[:, w]).astype(np.uint32) if w in reached else None for w in range(16)]


def _ending(places: Sequence[bytes], index: int) -> bytes:
    out = bytearray()
    for letters in reversed(places):
        index, digit = divmod(index, len(letters))
        out.append(letters[digit])
    return bytes(reversed(out))


def _filter(wanted: set[bytes]) -> NDArray[np.bool_]:
    """Which leading bits of the first word occur among the digests; so many bits that one other in 32 passes."""
    length = min(_FILTER_BITS[1], max(_FILTER_BITS[0], len(wanted).bit_length() + 5))
    likely = np.zeros(1 << length, bool)
    for digest in wanted:
        likely[int.from_bytes(digest[:4], "little") >> (32 - length)] = True
    return likely
