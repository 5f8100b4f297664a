"""Which sources declared tables have, by every name of them, and what one source may not be: private and public at
once, or two budgets for the same people.

Two sources are one where any text or number by which they are known is the same (`hubbub.ledger.places`). What can be
told from the tables alone is refused here; the ledger is asked about the sources of earlier sessions.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, starmap
from types import MappingProxyType

from hubbub.engines.base import Located, Named
from hubbub.engines.duckdb.place import DuckDBPlace
from hubbub.engines.objects.place import ObjectsPlace
from hubbub.engines.registry import place_of
from hubbub.errors import PolicyError
from hubbub.ledger.places import files_at, one_form
from hubbub.ledger.versions import ROWS, at_column, same_people
from hubbub.remedies import DeclareOption
from hubbub.tables.declare import PrivateTable, PublicTable

__all__ = ["OlderPlaces", "check_shown", "identities", "older_places", "source_places", "spelled"]


_NOWHERE = Located()


def source_places(
    tables: Mapping[str, PrivateTable | PublicTable], located: Mapping[str, Located] = MappingProxyType({})
) -> dict[tuple[str, str], str]:
    """The unit space of each private source, by each place that it is known by and its unit's column.

    located: where the engine found each source, by the table's name. A place is the engine's own or the declared one.

    Raises PolicyError where one source with one unit stands in two unit spaces, or in one by a column and in another
    row by row: two budgets for the same people. One source are a file and a folder or pattern that holds it, too. It
    raises as well where a source is private and public at once.
    """
    spaces: dict[tuple[str, str], str] = {}
    for name, item in tables.items():
        if isinstance(item, PublicTable):
            check_shown(name, tables, located)
    here: list[tuple[set[Hashable], list[str], str]] = []  # what each source is, whatever names it has
    for name, item in tables.items():
        if not isinstance(item, PrivateTable):
            continue
        where, units = located.get(name, Located()), _units(item, located.get(name, Located()))
        places = _places(name, item, where)
        known = _known_by(name, item, where)
        again = [
            (space, its) for others, its, space in here
            if known & others and any(starmap(same_people, product(units, its)))
        ]  # fmt: skip
        other = next((space for space, _ in again if space != item.space), None)
        people = next((its[0] for _, its in again if (ROWS in its) != (ROWS in units)), units[0])
        problem = None
        if other is not None:
            problem = (
                f"{places[0] if places else 'its source'} with the unit {units[0]!r} stands in two unit spaces, "
                f"{other!r} and {item.space!r}. That would be two budgets for the same people: declare one of them."
            )
        elif people != units[0]:
            problem = (
                f"{places[0] if places else 'its source'} stands in the unit space {item.space!r} with the units "
                f"{people!r} and {units[0]!r}. What its budget promises to people would hold for single rows alone: "
                "declare one of them."
            )
        if problem is not None:
            raise _refused(name, problem)
        here.append((known, units, item.space))
        for at in product(places, units):
            spaces.setdefault(at, item.space)
    return spaces


def spelled(places: Mapping[tuple[str, str], str], spelling: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """The unit space of each source as a ledger has recorded it."""
    return {at: spelling.get(space, space) for at, space in places.items()}


def check_shown(
    public: str, tables: Mapping[str, PrivateTable | PublicTable], located: Mapping[str, Located] = MappingProxyType({})
) -> None:
    """See that a public table shows no rows of a private one, by whatever links its files came to be there.

    Raises:
        PolicyError: it does.
    """
    shown = identities(tables[public], located.get(public, Located()))
    for name, item in tables.items():
        if isinstance(item, PrivateTable) and shown & identities(item, located.get(name, Located())):
            raise _refused(
                name,
                f"its source is that of {public!r}, or shares rows with it, and that one is declared as public: "
                "anybody would see these rows, and nothing would be charged. Declare one of the two.",
            )


def _refused(name: str, problem: str) -> PolicyError:
    return PolicyError(f"table {name!r}: {problem}")


@dataclass(frozen=True)
class OlderPlaces:
    """What a ledger is asked about and does not note.

    private: as `source_places`, by texts that older ledgers may have written of a table inside a database or a file,
    and by those of files and folders that hold rows of it. public: the name of the public table at each place, by all
    texts of it; a ledger that knows one as private refuses it. budgets: two private tables of one source that have two
    unit spaces, by two columns, each with its unit space. files: of each private source its places, its files by
    their numbers, its units and its unit space; shown: the files of each public table.
    """

    private: Mapping[tuple[str, str], str]
    public: Mapping[str, str]
    budgets: Sequence[tuple[tuple[str, str], tuple[str, str]]]
    files: Sequence[tuple[Sequence[str], Collection[Hashable], Collection[str], str]]
    shown: Mapping[str, Collection[Hashable]]

    def check_new(self, known: Collection[str], named: Collection[str], spelling: Mapping[str, str]) -> None:
        """See that no source brings two new budgets at once of which nobody was asked: in a second session it needs a
        word, too.

        known: the unit spaces of the ledger. named: those that may be added. spelling: how a ledger has recorded them.

        Raises:
            PolicyError: one does.
        """
        for one, other in self.budgets:
            new = [space for _, space in (one, other) if space not in named and spelling.get(space, space) not in known]
            if len(new) > 1:
                (name, space), (again, its_space) = one, other
                way = DeclareOption("unit_space", space, (again,))
                raise PolicyError(
                    f"table {again!r}: its source is that of {name!r}, by another column, and each would get a whole "
                    f"budget, in the unit spaces {its_space!r} and {space!r}. If one budget is to hold for both, "
                    f"declare {way.in_python()}. If each kind of unit gets one of its own, a steward says so: `hubbub "
                    f"ledger create` from a policy, new_unit_spaces=[{its_space!r}] in Python. Nothing was charged.",
                    remedy=way,
                )


def older_places(
    tables: Mapping[str, PrivateTable | PublicTable], located: Mapping[str, Located] = MappingProxyType({})
) -> OlderPlaces:
    """The places of tables by their older texts, those of public tables, and the sources that have two budgets."""
    private: dict[tuple[str, str], str] = {}
    public: dict[str, str] = {}
    files, shown = [], {}
    for name, item in tables.items():
        where = located.get(name, Located())
        texts, numbers = _older(name, item, where), identities(item, where)
        if isinstance(item, PrivateTable):
            private |= dict.fromkeys(product(texts, _units(item, where)), item.space)
            files.append((_places(name, item, where), numbers, _units(item, where), item.space))
        else:
            public |= dict.fromkeys([*_places(name, item, where), *texts], name)
            shown[name] = numbers
    return OlderPlaces(private, public, _two_budgets(tables, located), files, shown)


def _two_budgets(
    tables: Mapping[str, PrivateTable | PublicTable], located: Mapping[str, Located]
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    here: list[tuple[set[Hashable], str, str]] = []
    pairs = []
    for name, item in tables.items():
        if isinstance(item, PrivateTable):
            known = _known_by(name, item, located.get(name, Located()))
            pairs += [((n, space), (name, item.space)) for its, n, space in here if known & its and space != item.space]
            here.append((known, name, item.space))
    return pairs


def _older(name: str, declared: PrivateTable | PublicTable, located: Located) -> list[str]:
    """Texts that a ledger may hold of a source, or of what shares rows with it, beside `_places`."""
    texts: list[str | None] = []
    if located.place is not None:
        texts = [_declared(name, declared, inner) for inner in (None, *located.older)]
    place = place_of(declared.source)
    if isinstance(place, DuckDBPlace | ObjectsPlace):
        texts += place.older(Named(declared.source, name, declared.inner_table))
    return [text for text in texts if text is not None]


def _units(declared: PrivateTable, located: Located) -> list[str]:
    """The column that names the people, by its last name; by the same one they may be named without a path. Of a text
    file by its place, too: names of columns that a declaration gives are words alone.
    """
    if not isinstance(declared.unit, str):
        return [ROWS]
    if declared.path is not None:
        return [declared.path[3].lower()]
    word, names, place = declared.unit.lower(), None, place_of(declared.source)
    named = declared.csv is not None and declared.csv.names is not None
    if declared.csv is not None and named:
        names = declared.csv.names
    elif isinstance(place, DuckDBPlace):
        names = place.header(declared.source, declared.csv)
    columns = located.header if names is None else [name.lower() for name in names]
    return [word, *([at_column(columns.index(word) + 1, named=named)] if word in columns else [])]


def _places(name: str, declared: PrivateTable | PublicTable, located: Located) -> list[str]:
    """The texts by which a source is known again, the declared one first: by a name of its own, or the engine's; a file
    by the links to it that it is declared by, and by its copy.
    """
    declared_place, holder = _declared(name, declared, located.inner), place_of(declared.source)
    named = Named(declared.source, name, declared.inner_table, located.inner)
    others = holder.others(named) if isinstance(holder, DuckDBPlace) else []
    places = dict.fromkeys((declared_place, located.place, *others, *located.kept, _copy(declared)))
    return [place for place in places if place is not None]


def _known_by(name: str, declared: PrivateTable, located: Located) -> set[Hashable]:
    """What a source is, whatever names it has."""
    return {*map(one_form, _places(name, declared, located)), *identities(declared, located)}


def identities(declared: PrivateTable | PublicTable, located: Located = _NOWHERE) -> set[Hashable]:
    """What a source is by any name of it: a file, by its number; each file of several; a frame itself; an address that
    cannot be shown; the copy of it that questions read.
    """
    here = place_of(declared.source).here(Named(declared.source, "", declared.inner_table, located.inner))
    copy = frozenset(files_at(_copy(declared) or ""))
    return {
        identity
        for one in (located.here, here, copy)
        if one is not None
        for identity in (one if isinstance(one, frozenset) else (one,))
    }


def _copy(declared: PrivateTable | PublicTable) -> str | None:
    """Where the copy of a private table is, with so many rows of a unit, that was written for questions."""
    copy = declared.copy if isinstance(declared, PrivateTable) else None
    return None if copy is None else os.path.realpath(copy)


def _declared(name: str, declared: PrivateTable | PublicTable, inner: str | None) -> str | None:
    """Where a table is by its declaration, and by `inner` in a database; None where an address does not say."""
    return place_of(declared.source).kept(Named(declared.source, name, declared.inner_table, inner))
