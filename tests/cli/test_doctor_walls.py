"""What `hubbub doctor` says of the walls around runners is what holds of a process that was shut in here."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace

import pytest

from hubbub.cli import doctor
from hubbub.confine import landlock_version

WHOLE = {"landlock": 7, "undumpable": True, "no_new_privs": True, "network": False}


def test_the_doctor_says_what_holds_here_of_a_process_that_is_shut_in():
    well, line = doctor._walls()
    version = landlock_version()
    assert (well is True) == (version >= 4)
    assert (f"by Landlock {version}," in line) == bool(version)


@pytest.mark.parametrize(
    ("lack", "words"),
    [
        ({}, "files shut in by Landlock 7, memory hidden, no new rights, network closed"),
        ({"landlock": 0, "network": True}, "files NOT shut in (no Landlock)"),
        ({"landlock": 3, "network": True}, "network open. hubbub serve wants Linux 6.7"),
        ({"undumpable": False}, "memory NOT hidden"),
        ({"no_new_privs": False}, "new rights possible"),
    ],
)
def test_the_doctor_names_what_does_not_hold(monkeypatch, lack, words):
    told = SimpleNamespace(stdout=json.dumps({**WHOLE, **lack}))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: told)
    well, line = doctor._walls()
    assert well is (None if lack else True)
    assert words in line


def test_the_doctor_says_that_it_could_not_try(monkeypatch):
    def fails(*_, **__):
        raise subprocess.CalledProcessError(1, "python")

    monkeypatch.setattr(subprocess, "run", fails)
    assert doctor._walls() == (None, "runners of the service: what shuts them in could not be tried")
