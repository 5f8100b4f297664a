"""Opening a session: declared tables checked against each other, the ledger opened, a policy file read.

What can be refused here is refused before any question is asked.
"""

from __future__ import annotations

import getpass
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hubbub.engines.base import Located, Schema
from hubbub.engines.registry import engine_for, place_of
from hubbub.errors import PolicyError
from hubbub.ledger.accounts import EACH_ANALYST, TOGETHER, analyst_account, table_account
from hubbub.ledger.budget import Budget
from hubbub.ledger.policy import Policy, PublicPolicy, TablePolicy
from hubbub.ledger.store import Ledger
from hubbub.remedies import DeclareOption, DeclareWithout
from hubbub.session.copies import read_from_copy, write_missing
from hubbub.session.sources import OlderPlaces, older_places, source_places, spelled
from hubbub.spelling import meant_by, one_spelling, table_name
from hubbub.sql.bind.scope import find_name
from hubbub.tables.columns import Declaration, between, edges, one_of, text, trimmed
from hubbub.tables.declare import EACH_ROW, PrivateTable, PublicTable, public, table
from hubbub.tables.remote import remote

__all__ = [
    "agree_on_limits",
    "check_neighbours",
    "described",
    "named_tables",
    "neighbours_of",
    "older_places",
    "open_ledger",
    "private_of",
    "public_of",
    "reach",
    "resolved_paths",
    "source_places",
    "spelled",
    "user",
]

# What the outer part of a statement calls releases and queries of WITH.
_OURS = re.compile(r"(released|with)\d+", re.IGNORECASE)


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


def named_tables(tables: Mapping[str, PrivateTable | PublicTable]) -> dict[str, PrivateTable | PublicTable]:
    if not isinstance(tables, Mapping) or not tables:
        raise PolicyError('tables: expected a mapping of names to tables, as in {"visits": hb.table(...)}.')
    problem = next((said for name, item in tables.items() if (said := _no_table(name, item)) is not None), None)
    if problem is None and len({one_spelling(table_name(name)) for name in tables}) < len(tables):
        problem = "two names differ in case alone, or look the same; rename one."
    if problem is not None:
        raise PolicyError(f"tables: {problem}")
    _keep_keys(tables)
    return dict(tables)


def _no_table(name: object, item: object) -> str | None:
    """Why a name and what it stands for are not a declared table; None where they are."""
    if not isinstance(name, str) or not name.strip():
        return f"{name!r} is not a table name."
    if _OURS.fullmatch(name) or TOGETHER in name:
        return f"the name {name!r} is one that answers use themselves; choose another."
    if isinstance(item, PrivateTable | PublicTable):
        return None
    return (
        f"{name!r} is a {type(item).__name__}; wrap it: hb.table(..., unit=...) for a table about people, "
        "hb.public(...) for one that protects nobody."
    )


def _keep_keys(tables: Mapping[str, PrivateTable | PublicTable]) -> None:
    """Raises PolicyError where blanks would be cut off a column by which another table finds its units."""
    for name, item in tables.items():
        if not isinstance(item, PrivateTable) or item.path is None:
            continue
        _, holder, key, _ = item.path
        there = tables.get(holder)
        if isinstance(there, PrivateTable) and trimmed(there.columns.get(key)):
            plain = DeclareWithout("trim", key, holder)
            raise PolicyError(
                f"table {name!r} finds its units by {holder}.{key}, which is declared with trim: two keys that differ "
                f"in blanks would become one. Declare it {plain.in_python()}.",
                remedy=plain,
            )


def neighbours_of(tables: Mapping[str, PrivateTable | PublicTable]) -> dict[str, str]:
    """The neighbour relation of each unit space: losses add up under one relation only."""
    relations: dict[str, str] = {}
    for name, item in tables.items():
        if isinstance(item, PrivateTable) and relations.setdefault(item.space, item.neighbours) != item.neighbours:
            raise PolicyError(
                f"table {name!r} has neighbours={item.neighbours!r}, another table of the unit space {item.space!r} "
                f"has {relations[item.space]!r}. One budget needs one relation; declare the same for both."
            )
    return relations


def check_neighbours(ledger: Ledger, relations: Mapping[str, str]) -> None:
    """Raises PolicyError where the ledger holds charges made under another neighbour relation."""
    for space, relation in relations.items():
        charged = ledger.balance.relation(space)
        if charged not in (None, relation):
            keeping = DeclareOption("neighbours", charged)
            raise PolicyError(
                f"the ledger's charges of the unit space {space!r} were made for neighbours={charged!r}; the tables "
                f"now say {relation!r}. Losses under two relations do not add up: declare {keeping.in_python()}, or "
                "use another ledger.",
                remedy=keeping,
            )


def open_ledger(
    ledger: str | Path | None,
    spaces: Mapping[str, Budget],
    *,
    create: bool,
    policy: Policy | None,
    new_spaces: Collection[str] = (),
    sources: Mapping[tuple[str, str], str],
    older: OlderPlaces,
    names: Mapping[str, str],
    relations: Mapping[str, str],
    anchor: str | Path | None = None,
) -> Ledger:
    """The session's ledger. new_spaces: the unit spaces that may be added to one that holds others already.

    sources, older, relations: what `source_places`, `older_places` and `neighbours_of` say; names: the unit space of
    each private table, by the name questions use. Nothing is added where the ledger says otherwise.
    """

    allowed = new_spaces if policy is None else set(spaces) if create else ()

    def check(opened: Ledger) -> None:
        opened.versions.check_tables({name: opened.spelling.get(s, s) for name, s in names.items()})
        opened.versions.check_sources(spelled(older.private, opened.spelling))
        spelt = [(at, numbers, units, opened.spelling.get(s, s)) for at, numbers, units, s in older.files]
        opened.versions.check_files(spelt)
        opened.versions.check_public(older.public, older.shown)
        older.check_new(opened.balance.spaces(), allowed, opened.spelling)
        check_neighbours(opened, {opened.spelling.get(s, s): relation for s, relation in relations.items()})

    if ledger is not None:
        if policy is None:
            return Ledger.open(
                ledger,
                budgets=spaces,
                create=create,
                new_spaces=allowed,
                sources=sources,
                check=check,
                anchor=anchor,
            )
        return Ledger.open(
            ledger,
            budgets=spaces,
            create=create,
            sources=sources,
            check=check,
            new_spaces=allowed,
            key=policy.key(),
            anchor=policy.anchor,
            max_failures=policy.max_failures,
            max_failures_all=policy.max_failures_all,
            require_purpose=policy.require_purpose,
            shared_answers=policy.service.shared_answers,
        )
    older.check_new((), allowed, {})
    warnings.warn(
        "ledger=None keeps the budget in memory: it is forgotten when this program ends, and asking again in "
        "another program spends the same people's privacy twice.",
        stacklevel=4,
    )
    return Ledger.in_memory(spaces)


def resolved_paths(tables: Mapping[str, PrivateTable | PublicTable]) -> dict[str, PrivateTable | PublicTable]:
    """Tables whose unit stands in another table, in the unit space of the table that holds it.

    Raises PolicyError for a path that leads nowhere, round in a circle, to another unit than it says, or between
    tables declared with different neighbours.
    """
    by_name = {name.lower(): (name, item) for name, item in tables.items()}
    resolved: dict[str, PrivateTable | PublicTable] = {}
    for name, item in tables.items():
        end, steps, at = item, 0, name
        while isinstance(end, PrivateTable) and end.path is not None:
            (at_next, following), steps = by_name.get(end.path[1].lower(), (at, None)), steps + 1
            if not isinstance(following, PrivateTable) or steps > len(tables):
                raise _leads_nowhere(name, at, end.path, tables)
            end, at = following, at_next
        if item is end or not isinstance(item, PrivateTable) or not isinstance(end, PrivateTable) or item.path is None:
            resolved[name] = item
            continue
        if not isinstance(end.unit, str) or end.unit.lower() != item.path[3].lower():
            ways = _unit_of(name, item.path[1], item.path[3], [end.unit] if isinstance(end.unit, str) else [])
            raise PolicyError(
                f"the unit of {name!r} is {item.unit!r}, but the path ends at the unit {end.unit!r}.{_said(ways)}",
                remedy=ways,
            )
        if item.neighbours != end.neighbours or item.unit_space not in (None, end.space):
            ways = _as_there(name, item, end)
            raise PolicyError(
                f"{name!r} is about the units of another table: declare its neighbours and unit_space too."
                f"{_said(ways)}",
                remedy=ways,
            )
        resolved[name] = replace(item, unit_space=end.space)
    return resolved


def _leads_nowhere(
    name: str, at: str, path: tuple[str, str, str, str], tables: Mapping[str, PrivateTable | PublicTable]
) -> PolicyError:
    """What refuses the path of the table `at` that stops there, or goes round; with the table that was meant, where it
    is plain which: one that has units.
    """
    _, holder, _, last = path
    near = None
    if find_name(holder, tables) is None:
        near = meant_by(
            holder, [n for n, t in tables.items() if isinstance(t, PrivateTable) and t.unit is not EACH_ROW and n != at]
        )
    ways = [] if near is None else [DeclareOption("unit", f"{near}.{last}", (at,))]
    return PolicyError(
        f"the unit of {name!r} stands in {holder!r}, which is not a private table of this session, or leads back to "
        f"where it came from.{_said(ways)}",
        remedy=ways,
    )


def _unit_of(name: str, holder: str, written: str, known: Sequence[str]) -> list[DeclareOption]:
    """The unit of another table that was meant; none where it may be another one: who is protected nobody guesses."""
    near = meant_by(written, known)
    return [] if near is None else [DeclareOption("unit", f"{holder}.{near}", (name,))]


def _as_there(name: str, item: PrivateTable, end: PrivateTable) -> list[DeclareOption]:
    """The neighbours or the unit space of the table that holds the units; none where both are others."""
    others: dict[str, str] = {"neighbours": end.neighbours} if item.neighbours != end.neighbours else {}
    others |= {"unit_space": end.space} if item.unit_space not in (None, end.space) else {}
    return [DeclareOption(option, value, (name,)) for option, value in others.items()] if len(others) == 1 else []


def _said(ways: Sequence[DeclareOption]) -> str:
    return f" Declare {ways[0].in_python()}." if ways else ""


_OPTIONAL: Final = ("csv", "copy", "rows_per_unit_at_most")


def described(tables: Mapping[str, PrivateTable | PublicTable]) -> dict[str, Any]:
    """What a session declares, for the record, where no policy file does."""
    description: dict[str, Any] = {}
    for name, declared in tables.items():
        parts = {k: v for k, v in vars(declared).items() if k != "source" and not (k in _OPTIONAL and v is None)}
        where = place_of(declared.source).written(declared.source)
        description[name] = {
            "source": where,
            **{k: str(dict(v) if isinstance(v, Mapping) else v) for k, v in parts.items()},
        }
    return description


def private_of(policy: TablePolicy) -> PrivateTable:
    """What a policy declares of a table. Raises PolicyError where its address is in a variable that is not set."""
    try:
        source = policy.source if isinstance(policy.source, Path) else remote(policy.source.written)
    except PolicyError as error:
        raise PolicyError(f"table {policy.name!r}: {error}") from None
    return table(
        source,
        unit=EACH_ROW if policy.unit is None else policy.unit,
        table=policy.table,
        max_groups=policy.max_groups,  # type: ignore[arg-type]
        max_rows=policy.max_rows,  # type: ignore[arg-type]
        max_total=policy.max_total,
        neighbours=policy.neighbours,  # type: ignore[arg-type]
        columns={name: _declaration(what) for name, what in policy.columns.items()},
        types=policy.types,
        unit_space=policy.unit_space,
        through=dict(policy.through) or None,
        bounding=policy.bounding,  # type: ignore[arg-type]
        trusted_view=policy.trusted_view,
        csv=policy.csv,
        rows_per_unit_at_most=policy.rows_per_unit_at_most,
    )


def agree_on_sources(policy: Policy, located: Mapping[str, Located]) -> None:
    """See, without a ledger, what opening sees of all tables together: that no source is two budgets for one people.

    located: what `reach` found. Raises PolicyError as `resolved_paths`, `source_places` and `neighbours_of` do.
    """
    if not policy.tables:
        return
    declared: dict[str, PrivateTable | PublicTable] = {n: private_of(one) for n, one in policy.tables.items()}
    declared |= {name: public_of(one) for name, one in policy.public.items()}
    tables = resolved_paths(named_tables(declared))
    source_places(tables, located)
    neighbours_of(tables)


def reach(policy: TablePolicy) -> Located:
    """See whether a table's place can be reached and its columns are as declared; reads no rows, starts no Spark. Where
    the engine found it.

    Raises PolicyError where not.
    """
    declared = private_of(policy)
    engine = engine_for({policy.name: declared})
    try:
        if not place_of(declared.source).at_hand(declared.source):
            return Located()
        engine.add(policy.name, declared)
        return engine.located(policy.name)
    finally:
        engine.close()


def schema_of(name: str, declared: PrivateTable) -> Schema:
    """The columns of a table, by its catalogue; reads no rows.

    Raises PolicyError where the place cannot be reached, or holds no such table.
    """
    engine = engine_for({name: declared})
    try:
        return engine.add(name, declared)
    finally:
        engine.close()


def declared_tables(policy: Policy, *, write_copies: bool = False) -> dict[str, PrivateTable | PublicTable]:
    """What a policy declares, private and public, by name. write_copies: those that `rows_kept` asks for, first, where
    they are not there.
    """
    if write_copies:
        write_missing(policy)
    private = policy.tables.values()
    tables: dict[str, PrivateTable | PublicTable] = {p.name: read_from_copy(policy, p, private_of(p)) for p in private}
    return tables | {p.name: public_of(p) for p in policy.public.values()}


def _declaration(what: Mapping[str, Any]) -> Declaration:
    """What a policy says of a column."""
    if "edges" in what:
        return edges(*what["edges"], nullable=what.get("nullable", True))
    if "between" in what:
        low, high = what["between"]
        ranged: Declaration = between(low, high, nullable=what.get("nullable", True), tz=what.get("tz"))
        return ranged
    if "one_of" not in what:
        return text(trim=what["trim"])
    values = (*what["one_of"], *([None] if what.get("null") else []))
    return one_of(*values, other=what.get("other"), others=what.get("others", False), trim=what.get("trim", False))


def public_of(policy: PublicPolicy) -> PublicTable:
    return public(policy.source, table=policy.table, types=policy.types, csv=policy.csv)


def agree_on_limits(
    ledger: Ledger, tables: Mapping[str, PrivateTable | PublicTable], policy: Policy, *, record: bool
) -> None:
    """The policy's limits are the ledger's, which enforces them for whoever opens it."""
    for space in sorted({t.space for t in tables.values() if isinstance(t, PrivateTable)}):
        limits = {} if policy.per_analyst is None else {EACH_ANALYST: policy.per_analyst}
        limits |= {analyst_account(name): amount for name, amount in policy.analysts.items()}
        for name, declared in tables.items():
            own = policy.tables[name].budget if name in policy.tables else None
            if own is not None and isinstance(declared, PrivateTable) and declared.space == space:
                limits[table_account(name)] = own
        if record:
            ledger.steward.record_limits(space, limits)
        elif changed := ledger.balance.policy_differs(space, limits):
            raise PolicyError(
                f"{policy.path} gives other limits than its ledger holds, for {', '.join(changed)}. A steward "
                "records them with `hubbub ledger create`; nothing that was spent comes back."
            )
