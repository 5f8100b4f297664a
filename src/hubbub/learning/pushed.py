"""What a model asks of rows that stay in Postgres or Spark: the same whole numbers as of rows in this process.

A row is coded in place: a number by comparing it with the public cuts (`Dialect.rank`), a value by comparing it
with the declared ones (`hubbub.learning.features`). From there on there are whole numbers alone: the score is a sum of
looked-up ones, the residual is read from the public table of `hubbub.learning.exact`, which travels as a parameter, and
a statement adds up by code (GROUPING SETS). Nothing but these sums comes back, one statement for each pass; the noise
is put on them here. Sums of whole numbers have no order, so they are those of every other engine, bit for bit.

An evaluation is one statement: rows are counted by class and by the step of their score. Steps are found by quotients
of numbers that are 0 or more, which every engine rounds alike. Of scores s_k below 2^62 / K, k < K, the first largest
is told by the largest of s_k K + (K - 1 - k), which is K - 1 - k modulo K.

Each row is its own unit here: which rows a unit keeps is chosen by a hash that is not computed in place.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hubbub.errors import QueryError
from hubbub.learning.exact import GRAIN, SCALE, Sums, sigmoid_steps
from hubbub.learning.features import ONE, Categories, Column, Design, Integers, Numbers, Pair, Scoring, identity
from hubbub.learning.model import Problem
from hubbub.learning.targets import Classes, Range
from hubbub.tables.kinds import NUMERIC, Kind

__all__ = ["Pushed", "coding"]

Totals = Callable[[Callable[[str, Any], str], Mapping[str, Any]], list[tuple[Any, ...]]]
_TABLE: Final = "residual_table"


def coding(column: Categories | Numbers, sql: str, kind: Kind, dialect: Any) -> str:
    """The code of a value, as SQL. sql: the value's expression; kind: of it."""
    return (
        _category(column, sql, kind, dialect) if isinstance(column, Categories) else _number(column, sql, kind, dialect)
    )


def _category(column: Categories, sql: str, kind: Kind, dialect: Any) -> str:
    whens, null = [], column.default
    for place, value in enumerate(column.values):
        if identity(value) == identity(None):
            null = place
        elif _comparable(value, kind):
            with suppress(QueryError):  # a text that the database cannot hold: no row has it
                whens.append(f"WHEN {sql} = {dialect.constant_as(value, kind)} THEN {place}")
    value = dialect.not_nan(sql) if kind is Kind.NUMBER else sql
    return f"CASE WHEN {value} IS NULL THEN {null} {' '.join(whens)} ELSE {column.default} END"


def _comparable(value: object, kind: Kind) -> bool:
    """Whether a row may have the value: then it can be written beside a column of this kind."""
    match value:
        case bool():
            return kind is Kind.BOOLEAN
        case int() | float():
            return kind in NUMERIC and abs(value) < (10**38 if kind is Kind.INTEGER else sys.float_info.max)
        case str():
            return kind is Kind.TEXT
    return False


def _number(column: Numbers, sql: str, kind: Kind, dialect: Any) -> str:
    missing = column.size - 1
    if kind not in NUMERIC:
        return f"{missing}"
    x = dialect.not_nan(dialect.double(sql))
    return f"CASE WHEN {x} IS NULL THEN {missing} ELSE {dialect.rank(x, column._cuts.tolist())} END"


@dataclass(frozen=True, eq=False)
class Pushed:
    """Rows that are elsewhere, with what `Coded` gives of them. It cannot be pickled."""

    problem: Problem
    kinds: Mapping[str, Kind]
    totals: Totals = field(repr=False)
    design: Design
    with_target: bool = False

    def __reduce__(self) -> str:
        raise TypeError("the rows of people cannot be pickled")

    @property
    def weights(self) -> Any:
        """Whether rows are weighted: None where they are not."""
        return self.problem.weight

    def beside_target(self, design: Design) -> Pushed:
        """The same rows with the target's step, halved, as one more column."""
        return Pushed(self.problem, self.kinds, self.totals, design, with_target=True)

    def mass(self) -> int:
        """The number of rows, or the sum of their weights."""
        ((total,),) = self._asked(lambda stages, _: f"{stages}\nSELECT SUM(w) FROM used")
        return int(total or 0)

    def by_class(self, classes: int) -> list[Sums]:
        """As `Coded.by_class`."""
        return [self._sums_of(cells) for cells in self._cells(classes, [("y",), *(("y", c) for c in self._names)])]

    def target_sum(self, middle: int) -> int:
        """As `Coded.target_sum`."""
        ((total,),) = self._asked(lambda stages, _: f"{stages}\nSELECT SUM((y - {middle}) * w) FROM used")
        return int(total or 0)

    def second_moment(self) -> Integers:
        """As `Coded.second_moment`."""
        pairs = [(), *((c,) for c in self._names), *itertools.combinations(self._names, 2)]
        counted: dict[tuple[str, ...], dict[tuple[int, ...], int]] = {pair: {} for pair in pairs}
        names = self._names
        for *codes, total in self._asked(lambda stages, _: _grouped(stages, names, pairs, "w")):
            there = tuple(n for n, c in zip(names, codes, strict=True) if c is not None)
            counted[there][tuple(int(c) for c in codes if c is not None)] = int(total or 0)
        return self._moment(counted)

    def _moment(self, counted: Mapping[tuple[str, ...], Mapping[tuple[int, ...], int]]) -> Integers:
        one: tuple[str, int, Integers] = "", 0, np.full((1, 1), ONE, np.int64)
        columns = zip(self._names, self.design.starts, self.design.columns.values(), strict=True)
        ends = [one, *((name, start, column.features) for name, start, column in columns)]
        moment: Integers = np.zeros((self.design.width, self.design.width), np.int64)
        for (left, at, a), (right, beside, b) in itertools.combinations_with_replacement(ends, 2):
            counts = np.zeros((len(a), len(b)), np.int64)
            for codes, count in counted[tuple(dict.fromkeys(n for n in (left, right) if n))].items():
                counts[_cell(codes, diagonal=left == right)] = count
            block = a.T @ counts @ b
            where = np.ix_(at + np.arange(a.shape[1]), beside + np.arange(b.shape[1]))
            moment[where] = block
            moment.T[where] = block
        return moment

    def logistic_sums(self, weights: Integers) -> list[int]:
        """As `Coded.sums` of the residual of two classes."""
        import pyarrow as pa

        scoring, names = self.design.scoring(weights[None]), self._names
        lows, steps, end, width = sigmoid_steps()
        # The last score of all reads the end of the last step.
        table = pa.table({"place": np.arange(len(lows)), "low": lows, "step": steps})

        def write(stages: str, dialect: Any) -> str:
            at = f"least(greatest({self._score(scoring, 0, dialect)}, -{end}), {end}) + {end}"
            place, low, step = (dialect.leaf_column(n, i) for i, n in enumerate(("place", "low", "step")))
            between = dialect.quotient(f"({_TABLE}.{step} * (scored.s % {width}))", width)
            residual = f"({_TABLE}.{low} + {between} - y * {SCALE}) * w"
            joined = f"scored JOIN {_TABLE} ON {_TABLE}.{place} = {dialect.quotient('scored.s', width)}"
            kept = ", ".join(["y", "w", *names])
            more = f",\nscored AS (SELECT {kept}, {at} AS s FROM used OFFSET 0)"
            more += f",\nresiduals AS (SELECT {kept}, {residual} AS v FROM {joined})"
            return _grouped(stages + more, names, [(), *((c,) for c in names)], "v", source="residuals")

        total, of_code = 0, [np.zeros(c.size, np.int64) for c in self.design.columns.values()]
        for *codes, value in self._asked(write, {_TABLE: table}):
            there = [(i, int(c)) for i, c in enumerate(codes) if c is not None]
            if there:
                of_code[there[0][0]][there[0][1]] = int(value)
            else:
                total = int(value or 0)
        return self.design.gathered(total, of_code)

    def by_score(self, scoring: Scoring, step: int, ends: int) -> list[int]:
        """As `Coded.by_score`."""
        size, end = 2 * ends + 2, ends * step

        def write(stages: str, dialect: Any) -> str:
            above = f"least(greatest({self._score(scoring, 0, dialect)}, -{end}), {end + 1}) + {end}"
            placed = f"SELECT y, {dialect.quotient(f'({above} + {step - 1})', step)} AS place FROM used OFFSET 0"
            return f"{stages},\nplaced AS ({placed})\nSELECT y, place, COUNT(*) FROM placed GROUP BY y, place"

        return self._counted(write, 2, size)

    def by_best(self, scoring: Scoring) -> list[int]:
        """As `Coded.by_best`."""
        outputs = len(scoring.starts)

        def write(stages: str, dialect: Any) -> str:
            each = (f"({self._score(scoring, k, dialect)}) * {outputs} + {outputs - 1 - k}" for k in range(outputs))
            most = f"{stages},\nscored AS (SELECT y, greatest({', '.join(each)}) AS s FROM used OFFSET 0)"
            place = f"{outputs - 1} - (s % {outputs} + {outputs}) % {outputs}"
            placed = f"{most},\nplaced AS (SELECT y, {place} AS place FROM scored)"
            return f"{placed}\nSELECT y, place, COUNT(*) FROM placed GROUP BY y, place"

        return self._counted(write, outputs, outputs)

    def errors(self, scoring: Scoring, half: int) -> list[int]:
        """As `Coded.errors`."""
        end = half * GRAIN

        def write(stages: str, dialect: Any) -> str:
            above = f"least(greatest({self._score(scoring, 0, dialect)}, -{end}), {end}) + {end}"
            e = f"{dialect.quotient(f'({above})', GRAIN)} - y"
            told = f"told AS (SELECT y - {half} AS y, {e} AS e FROM used OFFSET 0)"
            return f"{stages},\n{told}\nSELECT COUNT(*), SUM(y), SUM(y * y), SUM(e * e) FROM told"

        ((rows, *sums),) = self._asked(write)
        return [unit * int(s or 0) for unit, s in zip((4 * half**2, 4 * half, 4, 1), (rows, *sums), strict=True)]

    def _counted(self, write: Callable[[str, Any], str], classes: int, size: int) -> list[int]:
        """How many rows there are of each class and place, from a text that says it of those that there are."""
        counts = [0] * (classes * size)
        for y, place, count in self._asked(write):
            counts[int(y) * size + int(place)] = int(count)
        return counts

    def _score(self, scoring: Scoring, output: int, dialect: Any) -> str:
        terms = [dialect.pick(t[output].tolist(), c) for t, c in zip(scoring.tables, self._names, strict=True)]
        return " + ".join([f"CAST({scoring.starts[output]} AS {dialect.types[Kind.INTEGER]})", *terms])

    @property
    def _names(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.design.columns))]

    def _cells(self, classes: int, sets: Sequence[tuple[str, ...]]) -> list[dict[tuple[int, int], int]]:
        """For each class, what stands at (place of a column, code); (-1, 0) for all."""
        cells: list[dict[tuple[int, int], int]] = [{} for _ in range(classes)]
        names = self._names
        for y, *codes, total in self._asked(lambda stages, _: _grouped(stages, ["y", *names], sets, "w")):
            there = [(i, int(c)) for i, c in enumerate(codes) if c is not None] or [(-1, 0)]
            cells[int(y)][there[0]] = int(total)
        return cells

    def _sums_of(self, cells: Mapping[tuple[int, int], int]) -> Sums:
        of_code = [np.zeros(c.size, np.int64) for c in self.design.columns.values()]
        for (column, code), count in cells.items():
            if column >= 0:
                of_code[column][code] = count
        return Sums(cells.get((-1, 0), 0), tuple(of_code))

    def _asked(
        self, write: Callable[[str, Any], str], public: Mapping[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        return self.totals(lambda base, dialect: write(self._stages(base, dialect), dialect), public or {})

    def _stages(self, base: str, dialect: Any) -> str:
        """The stages up to `used`: the coded rows that count."""
        problem = self.problem
        at = {name: f"c{i}" for i, name in enumerate(problem.columns)}
        coded = [
            f"{self._code(name, column, at, dialect)} AS k{i}"
            for i, (name, column) in enumerate(problem.design.columns.items())
        ]
        coded.append(f"{self._label(at, dialect)} AS y")
        weight = "1"
        if problem.weight is not None:
            name = problem.weight.name
            code = coding(problem.weight.column, at[name], self.kinds[name], dialect)
            weight = f"(CASE WHEN {code} > {problem.weight.most} THEN 0 ELSE {code} END)"
        coded.append(f"CAST({weight} AS {dialect.types[Kind.INTEGER]}) AS w")
        more = f", {dialect.quotient('(y + 1)', 2)} AS k{len(problem.design.columns)}" if self.with_target else ""
        # OFFSET 0 keeps a planner from copying a stage's long expressions into every place that names them.
        return (
            f"WITH owned AS ({base}),\ncoded AS (SELECT {', '.join(coded)} FROM owned OFFSET 0),\n"
            f"used AS (SELECT coded.*{more} FROM coded WHERE y >= 0)"
        )

    def _code(self, name: str, column: Column, at: Mapping[str, str], dialect: Any) -> str:
        if not isinstance(column, Pair):
            return coding(column, at[name], self.kinds[name], dialect)
        first, second = (
            coding(part, at[n], self.kinds[n], dialect) for n, part in zip(column.names_in, column.parts, strict=True)
        )
        return f"(({first}) * {column.parts[1].size} + ({second}))"

    def _label(self, at: Mapping[str, str], dialect: Any) -> str:
        match self.problem.target:
            case None:
                return "0"
            case Classes(name=name, values=values, column=column):
                code = coding(column, at[name], self.kinds[name], dialect)
                null = f"WHEN {at[name]} IS NULL THEN -1 " if column.other is not None else ""
                return f"CASE {null}WHEN {code} < {len(values)} THEN {code} ELSE -1 END"
            case Range(name=name) as target:
                code = coding(target.column, at[name], self.kinds[name], dialect)
                return f"CASE WHEN {code} > {target.most} THEN -1 ELSE {code} END"


def _cell(codes: tuple[int, ...], *, diagonal: bool) -> tuple[int, ...]:
    """Where the count of some codes stands: the intercept has one code, 0."""
    if len(codes) == 2:
        return codes
    return (0, 0) if not codes else codes * 2 if diagonal else (0, *codes)


def _grouped(
    stages: str, names: Sequence[str], sets: Sequence[tuple[str, ...]], value: str, *, source: str = "used"
) -> str:
    """Sums of a value by each set of codes; the codes that a row is not about are NULL."""
    listed = ", ".join(f"({', '.join(one)})" for one in sets)
    return f"{stages}\nSELECT {', '.join([*names, f'SUM({value})'])} FROM {source} GROUP BY GROUPING SETS ({listed})"
