"""`hubbub predict`: what a fitted model says of the rows of a file. Free: no ledger, no budget."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from hubbub.cli.options import write
from hubbub.errors import PolicyError

__all__ = ["class_called", "command", "read_model"]


@click.command("predict")
@click.argument("model", metavar="MODEL", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Where to write: .csv."
)
def command(model: Path, file: Path, output: Path | None) -> None:
    """What the MODEL that `hubbub fit` wrote says of each row of FILE (.parquet or .csv): free."""
    from hubbub.cli.formats import as_csv

    fitted, rows = read_model(model), _rows(file)
    columns: dict[str, Any] = {}
    if hasattr(fitted, "predict"):
        columns["prediction"] = fitted.predict(rows).tolist()
        if hasattr(fitted, "classes_"):
            shares = fitted.predict_proba(rows)
            columns |= {f"p({name})": shares[:, k].tolist() for k, name in enumerate(fitted.classes_)}
    else:
        places = fitted.transform(rows)
        columns = {f"component {k + 1}": places[:, k].tolist() for k in range(places.shape[1])}
    write(as_csv(list(columns), list(zip(*columns.values(), strict=True))), output)


def read_model(path: Path) -> Any:
    """A model that `hubbub fit` wrote.

    Raises PolicyError for a file that cannot be read, ParameterError for one that holds no model.
    """
    from hubbub.learning import load

    try:
        return load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"cannot read the model {path}: {getattr(error, 'strerror', None) or 'not text'}.") from None


def class_called(text: str, classes: Iterable[Any]) -> Any:
    """The class that is written so, `true` and `false` in letters of any case; the text itself where none is."""
    for one in classes:
        if one is not None and (str(one) == text or (isinstance(one, bool) and str(one).lower() == text.lower())):
            return one
    return text


def _rows(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix not in (".csv", ".parquet"):
        raise click.UsageError(f"{path}: expected a .parquet or .csv file.")
    try:
        return pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)
    except (OSError, pa.ArrowInvalid):
        raise PolicyError(f"cannot read the rows of {path}: it is missing, or not a table.") from None
