"""What an attack on a table of one's own found: side by side, exact answers, private ones, and the ceiling.

Tables are read by their steward, here, in full; a report holds shares and counts, never a row. `read_table` takes a
Parquet or CSV file with one row per person (for ratings: one per rating).

**The luck of small samples.** A ceiling bounds what is expected, over the noise and over who is drawn; one run on a
hundred people lies above it now and then. `repeated` runs an attack again and again, each time with fresh noise and a
fresh sample, and gives the mean of each finding between the least and the most: the mean keeps below the ceiling, up to
what the number of runs leaves to luck (its standard error is the spread over the square root of that number).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from hubbub.attacks.inputs import Flags, codes, same_length
from hubbub.errors import ParameterError, PolicyError, what_was_given
from hubbub.file_formats import Csv

__all__ = ["Finding", "Report", "Spread", "balanced", "column", "has_value", "read_table", "repeated"]


@dataclass(frozen=True)
class Spread:
    """What several runs found: the mean, the least and the most.

    >>> Spread.of([0.5, 0.75, 1.0])
    Spread(mean=0.75, least=0.5, most=1.0)
    """

    mean: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of what several runs found."""
        return cls(sum(values) / len(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.least:.3f} to {self.most:.3f})"


@dataclass(frozen=True)
class Finding:
    """One thing that an outsider learns: from exact answers, from private ones, and at most. None: does not apply."""

    learned: str
    exact: float | int | Spread | None
    private: float | Spread | None = None
    ceiling: float | Spread | None = None

    def texts(self) -> tuple[str, str, str, str]:
        """The finding as text: shares with three digits, counts as they are, and - for what does not apply."""
        return self.learned, _text(self.exact), _text(self.private), _text(self.ceiling)


@dataclass(frozen=True, eq=False)
class Report:
    """Findings, remarks on what was asked and paid, and the attack's own result on exact answers, which plots."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    result: Any


def _text(value: float | int | Spread | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int | Spread) else f"{value:.3f}"


MOST_RUNS: Final = 10_000


def repeated(attack: Callable[[], Report], runs: int) -> Report:
    """An attack run so often: each finding with its mean, least and most, or as it is where no run found another.

    The result, which plots, is that of the first run.

    Raises ParameterError unless 1 <= runs <= 10,000, and where the runs are not of one attack.
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or not 1 <= runs <= MOST_RUNS:
        raise ParameterError(f"repeat = {what_was_given(runs)} was asked; give a whole number from 1 to {MOST_RUNS:,}.")
    first = attack()
    if runs == 1:
        luck = (
            "One run: its noise and its sample are one draw, which may lie above a ceiling. Repeat it for the spread."
        )
        return replace(first, notes=(*first.notes, luck))
    every = [first.findings, *(attack().findings for _ in range(runs - 1))]
    if any([f.learned for f in findings] != [f.learned for f in first.findings] for findings in every):
        raise ParameterError("repeat: these runs do not find the same things; repeat one attack on one table.")
    together = tuple(
        Finding(
            same[0].learned, *(_spread([getattr(f, side) for f in same]) for side in ("exact", "private", "ceiling"))
        )
        for same in zip(*every, strict=True)
    )
    luck = (
        f"{runs:,} runs, each with a fresh sample and fresh noise: the mean, and in brackets the least and the most. "
        "A ceiling bounds the mean; a single run lies above it by luck."
    )
    return Report(together, (*first.notes, luck), first.result)


def _spread(values: Sequence[Any]) -> Any:
    return values[0] if all(one == values[0] for one in values) else Spread.of([float(one) for one in values])


def read_table(path: Path, csv: Csv | None = None) -> dict[str, Any]:
    """The columns of a Parquet or CSV file, as arrays. csv: how a CSV is written, where it is not with commas.

    Raises PolicyError for a file that is missing, of another kind, or that cannot be read.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    def read_csv(name: str) -> Any:
        how = csv or Csv()
        formats = [*dict.fromkeys((how.formats or {}).values()), pa.csv.ISO8601]
        return pa.csv.read_csv(
            name,
            read_options=pa.csv.ReadOptions(encoding=how.encoding),
            parse_options=pa.csv.ParseOptions(delimiter=how.delimiter or ","),
            convert_options=pa.csv.ConvertOptions(decimal_point=how.decimal, timestamp_parsers=formats),
        )

    readers = {".parquet": pa.parquet.read_table, ".pq": pa.parquet.read_table, ".csv": read_csv}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise PolicyError(f"{path.name!r} is not a known file type; give a .parquet or .csv file.")
    if not path.is_file():
        raise PolicyError(f"there is no file {str(path)!r}. Name a Parquet or CSV file with one row per person.")
    try:
        table = reader(str(path))
    except (pa.ArrowException, OSError):  # whose text may hold a row
        raise PolicyError(
            f"{path.name!r} cannot be read as {path.suffix.lower()[1:]}; repair or export it anew."
        ) from None
    if table.num_rows == 0:
        raise PolicyError(f"{path.name!r} has no rows; an attack needs somebody to attack.")
    # A dictionary's NULLs would come out as its last value.
    plain = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    return {name: values.to_numpy() for name, values in zip(table.column_names, plain, strict=True)}


def column(table: Mapping[str, Any], name: str) -> Any:
    """One column. Raises ParameterError where there is none of that name."""
    if name not in table:
        from hubbub.sql.bind.scope import did_you_mean

        raise ParameterError(
            f"column {what_was_given(name)} was asked, which the table has not. {did_you_mean(name, table)}"
        )
    return table[name]


def has_value(table: Mapping[str, Any], name: str, value: str | None) -> Flags:
    """Who has this value in a column; without a value, who has its less frequent one (the column then has two).

    Raises ParameterError where nobody or everybody has it, and where a value is needed.
    """
    array = column(table, name)
    if value is None:
        code = codes(array)
        sizes = np.bincount(code)
        if len(sizes) != 2:
            raise ParameterError(
                f"column {what_was_given(name)} has {len(sizes)} values, and which is the secret? Give --value."
            )
        return np.asarray(code == int(np.argmin(sizes)))
    same = np.array([_same(v, value) for v in array.tolist()], dtype=bool)
    if same.all() or not same.any():
        raise ParameterError(
            f"column {what_was_given(name)}: nobody or everybody has that value; give one that some have."
        )
    return same


def _same(value: Any, text: str) -> bool:
    if isinstance(value, bool | str) or value is None:
        return str(value).strip().lower() == text.strip().lower()
    try:
        return bool(value == float(text))
    except (TypeError, ValueError):
        return str(value) == text


def balanced(members: Flags) -> None:
    """Raises ParameterError where a column leaves nobody to tell apart."""
    same_length(members=members)
    if members.all() or not members.any():
        raise ParameterError("all people have the same secret; there is nothing to learn. Name another column.")
