"""Events as JSON, for ledgers that must be readable in ten years.

`{"hubbub.event": 1, "event": {"type": "gaussian", "sigma": "3/2", "sensitivity": "1"}}`. The registry below
is
closed: names are looked up in it and never imported. Amounts are exact, as "numerator/denominator". A name
or a field, once written by a released version, keeps its meaning for ever; changes raise VERSION.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

from hubbub.accounting import events as ev
from hubbub.errors import ParameterError, what_was_given

__all__ = ["VERSION", "from_json", "to_json"]

VERSION = 1
_DEPTH = 50
_REGISTRY: dict[str, Callable[..., ev.Event]] = {
    "pure_dp": ev.PureDP,
    "approx_dp": ev.ApproxDP,
    "zcdp": ev.ZCDP,
    "gaussian_dp": ev.GaussianDP,
    "laplace": ev.Laplace,
    "discrete_laplace": ev.DiscreteLaplace,
    "gaussian": ev.Gaussian,
    "discrete_gaussian": ev.DiscreteGaussian,
    "randomized_response": ev.RandomizedResponse,
    "bounded_range": ev.BoundedRange,
    "threshold": ev.Threshold,
    "poisson_sampled": ev.PoissonSampled,
    "sampled_without_replacement": ev.SampledWithoutReplacement,
    "composed": ev.Composed,
    "repeated": ev.Repeated,
    "parallel": ev.Parallel,
    "group": ev.Group,
}
_NAMES = {kind: name for name, kind in _REGISTRY.items()}


def to_json(event: ev.Event) -> str:
    """The event as one line of JSON with sorted keys: the same event always gives the same text.

    >>> to_json(ev.PureDP("0.1"))
    '{"event": {"epsilon": "1/10", "type": "pure_dp"}, "hubbub.event": 1}'
    """
    return json.dumps({"hubbub.event": VERSION, "event": _plain(event, _DEPTH)}, sort_keys=True)


def from_json(text: str) -> ev.Event:
    """The event that `to_json` wrote.

    >>> from_json(to_json(ev.Repeated(ev.Gaussian(2), 3)))
    Repeated(event=Gaussian(sigma=Fraction(2, 1), sensitivity=Fraction(1, 1)), times=3)

    Raises ParameterError for text that is not such JSON, for unknown names or fields, and for a newer
    version.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ParameterError("the text is not JSON; expected is what accounting.to_json wrote.") from None
    if not isinstance(document, dict) or "hubbub.event" not in document or "event" not in document:
        raise ParameterError("the JSON holds no event; expected are the keys 'hubbub.event' and 'event'.")
    version = document["hubbub.event"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ParameterError(f"event version {what_was_given(version)} was found; expected is a whole number from 1.")
    if version > VERSION:
        raise ParameterError(
            f"the event was written by a newer hubbub (event version {version}; this one reads up to "
            f"{VERSION}). "
            "Upgrade hubbub to read it: nothing was guessed."
        )
    return _event(document["event"], _DEPTH)


def _plain(value: object, depth: int) -> Any:
    if depth < 0:
        raise ParameterError(f"events are nested deeper than {_DEPTH}. Flatten them with Composed.")
    match value:
        case ev.Event():
            if type(value) not in _NAMES:
                raise ParameterError(f"{type(value).__name__} is not one of hubbub's events. Known: {_known()}.")
            inner = {f.name: _plain(getattr(value, f.name), depth - 1) for f in fields(value)}  # type: ignore[arg-type]
            return {"type": _NAMES[type(value)], **inner}
        case Fraction():
            return f"{value.numerator}/{value.denominator}" if value.denominator != 1 else str(value.numerator)
        case tuple():
            return [_plain(item, depth - 1) for item in value]
        case _:
            return value


def _event(value: object, depth: int) -> ev.Event:
    if depth < 0:
        raise ParameterError(f"events are nested deeper than {_DEPTH}; nothing hubbub wrote is.")
    if not isinstance(value, dict) or value.get("type") not in _REGISTRY:
        kind = value.get("type") if isinstance(value, dict) else value
        raise ParameterError(f"event type {what_was_given(kind)} is unknown. Known: {_known()}.")
    kind = _REGISTRY[value["type"]]
    wanted = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    given = {name: _field(item, depth - 1) for name, item in value.items() if name != "type"}
    if set(given) != wanted:
        raise ParameterError(
            f"event {what_was_given(value['type'])} has fields {sorted(given)}; expected are {sorted(wanted)}."
        )
    return kind(**given)


def _field(value: object, depth: int) -> object:
    match value:
        case dict():
            return _event(value, depth)
        case list():
            return tuple(_event(item, depth - 1) for item in value)
        case str() | int():
            return value
        case _:
            raise ParameterError(f"{what_was_given(value)} was found in an event; amounts are texts such as '1/10'.")


def _known() -> str:
    return ", ".join(sorted(_REGISTRY))
