"""Data versions, and the texts of policies, which charges refer to.

**Data versions.** A refresh gives the data set a new random id, so that stored answers are not handed out for new rows.
It gives back no budget: the budget is the unit's, and neighbouring histories differ in one unit in all versions.
Fingerprints that detect a refresh are keyed with the ledger's own secret, because a file's size tells about its rows.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import uuid
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from hubbub.errors import PolicyError
from hubbub.ledger.accounts import table_account
from hubbub.ledger.charge import checked_text
from hubbub.ledger.handle import Handle
from hubbub.ledger.hash_chain import Connection, Writer
from hubbub.ledger.places import files_at, named_at, one_form
from hubbub.remedies import CallTable, DeclareOption
from hubbub.spelling import one_spelling

__all__ = ["CHANGED", "FIRST", "ROWS", "Versions", "at_column", "issue", "same_people", "version_of"]

ROWS: Final = "each row"
"""The unit of a source whose every row is somebody else's."""
FIRST: Final = "first asked for"
CHANGED: Final = "the source changed"
"""Why a version was issued, where nobody declared it."""


_COLUMN: Final = re.compile(r"Column (\d+), (named|under its header)")


class Versions:
    """Which rows, and which policy, a question was asked about."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def data_version(self, space: str, dataset: str, *, fingerprint: str | None = None) -> str:
        """The random id of the data set's current rows; issued when first asked for.

        fingerprint: any text that changes when the rows do. One that was not seen since the last declared refresh is a
            refresh; two copies that are asked about in turn keep a version each.
        """
        known = self.known(space, dataset, fingerprint=fingerprint)
        if known is not None:
            return known
        with self._handle.writing() as writer:
            self._handle.budget(writer.connection, space)
            mark = None if fingerprint is None else _mark(writer.connection, fingerprint)
            known = _marked(writer.connection, space, dataset, mark)
            if known is not None:
                return known
            reason = FIRST if version_of(writer.connection, space, dataset) is None else CHANGED
            return issue(writer, space, dataset, reason, mark)

    def known(self, space: str, dataset: str, *, fingerprint: str | None = None) -> str | None:
        """As `data_version`; None where there is none yet, and then nothing is stored of these rows. Issues none."""
        with self._handle.reading() as connection:
            mark = None if fingerprint is None else _mark(connection, fingerprint)
            return _marked(connection, space, dataset, mark)

    def newest(self) -> dict[tuple[str, str], str]:
        """The data version of each data set that has one, by its unit space and its name."""
        newest = "SELECT max(serial) FROM data_version GROUP BY unit_space, dataset"
        with self._handle.reading() as connection:
            rows = connection.execute(
                f"SELECT unit_space, dataset, id FROM data_version WHERE serial IN ({newest})"
            ).fetchall()
        return {(str(space), str(dataset)): str(version) for space, dataset, version in rows}

    def remember_sources(self, sources: Mapping[tuple[str, str], str]) -> None:
        """Remember in which unit space each source stands, so that it does not stand in another one later.

        sources: (place, unit) -> unit space; the place of a table as text, and the column of its unit.

        Raises:
            PolicyError: one was remembered in another unit space: a second budget for the same people.
        """
        with self._handle.reading() as connection:
            new = _new_sources(connection, sources)
        if not new:
            return
        with self._handle.writing() as writer:
            self.note_sources(writer, sources)

    def check_sources(self, sources: Mapping[tuple[str, str], str]) -> None:
        """See that no source was remembered in another unit space; notes nothing.

        sources: as in `remember_sources`, by places that older ledgers may have written.

        Raises:
            PolicyError: as `remember_sources`.
        """
        with self._handle.reading() as connection:
            _new_sources(connection, sources)

    def check_files(self, files: Iterable[tuple[Sequence[str], Collection[Hashable], Collection[str], str]]) -> None:
        """See that no file was remembered in another unit space, by whatever links and folders; notes nothing.

        files: of each private source its places, its files as `files_at` numbers them, its units and its unit space.

        Raises:
            PolicyError: as `remember_sources`.
        """
        known = [(one_form(place), place, unit, space) for place, unit, space in self._sources()]
        there = cache(files_at)
        for places, numbers, units, space in files:
            forms = set(map(one_form, places))
            rows = any(one[0] in forms and one[2:] == (ROWS, space) for one in known)  # a promise to them already
            for form, its_place, its_unit, its_space in known if numbers else ():
                at_odds = next((unit for unit in units if _at_odds(unit, space, its_unit, its_space)), None)
                if form in forms or at_odds is None or (rows and space == its_space):
                    continue
                if not there(its_place).isdisjoint(numbers):
                    raise _another_promise(
                        f"{places[0]} shares rows with {its_place}, which", at_odds, space, its_unit, its_space
                    )

    def _sources(self) -> list[tuple[str, str, str]]:
        """Place, unit and unit space of each source that was remembered."""
        with self._handle.reading() as connection:
            rows = connection.execute("SELECT place, unit, unit_space FROM source ORDER BY serial").fetchall()
        return [(str(place), str(unit), str(space)) for place, unit, space in rows]

    def check_public(self, places: Mapping[str, str], files: Mapping[str, Collection[Hashable]]) -> None:
        """See that no public table shows rows of a source that was remembered as private; notes nothing.

        places: the name of the public table at each place. files: its files, by its name, as `files_at` numbers them.

        Raises:
            PolicyError: one does: anybody would see these rows at no cost.
        """
        forms = {one_form(place): name for place, name in places.items()}
        for its_place, unit, space in self._sources() if places else ():
            name = forms.get(one_form(its_place))
            if name is None:
                there = files_at(its_place)
                name = next((name for name, numbers in files.items() if not there.isdisjoint(numbers)), None)
            if name is not None:
                raise PolicyError(
                    f"table {name!r}: its source is one that this ledger knows as private, with the unit {unit!r} in "
                    f"the unit space {space!r}, or shares rows with it, and now it is declared as public: anybody "
                    "would see these rows, and nothing would be charged. Declare it as it was: hb.table(...) in "
                    "Python, [tables] in a policy file."
                )

    def check_tables(self, names: Mapping[str, str]) -> None:
        """See that no table is called by another spelling of a name that has a limit: it would have none there.

        names: the unit space of each table, by its name.

        Raises:
            PolicyError: one is.
        """
        with self._handle.reading() as connection:
            said = connection.execute("SELECT DISTINCT unit_space, account FROM allowance ORDER BY account").fetchall()
        for name, space in names.items():
            mine = table_account(name)
            accounts = {account for its_space, account in said if its_space == space}
            same = [a for a in sorted(accounts - {mine}) if one_spelling(str(a)) == one_spelling(mine)]
            if same and mine not in accounts:
                known = CallTable(same[0].removeprefix("table:"), name)
                raise PolicyError(
                    f"the ledger has a limit for {same[0]!r}, and this session calls the table {name!r}: the limit "
                    f"would not be kept. Call it {known.in_python()}, or let a steward give the other spelling a limit "
                    f"of its own: `hubbub grant {mine} --epsilon EPSILON`. Nothing was charged.",
                    remedy=known if known.new.lower() == name.lower() else (),  # SQL ignores case alone
                )

    def note_sources(self, writer: Writer, sources: Mapping[tuple[str, str], str]) -> None:
        """What `remember_sources` writes, in a transaction that is under way: since it was looked another session may
        have noted a folder of these files.
        """
        for place, unit in _new_sources(writer.connection, sources, lambda place: files_at(place) | named_at(place)):
            space = sources[place, unit]
            self._handle.budget(writer.connection, space)
            writer.append("source", checked_text(place, "source"), checked_text(unit, "unit"), space)

    def remember_policy(self, content: str) -> str:
        """Keep the text of a policy once; its hash (SHA-256), which charges refer to."""
        digest = hashlib.sha256(checked_text(content, "policy").encode()).hexdigest()
        ask = "SELECT 1 FROM policy WHERE hash = ?"
        with self._handle.reading() as connection:
            if connection.execute(ask, (digest,)).fetchone():
                return digest
        with self._handle.writing() as writer:
            if not writer.connection.execute(ask, (digest,)).fetchone():
                writer.append("policy", digest, content)
        return digest


def _new_sources(
    connection: Connection,
    sources: Mapping[tuple[str, str], str],
    numbered: Callable[[str], set[Hashable]] = named_at,
) -> list[tuple[str, str]]:
    known = connection.execute("SELECT place, unit, unit_space FROM source ORDER BY serial").fetchall()
    spelt = [(str(place), one_form(str(place)), unit, space) for place, unit, space in known]
    written, named, new = {(p, u) for p, _, u, _ in spelt}, cache(numbered), []
    for (place, unit), space in sources.items():
        form, numbers = one_form(place), named(place)
        spaces: dict[str, str] = {}
        for _, its_form, its_unit, its_space in spelt:
            if its_form == form:
                spaces.setdefault(its_unit, its_space)  # the first word counts
        if (place, unit) not in written:
            new.append((place, unit))
        if unit in spaces:
            spaces = {unit: spaces[unit]}  # one that an older ledger let in another way stays as it is
        here = [*spaces.items()]
        if numbers:
            here += [(u, s) for p, its_form, u, s in spelt if its_form != form and not numbers.isdisjoint(named(p))]
        for its_unit, its_space in here:
            as_before = spaces.get(unit) == space == its_space
            if _at_odds(unit, space, its_unit, its_space) and not as_before:
                raise _another_promise(place, unit, space, its_unit, its_space)
    return new


def _at_odds(unit: str, space: str, its_unit: str, its_space: str) -> bool:
    """Whether people of one source would have two budgets, or single rows one that was promised to people."""
    return same_people(unit, its_unit) and (space != its_space or (unit == ROWS and its_unit != ROWS))


def _another_promise(known: str, unit: str, space: str, its_unit: str, its_space: str) -> PolicyError:
    """What is said then. known: the source by the name that the ledger has of it."""
    there = f"{known} with the unit {its_unit!r} stands in the unit space {its_space!r} of this ledger"
    if space == its_space:
        way = DeclareOption("unit", its_unit)
        said = (
            f"{there}; now each of its rows is declared as a unit. What its budget promises to people would hold for "
            f"single rows alone: declare {way.in_python()}."
        )
    else:
        way = DeclareOption("unit_space", its_space)
        said = (
            f"{there}; now it is declared with the unit {unit!r} in {space!r}. That would be a second budget for the "
            f"same people: declare {way.in_python()}."
        )
    return PolicyError(said, remedy=way)


def at_column(number: int, *, named: bool = False) -> str:
    """How a ledger knows the unit of a text file beside its word: no word has a capital. named: by the declaration."""
    return f"Column {number}, {'named' if named else 'under its header'}"


def same_people(unit: str, other: str) -> bool:
    """Whether two units of one source are the same people's: equal ones, and rows, whatever else names their people.

    Two columns may name two kinds of unit, patients and clinics: a budget for each is a promise to each. A unit of
    another table is known by its last name, as its unit space is. Names that a declaration gives to the columns of a
    file are words alone, so their places count; columns under a header may change places, which counts for nothing.

    >>> same_people("orders.pid", "pid"), same_people("pid", "clinic")
    (True, False)
    >>> same_people(at_column(1, named=True), at_column(1)), same_people(at_column(1), at_column(1))
    (True, False)
    """
    mine, its = _COLUMN.fullmatch(unit), _COLUMN.fullmatch(other)
    if mine is not None and its is not None:
        return mine[1] == its[1] and "named" in (mine[2], its[2])
    return unit.rpartition(".")[2] == other.rpartition(".")[2] or ROWS in (unit, other)


def version_of(connection: Connection, space: str, dataset: str) -> tuple[str, str | None] | None:
    row = connection.execute(
        "SELECT id, fingerprint FROM data_version WHERE unit_space = ? AND dataset = ? ORDER BY serial DESC LIMIT 1",
        (space, dataset),
    ).fetchone()
    return None if row is None else (str(row[0]), row[1])


def _marked(connection: Connection, space: str, dataset: str, mark: str | None) -> str | None:
    """The newest version with this mark since the last declared refresh; of a source without one, the newest."""
    rows = connection.execute(
        "SELECT id, reason, fingerprint FROM data_version WHERE unit_space = ? AND dataset = ? ORDER BY serial DESC",
        (space, dataset),
    ).fetchall()
    for version, reason, its_mark in rows:
        if mark is None or its_mark == mark:
            return str(version)
        if reason not in (FIRST, CHANGED):
            return None  # what was known before it is no longer true of any copy
    return None


def _mark(connection: Connection, fingerprint: str) -> str:
    secret = connection.execute("SELECT secret FROM ledger").fetchone()[0]
    return hmac.new(secret.encode(), fingerprint.encode(), "sha256").hexdigest()


def issue(writer: Writer, space: str, dataset: str, reason: str, mark: str | None) -> str:
    version = uuid.uuid4().hex
    writer.append(
        "data_version", space, checked_text(dataset, "data set"), version, checked_text(reason, "reason"), mark
    )
    return version
