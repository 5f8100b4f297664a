"""Sets, keys with values, and strings that nobody listed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hubbub import local
from hubbub.errors import ParameterError
from hubbub.local.heavy import _extensions
from seeded import SeededBits


def test_shares_of_items_are_unbiased_with_variance_at_most_the_stated() -> None:
    # 400 surveys of 600 people; means within 6.2 sd; variances at most 1.35 times the stated (sd 7 %: 5 sd below 1e-6
    # each, and the stated is an upper bound that is 5 % above the truth or more).
    people = [{"a"}, {"a", "b"}, {"b", "c", "d"}, set(), {"d"}, {"a", "d"}] * 100
    truth = np.array([sum(item in s for s in people) for item in "abcde"]) / 600
    survey = local.SetValued(3, list("abcde"), padding=3)
    runs = [survey.estimate(survey.privatize(people, bits=SeededBits(f"sets {i}"))) for i in range(400)]
    found, stated = np.array([r.shares for r in runs]), np.mean([r.variance for r in runs], axis=0)
    assert np.all(np.abs(found.mean(axis=0) - truth) < 6.2 * np.sqrt(stated / 400))
    assert np.all(found.var(axis=0) < 1.4 * stated)
    assert (found.var(axis=0) / stated).mean() > 0.7
    assert len(runs[0].interval(0.95)[0]) == 5


def test_larger_sets_than_the_padding_count_for_less() -> None:
    survey = local.SetValued(12, 6, padding=2)
    estimate = survey.estimate(survey.privatize([[0, 1, 2, 3]] * 40_000, bits=SeededBits("large")))
    # Every item has chance 1/4 of being drawn, times 2: .5 instead of 1; sd of each below .005.
    assert np.all(np.abs(estimate.shares[:4] - 0.5) < 0.05)
    assert survey.loss.epsilon == 12  # type: ignore[attr-defined]


def test_undeclared_items_are_refused_without_naming_them() -> None:
    survey = local.SetValued(1, ["a", "b"], padding=1)
    with pytest.raises(ParameterError) as of_set:
        survey.privatize([["zzz"]])
    with pytest.raises(ParameterError) as of_key:
        local.KeyValue(1, ["a", "b"], padding=1).privatize([{"zzz": 1.0}])
    assert "zzz" not in str(of_set.value) + str(of_key.value)
    assert survey.privatize([]).shape[0] == 0
    with pytest.raises(ParameterError):
        local.SetValued(1, 4, padding=0)


def test_keys_and_values_are_unbiased() -> None:
    # 200 surveys of 3,000 people; shares within 6.2 stated sd of a mean of 200, means within 6.2 and .01 for the ratio.
    people = ([{"x": 0.5, "y": -1.0}] * 2 + [{"x": -0.5}] + [{}]) * 750
    survey = local.KeyValue(5, ["x", "y", "z"], padding=2)
    runs = [survey.estimate(survey.privatize(people, bits=SeededBits(f"kv {i}"))) for i in range(200)]
    shares, means = np.mean([r.shares for r in runs], axis=0), np.mean([r.means for r in runs], axis=0)
    sd = np.sqrt(np.mean([r.variance for r in runs], axis=0) / 200)
    mean_sd = np.sqrt(np.mean([r.mean_variance for r in runs], axis=0) / 200)
    assert np.all(np.abs(shares - [0.75, 0.5, 0.0]) < 6.2 * sd)
    assert np.all(np.abs(means[:2] - [1 / 6, -1.0]) < 6.2 * mean_sd[:2] + 0.03)
    low, high = runs[0].interval(0.95, of="means")
    assert np.all((low >= -1) & (high <= 1) & (low <= high))
    assert np.all(np.isfinite(runs[0].interval(0.95)[0]))


WORDS = {"yes": 0.3, "no": 0.2, "maybe": 0.1, "perhaps": 0.08}


def answers(n: int) -> list[str]:
    """Common words, and a third of rare ones."""
    out = [word for word, share in WORDS.items() for _ in range(round(n * share))]
    return out + [f"w{i:05d}"[:7].translate(str.maketrans("0123456789", "abcdefghij")) for i in range(n - len(out))]


def test_heavy_hitters_are_found_and_nothing_else() -> None:
    # At beta = 1e-9 for the whole run, a string that nobody has is a false alarm of the test.
    hitters = local.HeavyHitters(4, "abcdefghijklmnopqrstuvwxyz", length=7)
    texts = answers(60_000)
    tally = hitters.aggregate(hitters.privatize(texts, bits=SeededBits("heavy")))
    found = tally.find(beta="1e-9")
    assert {f.text for f in found} <= set(texts)
    assert [f.text for f in found][:2] == ["yes", "no"]
    assert {f.text for f in found} >= set(WORDS)
    for f in found:
        if f.text in WORDS:
            # Chosen for being large: 6.5 sd either way.
            assert abs(f.share - WORDS[f.text]) < 6.5 * math.sqrt(f.sd**2 + WORDS[f.text] / tally.n * 6)
            assert f.interval()[0] < f.share < f.interval()[1]


def test_no_string_is_found_where_all_are_rare() -> None:
    # 200 surveys of strings that are all different, beta = .05 each: Bin(200, .05) exceeds 32 with chance 1e-9.
    hitters = local.HeavyHitters(2, "abcd", length=4)
    alarms = 0
    texts = [f"{a}{b}" for a in "ab" for b in ("aa", "ab", "ac", "ad", "ba", "bb", "bc", "bd")]
    for i in range(200):
        found = hitters.aggregate(hitters.privatize(texts * 3, bits=SeededBits(f"rare {i}"))).find(beta="0.05")
        alarms += any(f.text not in texts for f in found)
    assert alarms <= 32


def test_heavy_tallies_add_and_drop_what_is_malformed() -> None:
    hitters = local.HeavyHitters(1, "ab", length=3)
    reports = hitters.privatize(["aab", "b", "", "zzzzz"] * 50, bits=SeededBits("add"))
    whole = hitters.aggregate(reports)
    parts = sum((hitters.aggregate(p) for p in np.array_split(reports, 3)), hitters.aggregate(reports[:0]))
    assert [len(level) for level in parts.levels] == [len(level) for level in whole.levels]
    bad = reports.copy()
    bad["level"][0], bad["hashed"]["y"][1], bad["hashed"]["a"][2] = 9, 60000, 1
    assert hitters.aggregate(bad).dropped == 3
    assert hitters.aggregate("junk").n == 0
    assert hitters.randomizer.padded("zb") == "bb\x00"
    assert hitters.aggregate(reports[:0]).find() == []
    for bad_alphabet in ("", "a", "aa", "a\x00b"):
        with pytest.raises(ParameterError):
            local.HeavyHitters(1, bad_alphabet, length=3)
    with pytest.raises(ParameterError, match="beta"):
        whole.find(beta=0)


def test_extensions_end_where_a_word_ends() -> None:
    assert _extensions(["a", "\x00"], 3, "ab") == [
        *(f"a{x}" for x in ("aa", "ab", "a\x00", "ba", "bb", "b\x00", "\x00\x00")),
        "\x00\x00\x00",
    ]
