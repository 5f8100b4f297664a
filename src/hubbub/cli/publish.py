"""`hubbub publish`: an answer, marginals or a synthetic table as a folder that can be handed out.

The release is asked for as `query` and `synth` ask: a stored one is free. Publishing itself costs nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hubbub.cli.console import note
from hubbub.cli.options import (
    agree,
    open_session,
    params_option,
    policy_option,
    purpose_option,
    question_options,
    question_text,
    terms_given,
    terms_options,
)
from hubbub.ledger.budget import decimal_text

if TYPE_CHECKING:
    from hubbub.answer.release import Release
    from hubbub.session import Session
    from hubbub.session.publish import Marginals, SyntheticTable

__all__ = ["command"]


@click.command("publish")
@question_options
@params_option
@terms_options
@policy_option
@purpose_option
@click.option("--synthetic", metavar="TABLE", help="Publish a synthetic table in place of this one.")
@click.option("--marginals", metavar="TABLE", help="Publish marginals of this table: which, with --of.")
@click.option("--of", "wanted", multiple=True, metavar="A,B,...", help="The columns of a marginal; may be repeated.")
@click.option("--title", default="", metavar="TEXT", help="The title of the page.")
@click.option("--yes", is_flag=True, help="Spend without asking; needed where no person can answer.")
@click.option("--force", is_flag=True, help="Replace an earlier publication in the folder.")
@click.option(
    "-o", "--output", "folder", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="The folder to write: CSV, metadata.json, index.html.",
)  # fmt: skip
def command(
    sql: str | None,
    file: Path | None,
    params: dict[str, object],
    policy: Path | None,
    purpose: str | None,
    synthetic: str | None,
    marginals: str | None,
    wanted: tuple[str, ...],
    title: str,
    yes: bool,
    force: bool,
    folder: Path,
    **terms: Any,
) -> None:
    """Write a folder to hand out: the answer to SQL, or a table's marginals or synthetic rows. A stored one is free."""
    _one_of(sql is not None or file is not None, synthetic, marginals, wanted)
    if folder.exists() and any(folder.iterdir()) and not force:
        raise click.UsageError(f"-o {folder}: this folder is not empty; name another, or add --force.")
    made: Release | SyntheticTable | Marginals
    with open_session(policy, purpose) as session:
        if synthetic or marginals:
            made = _whole_rows(session, synthetic, marginals, wanted, terms_given(terms, params), yes=yes)
        else:
            made = _answer(session, question_text(sql, file), terms_given(terms, params), yes=yes)
    made.publish(folder, title=title, force=force)
    paid = f"Charged epsilon {decimal_text(made.cost)}." if made.charged else "A stored release: nothing charged."
    note(f"{paid} Wrote {folder}: index.html shows it, metadata.json says what it means.")


def _one_of(question: bool, synthetic: str | None, marginals: str | None, wanted: tuple[str, ...]) -> None:
    if sum((question, synthetic is not None, marginals is not None)) != 1:
        raise click.UsageError("say what to publish, once: SQL (or -f FILE), --synthetic TABLE, or --marginals TABLE.")
    if bool(wanted) != (marginals is not None):
        raise click.UsageError("--marginals TABLE needs --of A,B,... for each marginal, and --of needs --marginals.")


def _answer(session: Session, sql: str, given: dict[str, Any], *, yes: bool) -> Release:
    from hubbub.cli.query import agree as agree_to

    agree_to(session, sql, yes=yes, fresh=False, **given)
    return session.sql(sql, **given)


def _whole_rows(
    session: Session,
    synthetic: str | None,
    marginals: str | None,
    wanted: tuple[str, ...],
    given: dict[str, Any],
    *,
    yes: bool,
) -> SyntheticTable | Marginals:
    """A synthetic table, or marginals. They take an epsilon, and no other term of a question."""
    epsilon = given.pop("epsilon", None)
    others = sorted(name for name in given if name != "params")
    if epsilon is None or others:
        raise click.UsageError("a synthetic table and marginals take --epsilon, and no other term of a question.")
    if synthetic is not None:
        if not session.plan_synthesis(synthetic, epsilon=epsilon).stored:
            agree(str(epsilon), yes=yes)
        return session.synthesize(synthetic, epsilon=epsilon)
    from hubbub.session.consent import marginals_are_stored

    assert marginals is not None
    columns = [tuple(name.split(",")) for name in wanted]
    if not marginals_are_stored(session, marginals, columns, epsilon=str(epsilon)):
        agree(str(epsilon), yes=yes)
    return session.marginals(marginals, columns, epsilon=epsilon)
