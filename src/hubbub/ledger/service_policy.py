"""The section `[service]` of a policy file: what analysts of the service are told when, and how much each may ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

__all__ = ["ServicePolicy", "read_service"]

_LEAST: Final = {"answer_time": 0.1, "tick": 0.01}


@dataclass(frozen=True)
class ServicePolicy:
    """What the service goes by; Python and the command line obey the limits of a question too.

    answer_time: seconds until an answer, for each table that does not say; of a question about several, their sum.
    tick: answers leave at whole multiples of so many seconds. lanes: how many questions run at once. shared_answers:
    whether analysts see and reuse each other's stored answers. max_aggregates: how many aggregates a question may have;
    max_answer_groups: how many groups.
    memory: MiB that a runner's engine may use.
    """

    answer_time: float = 5.0
    tick: float = 0.1
    lanes: int = 1
    shared_answers: bool = True
    max_aggregates: int | None = None
    max_answer_groups: int | None = None
    memory: int = 4096


class _Reader(Protocol):
    """What reads a policy file (`hubbub.ledger.policy`)."""

    def known(self, at: tuple[str, ...], section: dict[str, Any], allowed: tuple[str, ...]) -> None: ...

    def flag(self, at: tuple[str, ...], value: object) -> bool: ...

    def limit(self, at: tuple[str, ...], value: object) -> int | None: ...

    def wrong(self, at: tuple[str, ...], message: str) -> Exception: ...


def read_service(reader: _Reader, section: dict[str, Any]) -> ServicePolicy:
    """The section; what it does not say is the default."""
    default = ServicePolicy()
    reader.known(("service",), section, tuple(ServicePolicy.__dataclass_fields__))
    return ServicePolicy(
        answer_time=seconds(reader, ("service", "answer_time"), section.get("answer_time", default.answer_time)),
        tick=seconds(reader, ("service", "tick"), section.get("tick", default.tick)),
        lanes=reader.limit(("service", "lanes"), section.get("lanes")) or default.lanes,
        shared_answers=reader.flag(("service", "shared_answers"), section.get("shared_answers", True)),
        max_aggregates=reader.limit(("service", "max_aggregates"), section.get("max_aggregates")),
        max_answer_groups=reader.limit(("service", "max_answer_groups"), section.get("max_answer_groups")),
        memory=reader.limit(("service", "memory"), section.get("memory")) or default.memory,
    )


def seconds(reader: _Reader, at: tuple[str, ...], value: object) -> float:
    """A time: a number of seconds, at least a tenth (a hundredth for a tick), at most an hour."""
    least = _LEAST[at[-1]]
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 3600:
        raise reader.wrong(at, f"found {value!r}; allowed: a number of seconds, from {least:g} to 3600")
    return float(value)
