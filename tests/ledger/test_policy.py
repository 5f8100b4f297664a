"""A policy file is read as written; what is wrong in it is shown with its line."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from hubbub.errors import PolicyError
from hubbub.ledger.policy import find_policy, load_policy

GOOD = """\
[ledger]
file = "budget.db"

[budget]
epsilon = 3

[tables.visits]
source = "data/visits.parquet"
unit = "patient_id"
max_groups = 3
max_rows = 2

[tables.visits.types]
age = "integer"

[tables.visits.columns]
age = { between = [0, 120] }
ward = { one_of = ["A", "B", "C"] }

[public.wards]
source = "wards.csv"
"""


def loaded(tmp_path: Path, text: str):
    (tmp_path / "hubbub.toml").write_text(text, encoding="utf-8")
    return load_policy(tmp_path / "hubbub.toml")


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_a_policy_is_what_was_written(tmp_path):
    policy = loaded(tmp_path, GOOD)
    assert policy.ledger == tmp_path / "budget.db"
    assert policy.budget.epsilon == 3
    visits = policy.tables["visits"]
    assert visits.source == tmp_path / "data" / "visits.parquet"
    assert (visits.unit, visits.max_groups, visits.max_rows, visits.max_total) == ("patient_id", 3, 2, None)
    assert (visits.neighbours, visits.table) == ("add_remove", None)
    assert dict(visits.columns) == {"age": {"between": [0, 120]}, "ward": {"one_of": ["A", "B", "C"]}}
    assert dict(visits.types) == {"age": "integer"}
    assert policy.public["wards"].source == tmp_path / "wards.csv"


def test_paths_are_relative_to_the_file_and_not_to_the_reader(tmp_path, monkeypatch):
    (tmp_path / "hubbub.toml").write_text(changed('"budget.db"', '"../budget.db"'))
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    assert find_policy() == tmp_path / "hubbub.toml"
    assert load_policy("../../hubbub.toml").ledger == tmp_path.parent / "budget.db"


def test_no_policy_anywhere_says_how_to_write_one(tmp_path):
    with pytest.raises(PolicyError, match=r"no hubbub\.toml in .*hubbub init FILE"):
        find_policy(tmp_path)


def test_each_row_may_be_the_unit(tmp_path):
    assert loaded(tmp_path, changed('unit = "patient_id"', "each_row = true")).tables["visits"].unit is None


def test_a_duckdb_file_needs_its_table(tmp_path):
    text = changed('"data/visits.parquet"', '"v.duckdb"\ntable = "visits"')
    assert loaded(tmp_path, text).tables["visits"].table == "visits"


def test_an_epsilon_is_exact(tmp_path):
    assert loaded(tmp_path, changed("epsilon = 3", "epsilon = 0.1")).budget.epsilon == Fraction(1, 10)
    assert loaded(tmp_path, changed("epsilon = 3", 'epsilon = "1/3"')).budget.epsilon == Fraction(1, 3)


def test_bounds_may_be_dates_and_not_nullable(tmp_path):
    text = changed("between = [0, 120]", "between = [2024-01-01, 2025-01-01], nullable = false")
    column = loaded(tmp_path, text).tables["visits"].columns["age"]
    assert column == {"between": [datetime.date(2024, 1, 1), datetime.date(2025, 1, 1)], "nullable": False}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("epsilon = 3", "epsilon = -3", 5, "budget.epsilon: the budget's epsilon = -3 is not allowed"),
        ("epsilon = 3", "epsilon = nan", 5, "it must be a finite number"),
        ("epsilon = 3", "epsilon = true", 5, "must be a number, found bool"),
        ("epsilon = 3", "epsilon = 3\ndelta = 2", 6, "budget.delta: the budget's delta = 2 .* must be below 1"),
        ("epsilon = 3", "epsilon = 3\nper_analyst = 4", 6, "found 4, above the budget of Budget"),
        ("epsilon = 3", "epsilon = 3\nanalysts = { ada = -1 }", 6, "must be greater than zero"),
        ("max_rows = 2", "budget = 5", 11, "tables.visits.budget: found 5, above the budget"),
        ('file = "budget.db"', 'file = "b"\nurl = "postgresql://x/y"', 1, "one of them"),
        ('file = "budget.db"', 'url = "mysql://x/y"', 2, "begins with postgresql://"),
        ('file = "budget.db"', 'file = "b"\nmax_failures = 0', 3, "a whole number, 1 or more"),
        ("epsilon = 3", "", 4, "budget: epsilon is missing"),
        (
            "epsilon = 3",
            "epsilom = 3",
            5,
            "unknown key 'epsilom'; allowed: epsilon, delta, .* Did you mean 'epsilon'?",
        ),
        ('file = "budget.db"', "file = 7", 2, "ledger.file: found 7; allowed: text in quotes"),
        ("max_rows", "max_row", 11, "unknown key 'max_row'; .* Did you mean 'max_rows'?"),
        ("max_rows = 2", "max_rows = 0", 11, "found 0; allowed: a whole number, 1 or more"),
        ("max_rows = 2", "max_rows = 2.5", 11, "found 2.5; allowed: a whole number"),
        ("max_rows = 2", "max_rows = true", 11, "found True; allowed: a whole number"),
        ('unit = "patient_id"', "", 7, "say who is protected: .* neither is given"),
        ('unit = "patient_id"', 'unit = "patient_id"\neach_row = true', 7, "both are given"),
        ('unit = "patient_id"', "each_row = 1", 9, "found 1; allowed: true or false"),
        ('unit = "patient_id"', 'unit = ""', 9, "found ''; allowed: text in quotes"),
        ("visits.parquet", "visits.doc", 8, "allowed: a file that ends in .parquet, .csv"),
        ("visits.parquet", "visits.duckdb", 8, 'a .duckdb file needs table = "NAME"'),
        ("max_rows = 2", 'table = "t"', 8, "a .parquet file holds one table: leave `table` out"),
        ("max_rows = 2", 'neighbours = "both"', 11, "found 'both'; allowed: add_remove, replace"),
        (
            'age = "integer"',
            'age = "int"',
            14,
            "tables.visits.types.age: found 'int'; .* Did you mean 'integer'?",
        ),
        ("between = [0, 120]", "betwen = [0, 120]", 17, "unknown key 'betwen'; .* Did you mean 'between'?"),
        ("between = [0, 120]", "between = [0]", 17, "allowed: a list of two values"),
        ("between = [0, 120]", "between = [120, 0]", 17, "the first end must be below the second"),
        ("between = [0, 120]", "between = [0, inf]", 17, "both ends must be finite"),
        ("between = [0, 120]", "between = [false, true]", 17, "allowed: numbers, dates, times or ISO text"),
        ("between = [0, 120]", "between = [0, 2024-01-01]", 17, "both ends must be of one kind"),
        (
            "between = [0, 120]",
            "between = [0, 9], null = true",
            17,
            "unknown key 'null'; allowed: between, nullable",
        ),
        ("between = [0, 120]", "nullable = true", 17, "exactly one of them"),
        ("{ between = [0, 120] }", "[0, 120]", 17, "found \\[0, 120\\]; allowed: { between"),
        ('["A", "B", "C"]', "[]", 18, "a list of one value or more"),
        ('["A", "B", "C"]', '["A", ["B"]]', 18, "one_of holds \\['B'\\]"),
        ('["A", "B", "C"]', '["A"], others = "yes"', 18, "others is 'yes'; allowed: true or false"),
        ('"wards.csv"', '"wards.csv"\nunit = "x"', 22, "public.wards.unit: unknown key 'unit'"),
        ("[public.wards]", "[public.VISITS]", 20, "the name is taken by \\[tables.visits\\]"),
        ("[public.wards]", "[pubic.wards]", 20, "unknown key 'pubic'; .* Did you mean 'public'?"),
    ],
)
def test_what_is_wrong_is_shown_with_its_line(tmp_path, old, new, line, message):
    with pytest.raises(PolicyError) as error:
        loaded(tmp_path, changed(old, new))
    assert str(error.value).startswith(f"{tmp_path / 'hubbub.toml'}:{line}: ")
    assert re.search(message, str(error.value)), str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('[ledger]\nfile = "budget.db"\n', "", r"there is no \[ledger\]\. Add it:\n\n\[ledger\]\nfile = "),
        ("[budget]\nepsilon = 3\n", "", r"there is no \[budget\]"),
        ("epsilon = 3", "epsilon = ", r"not valid TOML: .*line 5"),
    ],
)
def test_what_is_missing_is_shown_with_what_to_add(tmp_path, old, new, message):
    with pytest.raises(PolicyError, match=message):
        loaded(tmp_path, changed(old, new))


def test_a_policy_without_tables_is_refused(tmp_path):
    with pytest.raises(PolicyError, match="no private table"):
        loaded(tmp_path, '[ledger]\nfile = "b.db"\n[budget]\nepsilon = 1\n')


def test_a_policy_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(PolicyError, match=r"cannot read the policy file .*: No such file"):
        load_policy(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError, match="not UTF-8"):
        load_policy(tmp_path / "binary.toml")


def test_quoted_and_dotted_keys_have_their_lines(tmp_path):
    text = changed('age = "integer"', '"a.g\\u0065" = "int"')
    with pytest.raises(PolicyError, match=r":14: tables\.visits\.types\.a\.ge: "):
        loaded(tmp_path, text)
    text = GOOD + '\n[tables."out patients"]\nsource = """\n[x\n"q\\q" = 1\n"""\nunit = "p"\n'
    with pytest.raises(PolicyError, match=r":24: tables\.out patients\.source: "):
        loaded(tmp_path, text.replace("\\q", "q"))


def test_a_policy_is_read_without_heavy_imports():
    program = (
        "import sys, hubbub.ledger.policy, hubbub.ledger.budget, hubbub.ledger.store\n"
        "heavy = {'numpy', 'pandas', 'polars', 'scipy', 'duckdb', 'pyarrow', 'sqlglot', 'cryptography'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
