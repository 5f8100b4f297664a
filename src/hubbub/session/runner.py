"""A process that holds the rows and no ledger: it executes orders that another process has opened and will close.

    order = door.open(request, sent=True)           here: ledger and key
    outcome = Runner(tables).execute(order, ...)    there: rows and noise; it waits for the step to 'drawing'
    door.record(outcome); door.close(outcome)       here again

The runner makes the request anew from the order's own words, and runs it only if it is, by its key, the question that
was charged, about rows of the version that was charged. So whoever takes a runner over can neither charge anything nor
answer another order; he can of course read the rows that the runner holds.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hubbub.engines.base import Elsewhere
from hubbub.errors import InternalError, PolicyError
from hubbub.ledger.budget import Budget
from hubbub.session.check_bounds import AskedBounds
from hubbub.session.choice import ask_choice
from hubbub.session.data import OpenTables
from hubbub.session.model import ask_evaluation, ask_model, model_again
from hubbub.session.options import Options, given_in
from hubbub.session.prepare import PricedStatement
from hubbub.session.run import Order, Outcome, Request, execute
from hubbub.session.statement import request_of
from hubbub.session.whole_rows import ask_marginals, ask_synthesis
from hubbub.tables.declare import PrivateTable, PublicTable

if TYPE_CHECKING:
    from hubbub.noise import Bits

__all__ = ["Runner", "request_again"]


class Runner:
    """Declared tables, without a ledger. tables: as `Session` takes them, and declared in the same way.

    Raises PolicyError for a source that is missing or declared wrongly.
    """

    def __init__(self, tables: Mapping[str, PrivateTable | PublicTable], *, _bits: Bits | None = None) -> None:
        self._data = OpenTables(tables)
        self._bits = _bits
        self._begun, self._lock = set[str](), threading.Lock()  # the charges that were drawn, or began to be

    def execute(self, order: Order, *, drawing: Callable[[], None]) -> Outcome:
        """Read and draw what an order says, once. drawing: called before the first draw, and waited for: the process
        that holds the ledger records there that nothing may be drawn again for this charge, and raises where something
        was. Without it an order that is sent twice would be drawn twice, for one charge.

        Raises PolicyError where the rows are others than those that were charged: nothing was drawn then. InternalError
        for an order that this runner began to draw before.
        """
        for name, mark in order.marks.items():
            if self._data.mark(name) != mark:
                raise PolicyError(
                    f"table {name!r}: the rows have changed since the charge. Nothing was drawn; ask again."
                )

        def once() -> None:
            with self._lock:
                if order.charge in self._begun:
                    raise InternalError(f"the charge {order.charge} pays for one draw, and it was drawn")
                self._begun.add(order.charge)
            drawing()

        return execute(order, request_again(order, self._data), self._data, drawing=once, bits=self._bits)

    def limit(self, seconds: float) -> None:
        """From here on, have an engine that is elsewhere end what it runs so many seconds from now."""
        engine = self._data.engine
        if isinstance(engine, Elsewhere):
            engine.limit(seconds)

    def alone(self) -> None:
        """End what an earlier process of this one's name left running elsewhere, and wait until it has ended.

        Raises PolicyError where it does not end.
        """
        engine = self._data.engine
        if isinstance(engine, Elsewhere):
            engine.end_earlier()

    def close(self) -> None:
        """Close the engine."""
        self._data.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def request_again(order: Order, data: OpenTables) -> Request:
    """The request of an order, made anew where its rows are.

    Raises InternalError for a kind of question that this version does not know; what `Session.sql` raises.
    """

    def budget(space: str) -> Budget:
        if space != order.space:
            raise InternalError(f"the order {order.charge} is about the unit space {order.space!r}, not {space!r}")
        return order.budget

    from hubbub.learning import load

    ask = dict(order.ask())
    match order.kind:
        case "sql":
            options = Options.from_wire(ask["options"])
            asked = data.ask(ask["sql"], options, budget, dt.datetime.fromisoformat(ask["now"]))
            if not isinstance(asked, PricedStatement):
                raise InternalError(f"the order {order.charge} is about public tables alone")
            return request_of(asked.knowing(ask.get("known", {})), data, options)
        case "bounds":
            at = dt.datetime.fromisoformat(ask["now"])
            return AskedBounds.of(data, ask["sql"], given_in(ask["options"]), budget, at).request(data)
        case "synthesis":
            return ask_synthesis(data, budget, **ask).request(data)
        case "model":
            return ask_model(data, budget, model_again(ask.pop("model")), ask.pop("table"), **ask).request(data)
        case "choice":
            models = [model_again(written) for written in ask.pop("models")]
            return ask_choice(data, budget, models, ask.pop("table"), **ask).request(data)
        case "evaluation":
            return ask_evaluation(data, budget, load(ask.pop("model")), ask.pop("table"), **ask).request(data)
        case "marginals":
            return ask_marginals(data, budget, ask.pop("table"), ask.pop("marginals"), **ask).request(data)
    raise InternalError(f"the order {order.charge} is of the kind {order.kind!r}, which this version does not know")
