"""The release of a batch by one aggregator: closed, charged, noised once, and the same share ever after.

1. One transaction fixes the batch: its windows, reports and sum. From here on no report joins these windows, and no
   other batch may share one of them: an id that was counted once is in no second batch, for any question.
2. The aggregator's own ledger is charged for it: `Group(loss, reports_per_client)`.
3. Noise is drawn and the noisy share, boxed for the collector, is written to the state.
4. The charge is recorded as answered; only then is the share written to a file, every time it is asked for.

After a kill between 2 and 4 the charge is taken over, and the share of step 3, if there is one, is used: so noise is
never drawn twice for a share that may have been seen. A kill within step 4 may cost a second charge, no second draw.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from hubbub.accounting import cost, pure_epsilon, to_json
from hubbub.collect.store import Store
from hubbub.collect.task import Keys, Task
from hubbub.collect.wire import SHARE, box_info, number, seal, seal_box
from hubbub.errors import PolicyError
from hubbub.ledger.store import Charge, Ledger

__all__ = ["SPACE", "Batch", "check_range", "fixed_batch", "released_share"]

SPACE: Final = "clients"
"""The unit space of an aggregator's ledger."""

_MAX_FAILURES: Final = 1 << 20  # a kill says nothing here: no row is read, and the noise does not depend on any


@dataclass(frozen=True)
class Batch:
    """A batch that is fixed."""

    serial: int
    low: int
    high: int
    count: int
    checksum: bytes
    total: bytes

    @property
    def head(self) -> bytes:
        """Its windows, reports and checksum, as they are sent."""
        return number(self.low) + number(self.high) + number(self.count) + self.checksum


def check_range(task: Task, low: int, high: int) -> None:
    """See that a range is of whole windows.

    Raises:
        PolicyError: it is not.
    """
    if not 0 <= low < high < 1 << 61 or low % task.window or high % task.window:
        raise PolicyError(
            f"the batch from {low} to {high} was asked; a batch is of whole windows of {task.window} seconds, from the "
            "start of one to the end of one."
        )


def _found(store: Store, low: int, high: int) -> Batch | None:
    query = "SELECT serial, low, high, count, checksum, total FROM batch WHERE low < ? AND high > ?"
    rows = [Batch(*row) for row in store.rows(query, high, low)]
    same = [batch for batch in rows if (batch.low, batch.high) == (low, high)]
    if rows and not same:
        raise PolicyError(
            f"some windows from {low} to {high} were released in another batch; a report is in one batch only."
        )
    return same[0] if same else None


def fixed_batch(store: Store, low: int, high: int, expected: tuple[int, bytes] | None = None) -> Batch:
    """The batch of these windows, fixed now if it is not yet. expected: the count and checksum it has to have.

    Raises:
        PolicyError: the windows overlap another batch, it is too small, or not the expected one. Nothing is fixed.
    """
    task = store.task
    check_range(task, low, high)
    with store.transaction() as database:
        batch = _found(store, low, high)
        if batch is None:
            rows = store.rows("SELECT count, checksum, total FROM win WHERE start >= ? AND start < ?", low, high)
            count, checksum = sum(row[0] for row in rows), 0
            for row in rows:
                checksum ^= int.from_bytes(row[1], "little")
            zero = [0] * task.plan.circuit.outputs
            total = task.prio3.merge([zero, *(task.prio3.decode_aggregate(row[2]) for row in rows)])
            batch = Batch(0, low, high, count, checksum.to_bytes(32, "little"), task.prio3.encode_aggregate(total))
        if batch.count < task.min_batch:
            raise PolicyError(
                f"the batch from {low} to {high} has {batch.count} reports, and the task asks for {task.min_batch}; "
                "wait for more, or take more windows."
            )
        if expected is not None and expected != (batch.count, batch.checksum):
            raise PolicyError(
                f"the leader counted {expected[0]} reports from {low} to {high}, and we {batch.count}, or not the same "
                "ones: jobs are under way, or one of us does not do what it says. No share leaves."
            )
        task.plan.checked_count(batch.count)
        if not batch.serial:
            row = (low, high, batch.count, batch.checksum, batch.total)
            database.execute("INSERT INTO batch (low, high, count, checksum, total) VALUES (?, ?, ?, ?, ?)", row)
    fixed = _found(store, low, high)
    assert fixed is not None
    return fixed


def _box(store: Store, keys: Keys, batch: Batch) -> bytes:
    """The noisy share for the collector: drawn now, if it never was."""
    (kept,) = store.rows("SELECT box FROM batch WHERE serial = ?", batch.serial)
    if kept[0] is not None:
        return bytes(kept[0])
    task = store.task
    share = task.prio3.encode_aggregate(task.plan.noisy(task.prio3.decode_aggregate(batch.total)))
    info = box_info(task, "collector", keys.role.encode(), batch.head)
    box = seal_box(task.keys["collector"], share, info)
    with store.transaction() as database:
        database.execute("UPDATE batch SET box = ? WHERE serial = ?", (box, batch.serial))
    return box


def _charge(task: Task, batch: Batch) -> Charge:
    """What the ledger records of a batch."""
    event = task.plan.loss_of(task.reports_per_client)
    price = cost(event)
    epsilon = pure_epsilon(event)
    details = {
        "neighbours": "replace",
        "unit": f"a client with up to {task.reports_per_client} reports in a batch; the number of reports is public",
        "against": "the other aggregator and the collector together, if this one is honest",
        "assumes": "TurboSHAKE128 expands seeds like a random oracle; HPKE with X25519 hides the shares on their way",
        "reports": batch.count,
    }
    return Charge(
        space=SPACE,
        dataset="reports",
        analyst="collector",
        question_key=f"collect {task.id.hex()} {batch.low} {batch.high}",
        sql=f"{task.plan.circuit.name} of the reports from {batch.low} to {batch.high}",
        epsilon=epsilon if epsilon is not None else price.rho,
        event=to_json(event),
        details=json.dumps(details, sort_keys=True),
        cost=price,
    )


def _charged(ledger: Ledger, task: Task, batch: Batch) -> str | None:
    """The charge of a batch, this process's to answer; None if it was answered before."""
    asked = _charge(task, batch)
    known = ledger.record.find_release(space=SPACE, question_key=asked.question_key, at_least=asked.epsilon)
    if known is not None:
        return None
    again = ledger.charges.resume(asked)
    return again if again is not None else ledger.charges.charge(asked)


def released_share(store: Store, keys: Keys, batch: Batch) -> bytes:
    """The message with this aggregator's noisy share: charged before, drawn once.

    Raises:
        BudgetError: the ledger does not hold the charge. PolicyError: it cannot record it.
    """
    task, folder = store.task, store.folder
    with Ledger.open(
        folder / "ledger.db",
        budgets={},
        create=False,
        max_failures=_MAX_FAILURES,
        max_failures_all=_MAX_FAILURES,
    ) as ledger:
        charge = _charged(ledger, task, batch)
        if charge is None and store.rows("SELECT 1 FROM batch WHERE serial = ? AND box IS NULL", batch.serial):
            raise PolicyError(
                f"the ledger says that this batch was released, and {folder / 'state.db'} does not hold its share: the "
                "file is older than the ledger. Put the newest one back; no second draw of noise leaves."
            )
        box = _box(store, keys, batch)
        if charge is not None:
            ledger.charges.advance(charge, "drawing")
            ledger.charges.store(charge, json.dumps({"reports": batch.count, "from": batch.low, "to": batch.high}))
    body = (b"\0" if keys.role == "leader" else b"\1") + batch.head + box
    return seal(SHARE, task, keys.query_key, body)
