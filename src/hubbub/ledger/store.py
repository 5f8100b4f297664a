"""The ledger: one joint budget per unit space, its charges, and the releases they paid for.

**The filter** (soundness of a pure privacy filter: Rogers, Roth, Ullman, Vadhan 2016, Theorem 3.6; Feldman
and Zrnic 2021). A charge is allowed iff spent + epsilon <= ceiling, in exact rationals, decided inside the
transaction that records it. So however many processes ask, and however adaptively, the releases of one unit
space together are `ceiling`-DP.

**The life of a charge** is a path through

    charged -> drawing -> stored -> shown
          \\         \\-> failed
           \\-> failed

each step durable before the next begins. A crash leaves its charge where it stood: budget may be wasted, an
answer never goes out uncharged.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from os import PathLike
from pathlib import Path
from sqlite3 import Connection, Cursor, Row
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias

from hubbub.errors import BudgetError, InternalError, PolicyError, QueryError
from hubbub.ledger.budget import Budget, decimal_text, parse_epsilon
from hubbub.ledger.database import Database, create_file

__all__ = ["Entry", "Ledger", "State", "StoredRelease"]

State: TypeAlias = Literal["charged", "drawing", "stored", "shown", "failed"]

_NEXT: Final[dict[str, tuple[str, ...]]] = {
    "charged": ("drawing", "failed"),
    "drawing": ("failed",),  # and 'stored', which `store` alone may reach: it brings the answer
    "stored": ("shown",),
    "shown": (),
    "failed": (),
}


@dataclass(frozen=True)
class Entry:
    """One charge, in full. `time` is ISO 8601 in UTC; `event` and `details` are JSON text."""

    id: str
    time: str
    space: str
    dataset: str
    analyst: str
    question_key: str
    sql: str
    epsilon: Fraction
    state: State
    event: str
    details: str
    incident: str | None = None


@dataclass(frozen=True)
class StoredRelease:
    """An answer that has been drawn and stored: reading it again costs nothing."""

    entry: Entry
    payload: str

    @property
    def charge_id(self) -> str:
        """The charge that paid for it."""
        return self.entry.id

    @property
    def epsilon(self) -> Fraction:
        """What it cost."""
        return self.entry.epsilon


class Ledger:
    """A ledger file, or one in memory. Safe for threads and across forks; processes share the file.

    Build one with `open`, `in_memory` or `inspect`.
    """

    def __init__(self, database: Database, path: Path | None) -> None:
        self._database = database
        self.path = path

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        budgets: Mapping[str, Budget],
        create: bool = True,
        patience: float = 30.0,
    ) -> Self:
        """Open the ledger for spending.

        Args:
            path: the ledger file.
            budgets: unit space -> its budget. A space the ledger does not know is added.
            create: make a missing file; safe when several processes do so at once.
            patience: seconds to wait for other writers before giving up.

        Raises:
            PolicyError: the file is missing (and `create` is false), is no ledger, is damaged, newer than
                this hubbub, cannot be written, or holds another budget for one of the spaces.
        """
        file = Path(path).absolute()
        if create and not file.is_file():
            create_file(file)
        ledger = cls(Database(file, patience=patience), file)
        ledger._agree(budgets)
        return ledger

    @classmethod
    def in_memory(cls, budgets: Mapping[str, Budget]) -> Self:
        """A ledger that this process alone sees, and that ends with it."""
        ledger = cls(Database(None), None)
        ledger._agree(budgets)
        return ledger

    @classmethod
    def inspect(cls, path: str | PathLike[str]) -> Self:
        """Open an existing ledger for reading only.

        Raises:
            PolicyError: as `open`.
        """
        file = Path(path).absolute()
        return cls(Database(file, read_only=True), file)

    def close(self) -> None:
        """Close the file; whatever was charged stays."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})" if self.path else "Ledger.in_memory()"

    def _agree(self, budgets: Mapping[str, Budget]) -> None:
        with self._database.writing() as connection:
            for space, budget in budgets.items():
                known = _ceiling(connection, space)
                if known is None:
                    connection.execute(
                        "INSERT INTO unit_space (name, ceiling, created) VALUES (?, ?, ?)",
                        (_text(space, "unit space"), _ratio(budget.epsilon), _now()),
                    )
                elif known != budget.epsilon:
                    raise PolicyError(
                        f"this session declares {budget!r} for the unit space {space!r}, but its ledger "
                        f"{self.path or 'in memory'} was created with {Budget(known)!r}. A ceiling is "
                        f"fixed when the ledger is created: ask with {Budget(known)!r}."
                    )

    def spaces(self) -> list[str]:
        """The unit spaces that have a budget here, sorted."""
        with self._database.reading() as connection:
            return [name for (name,) in connection.execute("SELECT name FROM unit_space ORDER BY name")]

    def ceiling(self, space: str) -> Fraction:
        """The budget of `space`.

        Raises:
            PolicyError: the ledger holds no budget for it.
        """
        with self._database.reading() as connection:
            return self._known_ceiling(connection, space)

    def spent(self, space: str) -> Fraction:
        """The sum of every charge to `space`, whatever became of it."""
        with self._database.reading() as connection:
            self._known_ceiling(connection, space)
            return _spent(connection, space)

    def remaining(self, space: str) -> Fraction:
        """What `space` has left: ceiling - spent, exact."""
        with self._database.reading() as connection:
            return self._known_ceiling(connection, space) - _spent(connection, space)

    def _known_ceiling(self, connection: Connection, space: str) -> Fraction:
        known = _ceiling(connection, space)
        if known is None:
            raise PolicyError(
                f"the ledger {self.path or 'in memory'} has no budget for the unit space {space!r}. "
                "Open it with one: `hubbub ledger create` adds those of the policy file."
            )
        return known

    def data_version(self, space: str, dataset: str) -> str:
        """The random id of the data set's current rows; issued when first asked for, the same ever after."""
        with self._database.reading() as connection:
            known = _data_version(connection, space, dataset)
        if known is not None:
            return known
        with self._database.writing() as connection:
            self._known_ceiling(connection, space)
            known = _data_version(connection, space, dataset)
            if known is None:
                known = uuid.uuid4().hex
                connection.execute(
                    "INSERT INTO data_version (unit_space, dataset, id, issued) VALUES (?, ?, ?, ?)",
                    (space, _text(dataset, "data set"), known, _now()),
                )
        return known

    def charge(
        self,
        *,
        space: str,
        dataset: str,
        analyst: str,
        question_key: str,
        sql: str,
        epsilon: Fraction,
        event: str,
        details: str,
    ) -> str:
        """Charge `epsilon` to `space`; on the disk before this returns the charge's id.

        Args:
            space: the unit space that pays.
            dataset: the name of the data set asked about.
            analyst: who asks.
            question_key: equal for equal questions; `find_release` looks it up.
            sql: the question, as people read it.
            epsilon: the cost, exact and positive.
            event: what will be run, as JSON.
            details: sensitivity, scale and what else a receipt shows, as JSON.

        Raises:
            BudgetError: less than `epsilon` is left. Nothing was charged.
            ParameterError: epsilon is not a positive rational. Nothing was charged.
            PolicyError: the ledger cannot record it. No answer may follow.
        """
        cost = parse_epsilon(epsilon)
        texts = {"data set": dataset, "analyst": analyst, "question key": question_key, "question": sql}
        columns = [_text(text, what) for what, text in texts.items()]
        charge_id = uuid.uuid4().hex
        with self._database.writing() as connection:
            ceiling = self._known_ceiling(connection, space)
            spent = _spent(connection, space)
            if spent + cost > ceiling:
                raise _overrun(space, cost, ceiling - spent, ceiling)
            connection.execute(
                "INSERT INTO charge (id, time, unit_space, dataset, analyst, question_key, sql, epsilon, "
                "spent, event, details) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    charge_id,
                    _time(connection),
                    space,
                    *columns,
                    _ratio(cost),
                    _ratio(spent + cost),
                    event,
                    details,
                ),
            )
        return charge_id

    def advance(self, charge_id: str, state: State, *, incident: str | None = None) -> None:
        """Record the next step of a charge's life, durably. Being shown once more is no step.

        Args:
            charge_id: the charge.
            state: 'drawing', 'shown' or 'failed'; an answer is stored with `store`.
            incident: with 'failed', the id under which the engine's own words were kept.

        Raises:
            InternalError: there is no such charge, or it cannot go there from where it is.
            PolicyError: the ledger cannot record it.
        """
        with self._database.writing() as connection:
            serial, now = _standing(connection, charge_id)
            if now == state == "shown":
                return
            if state not in _NEXT[now]:
                raise InternalError(f"charge {charge_id} is '{now}' and cannot become '{state}'")
            _step(connection, serial, state, incident)

    def store(self, charge_id: str, payload: str) -> None:
        """Keep the answer that charge `charge_id` paid for: from here on it is a release, and free to read.

        Raises:
            InternalError: there is no such charge, or it is not 'drawing'.
            PolicyError: the ledger cannot record it; the answer must not be shown.
        """
        with self._database.writing() as connection:
            serial, now = _standing(connection, charge_id)
            if now != "drawing":
                raise InternalError(f"charge {charge_id} is '{now}'; an answer is stored only while drawing")
            connection.execute(
                "INSERT INTO release (charge, time, payload) VALUES (?, ?, ?)",
                (serial, _time(connection), _text(payload, "release")),
            )
            _step(connection, serial, "stored", None)

    def find_release(self, *, space: str, question_key: str, at_least: Fraction) -> StoredRelease | None:
        """The stored answer to this question that cost most, if any cost `at_least` or more."""
        with self._database.reading() as connection:
            found = connection.execute(
                "SELECT id, epsilon FROM charge JOIN release ON release.charge = charge.serial "
                "WHERE unit_space = ? AND question_key = ?",
                (space, question_key),
            ).fetchall()
        dearest = max(((_amount(epsilon), charge_id) for charge_id, epsilon in found), default=None)
        return self.release(dearest[1]) if dearest and dearest[0] >= at_least else None

    def release(self, charge_id: str) -> StoredRelease | None:
        """The answer that `charge_id` paid for; None if it never got that far.

        Raises:
            PolicyError: there is no such charge.
        """
        entry = self.entry(charge_id)
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT payload FROM release WHERE charge = (SELECT serial FROM charge WHERE id = ?)",
                (charge_id,),
            ).fetchone()
        return StoredRelease(entry, row[0]) if row else None

    def entry(self, charge_id: str) -> Entry:
        """One charge, in full.

        Raises:
            PolicyError: there is no such charge.
        """
        with self._database.reading() as connection:
            row = _rows(connection, "WHERE charge.id = ?", charge_id).fetchone()
        if row is None:
            raise PolicyError(f"there is no charge {charge_id!r} in this ledger. `hubbub history` lists them.")
        return _entry(row)

    def history(self, space: str | None = None) -> list[Entry]:
        """Every charge, oldest first; of one unit space if named."""
        with self._database.reading() as connection:
            if space is None:
                return [_entry(row) for row in _rows(connection, "")]
            return [_entry(row) for row in _rows(connection, "WHERE charge.unit_space = ?", space)]


def _rows(connection: Connection, where: str, *parameters: str) -> Cursor:
    cursor = connection.cursor()
    cursor.row_factory = Row
    return cursor.execute(
        "SELECT charge.*, step.state, step.incident FROM charge LEFT JOIN step "
        "ON step.charge = charge.serial "
        "AND step.number = (SELECT max(number) FROM step WHERE step.charge = charge.serial) "
        f"{where} ORDER BY charge.serial",
        parameters,
    )


def _entry(row: Row) -> Entry:
    return Entry(
        id=row["id"],
        time=row["time"],
        space=row["unit_space"],
        dataset=row["dataset"],
        analyst=row["analyst"],
        question_key=row["question_key"],
        sql=row["sql"],
        epsilon=_amount(row["epsilon"]),
        state=row["state"] or "charged",
        event=row["event"],
        details=row["details"],
        incident=row["incident"],
    )


def _ceiling(connection: Connection, space: str) -> Fraction | None:
    row = connection.execute("SELECT ceiling FROM unit_space WHERE name = ?", (space,)).fetchone()
    return None if row is None else _amount(row[0])


def _spent(connection: Connection, space: str) -> Fraction:
    row = connection.execute(
        "SELECT spent FROM charge WHERE unit_space = ? ORDER BY serial DESC LIMIT 1", (space,)
    ).fetchone()
    return Fraction(0) if row is None else _amount(row[0])


def _data_version(connection: Connection, space: str, dataset: str) -> str | None:
    row = connection.execute(
        "SELECT id FROM data_version WHERE unit_space = ? AND dataset = ? ORDER BY serial DESC LIMIT 1",
        (space, dataset),
    ).fetchone()
    return None if row is None else str(row[0])


def _standing(connection: Connection, charge_id: str) -> tuple[int, str]:
    row = connection.execute("SELECT serial FROM charge WHERE id = ?", (charge_id,)).fetchone()
    if row is None:
        raise InternalError(f"there is no charge {charge_id!r} in the ledger")
    serial = int(row[0])
    last = connection.execute(
        "SELECT state FROM step WHERE charge = ? ORDER BY number DESC LIMIT 1", (serial,)
    ).fetchone()
    return serial, "charged" if last is None else str(last[0])


def _step(connection: Connection, serial: int, state: str, incident: str | None) -> None:
    connection.execute(
        "INSERT INTO step (charge, number, state, time, incident) "
        "SELECT ?, coalesce(max(number), 0) + 1, ?, ?, ? FROM step WHERE charge = ?",
        (serial, state, _time(connection), incident, serial),
    )


def _time(connection: Connection) -> str:
    """Now, but never before the last charge: a clock that is set back does not reorder the history."""
    row = connection.execute("SELECT time FROM charge ORDER BY serial DESC LIMIT 1").fetchone()
    return _now() if row is None else max(_now(), str(row[0]))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _ratio(amount: Fraction) -> str:
    return f"{amount.numerator}/{amount.denominator}"


def _amount(ratio: str) -> Fraction:
    try:
        return Fraction(ratio)
    except (ValueError, TypeError, ZeroDivisionError):
        raise PolicyError(
            "the ledger holds an amount that is not a ratio: somebody else wrote into it. No answer is given; restore "
            "a backup that holds every charge."
        ) from None


def _text(text: str, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"the {what} is not valid Unicode: character {error.start + 1} is half of a surrogate pair."
        ) from None
    return text


def _overrun(space: str, cost: Fraction, left: Fraction, ceiling: Fraction) -> BudgetError:
    asked, rest, whole = decimal_text(cost), decimal_text(left), decimal_text(ceiling)
    way_out = f"Ask with epsilon {rest} or less" if left else "The budget is spent: no new question fits"
    return BudgetError(
        f"the question asks for epsilon {asked}, and {rest} of {whole} is left for the unit space {space!r}. "
        f"{way_out}; what was released before can be read again for free.",
        asked=asked,
        left=rest,
    )
