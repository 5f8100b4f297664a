"""The clerk's end of the line, as a process finds it that was taken over: it knows the socket, and not the token."""

from __future__ import annotations

import errno
import socket

import pytest

from hubbub.service.http.line import ClerkLine
from hubbub.service.listening import Listening


@pytest.fixture
def place(tmp_path):
    path = str(tmp_path / "clerk")
    listening = Listening(path, "word", lambda act, given, proof: {"told": [act, given, proof]}, shared=False)
    yield path
    listening.close()


def test_who_says_nothing_keeps_nobody_from_being_heard(place):
    """A process may open thousands of connections, and the clerk has files for a thousand."""
    silent = []
    for _ in range(100):
        silent.append(socket.socket(socket.AF_UNIX))
        silent[-1].connect(place)
        silent[-1].settimeout(30)
    assert ClerkLine(place, "word").ask("act", {"a": 1}, {"token": "t"})["told"] == ["act", {"a": 1}, {"token": "t"}]
    assert [each.recv(1) for each in silent[:30]] == [b""] * 30
    for each in silent:
        each.close()


def test_who_says_another_word_is_not_heard(place):
    assert ClerkLine(place, "guess").ask("act", {})["refused"]["kind"] == "away"
    assert ClerkLine(place, "w\ud800").ask("act", {})["refused"]["kind"] == "away"


def test_a_clerk_without_files_hears_again_once_there_are_some(place, monkeypatch):
    accept, left = socket.socket.accept, [3]

    def full(self):
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EMFILE, "too many open files")
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", full)
    for _ in range(2):  # the first one is taken by a call that had begun
        assert ClerkLine(place, "word").ask("act", {})["told"] == ["act", {}, None]
    assert left == [0]
