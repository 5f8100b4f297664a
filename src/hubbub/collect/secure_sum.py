"""One server, no second company: secure sums with drop-outs (Bonawitz et al. 2017), and noise in shares.

Every client masks its numbers, modulo 2^64, with pairwise masks that cancel in the sum and a mask of its own, and
shares the secrets behind both among all clients (Shamir). Four rounds, the server passing everything on:

    1. advertise   public keys, one to talk, one to mask
    2. share       for every other client, in a box that the server cannot open, a share of the own two secrets
    3. mask        numbers + noise share + own mask + pairwise masks
    4. unmask      of clients whose masked numbers came, shares of the own mask's seed; of others, of the masking key

The server joins shares, takes the masks off, and has the sum of those that came in round 3. Fewer than `threshold` in
any round: no sum. *Who is trusted*: the server follows the protocol (it tells all clients the same lists), and at most
`colluders` clients work with it. A client's numbers are not proved: one that lies moves the sum as it likes.

**Statement** (replace neighbours; the number of clients that came is public). With discrete Laplace scale
b = D1/epsilon, h = threshold - colluders, and a Polya share of shape 1/h (`noise.Polya`) from every client on every
number, what server and colluders learn of one honest client costs at most `DiscreteLaplace(b, D1)`.

*Proof.* They learn the sum over the honest clients that came in round 3, and nothing else that depends on it: any other
combination carries a mask whose seed nobody of them can join, as colluders < threshold (Bonawitz et al., Theorem 6.3;
computationally). At least threshold came, so at least h honest ones. The noise of h of them sums to one discrete
Laplace draw, exactly; that of the others is independent of it and of the numbers, so adding it is post-processing.
Those who drop out take their noise along, which is why shares are for h and not for all clients.

*Error.* If r clients came and added their noise, its law is Polya of shape r/h: `error(r)`, which intervals are from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import DiscreteLaplace, Event, Number
from hubbub.accounting.amounts import amount
from hubbub.collect.circuits import whole
from hubbub.collect.private import PrivateTotal
from hubbub.collect.shamir import SHARE_SIZE, joined, split, weights_at_zero
from hubbub.collect.task import random_token
from hubbub.errors import ParameterError, PolicyError, QueryError
from hubbub.noise import MAX_SHARED_SCALE, Bits, Polya

__all__ = ["SecureSum", "SumClient", "SumServer", "simulate_secure_sum"]

Words = NDArray[np.uint64]
_MAX_CLIENTS: Final = 1 << 14


@dataclass(frozen=True, init=False)
class SecureSum:
    """What is summed, by how many, and how privately.

    clients: numbered 1 to so many. threshold: as many have to stay until the end. colluders: as many may work with the
    server. cells: numbers of each client, each from 0 to `largest`; one_hot: one 1 among zeros.

    >>> plan = SecureSum(clients=100, threshold=80, colluders=10, epsilon=1)
    >>> plan.share, plan.error(90).shape
    (Polya(scale=Fraction(1, 1), shape=Fraction(1, 70)), Fraction(9, 7))
    """

    clients: int
    threshold: int
    colluders: int
    cells: int
    largest: int
    one_hot: bool
    epsilon: Fraction

    def __init__(
        self,
        *,
        clients: int,
        threshold: int,
        colluders: int,
        epsilon: Number,
        cells: int = 1,
        largest: int = 1,
        one_hot: bool = False,
    ) -> None:
        n = whole(clients, "clients", 2, _MAX_CLIENTS)
        least = whole(threshold, "threshold", 2, n)
        values = {
            "clients": n,
            "threshold": least,
            "colluders": whole(colluders, "colluders", 0, least - 1),
            "cells": whole(cells, "cells", 1, 1 << 24),
            "largest": whole(largest, "largest", 1, 1 << 40),
            "one_hot": bool(one_hot),
            "epsilon": amount(epsilon, "epsilon"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if not self.epsilon:
            raise ParameterError("epsilon = 0 was asked, which needs infinite noise. Give one above 0.")
        if self.one_hot and (self.largest != 1 or self.cells < 2):
            raise ParameterError("one_hot is for two or more cells of 0 and 1.")
        if 4 * (n * self.largest + 64 * n * self.scale) >= 1 << 64:
            raise ParameterError("sums and their noise would not fit 64 bits; take a coarser grid.")
        if self.scale > MAX_SHARED_SCALE:
            raise ParameterError("the noise is wider than shares of noise are drawn, 2^20; take a coarser grid.")

    @property
    def honest(self) -> int:
        """h: how many are sure to be honest and present."""
        return self.threshold - self.colluders

    @property
    def sensitivity(self) -> int:
        """D1: how far one client, replaced, moves the sums."""
        return 2 if self.one_hot else self.cells * self.largest

    @property
    def scale(self) -> Fraction:
        """D1/epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def share(self) -> Polya:
        """The law of one client's noise on each number."""
        return Polya(self.scale, Fraction(1, self.honest))

    @property
    def loss(self) -> Event:
        """What being summed costs one client, against the server and the colluders."""
        return DiscreteLaplace(self.scale, self.sensitivity)

    def error(self, present: int) -> Polya:
        """The law of each sum's error if so many clients came."""
        return Polya(self.scale, Fraction(present, self.honest))

    @property
    def tag(self) -> bytes:
        """What binds keys and boxes to this sum."""
        return hashlib.sha256(b"hubbub.collect secure sum 1 " + repr(self).encode()).digest()

    def checked(self, values: Any) -> Words:
        """One client's numbers.

        Raises:
            QueryError: they are not as declared.
        """
        array = np.asarray(values)
        good = array.shape == (self.cells,) and array.dtype.kind in "iub"
        if not good or bool(np.any(array < 0)) or bool(np.any(array > self.largest)):
            raise QueryError(f"give {self.cells} whole numbers from 0 to {self.largest}.")
        if self.one_hot and array.sum() != 1:
            raise QueryError("give one 1 among zeros.")
        return array.astype(np.uint64)


def stream(seed: bytes, cells: int) -> Words:
    """A mask: the AES-256 key stream in counter mode under a seed that is used once."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    data = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor().update(bytes(8 * cells))
    return np.frombuffer(data, "<u8").astype(np.uint64)


def masked(values: Any, own: Any, pairs: Mapping[int, Any], place: int) -> Any:
    """values + own + sum of pairwise masks: added for partners above one's own place, taken off for those below."""
    total = values + own
    for other, mask in pairs.items():
        total = total + mask if other > place else total - mask
    return total


def _agreed(private: bytes, public: bytes, info: bytes) -> bytes:
    """The secret that two clients share."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    try:
        secret = X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise PolicyError("some client's key is not an X25519 key.") from None
    return HKDF(SHA256(), 32, salt=None, info=info).derive(secret)


def _public(private: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def _pair_seed(plan: SecureSum, private: bytes, public: bytes, one: int, other: int) -> bytes:
    low, high = sorted((one, other))
    return _agreed(private, public, b"mask" + plan.tag + low.to_bytes(4, "little") + high.to_bytes(4, "little"))


def _box_key(plan: SecureSum, private: bytes, public: bytes, sender: int, receiver: int) -> bytes:
    info = b"box" + plan.tag + sender.to_bytes(4, "little") + receiver.to_bytes(4, "little")
    return _agreed(private, public, info)


def _enough(plan: SecureSum, there: Collection[int], what: str) -> None:
    if len(there) < plan.threshold:
        raise PolicyError(f"{len(there)} clients {what}, and {plan.threshold} have to: there is no sum.")
    if not all(isinstance(i, int) and 1 <= i <= plan.clients for i in there):
        raise PolicyError(f"some client's number is not from 1 to {plan.clients}.")


_Step = Literal["new", "advertised", "shared", "masked", "done"]


@dataclass
class SumClient:
    """One client, for one sum: each of its four steps is taken once, and in order."""

    plan: SecureSum
    place: int
    values: Words = field(repr=False)
    bits: Bits | None = field(default=None, repr=False)
    _step: _Step = "new"
    _keys: dict[int, tuple[bytes, bytes]] = field(default_factory=dict, repr=False)
    _held: dict[int, tuple[bytes, bytes]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        whole(self.place, "place", 1, self.plan.clients)
        self.values = self.plan.checked(self.values)
        self._talk, self._mask, self._seed = (random_token(32) for _ in range(3))

    def _take(self, before: _Step, after: _Step) -> None:
        if self._step != before:
            raise PolicyError("a client takes each step of a sum once, in order; a second sum has new clients.")
        self._step = after

    def advertise(self) -> tuple[bytes, bytes]:
        """Round 1: the public keys to talk with and to mask with."""
        self._take("new", "advertised")
        return _public(self._talk), _public(self._mask)

    def share(self, keys: Mapping[int, tuple[bytes, bytes]]) -> dict[int, bytes]:
        """Round 2: a box for each other client, with shares of the masking key and of the own mask's seed.

        Raises:
            PolicyError: too few clients, keys that occur twice, or not one's own among them.
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        _enough(self.plan, keys, "gave keys")
        flat = [key for pair in keys.values() for key in pair]
        if keys.get(self.place) != (_public(self._talk), _public(self._mask)) or len(set(flat)) != len(flat):
            raise PolicyError("the server's list of keys does not hold this client's own, or one twice.")
        self._take("advertised", "shared")
        self._keys = dict(keys)
        secrets = [split(s, list(keys), self.plan.threshold, bits=self.bits) for s in (self._mask, self._seed)]
        self._held[self.place] = secrets[0][self.place], secrets[1][self.place]
        return {
            other: AESGCM(_box_key(self.plan, self._talk, talk, self.place, other)).encrypt(
                bytes(12), secrets[0][other] + secrets[1][other], None
            )
            for other, (talk, _) in keys.items()
            if other != self.place
        }

    def mask(self, boxes: Mapping[int, bytes]) -> Words:
        """Round 3: the numbers with this client's noise and masks, from the boxes of the others that shared.

        Raises:
            PolicyError: too few boxes, or one that cannot be opened.
        """
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        _enough(self.plan, {*boxes, self.place}, "shared their secrets")
        self._take("shared", "masked")
        for other, box in boxes.items():
            try:
                key = _box_key(self.plan, self._talk, self._keys[other][0], other, self.place)
                plain = AESGCM(key).decrypt(bytes(12), box, None)
            except (InvalidTag, KeyError, ValueError):
                raise PolicyError(
                    f"the box of client {other} cannot be opened: it was changed, or is for another."
                ) from None
            if other == self.place or len(plain) != 2 * SHARE_SIZE:
                raise PolicyError(f"the box of client {other} does not hold two shares.")
            self._held[other] = plain[:SHARE_SIZE], plain[SHARE_SIZE:]
        pairs = {
            other: stream(_pair_seed(self.plan, self._mask, self._keys[other][1], self.place, other), self.plan.cells)
            for other in boxes
        }
        noise = self.plan.share.sample(self.plan.cells, bits=self.bits)
        values = self.values + np.asarray(noise).astype(np.uint64)
        masked_words: Words = masked(values, stream(self._seed, self.plan.cells), pairs, self.place)
        return masked_words

    def unmask(self, present: Collection[int]) -> dict[int, bytes]:
        """Round 4: for each client that shared, a share of its mask's seed if it is present, else of its masking key.

        Never both of one client, and never a second time.

        Raises:
            PolicyError: too few are present, or some that never shared.
        """
        there = set(present)
        _enough(self.plan, there, "sent their numbers")
        if not there <= set(self._held):
            raise PolicyError("some client is said to have sent numbers that never shared its secrets.")
        self._take("masked", "done")
        return {other: held[1] if other in there else held[0] for other, held in self._held.items()}


@dataclass
class SumServer:
    """The server: passes on what the clients of one sum send, and takes the masks off their sum."""

    plan: SecureSum
    keys: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    boxes: dict[int, dict[int, bytes]] = field(default_factory=dict)
    inputs: dict[int, Words] = field(default_factory=dict, repr=False)

    def boxes_for(self, place: int) -> dict[int, bytes]:
        """What the other clients sent to one of them."""
        return {sender: boxes[place] for sender, boxes in self.boxes.items() if sender != place}

    @property
    def present(self) -> list[int]:
        """Whose masked numbers came."""
        return sorted(self.inputs)

    def total(self, shares: Mapping[int, Mapping[int, bytes]]) -> PrivateTotal:
        """The sums of those present, from what clients sent in round 4.

        Raises:
            PolicyError: too few answered, or shares that do not belong together.
        """
        plan = self.plan
        _enough(plan, self.inputs, "sent their numbers")
        _enough(plan, shares, "answered at the end")
        used = sorted(shares)[: plan.threshold]
        weights = weights_at_zero(used)
        total = np.zeros(plan.cells, np.uint64)
        for values in self.inputs.values():
            total = total + values
        for place in self.boxes:
            try:
                secret = joined({i: shares[i][place] for i in used}, weights)
            except KeyError:
                raise PolicyError(f"some client sent no share of client {place}.") from None
            there = place in self.inputs
            total = total - (stream(secret, plan.cells) if there else self._left_by(place, secret))
        sums = tuple(int(v) for v in total.astype(np.int64))
        return PrivateTotal(sums, len(self.inputs), plan.error(len(self.inputs)))

    def _left_by(self, place: int, secret: bytes) -> Words:
        """What stays in the sum of the pairwise masks with a client that dropped out."""
        if _public(secret) != self.keys[place][1]:
            raise PolicyError(f"the shares of client {place} do not give its key: some client sent a false one.")
        out = np.zeros(self.plan.cells, np.uint64)
        for other in self.inputs:
            seed = _pair_seed(self.plan, secret, self.keys[other][1], place, other)
            out = masked(out, np.uint64(0), {place: stream(seed, self.plan.cells)}, other)
        return out


def simulate_secure_sum(
    plan: SecureSum,
    values: Sequence[Sequence[int]],
    *,
    dropped: Mapping[int, int] | None = None,
    bits: Bits | None = None,
) -> PrivateTotal:
    """All four rounds in one process. dropped: client -> the round before which it goes, 1 to 4.

    Raises:
        PolicyError: too few stay.
    """
    gone = dropped or {}
    clients = {i: SumClient(plan, i, plan.checked(v), bits) for i, v in enumerate(values, 1)}

    def there(step: int, among: Collection[int]) -> list[int]:
        return [i for i in among if gone.get(i, 5) > step]

    server = SumServer(plan)
    server.keys = {i: clients[i].advertise() for i in there(1, clients)}
    server.boxes = {i: clients[i].share(server.keys) for i in there(2, server.keys)}
    server.inputs = {i: clients[i].mask(server.boxes_for(i)) for i in there(3, server.boxes)}
    return server.total({i: clients[i].unmask(server.present) for i in there(4, server.inputs)})
