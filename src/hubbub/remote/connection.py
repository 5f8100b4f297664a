"""A connection to a service: what `Session` offers, asked over the wire.

`check`, `sql`, `table` and what is built of it, `plan`, `history`, `receipt`, `tables` and `remaining` are a session's,
with the same arguments, the same results and the same refusals. An answer comes at its release, so `sql` waits; `ask`
does not, and several questions that were asked ahead are waited for together. What a connection cannot is refused, with
the reason (`NOT_HERE`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Unpack
from urllib.parse import quote

from hubbub.arguments import an_amount
from hubbub.errors import EngineError, PolicyError, QueryError
from hubbub.keywords import named
from hubbub.remote.not_here import NOT_HERE, refuse
from hubbub.remote.wire import Wire, understood
from hubbub.session.options import AskOptions, Options, takes_options

if TYPE_CHECKING:
    import ssl

    from hubbub.answer.release import Release
    from hubbub.ledger.budget import Budget, EpsilonLike
    from hubbub.session.check import Check
    from hubbub.session.check_bounds import BoundsCheck
    from hubbub.session.shown import DeclaredTables, History
    from hubbub.verbs import Rows

__all__ = ["Connection", "Pending", "connect"]

_WAIT: Final = 50.0  # seconds of one request that waits for a release
_PAUSE: Final = 0.5
_OTHER: Final = {
    "answer": "no answer of rows: it was asked about limits, with check_bounds; ask that again, it is free",
    "bounds": "an answer, and was not asked about limits",
}
_HELD: Final = {
    "waiting": "this question waits for a steward's yes; ask later: .answer({id!r}).",
    "granted": "this question got a steward's yes, and is asked now; ask later: .answer({id!r}). Or ask it anew: what "
    "is stored needs no yes.",
    "declined": "a steward declined this question: {reason}",
    "withdrawn": "this question was taken back, and is not asked. Nothing was charged.",
}
"""What a question is that has no place in the schedule: there is nothing to wait for but people."""
_STATES: Final = {"asked": "charged", "answered": "stored"}


@named
def connect(
    url: str, *, token: str, patience: float = 60.0, purpose: str | None = None, context: ssl.SSLContext | None = None
) -> Connection:
    """A connection to the service at `url`, as the person whose token this is.

    patience: seconds to wait where as many questions wait as may, or more are checked than may. purpose: what is asked
    for, at most 200 characters; it stands with each charge. context: for TLS; by default Python's own.

    Raises PolicyError for what is not an address, where nobody answers, and where the token is not known.
    """
    return Connection(Wire(url, token, patience=patience, context=context), purpose=purpose)


@dataclass(frozen=True, eq=False)
class Pending:
    """A question that was asked. id: of the question; release_at: when it is told, None for what is told already."""

    id: str | None
    release_at: datetime | None
    _connection: Connection
    _told: Mapping[str, Any]

    def answer(self) -> Release:
        """Its answer, waited for.

        Raises EngineError where there is none.
        """
        return self._connection.whole(self._told)


class Connection:
    """Asks a service. Build it with `connect`."""

    def __init__(self, wire: Wire, *, purpose: str | None = None) -> None:
        self.wire, self._purpose = wire, purpose
        self._me: Mapping[str, Any] = wire.get("/me")
        self._known: Mapping[str, Any] | None = None

    # -- asking -------------------------------------------------------------------------------------------------

    @takes_options
    def check(self, sql: str, **options: Unpack[AskOptions]) -> Check:
        """What a question would cost and how good its answer would be; reads no rows, charges nothing.

        Raises what `Session.check` raises.
        """
        from hubbub.session.check import Check

        told = self.wire.post("/check", {"sql": sql, "options": _sent(options)})
        with understood():
            return Check.from_wire({name: value for name, value in told.items() if name != "answer_time"})

    @takes_options
    def sql(
        self, sql: str, *, fresh: bool = False, idempotency_key: str | None = None, **options: Unpack[AskOptions]
    ) -> Release:
        """Ask, and wait for the release. The arguments are those of `Session.sql`.

        Raises what `Session.sql` raises; PolicyError for `fresh`.
        """
        return self.ask(sql, fresh=fresh, idempotency_key=idempotency_key, **options).answer()

    @takes_options
    def ask(
        self, sql: str, *, fresh: bool = False, idempotency_key: str | None = None, **options: Unpack[AskOptions]
    ) -> Pending:
        """Ask, and do not wait: `answer()` of what is returned does."""
        if fresh is not False:
            refuse("fresh=True")
        body = {"sql": sql, "options": _sent(options), **self._for()}
        return self._pending(self.wire.post("/ask", body, key=_name(idempotency_key)))

    def check_bounds(
        self,
        sql: str,
        *,
        epsilon: EpsilonLike,
        at: EpsilonLike | None = None,
        fresh: bool = False,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> BoundsCheck:
        """Buy how much the limits of a question leave out, and wait for it. The arguments are those of
        `Session.check_bounds`.

        Raises what `Session.check_bounds` raises; PolicyError for `fresh`.
        """
        from hubbub.session.check_bounds import BoundsCheck

        if fresh is not False:
            refuse("fresh=True")
        asked = {"sql": sql, "options": _sent({**options, "epsilon": epsilon}), **self._for()}
        body = asked if at is None else {**asked, "at": str(an_amount(at, "at"))}
        told = self.wire.post("/bounds", body, key=_name(idempotency_key))
        whole = self._waited(told, "bounds")
        with understood():
            return BoundsCheck.from_wire(whole["bounds"])

    def plan(self, questions: Iterable[tuple[str, EpsilonLike]]) -> list[Release]:
        """Ask several questions that were fixed in advance: all are charged as one, or none is.

        Raises what `Session.plan` raises.
        """
        from hubbub.session.plan import pairs

        asked = [{"sql": sql, "options": _sent({"epsilon": epsilon})} for sql, epsilon in pairs(questions)]
        told = self.wire.post("/plan", {"questions": asked, **self._for()}, key=_name(None))
        with understood():
            each = list(told["questions"])
        return [self.whole(one) for one in each]

    def answer(self, question: str) -> Release:
        """The answer of a question by its id, waited for: one's own, or another's that was read.

        Raises EngineError where there is none; PolicyError for what is not one's own.
        """
        return self.whole({"id": question, "state": "asked"})

    def refined(self, question: str, epsilon: EpsilonLike) -> Release:
        """The answer of a question made better by a second draw (`Release.refine`)."""
        body = {"epsilon": str(epsilon), **self._for()}
        return self.whole(self.wire.post(f"/answers/{quote(question, safe='')}/refine", body, key=_name(None)))

    def table(self, name: str) -> Rows:
        """A table to ask about in Python: `filter`, `group_by`, `agg`, then `check` or `run`.

        Raises QueryError, when it is asked, for a table that is unknown.
        """
        from hubbub.arguments import a_name
        from hubbub.verbs import rows_of

        info = self.tables.catalog.get(a_name(name, "table"))
        return rows_of(
            self,
            name,
            columns=list(info.columns) if info is not None else None,
            unit=info.unit if info is not None else None,
            each_row=info is not None and info.private and info.unit is None,
            declared=dict(info.declaration.columns) if info is not None and info.private else None,
        )

    # -- what is told -------------------------------------------------------------------------------------------

    def told_of(self, question: str, *, level: float | None = None, wait: float | None = None) -> Mapping[str, Any]:
        """What is told of a question now, or within so many seconds."""
        told: Mapping[str, Any] = self.wire.get(f"/answers/{quote(question, safe='')}", level=level, wait=wait)
        return told

    def whole(self, told: Mapping[str, Any]) -> Release:
        """The answer of what was told of a question, waited for."""
        from hubbub.remote.answers import release_of

        whole = self._waited(told, "answer")
        with understood():
            return release_of(self, whole)

    def _waited(self, told: Mapping[str, Any], part: str) -> Mapping[str, Any]:
        """What is told of a question once it has this part."""
        at_once = False
        while (question := _without(told, part)) is not None:
            if at_once:  # it did not wait there, so it is waited here
                time.sleep(_PAUSE)
            began = time.monotonic()
            told = self.told_of(question, wait=_WAIT)
            at_once = time.monotonic() - began < _PAUSE
        return told

    def history(self) -> History:
        """What one asked, and what of others' one read, oldest first. Others' charges are not told."""
        from hubbub.session.shown import History

        told = self.wire.get("/history")
        with understood():
            return History([_entry(self.analyst, each) for each in told])

    def receipt(self, charge_id: str) -> dict[str, Any]:
        """What a charge asked, ran and cost, and where the ledger's chain stood at its release.

        Raises PolicyError for a charge that is not one's own.
        """
        from hubbub.arguments import a_name

        told = self.wire.get(f"/answers/{quote(a_name(charge_id, 'receipt'), safe='')}/receipt")
        with understood():
            return dict(told)

    @property
    def tables(self) -> DeclaredTables:
        """The tables by name, as they are declared: who is protected, columns, kinds, ranges, values."""
        from hubbub.remote.tables import declared_tables

        if self._known is None:
            self._known = self.wire.get("/tables")
        with understood():
            return declared_tables(self._known)

    @property
    def analyst(self) -> str:
        """Who asks: the person of the token."""
        with understood():
            return str(self._me["name"])

    @property
    def remaining(self) -> Fraction:
        """What is left of the joint budget, exactly; with several unit spaces, of the one that has least left."""
        told = self.wire.get("/budget")
        with understood():
            return Fraction(told["left"])

    @property
    def budget(self) -> Budget:
        """The joint budget."""
        from hubbub.ledger.budget import Budget

        told = self.wire.get("/budget")
        with understood():
            (first, *_) = told["spaces"]
            return Budget(first["epsilon"], first["delta"])

    # -- what is not here ---------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> NoReturn:
        if name in NOT_HERE:
            refuse(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def close(self) -> None:
        """Hang up."""
        self.wire.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Connection({self.wire.url!r}, analyst={self.analyst!r})"

    def __reduce__(self) -> str:
        raise PolicyError("a connection holds a token and cannot be pickled; connect in each process.")

    def _for(self) -> dict[str, str]:
        return {} if self._purpose is None else {"purpose": self._purpose}

    def _pending(self, told: Mapping[str, Any]) -> Pending:
        with understood():
            at = None if told["state"] == "answered" or "release_at" not in told else told["release_at"]
            comes = None if at is None else datetime.fromisoformat(at).astimezone(UTC)
            return Pending(told.get("id"), comes, self, told)


def _without(told: Mapping[str, Any], part: str) -> str | None:
    """The id of a question of which this part is not told yet; None where it is.

    Raises what became of a question that never has it.
    """
    with understood():
        if part in told:
            return None
        if told["state"] == "no answer":
            raise EngineError(str(told["incident"]))
        if (why := _HELD.get(told["state"])) is not None:
            raise PolicyError(why.format(id=told["id"], reason=told.get("reason", "")))
        if told["state"] == "answered" and "id" in told and {"answer", "bounds"} & set(told):
            raise PolicyError(f"the question {told['id']} has {_OTHER[part]}.")
        return str(told["id"])


def _sent(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as they are sent; what they mean is checked there.

    Raises ParameterError for one that there is not, and for a value that has no form on the wire.
    """
    known = Options.__dataclass_fields__
    return Options(**options).to_wire() if set(options) <= set(known) else Options.of(options).to_wire()


def _name(given: str | None) -> str:
    """The name of a request."""
    if given is None:
        return uuid.uuid4().hex
    from hubbub.arguments import a_name

    if not (a_name(given, "idempotency_key").isascii() and given.isprintable() and len(given) <= 200):
        raise QueryError("idempotency_key: a name of at most 200 printable characters of ASCII. Nothing was charged.")
    return given


def _entry(analyst: str, told: Mapping[str, Any]) -> Any:
    """A line of a history, in the ledger's words, as far as it is told."""
    from hubbub.ledger.records import Entry

    return Entry(
        id=told["id"], time=told["asked_at"], space=told.get("space", ""), dataset=told.get("tables", ""),
        analyst=analyst, question_key="", sql=told["sql"], epsilon=Fraction(told.get("epsilon", "0")),
        state=_STATES.get(told["state"], "failed"), event="{}", details="{}", incident=told.get("incident"),  # type: ignore[arg-type]
        kind=told.get("kind", "question"), purpose=told.get("purpose"),
    )  # fmt: skip
