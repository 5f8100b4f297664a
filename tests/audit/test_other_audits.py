"""The exact audit, one run, floats and bytes, reports, and hubbub's audit of itself."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from audit import planted
from hubbub.audit import (
    SCENES,
    Line,
    Report,
    bytes_drawn,
    exact,
    exact_density,
    float_support,
    line_of,
    lower_bound,
    one_run,
    one_run_bound,
    self_test,
)
from hubbub.audit.self_test import _fresh_line, _joined_line
from hubbub.errors import ParameterError
from hubbub.mechanisms import KaryResponse, RandomizedResponse, gaussian_delta
from hubbub.noise import Bits, gaussian, laplace
from seeded import SeededBits


def classic(epsilon: float, delta: float) -> Any:
    sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return sigma, lambda mean, y: norm.logpdf(y, mean, sigma)


def test_the_classic_gaussian_formula_is_refuted_beyond_epsilon_one() -> None:
    """At epsilon 10 and delta 1e-5 the formula's noise has delta 2e-5; at epsilon 1 it keeps its word."""
    sigma, density = classic(10, 1e-5)
    found = exact_density(density, [(0, 1)], low=-8, high=9, epsilon=10, delta=1e-5)
    assert not found.holds
    assert found.delta == pytest.approx(gaussian_delta(10, sigma), rel=1e-6)
    assert found.delta > 1.5e-5
    sigma, density = classic(1, 1e-5)
    found = exact_density(density, [(0, 1), (1, 0)], low=-60, high=61, epsilon=1, delta=1e-5)
    assert found.holds
    assert found.delta == pytest.approx(gaussian_delta(1, sigma), rel=1e-5)


def test_a_density_that_is_laplace_has_its_epsilon() -> None:
    def density(mean: float, y: Any) -> Any:
        return -np.abs(y - mean) / 2 - math.log(4)

    assert exact_density(density, [(0, 1)], low=-80, high=81, epsilon=0.5).holds
    assert not exact_density(density, [(0, 1)], low=-80, high=81, epsilon=0.49).holds
    with pytest.raises(ParameterError, match="low < high"):
        exact_density(density, [(0, 1)], low=1, high=1, epsilon=1)


def test_enumeration_says_which_pair_is_worst() -> None:
    mechanism = KaryResponse(categories=3, epsilon=1)

    def law(data: int) -> Any:
        return np.array([mechanism.log_prob(output, data) for output in range(3)])

    found = exact(law, [(0, 0), (0, 2)], epsilon=1)
    assert found.holds
    assert found.pair == (0, 2)
    assert not exact(law, [(0, 2)], epsilon=0.99).holds


def test_perfect_canaries_give_the_published_numbers() -> None:
    """m = r = 1000 guesses, right as often as randomised response allows on average."""
    for epsilon, published in ((1, 0.881), (4, 3.601)):
        right = round(1000 / (1 + math.exp(-epsilon)))
        assert one_run_bound(right, 1000, 1000) == pytest.approx(published, abs=5e-4)


def test_delta_costs_and_never_helps() -> None:
    bounds = [one_run_bound(900, 1000, 1000, delta=d) for d in (0, 1e-7, 1e-5, 1e-3)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] - bounds[1] < 0.01
    assert bounds[-1] < bounds[0]
    assert one_run_bound(500, 1000, 1000) == 0


def test_one_run_of_randomised_response_is_below_its_epsilon() -> None:
    """12 audits with fixed streams at confidence 0.95 and truth 2: more than 8 errors have probability 1e-9."""
    over = 0
    for seed in range(12):
        bits = SeededBits(seed)
        found = one_run(lambda inside, b=bits: RandomizedResponse(epsilon=2).release(inside, bits=b), 500, bits=bits)
        over += found.epsilon > 2
        assert 0.5 < found.epsilon < found.ceiling
    assert over <= 8


def test_abstaining_helps_where_most_scores_say_nothing() -> None:
    def run(inside: Any) -> Any:
        scores = np.where(inside, 1.0, -1.0)
        scores[200:] = 0
        return scores

    all_of_them = one_run(run, 1000, bits=SeededBits(1))
    sure_ones = one_run(run, 1000, guesses=150, bits=SeededBits(1))
    assert sure_ones.right == 150
    assert sure_ones.epsilon > all_of_them.epsilon
    assert "150 of 150 guesses about 1000 canaries" in str(sure_ones)


@pytest.mark.parametrize(
    "call",
    [
        lambda: one_run_bound(5, 4, 10),
        lambda: one_run_bound(-1, 4, 10),
        lambda: one_run_bound(3, 11, 10),
        lambda: one_run_bound(0, 0, 10),
        lambda: one_run_bound(3, 4, 10, delta=1.0),
        lambda: one_run(lambda inside: inside, 10, guesses=11),
        lambda: one_run(lambda inside: [1.0], 10),
    ],
)
def test_canaries_that_make_no_sense_are_refused(call: Any) -> None:
    with pytest.raises(ParameterError):
        call()


def test_float_laplace_names_its_data_set_and_integers_do_not() -> None:
    """The known share is 0.05 for numpy at scale 10; of 25,000 outputs, fewer than 1 % has probability 1e-300."""
    g = np.random.default_rng(1)
    found = float_support(lambda d, n: d + g.laplace(0, 10, n), samples=50_000, seconds=5)
    assert 0.03 < found.identifying < 0.09
    assert found.bound.epsilon > 4
    ours = float_support(lambda d, n: d + laplace(10, n), samples=50_000, seconds=5, confidence=0.999)
    assert (ours.identifying, ours.grid) == (0.0, 0.0)
    assert ours.bound.epsilon < 0.1


def test_large_true_values_hide_the_bug() -> None:
    g = np.random.default_rng(2)
    found = float_support(lambda d, n: d + g.laplace(0, 10, n), 2**40, 2**40 + 1, samples=20_000, seconds=2)
    assert found.identifying == 0


def test_float_support_takes_numbers_only() -> None:
    with pytest.raises(ParameterError, match="give 100 numbers"):
        float_support(lambda d, n: np.zeros((n, 2)), samples=100)


RIVALS = Path(__file__).parents[2] / "benchmarks/audit.py"


@pytest.mark.soak
@pytest.mark.parametrize(("name", "breaks"), [("opendp", False), ("diffprivlib", True)])
def test_the_laplace_noise_of_others_by_its_bits(name: str, breaks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RIVALS.parents[1]))
    from benchmarks import audit as bench, peers

    try:
        with bench.rival(name, {"opendp": bench.OPENDP, "diffprivlib": bench.DIFFPRIVLIB}[name]) as run:
            found = float_support(run, 0, 1, samples=30_000, seconds=30, confidence=0.999)
    except peers.MissingPeer as missing:
        pytest.skip(str(missing))
    assert (found.identifying > 0.01) == breaks
    assert (found.bound.epsilon > 0.1) == breaks


def test_hardened_draws_say_nothing_by_their_bytes() -> None:
    for draw in (laplace, gaussian):
        assert not bytes_drawn(lambda bits, draw=draw: draw(5, bits=bits, mode="hardened"), draws=2000).depends


def test_a_sampler_that_counts_up_is_caught_by_its_bytes() -> None:
    """A geometric drawn by coin tosses takes a byte for each step: bytes are the value."""

    def tosses(bits: Bits) -> int:
        k = 0
        while bits.bits(8) < 192 and k < 1000:
            k += 1
        return k

    found = bytes_drawn(tosses, draws=2000)
    assert found.depends
    assert found.gap > 20


def test_a_report_reads_the_same_in_every_form() -> None:
    found = lower_bound(lambda d, n: np.full(n, d), 0, 1, seconds=0.2, max_samples=2000)
    report = Report((line_of("a<b>", found, 1.0), Line("exact one", "exact", 1.0, 0.5, False)))
    text, page, data = str(report), report.to_html(), json.loads(report.to_json())
    assert "VIOLATED" in text
    assert "1 of 2 claims are refuted." in text
    assert "a&lt;b&gt;" in page
    assert "a<b>" not in page
    assert data["violated"] is True
    assert [line["mechanism"] for line in data["lines"]] == ["a<b>", "exact one"]
    assert data["lines"][0]["samples"] == found.samples
    for shown in (text, page, " ".join(data["luck"])):
        assert "a true claim is refuted in at most 1 of 20 runs" in shown
    quiet = Report((Line("x", "exact", 1.0, math.inf, False),))
    assert "does not prove" in quiet.conclusion
    assert json.loads(quiet.to_json())["lines"][0]["shown"] == "inf"
    assert "is private" not in str(quiet) + quiet.to_html()
    assert "each number is exact" in str(quiet)


@pytest.mark.filterwarnings("ignore:ledger=None")
def test_hubbub_passes_its_own_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    # The other scenes are asked in test_grey_box.py.
    monkeypatch.setattr(sys.modules["hubbub.audit.self_test"], "SCENES", SCENES[-1:])
    told: list[str] = []
    report = self_test(seconds=0.5, confidence=0.9999, progress=told.append)
    assert not report.violated, str(report)
    assert {line.audit for line in report.lines} == {"exact", "black box", "floats", "bytes", "grey box"}
    assert {line.confidence for line in report.lines} == {1.0, 0.9999}
    assert len(report.lines) > 20
    assert told[0] == "exact laws"


@pytest.mark.filterwarnings("ignore:ledger=None")
@pytest.mark.parametrize("bug", [planted.noise_reused, planted.noise_of_one_cell_for_all])
def test_the_short_self_test_asks_again_and_finds_noise_that_is_the_same_twice(
    bug: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    found = _fresh_line()
    assert found.violated
    assert "reused" in found.detail


@pytest.mark.filterwarnings("ignore:ledger=None")
def test_the_short_self_test_finds_a_join_without_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    planted.join_without_the_owner(monkeypatch)
    assert _joined_line().violated


def test_importing_hubbub_does_not_import_the_audit() -> None:
    import subprocess

    program = "import hubbub, sys; print('hubbub.audit' in sys.modules, 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
