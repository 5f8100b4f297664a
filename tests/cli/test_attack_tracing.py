"""`hubbub attack tracing`: a pirate is found, a private one is not; it takes no file."""

from __future__ import annotations

import csv
import io

import pytest

from hubbub.cli.main import run


def test_a_pirate_is_traced_and_a_private_one_is_not(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # At this beta a private pirate of 6 users is accused with a chance below 1e-9.
    asked = ["attack", "tracing", "--users", "6", "--pirates", "3", "--beta", "0.0001"]
    assert run([*asked, "--epsilon", "1", "--format", "csv"]) == 0
    out, err = capsys.readouterr()
    head, *rows = csv.reader(io.StringIO(out))
    assert head == ["an_outsider_learns", "exact_answers", "private_answers", "ceiling"]
    assert rows[0] == ["a pirate is accused", "1.000", "0.000", "0.001"]
    assert rows[2][1] == "0.000"
    assert rows[3][1] == "1.000"
    assert "5,551 columns" in err
    assert list(tmp_path.iterdir()) == []


def test_both_staircases_are_drawn(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert run(["attack", "tracing", "--users", "3", "--pirates", "1", "--epsilon", "1", "--plot", "s.svg"]) == 0
    assert (tmp_path / "s.svg").read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--pirates", "10"], "leave one innocent"), (["--strategy", "best"], "allowed are majority"), ([], "--epsilon")],
)
def test_what_does_not_fit_is_refused(options, message, capsys):
    amount = ["--epsilon", "1"] if options else []
    assert run(["attack", "tracing", *options, *amount]) == 2
    assert message in capsys.readouterr().err
