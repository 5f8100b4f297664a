"""`hubbub fit`: a model of a private table, as a file that predicts without one.

Everything goes through `Session.fit`: the whole cost is charged before a row is read, the model is stored in the
ledger, then written, and asked for again it is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hubbub.cli.console import note
from hubbub.cli.options import agree, epsilon_option, open_session, policy_option, purpose_option, rows_per_unit_option
from hubbub.cli.predict import class_called
from hubbub.cli.standing import left_text
from hubbub.errors import PolicyError
from hubbub.ledger.budget import decimal_text

if TYPE_CHECKING:
    from hubbub.session import Session

__all__ = ["command"]

_MODELS: Final = {
    "logistic": ("LogisticRegression", ("target", "positive", "bins", "method", "weight", "rows")),
    "additive": ("AdditiveModel", ("target", "positive", "bins", "pairs", "weight", "rows")),
    "linear": ("LinearRegression", ("target", "bins", "method", "weight", "rows")),
    "categorical-nb": ("CategoricalNB", ("target", "positive", "bins", "weight")),
    "gaussian-nb": ("GaussianNB", ("target", "positive", "weight")),
    "k-means": ("KMeans", ("n_clusters", "weight")),
    "pca": ("PCA", ("n_components", "weight")),
}
"""The name of a model here, its class, and its parameters beside the features."""


@click.command("fit")
@click.argument("table", metavar="TABLE")
@click.option(
    "--model",
    "kinds",
    type=click.Choice(list(_MODELS)),
    multiple=True,
    default=["additive"],
    show_default=True,
    help="Given several times, the one that suits best is fitted; a fifth of the cost pays for choosing.",
)
@click.option("--target", metavar="COLUMN", help="What is learned: a column of declared values, or of numbers.")
@click.option("--positive", metavar="CLASS", help="Which of two classes `hubbub evaluate` is about; default: the last.")
@click.option("--features", metavar="A,B,...", help="The columns it looks at; default: all others that are declared.")
@epsilon_option
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write the model, as JSON. Without it only its cost is shown.",
)
@click.option("--bins", type=click.IntRange(1), metavar="N", help="Bins of each column of numbers.")
@click.option(
    "--pairs",
    multiple=True,
    metavar="A,B | auto",
    help="Two columns that an additive model looks at together; or auto: it looks for them, where rows are many.",
)
@click.option(
    "--method",
    type=click.Choice(["descent", "newton", "moments", "mean"]),
    help="How a line is found; of rows that stay in Postgres or Spark: logistic by newton, linear by moments.",
)
@click.option("--rows", type=click.IntRange(1), metavar="N", help="How many rows there are, if that is public.")
@click.option("--weight", metavar="COLUMN", help="A column of weights, declared between 0 and its largest value.")
@click.option("--clusters", "n_clusters", type=click.IntRange(1), metavar="N", help="Centres of k-means.")
@click.option("--components", "n_components", type=click.IntRange(1), metavar="N", help="Principal components.")
@rows_per_unit_option
@click.option("--assume-rows", type=click.IntRange(1), default=10_000, show_default=True, help="Rows to predict for.")
@policy_option
@purpose_option
@click.option("--yes", is_flag=True, help="Spend without asking; needed where no person can answer.")
@click.option("--fresh", is_flag=True, help="Draw and charge again, even if a stored model would be free.")
@click.option("--force", is_flag=True, help="Replace the output file if it is there.")
def command(
    table: str,
    kinds: tuple[str, ...],
    features: str | None,
    epsilon: str,
    output: Path | None,
    rows_per_unit: int | None,
    assume_rows: int,
    policy: Path | None,
    purpose: str | None,
    yes: bool,
    fresh: bool,
    force: bool,
    **options: Any,
) -> None:
    """Fit a model to the private TABLE, at the cost of --epsilon."""
    model = _models(kinds, features, options)
    _check_output(output, force=force)
    with open_session(policy, purpose) as session:
        _name_positive(model if isinstance(model, list) else [model], session, table)
        looked = session.check_fit(model, table, epsilon=epsilon, rows_per_unit=rows_per_unit, assume_rows=assume_rows)
        if output is None:
            note(str(looked))
            note("Nothing was charged. Name a file with -o to fit the model.")
            return
        if fresh or not looked.stored:
            note(str(looked))
            agree(epsilon, yes=yes)
        fitted = session.fit(model, table, epsilon=epsilon, rows_per_unit=rows_per_unit, fresh=fresh)
        space = fitted.receipt["unit_space"]
        left = left_text(session.ledger, space, dataset=table, analyst=session.analyst)
    try:
        output.write_text(fitted.to_json() + "\n", encoding="utf-8")
    except OSError as error:
        raise PolicyError(
            f"cannot write {output}: {error.strerror}. The model is stored: ask again, it is free."
        ) from error
    said = (
        f"Charged epsilon {decimal_text(fitted.cost)}; {left}" if fitted.charged else "Stored: nothing charged; " + left
    )
    for name, figure in getattr(fitted, "figures_", {}).items():
        note(f"On the synthetic table: {figure:.3f} {name}")
    if getattr(fitted, "method_", None) == "mean" and fitted.get_params().get("method") != "mean":
        note(f"So few rows at this cost tell the mean of {fitted.target} alone: only that was learned.")
    if options["pairs"] == ("auto",) and hasattr(fitted, "pairs_"):
        note(f"Pairs that act together: {', '.join(fitted.pairs_) or 'none'}.")
    if len(kinds) > 1:
        note(f"Fitted: {fitted!r}.")
    note(f"{said} is left. Wrote {output}.")


def _models(kinds: tuple[str, ...], features: str | None, options: dict[str, Any]) -> Any:
    """The one model that is asked for, or a list of them."""
    import hubbub.learning as room

    given = {key: value for key, value in options.items() if value is not None}
    given |= _pairs(given.pop("pairs"))
    models = []
    for kind in kinds:
        name, takes = _MODELS[kind]
        wrong = [key for key in given if key not in takes and not any(key in _MODELS[other][1] for other in kinds)]
        if wrong:
            raise click.UsageError(f"--model {kind} takes no {wrong[0].removeprefix('n_')}.")
        taken = {key: value for key, value in given.items() if key in takes}
        models.append(getattr(room, name)(features=None if features is None else features.split(","), **taken))
    return models[0] if len(models) == 1 else models


def _pairs(listed: tuple[str, ...]) -> dict[str, Any]:
    """The parameter that says which columns are looked at together, if it is given.

    >>> _pairs(("age,job", "age,sex")), _pairs(("auto",)), _pairs(())
    ({'pairs': [('age', 'job'), ('age', 'sex')]}, {'pairs': 'auto'}, {})
    """
    if listed == ("auto",):
        return {"pairs": "auto"}
    pairs = [tuple(each.split(",")) for each in listed]
    wrong = next((each for each, pair in zip(listed, pairs, strict=True) if len(pair) != 2), None)
    if wrong is not None:
        raise click.UsageError(f"--pairs {wrong}: write two columns, as in --pairs age,job, or --pairs auto alone.")
    return {"pairs": pairs} if pairs else {}


def _name_positive(models: Sequence[Any], session: Session, table: str) -> None:
    """Put the declared class in the place of its text; a text that is none is refused with the others."""
    from hubbub.tables.columns import OneOf

    known = session.tables.catalog.get(table)
    columns = known.declaration.columns if known is not None and known.private else {}
    for model in models:
        declared, text = columns.get(getattr(model, "target", None) or ""), getattr(model, "positive", None)
        if text is not None and isinstance(declared, OneOf):
            model.set_params(positive=class_called(text, [*declared.values, declared.other]))


def _check_output(output: Path | None, *, force: bool) -> None:
    """Refuse before the charge what would fail, or destroy something, after it."""
    if output is None:
        return
    if output.suffix != ".json":
        raise click.UsageError(f"-o {output}: a model is written as .json.")
    if not output.parent.is_dir():
        raise click.UsageError(f"-o {output}: there is no folder {output.parent}.")
    if output.exists() and not force:
        raise click.UsageError(f"-o {output}: this file exists; add --force to replace it, or name another.")
