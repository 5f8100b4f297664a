"""One flipped bit of a row that decides gives no budget back, no second draw and no other answer, and no raw error.

A ledger with a closed block, an open one, a plan, questions of the service whose outcomes are staged, one with a
joiner, an answer that is stored, a failure, and one that died while it was drawn. Each bit of its rows is flipped
in the file, alone; then everything is tried that the row could have kept from being done.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from counts import SOAK
from hubbub.errors import HubbubError, InternalError
from hubbub.ledger import incidents
from hubbub.ledger.accounts import Total, pure_cost
from hubbub.ledger.schedule import SECOND
from hubbub.ledger.store import Ledger
from hubbub.ledger.timetable import Asking, Queue, Scheduled
from ledger.helpers import asked, charge, fork, resume, wait
from service.helpers import SPACE, Clock, ledger_at

QUEUE = Queue(lanes=4, tick=SECOND // 10)
KEY = b"a key of enough bytes"
TABLES = {"step": 1, "pending": 2, "schedule": 5, "account": 4, "charge": 25, "wording": 25, "release": 2}
"""Of every so many tenths of the bits one is flipped outside a soak; of all bits it takes two hours."""


def ask_of(text: str, **more: Any) -> str:
    return json.dumps({"sql": text, "now": "n", "options": {}, **more})


class Filled:
    """A ledger of which everything is spent; what was made in it."""

    def __init__(self, path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, key: bytes | None = None) -> None:
        self.path, self.clock, self.patch, self.key = path, clock, monkeypatch, key
        monkeypatch.setattr(incidents, "keep", lambda *_: None)
        with self.opened() as ledger:
            self.closed = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(20))
            ledger.charges.close_block(self.closed)
            self.held = ledger.charges.reserve(space=SPACE, analyst="ada", epsilon=Fraction(1))
            self.stored = charge(ledger, 1, question_key="stored")
            ledger.charges.advance(self.stored, "drawing")
            ledger.charges.store(self.stored, '{"answer": 1}')
            ledger.charges.advance(charge(ledger, 1, question_key="failed"), "failed", incident="x")
        assert wait(fork(self._die)) == [0]
        with self.opened() as ledger:
            self._schedule(ledger)
            charge(ledger, ledger.balance.remaining(SPACE), question_key="all that is left")
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        self.whole = path.read_bytes()
        clock.seconds = 30
        self.spent = self.tried(self.whole)
        assert self.spent is not None

    def opened(self) -> Any:
        return ledger_at(self.path, self.clock, self.patch, key=self.key, max_failures=50)

    def _die(self) -> None:
        with self.opened() as ledger:
            ledger.charges.advance(charge(ledger, 1, question_key="died"), "drawing")
            ledger.charges._taken.clear()

    def _schedule(self, ledger: Ledger) -> None:
        def of_plan(text: str) -> Asking:
            return Asking(asked(Fraction(1, 4), question_key=text, analyst="bob"), ask_of(text), 5 * SECOND)

        submit = ledger.timetable.submit
        capped = asked(Fraction(9, 10), question_key="capped", analyst="bob")
        self.capped = submit(capped, ask=ask_of("capped", capped=True), length=5 * SECOND, queue=QUEUE)
        self.joiner = submit(
            replace(capped, analyst="eve"), ask=ask_of("capped", capped=True), length=5 * SECOND, queue=QUEUE
        )
        plan = asked(Fraction(1, 2), kind="plan", analyst="bob", question_key="")
        self.first, self.second = ledger.timetable.submit_plan(plan, [of_plan("p"), of_plan("q")], queue=QUEUE)
        assert self.joiner.shares == self.capped.id
        ledger.timetable.tick(QUEUE)
        self.clock.seconds = 1
        used = Total.of(pure_cost(Fraction(4, 5)))
        assert ledger.timetable.stage(self.capped.id, '{"answer": 2}', used=used)
        assert ledger.timetable.stage(self.first.id, '{"answer": 3}')
        self.waiting = submit(asked(1, question_key="w"), ask=ask_of("w"), length=5 * SECOND, queue=QUEUE)

    def tried(self, content: bytes) -> Fraction | None:
        """Try all that may not be, on a ledger of these bytes. What is spent at the end; None where nobody is told."""
        for beside in ("", "-wal", "-shm"):
            Path(f"{self.path}{beside}").unlink(missing_ok=True)
        self.path.write_bytes(content)
        spent = None
        with in_our_words(), self.opened() as ledger:
            self._try_the_service(ledger)
            for block, most in ((self.closed, Fraction(1)), (self.held, Fraction(11, 10))):
                refused(lambda b=block, m=most: charge(ledger, m, block=b, dataset="labs", question_key="again"))
            for block in (self.held, self.closed):
                with in_our_words():
                    ledger.charges.close_block(block)
            with in_our_words():
                assert resume(ledger, epsilon=Fraction(1), question_key="died") is None
            with in_our_words():
                answer = ledger.record.release(self.stored)
                assert answer is None or answer.payload == '{"answer": 1}'
            with in_our_words():
                spent = ledger.balance.spent(SPACE)
            refused(lambda: charge(ledger, Fraction(111, 100), dataset="more", question_key="more"))
        return spent

    def _try_the_service(self, ledger: Ledger) -> None:
        begun: list[Scheduled] = []
        for second in (2, 20, 30):
            self.clock.seconds = second
            with in_our_words():
                begun += ledger.timetable.tick()
        assert [one.id for one in begun] in ([], [self.waiting.id])
        answers = {self.capped.id: 2, self.joiner.id: 2, self.first.id: 3}
        for made in (self.capped, self.joiner, self.first, self.second, self.waiting):
            with in_our_words():
                one = ledger.timetable.find(made.id)
                if one is not None and ledger.timetable.fate(one) == "answered":
                    stored = ledger.record.release(one.paid_by)
                    assert stored is not None
                    assert stored.payload == f'{{"answer": {answers.get(made.id)}}}'
            with in_our_words():
                assert made.id not in [one.id for one in ledger.timetable.of("ada")] or made is self.waiting


class in_our_words(suppress):
    """Whatever is refused within is refused in words of ours, and is no defect."""

    def __init__(self) -> None:
        super().__init__(HubbubError)

    def __exit__(self, kind: Any, error: Any, where: Any) -> bool:
        return not isinstance(error, InternalError) and super().__exit__(kind, error, where)


def refused(work: Callable[[], object]) -> None:
    with pytest.raises(HubbubError) as told:
        work()
    assert not isinstance(told.value, InternalError)


def places(content: bytes, table: str) -> Iterator[int]:
    """The bytes of every row of a table, its header included."""
    size = int.from_bytes(content[16:18], "big")
    with sqlite3.connect(":memory:") as connection:
        connection.deserialize(content)
        ask = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        pages = [connection.execute(ask, (table,)).fetchone()[0]]
    for page in pages:
        start = (page - 1) * size
        leaf = content[start] in (10, 13)
        cells = start + (8 if leaf else 12)
        for number in range(int.from_bytes(content[start + 3 : start + 5], "big")):
            cell = start + int.from_bytes(content[cells + 2 * number : cells + 2 * number + 2], "big")
            if leaf:
                length, first = content[cell], cell + 1
                if length > 127:
                    length, first = (length & 127) << 7 | content[first], first + 1
                yield from range(cell, first + length + (content[start] == 13))
            else:
                pages.append(int.from_bytes(content[cell : cell + 4], "big"))
        if not leaf:
            pages.append(int.from_bytes(content[start + 8 : start + 12], "big"))


@pytest.mark.parametrize("key", [None, KEY] if SOAK else [KEY], ids=["unkeyed", "keyed"] if SOAK else ["keyed"])
@pytest.mark.parametrize("table", TABLES)
def test_one_flipped_bit_gives_nothing(tmp_path, monkeypatch, table, key):
    made = Filled(tmp_path / "b.db", Clock(), monkeypatch, key)
    bits = [(place, bit) for place in places(made.whole, table) for bit in range(8)]
    assert len(bits) > 200
    told = 0
    for place, bit in bits[:: 1 if SOAK else 10 * TABLES[table] + 1]:
        content = made.whole[:place] + bytes([made.whole[place] ^ 1 << bit]) + made.whole[place + 1 :]
        spent = made.tried(content)
        told += spent is not None
        assert spent is None or spent >= made.spent, f"bit {bit} of byte {place}"
    assert told or table == "charge"


UNSEALED = {
    "an answer of an older version": ("answer", '{"answer": 2}'),
    "what an older version used": ("part", '[["4/5", "8/25", "0/1", 0], "{\\"answer\\": 2}"]'),
    "a change that an older version saw": ("changed", None),
    "no JSON": ("part", "["),
    "no state": ("anwser", None),
    "a failure": ("failure", None),
    "one that waits again": ("waiting", None),
}


@pytest.mark.parametrize("row", UNSEALED)
def test_an_outcome_without_its_seal_is_a_failure_and_the_others_are_told(tmp_path, monkeypatch, row):
    made, kept = Filled(tmp_path / "b.db", Clock(), monkeypatch), []
    monkeypatch.setattr(incidents, "keep", lambda _, incident, words: kept.append((incident, words)))
    made.path.write_bytes(made.whole)
    with sqlite3.connect(made.path) as connection:
        values = (*UNSEALED[row], made.capped.serial)
        connection.execute("UPDATE pending SET state = ?, payload = ? WHERE charge = ?", values)
    connection.close()
    made.clock.seconds = 30
    with made.opened() as ledger:
        before = ledger.balance.spent(SPACE)
        begun = ledger.timetable.tick()
        assert made.capped.id not in [one.id for one in begun]
        assert ledger.timetable.fate(made.capped) == ledger.timetable.fate(made.joiner) == "no answer"
        assert ledger.record.release(made.first.id).payload == '{"answer": 3}'
        assert ledger.balance.spent(SPACE) == before
        assert ledger.record.verify().sound
    quiet = ("a failure", "one that waits again")
    assert [incident for incident, _ in kept] == ([] if row in quiet else [made.capped.incident])
    assert all("damaged" in words for _, words in kept)


def test_an_outcome_is_told_after_the_chain_got_another_key(tmp_path, monkeypatch):
    made = Filled(tmp_path / "b.db", Clock(), monkeypatch)
    made.path.write_bytes(made.whole)
    with Ledger.manage(made.path) as ledger:
        ledger.steward.rekey(KEY, author="steward")
    made.key, made.clock.seconds = KEY, 30
    with made.opened() as ledger:
        ledger.timetable.tick()
        assert ledger.record.release(made.capped.id).payload == '{"answer": 2}'
        assert ledger.record.verify().sound
