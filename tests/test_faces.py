"""What differed between Python, policy files and the command line, thing by thing: the list that newcomers wrote.

The table of words is held by `test_words.py`; this is the list of what once had two names, or one name and two forms.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub import accounting
from hubbub.cli.evaluate import command as evaluate
from hubbub.cli.fit import command as fit
from hubbub.cli.main import COMMANDS
from hubbub.cli.synth import command as synth
from hubbub.ledger.policy import read_policy


def test_a_null_among_values_is_one_declaration_in_python_and_in_a_policy(tmp_path) -> None:
    from hubbub.session.open import private_of

    text = (
        "[ledger]\nfile = 'b.db'\n[budget]\nepsilon = 1\n[tables.v]\nsource = 'v.parquet'\nunit = 'id'\n"
        "[tables.v.columns]\nward = { one_of = ['A'], null = true }\n"
    )
    written = private_of(read_policy(text, tmp_path / "hubbub.toml").tables["v"])
    assert written.columns["ward"] == hb.one_of("A", None)
    with pytest.raises(hb.ParameterError, match="'null' is not an argument"):
        hb.one_of("A", null=True)


def test_each_row_is_one_word_in_letters_of_both_cases(tmp_path) -> None:
    from hubbub.session.open import private_of

    text = "[ledger]\nfile = 'b.db'\n[budget]\nepsilon = 1\n[tables.v]\nsource = 'v.parquet'\neach_row = true\n"
    assert private_of(read_policy(text, tmp_path / "hubbub.toml").tables["v"]).unit is hb.EACH_ROW
    public = read_policy(text + "[public.w]\nsource = 'w.parquet'\n", tmp_path / "hubbub.toml").public["w"]
    assert public.name == "w"
    assert hb.public(pa.table({"x": [1]}))


@pytest.mark.parametrize("command", [synth, fit, evaluate], ids=lambda c: c.name)
def test_how_often_a_unit_counts_is_called_as_in_python(command) -> None:
    (option,) = [p for p in command.params if p.name == "rows_per_unit"]
    assert option.opts == ["--rows-per-unit", "--max-rows"]  # the older name still works
    for method in (hb.Session.synthesize, hb.Session.fit, hb.Session.evaluate):
        assert "rows_per_unit" in inspect.signature(method).parameters


def test_what_an_answer_cost_has_one_name_in_the_answer_and_in_its_receipt() -> None:
    rows = hb.table(pa.table({"id": range(20)}), unit="id", max_total=1)
    with pytest.warns(UserWarning, match="ledger=None"):
        session = hb.Session({"v": rows}, budget=hb.Budget(3), ledger=None)
    with session:
        answer = session.sql("SELECT COUNT(*) FROM v", epsilon=1)
        receipt = session.receipt(answer.charge_id)
        assert (answer.cost, answer.charged, receipt["charged"]["epsilon"]) == (1, True, "1")
        assert isinstance(answer.receipt, dict)
        assert "spent" not in {*answer.receipt, *receipt}
        assert {"explain", "receipt"} <= set(COMMANDS)
        assert callable(accounting.explain)


def test_a_wrong_word_in_a_policy_and_in_python_is_refused_with_the_right_one() -> None:
    with pytest.raises(hb.ParameterError, match="Did you mean 'max_rows'"):
        hb.table("v.parquet", unit="id", max_row=1)
    text = (
        "[ledger]\nfile = 'b.db'\n[budget]\nepsilon = 1\n[tables.v]\nsource = 'v.parquet'\nunit = 'id'\nmax_row = 1\n"
    )
    with pytest.raises(hb.PolicyError, match="Did you mean 'max_rows'"):
        read_policy(text, Path("hubbub.toml").absolute())
