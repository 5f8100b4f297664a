"""Where randomness comes from.

Production bits are the AES-256 key stream in counter mode under a key and counter from the operating system
(`os.urandom`), renewed every GiB, in every new process and on demand. NIST SP 800-38A, section 6.5, gives
the mode; 2^26 blocks under one key keep the distance from uniform below 2^-76. Each thread has a stream of
its own, so there is no lock to wait for or to leave held across a fork. Without `cryptography` every byte
comes from `os.urandom` itself: the same distribution, about ten times slower.

Nothing here takes a seed. A test passes its own `Bits`.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bits", "SystemBits", "system_bits"]

# Long calls, because threads compete for the interpreter lock after each.
_CHUNK = 1 << 20
_ZEROS = memoryview(bytes(_CHUNK))
_BYTES_PER_KEY = 1 << 30
_POOL_BYTES = 4096

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
    """One thread's key stream under one key. `mark` says for which process, fork and epoch it was made."""

    __slots__ = ("encryptor", "left", "mark", "words")

    def __init__(self, mark: tuple[int, int, int]) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self.encryptor = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()
        self.left = _BYTES_PER_KEY
        self.mark = mark
        self.words: Iterator[int] = iter(())

    def fill(self, buffer: memoryview) -> None:
        self.left -= len(buffer)
        for start in range(0, len(buffer), _CHUNK):
            part = buffer[start : start + _CHUNK]
            self.encryptor.update_into(_ZEROS[: len(part)], part)


class SystemBits(Bits):
    """The production source; safe to share between threads and across forks."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._epochs = count(1)
        self._epoch = 0

    def rekey(self) -> None:
        """Make every thread take a new key before its next byte (say, after a virtual machine was cloned)."""
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
            word = self._word()
            if before == _forks:
                return word

    def _word(self) -> int:
        stream = self._stream(0)
        if stream is None:
            return int.from_bytes(os.urandom(8), "little")
        # `next` is one indivisible step, so a signal handler that draws cannot be handed the same word.
        word = next(stream.words, None)
        if word is None:
            pool = bytearray(_POOL_BYTES)
            self._fill(memoryview(pool))
            fresh = iter(memoryview(pool).cast("Q").tolist())
            word = next(fresh)
            stream.words = fresh
        return word

    def _fill(self, view: memoryview) -> None:
        # A signal handler may fork after the stream was looked up: the child then fills again, under its own key.
        while True:
            before = _forks
            stream = self._stream(len(view))
            if stream is None:
                view[:] = os.urandom(len(view))
            else:
                stream.fill(view)
            if before == _forks:
                return

    def _stream(self, need: int) -> _Stream | None:
        """This thread's stream with `need` bytes left under its key, or None where there is no AES."""
        mark = (os.getpid(), _forks, self._epoch)
        stream: _Stream | None = getattr(self._local, "stream", None)
        if stream is None or stream.mark != mark or stream.left < need:
            if getattr(self._local, "no_cipher", False):
                return None
            try:
                stream = _Stream(mark)
            except ImportError:
                self._local.no_cipher = True
                return None
            self._local.stream = stream
        return stream


_SYSTEM = SystemBits()


def system_bits() -> SystemBits:
    """The source that draws use unless a test passes another."""
    return _SYSTEM
