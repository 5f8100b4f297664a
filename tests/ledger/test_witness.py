"""What leaves the machine daily finds a ledger that was put back, and tells nothing but a line and a hash."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget
from hubbub.ledger.store import Ledger
from hubbub.ledger.witness import Witnessed, bear_witness, kept_by_witness, read_witness
from ledger.helpers import SPACE, charge

BUDGETS = {SPACE: Budget(3)}
TOMORROW = "9000-01-01"


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS) as opened:
        charge(opened, "0.5", sql="SELECT 'Zoe'")
        chain, said = opened.chain, opened.chain.testimony
        monkeypatch.setattr(chain, "testimony", lambda: said(TOMORROW))
        yield opened


def test_a_folder_gets_a_file_a_day_that_is_never_written_again(ledger, tmp_path):
    place = tmp_path / "elsewhere"
    place.mkdir()
    sent = bear_witness(ledger, place)
    (file,) = place.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    told = json.loads(file.read_text())
    assert told == {"ledger": ledger.id, "day": TOMORROW, "line": sent.line, "hash": sent.hash}
    assert bear_witness(ledger, place) == sent
    file.write_text("")  # as one that was killed leaves it
    assert bear_witness(ledger, place) == sent
    charge(ledger, "0.5", question_key="2")
    with pytest.raises(PolicyError, match="names another line than the ledger holds"):
        bear_witness(ledger, place)


def test_a_ledger_that_was_put_back_or_cut_is_found(ledger, tmp_path):
    ledger.record.backup(tmp_path / "old.db")
    charge(ledger, "0.5", question_key="2")
    place = tmp_path / "elsewhere"
    place.mkdir()
    bear_witness(ledger, place)
    heads = kept_by_witness(place, ledger.id)
    assert ledger.record.verify(heads=heads).sound
    ledger.close()
    shutil.copyfile(tmp_path / "old.db", tmp_path / "b.db")
    with Ledger.inspect(tmp_path / "b.db") as old:
        (problem,) = old.record.verify(heads=heads).problems
        assert problem.startswith(f"the witness of {TOMORROW} (line ")
        assert "an earlier state" in problem


def test_both_of_two_testimonies_of_a_day_count(ledger, tmp_path):
    """A service sends the day again when it starts, and what it sends of an older copy hid what was sent before."""
    ledger.record.backup(tmp_path / "old.db")
    charge(ledger, "0.5", question_key="2")
    told = tmp_path / "kept.json"
    with Ledger.inspect(tmp_path / "old.db") as old:
        told.write_text(ledger.chain.testimony().text() + old.chain.testimony(TOMORROW).text())
        heads = kept_by_witness(told, ledger.id)
        assert len(heads) == 2
        assert ledger.record.verify(heads=heads).sound
        assert not old.record.verify(heads=heads).sound


def test_what_is_sent_is_as_of_midnight_whenever_it_is_sent(tmp_path):
    with Ledger.open(tmp_path / "b.db", budgets=BUDGETS) as ledger:
        assert ledger.chain.testimony() is None  # it began today
        first = ledger.chain.testimony(TOMORROW)
        charge(ledger, "0.5")
        assert ledger.chain.testimony(TOMORROW).line > first.line
        with Ledger.inspect(tmp_path / "b.db") as other:
            assert other.chain.testimony() is None


def test_a_command_gets_it_on_its_standard_input(ledger, tmp_path):
    keep = (sys.executable, "-c", f"import sys; open({str(tmp_path / 'kept')!r}, 'a').write(sys.stdin.read())")
    sent = bear_witness(ledger, keep)
    assert Witnessed.read((tmp_path / "kept").read_text()) == sent
    assert list(kept_by_witness(tmp_path / "kept", ledger.id).values()) == [(sent.line, sent.hash)]
    for wrong in (("/none",), (sys.executable, "-c", "raise SystemExit(3)")):
        with pytest.raises(PolicyError, match=r"did not run|ended with 3"):
            bear_witness(ledger, wrong)


def test_an_address_gets_a_post_of_that_line(ledger, monkeypatch):
    posted = []

    class Answer:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def read(self, _):
            return b""

    def taken(request, timeout):
        posted.append((request.full_url, request.get_method(), request.data))
        return Answer()

    monkeypatch.setattr("urllib.request.urlopen", taken)
    sent = bear_witness(ledger, "https://witness.example/hubbub")
    assert posted == [("https://witness.example/hubbub", "POST", sent.text().encode())]
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: (_ for _ in ()).throw(OSError("secret words")))
    with pytest.raises(PolicyError, match="did not take it: OSError"):
        bear_witness(ledger, "https://witness.example/hubbub")


@pytest.mark.parametrize("value", ["", "http://example", 3, [], ["a", 3], {"a": "b"}])
def test_no_other_place_is_a_witness(value):
    assert read_witness(value, Path("/p")) is None


def test_places_of_a_witness():
    assert read_witness("https://w.example", Path("/p")) == "https://w.example"
    assert read_witness("elsewhere", Path("/p")) == Path("/p/elsewhere")
    assert read_witness(["ssh", "w"], Path("/p")) == ("ssh", "w")


def test_what_is_no_testimony_or_another_ledgers_is_said(ledger, tmp_path):
    (tmp_path / "kept").write_text('{"line": 3}\n')
    with pytest.raises(PolicyError, match="not what a ledger sent"):
        kept_by_witness(tmp_path / "kept", ledger.id)
    (tmp_path / "kept").write_text(Witnessed("other", "2026-01-01", 3, "00").text())
    with pytest.raises(PolicyError, match="holds nothing of this ledger"):
        kept_by_witness(tmp_path / "kept", ledger.id)
    with pytest.raises(PolicyError, match="cannot read"):
        kept_by_witness(tmp_path / "none", ledger.id)
