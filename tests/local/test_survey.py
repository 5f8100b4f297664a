"""Surveys: the classics, how many to ask, and files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hubbub import local
from hubbub.errors import ParameterError, PolicyError
from hubbub.local.command import command
from hubbub.local.files import aggregate_file, privatize_file, read_specification, write_specification
from seeded import SeededBits


def test_400_yes_of_1000_mean_30_percent() -> None:
    estimate = local.two_coins_share(400, 1000)
    assert estimate.shares.tolist() == [0.7, 0.3]
    assert local.warner_share(400, 1000, bias="1/4").shares[1] == 0.3
    low, high = estimate.interval(0.95)
    assert low[1] < 0.3 < high[1]
    assert estimate.sd[1] == pytest.approx(math.sqrt(0.75 * 0.25 / 0.25 / 1000))


@pytest.mark.parametrize("ask", [local.warner, local.two_coins])
def test_surveys_are_unbiased(ask: object) -> None:
    # 100,000 people: 6.2 sd.
    truth = np.arange(100_000) % 10 < 3
    if ask is local.warner:
        reports = local.warner(truth, bias="1/8", bits=SeededBits("warner"))
        estimate = local.warner_share(int(reports.sum()), 100_000, bias="1/8")
    else:
        reports = local.two_coins(truth, random_share="1/3", bits=SeededBits("coins"))
        estimate = local.two_coins_share(int(reports.sum()), 100_000, random_share="1/3")
    assert abs(estimate.shares[1] - 0.3) < 6.2 * estimate.sd[1]
    with pytest.raises(ParameterError):
        ask(np.array([0, 1]), **({"bias": "1/4"} if ask is local.warner else {}))  # type: ignore[operator]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5])
def test_a_planned_survey_is_as_exact_as_planned(share: float) -> None:
    # 4,000 surveys of the planned size: 95 % or more within; sd .34 %, 2.2 % is 6.4 sd.
    found = local.plan(1, 2, within="0.1", level=0.95)
    oracle, n = found.oracle, found.n
    people = np.random.default_rng(7).random(4000 * n) < share
    reports = oracle.privatize(people.astype(np.int64), bits=SeededBits(f"plan {share}")).reshape(4000, -1)
    ones = (reports == 1).mean(axis=1) if oracle.name == "direct" else None
    assert ones is not None
    errors = np.abs((ones - float(oracle.randomizer.q)) / float(oracle.randomizer.p - oracle.randomizer.q) - share)
    assert np.mean(errors <= 0.1) > 0.95 - 0.022
    assert found.n_without_privacy < found.n_respondents <= found.n


def test_plans_grow_as_they_should() -> None:
    small, large = local.plan(1, 16, within="0.02").n, local.plan(1, 16, within="0.01").n
    assert large / small == pytest.approx(4, rel=1e-3)
    assert local.plan("1/2", 16, within="0.02").n > small
    # Two fair coins: (3/16 / (1/4) + 1/4) (1.96 / .02)^2.
    assert local.sample_size(random_share="1/2", within="0.02") == 9604
    assert local.sample_size(bias="1/4", within="0.02") == 9604
    for within in (0, 1, -1, "x"):
        with pytest.raises(ParameterError):
            local.plan(1, 16, within=within)


def csv_file(folder: Path, n: int = 3000) -> Path:
    path = folder / "answers.csv"
    answers = ["never", "once", " often ", "never"]
    path.write_text("id,answer\n" + "".join(f"{i},{answers[i % 4]}\n" for i in range(n)))
    return path


@pytest.mark.parametrize("name", ["reports.jsonl", "reports.arrow"])
def test_the_command_line_from_plan_to_plot(tmp_path: Path, name: str) -> None:
    run = CliRunner()
    spec, reports = str(tmp_path / "spec.json"), str(tmp_path / name)
    done = run.invoke(command, ["plan", "--categories", "never,once,often", "--epsilon", "8", "--spec", spec])
    assert done.exit_code == 0, done.output
    assert "ask" in done.output
    done = run.invoke(
        command, ["privatize", "--spec", spec, "--column", "answer", str(csv_file(tmp_path)), "-o", reports]
    )
    assert done.exit_code == 0, done.output
    picture = tmp_path / "shares.png"
    arguments = ["aggregate", "--spec", spec, reports, "--format", "json", "--project"]
    done = run.invoke(command, arguments)
    assert done.exit_code == 0, done.output
    rows = {row["category"]: row for row in json.loads(done.stdout)}
    # epsilon 8: 3,000 people, sd of a share below .002; .05 is beyond 20 sd.
    assert abs(rows["never"]["share"] - 0.5) < 0.05
    assert rows["never"]["low"] < rows["never"]["share"] < rows["never"]["high"]
    for form in ("table", "csv"):
        assert "never" in run.invoke(command, [*arguments[:4], "--format", form]).stdout
    pytest.importorskip("matplotlib")
    assert run.invoke(command, [*arguments[:4], "--plot", str(picture)]).exit_code == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_answers_outside_the_list_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    oracle = local.DirectEncoding(1, ["never", "once"])
    target = tmp_path / "out.jsonl"
    with pytest.raises(ParameterError) as error:
        privatize_file(oracle, csv_file(tmp_path), "answer", target)
    assert "often" not in str(error.value)
    assert not target.exists()
    assert privatize_file(oracle, csv_file(tmp_path), "answer", target, unknown="once") == 3000
    assert aggregate_file(oracle, target).n == 3000
    numbers = local.DirectEncoding(1, 3)
    digits = tmp_path / "digits.csv"
    digits.write_text("x\n0\n1\n2\n")
    assert privatize_file(numbers, digits, "x", target) == 3
    digits.write_text("x\n0\n3\n")
    with pytest.raises(ParameterError):
        privatize_file(numbers, digits, "x", target)
    assert privatize_file(numbers, csv_file(tmp_path), "answer", target, unknown="2") == 3000


def test_files_that_cannot_be_read_are_policy_errors(tmp_path: Path) -> None:
    oracle = local.DirectEncoding(1, ["never", "once", "often"])
    arrow, broken = tmp_path / "r.arrow", tmp_path / "b.arrow"
    privatize_file(oracle, csv_file(tmp_path), "answer", arrow)
    assert aggregate_file(oracle, arrow).n == 3000
    broken.write_bytes(arrow.read_bytes()[:50])
    spec = tmp_path / "s.json"
    write_specification(local.OneBitMean(1), spec)
    for call in (
        lambda: aggregate_file(oracle, broken),
        lambda: aggregate_file(local.DirectEncoding(2, ["never", "once", "often"]), arrow),
        lambda: aggregate_file(oracle, tmp_path / "none.jsonl"),
        lambda: privatize_file(oracle, csv_file(tmp_path), "nothing", arrow),
        lambda: privatize_file(oracle, tmp_path / "none.csv", "answer", arrow),
        lambda: read_specification(tmp_path / "none.json"),
        lambda: read_specification(spec),
    ):
        with pytest.raises(PolicyError):
            call()


def test_reports_of_another_survey_are_dropped(tmp_path: Path) -> None:
    oracle, other = local.DirectEncoding(1, ["a", "b"]), local.DirectEncoding(2, ["a", "b"])
    path = tmp_path / "r.jsonl"
    lines = "\n".join(local.to_json(oracle, oracle.privatize(["a"] * 5)))
    path.write_text("x" * 3_000_000 + "\n" + lines)
    assert (aggregate_file(oracle, path).n, aggregate_file(oracle, path).dropped) == (5, 1)
    path.write_text(lines + "\nnot json\n")
    assert (aggregate_file(oracle, path).n, aggregate_file(oracle, path).dropped) == (5, 1)
    assert (aggregate_file(other, path).n, aggregate_file(other, path).dropped) == (0, 6)


@pytest.mark.soak
def test_ten_million_reports_fit_in_one_gigabyte() -> None:
    import subprocess
    import sys

    program = """
import numpy as np
from hubbub import local
oracle = local.SubsetSelection(1, 16)
total = oracle.empty()
for i in range(10):
    total += oracle.aggregate(oracle.privatize(np.arange(10**6) % 16))
assert total.n == 10**7
held = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(held.split()[1]) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1024
