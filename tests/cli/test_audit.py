"""`hubbub audit`: a user's mechanism, refuted or not; reports; what it refuses."""

from __future__ import annotations

import json
import sys

import pytest

from hubbub import audit
from hubbub.cli.main import run

MINE = """
import numpy as np
g = np.random.default_rng(1)

def broken(data, size):
    return data + g.laplace(0, 0.2, size)

def fine(data, size):
    return np.sum(data) + g.laplace(0, 10, size)

def says_nothing(data, size):
    return np.zeros(size + 1)

def leaves(data, size):
    raise SystemExit(0)

number = 3
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "left.py").write_text("import sys; sys.exit(0)")
    (tmp_path / "wrong.py").write_text("raise ValueError('of mine')")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_claim_that_is_wrong_is_refuted_with_code_three(mine, capsys):
    assert run(["audit", "mine.py:broken", "--epsilon", "0.5", "--seconds", "1"]) == 3
    out, err = capsys.readouterr()
    assert "VIOLATED" in out
    assert "1 of 1 claims are refuted." in out
    assert err == "auditing mine.py:broken for up to 1 seconds\n"


def test_a_claim_that_holds_is_not_and_nothing_is_promised(mine, capsys):
    words = ["audit", "mine.py:fine", "--epsilon", "0.1", "--data", "[1, 2]", "--neighbour", "[1, 2, 1]"]
    assert run([*words, "--seconds", "0.5", "--confidence", "0.999999", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["violated"] is False
    assert "does not prove" in found["conclusion"]
    (line,) = found["lines"]
    assert (line["claimed"], line["confidence"]) == (0.1, 0.999999)
    assert 0 <= line["shown"] < 0.1 < line["ceiling"]


def test_a_module_is_found_from_the_working_folder_and_a_page_is_written(mine):
    assert run(["audit", "mine:broken", "--epsilon", "0.5", "--seconds", "1", "--format", "html", "-o", "a.html"]) == 3
    page = (mine / "a.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "mine:broken" in page


def test_delta_and_bits_reach_the_audit(mine, monkeypatch, capsys):
    asked = {}
    real = audit.lower_bound

    def remember(*given, **options):
        asked.update(options)
        return real(*given, **options | {"max_samples": 1000})

    monkeypatch.setattr(audit, "lower_bound", remember)
    run(["audit", "mine.py:fine", "--epsilon", "1", "--delta", "1e-3", "--bits", "--seconds", "0.2"])
    assert asked == {"delta": 0.001, "confidence": 0.95, "seconds": 0.2, "bits": True}
    assert "nothing found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "name what to audit as MODULE:CALLABLE, or give --self"),
        (["mine.py:fine", "--self"], 2, "or give --self"),
        (["mine.py:fine"], 2, "--epsilon: say what the callable claims"),
        (["mine.py:fine", "--epsilon", "-1"], 2, "epsilon = -1 is not allowed"),
        (["mine.py:fine", "--epsilon", "1", "--delta", "2"], 2, "delta"),
        (["mine.py:fine", "--epsilon", "1", "--confidence", "1"], 2, "--confidence"),
        (["mine.py:fine", "--epsilon", "1", "--seconds", "0"], 2, "--seconds"),
        (["mine.py:fine", "--epsilon", "1", "--data", "{"], 2, "is not JSON"),
        (["mine.py", "--epsilon", "1"], 2, "name a callable as MODULE:CALLABLE"),
        (["mine.py:number", "--epsilon", "1"], 2, "has no callable 'number'"),
        (["wrong.py:fine", "--epsilon", "1"], 2, "wrong.py could not be loaded: ValueError: of mine"),
        (["none.py:fine", "--epsilon", "1"], 3, "there is no file none.py"),
        (["no.such.module:fine", "--epsilon", "1"], 3, "the module no.such.module was not found"),
        (["mine.py:says_nothing", "--epsilon", "1"], 2, "first axis"),
    ],
)
def test_what_cannot_be_audited_is_said(mine, capsys, words, code, message):
    assert run(["audit", *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_self_audits_hubbub(mine, monkeypatch, capsys):
    asked = {}

    def short(**options):
        options.pop("progress")("exact laws")
        asked.update(options)
        return audit.Report((audit.Line("Laplace", "exact", 1.0, 1.0, False),))

    monkeypatch.setattr(audit, "self_test", short)
    assert run(["audit", "--self", "--thorough"]) == 0
    out, err = capsys.readouterr()
    assert asked == {"seconds": 2.0, "confidence": 0.999, "thorough": True}
    assert "Laplace    exact" in out
    assert err == "auditing: exact laws\n"


@pytest.mark.parametrize("target", ["mine.py:leaves", "left.py:fine", "left:fine"])
def test_code_that_leaves_the_program_is_not_taken_for_a_claim_that_stands(target, mine, capsys):
    assert run(["audit", target, "--epsilon", "0.5", "--seconds", "1"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "ends the program" in err


def test_a_command_that_is_left_has_not_succeeded(mine, monkeypatch, capsys):
    from hubbub.cli import explain

    monkeypatch.setattr(explain.command, "callback", lambda **_: sys.exit(0))
    assert run(["explain", "--epsilon", "1"]) == 1
    assert "left before its end" in capsys.readouterr().err
