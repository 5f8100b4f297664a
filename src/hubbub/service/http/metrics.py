"""Counts for whoever runs the service, in Prometheus's text form, on a port of their own.

The front's are of requests: what was asked of it, how it was answered. The clerk's step at submissions and at releases
alone; among them is nothing of a run, of rows, of memory, of the chain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from threading import Lock

__all__ = ["Counts"]


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
