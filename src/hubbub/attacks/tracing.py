"""Traitor tracing: who leaked keys, from a decoder's answers alone (`docs/theorems.md`, A7).

n users each hold a key of their own. A bit b is sent as c = (E(sk_1, b), ..., E(sk_n, b)). A *pirate* decoder, made
from the keys of a coalition, answers k ciphertexts with k bits. The tracer sends, in random order, s times each

    TrE(i) = (E(sk_1, 1), ..., E(sk_i, 1), E(sk_(i+1), 0), ..., E(sk_n, 0)),     i = 0, ..., n,     k = (n + 1) s,

and lets p_i be the share of ones among the answers to TrE(i). A decoder that *cooperates* (right on honest ciphertexts)
has p_0 = 0 and p_n = 1, so p_i - p_(i-1) >= 1/n for some i: that user is accused.

**Innocents.** Without user i's key TrE(i) and TrE(i-1) cannot be told apart (E(sk_i, 1) is replaced by E(sk_i, 0) in s
columns; some slides print k). So the 2s bits are exchangeable, and p_i - p_(i-1) is the difference of two halves:
P(>= 1/n) <= exp(-s/2n^2) (Hoeffding 1963, without replacement), hence s = ceil(2 n^2 ln(n/beta)) accuses nobody
innocent with probability 1 - beta; by Serfling's inequality (1974), exp(-s^2/(n^2 (s+1))), s = ceil(n^2 ln(n/beta)) +
1 does.

**What it says of privacy** (Dwork, Naor, Reingold, Rothblum, Vadhan 2009; Ullman 2013). Let the data be n of n + 1
keys, and the query of a ciphertext, "which share of the keys decrypts it to 1?". A mechanism that answers all k within
alpha < 1/2, rounded, is a cooperative pirate: some i in the data is accused with probability 1/2n at least. Were it
(1, 1/10n)-DP, i would be accused with (1/2n - 1/10n)/e = .147/n also where i's key is not in the data, more than a
tracer may. So a private mechanism does not cooperate, or breaks the cipher, which takes superpolynomial time.

**Encryption.** E(sk, b) is one AES-128 block of 127 fresh random bits and b. Blocks do not repeat, so under the
assumption that AES is a pseudorandom permutation a ciphertext says nothing about b.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number, probability
from hubbub.attacks.ceilings import hit_ceiling
from hubbub.attacks.inputs import Floats, Integers, chosen, fair
from hubbub.errors import ParameterError, what_was_given
from hubbub.mechanisms import GaussianMechanism, LaplaceMechanism
from hubbub.mechanisms.calibrate import whole_number
from hubbub.noise import Bits, system_bits, uniform_below

__all__ = [
    "STRATEGIES",
    "Accusation",
    "Decoder",
    "Pirate",
    "PrivatePirate",
    "TracingScheme",
    "WaryPirate",
    "accusation_floor",
    "accusation_law",
    "draw_private_pirates",
    "draw_staircases",
    "innocent_chance",
    "private_pirate",
    "tracing_repeats",
]

Ciphertexts = NDArray[np.uint8]  # shape (k, users, 16)
_BLOCK: Final = 16
_MOST_COLUMNS: Final = 2_000_000


class Decoder(Protocol):
    """Answers ciphertexts of shape (k, users, 16) with k bits; it may remember what it was asked."""

    def __call__(self, ciphertexts: Ciphertexts, /) -> Any: ...


def _majority(seen: Integers, bits: Bits | None) -> Integers:
    return np.asarray(2 * seen.sum(axis=1) > seen.shape[1], dtype=np.int64)


def _minority(seen: Integers, bits: Bits | None) -> Integers:
    ones = seen.sum(axis=1)
    unanimous = (ones == 0) | (ones == seen.shape[1])
    return np.where(unanimous, seen[:, 0], 1 - _majority(seen, bits))


def _interleaving(seen: Integers, bits: Bits | None) -> Integers:
    turn = uniform_below(seen.shape[1], len(seen), bits=bits)
    return np.asarray(seen[np.arange(len(seen)), turn])


def _any(seen: Integers, bits: Bits | None) -> Integers:
    return np.asarray(seen.max(axis=1))


def _coin(seen: Integers, bits: Bits | None) -> Integers:
    tossed = fair((len(seen),), bits).astype(np.int64)
    return np.where(seen.min(axis=1) == seen.max(axis=1), seen[:, 0], tossed)


STRATEGIES: Final[Mapping[str, Callable[[Integers, Bits | None], Integers]]] = {
    "majority": _majority,
    "minority": _minority,
    "interleaving": _interleaving,
    "any": _any,
    "coin": _coin,
}
"""What a coalition answers where its keys decrypt to different bits. All say what all its keys say."""


def _decrypted(keys: Mapping[int, bytes], ciphertexts: Ciphertexts) -> Integers:
    """The bit that each key gets from each ciphertext: shape (k, keys)."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    seen = []
    for user, key in keys.items():
        blocks = np.ascontiguousarray(ciphertexts[:, user - 1]).tobytes()
        plain = Cipher(algorithms.AES(key), modes.ECB()).decryptor().update(blocks)
        seen.append(np.frombuffer(plain, np.uint8)[_BLOCK - 1 :: _BLOCK] & 1)
    return np.stack(seen, axis=1).astype(np.int64)


@dataclass(frozen=True)
class Pirate:
    """A decoder made from keys by a strategy. Stateless: it can be pickled, copied and handed to the tracer.

    keys: user (1, 2, ...) -> key. strategy: a name of `STRATEGIES`. bits: for tests.
    """

    keys: Mapping[int, bytes]
    strategy: str = "majority"
    bits: Bits | None = None

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ParameterError(
                f"strategy = {what_was_given(self.strategy)} was asked; allowed are {', '.join(STRATEGIES)}."
            )
        if not self.keys:
            raise ParameterError("a pirate needs at least one key.")

    def __call__(self, ciphertexts: Ciphertexts, /) -> Integers:
        return STRATEGIES[self.strategy](_decrypted(self.keys, ciphertexts), self.bits)

    def __repr__(self) -> str:
        return f"Pirate({len(self.keys)} keys, {self.strategy!r})"


@dataclass
class WaryPirate:
    """A stateful decoder: once its keys disagree it has met a tracer, and says 0 from then on.

    It is useful (right on honest ciphertexts alone) but does not cooperate, and no theorem traces it.
    """

    keys: Mapping[int, bytes]
    warned: bool = False

    def __call__(self, ciphertexts: Ciphertexts, /) -> Integers:
        seen = _decrypted(self.keys, ciphertexts)
        odd = np.maximum.accumulate(seen.min(axis=1) != seen.max(axis=1))
        answers = np.where(odd | self.warned, 0, seen[:, 0])
        self.warned = self.warned or bool(odd.any())
        return answers


@dataclass(frozen=True)
class PrivatePirate:
    """A decoder that is a private mechanism: how many of its keys decrypt to 1, with noise, rounded to a bit."""

    keys: Mapping[int, bytes]
    mechanism: GaussianMechanism | LaplaceMechanism
    bits: Bits | None = None

    @property
    def loss(self) -> ev.Event:
        """The event of one trace; neighbours: one key exchanged for another (replace)."""
        return self.mechanism.loss

    def __call__(self, ciphertexts: Ciphertexts, /) -> Integers:
        if len(ciphertexts) != self.mechanism.cells:
            raise ParameterError(f"{len(ciphertexts)} columns were asked; the noise is for {self.mechanism.cells}.")
        counts = _decrypted(self.keys, ciphertexts).sum(axis=1)
        noisy = np.asarray(self.mechanism.release(counts, bits=self.bits))
        return (2 * noisy > len(self.keys)).astype(np.int64)

    def expected_shares(self, users: int) -> Floats:
        """E p_0, ..., E p_n exactly: the chance of a 1 where the keys of users 1 to i decrypt to 1."""
        counts = np.searchsorted(np.sort(list(self.keys)), np.arange(users + 1), side="right")
        # 2 (count + noise) > keys.
        return np.asarray(self.mechanism.error().tail(len(self.keys) // 2 - counts), dtype=np.float64)

    def cooperation(self) -> float:
        """The chance that an honest ciphertext of 0 is answered with 0: that the noise stays within half the keys."""
        return 1 - float(self.mechanism.error().tail(len(self.keys) // 2))


def private_pirate(
    keys: Mapping[int, bytes],
    *,
    columns: int,
    rho: Number | None = None,
    epsilon: Number | None = None,
    bits: Bits | None = None,
) -> PrivatePirate:
    """A private pirate for so many columns, with discrete Gaussian noise for `rho` or Laplace noise for `epsilon`.

    An exchanged key moves every count by at most 1: l2 squared and l1 are the number of columns.
    """
    if not keys:
        raise ParameterError("a pirate needs at least one key.")
    if (rho is None) == (epsilon is None):
        raise ParameterError("give exactly one of rho= and epsilon=.")
    if rho is not None:
        gaussian = GaussianMechanism(squared_sensitivity=columns, rho=rho, cells=columns)
        return PrivatePirate(dict(keys), gaussian, bits)
    return PrivatePirate(dict(keys), LaplaceMechanism(sensitivity=columns, epsilon=epsilon, cells=columns), bits)


@dataclass(frozen=True, eq=False)
class Accusation:
    """What a tracer found: the user with the largest gap if it is 1/n or more, and the shares p_0, ..., p_n.

    user: 1, ..., n, or None. beta: how often somebody innocent may be accused.
    """

    user: int | None
    shares: Floats
    repeats: int
    beta: Fraction
    pirates: frozenset[int] | None = None

    @property
    def gaps(self) -> Floats:
        """p_i - p_(i-1) for the users 1, ..., n."""
        return np.diff(self.shares)

    @property
    def gap(self) -> float:
        """The largest of them."""
        return float(self.gaps.max())

    @property
    def cooperates(self) -> bool:
        """Whether all honest ciphertexts, those of 0 and of 1 for everybody, were decrypted rightly."""
        return bool(self.shares[0] == 0 and self.shares[-1] == 1)

    @property
    def success(self) -> float:
        """1 where a pirate is accused, else 0."""
        if self.pirates is None:
            raise ParameterError("pirates= was not given, so nothing says who is right. Give it to count.")
        return float(self.user in self.pirates)

    def ceiling(self, epsilon: Number, delta: Number = 0) -> float:
        """How often *one given* user of an (epsilon, delta)-DP pirate may be accused (replace neighbours)."""
        return hit_ceiling(self.beta, epsilon, delta)

    def plot(self, ax: Any = None) -> Any:
        """The staircase p_0, ..., p_n: it jumps at pirates."""
        return draw_staircases({"this decoder": self}, ax=ax)


def draw_private_pirates(scheme: TracingScheme, users: Sequence[int], rhos: Sequence[float], *, ax: Any = None) -> Any:
    """Over rho: how often a private pirate answers an honest ciphertext rightly, and its largest expected gap."""
    from hubbub import plots

    keys, columns = scheme.coalition(users), (scheme.users + 1) * tracing_repeats(scheme.users, scheme.beta)
    pirates = [private_pirate(keys, columns=columns, rho=rho) for rho in rhos]
    places = [math.log10(rho) for rho in rhos]
    gaps = [float(np.diff(p.expected_shares(scheme.users)).max()) for p in pirates]
    lines = [
        ("honest ciphertexts answered rightly", places, [p.cooperation() for p in pirates]),
        ("largest expected gap", places, gaps),
        ("1/n, from which somebody is accused", places, [1 / scheme.users] * len(places)),
    ]
    title = "A private pirate: useful, or untraced"
    return plots.curves(lines, title=title, xlabel="log10 of rho, for all columns together", ylabel="share", ax=ax)


def draw_staircases(found: Mapping[str, Accusation], *, ax: Any = None) -> Any:
    """The staircases of several decoders, one line each."""
    from hubbub import plots

    lines = []
    for name, accusation in found.items():
        corners = [(i + shift, float(p)) for i, p in enumerate(accusation.shares) for shift in (-0.5, 0.5)]
        lines.append((name, [x for x, _ in corners], [y for _, y in corners]))
    title = "Shares of ones by how many users' parts say 1"
    return plots.curves(lines, title=title, xlabel="i: users 1 to i get a one", ylabel="p_i", ax=ax)


@dataclass(frozen=True, eq=False)
class TracingScheme:
    """Keys of `users` users, and the tracer, who holds all of them. Keys come from `hubbub.noise`.

    beta: how often somebody innocent may be accused. bits: for tests.
    """

    users: int
    beta: Fraction
    keys: Mapping[int, bytes]

    def __init__(self, *, users: int, beta: Number, bits: Bits | None = None) -> None:
        number, allowed = whole_number(users, "users"), probability(beta, "beta")
        if number < 2 or allowed <= 0:
            raise ParameterError(f"users = {users}, beta = {beta} were asked; give at least 2 users and beta above 0.")
        source = system_bits() if bits is None else bits
        keys = {user: _random_blocks(1, source).tobytes() for user in range(1, number + 1)}
        for name, value in {"users": number, "beta": allowed, "keys": keys}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"TracingScheme(users={self.users}, beta={self.beta})"

    @property
    def ciphertext_bits(self) -> int:
        """The length of a ciphertext: 128 for each user."""
        return 8 * _BLOCK * self.users

    def coalition(self, users: Sequence[int]) -> dict[int, bytes]:
        """The keys of some users."""
        if not set(users) <= set(self.keys):
            raise ParameterError(f"users are 1 to {self.users}; others were asked.")
        return {user: self.keys[user] for user in users}

    def encrypt(self, message: Any, *, bits: Bits | None = None) -> Ciphertexts:
        """Ciphertexts of bits: one bit for everybody, or a bit for each user, shape (k, users)."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        given = np.atleast_1d(np.asarray(message, dtype=np.uint8))
        plain = np.broadcast_to(given[:, None], (len(given), self.users)) if given.ndim == 1 else given
        if plain.ndim != 2 or plain.shape[1] != self.users or plain.max(initial=0) > 1:
            raise ParameterError(f"messages have shape {given.shape}; give bits, one for all or one for each user.")
        source, out = system_bits() if bits is None else bits, np.empty((len(plain), self.users, _BLOCK), np.uint8)
        for user, key in self.keys.items():
            blocks = _random_blocks(len(plain), source)
            blocks[:, -1] = (blocks[:, -1] & 0xFE) | plain[:, user - 1]
            sent = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks.tobytes())
            out[:, user - 1] = np.frombuffer(sent, np.uint8).reshape(-1, _BLOCK)
        return out

    def columns(self, repeats: int, *, bits: Bits | None = None) -> tuple[Integers, Ciphertexts]:
        """Each of TrE(0), ..., TrE(n) `repeats` times, in random order: which i each column is, and the columns."""
        total = (self.users + 1) * whole_number(repeats, "repeats")
        if total > _MOST_COLUMNS:
            raise ParameterError(f"{total:,} columns were asked; at most {_MOST_COLUMNS:,} are made.")
        places = np.repeat(np.arange(self.users + 1), repeats)[chosen(total, total, bits)]
        plain = np.arange(self.users) < places[:, None]
        return places, self.encrypt(plain.astype(np.uint8), bits=bits)

    def trace(
        self,
        pirate: Decoder,
        *,
        repeats: int | None = None,
        pirates: Sequence[int] | None = None,
        bits: Bits | None = None,
    ) -> Accusation:
        """Asks the decoder (n + 1) s columns, and accuses the user with the largest gap if it is at least 1/n.

        repeats: s; by default what Hoeffding's bound needs for beta. pirates: who they are, to count what is right.
        """
        times = tracing_repeats(self.users, self.beta) if repeats is None else repeats
        places, ciphertexts = self.columns(times, bits=bits)
        answers = np.asarray(pirate(ciphertexts))
        if answers.shape != places.shape or not np.isin(answers, (0, 1)).all():
            raise ParameterError(f"the decoder gave shape {answers.shape}; it is to give a bit for each column.")
        ones = np.bincount(places, weights=answers, minlength=self.users + 1).astype(np.int64)
        user = _accused([int(c) for c in ones], times)
        known = None if pirates is None else frozenset(pirates)
        return Accusation(user, ones / times, times, self.beta, known)


def _random_blocks(n: int, source: Bits) -> NDArray[np.uint8]:
    return source.u64(2 * n).view(np.uint8).reshape(n, _BLOCK)


def _accused(ones: Sequence[int], repeats: int) -> int | None:
    """The first user with the largest gap, if that is 1/n or more; in integers."""
    gaps = [b - a for a, b in itertools.pairwise(ones)]
    best = max(gaps)
    return gaps.index(best) + 1 if best * len(gaps) >= repeats else None


def tracing_repeats(users: int, beta: Number, *, bound: str = "hoeffding") -> int:
    """s, so that nobody innocent is accused with probability 1 - beta: by "hoeffding" or by "serfling".

    >>> [tracing_repeats(n, "0.05") for n in (10, 20)], [tracing_repeats(n, "0.05", bound="serfling") for n in (10, 20)]
    ([1060, 4794], [531, 2398])
    """
    n, allowed = whole_number(users, "users"), float(probability(beta, "beta"))
    if allowed <= 0 or bound not in ("hoeffding", "serfling"):
        raise ParameterError(
            f"beta = {beta}, bound = {what_was_given(bound)}: give beta above 0, and 'hoeffding' or 'serfling'."
        )
    whole = n * n * math.log(n / allowed)
    return math.ceil(2 * whole) if bound == "hoeffding" else math.ceil(whole) + 1


def innocent_chance(users: int, repeats: int) -> float:
    """The chance that one innocent user's gap is 1/n or more, for the decoder that makes it largest; exactly.

    2s exchangeable bits with m ones: the ones among the first s are hypergeometric; the worst m is taken.
    """
    from scipy.stats import hypergeom

    ones = np.arange(2 * repeats + 1)
    least = -(-(ones * users + repeats) // (2 * users))  # the first half has at least so many ones
    return float(np.max(hypergeom.sf(least - 1, 2 * repeats, ones, repeats)))


def accusation_floor(users: int, *, epsilon: Number = 1, delta: Number | None = None) -> float:
    """(1/2n - delta)/e^epsilon: how often some user *not* in a cooperative private pirate is accused at least.

    delta is 1/10n where it is not given. More than beta is a contradiction: such a pirate does not exist.

    >>> round(100 * accusation_floor(100), 5)
    0.14715
    """
    d = 1 / (10 * users) if delta is None else float(probability(delta, "delta"))
    return (1 / (2 * users) - d) * math.exp(-float(epsilon))


def accusation_law(chances: Sequence[Fraction], repeats: int) -> dict[int | None, Fraction]:
    """The exact law of the accused user, where each of s columns of TrE(i) is answered 1 with chance i; by enumeration.

    >>> accusation_law([Fraction(0), Fraction(1, 2), Fraction(1)], 1)
    {2: Fraction(1, 2), 1: Fraction(1, 2)}
    """
    if (repeats + 1) ** len(chances) > 1_000_000:
        raise ParameterError("the law has too many outcomes to enumerate; ask for fewer columns.")
    counts = range(repeats + 1)
    given = [Fraction(p) for p in chances]
    masses = [[math.comb(repeats, c) * p**c * (1 - p) ** (repeats - c) for c in counts] for p in given]
    law: dict[int | None, Fraction] = {}
    for ones in itertools.product(counts, repeat=len(chances)):
        mass = math.prod((m[c] for m, c in zip(masses, ones, strict=True)), start=Fraction(1))
        if mass:
            who = _accused(ones, repeats)
            law[who] = law.get(who, Fraction(0)) + mass
    return law
