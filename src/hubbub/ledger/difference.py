"""What changed between two versions of a policy, in words for the steward who reviews it.

Each line says what changed and, where that is not plain, what it means for the people in the data. Nothing that changes
un-spends anything: charges stay, and releases remember the policy they were made under.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from hubbub.addresses import Address
from hubbub.ledger.budget import decimal_text
from hubbub.ledger.policy import Policy, PublicPolicy, TablePolicy

__all__ = ["differences"]

_LIMITS: Final = {
    "max_groups": "in how many groups of one answer a person counts at most",
    "max_rows": "with how many rows a person counts in one group at most",
    "max_total": "with how many rows a person counts in an answer without groups",
    "rows_per_unit_at_most": "how many rows a person has at most, a statement on which no privacy rests",
    "rows_kept": "how many rows of a person are in the copy that questions read",
}


def differences(old: Policy, new: Policy) -> list[str]:
    """What changed from `old` to `new`, a sentence each; empty where nothing did but comments and order."""
    return [
        *_ledger(old, new),
        *_budget(old, new),
        *_limits("the analyst", old.analysts, new.analysts),
        *_tables(old.tables, new.tables),
        *_publics(old.public, new.public),
    ]


def _ledger(old: Policy, new: Policy) -> Iterator[str]:
    before, after = (p.ledger if isinstance(p.ledger, Path) else Address(p.ledger) for p in (old, new))
    if before != after:
        yield (
            f"The ledger {_moved(before, after, 'moves')}. What was spent stays in the old one: unless the new "
            "one is a copy of it, the same people's privacy is spent twice."
        )
    if old.key_file != new.key_file:
        yield "The key file of the ledger's chain is another one. A ledger keeps the key it was created with."
    if old.max_failures != new.max_failures:
        yield f"An analyst waits for a steward after {new.max_failures} engine failures, not {old.max_failures}."
    if old.require_purpose != new.require_purpose:
        yield (
            "A question has to say what it is asked for."
            if new.require_purpose
            else "A question need not say what for."
        )


def _moved(old: Path | Address, new: Path | Address, verb: str) -> str:
    """How a place differs from another one: from where to where, or that this cannot be told without a password."""
    unreadable = [p for p in (old, new) if isinstance(p, Address) and not p.readable]
    if len(unreadable) == 2:
        return (
            "may have moved: its address, or a password in it, is another one, or only a ledger's copy without the "
            "password is at hand, and the address cannot be taken apart. Compare the two by eye, and put the password "
            "into PGPASSWORD or ~/.pgpass"
        )
    before, after = (place.kept if isinstance(place, Address) else str(place) for place in (old, new))
    return f"{verb} from {before} to {after}"


def _budget(old: Policy, new: Policy) -> Iterator[str]:
    if old.budget != new.budget:
        weaker = new.budget.epsilon > old.budget.epsilon
        yield (
            f"The budget changes from {old.budget!r} to {new.budget!r}. "
            + ("It promises people less. " if weaker else "")
            + "A ledger keeps the ceiling it was created with, and refuses this policy until the steward raises it "
            "there (`hubbub ledger raise`)."
        )
    if old.per_analyst != new.per_analyst:
        yield f"The limit of each analyst changes from {_amount(old.per_analyst)} to {_amount(new.per_analyst)}."


def _limits(whom: str, old: Mapping[str, Fraction], new: Mapping[str, Fraction]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield f"The limit of {whom} {name!r} changes from {_amount(old.get(name))} to {_amount(new.get(name))}."


def _amount(epsilon: Fraction | None) -> str:
    return "none" if epsilon is None else f"epsilon {decimal_text(epsilon)}"


def _tables(old: Mapping[str, TablePolicy], new: Mapping[str, TablePolicy]) -> Iterator[str]:
    for name in old.keys() - new.keys():
        yield f"The private table {name!r} is gone: it cannot be asked any more. Its charges and answers stay."
    for name in sorted(new.keys() - old.keys()):
        whom = f"all rows with the same {new[name].unit}, together" if new[name].unit else "each single row"
        yield f"A private table {name!r} is added. Protected: {whom}."
    for name in sorted(old.keys() & new.keys()):
        yield from _table(name, old[name], new[name])


def _table(name: str, old: TablePolicy, new: TablePolicy) -> Iterator[str]:
    if old.source != new.source:
        inner = "" if old.table == new.table else f", and its table there is {new.table or 'none'}, not {old.table}"
        yield f"{name}: its source {_moved(old.source, new.source, 'moved')}{inner}."
    elif old.table != new.table:
        yield f"{name}: moved: read from the table {new.table} of {new.source}, not from its table {old.table}."
    if old.trusted_view != new.trusted_view:
        yield f"{name}: trusted_view is {str(new.trusted_view).lower()} now: " + (
            "a view is accepted, and that each of its rows is one unit's own is the steward's word alone."
            if new.trusted_view
            else "the source has to be a base table."
        )
    if old.looked_at_rows != new.looked_at_rows:
        yield f"{name}: looked_at_rows is {str(new.looked_at_rows).lower()} now: " + (
            "what is declared of it may have been taken from its rows, outside the proof; receipts say so."
            if new.looked_at_rows
            else "its declarations are said to be known beforehand."
        )
    if old.unit != new.unit:
        before, after = (f"the unit {t.unit!r}" if t.unit else "each single row" for t in (old, new))
        yield (
            f"{name}: another unit is protected: {after} instead of {before}. It has a budget of its own, as if nobody "
            "had asked about these people before."
        )
    if (old.unit_space, dict(old.through)) != (new.unit_space, dict(new.through)):
        yield (
            f"{name}: whose rows they are is found in another way (unit_space, through): what was spent on these "
            "people before may not count any more."
        )
    if old.bounding != new.bounding:
        yield f"{name}: a unit beyond its limits is bounded by {new.bounding}, not by {old.bounding}."
    if old.neighbours != new.neighbours:
        yield (
            f"{name}: neighbours are {new.neighbours}, not {old.neighbours}: "
            + ("that somebody is in the table at all is no longer hidden." if new.neighbours == "replace" else
               "that somebody is in the table at all is hidden too.")
        )  # fmt: skip
    for limit, meaning in _LIMITS.items():
        before, after = getattr(old, limit), getattr(new, limit)
        if before != after:
            yield f"{name}: {limit} changes from {before or 'none'} to {after or 'none'}: {meaning}."
    if old.budget != new.budget:
        yield f"{name}: the table's own limit changes from {_amount(old.budget)} to {_amount(new.budget)}."
    yield from _columns(name, old.columns, new.columns)
    if old.types != new.types:
        changed = sorted(c for c in old.types.keys() | new.types.keys() if old.types.get(c) != new.types.get(c))
        yield f"{name}: the declared types of {', '.join(changed)} change."
    if old.csv != new.csv:
        yield f"{name}: its CSV is read otherwise ([tables.{name}.csv]). Questions on it are asked anew."


def _columns(table: str, old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if after is None:
            yield f"{table}.{name}: nothing is declared any more: it can be neither summed nor grouped by."
        elif before is None:
            yield f"{table}.{name}: declared, {_domain(after)}."
        else:
            yield f"{table}.{name}: {_domain(before)} before, {_domain(after)} now. Questions on it are asked anew."


def _domain(what: Mapping[str, Any]) -> str:
    if "between" in what:
        low, high = what["between"]
        zone = f", on the clocks of {what['tz']}" if what.get("tz") else ""
        return f"between {low} and {high}{zone}{'' if what.get('nullable', True) else ', never NULL'}"
    if "edges" in what:
        return f"edges {', '.join(map(str, what['edges']))}{'' if what.get('nullable', True) else ', never NULL'}"
    if "one_of" not in what:
        return f"text{_cut(what)}"
    other = f", others as {what['other']}" if what.get("other") else ", or others" if what.get("others") else ""
    return f"one of {', '.join(map(str, what['one_of']))}{', or NULL' if what.get('null') else ''}{other}{_cut(what)}"


def _cut(what: Mapping[str, Any]) -> str:
    return ", blanks around it cut off" if what.get("trim") else ""


def _publics(old: Mapping[str, PublicPolicy], new: Mapping[str, PublicPolicy]) -> Iterator[str]:
    for name in sorted(old.keys() - new.keys()):
        yield f"The public table {name!r} is gone."
    for name in sorted(new.keys() - old.keys()):
        yield f"A public table {name!r} is added: its rows are answered exactly, and protect nobody. Be sure of that."
    for name in sorted(old.keys() & new.keys()):
        if old[name] != new[name]:
            yield f"The public table {name!r} is read otherwise, from {new[name].source}."
