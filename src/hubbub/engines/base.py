"""What an engine is: the promises that every engine keeps, and that one suite of tests checks for each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from hubbub.tables.columns import Scalar
from hubbub.tables.declare import PrivateTable, PublicTable
from hubbub.tables.kinds import Kind
from hubbub.tables.plan import Plan
from hubbub.tables.relations import Scan

__all__ = ["Copied", "Elsewhere", "Engine", "EnginePlace", "Exact", "InPlace", "Located", "Named", "Schema"]


@dataclass(frozen=True)
class Schema:
    """Columns of a source, by name, in order, and its unit column as the source writes it. From metadata alone.

    unit_type: a word for the unit's type; units of two tables are compared only where it is the same. never_null: the
    columns that a constraint keeps from being NULL; `init` proposes them, and no question reads it. zoned: the columns
    of moments, which the source types as times with a zone.
    """

    columns: Mapping[str, Kind]
    unit: str | None = None
    unit_type: str | None = None
    never_null: frozenset[str] = frozenset()
    zoned: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Located:
    """Where an engine found a source, whatever it was called: two budgets for one source would be two for its people.

    place: a text that is the same for every spelling; None where the declaration says it all. inner: the table inside
    a database, in full. older: texts by which it may have been called before. here: equal for sources that are one in
    this process, where no text says so. header: the columns of a text file, in small letters, where its engine alone
    can read its header. kept: other places that a ledger knows it by, such as the folder of a table of Spark.
    """

    place: str | None = None
    inner: str | None = None
    older: tuple[str, ...] = ()
    here: Hashable = None
    header: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exact:
    """Exact integers by group: the most private thing there is. It cannot be printed, pickled or stored.

    vectors: one tuple per measurement of the plan, one entry per group: an integer, or for values that a quantile
    looks at, pairs (step, how often) by increasing step. groups: the keys of each entry where groups are found
    privately; None for public groups, which come in canonical order, zeros included.
    """

    vectors: tuple[tuple[Any, ...], ...]
    groups: tuple[tuple[Scalar, ...], ...] | None = None

    def __repr__(self) -> str:
        return "Exact(not shown)"

    def __reduce__(self) -> str:
        raise TypeError("exact integers about people cannot be pickled")


class Engine(Protocol):
    """An engine that holds the private tables of one session.

    returns_rows: whether `rows` does; known before anything is charged.
    """

    returns_rows: bool

    def add(self, name: str, table: PrivateTable | PublicTable) -> Schema:
        """Make a declared table known.

        Raises PolicyError for a source that is missing or whose schema contradicts the declaration.
        """
        ...

    def located(self, name: str) -> Located:
        """Where a source is, as `add` found it."""
        ...

    def seal(self) -> None:
        """After the last `add`: nothing else can be opened."""
        ...

    def recheck(self, name: str) -> None:
        """Raises PolicyError where the columns of a source are no longer those that the session was opened on."""
        ...

    def mark(self, name: str) -> str | None:
        """A text that changes when the rows of a source do, seen by the ledger alone; None where nothing tells."""
        ...

    def rows(self, scan: Scan, columns: Sequence[str]) -> Any:
        """The owned rows of a table as Arrow, and in the column "" a number for each unit: for this process alone.

        Raises PolicyError where rows never leave their engine, EngineError if it fails.
        """
        ...

    def compile(self, plan: Plan) -> str:
        """The text whose answer `run` gives, beside one for each list of values, if quantiles are asked; reads nothing.

        Raises QueryError where it would grow beyond all use.
        """
        ...

    def prepare(self, plan: Plan) -> None:
        """Before a charge: whether the engine takes the texts of a plan, as far as that can be told without a row.

        Raises QueryError where they would grow beyond all use, or bind to nothing.
        """
        ...

    def run(self, plan: Plan, public: Mapping[str, Any] | None = None) -> Exact:
        """Run the private part of a question. public: the Arrow table of each public relation, by its place.

        Raises EngineError, with an incident id alone, if the engine fails.
        """
        ...

    def words(self, incident: str) -> str | None:
        """What the engine itself said of an incident, once; for the steward alone."""
        ...

    def interrupt(self, asker: object = None) -> None:
        """Stop what is running; or, of that, only what runs for one `hubbub.engines.stopping.asker`."""
        ...

    def close(self) -> None:
        """Release everything, temporary files included."""
        ...


@dataclass(frozen=True)
class Named:
    """A source as a session names it. name: of the table in questions. table: the declared table inside a database;
    inner: the same as its engine found it, in full."""

    source: Any
    name: str
    table: str | None = None
    inner: str | None = None


class EnginePlace(Protocol):
    """Where an engine's tables are: how their sources are written, remembered and opened. Each engine has one.

    name: as messages call it. holds: the classes of its sources. schemes: what a text begins with that names a table of
    its own in full, such as "spark:"; a policy file may name these.
    """

    @property
    def name(self) -> str: ...

    @property
    def holds(self) -> tuple[type, ...]: ...

    @property
    def schemes(self) -> tuple[str, ...]: ...

    def read(self, source: object) -> object | None:
        """The source that a text or an object names; None where it is not one of these.

        Raises PolicyError for one that is written wrongly.
        """
        ...

    def engine(self) -> Engine:
        """A new engine, for one session.

        Raises PolicyError where what it needs is not installed.
        """
        ...

    def kept(self, named: Named) -> str | None:
        """What the ledger knows a source by: the same for every spelling of it, without a password; None where its
        declaration does not say."""
        ...

    def here(self, named: Named) -> Hashable:
        """Equal for sources that are one in this process, whatever they are called; None where nothing tells. Of
        several files a frozenset, which is one with each of its files, and with a set that shares any of them.
        """
        ...

    def written(self, source: Any) -> str:
        """What the record of a session says of a source, without a password."""
        ...

    def at_hand(self, source: Any) -> bool:
        """Whether its tables can be looked at without starting anything."""
        ...


@runtime_checkable
class InPlace(Protocol):
    """An engine that adds up in place what a model asks of whole rows, which do not leave it."""

    def totals(
        self, scan: Scan, columns: Sequence[str], write: Callable[[str, Any], str], public: Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        """The rows of a text of sums. write: given the text of the owned rows, whose columns are c0, c1 and so on, and
        the dialect, a text that begins with WITH. public: Arrow tables by the name of a stage before it.

        Raises EngineError, with an incident id alone, if the engine fails.
        """
        ...


@runtime_checkable
class Copied(Protocol):
    """An engine that reads copies, which a question takes anew while another one reads."""

    def copied(self, name: str) -> tuple[str, int] | None:
        """The mark of the copy that is here, and how often one was taken; None of a source that is not copied."""
        ...


@runtime_checkable
class Elsewhere(Protocol):
    """An engine whose work is done by a server, which goes on when this process is gone."""

    def limit(self, seconds: float) -> None:
        """From here on, have the server end what it runs so many seconds from now."""

    def end_earlier(self) -> None:
        """End what earlier processes under this one's name left running there, and wait until it has ended.

        Raises PolicyError where it does not end.
        """
