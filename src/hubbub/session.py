"""The session: the analyst's handle on declared tables, a budget and a ledger.

The way of a question, the same for `check` and `sql` until the charge:

    parse -> plan -> price          everything that can refuse does so here; `check` stops
    charge                          durable in the ledger before any row is read
    run                             exact integers by group, inside the engine's process
    draw, store                     noise is added; the release is durable before anyone sees it
    choose                          HAVING, ORDER BY, LIMIT among released rows

A question that has been answered on the same data, at the same epsilon or more, is answered again from the ledger
for nothing; HAVING, ORDER BY, LIMIT, names and the order of columns do not make it another question.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hubbub.accounting import cost as cost_of, pure_epsilon, to_json
from hubbub.check import Check, details, mechanism, notes, predicted
from hubbub.engines.contract import Exact
from hubbub.engines.duckdb import DuckDBEngine, image, public_tables
from hubbub.errors import BudgetError, EngineError, InternalError, PolicyError, QueryError
from hubbub.ledger.accounts import EACH_ANALYST, analyst_account, table_account
from hubbub.ledger.budget import Budget, EpsilonLike, decimal_text, parse_epsilon
from hubbub.ledger.policy import Policy, PublicPolicy, TablePolicy, find_policy, load_policy
from hubbub.ledger.store import Entry, Ledger, StoredRelease
from hubbub.mechanisms.additive import add_noise
from hubbub.release import Chosen, Estimates, Release, choose
from hubbub.sql.parse import PublicQuestion, TableInfo, parse
from hubbub.tables.declare import (
    EACH_ROW,
    Declaration,
    PrivateTable,
    PublicTable,
    between,
    one_of,
    public,
    table,
)
from hubbub.tables.plan import Measurement, make_plan
from hubbub.tables.price import Price, make_price
from hubbub.tables.question import Question

if TYPE_CHECKING:
    from hubbub.noise import Bits

__all__ = ["Check", "Session"]


class Session:
    """Declared tables, their budget, and the ledger that keeps it.

    tables: private and public tables by the name questions use. budget: the ceiling, one for each unit space.
    ledger: the ledger's file, made if missing, or a Postgres address; None keeps it in memory. analyst: who asks; by
    default the operating system's user.

    Raises PolicyError for a source that is missing or declared wrongly, and for a ledger that cannot be used.
    """

    def __init__(
        self,
        tables: Mapping[str, PrivateTable | PublicTable],
        *,
        budget: Budget,
        ledger: str | Path | None,
        analyst: str | None = None,
        _create_ledger: bool = True,
        _policy: Policy | None = None,
        _bits: Bits | None = None,
    ) -> None:
        if not isinstance(budget, Budget):
            raise PolicyError(f"budget={budget!r}: expected a budget, as in hb.Budget(epsilon=3).")
        self.budget = budget
        self.analyst = analyst or _user()
        self._bits = _bits
        self._tables = _named(tables)
        self._policy_text = _policy.text if _policy else json.dumps(_described(self._tables), sort_keys=True)
        # Of the thread (or task) that reserved it: another's questions do not spend it.
        self._blocks: ContextVar[str | None] = ContextVar("hubbub_block", default=None)
        self._engine = DuckDBEngine()
        try:
            self._catalog = {name: self._add(name, t) for name, t in self._tables.items()}
            self._engine.seal()
            spaces = {t.space: budget for t in self._tables.values() if isinstance(t, PrivateTable)}
            relations = _neighbours(self._tables)
            self.ledger = _open_ledger(ledger, spaces, create=_create_ledger, policy=_policy)
            _check_neighbours(self.ledger, relations)
            if _policy is not None:
                self._agree_on_limits(_policy, record=_create_ledger)
        except BaseException:
            self._engine.close()
            raise

    @classmethod
    def from_policy(
        cls, path: str | Path | None = None, *, analyst: str | None = None, create_ledger: bool = False
    ) -> Session:
        """The session that a `hubbub.toml` describes; by default the one found upward from the working directory.

        Raises PolicyError for a policy that is missing or wrong, and for a ledger that was not created.
        """
        policy = load_policy(path if path is not None else find_policy())
        tables: dict[str, PrivateTable | PublicTable] = {p.name: _private(p) for p in policy.tables.values()}
        tables |= {p.name: _public(p) for p in policy.public.values()}
        return cls(
            tables,
            budget=policy.budget,
            ledger=policy.ledger,
            analyst=analyst,
            _create_ledger=create_ledger,
            _policy=policy,
        )

    def check(self, sql: str, *, epsilon: EpsilonLike, assume_rows: int = 1000) -> Check:
        """What a question would cost and how good its answer would be; reads no rows, charges nothing.

        assume_rows: the number of values in a group at which the error of a mean is predicted.

        Raises QueryError, PolicyError or ParameterError exactly where `sql` would.
        """
        if isinstance(assume_rows, bool) or not isinstance(assume_rows, int) or assume_rows < 1:
            raise PolicyError(f"assume_rows={assume_rows!r}: expected a whole number of at least 1.")
        amount = parse_epsilon(epsilon)
        question = parse(sql, self._catalog)
        if isinstance(question, PublicQuestion):
            return Check(Fraction(0), self.remaining, (), "public tables only: exact and free.", ())
        price = self._price(question, amount)
        space, name = price.plan.table.space, price.plan.question.table
        cost = cost_of(price.event)
        return Check(
            epsilon=amount,
            left=self.ledger.remaining(space, dataset=name, analyst=self.analyst),
            fits=self.ledger.admits(cost, space=space, dataset=name, analyst=self.analyst, block=self._block),
            columns=tuple(predicted(price, assume_rows)),
            mechanism=mechanism(price),
            notes=notes(price),
            stored=self._stored(price) is not None,
            groups=price.plan.group_count,
        )

    def sql(
        self, sql: str, *, epsilon: EpsilonLike, fresh: bool = False, idempotency_key: str | None = None
    ) -> Release:
        """Ask. The charge is durable before a row is read.

        epsilon: what the answer may cost. fresh: draw anew, and pay again, even if the answer is stored.
        idempotency_key: a name for this request; sent again with it, the request is charged and drawn once.

        Raises QueryError (rewrite it), PolicyError (declare it) or BudgetError (asked, left) before anything is
        charged; EngineError after the charge.
        """
        amount = parse_epsilon(epsilon)
        question = parse(sql, self._catalog)
        if isinstance(question, PublicQuestion):
            return self._public(question)
        price = self._price(question, amount)
        charge, stored = self._requested(price, idempotency_key)
        if charge is None and stored is None and not fresh:
            stored = self._stored(price)
        if stored is not None:
            self.ledger.share(stored, self.analyst)
            self.ledger.advance(stored.charge_id, "shown")
            return self._release(price, stored, charged=False)
        charge = charge or self._retried(price) or self._charge(price, sql, idempotency_key)
        try:
            exact = self._run(price, charge)
            self.ledger.advance(charge, "drawing")
        finally:
            self.ledger.let_go(charge)
        self.ledger.store(charge, self._draw(price, exact))
        self.ledger.advance(charge, "shown")
        drawn = self.ledger.release(charge)
        if drawn is None:
            raise InternalError(f"charge {charge} was stored and is not there")
        return self._release(price, drawn, charged=True)

    @property
    def _block(self) -> str | None:
        return self._blocks.get()

    @_block.setter
    def _block(self, block: str | None) -> None:
        self._blocks.set(block)

    @contextmanager
    def reserve(self, *, epsilon: EpsilonLike, unit_space: str | None = None) -> Iterator[str]:
        """Set `epsilon` aside for the questions asked inside the `with`; what they do not use comes back at its end.

        Gives the block's id. If the program dies inside, the block keeps its budget until it is closed:
        `hubbub ledger close ID`.

        Raises BudgetError if it does not fit, QueryError inside another block.
        """
        if self._block is not None:
            raise QueryError("a block is reserved already; end its `with` before you reserve another.")
        self._block = self.ledger.reserve(
            space=self._space(unit_space), analyst=self.analyst, epsilon=parse_epsilon(epsilon)
        )
        try:
            yield self._block
        finally:
            block, self._block = self._block, None
            self.ledger.close_block(block)

    def plan(self, questions: Iterable[tuple[str, EpsilonLike]]) -> list[Release]:
        """Ask several questions that were fixed in advance: all are charged as one, or none is.

        questions: pairs of SQL and epsilon, about tables of one unit space. Answers that are stored already are free.

        Raises what `sql` raises; before the charge, nothing was asked.
        """
        if self._block is not None:
            raise QueryError("a block is reserved already; end its `with` before you ask a plan.")
        asked = [(sql, parse_epsilon(epsilon)) for sql, epsilon in questions]
        first: dict[str, tuple[str, Price]] = {}
        for sql, epsilon in asked:
            question = parse(sql, self._catalog)
            if isinstance(question, PublicQuestion):
                continue
            price = self._price(question, epsilon)
            key = self._key(price)
            # A question that stands twice is drawn once, at the larger epsilon; the other is then free.
            if self._stored(price) is None and (key not in first or first[key][1].epsilon < epsilon):
                first[key] = (sql, price)
        due = {key: price for key, (_, price) in first.items()}
        if not due:
            return [self.sql(sql, epsilon=epsilon) for sql, epsilon in asked]
        spaces = {price.plan.table.space for price in due.values()}
        if len(spaces) > 1:
            raise QueryError(f"a plan asks about one unit space; found {', '.join(sorted(spaces))}. Make one for each.")
        costs = [cost_of(price.event) for price in due.values()]
        self._check_tables(due.values(), next(iter(spaces)))
        text = "; ".join(sql for sql, _ in asked)
        self._block = self.ledger.reserve(
            space=spaces.pop(),
            analyst=self.analyst,
            epsilon=sum((price.epsilon for price in due.values()), Fraction(0)),
            cost=sum(costs[1:], costs[0]),
            plan=text,
        )
        try:
            drawn = {(sql, price.epsilon): self.sql(sql, epsilon=price.epsilon) for sql, price in first.values()}
            return [drawn[one] if one in drawn else self.sql(one[0], epsilon=one[1]) for one in asked]
        finally:
            block, self._block = self._block, None
            self.ledger.close_block(block)

    def _check_tables(self, prices: Iterable[Price], space: str) -> None:
        """A plan is asked whole or not at all: each table's part of it fits what is left for that table."""
        by_table: dict[str, list[Price]] = {}
        for price in prices:
            by_table.setdefault(price.plan.question.table, []).append(price)
        for name, asked in by_table.items():
            costs = [cost_of(price.event) for price in asked]
            if not self.ledger.admits(sum(costs[1:], costs[0]), space=space, dataset=name, analyst=self.analyst):
                amount = decimal_text(sum((price.epsilon for price in asked), Fraction(0)))
                left = decimal_text(self.ledger.remaining(space, dataset=name, analyst=self.analyst))
                raise BudgetError(
                    f"the plan asks for epsilon {amount} about {name!r}, and {left} is left for that. Nothing was "
                    "charged.",
                    asked=amount,
                    left=left,
                )

    def refresh(self, table: str) -> str:
        """Declare that a table has new rows: stored answers stay what they are, and are not given for the new rows.

        Gives the data's new version. No budget comes back: it is the units' own. A file that changed is noticed anyway.

        Raises PolicyError for a table that is not private, or is unknown.
        """
        found = self._tables.get(table)
        if not isinstance(found, PrivateTable):
            raise PolicyError(f"refresh: {table!r} is no private table of this session.")
        return self.ledger.refresh(found.space, table)

    @property
    def remaining(self) -> Fraction:
        """What is left of the joint budget, exactly; with several unit spaces, of the one that has least left.

        Under a budget with delta: the largest epsilon of one more question.
        """
        return min((self.ledger.remaining(s) for s in self._spaces()), default=self.budget.epsilon)

    def history(self) -> list[Entry]:
        """Every charge in the ledger, oldest first."""
        return self.ledger.history()

    def receipt(self, charge_id: str) -> dict[str, Any]:
        """What a charge asked, ran and cost, under which policy, on which data, and where the ledger's chain stood."""
        return self.ledger.receipt(charge_id)

    def close(self) -> None:
        """Close engine and ledger; what was charged stays charged."""
        self._engine.close()
        self.ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        kept = self.ledger.where
        where = "memory only, forgotten when this program ends" if kept == "in memory" else kept
        return f"Session(tables={sorted(self._tables)}, left={decimal_text(self.remaining)}, ledger={str(where)!r})"

    def __reduce__(self) -> str:
        raise PolicyError("a session holds private tables and cannot be pickled; open one in each process.")

    def _add(self, name: str, table: PrivateTable | PublicTable) -> TableInfo:
        schema = self._engine.add(name, table)
        if isinstance(table, PublicTable):
            return TableInfo(schema.columns, private=False)
        if schema.unit is not None:
            # As the source writes it: "ID" and "id" are one column, one unit space, one budget.
            self._tables[name] = replace(table, unit=schema.unit)
        return TableInfo(schema.columns, private=True, unit=schema.unit)

    def _price(self, question: Question, epsilon: Fraction) -> Price:
        table = self._tables[question.table]
        if not isinstance(table, PrivateTable):
            raise InternalError("a private question on a public table")
        price = make_price(make_plan(question, table.without_source(), image), epsilon)
        if pure_epsilon(price.event) != epsilon:
            raise InternalError("the noise that would be added does not cost what would be charged")
        return price

    def _spaces(self) -> set[str]:
        return {t.space for t in self._tables.values() if isinstance(t, PrivateTable)}

    def _space(self, named: str | None) -> str:
        spaces = self._spaces()
        if named is None and len(spaces) == 1:
            return spaces.pop()
        if named not in spaces:
            raise QueryError(f"unit_space={named!r}: name one of {', '.join(sorted(spaces))}.")
        return named

    def _agree_on_limits(self, policy: Policy, *, record: bool) -> None:
        """The policy's limits are the ledger's, which enforces them for whoever opens it."""
        for space in self._spaces():
            limits = {} if policy.per_analyst is None else {EACH_ANALYST: policy.per_analyst}
            limits |= {analyst_account(name): amount for name, amount in policy.analysts.items()}
            for name, declared in self._tables.items():
                own = policy.tables[name].budget if name in policy.tables else None
                if own is not None and isinstance(declared, PrivateTable) and declared.space == space:
                    limits[table_account(name)] = own
            each = limits.get(EACH_ANALYST)
            same = {
                a for a, amount in limits.items() if a.startswith("analyst:") and a != EACH_ANALYST and amount == each
            }
            limits = {a: amount for a, amount in limits.items() if amount < policy.budget.epsilon and a not in same}
            known = self.ledger.policy_limits(space)
            if record:
                self.ledger.record_limits(space, limits)
            elif known != limits:
                changed = sorted(a for a in known.keys() | limits.keys() if known.get(a) != limits.get(a))
                raise PolicyError(
                    f"{policy.path} gives other limits than its ledger holds, for {', '.join(changed)}. A steward "
                    "records them with `hubbub ledger create`; nothing that was spent comes back."
                )

    def _version(self, price: Price) -> str:
        """The version of the rows. A file is known to have changed by its size and time, which the ledger keys."""
        name = price.plan.question.table
        source = self._tables[name].source
        self._engine.recheck(name)
        mark = None
        if isinstance(source, str | Path):
            try:
                found = Path(source).stat()
            except OSError:
                raise PolicyError(f"the source of the table {name!r} is gone. Nothing was charged.") from None
            mark = f"{found.st_size} {found.st_mtime_ns}"
        return self.ledger.data_version(price.plan.table.space, name, fingerprint=mark)

    def _key(self, price: Price) -> str:
        return hashlib.sha256(f"{self._version(price)}\n{price.plan.key()}".encode()).hexdigest()

    def _stored(self, price: Price) -> StoredRelease | None:
        space = price.plan.table.space
        return self.ledger.find_release(space=space, question_key=self._key(price), at_least=price.epsilon)

    def _requested(self, price: Price, request: str | None) -> tuple[str | None, StoredRelease | None]:
        """What became of a request that was sent before: its charge, if it may still be drawn, or its answer."""
        if request is None:
            return None, None
        entry = self.ledger.requested(space=price.plan.table.space, analyst=self.analyst, request=request)
        if entry is None:
            return None, None
        if entry.epsilon != price.epsilon or entry.question_key != self._key(price):
            raise QueryError(f"the idempotency key {request!r} stands for another question. Use a new key.")
        stored = self.ledger.release(entry.id)
        if stored is not None:
            return None, stored
        charge = self._retried(price, entry.id)
        if charge is None:
            raise QueryError(
                f"the request {request!r} was charged ({entry.id}, now {entry.state!r}) and has no answer: it is under "
                "way, or was lost. Ask again later, or with a new key at a new charge."
            )
        return charge, None

    def _retried(self, price: Price, charge: str | None = None) -> str | None:
        """A charge of this question whose process died before anything was drawn: its one free retry."""
        return self.ledger.resume(
            space=price.plan.table.space,
            question_key=self._key(price),
            analyst=self.analyst,
            epsilon=price.epsilon,
            block=self._block,
            charge=charge,
        )

    def _charge(self, price: Price, sql: str, request: str | None) -> str:
        return self.ledger.charge(
            cost=cost_of(price.event),
            policy=self.ledger.remember_policy(self._policy_text),
            data_version=self._version(price),
            request=request,
            block=self._block,
            space=price.plan.table.space,
            dataset=price.plan.question.table,
            analyst=self.analyst,
            question_key=self._key(price),
            sql=sql,
            epsilon=price.epsilon,
            event=to_json(price.event),
            details=json.dumps(details(price)),
        )

    def _run(self, price: Price, charge: str) -> Exact:
        try:
            return self._engine.run(price.plan)
        except EngineError as error:
            self.ledger.advance(charge, "failed", incident=error.incident)
            raise
        except KeyboardInterrupt:
            self._engine.interrupt()
            raise

    def _draw(self, price: Price, exact: Exact) -> str:
        """Noise on every measurement, once; the stored form of the release."""
        vectors = [
            add_noise(vector, sensitivity=part.sensitivity, distribution=part.noise, bits=self._bits)
            for part, vector in zip(price.parts, exact.vectors, strict=True)
        ]
        return json.dumps({"format": 1, "noisy": vectors})

    def _release(self, price: Price, stored: StoredRelease, *, charged: bool) -> Release:
        """The answer to this statement from a stored draw, which may have been bought at a larger epsilon."""
        drawn_at = make_price(price.plan, stored.epsilon)
        payload = json.loads(stored.payload)
        if payload.get("format") != 1:
            raise PolicyError("this stored release was written by a newer hubbub; read it with that one.")
        noisy: dict[Measurement, tuple[int, ...]] = {
            part.measurement: tuple(vector) for part, vector in zip(drawn_at.parts, payload["noisy"], strict=True)
        }
        estimates = Estimates(drawn_at, noisy)
        entry = stored.entry
        receipt = {
            "id": entry.id,
            "time": entry.time,
            "analyst": entry.analyst,
            "sql": entry.sql,
            "epsilon": decimal_text(entry.epsilon),
            "unit_space": entry.space,
            **json.loads(entry.details),
            **{k: v for k, v in self.ledger.receipt(entry.id).items() if k in ("policy", "data_version", "chain")},
        }
        return Release(
            columns=tuple(o.name for o in price.plan.question.outputs),
            cost=stored.epsilon if charged else Fraction(0),
            charged=charged,
            charge_id=stored.charge_id,
            receipt=receipt,
            _estimates=estimates,
            _chosen=choose(estimates),
        )

    def _public(self, question: PublicQuestion) -> Release:
        exact = public_tables(
            {n: t for n, t in self._tables.items() if n in question.tables and isinstance(t, PublicTable)},
            question.sql,
        )
        names = tuple(exact.column_names)
        return Release(
            names, Fraction(0), False, "", {"sql": question.sql, "epsilon": "0"}, None, Chosen((), ()), exact
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


def _named(tables: Mapping[str, PrivateTable | PublicTable]) -> dict[str, PrivateTable | PublicTable]:
    if not isinstance(tables, Mapping) or not tables:
        raise PolicyError('tables: expected a mapping of names to tables, as in {"visits": hb.table(...)}.')
    for name, item in tables.items():
        if not isinstance(name, str) or not name.strip():
            raise PolicyError(f"tables: {name!r} is not a table name.")
        if not isinstance(item, PrivateTable | PublicTable):
            raise PolicyError(
                f"tables: {name!r} is a {type(item).__name__}; wrap it: hb.table(..., unit=...) for a table about "
                "people, hb.public(...) for one that protects nobody."
            )
    if len({name.lower() for name in tables}) < len(tables):
        raise PolicyError("tables: two names differ in case alone; rename one.")
    return dict(tables)


def _neighbours(tables: Mapping[str, PrivateTable | PublicTable]) -> dict[str, str]:
    """The neighbour relation of each unit space: losses add up under one relation only."""
    found: dict[str, str] = {}
    for name, item in tables.items():
        if isinstance(item, PrivateTable) and found.setdefault(item.space, item.neighbours) != item.neighbours:
            raise PolicyError(
                f"table {name!r} has neighbours={item.neighbours!r}, another table of the unit space {item.space!r} "
                f"has {found[item.space]!r}. One budget needs one relation; declare the same for both."
            )
    return found


def _check_neighbours(ledger: Ledger, relations: Mapping[str, str]) -> None:
    """Raises PolicyError where the ledger holds charges made under another neighbour relation."""
    for space, relation in relations.items():
        asked = (entry for entry in ledger.history(space) if entry.kind == "question")
        charged = next((json.loads(entry.details).get("neighbours") for entry in asked), relation)
        if charged != relation:
            raise PolicyError(
                f"the ledger's charges of the unit space {space!r} were made for neighbours={charged!r}; the tables "
                f"now say {relation!r}. Losses under two relations do not add up: declare {charged!r}, or use another "
                "ledger."
            )


def _open_ledger(
    ledger: str | Path | None, spaces: Mapping[str, Budget], *, create: bool, policy: Policy | None
) -> Ledger:
    if ledger is not None:
        key, failures = (None, 3) if policy is None else (policy.key(), policy.max_failures)
        return Ledger.open(ledger, budgets=spaces, create=create, key=key, max_failures=failures)
    warnings.warn(
        "ledger=None keeps the budget in memory: it is forgotten when this program ends, and asking again in "
        "another program spends the same people's privacy twice.",
        stacklevel=3,
    )
    return Ledger.in_memory(spaces)


def _described(tables: Mapping[str, PrivateTable | PublicTable]) -> dict[str, Any]:
    """What a session declares, for the record, where no policy file does."""
    found: dict[str, Any] = {}
    for name, declared in tables.items():
        parts = {k: v for k, v in vars(declared).items() if k != "source"}
        where = str(declared.source) if isinstance(declared.source, str | Path) else "a frame"
        found[name] = {"source": where, **{k: str(dict(v) if isinstance(v, Mapping) else v) for k, v in parts.items()}}
    return found


def _private(policy: TablePolicy) -> PrivateTable:
    return table(
        policy.source,
        unit=EACH_ROW if policy.unit is None else policy.unit,
        table=policy.table,
        max_groups=policy.max_groups,
        max_rows=policy.max_rows,
        max_total=policy.max_total,
        neighbours=policy.neighbours,  # type: ignore[arg-type]
        columns={name: _declaration(what) for name, what in policy.columns.items()},
        types=policy.types,
    )


def _declaration(what: Mapping[str, Any]) -> Declaration:
    if "between" in what:
        low, high = what["between"]
        return between(low, high, nullable=what.get("nullable", True))
    return one_of(*what["one_of"], *([None] if what.get("null") else []))


def _public(policy: PublicPolicy) -> PublicTable:
    return public(policy.source, table=policy.table, types=policy.types)
