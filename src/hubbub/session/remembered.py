"""Statements that were read, planned and priced, so that the same text is not worked out twice.

What a statement means and costs follows from its text, its options, the declarations and the budget. So it is kept by
these, and where anything else goes into it, it is not kept: now(), public rows (their file may change, and random() may
stand among them), values that are given beside the text. What the ledger says (what is left, what is stored) is never
kept, and the engine still looks at its sources.

Each analyst has his own: how long planning takes tells him what he asked himself, and nothing of what others asked.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Final

from hubbub.ledger.budget import Budget
from hubbub.session.options import Options
from hubbub.session.prepare import PricedStatement

__all__ = ["Remembered", "key_of"]

_STATEMENTS: Final = 16
"""So many are kept of one analyst, those asked last."""

_ANALYSTS: Final = 256

_LONGEST: Final = 20_000
"""Characters of a text, and groups of an answer, beyond which nothing is kept: it would hold much memory."""

_NONE: Final = Options.params


def key_of(sql: str, options: Options, more: Mapping[str, int | None]) -> str | None:
    """The text with all that is asked beside it; None where that is not to be kept."""
    if len(sql) > _LONGEST or options.params is not _NONE or options.keys is not None:  # they may be anything yet
        return None
    return json.dumps([sql, options.to_wire(), dict(more)], sort_keys=True)


class Remembered:
    """The statements that each analyst asked last. Safe to use from several threads."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, OrderedDict[str, tuple[Budget, PricedStatement]]] = OrderedDict()
        self._lock = Lock()

    def find(
        self, analyst: str, key: str, budget: Callable[[str], Budget], now: dt.datetime | None
    ) -> PricedStatement | None:
        """What was kept, if the budget is what it was. now: the moment at which it is asked again."""
        with self._lock:
            own = self._of.get(analyst)
            if own is None or key not in own:
                return None
            own.move_to_end(key)
            held, asked = own[key]
        if budget(asked.space) != held:
            return None
        return replace(asked, now=now or dt.datetime.now(dt.UTC).replace(tzinfo=None))

    def keep(self, analyst: str, key: str, budget: Callable[[str], Budget], asked: PricedStatement) -> None:
        """Keep a statement, if it follows from what it is kept by alone."""
        many = any((plan.group_count or 0) > _LONGEST for plan in asked.price.plans)
        meets = any(asked.leaves(question) for question in range(len(asked.plans)))
        if asked.dated or asked.statement.public or meets or many:
            return
        entry = budget(asked.space), asked
        with self._lock:
            own = self._of.setdefault(analyst, OrderedDict())
            own[key] = entry
            own.move_to_end(key)
            self._of.move_to_end(analyst)
            while len(own) > _STATEMENTS:
                own.popitem(last=False)
            while len(self._of) > _ANALYSTS:
                self._of.popitem(last=False)
