"""How a service is kept: runners that end with their clerk, what is done daily, people who come from a backup."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hubbub as hb
from hubbub.errors import PolicyError
from hubbub.ledger.policy import load_policy
from hubbub.ledger.store import Ledger
from hubbub.service.daily import Daily
from hubbub.service.people.at_home import opened_people, place_of
from hubbub.service.people.restored import let_nobody_in
from service.test_before_asking import policy as write_policy

STARTER = """
import socket, subprocess, sys, threading, time
way = sys.argv[1]
here, there = socket.socketpair()
program = '''
import socket, sys, time
from hubbub.service.ends import end_with, end_with_starter
line = socket.socket(fileno=int(sys.argv[1]))
if sys.argv[2] == "death":
    end_with_starter()
else:
    end_with(line)
line.sendall(b"x")
while True:
    time.sleep(1)
'''
child = subprocess.Popen([sys.executable, "-c", program, str(there.fileno()), way], pass_fds=[there.fileno()])
there.close()
here.recv(1)
print(child.pid, flush=True)
time.sleep(60)
"""


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("way", ["line", "death"])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prctl and /proc are Linux's")
def test_a_runner_ends_with_whoever_started_it(way):
    starter = subprocess.Popen([sys.executable, "-c", STARTER, way], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    child = int(starter.stdout.readline())
    assert is_there(child)
    starter.kill()
    starter.wait()
    starter.stdout.close()
    until = time.monotonic() + 10
    while is_there(child) and time.monotonic() < until:
        time.sleep(0.02)
    ended = not is_there(child)
    if not ended:
        os.kill(child, signal.SIGKILL)
    assert ended


@pytest.fixture
def policy(tmp_path):
    file = write_policy(tmp_path)
    (tmp_path / "witness").mkdir()
    text = file.read_text().replace('file = "l.db"', 'file = "l.db"\nwitness = "witness"\nkeep_texts = 30')
    file.write_text(text)
    hb.Session.from_policy(file, create_ledger=True).close()
    return load_policy(file)


def test_the_witness_is_told_once_a_day_and_again_where_it_failed(policy, monkeypatch):
    said, day, sent = [], ["9000-01-01"], []
    with Ledger.open(policy.ledger, budgets={}, create=False) as ledger:
        daily = Daily(policy, ledger, said.append, day=lambda: day[0])

        def bear(book, place):
            sent.append(place)
            if len(sent) == 1:
                raise PolicyError("the witness is away")

        monkeypatch.setattr("hubbub.service.daily.bear_witness", bear)
        daily.look()
        assert said == ["the witness: the witness is away"]
        for _ in range(59):
            daily.look()
        assert len(sent) == 1
        daily.look()
        daily.look()
        assert len(sent) == 2
        day[0] = "9000-01-02"
        daily.look()
        assert len(sent) == 3


def test_old_texts_go_as_of_midnight(policy, monkeypatch):
    seen = []
    with Ledger.open(policy.ledger, budgets={}, create=False) as ledger:
        monkeypatch.setattr(ledger.steward, "redact_before", lambda at, author: seen.append((at, author)))
        Daily(policy, ledger, lambda _: None).look()
    ((at, author),) = seen
    assert (len(at), at[-1], author) == (11, "T", "the policy")


def test_words_go_from_what_a_steward_decided_too(policy):
    people = opened_people(policy)
    said = {"sql": "SELECT secret", "options": {"epsilon": "9"}, "request": "r", "purpose": "p", "epsilon": "9"}
    done, waits = (people.wishes.add("question", "ada", {**said, "request": k}, name=k).id for k in "rs")
    people.wishes.settle(done, "declined", by="sue")
    with Ledger.open(policy.ledger, budgets={}, create=False) as ledger:
        Daily(policy, ledger, lambda _: None, people=people).look()
        assert people.wishes.one(done).what["sql"] == "SELECT secret"  # of today
        assert people.wishes.remove_words("9000", by="the policy") == 1
        assert people.wishes.remove_words("9000", by="the policy") == 0
    assert people.wishes.one(done).what == {**said, "sql": "(removed)", "options": {}, "purpose": None}
    assert people.wishes.one(waits).what["sql"] == "SELECT secret"
    assert people.store.verify().sound
    people.close()


def test_nobody_gets_in_by_what_a_backup_knows(policy):
    people = opened_people(policy)
    name, key = people.roll.add("ada", ["analyst"], by="steward")
    people.new_token("ada", by="steward")
    assert (name, bool(key)) == ("ada", True) or key
    people.close()
    let_nobody_in(place_of(policy), None)
    people = opened_people(policy)
    count = people.store.row(
        "SELECT (SELECT count(*) FROM session) + (SELECT count(*) FROM link) + (SELECT count(*) FROM token WHERE ended "
        "IS NULL) + (SELECT count(*) FROM person WHERE passphrase IS NOT NULL)"
    )
    assert tuple(count) == (0,)
    assert people.roll.roles("ada") == ("analyst",)
    assert people.store.verify().sound
    people.close()


def test_the_log_of_people_follows_the_chain_to_its_next_key(tmp_path):
    file = write_policy(tmp_path)
    file.write_text(file.read_text().replace('file = "l.db"', 'file = "l.db"\nkey_file = "key"'))
    old, new = "an old key of some length", "a new key, of another length"
    (tmp_path / "key").write_text(old)
    hb.Session.from_policy(file, create_ledger=True).close()
    policy = load_policy(file)
    people = opened_people(policy)
    people.roll.add("ada", ["analyst"], by="steward")
    people.close()
    with Ledger.manage(policy.ledger, key=old.encode()) as ledger:
        ledger.steward.rekey(new.encode(), author="steward")
    (tmp_path / "key").write_text(new)
    people = opened_people(policy)
    assert people.store.verify().sound
    people.roll.add("bob", ["analyst"], by="steward")
    whole = people.store.verify()
    assert (whole.sound, whole.lines) == (True, 2)
    people.store._connection.execute("DROP TRIGGER log_no_update")
    people.store._connection.execute("UPDATE log SET who = 'mallory' WHERE serial = 1")
    assert people.store.verify().problems == ("line 1 of the log is not what was written",)
    people.close()


def test_two_parts_that_are_started_apart_answer_together_and_runners_end_with_their_clerk(tmp_path, short_folder):
    pytest.importorskip("starlette", reason="the service needs the extra `serve`")
    from hubbub.service.serve import Service
    from service.helpers import COUNT, token_of
    from service.test_processes import Client, free_port, slow

    file, port, line = slow(tmp_path, 60.0), free_port(), short_folder
    rows = Service(file, host="127.0.0.1", port=port, only="rows", line=line, say=lambda _: None)
    front = Service(Path(), host="127.0.0.1", port=port, only="front", line=line, say=lambda _: None)
    try:
        rows.start()
        front.start()
        client = Client(port, token_of(file, "ada"))
        client.ready()
        assert client.call("/api/v1/check", {"sql": COUNT, "options": {"epsilon": "0.5"}})[0] == 200
        modes = {name: (line / name).stat().st_mode & 0o777 for name in ("clerk", "line-token")}
        assert modes == {"clerk": 0o660, "line-token": 0o640}
        runners = rows.ready["runners"]
        assert all(map(is_there, runners))
        rows.clerk.popen.kill()
        rows.clerk.popen.wait()
        until = time.monotonic() + 10
        while any(map(is_there, runners)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(map(is_there, runners))
    finally:
        for part in (front, rows):
            part.stop()
    assert list(line.iterdir()) == []
