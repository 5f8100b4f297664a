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

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hubbub.accounting import cost as cost_of, rho_of_epsilon, to_json
from hubbub.answer.evaluate import EvaluatedStatement
from hubbub.answer.release import Refinement, Refining, Release
from hubbub.arguments import a_choice, a_name, a_whole_number, an_amount, names
from hubbub.engines.base import Exact
from hubbub.engines.outer import OuterSide
from hubbub.engines.registry import engine_for
from hubbub.engines.stopping import stoppable
from hubbub.errors import BudgetError, EngineError, InternalError, PolicyError, QueryError
from hubbub.ledger.budget import Budget, EpsilonLike, decimal_text
from hubbub.ledger.policy import Policy, find_policy, load_policy
from hubbub.ledger.remainder import Remaining
from hubbub.ledger.store import Entry, StoredRelease
from hubbub.progress import at_work
from hubbub.session import publish as publishing
from hubbub.session.bounds import FARTHEST, MOST_ROWS, bounds_at, places_sql, rows_sql, shown
from hubbub.session.check import Check, details, mechanism, notes, predicted, settled, sides
from hubbub.session.claim import claimed, retried
from hubbub.session.open import (
    agree_on_limits,
    described,
    named_tables,
    neighbours_of,
    older_places,
    open_ledger,
    private_of,
    public_of,
    resolved_paths,
    source_places,
    user,
)
from hubbub.session.prepare import PricedStatement, Terms, Wanted, amount_of, ask, limits_given
from hubbub.session.refine import refinement
from hubbub.spelling import space_name
from hubbub.sql.bind.context import Reader
from hubbub.sql.bind.query import PublicQuestion, TableInfo
from hubbub.tables.columns import Between
from hubbub.tables.declare import EACH_ROW, Bounding, PrivateTable, PublicTable
from hubbub.tables.draw_release import FORMAT, draw, price_of
from hubbub.tables.estimates import Estimates, combine, expected, read
from hubbub.tables.plan import Plan
from hubbub.tables.price import make_price

if TYPE_CHECKING:
    from hubbub.noise import Bits
    from hubbub.session.publish import Marginals, SyntheticTable
    from hubbub.synthesis.planner import SynthesisPlan
    from hubbub.verbs import Rows

__all__ = ["Check", "Session"]

_CHANGED = "the rows have changed since; ask the question anew. Nothing was charged."
_ALONE = "the rows changed while they were asked about again: this is the second answer alone, at its own noise."


class Session:
    """Declared tables, their budget, and the ledger that keeps it.

    tables: private and public tables by the name questions use. budget: the ceiling, one for each unit space.
    ledger: the ledger's file, made if missing, or a Postgres address; None keeps it in memory. analyst: who asks; by
    default the operating system's user. new_unit_spaces: the unit spaces for which a ledger that holds others gets a
    new budget: other people than theirs. Without it such a space is refused, because it may be the same people's by
    another name. anchor: a file on another disk, say, that the head of the ledger's chain is kept in, so that an older
    copy of the ledger is refused.

    Raises PolicyError for a source that is missing or declared wrongly, and for a ledger that cannot be used.
    """

    def __init__(
        self,
        tables: Mapping[str, PrivateTable | PublicTable],
        *,
        budget: Budget,
        ledger: str | Path | None,
        analyst: str | None = None,
        new_unit_spaces: Collection[str] = (),
        anchor: str | Path | None = None,
        _create_ledger: bool = True,
        _policy: Policy | None = None,
        _bits: Bits | None = None,
    ) -> None:
        if not isinstance(budget, Budget):
            raise PolicyError(f"budget={budget!r}: expected a budget, as in hb.Budget(epsilon=3).")
        if not isinstance(ledger, str | Path | None):
            raise PolicyError(f"ledger={ledger!r:.60}: expected a file's name, a Postgres address, or None.")
        if not isinstance(anchor, str | Path | None):
            raise PolicyError(f"anchor={anchor!r:.60}: expected a file's name, or None.")
        self.budget = budget
        self.analyst = user() if analyst is None else a_name(analyst, "analyst")
        self._bits = _bits
        self._tables = resolved_paths(named_tables(tables))
        for name, declared in self._tables.items():
            a_name(name, "tables")
            if isinstance(declared, PrivateTable):
                a_name(declared.space, f"the unit space of {name!r}")
        self._policy_text = _policy.text if _policy else json.dumps(described(self._tables), sort_keys=True)
        # Of the thread (or task) that reserved it: another's questions do not spend it.
        self._blocks: ContextVar[str | None] = ContextVar("hubbub_block", default=None)
        self._engine = engine_for(self._tables)
        self._outer = OuterSide({n: t for n, t in self._tables.items() if isinstance(t, PublicTable)})
        try:
            self._catalog = {name: self._add(name, t) for name, t in self._tables.items()}
            self._engine.seal()
            spaces = {t.space: budget for t in self._tables.values() if isinstance(t, PrivateTable)}
            relations = neighbours_of(self._tables)
            located = {name: self._engine.located(name) for name in self._tables}
            places = source_places(self._tables, located)
            new = {space_name(name) for name in names(new_unit_spaces, "new_unit_spaces", '["patient_id"]')}
            self.ledger = open_ledger(
                ledger,
                spaces,
                create=_create_ledger,
                policy=_policy,
                new_spaces=new,
                sources=places,
                older=older_places(self._tables, located),
                names={n: t.space for n, t in self._tables.items() if isinstance(t, PrivateTable)},
                relations=relations,
                anchor=anchor,
            )
            self._respell(self.ledger.spelling)
            self.ledger.remember_sources({at: self.ledger.spelling.get(s, s) for at, s in places.items()})
            if _policy is not None:
                agree_on_limits(self.ledger, self._tables, _policy, record=_create_ledger)
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
        if path is not None:
            a_name(str(path) if isinstance(path, Path) else path, "policy")
        policy = load_policy(path if path is not None else find_policy())
        tables: dict[str, PrivateTable | PublicTable] = {p.name: private_of(p) for p in policy.tables.values()}
        tables |= {p.name: public_of(p) for p in policy.public.values()}
        return cls(
            tables,
            budget=policy.budget,
            ledger=policy.ledger,
            analyst=analyst,
            _create_ledger=create_ledger,
            _policy=policy,
        )

    def check(
        self,
        sql: str,
        *,
        epsilon: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        noise: str | None = None,
        delta: EpsilonLike | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
        max_total: int | None = None,
        bounding: Bounding | None = None,
        keys: Mapping[str, Sequence[object]] | None = None,
        params: Mapping[str, object] | Sequence[object] = (),
        weights: Mapping[str, int] | None = None,
        within: float | Mapping[str, float] | None = None,
        at_most: EpsilonLike | None = None,
        assume_rows: int = 1000,
    ) -> Check:
        """What a question would cost and how good its answer would be; reads no rows, charges nothing.

        The arguments are those of `sql`. assume_rows: the number of values in a group at which the error of a mean is
        predicted.

        Raises QueryError, PolicyError or ParameterError exactly where `sql` would.
        """
        terms = Terms(limits_given(max_groups, max_rows, max_total, bounding), keys, params, weights)
        wanted = Wanted(epsilon, rho, noise, delta, within, at_most, assume_rows)
        asked = self._ask(sql, terms, wanted)
        if isinstance(asked, PublicQuestion):
            return Check(Fraction(0), self.remaining, (), "public tables only: exact and free.", ())
        cost, price = cost_of(asked.price.event), asked.price
        left = self.ledger.left(asked.space, dataset=asked.dataset, analyst=self.analyst, block=self._block)
        fits = self.ledger.admits(
            cost, space=asked.space, dataset=asked.dataset, analyst=self.analyst, block=self._block
        )
        budget, total = self.ledger.budget(asked.space), self.ledger.total(asked.space)
        outputs, places = asked.statement.outputs, asked.places
        both = (
            ()
            if budget.pure
            else sides(
                price.plans,
                outputs,
                places,
                epsilon=asked.epsilon,
                budget=budget,
                assume_rows=assume_rows,
                spent=total.cost,
            )
        )
        return Check(
            epsilon=asked.epsilon,
            left=left.epsilon if asked.amount.spend.pure else self._question(budget, left),
            columns=predicted(price, outputs, places, assume_rows),
            mechanism=mechanism(price),
            notes=(*asked.notes, *notes(price)),
            stored=self._stored(asked) is not None,
            groups=sum(plan.group_count or 0 for plan in price.plans) or None,
            fits=fits,
            sides=both,
            how_many=left.how_many(cost),
        )

    def sql(
        self,
        sql: str,
        *,
        epsilon: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        noise: str | None = None,
        delta: EpsilonLike | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
        max_total: int | None = None,
        bounding: Bounding | None = None,
        keys: Mapping[str, Sequence[object]] | None = None,
        params: Mapping[str, object] | Sequence[object] = (),
        weights: Mapping[str, int] | None = None,
        within: float | Mapping[str, float] | None = None,
        at_most: EpsilonLike | None = None,
        assume_rows: int = 1000,
        fresh: bool = False,
        idempotency_key: str | None = None,
    ) -> Release:
        """Ask. The charge is durable before a row is read.

        epsilon: what the answer may cost. rho: the same as zCDP, under a budget with delta. noise: "laplace" or
        "gaussian"; by default Gaussian under a budget with delta. delta: what finding groups privately may cost.
        within: in place of an amount, the half-width that 95 % of answers are to keep, for all columns or by name; the
        smallest epsilon that does, up to `at_most`, is found from declarations alone and charged.
        max_groups, max_rows, max_total: how much one unit contributes, in place of what is declared.
        bounding: "groups" or "norm", in place of what is declared: what is done with a unit beyond these.
        keys: the groups of columns, by name. params: values for `$name` (a mapping) or `?` (a list).
        weights: how much the error of a column counts when the amount is divided, 1 unless said.
        fresh: draw anew, and pay again, even if the answer is stored.
        idempotency_key: a name for this request; sent again with it, the request is charged and drawn once.

        Raises QueryError (rewrite it), PolicyError (declare it), ParameterError or BudgetError (asked, left) before
        anything is charged; EngineError after the charge.
        """
        terms = Terms(limits_given(max_groups, max_rows, max_total, bounding), keys, params, weights)
        wanted = Wanted(epsilon, rho, noise, delta, within, at_most, assume_rows)
        asked = self._ask(sql, terms, wanted)
        if isinstance(asked, PublicQuestion):
            return self._public(asked)
        return self._answer(asked, fresh=fresh, request=idempotency_key)

    @at_work("asking")
    def _answer(
        self, asked: PricedStatement, *, fresh: bool = False, request: str | None = None, rows: str | None = None
    ) -> Release:
        """The stored answer, or a new one: charged, run, drawn, stored. rows: the version that it must be of."""
        if request is not None:
            a_name(request, "idempotency_key")
        a_choice(fresh, "fresh")
        charge, stored = self._requested(asked, request)
        if charge is None and stored is None and not fresh:
            stored = self._stored(asked)
        if stored is not None:
            self.ledger.share(stored, self.analyst)
            self.ledger.advance(stored.charge_id, "shown")
            return self._release(asked, stored, charged=False)
        if charge is None:
            columns = self._columns(asked, request)
            if rows is not None and columns["data_version"] != rows:
                raise QueryError(_CHANGED)
            charge, stored = claimed(self.ledger, columns, once=not fresh and request is None)
            if stored is not None:
                return self._release(asked, stored, charged=False)
        incident = refused = None
        try:
            try:
                payload = json.dumps(self._drawn(asked, charge))
            except EngineError as error:
                incident = error.incident
            except QueryError as error:
                # A part that reads releases failed on their values, which are public; the charge stays.
                incident, refused = uuid.uuid4().hex[:12], str(error)
            except PolicyError:  # the ledger's
                raise
            except Exception:  # it looked at rows, and its words may hold them
                incident = uuid.uuid4().hex[:12]
            # Here no error is being handled, so that none stands in the traceback of another.
            if incident is None:
                self.ledger.store(charge, payload)
            else:
                self.ledger.advance(charge, "failed", incident=incident)
                self._keep_words(incident)
        finally:
            self.ledger.let_go(charge)
        if refused is not None:
            raise QueryError(f"{refused}\nThis was charged ({charge}): an earlier part had been answered.")
        if incident is not None:
            raise EngineError(incident)
        self.ledger.advance(charge, "shown")
        drawn = self.ledger.release(charge)
        if drawn is None:
            raise InternalError(f"charge {charge} was stored and is not there")
        try:
            return self._release(asked, drawn, charged=True)
        except QueryError as error:
            raise QueryError(
                f"{error}\nThe private part was answered, charged ({charge}) and stored: with another outer part it is "
                "free."
            ) from None

    def _ask(self, sql: str, terms: Terms, wanted: Wanted) -> PricedStatement | PublicQuestion:
        asked = ask(sql, self._catalog, self._outer.pinned(), terms, wanted, self.ledger.budget)
        if isinstance(asked, PricedStatement):
            for plan in (plan for of in asked.plans for plan in of):
                self._engine.prepare(plan)  # what the engine does not take is refused before the charge
        return asked

    @property
    def _block(self) -> str | None:
        return self._blocks.get()

    @_block.setter
    def _block(self, block: str | None) -> None:
        self._blocks.set(block)

    @contextmanager
    def reserve(self, *, epsilon: EpsilonLike, unit_space: str | None = None) -> Iterator[str]:
        """Set `epsilon` aside for the questions asked inside the `with`; what they do not use comes back at its end.

        Returns the block's id. If the program dies inside, the block keeps its budget until it is closed:
        `hubbub ledger close ID`.

        Raises BudgetError if it does not fit, QueryError inside another block.
        """
        if self._block is not None:
            raise QueryError("a block is reserved already; end its `with` before you reserve another.")
        self._block = self.ledger.reserve(
            space=self._space(unit_space), analyst=self.analyst, epsilon=an_amount(epsilon)
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
        asked = [self._ask(sql, Terms(), Wanted(epsilon)) for sql, epsilon in _pairs(questions)]
        first: dict[str, PricedStatement] = {}
        for one in asked:
            if isinstance(one, PublicQuestion):
                continue
            key = self._key(one)
            # A question that stands twice is drawn once, at the larger epsilon; the other is then free.
            if self._stored(one) is None and (key not in first or first[key].epsilon < one.epsilon):
                first[key] = one
        if not first:
            return [self._given(one) for one in asked]
        due = list(first.values())
        spaces = {one.space for one in due}
        if len(spaces) > 1:
            raise QueryError(f"a plan asks about one unit space; found {', '.join(sorted(spaces))}. Make one for each.")
        self._check_tables(due, next(iter(spaces)))
        self._block = self.ledger.reserve(
            space=spaces.pop(),
            analyst=self.analyst,
            epsilon=sum((one.epsilon for one in due), Fraction(0)),
            events=[one.price.event for one in due],
            plan="; ".join(one.sql for one in asked),
        )
        try:
            drawn = {id(one): self._answer(one) for one in due}
            return [drawn[id(one)] if id(one) in drawn else self._given(one) for one in asked]
        finally:
            block, self._block = self._block, None
            self.ledger.close_block(block)

    def _given(self, asked: PricedStatement | PublicQuestion) -> Release:
        return self._public(asked) if isinstance(asked, PublicQuestion) else self._answer(asked)

    def _check_tables(self, due: Sequence[PricedStatement], space: str) -> None:
        """A plan is asked whole or not at all: each table's part of it fits what is left for that table."""
        by_table: dict[str, list[PricedStatement]] = {}
        for one in due:
            for name in one.tables:
                by_table.setdefault(name, []).append(one)
        for name, asked in by_table.items():
            costs = [cost_of(one.price.event) for one in asked]
            if not self.ledger.admits(sum(costs[1:], costs[0]), space=space, dataset=name, analyst=self.analyst):
                amount = decimal_text(sum((one.epsilon for one in asked), Fraction(0)))
                left = decimal_text(self.ledger.remaining(space, dataset=name, analyst=self.analyst))
                raise BudgetError(
                    f"the plan asks for epsilon {amount} about {name!r}, and {left} is left for that. Nothing was "
                    "charged.",
                    asked=amount,
                    left=left,
                )

    def table(self, name: str) -> Rows:
        """A table to ask about in Python: `filter`, `group_by`, `agg`, then `check` or `run`.

        Raises QueryError, when it is asked, for a table that is unknown.
        """
        from hubbub.verbs import rows_of

        a_name(name, "table")
        declared = self._tables.get(name)
        private = isinstance(declared, PrivateTable)
        info = self._catalog.get(name)
        return rows_of(
            self,
            name,
            columns=list(info.columns) if info is not None else None,
            unit=info.unit if info is not None else None,
            each_row=private and info is not None and info.unit is None,
            declared=dict(declared.columns) if isinstance(declared, PrivateTable) else None,
        )

    def suggest_bounds(self, table: str, *columns: str, epsilon: EpsilonLike) -> dict[str, Between | int | None]:
        """Buy bounds: for each column a `between` that most units' values lie in; None where too few units tell.

        Without columns: "max_total", a number of rows that most units do not exceed. Bounds are powers of two, found
        by noisy counts on a grid that no data chose (`hubbub.session.bounds`), with one value for each unit. `epsilon`
        is divided among the columns, and charged as for any other question: for all of them, or for none.

        Raises what `sql` raises, for any column, before the first is charged; QueryError for a column named twice.
        """
        found = self._tables.get(a_name(table, "suggest_bounds"))
        columns = names(columns, "suggest_bounds", "suggest_bounds('visits', 'age', epsilon=0.1)")
        if not isinstance(found, PrivateTable):
            raise QueryError(f"suggest_bounds: {table!r} is not a private table of this session.")
        amount = an_amount(epsilon) / max(1, len(columns))
        # Pure noise, whatever the budget: only the threshold's tail matters here.
        noise = None if self.ledger.budget(found.space).pure else "laplace"

        def places(sql: str, count: int) -> list[int]:
            release = self.sql(sql, epsilon=amount, noise=noise, max_groups=1, max_rows=1)
            twice = 2 if found.neighbours == "replace" else 1
            return shown(release.rows(), count, amount / twice)  # type: ignore[arg-type]

        if not columns:
            if found.unit is EACH_ROW or found.path is not None:
                raise QueryError(
                    "suggest_bounds without columns asks for the rows of a unit, which needs a unit column."
                )
            most = places(rows_sql(table, str(found.unit)), MOST_ROWS + 1)
            return {"max_total": 2 ** most[-1] if most else None}
        questions = {c: places_sql(table, c) for c in columns}
        if len({c.lower() for c in columns}) < len(columns):
            raise QueryError("suggest_bounds: a column stands twice; name each once. Nothing was charged.")
        limits = limits_given(1, 1, None)
        wanted = Wanted(amount, noise=noise)
        self._check_together([self._ask(sql, Terms(limits), wanted) for sql in questions.values()])
        return {c: bounds_at(places(sql, 2 * FARTHEST + 1)) for c, sql in questions.items()}

    def _check_together(self, asked: Sequence[PricedStatement | PublicQuestion]) -> None:
        """Raises BudgetError where questions about one table, asked one after the other, would not all be charged."""
        due = [one for one in asked if isinstance(one, PricedStatement) and self._stored(one) is None]
        if not due:
            return
        costs, first = [cost_of(one.price.event) for one in due], due[0]
        if not self.ledger.admits(
            sum(costs[1:], costs[0]),
            space=first.space,
            dataset=first.dataset,
            analyst=self.analyst,
            block=self._block,
        ):
            amount = decimal_text(sum((one.epsilon for one in due), Fraction(0)))
            left = decimal_text(
                self.ledger.left(first.space, dataset=first.dataset, analyst=self.analyst, block=self._block).epsilon
            )
            raise BudgetError(
                f"the columns together ask for epsilon {amount}, and {left} is left. Nothing was charged.",
                asked=amount,
                left=left,
            )

    def synthesize(
        self,
        table: str,
        *,
        epsilon: EpsilonLike,
        columns: Sequence[str] | None = None,
        edges: Mapping[str, Sequence[float]] | None = None,
        rows: int | None = None,
        rows_per_unit: int | None = None,
        method: str = "auto",
        thorough: bool = False,
        constraints: Sequence[str] = (),
        fresh: bool = False,
    ) -> SyntheticTable:
        """A synthetic table with about the marginals of a private one, charged as one plan. Needs a budget with delta.

        columns: which ones; by default all that are declared. edges: bins of a numeric column. rows: their number, if
        it is public; else it is bought. rows_per_unit: how many rows of one unit count; by default what is declared.
        method: "auto" chooses, by predicted error (`plan_synthesis` shows it). constraints: as in
        "age < 18 implies married = no"; never violated. fresh: draw anew, and pay again.

        Raises PolicyError for a column whose domain is not declared, ParameterError for a domain too large or a budget
        too small to be of use, BudgetError; nothing is charged then. QueryError where hardly any row has declared
        values: a fiftieth is charged then, and the rest comes back (`hubbub.synthesis.probe`).
        """
        question = publishing.synthesis_question(
            self,
            table,
            epsilon=epsilon,
            columns=columns,
            edges=edges,
            rows=rows,
            rows_per_unit=rows_per_unit,
            method=method,
            thorough=thorough,
            constraints=constraints,
        )
        return publishing.synthesize(self, question, epsilon, fresh=fresh)

    def plan_synthesis(
        self, table: str, *, epsilon: EpsilonLike, assume_rows: int = 10_000, **options: Any
    ) -> SynthesisPlan:
        """What `synthesize` would do, and how good it would be; reads no rows, charges nothing."""
        assume_rows = a_whole_number(assume_rows, "assume_rows")
        return publishing.synthesis_question(self, table, epsilon=epsilon, **options).plan(assume_rows=assume_rows)

    def marginals(
        self,
        table: str,
        marginals: Iterable[Sequence[str]],
        *,
        epsilon: EpsilonLike,
        weights: Sequence[float] | None = None,
        edges: Mapping[str, Sequence[float]] | None = None,
        rows_per_unit: int | None = None,
        assume_rows: int = 10_000,
        fresh: bool = False,
    ) -> Marginals:
        """Many marginals at once with the least noise, fitting together, charged as one. Needs a budget with delta.

        marginals: sets of declared columns. weights: how much the variance of each one's cells counts. assume_rows:
        about how many rows there are; noise that would drown them is refused before the charge. The other arguments are
        those of `synthesize`.

        Raises what `synthesize` raises.
        """
        return publishing.marginals(
            self,
            table,
            marginals,
            epsilon=epsilon,
            weights=weights,
            edges=edges,
            rows_per_unit=rows_per_unit,
            assume_rows=assume_rows,
            fresh=fresh,
        )

    def refresh(self, table: str) -> str:
        """Declare that a table has new rows: stored answers stay what they are, and are not given for the new rows.

        Returns the new version. No budget comes back: it is the units' own. A file that changed is noticed anyway.

        Raises PolicyError for a table that is not private, or is unknown.
        """
        found = self._tables.get(a_name(table, "refresh"))
        if not isinstance(found, PrivateTable):
            raise PolicyError(f"refresh: {table!r} is not a private table of this session.")
        return self.ledger.refresh(found.space, table)

    @staticmethod
    def _question(budget: Budget, left: Remaining) -> Fraction:
        """The largest epsilon of one more question."""
        if budget.pure:
            return left.question
        return settled(left.question, lambda epsilon: rho_of_epsilon(epsilon, budget.delta_conversion) <= left.rho)

    @property
    def remaining(self) -> Fraction:
        """What is left of the joint budget, exactly; with several unit spaces, of the one that has least left.

        Under a budget with delta: the largest epsilon of one more question.
        """
        found = [self._question(self.ledger.budget(s), self.ledger.left(s)) for s in self._spaces()]
        return min(found, default=self.budget.epsilon)

    def history(self) -> list[Entry]:
        """Every charge in the ledger, oldest first."""
        return self.ledger.history()

    def receipt(self, charge_id: str) -> dict[str, Any]:
        """What a charge asked, ran and cost, under which policy, on which data, and where the ledger's chain stood."""
        return self.ledger.receipt(a_name(charge_id, "receipt"))

    def close(self) -> None:
        """Close engine and ledger; what was charged stays charged."""
        self._engine.close()
        self._outer.close()
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
            table = self._tables[name] = replace(table, unit=schema.unit)
        return TableInfo(schema.columns, True, schema.unit, table.without_source(), schema.unit_type)

    def _respell(self, spelling: Mapping[str, str]) -> None:
        """Call the unit spaces as an older ledger recorded them."""
        for name, declared in self._tables.items():
            if isinstance(declared, PrivateTable) and spelling.get(declared.space, declared.space) != declared.space:
                table = self._tables[name] = replace(declared, unit_space=spelling[declared.space])
                self._catalog[name] = replace(self._catalog[name], table=table.without_source())

    def _spaces(self) -> set[str]:
        return {t.space for t in self._tables.values() if isinstance(t, PrivateTable)}

    def _space(self, named: str | None) -> str:
        spaces = self._spaces()
        if named is None and len(spaces) == 1:
            return spaces.pop()
        if named is None or a_name(named, "unit_space") not in spaces:
            raise QueryError(f"unit_space={named!r}: name one of {', '.join(sorted(spaces))}.")
        return named

    def _version(self, asked: PricedStatement) -> str:
        """The version of the rows: of each table, in the ledger's words."""
        return " ".join(self._version_of(asked.space, name) for name in asked.tables)

    def _version_of(self, space: str, name: str) -> str:
        """A source is known to have changed by a mark of the engine's, which the ledger keys."""
        self._engine.recheck(name)
        return self.ledger.data_version(space, name, fingerprint=self._engine.mark(name))

    def _key(self, asked: PricedStatement, version: str | None = None) -> str:
        public = [asked.outer.fingerprint(name) for name in asked.public]
        return asked.key("\n".join([self._version(asked) if version is None else version, *public]))

    def _stored(self, asked: PricedStatement) -> StoredRelease | None:
        return self.ledger.find_release(
            space=asked.space, question_key=self._key(asked), at_least=asked.epsilon, reader=self.analyst
        )

    def _requested(self, asked: PricedStatement, request: str | None) -> tuple[str | None, StoredRelease | None]:
        """What became of a request that was sent before: its charge, if it may still be drawn, or its answer."""
        if request is None:
            return None, None
        entry = self.ledger.requested(space=asked.space, analyst=self.analyst, request=request)
        if entry is None:
            return None, None
        if entry.epsilon != asked.epsilon or entry.question_key != self._key(asked):
            raise QueryError(f"the idempotency key {request!r} stands for another question. Use a new key.")
        stored = self.ledger.release(entry.id)
        if stored is not None:
            return None, stored
        charge = retried(self.ledger, self._columns(asked, request), entry.id)
        if charge is None:
            raise QueryError(
                f"the request {request!r} was charged ({entry.id}, now {entry.state!r}) and has no answer: it is under "
                "way, or was lost. Ask again later, or with a new key at a new charge."
            )
        return charge, None

    def _columns(self, asked: PricedStatement, request: str | None) -> dict[str, Any]:
        """The charge of a question, as the ledger records it."""
        version = self._version(asked)
        return {
            "cost": cost_of(asked.price.event),
            "policy": self._remembered_policy(),
            "data_version": version,
            "request": request,
            "block": self._block,
            "space": asked.space,
            "dataset": asked.dataset,
            "analyst": self.analyst,
            "question_key": self._key(asked, version),
            "sql": asked.sql,
            "epsilon": asked.epsilon,
            "event": to_json(asked.price.event),
            "details": json.dumps(details(asked.price)),
        }

    def _remembered_policy(self) -> str:
        """The hash under which the ledger keeps what this session declares."""
        return self.ledger.remember_policy(self._policy_text)

    def _owned_rows(self, table: str, columns: Sequence[str]) -> Any:
        """The private rows of a table, with a number for each unit in the column "": for this process alone.

        Raises EngineError, with an incident id alone, if the engine fails.
        """
        found = Reader("", self._catalog, None).scan(table, None)
        return stoppable(lambda: self._engine.rows(found, columns), self._engine.interrupt)

    def _drawn(self, asked: PricedStatement, charge: str) -> dict[str, Any]:
        """Every question run and drawn once, in their order: a later one may read what an earlier one released."""
        drawn: list[dict[str, Any]] = []
        staged = any(leaf.released for q in range(len(asked.plans)) for leaf in asked.leaves(q))
        exacts: Iterable[Exact]
        if staged:
            self.ledger.advance(charge, "drawing")
            exacts = self._exacts(asked, drawn)
        else:
            exacts = list(self._exacts(asked, drawn))
            self.ledger.advance(charge, "drawing")
        return draw(asked.price, exacts, self._bits, into=drawn)

    def _exacts(self, asked: PricedStatement, drawn: list[dict[str, Any]]) -> Iterator[Exact]:
        for q, plans in enumerate(asked.plans):
            leaves = asked.leaves(q)
            released = {}
            if any(leaf.released for leaf in leaves):
                known = asked.grouped(read(asked.price, {"plans": drawn}))
                done = [of for of, mine in zip(known, asked.plans, strict=True) if len(of) == len(mine)]
                released = EvaluatedStatement(asked.statement, tuple(done), asked.outer).releases
            public = {leaf.place: asked.outer.leaf(leaf, _chosen(released, leaf.released)) for leaf in leaves}
            if released:
                asked.check_repeats(q, public)
            for plan in plans:
                yield self._run(plan, public)

    def _run(self, plan: Plan, public: Mapping[str, Any]) -> Exact:
        return stoppable(lambda: self._engine.run(plan, public), self._engine.interrupt)

    def _release(self, asked: PricedStatement, stored: StoredRelease, *, charged: bool) -> Release:
        """The answer to this statement from a stored draw, which may have been bought at a larger epsilon."""
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
            cost=stored.epsilon if charged else Fraction(0),
            charged=charged,
            charge_id=stored.charge_id,
            receipt=receipt,
            epsilon=entry.epsilon,
            notes=asked.notes,
            _answered=EvaluatedStatement(
                asked.statement, asked.grouped(self._estimates(asked, stored)), asked.outer, self._bits
            ),
            _refine=Refining(
                lambda epsilon: self._refined(asked, stored, epsilon),
                lambda epsilon: self._foreseen(asked, stored, epsilon)[0],
            ),
        )

    def _keep_words(self, incident: str) -> None:
        """The engine's own words about a failure, kept for the steward alone."""
        words = self._engine.words(incident)
        if words is not None and self.ledger.path is not None:
            with suppress(PolicyError):
                self.ledger.keep_incident(incident, words)

    def _foreseen(
        self, asked: PricedStatement, stored: StoredRelease, epsilon: EpsilonLike
    ) -> tuple[Refinement, PricedStatement]:
        """What asking again would cost and how good both draws together would be, and what is asked then."""
        epsilon = an_amount(epsilon)
        if any(plan.private_keys for of in asked.plans for plan in of):
            raise QueryError("refine is for public groups: groups found privately differ from draw to draw.")
        if any(leaf.released for q in range(len(asked.plans)) for leaf in asked.leaves(q)):
            raise QueryError(
                "refine is for questions whose private parts do not read another's release: drawn anew, that would "
                "make them other questions."
            )
        if self._key(asked) != stored.entry.question_key:
            raise QueryError(_CHANGED)
        budget = self.ledger.budget(asked.space)
        flat = [plan for of in asked.plans for plan in of]
        more = replace(asked, amount=(amount := amount_of(budget, flat, Wanted(epsilon, noise=_noise(asked, budget)))))
        more = replace(more, price=make_price(flat, amount.spend))
        cost = cost_of(more.price.event)
        left = self.ledger.left(asked.space, dataset=asked.dataset, analyst=self.analyst, block=self._block)
        bought = price_of(flat, json.loads(stored.payload))
        ranks = [
            {
                c.name: c.ranks
                for c in predicted(price, asked.statement.outputs, asked.places, 1000)
                if c.ranks is not None
            }
            for price in (bought, more.price)
        ]
        found = refinement(
            EvaluatedStatement(asked.statement, asked.grouped(self._estimates(asked, stored)), asked.outer, self._bits),
            asked.grouped(expected(more.price)),
            ranks=[ranks[0], {name: min(now, ranks[1][name]) for name, now in ranks[0].items()}],
        )
        fits = self.ledger.admits(
            cost, space=asked.space, dataset=asked.dataset, analyst=self.analyst, block=self._block
        )
        shown = left.epsilon if more.amount.spend.pure else self._question(budget, left)
        return replace(found, epsilon=amount.epsilon, left=shown, fits=fits), more

    def _refined(self, asked: PricedStatement, stored: StoredRelease, epsilon: EpsilonLike) -> Release:
        """The same question asked again with additional budget, both answers combined.

        Both are of the same rows, by their version before the charge and after the draw. Where it is another one only
        then, the second answer is given alone.
        """
        version = self._version(asked)
        foreseen, more = self._foreseen(asked, stored, epsilon)
        if not foreseen.helps:
            amounts = (foreseen.epsilon * 2**k for k in range(1, 8))
            enough = next((e for e in amounts if self._foreseen(asked, stored, str(e))[0].helps), None)
            hint = "" if enough is None else f" At epsilon {decimal_text(enough)} it would."
            raise QueryError(
                f"refine at epsilon {decimal_text(foreseen.epsilon)} would not make this answer better.{hint} Nothing "
                f"was charged.\n{foreseen}"
            )
        if self._key(asked, version) != stored.entry.question_key:
            raise QueryError(_CHANGED)
        again = self._answer(more, fresh=True, rows=version)
        if not self._is_still(asked, version):
            return replace(again, notes=(*again.notes, _ALONE))
        first = asked.grouped(self._estimates(asked, stored))
        second = again._answered
        assert second is not None
        # Quantiles are taken from the last of the two: the dearer one.
        dearer = 1 if again.epsilon > stored.epsilon else -1
        joined = tuple(
            tuple(combine([a, b][::dearer]) for a, b in zip(of_first, of_second, strict=True))
            for of_first, of_second in zip(first, second.estimates, strict=True)
        )
        return replace(
            again,
            epsilon=stored.epsilon + again.epsilon,
            _answered=EvaluatedStatement(asked.statement, joined, asked.outer, self._bits),
            _refine=None,
        )

    def _is_still(self, asked: PricedStatement, version: str) -> bool:
        """Whether the rows are those of a version, after a charge."""
        with suppress(PolicyError):  # a source that is gone
            return self._version(asked) == version
        return False

    def _estimates(self, asked: PricedStatement, stored: StoredRelease) -> tuple[Estimates, ...]:
        payload = json.loads(stored.payload)
        if payload.get("format") != FORMAT:
            raise PolicyError("this stored release was written by another version of hubbub; read it with that one.")
        return read(price_of([plan for of in asked.plans for plan in of], payload), payload)

    def _public(self, question: PublicQuestion) -> Release:
        outer = self._outer.pinned()
        outer.describe(question.sql, question.tables, {}, answer=True)
        exact = outer.run(question.sql, question.tables, {})
        return Release(Fraction(0), False, "", {"sql": question.sql, "epsilon": "0"}, _exact=exact)


def _chosen(released: Mapping[str, Any], numbers: tuple[int, ...]) -> dict[str, Any]:
    return {f"released{n}": released[f"released{n}"] for n in numbers}


def _pairs(questions: object) -> list[tuple[str, EpsilonLike]]:
    """The questions of a plan.

    Raises QueryError for anything but pairs.
    """
    listed = list(questions) if isinstance(questions, Iterable) and not isinstance(questions, str | Mapping) else [None]
    if not all(isinstance(one, tuple | list) and len(one) == 2 for one in listed):
        raise QueryError(
            "plan: expected pairs of SQL and epsilon, as in [('SELECT COUNT(*) FROM visits', 0.1)]. Nothing was "
            "charged."
        )
    return [(sql, epsilon) for sql, epsilon in listed]  # type: ignore[misc]


def _noise(asked: PricedStatement, budget: Budget) -> str | None:
    return None if budget.pure else asked.amount.noise
