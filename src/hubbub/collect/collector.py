"""The collector: asks for a batch, and adds the two aggregators' noisy shares.

It learns the noisy totals and the number of reports. With one of the aggregators it learns, of one report, no more than
the task's event says, if the other one is honest. Nobody proves that an aggregator added up what it says it did: a
lying one can move the total as it likes, unseen, and it can harm nobody's privacy by that.
"""

from __future__ import annotations

from pathlib import Path

from hubbub.collect.batches import check_range
from hubbub.collect.private import PrivateTotal
from hubbub.collect.task import Keys, read_task, write_whole
from hubbub.collect.wire import QUERY, SHARE, box_info, number, open_box, read_sealed, seal
from hubbub.errors import PolicyError

__all__ = ["ask", "collect"]

_HEAD = 1 + 24 + 32


def ask(folder: Path, low: int, high: int, outbox: Path) -> Path:
    """Write the query for the batch from `low` to `high`, in seconds since 1970.

    Raises:
        PolicyError: the range is not of whole windows.
    """
    task = read_task(folder / "task.json")
    keys = Keys.read(folder, "collector", task)
    check_range(task, low, high)
    path = outbox / f"{low}-{high}.query"
    write_whole(path, seal(QUERY, task, keys.query_key, number(low) + number(high)))
    return path


def collect(folder: Path, shares: list[Path]) -> PrivateTotal:
    """The total of a batch from the leader's and the helper's share, in any order.

    Raises:
        PolicyError: they are not one share of each for the same reports, or are for somebody else.
    """
    task = read_task(folder / "task.json")
    keys = Keys.read(folder, "collector", task)
    by_role: dict[int, tuple[bytes, list[int]]] = {}
    for path in shares:
        body = read_sealed(path, SHARE, task, keys.query_key)
        role, head, box = body[:1], body[1:_HEAD], body[_HEAD:]
        if role not in (b"\0", b"\1") or len(body) < _HEAD:
            raise PolicyError(f"{path.name} is nobody's share.")
        name = b"helper" if role == b"\1" else b"leader"
        plain = open_box(keys.private, box, box_info(task, "collector", name, head))
        if plain is None:
            raise PolicyError(f"{path.name} cannot be opened: it was changed, or is for another collector.")
        if role[0] in by_role:
            raise PolicyError(f"{path.name} is a second share of the {name.decode()}; give one of each.")
        by_role[role[0]] = head, task.prio3.decode_aggregate(plain)
    if set(by_role) != {0, 1}:
        raise PolicyError("give two shares: the leader's and the helper's.")
    if by_role[0][0] != by_role[1][0]:
        raise PolicyError(
            "the two shares are not of the same reports: another range, count or checksum. One of the aggregators was "
            "asked for another batch, or does not do what it says."
        )
    reports = int.from_bytes(by_role[0][0][16:24], "little")
    return task.plan.total([by_role[0][1], by_role[1][1]], reports)
