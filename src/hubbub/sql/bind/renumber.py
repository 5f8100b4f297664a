"""Names of our own, given anew: the same question has the same names wherever in a statement it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from hubbub.tables.aggregate_query import AggregateQuery
from hubbub.tables.aggregates import Function
from hubbub.tables.expressions import Column
from hubbub.tables.relations import Combine, Distinct, PerUnit, PublicRelation, Scan, Window

__all__ = ["renumbered"]


def renumbered(question: AggregateQuery) -> AggregateQuery:
    """A question whose places are t1, t2, ... in the order in which they are first met."""
    names: dict[str, str] = {}
    for place in _places(question.relation):
        names.setdefault(place, f"{place[0]}{len(names) + 1}")
    return cast(AggregateQuery, _changed(question, names))


def _places(node: Any) -> Iterator[str]:
    if isinstance(node, Scan | PublicRelation):
        yield node.place
    if isinstance(node, PerUnit | Distinct | Window | Combine):
        first = (*getattr(node, "keys", ()), *getattr(node, "aggregates", ()), *node_columns(node))
        yield from (name.partition(".")[0] for name in map(_name_of, first))
    if is_dataclass(node):
        for part in fields(node):
            value = getattr(node, part.name)
            if is_dataclass(value) and not isinstance(value, type):
                yield from _places(value)


def node_columns(node: Any) -> tuple[Any, ...]:
    return tuple(getattr(node, "columns", ()))


def _name_of(item: Any) -> str:
    return str(item.name if isinstance(item, Column) else item[0])


def _changed(node: Any, names: dict[str, str]) -> Any:
    """A tree with every place renamed: in columns, in the names of computed columns, and in the nodes themselves."""
    if isinstance(node, Function):
        return node
    if isinstance(node, Column):
        return replace(node, name=_renamed(node.name, names))
    if isinstance(node, tuple):
        if len(node) == 2 and isinstance(node[0], str) and is_dataclass(node[1]):
            return _renamed(node[0], names), _changed(node[1], names)
        return tuple(_changed(item, names) for item in node)
    if is_dataclass(node) and not isinstance(node, type):
        new = {}
        for part in fields(node):
            value = getattr(node, part.name)
            if part.name == "place":
                new["place"] = names.get(value, value)
            elif isinstance(value, tuple) or (is_dataclass(value) and not isinstance(value, type)):
                new[part.name] = _changed(value, names)
        return replace(node, **new) if new else node
    return node


def _renamed(name: str, names: dict[str, str]) -> str:
    place, dot, rest = name.partition(".")
    return f"{names.get(place, place)}{dot}{rest}"
