"""Where randomness comes from.

Production bits belong to a *release*: one call of a draw, from the moment it asks for `system_bits()`. The first
four kilobytes of a release are the operating system's own (`os.urandom`); beyond them comes the AES-256 key stream in
counter mode under a key and counter from the operating system, made for this release. So no bit of a release was there
before it began: a machine whose memory was copied, and that goes on twice, draws other noise in either. NIST SP
800-38A, section 6.5, gives the mode; a key serves one GiB, and 2^26 blocks under it keep the distance from uniform
below 2^-76. Each thread has its own, so there is no lock to wait for or to leave held across a fork; a new process,
also within a release, begins anew. Without `cryptography` every byte comes from `os.urandom` itself: the same
distribution, about ten times slower.

Nothing here takes a seed. A test passes its own `Bits`.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import count
from struct import unpack

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bits", "SystemBits", "system_bits"]

# Long calls, because threads compete for the interpreter lock after each.
_CHUNK = 1 << 20
_ZEROS = memoryview(bytes(_CHUNK))
_BYTES_PER_KEY = 1 << 30
# A release of few draws never makes a key, which costs as much as this many bytes of the operating system.
_BYTES_BEFORE_A_KEY = 4096
# Words come in pools, each twice as large as the one before: most releases need a few.
_FIRST_POOL, _LARGEST_POOL = 64, 4096

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def forks() -> int:
    """How many forks lie between the first process and this one."""
    return _forks


class Bits(ABC):
    """A source of independent fair bits; only `fill` is required."""

    @abstractmethod
    def fill(self, buffer: NDArray[np.uint8]) -> None:
        """Overwrite a C-contiguous one-dimensional buffer with fresh random bytes."""

    def u16(self, n: int) -> NDArray[np.uint16]:
        """n independent uniforms on [0, 2^16)."""
        buffer = np.empty(2 * n, np.uint8)
        self.fill(buffer)
        return buffer.view(np.uint16)

    def u64(self, n: int) -> NDArray[np.uint64]:
        """n independent uniforms on [0, 2^64)."""
        buffer = np.empty(8 * n, np.uint8)
        self.fill(buffer)
        return buffer.view(np.uint64)

    def word(self) -> int:
        """One uniform on [0, 2^64), as a Python int."""
        return int(self.u64(1)[0])

    def bits(self, k: int) -> int:
        """One uniform on [0, 2^k), as a Python int."""
        if k <= 64:
            return self.word() >> (64 - k)
        buffer = np.empty((k + 7) // 8, np.uint8)
        self.fill(buffer)
        return int.from_bytes(buffer.tobytes(), "little") & ((1 << k) - 1)


class _Stream:
    """A key stream under one key."""

    __slots__ = ("encryptor", "left")

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self.encryptor = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
        self.left = _BYTES_PER_KEY

    def fill(self, buffer: memoryview) -> None:
        self.left -= len(buffer)
        for start in range(0, len(buffer), _CHUNK):
            part = buffer[start : start + _CHUNK]
            self.encryptor.update_into(_ZEROS[: len(part)], part)


class _Release:
    """What one thread holds of one release. `mark` says for which process, fork and epoch it was begun."""

    __slots__ = ("direct", "mark", "pool", "stream", "words")

    def __init__(self, mark: tuple[int, int, int]) -> None:
        self.mark = mark
        self.stream: _Stream | None = None
        self.direct = _BYTES_BEFORE_A_KEY
        self.pool = _FIRST_POOL
        self.words: Iterator[int] = iter(())

    def fill(self, buffer: memoryview) -> None:
        need = len(buffer)
        if need <= self.direct:
            self.direct -= need
            buffer[:] = os.urandom(need)
            return
        self.direct = 0
        stream = self.stream
        if stream is None or stream.left < need:
            try:
                stream = _Stream()
            except ImportError:
                buffer[:] = os.urandom(need)
                return
            self.stream = stream
        stream.fill(buffer)

    def word(self) -> int:
        # `next` is one indivisible step, so a signal handler that draws cannot be handed the same word.
        word = next(self.words, None)
        if word is not None:
            return word
        size = self.pool
        self.pool = min(2 * size, _LARGEST_POOL)
        if size <= self.direct:
            self.direct -= size
            pool = os.urandom(size)
        else:
            room = bytearray(size)
            self.fill(memoryview(room))
            pool = bytes(room)
        fresh: Iterator[int] = iter(unpack(f"={size // 8}Q", pool))
        word = next(fresh)
        self.words = fresh
        return word


class SystemBits(Bits):
    """The production source; safe to share between threads and across forks."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._epochs = count(1)
        self._epoch = 0

    def begin(self) -> None:
        """Begin a release in this thread: what is left of the one before, pool and key, is dropped."""
        self._local.release = None

    def rekey(self) -> None:
        """Make every thread begin anew before its next byte, in the midst of a release too (say, after a virtual
        machine was cloned).
        """
        # Never a number used before, even if two threads ask at once.
        self._epoch = next(self._epochs)

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        view = buffer.data
        while len(view) > _BYTES_PER_KEY:
            self._fill(view[:_BYTES_PER_KEY])
            view = view[_BYTES_PER_KEY:]
        self._fill(view)

    def word(self) -> int:
        while True:
            before = _forks
            word = self._release().word()
            if before == _forks:
                return word

    def _fill(self, view: memoryview) -> None:
        # A signal handler may fork after the release was looked up: the child then fills again, in its own.
        while True:
            before = _forks
            self._release().fill(view)
            if before == _forks:
                return

    def _release(self) -> _Release:
        """This thread's release, begun anew in a new process or epoch."""
        mark = (os.getpid(), _forks, self._epoch)
        release: _Release | None = getattr(self._local, "release", None)
        if release is None or release.mark != mark:
            release = self._local.release = _Release(mark)
        return release


_SYSTEM = SystemBits()


def system_bits() -> SystemBits:
    """The source that draws use unless a test passes another; asking for it begins a release in this thread."""
    _SYSTEM.begin()
    return _SYSTEM
