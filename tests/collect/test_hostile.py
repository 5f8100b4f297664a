"""Bad reports, wrong keys, replays, cut messages, lying aggregators: each has its end and its words, no traceback."""

from __future__ import annotations

import json
import random
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from collect.parties import HIGH, LOW, NOW, Parties
from hubbub.collect import Count, Histogram, PrivateSum
from hubbub.collect.client import make_reports
from hubbub.collect.collector import ask, collect
from hubbub.collect.create import create
from hubbub.collect.task import Task, read_task
from hubbub.collect.wire import (
    ANSWER,
    BATCH,
    JOB,
    REPORTS,
    SHARE,
    answer_layout,
    box_info,
    job_layout,
    number,
    open_box,
    read_sealed,
    report_layout,
    seal,
    seal_box,
)
from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.budget import Budget

pytest.importorskip("Crypto.Hash.TurboSHAKE128", reason="pycryptodome (extra collect) is not installed")
pytest.importorskip("cryptography.hazmat.primitives.hpke", reason="cryptography before 47 has no HPKE")

ANSWERS = [1, 0, 1, 1]


@pytest.fixture
def parties(tmp_path: Path) -> Parties:
    made = Parties(tmp_path / "ours")
    made.report(ANSWERS)
    return made


def verify_key(parties: Parties) -> bytes:
    return bytes.fromhex(json.loads((parties.folder("helper") / "keys.json").read_text())["verify_key"])


def query_key(parties: Parties) -> bytes:
    return bytes.fromhex(json.loads((parties.folder("helper") / "keys.json").read_text())["query_key"])


# Clients.


def test_a_bit_anywhere_in_a_report_costs_that_report_alone(parties: Parties) -> None:
    path, task = parties.mail / "a.reports", parties.task
    rows = make_reports(task, [1] * 40, NOW).copy()
    for i, place in enumerate(np.linspace(0, rows.shape[1] - 1, 20).astype(int)):
        rows[i, place] ^= 1 << (i % 8)
    path.write_bytes(REPORTS + task.id + rows.tobytes())
    parties.counted()
    assert parties.sums() == {LOW: (20, [20])}
    dropped = parties.dropped("leader")
    assert sum(dropped.values()) == 20
    assert dropped["damaged"] + dropped["invalid"] == 20


def test_a_report_that_only_one_aggregator_can_read_is_counted_by_none(parties: Parties) -> None:
    task = parties.task
    layout = report_layout(task)
    columns = {n: c.copy() for n, c in layout.split(make_reports(task, [1, 1, 1], NOW)).items()}
    columns["leader"][0], columns["helper"][1] = 0, 0
    (parties.mail / "a.reports").write_bytes(REPORTS + task.id + layout.join(columns).tobytes())
    parties.counted()
    assert parties.sums() == {LOW: (1, [1])}
    assert parties.dropped("leader") == {"damaged": 1, "invalid": 1}
    assert parties.dropped("helper") == {"damaged": 1}


def test_a_share_that_is_malformed_for_the_leader_alone_divides_nobody(parties: Parties) -> None:
    """A number beyond the field: modulo p a proof could hold for the helper, so it never gets there."""
    task, layout = parties.task, report_layout(parties.task)
    columns = {n: c.copy() for n, c in layout.split(make_reports(task, [1], NOW)).items()}
    info = box_info(task, "leader", *(columns[c][0].tobytes() for c in ("id", "time", "public")))
    key = bytes.fromhex(json.loads((parties.folder("leader") / "keys.json").read_text())["private"])
    share = open_box(key, columns["leader"][0].tobytes(), info)
    assert share is not None
    box = seal_box(task.keys["leader"], b"\xff" * 8 + share[8:], info)
    columns["leader"][0] = np.frombuffer(box, np.uint8)
    (parties.mail / "a.reports").write_bytes(REPORTS + task.id + layout.join(columns).tobytes())
    parties.counted()
    assert parties.sums() == {}
    assert parties.dropped("leader") == {"invalid": 1}
    assert parties.dropped("helper") == {}


def test_reports_of_another_task_are_refused_whole(parties: Parties, tmp_path: Path) -> None:
    other = Parties(tmp_path / "theirs")
    (parties.mail / "b.reports").write_bytes(other.report(ANSWERS).read_bytes())
    assert "no reports of this task" in parties.leader()["b.reports"]
    # With our header put before their records, no box opens: it is bound to its task.
    data = other.report(ANSWERS, "c").read_bytes()
    (parties.mail / "b.reports").write_bytes(REPORTS + parties.task.id + data[len(REPORTS) + 32 :])
    parties.counted()
    assert parties.dropped("leader") == {"damaged": 4}
    assert parties.sums() == {LOW: (4, [3])}


def test_a_measurement_that_is_none_is_refused_on_the_device(parties: Parties) -> None:
    with pytest.raises(QueryError, match="0 or 1"):
        make_reports(parties.task, [2], NOW)


@pytest.mark.parametrize("cut", [1, 17, 100, 201])
def test_a_file_cut_short_keeps_its_whole_reports(parties: Parties, cut: int) -> None:
    path = parties.mail / "a.reports"
    path.write_bytes(path.read_bytes()[:-cut])
    parties.counted()
    width = report_layout(parties.task).width
    assert parties.sums()[LOW][0] == 4 - -(-cut // width)
    assert parties.dropped("leader") == {"truncated": 1}


# Messages between the parties.


@pytest.mark.parametrize("suffix", ["job", "answer", "query", "batch", "share"])
@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "longer"])
def test_a_damaged_message_is_refused_and_the_right_one_still_works(parties: Parties, suffix: str, damage: str) -> None:
    steps = {"job": 1, "answer": 2, "query": 3, "batch": 4, "share": 5}[suffix]
    todo = [
        parties.leader,
        parties.helper,
        lambda: parties.leader() and ask(parties.folder("collector"), LOW, HIGH, parties.mail),
        parties.leader,
        parties.helper,
    ]
    for step in todo[:steps]:
        step()
    (path,) = list(parties.mail.glob(f"*{'.helper' if suffix == 'share' else ''}.{suffix}"))
    good = path.read_bytes()
    path.write_bytes({"cut": good[:-1], "changed": good[:60] + bytes([good[60] ^ 1]) + good[61:], "empty": b"",
                      "longer": good + b"\0"}[damage])  # fmt: skip
    if suffix == "share":
        with pytest.raises(PolicyError, match=r"tag|truncated"):
            parties.total()
    else:
        said = (parties.helper if suffix in ("job", "batch") else parties.leader)()
        assert any("tag" in words or "truncated" in words for words in said.values())
    path.write_bytes(good)
    assert parties.everything().reports == 4
    assert parties.sums() == {LOW: (4, [3])}


def test_a_message_under_another_key_is_refused(parties: Parties, tmp_path: Path) -> None:
    parties.leader()
    (path,) = parties.mail.glob("*.job")
    body = read_sealed(path, JOB, parties.task, verify_key(parties))
    path.write_bytes(seal(JOB, parties.task, bytes(32), body))
    assert "other keys" in parties.helper()[path.name]


def test_keys_of_another_task_or_role_are_refused(parties: Parties, tmp_path: Path) -> None:
    other = Parties(tmp_path / "theirs")
    keys = (other.folder("leader") / "keys.json").read_text()
    (parties.folder("leader") / "keys.json").write_text(keys)
    with pytest.raises(PolicyError, match="another task"):
        parties.leader()
    (parties.folder("leader") / "keys.json").write_text((parties.folder("helper") / "keys.json").read_text())
    with pytest.raises(PolicyError, match="the folder of the helper"):
        parties.leader()
    for bad in ("", "[]", "{}", '{"role": "leader", "private": "00", "verify_key": "", "query_key": ""}'):
        (parties.folder("leader") / "keys.json").write_text(bad)
        with pytest.raises(PolicyError, match="no keys"):
            parties.leader()


# Aggregators that lie.


def test_a_job_under_another_name_counts_nothing_twice(parties: Parties) -> None:
    """A leader that sends the same reports in a second job, to have them added up twice."""
    parties.counted()
    (path,) = parties.mail.glob("*.job")
    body = read_sealed(path, JOB, parties.task, verify_key(parties))
    again = bytes(16) + body[16:]
    (parties.mail / "again.job").write_bytes(seal(JOB, parties.task, verify_key(parties), again))
    parties.helper()
    assert parties.dropped("helper") == {"replayed": 4}
    layout = answer_layout(parties.task)
    answer = read_sealed(parties.mail / f"{bytes(16).hex()}.answer", ANSWER, parties.task, verify_key(parties))
    assert layout.split(layout.rows(answer[16:]))["verdict"].all()
    other = body[:16] + body[16 + job_layout(parties.task).width :]
    (parties.mail / "again.job").write_bytes(seal(JOB, parties.task, verify_key(parties), other))
    assert "another job under the name" in parties.helper()["again.job"]


def test_a_leader_that_tries_a_proof_twice_gets_no_second_answer(parties: Parties) -> None:
    """First with a verifier share that it changed, then with the right one: the id is used up."""
    parties.leader()
    (path,) = parties.mail.glob("*.job")
    body = bytearray(read_sealed(path, JOB, parties.task, verify_key(parties)))
    body[-1] ^= 1
    first = bytes(range(16)) + bytes(body[16:])
    path.write_bytes(seal(JOB, parties.task, verify_key(parties), first))
    parties.helper()
    assert parties.dropped("helper") == {"invalid": 1}
    body[-1] ^= 1
    path.write_bytes(seal(JOB, parties.task, verify_key(parties), bytes(body)))
    parties.helper()
    assert parties.dropped("helper") == {"invalid": 1, "replayed": 4}


def test_a_leader_that_names_another_batch_gets_no_share(parties: Parties) -> None:
    parties.counted()
    with parties.store("helper") as store:
        ((count, checksum),) = store.rows("SELECT count, checksum FROM win")
    for said in (number(count - 1) + checksum, number(count) + bytes(32)):
        head = number(LOW) + number(HIGH) + said
        (parties.mail / "lie.batch").write_bytes(seal(BATCH, parties.task, verify_key(parties), head))
        assert "No share leaves" in parties.helper()["lie.batch"]
    assert not list(parties.mail.glob("*.share"))
    assert parties.charges("helper") == []
    assert parties.everything().reports == 4


def test_a_helper_that_disowns_a_report_leaves_it_out_of_both_or_there_is_no_total(parties: Parties) -> None:
    parties.leader()
    parties.helper()
    (path,) = parties.mail.glob("*.answer")
    body = bytearray(read_sealed(path, ANSWER, parties.task, verify_key(parties)))
    body[16 + 16] = 1
    path.write_bytes(seal(ANSWER, parties.task, verify_key(parties), bytes(body)))
    ask(parties.folder("collector"), LOW, HIGH, parties.mail)
    parties.leader()
    assert "not the same" in parties.helper()["1000-1100.batch"]


@pytest.mark.parametrize("lie", ["short", "others"])
def test_an_answer_that_is_not_of_the_job_settles_nothing(parties: Parties, lie: str) -> None:
    parties.leader()
    parties.helper()
    (path,) = parties.mail.glob("*.answer")
    good = path.read_bytes()
    body = bytearray(read_sealed(path, ANSWER, parties.task, verify_key(parties)))
    if lie == "short":
        del body[-answer_layout(parties.task).width :]
    else:
        body[16] ^= 1
    path.write_bytes(seal(ANSWER, parties.task, verify_key(parties), bytes(body)))
    assert "answer" in parties.leader()[path.name]
    path.write_bytes(good)
    parties.leader()
    assert parties.sums() == {LOW: (4, [3])}


def test_an_answer_to_no_job_is_refused(parties: Parties) -> None:
    (parties.mail / "b.answer").write_bytes(seal(ANSWER, parties.task, verify_key(parties), bytes(16)))
    assert "never made" in parties.leader()["b.answer"]


def test_a_lying_aggregator_moves_the_total_unseen_and_nobody_s_privacy(parties: Parties) -> None:
    """What cannot be prevented, shown: a helper adds 1,000 to its share. The leader's own noise stays in the total."""
    before = parties.everything().values[0]
    task, path = parties.task, parties.mail / "1000-1100.helper.share"
    body = read_sealed(path, SHARE, task, query_key(parties))
    head = body[1:57]
    with parties.store("helper") as store:
        total = task.prio3.decode_aggregate(store.rows("SELECT total FROM batch")[0][0])
    share = task.prio3.encode_aggregate([(total[0] + 1000) % task.plan.circuit.field.modulus])
    box = seal_box(task.keys["collector"], share, box_info(task, "collector", b"helper", head))
    path.write_bytes(seal(SHARE, task, query_key(parties), b"\1" + head + box))
    moved = parties.total().values[0]
    assert 900 < moved - before < 1100
    with parties.store("leader") as store:
        encoded, kept = store.rows("SELECT total, box FROM batch")[0]
    leader = json.loads((parties.folder("collector") / "keys.json").read_text())["private"]
    sent = open_box(bytes.fromhex(leader), kept, box_info(task, "collector", b"leader", head))
    assert sent is not None
    p = task.plan.circuit.field.modulus
    assert (moved - 1003) % p == (task.prio3.decode_aggregate(sent)[0] - task.prio3.decode_aggregate(encoded)[0]) % p


def test_shares_of_different_batches_or_two_of_one_are_no_total(parties: Parties) -> None:
    parties.report([1, 1], "b", 950)
    parties.everything()
    parties.everything(900, 1000)
    folder, mail = parties.folder("collector"), parties.mail
    one, other = mail / "1000-1100.leader.share", mail / "900-1000.helper.share"
    with pytest.raises(PolicyError, match="not of the same reports"):
        collect(folder, [one, other])
    with pytest.raises(PolicyError, match="second share of the leader"):
        collect(folder, [one, one])
    with pytest.raises(PolicyError, match="two shares"):
        collect(folder, [one])


def test_a_state_put_back_does_not_draw_again(parties: Parties) -> None:
    parties.counted()
    state = parties.folder("leader") / "state.db"
    old = state.read_bytes()
    parties.everything()
    for name in ("state.db-wal", "state.db-shm"):
        (parties.folder("leader") / name).unlink(missing_ok=True)
    state.write_bytes(old)
    assert "older than the ledger" in parties.leader()["1000-1100.query"]


def test_a_ledger_or_a_state_that_is_gone_is_missed_and_not_begun_anew(parties: Parties) -> None:
    parties.counted()
    ask(parties.folder("collector"), LOW, HIGH, parties.mail)
    ledger, state = (parties.folder("leader") / name for name in ("ledger.db", "state.db"))
    ledger.rename(parties.at / "away")
    assert "ledger" in parties.leader()["1000-1100.query"]
    assert not ledger.exists()
    assert not list(parties.mail.glob("*.share"))
    (parties.at / "away").rename(ledger)
    parties.leader()
    state.unlink()
    with pytest.raises(PolicyError, match="is gone"):
        parties.leader()


# Anything at all.


def _mutated(data: bytes, chosen: random.Random) -> bytes:
    out = bytearray(data)
    match chosen.randrange(5):
        case 0:
            return bytes(out[: chosen.randrange(len(out) + 1)])
        case 1:
            for _ in range(chosen.randrange(1, 9)):
                out[chosen.randrange(len(out))] = chosen.randrange(256)
        case 2:
            place = chosen.randrange(len(out))
            out[place:place] = chosen.randbytes(chosen.randrange(300))
        case 3:
            place = chosen.randrange(len(out))
            del out[place : place + chosen.randrange(300)]
        case _:
            return chosen.randbytes(chosen.randrange(2000))
    return bytes(out)


@pytest.mark.parametrize("rounds", [40, pytest.param(4000, marks=pytest.mark.soak)])
def test_no_file_crashes_a_party(tmp_path: Path, rounds: int) -> None:
    """Mutated messages of every kind, half of them with a right tag, never raise, and never change a sum."""
    parties = Parties(tmp_path / "p", PrivateSum(Histogram(3, 2), epsilon=1))
    parties.report([0, 1, 2, 2])
    parties.everything()
    sums, chosen = parties.sums(), random.Random(rounds)
    task, keys = parties.task, {".query": query_key(parties), ".share": query_key(parties)}
    messages = {path: path.read_bytes() for path in parties.mail.iterdir()}
    for _ in range(rounds):
        path, data = chosen.choice(sorted(messages.items()))
        bad = _mutated(data, chosen)
        if path.suffix != ".reports" and chosen.random() < 0.5:
            kind = data[: data.index(b"\n") + 1]
            bad = seal(
                kind, task, keys.get(path.suffix, verify_key(parties)), _mutated(data[len(kind) + 32 : -32], chosen)
            )
        path.write_bytes(bad)
        if path.suffix == ".share":
            other = [p for p in messages if p.suffix == ".share" and p != path]
            with suppress(PolicyError):
                collect(parties.folder("collector"), [path, *other])
        else:
            parties.leader()
            parties.helper()
        path.write_bytes(data)
    assert parties.sums()[LOW] == sums[LOW]


@pytest.mark.parametrize("rounds", [300, pytest.param(30_000, marks=pytest.mark.soak)])
def test_no_text_is_taken_for_a_task(parties: Parties, rounds: int) -> None:
    text, chosen = parties.task.text.encode(), random.Random(rounds)
    assert Task.read(parties.task.text) == parties.task
    for _ in range(rounds):
        bad = _mutated(text, chosen).decode("utf-8", "replace")
        try:
            found = Task.read(bad)
        except PolicyError:
            continue
        assert found.id != parties.task.id or json.loads(bad) == json.loads(text)
    for bad in ("[" * 100_000, "null", "1", '{"hubbub.collect": 1, "circuit": {"length": 1e400}}'):
        with pytest.raises(PolicyError):
            Task.read(bad)


def test_a_huge_file_is_read_in_parts_or_refused(parties: Parties, monkeypatch: pytest.MonkeyPatch) -> None:
    """4 MiB of nonsense in parts of 64 KiB: the peak stays below half of that; no message may be over 256 MiB."""
    monkeypatch.setattr("hubbub.collect.wire._CHUNK_BYTES", 1 << 16)
    parties.leader()
    with (parties.mail / "a.reports").open("ab") as file:
        file.truncate(1 << 22)
    tracemalloc.start()
    try:
        parties.leader()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 21
    assert parties.dropped("leader")["damaged"] > 20_000
    with (parties.mail / "big.answer").open("wb") as file:
        file.truncate(1 << 29)
    assert "larger than any message" in parties.leader()["big.answer"]


def test_folders_that_are_none_are_refused(parties: Parties, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="not there yet"):
        create(tmp_path / "ours/task", PrivateSum(Count(), epsilon=1), budget=Budget(1))
    with pytest.raises(PolicyError, match="cannot be read"):
        read_task(tmp_path / "none.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    with pytest.raises(PolicyError, match="is not"):
        read_task(tmp_path / "binary")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2 << 20)
    with pytest.raises(PolicyError, match="too large"):
        read_task(tmp_path / "large")
