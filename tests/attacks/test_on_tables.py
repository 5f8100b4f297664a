"""On a table of one's own: every report says what exact answers give away, and keeps private ones under the ceiling."""

from __future__ import annotations

import csv
import datetime as dt
import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attacks.helpers import slack
from hubbub.attacks import on_counts, on_samples
from hubbub.attacks.report import Finding, has_value, read_table
from hubbub.errors import ParameterError, PolicyError
from hubbub.noise import uniform_below
from seeded import SeededBits

N = 1500


@pytest.fixture(scope="module")
def town():
    """1,500 people: four columns that have nothing to do with the illness that four in ten of them have."""
    bits = SeededBits("town")
    jobs = np.array(["baker", "clerk", "nurse", "smith", None], dtype=object)
    return {
        "age": 20 + uniform_below(60, N, bits=bits),
        "street": uniform_below(30, N, bits=bits),
        "job": jobs[uniform_below(5, N, bits=bits)],
        "sex": np.array(["f", "m"], dtype=object)[uniform_below(2, N, bits=bits)],
        "ill": uniform_below(5, N, bits=bits) < 2,
        "income": uniform_below(100_000, N, bits=bits),
    }


KNOWN = ["age", "street", "job", "sex"]
# The attack, and how far sampling may carry its private figures beyond the ceiling (1e-9): by the people behind them.
REPORTS = {
    "linkage": (lambda t, e, b: on_counts.linkage(t, KNOWN, "ill", epsilon=e, bits=b), 2 * slack(N)),
    "anonymity": (lambda t, e, b: on_counts.anonymity(t, ["age", "street"], "job", epsilon=e, bits=b), 2 * slack(600)),
    "differencing": (lambda t, e, b: on_counts.differencing(t, KNOWN, "ill", epsilon=e, bits=b), slack(1400)),
    "membership": (lambda t, e, b: on_samples.membership(t, KNOWN, members=300, epsilon=e, bits=b), 2 * slack(300)),
    "subsets": (lambda t, e, b: on_samples.reconstruction(t, "ill", people=200, epsilon=e, bits=b), slack(200)),
    "tables": (
        lambda t, e, b: on_samples.reconstruction(t, "ill", columns=KNOWN, people=200, epsilon=e, bits=b),
        slack(200),
    ),
    "inversion": (
        lambda t, e, b: on_samples.inversion(t, ["job", "street"], "sex", "income", epsilon=e, bits=b),
        2 * slack(360),
    ),
    "leaderboard": (lambda t, e, b: on_samples.leaderboard(t, "sex", submissions=300, epsilon=e, bits=b), slack(N)),
}


@pytest.mark.parametrize("epsilon", ["0.2", "1"])
@pytest.mark.parametrize("name", REPORTS)
def test_private_answers_stay_below_their_ceilings_on_a_table(town, name, epsilon):
    attack, allowed = REPORTS[name]
    report = attack(town, epsilon, SeededBits(f"{name} {epsilon}"))
    capped = [f for f in report.findings if f.ceiling is not None]
    assert capped
    for finding in capped:
        assert finding.private <= finding.ceiling + allowed
    assert report.result.plot().lines
    assert report.notes


@pytest.mark.parametrize("name", ["linkage", "differencing", "subsets", "tables"])
def test_exact_answers_go_where_no_private_answer_at_a_fifth_would_pass_the_test(town, name):
    attack, allowed = REPORTS[name]
    report = attack(town, "0.2", SeededBits(f"exact {name}"))
    assert any(f.ceiling is not None and f.exact > f.ceiling + allowed for f in report.findings)


def test_linkage_says_who_is_alone(town):
    report = REPORTS["linkage"][0](town, "1", SeededBits("alone"))
    assert report.findings[0].exact > 0.9
    assert report.findings[1].exact > 0.9


def test_averaging_gains_nothing_from_the_same_question(town):
    report = on_counts.averaging(town, "street", epsilon="0.5", bits=SeededBits("averaging"))
    once, again, fresh = report.findings
    assert once.private == again.private <= once.ceiling + 2 * slack(30)
    assert fresh.private > 0.8


def test_hashes_are_found_whether_or_not_they_were_hashed_before():
    texts = np.array(["5X41", "7Q00", "5X41"], dtype=object)
    hashed = np.array([hashlib.sha1(t.encode()).hexdigest() for t in texts], dtype=object)
    for column in (texts, hashed):
        report = on_counts.hashes({"id": column}, "id", ["9X99"], algorithm="sha1", epsilon="1", bits=SeededBits(1))
        assert report.findings[0].exact == 1.0
        assert report.findings[0].private <= report.findings[0].ceiling + slack(2)


def test_ratings_find_rows_and_private_rows_do_not():
    bits = SeededBits("ratings")
    user, item = np.repeat(np.arange(300), 15), uniform_below(200, 4500, bits=bits)
    days = np.array(["2025-01-01"], "datetime64[D]")[0] + uniform_below(365, 4500, bits=bits)
    table = {"who": user, "what": item, "stars": uniform_below(5, 4500, bits=bits), "day": days}
    report = on_samples.ratings(
        table, "who", "what", rating="stars", day="day", known=5, targets=60, epsilon="1", bits=bits
    )
    found, wrong, best = report.findings
    assert found.exact > 0.95
    assert wrong.exact < 0.05
    assert best.private <= best.ceiling + slack(60)
    with pytest.raises(ParameterError):
        on_samples.ratings(table, "who", "what", known=0, epsilon="1")
    # Dates as Python has them are days as well.
    table["day"] = np.array([dt.date(2025, 1, 1)] * 4500, dtype=object)
    on_samples.ratings(table, "who", "what", day="day", targets=5, epsilon="1", bits=bits)


def test_files_are_read_as_they_are(tmp_path):
    rows = {"a": [1, 2, None], "b": ["x", None, "z"], "c": [True, False, True]}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([rows.keys(), *zip(*rows.values(), strict=True)])
    coded = pa.table(rows | {"b": pa.array(rows["b"]).dictionary_encode()})
    pq.write_table(coded, tmp_path / "coded.parquet")
    for name in ("t.parquet", "t.csv", "coded.parquet"):
        table = read_table(tmp_path / name)
        assert list(table) == ["a", "b", "c"]
        assert has_value(table, "c", "true").tolist() == [True, False, True]
        assert has_value(table, "a", "2").tolist() == [False, True, False]
        assert has_value(table, "b", "z").tolist() == [False, False, True]


def test_a_file_that_cannot_be_read_is_said_without_its_rows(tmp_path):
    (tmp_path / "bad.csv").write_text("a,b\n1,2\nsecret,3,4\n")
    (tmp_path / "empty.csv").write_text("a,b\n")
    (tmp_path / "bad.parquet").write_text("secret")
    for name in ("bad.csv", "empty.csv", "bad.parquet", "none.csv", "t.xlsx"):
        with pytest.raises(PolicyError) as caught:
            read_table(tmp_path / name)
        assert "secret" not in str(caught.value)
        assert name in str(caught.value)


def test_findings_are_texts():
    assert Finding("k", 5).texts() == ("k", "5", "-", "-")
    assert Finding("share", 0.12345, 0.5, 1.0).texts() == ("share", "0.123", "0.500", "1.000")


@pytest.mark.parametrize(
    "attack",
    [
        lambda t: on_counts.linkage(t, ["nothing"], "ill", epsilon=1),
        lambda t: on_counts.linkage(t, [], "ill", epsilon=1),
        lambda t: on_counts.differencing(t, ["sex"], "ill", epsilon=1),
        lambda t: on_counts.differencing(t, KNOWN, "job", epsilon=1),
        lambda t: on_counts.differencing(t, KNOWN, "job", "emperor", epsilon=1),
        lambda t: on_counts.averaging(t, "job", epsilon="0.001"),
        lambda t: on_counts.averaging(t, "nothing", epsilon="1"),
        lambda t: on_samples.membership(t, KNOWN, members=N, epsilon=1),
        lambda t: on_samples.reconstruction(t, "ill", people=10**5, epsilon=1),
        lambda t: on_samples.inversion(t, ["income"], "ill", "age", epsilon=1),
        lambda t: on_samples.inversion(t, KNOWN, "ill", "income", members=N, epsilon=1),
        lambda t: on_counts.anonymity({k: v[:2] for k, v in t.items()}, ["age"], "job", epsilon=1),
    ],
)
def test_what_cannot_be_attacked_is_refused(town, attack):
    with pytest.raises(ParameterError) as caught:
        attack(town)
    assert "emperor" not in str(caught.value)
