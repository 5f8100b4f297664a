"""The demo shows what it says, on a terminal and in a pipe."""

from __future__ import annotations

import importlib.util
import re
from fractions import Fraction

import pytest

from cli.helpers import shell, terminal
from hubbub.cli import survey
from hubbub.cli.demo import OWN
from hubbub.cli.main import run
from hubbub.errors import PolicyError
from hubbub.mechanisms.additive import add_noise
from hubbub.noise import DiscreteLaplace
from seeded import SeededBits

CHAPTERS = [
    "A question that one woman could sway is refused",
    "check: what a question costs, and how exact it will be",
    "The answer: how a woman rates her marriage, and whether she had an affair",
    "The same question again is free",
    'The attack: "all but one"',
    "What is left",
    "Your own file",
]
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("statsmodels") is None, reason="the survey ships with statsmodels (extra demo)"
)


@pytest.fixture(scope="module")
def piped(tmp_path_factory):
    return shell("demo", cwd=tmp_path_factory.mktemp("demo"))


def test_the_demo_tells_its_story_in_order(piped):
    assert (piped.returncode, piped.stderr) == (0, "")
    places = [piped.stdout.index(chapter) for chapter in CHAPTERS]
    assert places == sorted(places)


def test_without_a_terminal_it_is_plain_and_fits_80_columns(piped):
    assert "\x1b" not in piped.stdout
    assert max(map(len, piped.stdout.splitlines())) <= 80


def test_the_refusal_comes_before_any_charge(piped):
    assert re.search(r"\w+Error: .*\bage\b", piped.stdout)
    assert "Nothing was charged: the refusal came before any row was read." in piped.stdout
    assert "22 answers are charged" in piped.stdout  # the answer, "all", and twenty times "all but her"


def test_the_answer_has_its_error_bars(piped):
    for rating in ("very poor", "poor", "fair", "good", "very good"):
        assert re.search(rf"^{rating} +-?[\d,]+ ± 6 +-?[\d.]+ % ± [\d.]+ +[█▒]", piped.stdout, re.MULTILINE)


def test_the_same_question_is_free(piped):
    assert "Charged: 0. It is the stored answer, the same numbers" in piped.stdout


def test_exact_answers_tell_every_secret_and_private_ones_their_share(piped):
    assert "Exact answers told 20 of 20 secrets." in piped.stdout
    assert re.search(r"Private answers got \d+ of 20 right; a coin would get about 10\.", piped.stdout)
    assert "theory says 50.6% for each woman" in piped.stdout


def test_the_budget_left_is_what_was_not_spent(piped):
    assert "0.95 of 3 is left" in piped.stdout  # 3 - 1 - 21 * 0.05


def test_it_ends_with_the_commands_for_ones_own_file(piped):
    tail = piped.stdout.splitlines()[-len(OWN) :]
    assert all(line in shown for (line, _), shown in zip(OWN, tail, strict=True))


def test_on_a_terminal_it_has_colour_unless_unwanted(tmp_path):
    code, screen = terminal("demo", cwd=tmp_path)
    assert code == 0
    assert "\x1b[1;36m" in screen
    bare = re.sub(r"\x1b\[[0-9;]*m", "", screen)
    assert max(map(len, bare.splitlines())) <= 80
    code, plain = terminal("demo", cwd=tmp_path, NO_COLOR="1")
    assert code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", plain)


def test_a_plain_ascii_terminal_is_enough(tmp_path):
    found = shell("demo", cwd=tmp_path, PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert found.returncode == 0, found.stderr
    assert found.stdout.isascii()
    assert re.search(r"^very poor .*#+-+", found.stdout, re.MULTILINE)


def test_without_the_extra_it_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PolicyError, match=r"run: pip install '\.\[demo\]'"):
        survey.find_survey()
    assert run(["demo"]) == 3


def test_statsmodels_is_found_and_not_loaded(tmp_path):
    import subprocess
    import sys

    program = (
        "import sys; from hubbub.cli.survey import find_survey; find_survey(); sys.exit('statsmodels' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=tmp_path).returncode == 0


def test_targets_are_half_and_half_and_each_alone_in_her_answers():
    data = survey.Survey(survey.find_survey())
    targets = data.targets(10)
    assert len({t.known for t in targets}) == 20
    assert [t.had_affair for t in targets] == [True, False] * 10
    for target in targets:
        row = target.all_but_her.split(" AND NOT ")[1]
        assert data.count(f"SELECT COUNT(*) FROM survey WHERE {row}") == 1
        assert data.count(f"SELECT COUNT(*) FROM survey WHERE {row} AND affairs > 0") == target.had_affair
    data.close()


def test_the_survey_is_read_by_its_own_name(tmp_path):
    here, other = tmp_path / "v[1]", tmp_path / "v1"
    text = survey.find_survey().read_text()
    for folder, rows in ((here, text), (other, text.splitlines()[0] + "\n")):
        folder.mkdir()
        (folder / "fair.csv").write_text(rows)
    data = survey.Survey(here / "fair.csv")
    assert data.count("SELECT COUNT(*) FROM survey") == 6366
    data.close()


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1), Fraction(3)])
def test_the_rate_of_differencing_is_that_of_the_distribution(epsilon):
    """The closed form against the sum over the two draws' probabilities: P(Z = 0) = sum of pmf(k)^2."""
    from math import exp

    q = exp(-epsilon)
    pmf = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-2000, 2001)]
    equal = sum(p * p for p in pmf)
    assert survey.right_by_differencing(epsilon) == pytest.approx(0.5 + equal / 2, rel=1e-12)


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1)])
def test_the_attack_on_private_counts_is_right_at_its_rate(epsilon):
    """n = 40,000 women; the rate of right guesses lies within 6.2 standard deviations: false alarm below 1e-9."""
    n, law = 40_000, DiscreteLaplace(1 / epsilon)
    bits = SeededBits(17)
    truth = [i % 2 for i in range(n)]
    all_counts = add_noise([2053] * n, sensitivity=1, distribution=law, bits=bits)
    but_her = add_noise([2053 - t for t in truth], sensitivity=1, distribution=law, bits=bits)
    right = sum((a - b > 0) == bool(t) for a, b, t in zip(all_counts, but_her, truth, strict=True))
    rate = survey.right_by_differencing(epsilon)
    assert abs(right - n * rate) < 6.2 * (n * rate * (1 - rate)) ** 0.5
