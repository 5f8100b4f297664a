"""Counts for whoever runs the service, in Prometheus's text form, on a port of their own.

The front's are of requests: what was asked of it, how it was answered. The clerk's step at submissions and at releases
alone; among them is nothing of a run, of rows, of memory, of the chain. Amounts of epsilon, in all and by analyst, are
for who has a token with the scope `metrics` (an auditor's).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from threading import Lock
from typing import Any

__all__ = ["Counts", "amounts"]


class Counts:
    """What the front counts."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._refusals: Counter[str] = Counter()

    def request(self, route: str, status: int) -> None:
        """A request of a route was answered."""
        with self._lock:
            self._requests[route, status] += 1

    def refusal(self, kind: str) -> None:
        """Something was refused."""
        with self._lock:
            self._refusals[kind] += 1

    def text(self, clerk: Mapping[str, float]) -> str:
        """All counts. clerk: what the clerk tells.

        >>> counts = Counts()
        >>> counts.request("GET /healthz", 200)
        >>> print(counts.text({"hubbub_questions_total": 3}), end="")
        # TYPE hubbub_requests_total counter
        hubbub_requests_total{route="GET /healthz",status="200"} 1
        # TYPE hubbub_refusals_total counter
        # TYPE hubbub_questions_total counter
        hubbub_questions_total 3
        """
        with self._lock:
            requests, refusals = sorted(self._requests.items()), sorted(self._refusals.items())
        lines = ["# TYPE hubbub_requests_total counter"]
        lines += [f'hubbub_requests_total{{route="{r}",status="{s}"}} {n}' for (r, s), n in requests]
        lines += ["# TYPE hubbub_refusals_total counter"]
        lines += [f'hubbub_refusals_total{{kind="{kind}"}} {n}' for kind, n in refusals]
        for name, value in clerk.items():
            lines += [f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


def amounts(spaces: Iterable[Mapping[str, Any]]) -> str:
    r"""What was spent and may be, as lines.

    >>> ada = {"spent": "1/4", "limit": "1"}
    >>> print(amounts([{"space": "people", "budget": "3", "spent": "1/2", "analysts": {'a"b': ada}}]), end="")
    # TYPE hubbub_epsilon_budget gauge
    hubbub_epsilon_budget{space="people"} 3.0
    # TYPE hubbub_epsilon_spent gauge
    hubbub_epsilon_spent{space="people"} 0.5
    # TYPE hubbub_analyst_epsilon_limit gauge
    hubbub_analyst_epsilon_limit{space="people",analyst="a\"b"} 1.0
    # TYPE hubbub_analyst_epsilon_spent gauge
    hubbub_analyst_epsilon_spent{space="people",analyst="a\"b"} 0.25
    """
    told: dict[str, list[str]] = {
        f"hubbub_{name}": []
        for name in ("epsilon_budget", "epsilon_spent", "analyst_epsilon_limit", "analyst_epsilon_spent")
    }

    def add(name: str, amount: str, **labels: str) -> None:
        said = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
        told[f"hubbub_{name}"].append(f"hubbub_{name}{{{said}}} {float(Fraction(amount))}")

    for one in spaces:
        add("epsilon_budget", one["budget"], space=one["space"])
        add("epsilon_spent", one["spent"], space=one["space"])
        for name, account in one["analysts"].items():
            add("analyst_epsilon_limit", account["limit"], space=one["space"], analyst=name)
            add("analyst_epsilon_spent", account["spent"], space=one["space"], analyst=name)
    return "".join("\n".join([f"# TYPE {name} gauge", *lines]) + "\n" for name, lines in told.items() if lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
