"""The leader and the helper, over files: each takes messages from one folder and writes messages to another.

Leader: `.reports` are opened, ids taken, reports kept; up to `JOB_SIZE` of them make a job, with the leader's verifier
shares. Helper: a `.job` is verified and added up in one transaction, which records the answer; the same job again gets
the same answer. Leader: an `.answer` settles its job. What is left out is counted by reason:

    damaged     the box is for another key, or was changed        replayed    the id was taken before
    late        its window was released already                   early       its window has not begun
    invalid     the proof does not hold                           truncated   bytes at the end of a file
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from hubbub.collect.batches import check_range, fixed_batch, released_share
from hubbub.collect.field import Bytes, Flags
from hubbub.collect.prio3 import State
from hubbub.collect.store import Store
from hubbub.collect.task import Keys, random_token, read_task, write_whole
from hubbub.collect.wire import (
    ANSWER,
    BATCH,
    JOB,
    QUERY,
    Layout,
    Opener,
    answer_layout,
    box_info,
    ids_digest,
    job_layout,
    numbers,
    read_sealed,
    report_chunks,
    report_layout,
    seal,
)
from hubbub.errors import HubbubError, PolicyError

__all__ = ["JOB_SIZE", "Helper", "Leader"]

JOB_SIZE: Final = 5000
_JOB_BYTES: Final = 32 << 20
_COUNTED, _REFUSED = 0, 1
_JOB_HEAD: Final = 16


class _Aggregator:
    """What both have: a folder with task and keys, a state, and a door for files."""

    suffixes: tuple[str, ...] = ()

    def __init__(self, folder: Path, role: Any, now: int) -> None:
        self.task = read_task(folder / "task.json")
        self.keys = Keys.read(folder, role, self.task)
        self.store = Store(folder, self.task)
        self.latest = now
        self.opener = Opener(self.keys.private)

    def close(self) -> None:
        """Let another process at the folder."""
        self.store.close()

    def work(self, inbox: Path, outbox: Path) -> Iterator[tuple[str, str]]:
        """Take up every message in `inbox`, by kind; what to say about each, and which of them were refused.

        Yields (file name, refusal); an empty refusal if there was none.
        """
        if not inbox.is_dir() or not outbox.is_dir():
            raise PolicyError(f"{inbox} and {outbox} have to be folders.")
        for suffix in self.suffixes:
            for path in sorted(inbox.glob(f"*{suffix}")):
                try:
                    getattr(self, f"take_{suffix[1:]}")(path, outbox)
                    yield path.name, ""
                except HubbubError as refused:
                    yield path.name, str(refused)
            self.after(suffix, outbox)

    def after(self, suffix: str, outbox: Path) -> None:
        """What follows when all messages of a kind are taken up."""

    def verdict_of_window(self, start: int) -> str:
        """Why reports of a window are left out; empty if they are not."""
        if self.store.closed(start):
            return "late"
        return "early" if start > self.latest else ""

    def opened(self, role: str, columns: dict[str, Bytes], size: int) -> tuple[Bytes, Flags]:
        """What is in the boxes for this aggregator, (n, size), and which of them could be opened."""
        n = len(columns["id"])
        out, good = np.zeros((n, size), np.uint8), np.zeros(n, np.bool_)
        beside = zip(columns["id"], columns["time"], columns["public"], columns[role], strict=True)
        for i, (nonce, time, public, box) in enumerate(beside):
            info = box_info(self.task, role, nonce.tobytes(), time.tobytes(), public.tobytes())
            plain = self.opener.open(box.tobytes(), info)
            if plain is not None and len(plain) == size:
                out[i], good[i] = np.frombuffer(plain, np.uint8), True
        return out, good

    def add_counted(self, state: State, good: Flags, times: list[int], ids: Bytes) -> None:
        """Add the reports marked in `good` to the sums of their windows."""
        starts = np.array(times)
        for start in sorted(set(starts[good].tolist())):
            chosen = good & (starts == start)
            digest = ids_digest([row.tobytes() for row in ids[chosen]])
            self.store.add(start, int(chosen.sum()), digest, self.task.prio3.aggregate(state, chosen))


class Leader(_Aggregator):
    """The aggregator that clients and collector talk to."""

    suffixes = (".reports", ".answer", ".query")

    def __init__(self, folder: Path, now: int) -> None:
        super().__init__(folder, "leader", now)
        prio3 = self.task.prio3
        fields = dict(report_layout(self.task).fields)
        kept = [(name, fields[name]) for name in ("id", "time", "public", "helper")]
        self.kept = Layout((*kept, ("input", prio3.input_size(0))))

    def take_reports(self, path: Path, outbox: Path) -> None:
        """Keep the reports of a file that can be opened and are new; each part of the file once."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        done = self.store.rows("SELECT place FROM input WHERE digest = ?", digest)
        start = done[0][0] if done else 0
        for records, place, left in report_chunks(path, self.task, start):
            columns = report_layout(self.task).split(records)
            columns["input"], opened = self.opened("leader", columns, self.task.prio3.input_size(0))
            with self.store.transaction() as database:
                kept = self._kept(columns, opened)
                rows = self.kept.join({name: columns[name][kept] for name, _ in self.kept.fields})
                times = [t for t, k in zip(numbers(columns["time"]), kept, strict=True) if k]
                database.executemany(
                    "INSERT INTO report (win, body) VALUES (?, ?)",
                    ((time, row.tobytes()) for time, row in zip(times, rows, strict=True)),
                )
                self.store.drop("truncated", int(left > 0))
                # Bytes left over are passed too: a file that is taken up again has nothing more to say.
                database.execute("INSERT OR REPLACE INTO input VALUES (?, ?)", (digest, place + left))

    def _kept(self, columns: dict[str, Bytes], opened: Flags) -> Flags:
        """Which reports to keep; the others are counted by reason."""
        kept = opened.copy()
        self.store.drop("damaged", int((~opened).sum()))
        verdicts: dict[int, str] = {}
        for i, start in enumerate(numbers(columns["time"])):
            if not kept[i]:
                continue
            if start % self.task.window or start >= 1 << 60:
                reason = "damaged"
            else:
                reason = verdicts.setdefault(start, self.verdict_of_window(start))
            if not reason and not self.store.take_id(columns["id"][i].tobytes()):
                reason = "replayed"
            if reason:
                kept[i] = False
                self.store.drop(reason)
        return kept

    def after(self, suffix: str, outbox: Path) -> None:
        """Make jobs of the reports at hand, and write every job that is not settled (again)."""
        if suffix != ".reports":
            return
        while self._make_job():
            pass
        for job, message in self.store.rows("SELECT id, message FROM job WHERE done = 0"):
            path = outbox / f"{job.hex()}.job"
            if not path.exists():
                write_whole(path, message)

    def _make_job(self) -> bool:
        """Make a job of reports that are in none, some MiB of them; False if there are none."""
        last = self.store.rows("SELECT coalesce(max(high), 0) FROM job")[0][0]
        most = max(1, min(JOB_SIZE, _JOB_BYTES // self.kept.width))
        rows = self.store.rows("SELECT serial, body FROM report WHERE serial > ? ORDER BY serial LIMIT ?", last, most)
        if not rows:
            return False
        columns = self.kept.split(self.kept.rows(b"".join(body for _, body in rows)))
        prio3, key = self.task.prio3, self.keys.verify_key
        state, verifier = prio3.verify_init(key, 0, columns["id"], columns["public"], columns["input"])
        columns["verifier"], good = verifier, state.good
        job = random_token(_JOB_HEAD)
        fields = job_layout(self.task).fields
        body = job + job_layout(self.task).join({name: columns[name][good] for name, _ in fields}).tobytes()
        message = seal(JOB, self.task, key, body)
        with self.store.transaction() as database:
            # What is malformed here goes no further: to the helper, whose share is another, it could look valid.
            bad = [(serial,) for (serial, _), well in zip(rows, good, strict=True) if not well]
            database.executemany("DELETE FROM report WHERE serial = ?", bad)
            self.store.drop("invalid", len(bad))
            database.execute(
                "INSERT INTO job (id, low, high, seeds, message, done) VALUES (?, ?, ?, ?, ?, 0)",
                (job, rows[0][0], rows[-1][0], state.seeds[good].tobytes(), message),
            )
        return True

    def take_answer(self, path: Path, outbox: Path) -> None:
        """Settle the job of an answer: count what both find valid."""
        body = read_sealed(path, ANSWER, self.task, self.keys.verify_key)
        job, layout = body[:_JOB_HEAD], answer_layout(self.task)
        jobs = self.store.rows("SELECT low, high, seeds, done FROM job WHERE id = ?", job)
        if not jobs:
            raise PolicyError(f"{path.name} answers a job that was never made.")
        low, high, seeds, done = jobs[0]
        if done:
            return
        rows = self.store.rows("SELECT body FROM report WHERE serial BETWEEN ? AND ? ORDER BY serial", low, high)
        columns = self.kept.split(self.kept.rows(b"".join(row[0] for row in rows)))
        n = len(rows)
        if len(body) != _JOB_HEAD + n * layout.width:
            raise PolicyError(
                f"{path.name} does not answer every report of its job; the helper has to answer it again."
            )
        answers = layout.split(layout.rows(body[_JOB_HEAD:]))
        if not np.array_equal(answers["id"], columns["id"]):
            raise PolicyError(f"{path.name} answers other reports than those of its job.")
        prio3, field = self.task.prio3, self.task.plan.circuit.field
        measurement, _ = field.decode(columns["input"][:, : self.task.plan.circuit.elements * field.size])
        kept_seeds = np.frombuffer(seeds, np.uint8).reshape(n, prio3.message_size)
        state = State(self.task.plan.circuit.truncate(measurement), kept_seeds, np.ones(n, np.bool_))
        counted = prio3.verify_next(state, answers["message"]) & (answers["verdict"][:, 0] == _COUNTED)
        with self.store.transaction() as database:
            self.add_counted(state, counted, numbers(columns["time"]), columns["id"])
            self.store.drop("invalid", int((~counted).sum()))
            database.execute("DELETE FROM report WHERE serial BETWEEN ? AND ?", (low, high))
            database.execute("UPDATE job SET done = 1, message = NULL, seeds = NULL WHERE id = ?", (job,))

    def take_query(self, path: Path, outbox: Path) -> None:
        """Release the leader's share of a batch, and ask the helper for its own."""
        body = read_sealed(path, QUERY, self.task, self.keys.query_key)
        if len(body) != 16:
            raise PolicyError(f"{path.name} is not a query.")
        low, high = int.from_bytes(body[:8], "little"), int.from_bytes(body[8:], "little")
        check_range(self.task, low, high)
        waiting = self.store.rows("SELECT count(*) FROM report WHERE win >= ? AND win < ?", low, high)
        if waiting[0][0]:
            raise PolicyError(
                f"{waiting[0][0]} reports from {low} to {high} wait for the helper: give it the jobs, then its answers "
                "to this command."
            )
        batch = fixed_batch(self.store, low, high)
        share = released_share(self.store, self.keys, batch)
        write_whole(outbox / f"{low}-{high}.batch", seal(BATCH, self.task, self.keys.verify_key, batch.head))
        write_whole(outbox / f"{low}-{high}.leader.share", share)


class Helper(_Aggregator):
    """The other aggregator."""

    suffixes = (".job", ".batch")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "helper", 1 << 62)  # that a window has begun is the leader's to see

    def take_job(self, path: Path, outbox: Path) -> None:
        """Verify and count the reports of a job, once, and answer; the same job again gets the same answer."""
        body = read_sealed(path, JOB, self.task, self.keys.verify_key)
        job, layout, digest = body[:_JOB_HEAD], job_layout(self.task), hashlib.sha256(body).digest()
        if len(body) < _JOB_HEAD or (len(body) - _JOB_HEAD) % layout.width:
            raise PolicyError(f"{path.name} is not a job.")
        known = self.store.rows("SELECT digest, message FROM job WHERE id = ?", job)
        if known and known[0][0] != digest:
            raise PolicyError(f"{path.name} is another job under the name of one that was answered.")
        answer = known[0][1] if known else self._answer(job, digest, layout.split(layout.rows(body[_JOB_HEAD:])))
        target = outbox / f"{job.hex()}.answer"
        if not target.exists():
            write_whole(target, answer)

    def _answer(self, job: bytes, digest: bytes, columns: dict[str, Bytes]) -> bytes:
        prio3 = self.task.prio3
        inputs, opened = self.opened("helper", columns, prio3.input_size(1))
        state, verifier = prio3.verify_init(self.keys.verify_key, 1, columns["id"], columns["public"], inputs)
        messages, valid = prio3.combine([columns["verifier"], verifier])
        valid &= prio3.verify_next(state, messages)
        times = numbers(columns["time"])
        with self.store.transaction() as database:
            good = opened.copy()
            self.store.drop("damaged", int((~opened).sum()))
            verdicts: dict[int, str] = {}
            for i in np.flatnonzero(good):
                reason = "damaged" if times[i] % self.task.window or times[i] >= 1 << 60 else ""
                reason = reason or verdicts.setdefault(times[i], self.verdict_of_window(times[i]))
                # An id is used up by the first attempt, valid or not: nobody may try a report's proof twice.
                if not reason and not self.store.take_id(columns["id"][i].tobytes()):
                    reason = "replayed"
                if reason:
                    good[i] = False
                    self.store.drop(reason)
            self.store.drop("invalid", int((good & ~valid).sum()))
            good &= valid
            self.add_counted(state, good, times, columns["id"])
            verdict = np.where(good, _COUNTED, _REFUSED).astype(np.uint8).reshape(-1, 1)
            said = {
                "id": columns["id"],
                "verdict": verdict,
                "message": np.where(good[:, None], messages, 0).astype(np.uint8),
            }
            answer = seal(ANSWER, self.task, self.keys.verify_key, job + answer_layout(self.task).join(said).tobytes())
            database.execute("INSERT INTO job (id, digest, message, done) VALUES (?, ?, ?, 1)", (job, digest, answer))
        return answer

    def take_batch(self, path: Path, outbox: Path) -> None:
        """Release the helper's share of a batch that the leader counted likewise."""
        body = read_sealed(path, BATCH, self.task, self.keys.verify_key)
        if len(body) != 24 + 32:
            raise PolicyError(f"{path.name} names no batch.")
        low, high, count = (int.from_bytes(body[i : i + 8], "little") for i in (0, 8, 16))
        batch = fixed_batch(self.store, low, high, (count, body[24:]))
        write_whole(outbox / f"{low}-{high}.helper.share", released_share(self.store, self.keys, batch))
