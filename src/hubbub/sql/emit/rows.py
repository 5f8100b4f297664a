"""The owned rows of one table as SQL: for what looks at whole rows, inside this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.place import Place
from hubbub.sql.emit.relation import relation_stages
from hubbub.tables.relations import Scan

__all__ = ["rows_sql"]


def rows_sql(scan: Scan, places: Mapping[str, Place], columns: Sequence[str], dialect: Dialect) -> str:
    """The columns of a table's owned rows, then a number for each unit (left out where each row is one).

    >>> from hubbub.engines.duckdb.dialect import DUCKDB
    >>> from hubbub.tables.declare import Limits
    >>> from hubbub.tables.kinds import Kind
    >>> scan = Scan("t1", "t", {"x": Kind.INTEGER}, {}, Limits(), "each row", "add_remove", None)
    >>> key = lambda column: (column, "integer")
    >>> print(rows_sql(scan, {"t": Place("s", {"x": "x"}, None, key)}, ["x"], DUCKDB))
    WITH r1 AS (
      SELECT x AS c0
      FROM s
    )
    SELECT c0 FROM r1
    """
    names = {f"{scan.place}.{column}": f"c{i}" for i, column in enumerate(columns)}
    stages = list(relation_stages(scan, places, names, dialect, with_unit=not scan.each_row))
    body = ",\n".join(f"{name} AS (\n{sql}\n)" for name, sql in stages)
    shown = [f"c{i}" for i in range(len(columns))]
    unit = "unit"
    if scan.unit is not None and scan.path is None:  # a long name would be written out for each row of its person
        unit = dialect.unit_name(unit, places[scan.table].key(scan.unit)[1])
    shown += [] if scan.each_row else [f"dense_rank() OVER (ORDER BY {unit}) AS owner"]
    return f"WITH {body}\nSELECT {', '.join(shown)} FROM {stages[-1][0]}"
