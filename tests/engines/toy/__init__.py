"""A toy engine, whole: what somebody writes who has tables where hubbub does not look yet.

It holds rows in a dictionary of this process, by name: `toy:visits`. One folder: its place, and an engine that lets
DuckDB do the arithmetic (an engine that has SQL of its own brings a dialect, as `engines/postgres` does).
"""

from engines.toy.place import ROWS, ToyPlace

__all__ = ["ROWS", "ToyPlace"]
