"""The session: the analyst's handle on declared tables, a budget and a ledger.

The way of a question, the same for `check` and `sql` until the charge:

    parse -> plan -> price          everything that can refuse does so here; `check` stops
    open                            charged, durable in the ledger before any row is read
    execute                         exact integers by group, inside the engine's process; noise is added
    close                           the release is durable before anyone sees it
    choose                          HAVING, ORDER BY, LIMIT among released rows

A question that has been answered on the same data, at the same epsilon or more, is answered again from the ledger
for nothing; HAVING, ORDER BY, LIMIT, names and the order of columns do not make it another question. Synthetic tables,
marginals, plans and bounds take the same way: `hubbub.session.run` is the one door to private rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from hubbub.answer.release import Release
from hubbub.arguments import a_choice, a_name, a_whole_number, an_amount, names
from hubbub.errors import PolicyError, QueryError, what_was_given
from hubbub.keywords import named_calls
from hubbub.ledger.budget import Budget, EpsilonLike, decimal_text
from hubbub.ledger.charge import checked_analyst, checked_purpose
from hubbub.ledger.policy import Policy, find_policy, load_policy
from hubbub.plots.page import html_lines
from hubbub.session import publish as publishing
from hubbub.session.ask import answered, knowing
from hubbub.session.bounds import suggested_bounds
from hubbub.session.check import Check
from hubbub.session.check_bounds import BoundsCheck, bounds_checked
from hubbub.session.choice import M, ask_fit, fitted_model
from hubbub.session.data import OpenTables
from hubbub.session.model import FitCheck, ask_evaluation, evaluation
from hubbub.session.open import (
    agree_on_limits,
    declared_tables,
    described,
    neighbours_of,
    older_places,
    open_ledger,
    source_places,
    spelled,
    user,
)
from hubbub.session.options import AskOptions, Options, takes_options
from hubbub.session.plan import PlanCheck, answer_plan, check_plan
from hubbub.session.run import Door
from hubbub.session.shown import DeclaredTables, EpsilonLeft, History, not_private
from hubbub.session.statement import checked, largest_epsilon, public_answer
from hubbub.session.whole_rows import ask_marginals, ask_synthesis
from hubbub.spelling import space_name
from hubbub.sql.bind.query import PublicQuestion
from hubbub.tables.columns import Between
from hubbub.tables.declare import PrivateTable, PublicTable

if TYPE_CHECKING:
    from hubbub.engines.base import Engine
    from hubbub.learning.evaluation import Evaluation
    from hubbub.noise import Bits
    from hubbub.session.publish import Marginals, SyntheticTable
    from hubbub.synthesis.planner import SynthesisPlan
    from hubbub.verbs import Rows

__all__ = ["Check", "Session"]


@named_calls
class Session:
    """Declared tables, their budget, and the ledger that keeps it.

    tables: private and public tables by the name questions use. budget: the ceiling, one for each unit space.
    ledger: the ledger's file, made if missing, or a Postgres address; None keeps it in memory. analyst: who asks; by
    default the operating system's user. new_unit_spaces: the unit spaces for which a ledger that holds others gets a
    new budget: other people than theirs. Without it such a space is refused, because it may be the same people's by
    another name. anchor: a file on another disk, say, that the head of the ledger's chain is kept in, so that an older
    copy of the ledger is refused. purpose: what is asked for, at most 200 characters; it stands with each charge.

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
        purpose: str | None = None,
        _create_ledger: bool = True,
        _policy: Policy | None = None,
        _notes: bool = True,
        _bits: Bits | None = None,
    ) -> None:
        if not isinstance(budget, Budget):
            raise PolicyError(f"budget={what_was_given(budget)}: expected a budget, as in hb.Budget(epsilon=3).")
        if not isinstance(ledger, str | Path | None):
            raise PolicyError(f"ledger={what_was_given(ledger)}: expected a file's name, a Postgres address, or None.")
        if not isinstance(anchor, str | Path | None):
            raise PolicyError(f"anchor={what_was_given(anchor)}: expected a file's name, or None.")
        self.budget = budget
        asks = user() if analyst is None else a_name(analyst, "analyst")
        checked_purpose(purpose)
        self._lent = False
        self._data = OpenTables(tables)
        declared = self._data.tables
        if _policy is not None:
            self._data.max_aggregates = _policy.service.max_aggregates
            self._data.max_answer_groups = _policy.service.max_answer_groups
        try:
            spaces = dict.fromkeys(self._data.spaces().values(), budget)
            located = self._data.located()
            places = source_places(declared, located)
            new = {space_name(name) for name in names(new_unit_spaces, "new_unit_spaces", '["patient_id"]')}
            policy_text = _policy.text if _policy else json.dumps(described(declared), sort_keys=True)
            self._ledger = open_ledger(
                ledger,
                spaces,
                create=_create_ledger,
                policy=_policy,
                new_spaces=new,
                sources=places,
                older=older_places(declared, located),
                names=self._data.spaces(),
                relations=neighbours_of(declared),
                anchor=anchor,
            )
            self._data.respell(self._ledger.spelling)
            versions = self._data.versions = self._ledger.versions
            if _policy is not None:
                agree_on_limits(self._ledger, declared, _policy, record=_create_ledger)
            (versions.remember_sources if _notes else versions.check_sources)(spelled(places, self._ledger.spelling))
        except BaseException:
            self._data.close()
            raise
        self.ledger = self._ledger.view
        self._door = Door(self._data, self._ledger, analyst=asks, policy=policy_text, purpose=purpose, bits=_bits)

    @classmethod
    def from_policy(
        cls,
        path: str | Path | None = None,
        *,
        analyst: str | None = None,
        create_ledger: bool = False,
        purpose: str | None = None,
    ) -> Session:
        """The session that a `hubbub.toml` describes; by default the one found upward from the working directory.

        Raises PolicyError for a policy that is missing or wrong, and for a ledger that was not created.
        """
        if path is not None:
            a_name(str(path) if isinstance(path, Path) else path, "policy")
        policy = load_policy(path if path is not None else find_policy())
        return cls(
            declared_tables(policy, write_copies=create_ledger),
            budget=policy.budget,
            ledger=policy.ledger,
            analyst=analyst,
            purpose=purpose,
            _create_ledger=create_ledger,
            _policy=policy,
        )

    def as_analyst(self, name: str, *, purpose: str | None = None) -> Session:
        """The same tables, budget and ledger, asked by another analyst: with his limits, and charged to him.

        purpose: what for, as in `Session`. Nothing is opened anew. Closing it changes nothing: it ends with this one.

        Raises QueryError for what is not a name, or not a purpose.
        """
        checked_analyst(a_name(name, "analyst"))
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other._lent = True
        other._door = self._door.of(name, checked_purpose(purpose))
        return other

    @takes_options
    def check(self, sql: str, **options: Unpack[AskOptions]) -> Check:
        """What a question would cost and how good its answer would be; reads no rows, charges nothing.

        The arguments are those of `sql`. assume_rows: the number of values in a group for which the error of a mean is
        predicted.

        Raises QueryError, PolicyError or ParameterError exactly where `sql` would.
        """
        if self._data.declared(sql) is not None:
            return Check(Fraction(0), self.remaining, (), "declarations only: exact and free.", ())
        given = Options.of(options)
        asked = self._data.ask(sql, given, self._ledger.balance.budget, analyst=self._door.analyst)
        if isinstance(asked, PublicQuestion):
            return Check(Fraction(0), self.remaining, (), "public tables only: exact and free.", ())
        return checked(self._door, knowing(self._door, asked, given), given)

    @takes_options
    def sql(
        self, sql: str, *, fresh: bool = False, idempotency_key: str | None = None, **options: Unpack[AskOptions]
    ) -> Release:
        """Ask. The charge is durable before a row is read.

        epsilon: what the answer may cost. rho: the same as zCDP, under a budget with delta. noise: "laplace" or
        "gaussian"; by default Gaussian under a budget with delta. delta: what finding groups privately may cost.
        within: in place of an amount, a share of each estimate, as in "10 %" (at_least: the size from which groups keep
        it), bought step by step (`hubbub.session.looks`); or the half-width that 95 % of answers are to keep, for all
        columns or by name: the smallest epsilon that does, up to `at_most`, is found from declarations and charged.
        max_groups, max_rows, max_total: how much one unit contributes, in place of what is declared; "auto" for groups
        and rows: found in the same charge, which the answer then says.
        bounding: "groups" or "norm", in place of what is declared: what is done with a unit beyond these.
        keys: the groups of columns, by name. params: values for `$name` (a mapping) or `?` (a list).
        weights: how much the error of a column counts when the amount is divided, 1 unless said.
        weight: the column by which rows count in COUNT, SUM and AVG, as in a survey; declared with bounds from 0 on.
        fresh: draw anew, and pay again, even if the answer is stored.
        idempotency_key: a name for this request; sent again with it, the request is charged and drawn once.

        Raises QueryError (rewrite it), PolicyError (declare it), ParameterError or BudgetError (asked, left) before
        anything is charged; EngineError after the charge.
        """
        declared = self._data.declared(sql)
        if declared is not None:
            return public_answer(self._data, declared)
        given = Options.of(options)
        asked = self._data.ask(sql, given, self._ledger.balance.budget, analyst=self._door.analyst)
        if isinstance(asked, PublicQuestion):
            return public_answer(self._data, asked)
        return answered(self._door, asked, given, fresh=fresh, name=idempotency_key)

    @contextmanager
    def reserve(self, *, epsilon: EpsilonLike, unit_space: str | None = None) -> Iterator[str]:
        """Set `epsilon` aside for the questions asked inside the `with`; what they do not use comes back at its end.

        Returns the block's id. If the program dies inside, the block keeps its budget until it is closed:
        `hubbub ledger close ID`.

        Raises BudgetError if it does not fit, QueryError inside another block.
        """
        if self._door.block is not None:
            raise QueryError("a block is reserved already; end its `with` before you reserve another.")
        with self._door.reserved(space=self._data.space(unit_space), epsilon=an_amount(epsilon)) as block:
            yield block

    def plan(self, questions: Iterable[tuple[str, EpsilonLike]]) -> list[Release]:
        """Ask several questions that were fixed in advance: all are charged as one, or none is.

        questions: pairs of SQL and epsilon, about tables of one unit space. Answers that are stored already are free.

        Raises what `sql` raises; before the charge, nothing was asked.
        """
        return answer_plan(self._door, questions)

    def check_plan(self, questions: Iterable[tuple[str, EpsilonLike]]) -> PlanCheck:
        """What `plan` would charge for these, and whether it fits; reads no rows, charges nothing.

        Raises what `plan` raises before the charge, but for a plan that does not fit.
        """
        return check_plan(self._door, questions)

    def table(self, name: str) -> Rows:
        """A table to ask about in Python: `filter`, `group_by`, `agg`, then `check` or `run`.

        Raises QueryError, when it is asked, for a table that is unknown.
        """
        from hubbub.verbs import rows_of

        a_name(name, "table")
        declared = self._data.tables.get(name)
        private = isinstance(declared, PrivateTable)
        info = self._data.catalog.get(name)
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
        return suggested_bounds(self._door, a_name(table, "suggest_bounds"), columns, epsilon)

    def check_bounds(
        self, sql: str, *, epsilon: EpsilonLike, at: EpsilonLike | None = None, fresh: bool = False, **options: Any
    ) -> BoundsCheck:
        """Buy how much the limits of a question leave out: of units in more groups, with more rows, or larger sums.

        One noisy histogram for each limit, one place for each unit (`hubbub.session.check_bounds`); `epsilon` is
        divided among them. `print` shows, for each candidate limit, the share of units beyond it, the share of rows
        that it leaves out at least, and which limit has the least predicted error. at: the epsilon of the question that
        this is predicted for; by default the same. The other options are those of `sql`; max_groups and max_rows need
        not be declared.

        Raises what `sql` raises.
        """
        return bounds_checked(self._door, sql, {**options, "epsilon": epsilon}, at=at, fresh=fresh)

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
        target: str | None = None,
        fresh: bool = False,
    ) -> SyntheticTable:
        """A synthetic table with about the marginals of a private one, charged as one plan. Needs a budget with delta.

        columns: which ones; by default all that are declared. edges: bins of a numeric column. rows: their number, if
        public; else it is bought. rows_per_unit: of one unit; by default what is declared. method: "auto" chooses, by
        predicted error (`plan_synthesis`). constraints: as in "age < 18 implies married = no"; never violated. target:
        a column to learn from it; the report says which of its relations were kept. fresh: draw anew, and pay again.

        Raises PolicyError for an undeclared domain, ParameterError for one too large, too small a budget; BudgetError;
        QueryError where hardly any row has declared values: only then is a fiftieth charged (`hubbub.synthesis.probe`).
        """
        asked = ask_synthesis(
            self._data,
            self._ledger.balance.budget,
            table,
            epsilon=epsilon,
            columns=columns,
            edges=edges,
            rows=rows,
            rows_per_unit=rows_per_unit,
            method=method,
            thorough=thorough,
            constraints=constraints,
            target=target,
        )
        return publishing.synthetic_table(self._door, asked, fresh=a_choice(fresh, "fresh"))

    def plan_synthesis(
        self, table: str, *, epsilon: EpsilonLike, assume_rows: int = 10_000, **options: Any
    ) -> SynthesisPlan:
        """What `synthesize` would do, and how good it would be; reads no rows, charges nothing."""
        assume_rows = a_whole_number(assume_rows, "assume_rows")
        asked = ask_synthesis(self._data, self._ledger.balance.budget, table, epsilon=epsilon, **options)
        stored = self._door.stored(asked.request(self._data)) is not None
        return replace(asked.question.plan(assume_rows=assume_rows), stored=stored)

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
        asked = ask_marginals(
            self._data,
            self._ledger.balance.budget,
            table,
            marginals,
            epsilon=epsilon,
            weights=weights,
            edges=edges,
            rows_per_unit=rows_per_unit,
            assume_rows=assume_rows,
        )
        return publishing.marginals(self._door, asked, fresh=a_choice(fresh, "fresh"))

    def check_fit(
        self, model: object, table: str, *, epsilon: EpsilonLike, rows_per_unit: int | None = None,
        assume_rows: int = 10_000,
    ) -> FitCheck:  # fmt: skip
        """What fitting a model would cost and how it would go; reads no rows, charges nothing.

        The arguments are those of `fit`. assume_rows: about how many rows there are, where the model is not told.

        Raises what `fit` raises before the charge.
        """
        asked = ask_fit(self._door, model, table, epsilon=epsilon, rows_per_unit=rows_per_unit)
        stored = self._door.stored(asked.request(self._data)) is not None
        return asked.check(a_whole_number(assume_rows, "assume_rows"), remaining=self.remaining, stored=stored)

    def fit(
        self,
        model: M | Sequence[M],
        table: str,
        *,
        epsilon: EpsilonLike,
        rows_per_unit: int | None = None,
        fresh: bool = False,
    ) -> M:
        """A fitted copy of a model (`hubbub.learning`), charged as one and stored: the same model again is free.

        model: its parameters; nothing of it is changed. Of a list the one that suits best is fitted, chosen on a
        synthetic table for a fifth of rho (`hubbub.learning.choice`; `figures_`). rows_per_unit: how many rows of one
        unit count; by default what is declared. fresh: draw anew, and pay again.

        The copy holds what was found in attributes that end in an underscore, as scikit-learn's do, and `cost`,
        `charged`, `charge_id` and `receipt` of the charge. Predicting is free, and needs no session.

        Raises PolicyError for a column whose values or range are not declared, and under a pure budget for a model that
        needs one with delta; ParameterError for a parameter; BudgetError. Nothing is charged then.
        """
        asked = ask_fit(self._door, model, table, epsilon=epsilon, rows_per_unit=rows_per_unit)
        fitted: M = fitted_model(self._door, asked, fresh=a_choice(fresh, "fresh"))
        return fitted

    def evaluate(
        self,
        model: Any,
        table: str,
        *,
        epsilon: EpsilonLike,
        rows_per_unit: int | None = None,
        fresh: bool = False,
    ) -> Evaluation:
        """How good a fitted model is on the rows of another table: accuracy, area under the curve, calibration; or R^2.

        One noisy histogram of scores (`hubbub.learning.evaluation`), charged, stored, free when it is asked again. That
        the table holds other people than those the model was fitted on is not checked; where it does not, the same
        budget pays for both, and the figures are too good.

        Raises QueryError for what is not a fitted model; ParameterError for one that predicts nothing; what `fit`
        raises.
        """
        asked = ask_evaluation(
            self._data, self._ledger.balance.budget, model, table, epsilon=epsilon, rows_per_unit=rows_per_unit
        )
        return evaluation(self._door, asked, fresh=a_choice(fresh, "fresh"))

    def refresh(self, table: str) -> str:
        """Declare that a table has new rows: stored answers stay what they are, and are not given for the new rows.

        Returns the new version. No budget comes back: it is the units' own. A file that changed is noticed anyway.

        Raises PolicyError for a table that is not private, or is unknown.
        """
        declared = self._data.tables.get(a_name(table, "refresh"))
        if not isinstance(declared, PrivateTable):
            unknown = not_private(table, self._data.spaces())
            raise PolicyError(f"refresh: {unknown}", remedy=unknown.remedies)
        return self._ledger.steward.refresh(declared.space, table)

    @property
    def analyst(self) -> str:
        """Who asks."""
        return self._door.analyst

    @analyst.setter
    def analyst(self, name: str) -> None:
        self._door.analyst = checked_analyst(a_name(name, "analyst"))

    @property
    def remaining(self) -> Fraction:
        """What is left of the joint budget, exactly; with several unit spaces, of the one that has least left.

        Under a budget with delta: the largest epsilon of one more question.
        """
        balance = self._ledger.balance
        spaces = [(balance.budget(s), balance.left(s)) for s in set(self._data.spaces().values())]
        left = min((largest_epsilon(*space) for space in spaces), default=self.budget.epsilon)
        return EpsilonLeft.of_whole(left, self.budget.epsilon)

    @property
    def tables(self) -> DeclaredTables:
        """The tables by name, as they are declared: who is protected, columns, kinds, ranges, values. Reads no rows."""
        return DeclaredTables(self._data.catalog)

    def history(self) -> History:
        """Every charge in the ledger, oldest first; one's own alone, where analysts do not share answers."""
        whose = None if self._ledger.rules.shared_answers else self.analyst
        return History(self._ledger.record.history(analyst=whose))

    def receipt(self, charge_id: str) -> dict[str, Any]:
        """What a charge asked, ran and cost, under which policy, on which data, and where the ledger's chain stood.

        Raises PolicyError for a charge that there is not, or that is not one's own where analysts do not share answers.
        """
        told = self._ledger.record.receipt(a_name(charge_id, "receipt"))
        if not self._ledger.rules.shared_answers and told["analyst"] != self.analyst:
            raise PolicyError(
                f"there is no charge {charge_id!r} in the ledger {self._ledger.where}. `hubbub history` lists them."
            )
        return told

    def close(self) -> None:
        """Close engine and ledger; what was charged stays charged. One that `as_analyst` made closes nothing."""
        if self._lent:
            return
        self._data.close()
        self._ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        """For notebooks: the tables, and what is left."""
        return f"<div>{html_lines([repr(self)])}{self.tables._repr_html_()}</div>"

    def __repr__(self) -> str:
        kept = self._ledger.where
        where = "memory only, forgotten when this program ends" if kept == "in memory" else kept
        return (
            f"Session(tables={sorted(self._data.tables)}, left={decimal_text(self.remaining)}, ledger={str(where)!r})"
        )

    def __reduce__(self) -> str:
        raise PolicyError("a session holds private tables and cannot be pickled; open one in each process.")

    @property
    def _engine(self) -> Engine:
        return self._data.engine

    @property
    def _bits(self) -> Bits | None:
        return self._door.bits

    @_bits.setter
    def _bits(self, bits: Bits | None) -> None:
        self._door.bits = bits
