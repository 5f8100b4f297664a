"""A collection over files: right totals, and nothing lost or doubled however often a party dies."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from collect.parties import HIGH, LOW, NOW, Parties, died, dying_at
from hubbub.accounting import ZCDP, PureDP, cost
from hubbub.cli.main import run
from hubbub.collect import Count, Histogram, MultihotCountVec, PrivateSum, Sum, SumVec
from hubbub.collect.collector import ask
from hubbub.errors import PolicyError
from hubbub.ledger.budget import Budget

pytest.importorskip("Crypto.Hash.TurboSHAKE128", reason="pycryptodome (extra collect) is not installed")
pytest.importorskip("cryptography.hazmat.primitives.hpke", reason="cryptography before 47 has no HPKE")

ANSWERS = [1, 0, 1, 1, 0, 1, 1]


@pytest.mark.parametrize(
    ("plan", "measurements", "totals"),
    [
        (PrivateSum(Sum(50), epsilon=20), [50, 3, 0, 49], [102]),
        (PrivateSum(Histogram(5, 2), epsilon="1/2"), [0, 4, 4], [1, 0, 0, 0, 2]),
        (PrivateSum(SumVec(2, 6, 2), epsilon=1), [[6, 1], [2, 0]], [8, 1]),
        (PrivateSum(MultihotCountVec(3, 2, 2), epsilon=1), [[1, 0, 1], [0, 0, 0]], [1, 0, 1]),
    ],
    ids=str,
)
def test_the_total_is_right_but_for_the_noise(plan: PrivateSum, measurements: Any, totals: Any, tmp_path: Path) -> None:
    parties = Parties(tmp_path, plan, budget="100")
    parties.report(measurements)
    found = parties.everything()
    assert parties.sums() == {LOW: (len(measurements), totals)}
    width = found.half_width(1 - 1e-9)
    assert all(abs(v - t) <= width for v, t in zip(found.values, totals, strict=True))
    assert found.reports == len(measurements)
    assert parties.charges("leader") == parties.charges("helper") == ["stored"]


def test_several_reports_of_a_client_and_gaussian_noise_cost_what_their_event_says(tmp_path: Path) -> None:
    laplace = Parties(tmp_path / "a", PrivateSum(Count(), epsilon="1/2"), reports_per_client=3)
    gaussian = Parties(tmp_path / "b", PrivateSum(Count(), rho="1/50"), budget=Budget(3, "1e-6"), reports_per_client=2)
    for parties, price in ((laplace, cost(PureDP("3/2"))), (gaussian, cost(ZCDP("4/50")))):
        parties.report(ANSWERS)
        assert parties.everything().reports == 7
        for role in ("leader", "helper"):
            (found,) = parties.spent(role)
            assert found.rho == price.rho
            assert found.epsilon == price.epsilon


def test_windows_are_summed_apart_and_batches_are_ranges_of_them(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    parties.report([1, 1], "a", 999)
    parties.report([1, 0, 1], "b", 1000)
    parties.report([0, 1], "c", 1099)
    parties.counted()
    assert parties.sums() == {900: (2, [2]), 1000: (5, [3])}
    assert parties.everything(900, 1100).reports == 7


def test_at_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mail = tmp_path / "mail"
    mail.mkdir()
    (tmp_path / "values").write_text("\n".join(str(i % 3) for i in range(30)))
    task, boxes = str(tmp_path / "task"), ["--inbox", str(mail), "--outbox", str(mail)]
    options = ["--length", "3", "--epsilon", "1", "--budget", "2", "--min-batch", "10"]
    assert run(["collect", "create", task, *options]) == 0
    client = ["collect", "client", str(tmp_path / "values"), "--task", f"{task}/task.json", "--time", "7200"]
    assert run([*client, "-o", str(mail / "a.reports")]) == 0
    for role in ("leader", "helper", "leader"):
        assert run(["collect", role, f"{task}/{role}", *boxes]) == 0
    query = ["--from", "7200", "--to", "10800", "--outbox", str(mail)]
    assert run(["collect", "collector", f"{task}/collector", *query]) == 0
    for role in ("leader", "helper"):
        assert run(["collect", role, f"{task}/{role}", *boxes]) == 0
    shares = [str(path) for path in sorted(mail.glob("*.share"))]
    capsys.readouterr()
    assert run(["collect", "collector", f"{task}/collector", *shares, "--format", "json"]) == 0
    assert '"reports": 30' in capsys.readouterr().out
    assert run(["collect", "collector", f"{task}/collector", *shares]) == 0
    assert capsys.readouterr().out.startswith("30 reports; each total is within 8 of the truth at 95%")
    assert run(["collect", "collector", f"{task}/collector", shares[0]]) == 3
    assert run(["collect", "collector", f"{task}/collector"]) == 2
    assert run(["collect", "leader", f"{task}/helper", *boxes]) == 3
    assert run([*client, "-o", str(mail / "a.reports")]) == 3
    (mail / "z.answer").write_bytes(b"nothing")
    capsys.readouterr()
    assert run(["collect", "leader", f"{task}/leader", *boxes]) == 3
    assert "z.answer: " in capsys.readouterr().err


def test_a_batch_that_is_asked_again_gets_the_same_shares_and_costs_nothing(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    parties.report(ANSWERS)
    first = parties.everything()
    before = {path.name: path.stat().st_size for path in parties.mail.glob("*.share")}
    shares = {name: (parties.mail / name).read_bytes() for name in before}
    for name in before:
        (parties.mail / name).unlink()
    assert parties.everything() == first
    boxes = {name: (parties.mail / name).read_bytes() for name in before}
    assert boxes == shares
    assert parties.charges("leader") == ["stored"]


def test_no_report_is_in_two_batches(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    parties.report(ANSWERS)
    parties.everything()
    ask(parties.folder("collector"), 900, 1100, parties.mail)
    assert "released in another batch" in parties.leader()["900-1100.query"]
    # The same reports again, in a file of another name and in a later window's clothes, are counted nowhere.
    (parties.mail / "again.reports").write_bytes((parties.mail / "a.reports").read_bytes() + b"x")
    parties.counted()
    assert parties.sums() == {LOW: (7, [5])}
    assert parties.dropped("leader") == {"late": 7, "truncated": 1}


def test_a_replayed_report_is_counted_once(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    data = parties.report(ANSWERS).read_bytes()
    head = len(data) - (len(data) - 49) // 7 * 7
    (parties.mail / "b.reports").write_bytes(data + data[head:])
    parties.counted()
    assert parties.sums() == {LOW: (7, [5])}
    assert parties.dropped("leader") == {"replayed": 14}


def test_late_and_early_reports_are_left_out(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    parties.report(ANSWERS)
    parties.everything()
    parties.report([1], "late", 1001)
    parties.report([1], "early", 1100)
    assert set(parties.leader(now=1099).values()) == {""}
    assert parties.dropped("leader") == {"early": 1, "late": 1}


def test_a_small_batch_and_an_empty_purse_release_nothing(tmp_path: Path) -> None:
    parties = Parties(tmp_path, budget="1.5", min_batch=5)
    parties.report(ANSWERS[:4])
    parties.counted()
    ask(parties.folder("collector"), LOW, HIGH, parties.mail)
    assert "has 4 reports, and the task asks for 5" in parties.leader()["1000-1100.query"]
    parties.report(ANSWERS[:3], "b")
    parties.everything()
    parties.report(ANSWERS, "c", 900)
    parties.counted()
    ask(parties.folder("collector"), 900, 1000, parties.mail)
    assert "epsilon 1, and 0.5 of" in parties.leader()["900-1000.query"].replace("asks for ", "")
    assert not (parties.mail / "900-1000.leader.share").exists()
    # The leader's no does not bind the helper, whose own ledger says no as well.
    assert parties.charges("helper") == ["stored"]


def test_reports_under_way_hold_the_batch_back(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    parties.report(ANSWERS)
    ask(parties.folder("collector"), LOW, HIGH, parties.mail)
    assert "7 reports from 1000 to 1100 wait for the helper" in parties.leader()["1000-1100.query"]
    for low, high in ((0, 50), (1000, 1050), (1100, 1000), (-100, 0)):
        with pytest.raises(PolicyError, match="whole windows"):
            ask(parties.folder("collector"), low, high, parties.mail)


def test_many_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.collect.aggregators.JOB_SIZE", 3)
    parties = Parties(tmp_path)
    for name in "abc":
        parties.report(ANSWERS, name)
        parties.counted()
    assert len(list(parties.mail.glob("*.job"))) == 9
    assert parties.sums() == {LOW: (21, [15])}
    with parties.store("leader") as store:
        assert store.rows("SELECT count(*) FROM report") == [(0,)]


def _after_a_death(parties: Parties, shares: dict[str, bytes]) -> None:
    """Run again to the end: sums are exact, shares that were seen are the same, and one charge was answered."""
    found = parties.everything()
    assert parties.sums() == {LOW: (7, [5])}
    assert found.reports == 7
    for name, share in shares.items():
        assert (parties.mail / name).read_bytes() == share
    for role in ("leader", "helper"):
        states = parties.charges(role)
        assert states.count("stored") == 1
        assert set(states) <= {"stored", "lost"}
        assert len(states) <= 2
    assert not parties.dropped("leader").get("truncated")


def _shares(parties: Parties) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in parties.mail.glob("*.share")}


def _die_at_every_step(tmp_path: Path, stride: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("hubbub.collect.aggregators.JOB_SIZE", 4)
    start = Parties(tmp_path / "start")
    start.report(ANSWERS)
    step, deaths = 1, 0
    while True:
        parties = start.copy(tmp_path / f"{step}")

        def work(parties: Parties = parties, step: int = step) -> None:
            with pytest.MonkeyPatch.context() as patch:
                dying_at(step, patch)
                parties.everything()

        if not died(work):
            return deaths
        _after_a_death(parties, _shares(parties))
        step, deaths = step + stride, deaths + 1


def test_a_death_at_any_durable_step_loses_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _die_at_every_step(tmp_path, 9, monkeypatch) >= 5


@pytest.mark.soak
def test_a_death_at_every_durable_step_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _die_at_every_step(tmp_path, 1, monkeypatch) >= 50


@pytest.mark.parametrize("deaths", [10, pytest.param(100, marks=pytest.mark.soak)])
def test_killed_at_random_moments_nothing_is_lost_or_doubled(tmp_path: Path, deaths: int) -> None:
    """The same collection is killed again and again, each time a little later, until it ends."""
    chosen = random.Random(deaths)
    done, started = 0, 0
    while done < deaths:
        parties = Parties(tmp_path / f"{started}")
        started += 1
        parties.report(ANSWERS)
        for attempt in range(deaths):
            if not died(lambda parties=parties: parties.everything(), chosen.uniform(0.02, 0.1) * (1 + attempt)):
                break
            done += 1
        found = parties.everything()
        assert parties.sums() == {LOW: (7, [5])}
        assert found.reports == 7
        assert all(parties.charges(role).count("stored") == 1 for role in ("leader", "helper"))


def test_a_step_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    with parties.store("leader") as store:
        with suppress(RuntimeError), store.transaction():
            assert store.take_id(b"one")
            raise RuntimeError
        with store.transaction():
            assert store.take_id(b"one")
            assert not store.take_id(b"one")


def test_two_processes_at_one_folder_are_refused(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    with parties.store("leader"), pytest.raises(PolicyError, match="another process"):
        parties.leader()
    assert NOW < HIGH
