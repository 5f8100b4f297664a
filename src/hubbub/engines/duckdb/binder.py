"""A connection of the embedded engine on which texts are bound, and none is run."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from hubbub.engines.duckdb.dialect import quote
from hubbub.engines.duckdb.sources import Held

__all__ = ["Binder"]


class Binder:
    """Where frames stand without rows, each made once. Safe to use from several threads."""

    def __init__(self, con: Any) -> None:
        self._con = con.cursor()
        self._lock = threading.Lock()
        self._made: set[str] = set()

    def bind(self, texts: Iterable[str], frames: Mapping[str, Held], public: Mapping[str, pa.Table]) -> None:
        """Bind each text. frames, public: what it reads by name; of one name always the same frame.

        Raises duckdb.Error where the engine does not take one.
        """
        with self._lock:
            for name in frames.keys() - self._made:
                self._con.register("made", frames[name].empty())
                self._con.execute(f"CREATE TEMP TABLE {quote(name)} AS FROM made")
                self._con.unregister("made")
                self._made.add(name)
            for name, table in public.items():
                self._con.register(name, table)
            try:
                for text in texts:
                    self._con.execute(f"DESCRIBE {text}").fetchall()
            finally:
                for name in public:
                    self._con.unregister(name)
