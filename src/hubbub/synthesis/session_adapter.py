"""What a session needs to sell synthetic tables: what to charge, whose rows to keep, how a release is stored.

The way is the house's: `SynthesisQuestion` is checked and priced from declarations alone; its `event` is charged; only
then are rows read, encoded, bounded (`bounded`: each unit keeps at most R rows) and handed to `answer`. The stored form
holds synthetic codes only.

Bounding. Which rows a unit keeps is a function of that unit's own rows: the R smallest by a hash of the row, ties by
the row itself, which leaves equal rows. So a unit moves the table by at most R rows, whatever the others hold.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import ZCDP, Number
from hubbub.accounting.amounts import amount, count
from hubbub.errors import ParameterError, PolicyError, what_was_given
from hubbub.noise import Bits
from hubbub.remedies import DeclareRange, DeclareValues, TrimBlanks
from hubbub.synthesis.constraints import Constraint, constraint
from hubbub.synthesis.planner import SynthesisPlan, plan_synthesis
from hubbub.synthesis.probe import SHARE, Probe, probe, undeclared
from hubbub.synthesis.records import Categories, Edges, Schema, identity
from hubbub.synthesis.synthetic import SyntheticData, check_rows, prepared, synthesize
from hubbub.synthesis.utility import Utility, utility_of

__all__ = ["SynthesisQuestion", "bounded", "declared", "hardly_any", "packed", "packed_probe", "unpacked", "utility_in"]

Integers = NDArray[np.int64]

_FORMAT = "synthesis 1"
_EMPTY = "synthesis without rows 1"


def declared(
    columns: Mapping[str, Mapping[str, Any]],
    types: Mapping[str, str] | None = None,
    *,
    edges: Mapping[str, Sequence[float]] | None = None,
    wanted: Sequence[str] | None = None,
) -> Schema:
    """The schema that a policy's `columns` declare: `one_of` as categories, `between` in bins, `edges` as they are.

    edges: bins of a column's own, instead of equal ones (one for each whole number, up to 128; else 32). wanted: these
    columns only.

    Raises PolicyError for a wanted column without a declaration, no columns, and bounds that are dates.
    """
    names = list(columns) if wanted is None else list(wanted)
    kinds, cuts = types or {}, edges or {}
    missing = [n for n in [*names, *cuts] if n not in columns]
    if missing:
        from hubbub.sql.bind.scope import did_you_mean

        ways = DeclareValues(missing[0]), DeclareRange(missing[0])
        raise PolicyError(
            f"the domain of {missing[0]!r} is not declared. {did_you_mean(missing[0], columns)} Or declare it: "
            f"{' or '.join(way.in_python() for way in ways)}.",
            remedy=ways,
        )
    if not names:
        raise PolicyError("no column's domain is declared.")
    domains: dict[str, Categories | Edges] = {}
    for name in names:
        what = columns[name]
        if "one_of" in what:
            domains[name] = Categories(*what["one_of"], *([None] if what.get("null") else []), other=what.get("other"))
            continue
        if "edges" in what:
            whole, nullable = kinds.get(name) == "integer", bool(what.get("nullable", True))
            domains[name] = Edges(cuts.get(name, what["edges"]), whole=whole, nullable=nullable)
            continue
        low, high = what["between"]
        if not all(isinstance(end, int | float | Fraction) for end in (low, high)):
            way = DeclareValues(name)
            raise PolicyError(
                f"the column {what_was_given(name)} lies between {low} and {high}; synthetic tables take numbers "
                f"and categories. Leave it out, or declare {way.in_python()}.",
                remedy=way,
            )
        whole, nullable = kinds.get(name) == "integer", bool(what.get("nullable", True))
        if name in cuts:
            domains[name] = Edges(cuts[name], whole=whole, nullable=nullable)
        else:
            bins = int(high - low) + 1 if whole and high - low < 128 else 32
            domains[name] = Edges.between(float(low), float(high), bins=bins, whole=whole, nullable=nullable)
    return Schema(domains)


@dataclass(frozen=True)
class SynthesisQuestion:
    """A synthetic table that was asked for; everything here is public.

    rows: the declared number of rows, or None to buy it. constraints: as text (`constraint`).
    """

    table: str
    schema: Schema
    rho: Fraction
    rows_per_unit: int = 1
    neighbours: str = "add_remove"
    method: str = "auto"
    thorough: bool = False
    rows: int | None = None
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if amount(self.rho, "rho") == 0:
            raise ParameterError("rho = 0 was asked of synthetic data; give a positive budget.")
        count(self.rows_per_unit, "rows_per_unit")
        check_rows(self.rows)
        self.limits()
        self.plan(assume_rows=10_000)

    @property
    def event(self) -> ZCDP:
        """What to charge: all of rho, whatever rounding leaves unspent."""
        return ZCDP(self.rho)

    @property
    def first_event(self) -> ZCDP:
        """What `probe` runs at most."""
        return ZCDP(self.rho * SHARE)

    @property
    def second_event(self) -> ZCDP:
        """What `answer` runs at most, after the probe."""
        return ZCDP(self._left)

    @property
    def _left(self) -> Fraction:
        """What the first step leaves for the table."""
        return self.rho * (1 - SHARE)

    def probe(self, codes: Integers, units: Sequence[Any] | None, *, bits: Bits | None = None) -> Probe:
        """The first step: how many rows have declared values. codes: of all rows, -1 where a value is not declared.

        Charge `event` first. Where it says `hardly_any`, nothing else may be drawn; all but its own event comes back.
        """
        declared = len(bounded(codes, units, self.rows_per_unit))
        owners = None if units is None else _owners(units)
        return probe(
            declared,
            undeclared(codes, None if owners is None else owners.tolist(), self.rows_per_unit),
            rho=self.rho * SHARE,
            rows=self.rows,
            rows_per_unit=self.rows_per_unit,
            neighbours=self.neighbours,
            bits=bits,
        )

    @property
    def key(self) -> str:
        """Equal for equal questions."""
        text = json.dumps([_FORMAT, self.table, repr(self.schema), str(self.rho), *map(str, self._options())])
        return hashlib.sha256(text.encode()).hexdigest()

    def _options(self) -> tuple[object, ...]:
        return (self.rows_per_unit, self.neighbours, self.method, self.thorough, self.rows, self.constraints)

    def limits(self) -> list[Constraint]:
        """The constraints as tables. Raises ParameterError where one does not parse."""
        return [constraint(text, self.schema, self.constraints) for text in self.constraints]

    def plan(self, *, assume_rows: int) -> SynthesisPlan:
        """The method and its predicted errors for about so many rows; reads nothing."""
        squared = self.rows_per_unit**2 * (1 if self.neighbours == "add_remove" else 2)
        return plan_synthesis(
            self.schema.domain,
            rho=self._left,
            rows=self.rows or assume_rows,
            method=self.method,
            squared_sensitivity=squared,
            thorough=self.thorough,
        )

    def check(self) -> None:
        """Raises ParameterError for all that `answer` would refuse: it depends on declarations alone."""
        squared = self.rows_per_unit**2 * (1 if self.neighbours == "add_remove" else 2)
        prepared(
            self.schema.domain,
            rho=self._left,
            rows=self.rows,
            squared_sensitivity=squared,
            method=self.method,
            thorough=self.thorough,
            constraints=self.limits(),
        )

    def answer(self, codes: Integers, *, first: Probe, bits: Bits | None = None) -> SyntheticData:
        """The synthetic table. codes: encoded and `bounded` rows; first: what `probe` said of them, charged with it."""
        return synthesize(
            codes,
            self.schema.domain,
            rho=self.rho,
            rows=self.rows,
            rows_per_unit=self.rows_per_unit,
            neighbours=self.neighbours,
            method=self.method,
            thorough=self.thorough,
            constraints=self.limits(),
            first=first,
            bits=bits,
        )


def bounded(codes: Integers, units: Sequence[Any] | None, rows_per_unit: Number) -> Integers:
    """At most `rows_per_unit` rows of each unit, by hash of the row; units None: each row is its own.

    Rows of no unit (None, NaN) and rows with a code of -1 (`Schema.places`) are dropped. codes: (n, d); units: one
    value per row.

    >>> bounded(np.array([[1], [2], [1]]), ["a", "a", None], 2).tolist()
    [[1], [2]]
    """
    within = (codes >= 0).all(axis=1)
    if units is None:
        return np.asfortranarray(codes[within])
    owners = _owners(units)
    kept = (owners >= 0) & within
    rows, owners = codes[kept], owners[kept]
    order = np.lexsort((*rows.T[::-1], _hashed(rows), owners))
    sorted_owners = owners[order]
    first = np.flatnonzero(np.r_[True, sorted_owners[1:] != sorted_owners[:-1]]) if len(order) else np.zeros(0, int)
    starts = np.repeat(first, np.diff(np.r_[first, len(order)]))
    return np.asfortranarray(rows[order[np.arange(len(order)) - starts < int(rows_per_unit)]])


def _owners(units: Sequence[Any]) -> Integers:
    """A number for each unit, -1 for none."""
    places: dict[Any, int] = {}
    out = np.empty(len(units), np.int64)
    nobody = identity(None)
    for i, unit in enumerate(units):
        name = identity(unit)
        out[i] = -1 if name == nobody else places.setdefault(name, len(places))
    return out


def _hashed(rows: Integers) -> NDArray[np.uint64]:
    """A 64-bit mix of each row's codes (the finaliser of SplitMix64)."""
    mixed = np.full(len(rows), 0x9E3779B97F4A7C15, np.uint64)
    for column in rows.T:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(31)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def packed(data: SyntheticData) -> str:
    """The stored form of a release: synthetic codes, and what the report says."""
    kind = np.dtype(np.int32)
    body = zlib.compress(np.ascontiguousarray(data.codes, dtype=kind).tobytes(), 6)
    return json.dumps(
        {
            "format": _FORMAT,
            "columns": data.domain.columns,
            "sizes": data.domain.sizes,
            "rows": len(data.codes),
            "rho": str(data.rho),
            "method": data.plan.method,
            "report": str(data.report),
            "predicted": [[list(columns), distance] for columns, distance in data.report.worst(2)],
            "utility": utility_of(data.report).to_wire(),
            "codes": base64.b64encode(body).decode("ascii"),
        }
    )


def packed_probe(first: Probe) -> str:
    """The stored form where the first step was the last."""
    packed = {"declared": first.declared, "reach": first.reach, "rows": first.rows}
    return json.dumps({"format": _EMPTY, **packed})


def hardly_any(payload: str) -> str | None:
    """What to say where the first step was the last; None where a table was made."""
    stored = json.loads(payload)
    if stored.get("format") != _EMPTY:
        return None
    about = f"about {max(0, stored['declared']):,} ± {stored['reach']:,} of {stored['rows']:,}"
    return (
        f"hardly any row has declared values: check spelling and blanks. Only {about} rows hold a declared value in "
        "every column asked for, so a synthetic table would be made of noise, and none was drawn. Compare what the "
        f"source holds with what is declared ({TrimBlanks().in_python()} cuts off blanks), or ask for fewer columns."
    )


def utility_in(payload: str) -> Utility | None:
    """How far a stored table is from its noisy marginals; None of one that was stored before this was."""
    stored = json.loads(payload)
    return Utility.from_wire(stored["columns"], stored["utility"]) if "utility" in stored else None


def unpacked(payload: str, schema: Schema) -> tuple[Integers, str, dict[tuple[str, ...], float]]:
    """The synthetic codes of a stored release, its report's text, and the predicted distances of its worst pairs.

    Raises PolicyError for another format.
    """
    stored = json.loads(payload)
    if stored.get("format") != _FORMAT or tuple(stored["columns"]) != schema.domain.columns:
        raise PolicyError("this stored release is not a synthetic table of this schema; ask for it anew.")
    body = zlib.decompress(base64.b64decode(stored["codes"]))
    codes = np.frombuffer(body, np.int32).reshape(stored["rows"], len(stored["columns"]))
    predicted = {tuple(columns): float(distance) for columns, distance in stored.get("predicted", [])}
    return codes.astype(np.int64), str(stored["report"]), predicted
