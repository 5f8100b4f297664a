"""The corpus, run on DuckDB: as hubbub writes it, without its net, and without its casts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from engines.corpus import bound, far_rows, rows
from hubbub.engines.duckdb.dialect import DUCKDB, DuckDB
from hubbub.engines.duckdb.relations import LEFT_OUT
from hubbub.engines.fields import Fields
from hubbub.errors import QueryError
from hubbub.sql.emit.dialect import Dialect
from hubbub.sql.emit.expression import expression_sql
from hubbub.tables.expressions import Expression
from hubbub.tables.kinds import Kind

__all__ = ["BATCH", "NO_CASTS", "NO_NET", "NO_YEARS", "Hard", "Written", "fits", "written"]

NO_NET = DuckDB(net=False)
NO_CASTS = DuckDB(casts=False)
NO_YEARS = DuckDB(casts=False, years=False)
"""Neither casts nor years: the net alone."""

BATCH = 200
"""How many expressions stand in one SELECT."""

Written = tuple[str, str]
"""An expression of a person's, and its text in a dialect."""


def written(texts: Iterable[str], dialect: Dialect) -> list[Written]:
    """Those that the binder and the writer accept, in a dialect."""
    found = []
    for text in texts:
        node = bound(text)
        if node is not None:
            try:
                found.append((text, expression_sql(node, dialect)))
            except QueryError:
                continue  # too long a text is refused before the charge
    return found


@dataclass
class Hard:
    """A DuckDB that holds the hard rows, as a table and as a Parquet file, and reads them as hubbub does."""

    con: duckdb.DuckDBPyConnection
    sources: Mapping[str, str]
    """What to write after FROM, by name."""

    @classmethod
    def made(cls, folder: Path, *, left_out: str = LEFT_OUT) -> Hard:
        con = duckdb.connect(config={"threads": 1})
        con.execute(f"SET disabled_optimizers = '{left_out}'")
        held = pa.concat_tables([rows(400), far_rows(400)])
        number = pa.array(range(held.num_rows), pa.int64())
        held = held.set_column(0, "id", number)
        con.register("held", held)
        con.execute("CREATE TABLE hard AS SELECT * FROM held ORDER BY hash(id)")
        pq.write_table(held, folder / "hard.parquet", row_group_size=100)
        sources = {}
        for name, source in (("table", "hard"), ("parquet", f"read_parquet('{folder / 'hard.parquet'}')")):
            physical = {c: kind for c, kind, *_ in con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}
            columns = Fields("hard", physical, {}, {}, DUCKDB).expressions()
            shown = ", ".join(f'{sql} AS "{c}"' for c, sql in columns.items())
            sources[name] = f"(SELECT {shown} FROM {source})"
        return cls(con, sources)

    def values(self, batch: Sequence[Written], source: str) -> list[tuple[object, ...]]:
        """Of each expression: a hash of its value in every row, and how many are not NULL.

        Raises duckdb.Error if one of them does.
        """
        inside = ", ".join(f"{text} AS e{k}" for k, (_, text) in enumerate(batch))
        outside = ", ".join(f"bit_xor(hash(id, e{k})), count(e{k})" for k in range(len(batch)))
        sql = f"SELECT {outside} FROM (SELECT id, {inside} FROM {self.sources[source]})"
        (found,) = self.con.execute(sql).fetchall()
        return [found[2 * k : 2 * k + 2] for k in range(len(batch))]

    def raising(self, batch: Sequence[Written], source: str) -> Iterator[tuple[str, str]]:
        """The expressions of a batch that raise, each with what it says; found by halving."""
        try:
            self.values(batch, source)
        except duckdb.Error as error:
            if len(batch) == 1:
                yield batch[0][0], str(error).splitlines()[0]
                return
            half = len(batch) // 2
            first = list(self.raising(batch[:half], source))
            second = list(self.raising(batch[half:], source))
            # Two that raise together and not alone: what an optimiser makes of both.
            yield from first + second or [(" with ".join(text for text, _ in batch), str(error).splitlines()[0])]

    def all_raising(self, texts: Sequence[Written], source: str) -> list[tuple[str, str]]:
        """Those of any number of expressions."""
        return [found for at in range(0, len(texts), BATCH) for found in self.raising(texts[at : at + BATCH], source)]

    def types(self, texts: Sequence[Written]) -> list[str]:
        """The SQL type of each."""
        inside = ", ".join(f"{text} AS e{k}" for k, (_, text) in enumerate(texts))
        described = self.con.execute(f"DESCRIBE SELECT {inside} FROM {self.sources['table']}").fetchall()
        return [kind for _, kind, *_ in described]


def fits(node: Expression, found: str) -> bool:
    """Whether an SQL type is that of an expression's kind."""
    if node.kind is Kind.NULL:
        return found in ("INTEGER", '"NULL"')
    return found == DUCKDB.types[node.kind] or (node.kind is Kind.INTEGER and found == "HUGEINT")
