"""An answer of a service: the same release, whose other levels and refinements are fetched where it was released."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hubbub.answer.release import Refinement, Refining, Release
from hubbub.answer.wire import SentAnswer, read_release
from hubbub.errors import ParameterError
from hubbub.ledger.budget import parse_epsilon
from hubbub.remote.wire import understood

if TYPE_CHECKING:
    from hubbub.remote.connection import Connection

__all__ = ["release_of"]


@dataclass(frozen=True, eq=False)
class FetchedAnswer(SentAnswer):
    """What was sent of an answer, and how another level is had. more: the levels that were fetched since."""

    fetch: Callable[[float], Mapping[int, tuple[Any, Any]]] | None = None
    more: dict[float, Mapping[int, tuple[Any, Any]]] = field(default_factory=dict)

    def ends(self, i: int, level: float) -> Any:
        """The ends of a column's intervals, at any level."""
        if level in self.sent or self.fetch is None:
            return super().ends(i, level)
        if level not in self.more:
            self.more[level] = self.fetch(level)
        return self.more[level].get(i)


def release_of(connection: Connection, told: Mapping[str, Any]) -> Release:
    """The release that a service told, which asks there for more. told: the answer, and the id of its question."""
    read = read_release(json.dumps(told["answer"]))
    sent, identity = read["_answered"], told.get("id")
    if sent is None or identity is None:
        return Release(**read)

    def fetched(level: float) -> Mapping[int, tuple[Any, Any]]:
        told = connection.told_of(str(identity), level=level)
        with understood():
            again = read_release(json.dumps(told["answer"]))["_answered"]
        if again is None or level not in again.sent:
            raise ParameterError(f"level={level:g}: the service did not send this level.")
        ends: Mapping[int, tuple[Any, Any]] = again.sent[level]
        return ends

    own = {name: getattr(sent, name) for name in SentAnswer.__dataclass_fields__}
    refining = Refining(
        lambda epsilon: connection.refined(str(identity), parse_epsilon(epsilon)),
        lambda epsilon: refinement_of(connection, str(identity), parse_epsilon(epsilon)),
    )
    return replace(Release(**read), _answered=FetchedAnswer(**own, fetch=fetched), refine=refining)


def refinement_of(connection: Connection, identity: str, epsilon: Fraction) -> Refinement:
    """What refining would cost, and how wide the intervals would be."""
    place = f"/answers/{quote(identity, safe='')}/refine/check"
    told = connection.wire.post(place, {"epsilon": str(epsilon)})
    with understood():
        columns = tuple((str(name), float(now), float(then), str(unit)) for name, now, then, unit in told["columns"])
        return Refinement(Fraction(told["epsilon"]), Fraction(told["left"]), columns, told["helps"], told["fits"])
