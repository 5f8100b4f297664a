"""`hubbub audit`: try to refute a claim of privacy, a user's own or hubbub's."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hubbub.cli.console import note
from hubbub.cli.options import output_option, write
from hubbub.errors import PolicyError, QueryError

if TYPE_CHECKING:
    from hubbub.audit import Report

__all__ = ["command"]

REFUTED: Final = 3
"""The exit code where a claim was refuted."""


@click.command("audit")
@click.argument("target", required=False, metavar="[MODULE:CALLABLE]")
@click.option("--self", "own", is_flag=True, help="Audit hubbub itself instead.")
@click.option("--epsilon", metavar="NUMBER", help="What the callable claims.")
@click.option("--delta", default="0", show_default=True, metavar="NUMBER", help="The delta it claims beside it.")
@click.option("--data", default="0", show_default=True, metavar="JSON", help="The data set it is run on.")
@click.option("--neighbour", default="1", show_default=True, metavar="JSON", help="The neighbour it is run on.")
@click.option("--bits", is_flag=True, help="Look at the last bits of floats as well.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), metavar="NUMBER", help="For each black-box audit.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="NUMBER",
    help="Of each black-box bound. Default: 0.95; 0.999 with --self.",
)
@click.option("--thorough", is_flag=True, help="With --self: every neighbour of the audit's table, not a twelfth.")
@click.option("--format", "form", type=click.Choice(["text", "json", "html"]), default="text", show_default=True)
@output_option
def command(
    target: str | None,
    own: bool,
    epsilon: str | None,
    delta: str,
    data: str,
    neighbour: str,
    bits: bool,
    seconds: float | None,
    confidence: float | None,
    thorough: bool,
    form: str,
    output: Path | None,
) -> int:
    """Try to refute that CALLABLE is epsilon-private, or that hubbub is (--self).

    MODULE is a module's name or a .py file; CALLABLE(data, size) gives an array of `size` independent outputs. Exit
    code 3 where a claim is refuted. A claim that is not refuted is not proved: the report says how much could have been
    seen.
    """
    if own == (target is not None):
        raise click.UsageError("name what to audit as MODULE:CALLABLE, or give --self.")
    if own:
        report = _own(seconds or 2.0, confidence or 0.999, thorough)
    else:
        if epsilon is None:
            raise click.UsageError("--epsilon: say what the callable claims.")
        report = _theirs(str(target), epsilon, delta, (data, neighbour), bits, seconds or 60.0, confidence or 0.95)
    text = report.to_json() if form == "json" else report.to_html() if form == "html" else str(report)
    write(text, output)
    return REFUTED if report.violated else 0


def _own(seconds: float, confidence: float, thorough: bool) -> Report:
    import warnings

    from hubbub.audit import self_test

    with warnings.catch_warnings():
        # The audit's own sessions keep their budgets in memory, on purpose.
        warnings.simplefilter("ignore", UserWarning)
        return self_test(
            seconds=seconds, confidence=confidence, thorough=thorough, progress=lambda what: note(f"auditing: {what}")
        )


def _theirs(
    target: str, epsilon: str, delta: str, data: tuple[str, str], bits: bool, seconds: float, confidence: float
) -> Report:
    from hubbub.accounting.amounts import probability
    from hubbub.audit import Report, line_of, lower_bound
    from hubbub.ledger.budget import parse_epsilon

    claimed, beside = float(parse_epsilon(epsilon)), float(probability(delta, "delta"))
    d, d_prime = (_json(text) for text in data)
    try:
        run = _callable(target)
        note(f"auditing {target} for up to {seconds:g} seconds")
        bound = lower_bound(run, d, d_prime, delta=beside, confidence=confidence, seconds=seconds, bits=bits)
    except SystemExit:  # the user's own code; code 0 would say that its claim stands
        text = f"{target} ends the program (SystemExit): give a callable that returns its outputs."
        raise click.UsageError(text) from None
    return Report((line_of(target, bound, claimed),))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise QueryError(f"{text!r} is not JSON ({error.msg}); give data as JSON, such as '[1, 0, 2]'.") from None


def _callable(target: str) -> Any:
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise QueryError(f"{target!r} was asked; name a callable as MODULE:CALLABLE, such as mine.py:noisy_count.")
    module = _module(place)
    named = getattr(module, name, None)
    if not callable(named):
        raise QueryError(f"{place} has no callable {name!r}; give one that takes (data, size).")
    return named


def _module(place: str) -> Any:
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise PolicyError(f"there is no file {place}; name a module or a .py file.")
        spec = importlib.util.spec_from_file_location(f"hubbub audits {path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Its dataclasses look their module up; the name must not hide another module.
        sys.modules[f"hubbub audits {path.stem}"] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:  # the user's own code, whose errors are the user's to read
            raise QueryError(f"{place} could not be loaded: {type(error).__name__}: {error}") from error
        return module
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise PolicyError(f"the module {place} was not found ({error.name}); name a module or a .py file.") from None
