"""An audit of the service's clock: two worlds, apart by one person's rows, and a client who tries to tell which.

In one world a person has no rows, in the other millions, so that a run takes another time. The client does what clients
can: he asks, asks again, asks as somebody else, cancels, goes away, looks at checks, histories, receipts, events,
counts and lines of the log, lives through a restart; and notes what he is told, and when. Until something is told that
may differ (whether a question was answered), two worlds must tell him the same.

    attack(worlds)          worlds whose clock the audit moves: what they say must be equal, word for word
    compare(one, two)       times that were measured: the exact law of the largest difference of shares, at .99

Ids are random and differ: they are numbered as they come. Noise is not looked at here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import zip_longest
from typing import Any, Final, Protocol, TypeAlias

from hubbub.errors import HubbubError

__all__ = ["SCRIPTS", "Client", "Difference", "attack", "compare", "plain", "resolution", "told_apart"]

_ID: Final = re.compile(r"\b([0-9a-f]{64}|[0-9a-f]{32}|[0-9a-f]{12})\b")
_TIMES: Final = (0.1, 0.5, 1.0, 3.0, 4.9, 5.0, 5.2, 7.0, 9.9, 10.0, 12.0)
_AT: Final = {"epsilon": "0.1"}


class Client(Protocol):
    """What clients of a service can do, and the audit with its clock. Each act returns what was told, as JSON."""

    def until(self, seconds: float) -> None:
        """Wait until so many seconds after the beginning."""

    def ask(self, who: str, sql: str, options: Mapping[str, Any], key: str) -> Any:
        """Ask a question."""

    def check(self, who: str, sql: str, options: Mapping[str, Any]) -> Any:
        """What a question would cost."""

    def see(self, what: str, who: str, charge: str) -> Any:
        """Look at "answer", "history", "receipt", "events", "metrics", "log"."""

    def leave(self, how: str, who: str, charge: str) -> Any:
        """ "cancel", or "disconnect"."""

    def restart(self) -> None:
        """Whoever runs the service starts it again."""


Script: TypeAlias = "Callable[[Client, str], list[Any]]"


@dataclass(frozen=True)
class Difference:
    """What told two worlds apart. script: what the client did. place: which of the things he was told."""

    script: str
    place: int
    one: str
    two: str


def plain(told: Any) -> str:
    """What was told, with ids numbered as they come."""
    names: dict[str, str] = {}
    text = json.dumps(told, sort_keys=True, default=str)
    return _ID.sub(lambda match: names.setdefault(match[0], f"#{len(names)}"), text)


def _tried(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except HubbubError as error:
        return [type(error).__name__, str(error)]


def _state(told: Any) -> Any:
    """What was told without the answer's own numbers."""
    return {k: v for k, v in told.items() if k != "answer"} if isinstance(told, dict) else told


def _other(sql: str, k: int) -> str:
    """Another question: the text has a number in it."""
    return sql.replace("49", str(k + 5))


def _seen(what: str) -> Script:
    def script(client: Client, sql: str) -> list[Any]:
        one = client.ask("ada", sql, _AT, "a")
        told: list[Any] = [_state(one)]
        for at in _TIMES:
            client.until(at)
            told.append([at, _state(_tried(lambda: client.see(what, "ada", one["id"])))])
        return told

    return script


def _stored(client: Client, sql: str) -> list[Any]:
    client.ask("ada", sql, _AT, "a")
    told = []
    for at in _TIMES:
        client.until(at)
        for who in ("ada", "bob"):
            price = client.check(who, sql, _AT)
            told.append([at, who, price["stored"], price["cost"], price["left"]])
    return told


def _second(client: Client, sql: str) -> list[Any]:
    client.ask("ada", sql, _AT, "a")
    told: list[Any] = []
    for k, at in enumerate((0.5, 3.0, 4.9)):
        client.until(at)
        told.append(_state(client.ask(f"bob{k}", sql, _AT, "b")))
    for at in _TIMES:
        if at > 4.9:
            client.until(at)
            told += [_state(client.see("answer", f"bob{k}", told[k]["id"])) for k in range(3)]
    return told


def _leaving(how: str) -> Script:
    def script(client: Client, sql: str) -> list[Any]:
        one = client.ask("ada", sql, _AT, "a")
        told: list[Any] = []
        for at in (1.0, 3.0, 6.0):
            client.until(at)
            told.append(_tried(lambda: client.leave(how, "ada", one["id"])))
            told.append(client.check("bob", sql, {"epsilon": "0.3"})["left"])
            told.append(_state(_tried(lambda: client.see("answer", "ada", one["id"]))))
        return told

    return script


def _chain(client: Client, sql: str) -> list[Any]:
    client.ask("ada", sql, _AT, "a")
    told, mine = [], []
    for k, at in enumerate((0.5, 3.0, 4.5)):
        client.until(at)
        mine.append(client.ask("bob", _other(sql, k), _AT, f"b{k}")["id"])
        told += [client.see("receipt", "bob", charge) for charge in mine]
    return told


def _restarted(client: Client, sql: str) -> list[Any]:
    one = client.ask("ada", sql, _AT, "a")
    client.until(3.0)
    client.restart()
    told: list[Any] = []
    for at in _TIMES:
        if at > 3.0:
            client.until(at)
            told.append([at, _state(client.see("answer", "ada", one["id"])), client.see("metrics", "ada", "")])
    return told


def _room(client: Client, sql: str) -> list[Any]:
    """As many questions as may wait, and then one more now and then."""
    for k in range(21):
        _tried(partial(client.ask, "ada", _other(sql, k), _AT, f"a{k}"))
    told = []
    for k, at in enumerate((0.5, 3.0, 4.9, 5.0, 5.1)):
        client.until(at)
        told.append(_state(_tried(partial(client.ask, "ada", _other(sql, 30 + k), _AT, f"b{k}"))))
    return told


def _failed(client: Client, sql: str) -> list[Any]:
    """Locks, incidents and refunds: three questions, and one more at every moment."""
    asked = [client.ask("ada", _other(sql, k), _AT, f"a{k}") for k in range(3)]
    told: list[Any] = [_state(one) for one in asked]
    for k, at in enumerate((*_TIMES, 15.0, 15.2, 17.0)):
        client.until(at)
        told.append([at, [_state(_tried(partial(client.see, "answer", "ada", one["id"]))) for one in asked]])
        told.append(client.check("bob", sql, {"epsilon": "0.9"})["left"])
        told.append(_state(_tried(partial(client.ask, "ada", _other(sql, 10 + k), _AT, f"c{k}"))))
    return told


def _after(client: Client, sql: str) -> list[Any]:
    """A question whose run does not end, and another's after it: of the first nothing is left when that one runs."""
    client.ask("ada", sql, _AT, "a")
    client.until(_TIMES[0])
    one = client.ask("bob", _other(sql, 0), _AT, "b")
    told: list[Any] = [_state(one)]
    for at in _TIMES[1:]:
        client.until(at)
        told.append([at, _state(client.see("answer", "bob", one["id"]))])
    return told


def _again(client: Client, sql: str) -> list[Any]:
    """The same request and the same question, sent again at every moment."""
    told: list[Any] = [_state(client.ask("ada", sql, _AT, "a"))]
    for at in _TIMES:
        client.until(at)
        told.append([at, _state(_tried(lambda: client.ask("ada", sql, _AT, "a")))])
        told.append(client.check("ada", sql, {"epsilon": "0.3"})["left"])
    told.append(_state(_tried(lambda: client.ask("ada", sql, _AT, "new"))))
    return [*told, client.check("ada", sql, {"epsilon": "0.3"})["left"]]


SCRIPTS: Final[Mapping[str, Script]] = {
    **{what: _seen(what) for what in ("answer", "history", "receipt", "events", "metrics", "log")},
    "stored": _stored,
    "second asker": _second,
    "cancel": _leaving("cancel"),
    "disconnect": _leaving("disconnect"),
    "chain": _chain,
    "restart": _restarted,
    "room": _room,
    "lock": _failed,
    "again": _again,
    "after": _after,
}
"""What the client does, by name."""


def attack(
    worlds: tuple[Callable[[], Client], Callable[[], Client]],
    sql: str,
    *,
    scripts: Mapping[str, Script] = SCRIPTS,
) -> list[Difference]:
    """Every script in both worlds, by a clock that the audit moves: what told them apart, if anything did.

    worlds: make a new one, of the first and of the second kind; in both the same submissions are answered. sql: a
    question with the number 49.
    """
    differences = []
    for name, script in scripts.items():
        told = [script(make(), sql) for make in worlds]
        differences += told_apart(name, *told)
    return differences


def told_apart(name: str, one: Sequence[Any], two: Sequence[Any]) -> list[Difference]:
    """The first thing that two worlds told differently, if any."""
    if plain(one) == plain(two):
        return []
    for place, (here, there) in enumerate(zip_longest(one, two)):
        if plain(one[: place + 1]) != plain(two[: place + 1]):
            return [Difference(name, place, plain(here), plain(there))]
    return [Difference(name, len(one), "", "")]


def compare(one: Sequence[float], two: Sequence[float], *, level: float = 0.99, tests: int = 1) -> bool:
    """Whether times measured in two worlds differ, at a level, among so many tests: Kolmogorov and Smirnov's.

    By the exact law of the largest difference of shares over all ways to deal these values to two worlds, ties
    included; of zeros and ones it is Fisher's exact test. No law of times is assumed, only that those of one world and
    those of the other come in any order where nothing tells them apart.
    """
    if not one or not two:
        return False
    largest = _largest(sorted((*((t, 0) for t in one), *((t, 1) for t in two))), len(one), len(two))
    return _chance(largest, len(one), len(two), _ends(sorted((*one, *two)))) <= (1 - level) / tests


def resolution(one: int, two: int, *, level: float = 0.99, tests: int = 1) -> float:
    """The least difference of shares that tells so many different times of each world apart; infinite where none does.

    >>> round(resolution(120, 120, tests=3), 3)
    0.233
    """
    low, high, ends = 0, math.lcm(one, two) if one and two else 0, range(1, one + two + 1)
    if not low < high or _chance(Fraction(1), one, two, ends) > (1 - level) / tests:
        return math.inf
    whole = high
    while high - low > 1:
        middle = (low + high) // 2
        if _chance(Fraction(middle, whole), one, two, ends) <= (1 - level) / tests:
            high = middle
        else:
            low = middle
    return high / whole


def _ends(values: Sequence[float]) -> list[int]:
    """After how many of the sorted values the next one is another."""
    return [k for k in range(1, len(values) + 1) if k == len(values) or values[k] != values[k - 1]]


def _largest(dealt: Sequence[tuple[float, int]], one: int, two: int) -> Fraction:
    """The largest difference of shares. dealt: the sorted values, each with its world."""
    seconds = [0]
    for _, world in dealt:
        seconds.append(seconds[-1] + world)
    return max(abs(Fraction(k - seconds[k], one) - Fraction(seconds[k], two)) for k in _ends([t for t, _ in dealt]))


def _chance(largest: Fraction, one: int, two: int, ends: Iterable[int]) -> float:
    """P(a difference as large), where `one` of the values are dealt to the first world, any of them alike: the share of
    paths from (0, 0) to (one, two) that leave the band |i two - j one| < largest one two at one of `ends`.
    """
    bound, looked = largest * one * two, set(ends)
    inside = {0: 1.0}  # by i, of the paths with i + j = k that did not leave
    for k in range(one + two):
        left, ahead = one + two - k, dict[int, float]()
        for i, chance in inside.items():
            ahead[i + 1] = ahead.get(i + 1, 0.0) + chance * (one - i) / left
            ahead[i] = ahead.get(i, 0.0) + chance * (two - (k - i)) / left
        inside = {
            i: c for i, c in ahead.items() if c and (k + 1 not in looked or abs(i * two - (k + 1 - i) * one) < bound)
        }
    return max(0.0, 1.0 - sum(inside.values()))
