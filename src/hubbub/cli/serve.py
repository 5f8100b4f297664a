"""`hubbub serve` and `hubbub token`: the service for analysts who are not trusted, and who may ask it."""

from __future__ import annotations

from pathlib import Path

import click

from hubbub.cli.console import printable
from hubbub.cli.options import policy_option

__all__ = ["command", "token"]

_tokens = click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="Who may ask: the hashes of their tokens.",
)


@click.command("serve")
@policy_option
@_tokens
@click.option("--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="Where to listen.")
@click.option("--tls-cert", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="For TLS.")
@click.option("--tls-key", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Its key.")
def command(policy: Path | None, tokens: Path, listen: str, tls_cert: Path | None, tls_key: Path | None) -> int:
    """Serve the policy's tables to analysts who are not trusted.

    They ask by HTTP, with tokens that `hubbub token` makes. Answers leave at times that follow from when questions were
    asked, whatever their runs did. Without TLS it listens on this machine alone.
    """
    from hubbub.ledger.policy import find_policy
    from hubbub.service.serve import Service, listening_place

    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key are given together.")
    tls = None if tls_cert is None or tls_key is None else (tls_cert, tls_key)
    host, port = listening_place(listen, tls=tls is not None)
    service = Service(policy or find_policy(), tokens, host=host, port=port, tls=tls, say=_say)
    try:
        service.start()
    except BaseException:
        service.stop()
        raise
    scheme = "http" if tls is None else "https"
    _say(f"listening on {scheme}://{listen}; a runner is ready within {service.ready['respawn']:.1f} s")
    for name, holds in service.ready["held"].items():
        _say(f"runners: {name.replace('_', ' ')}: {holds}")
    service.run()
    return 0


@click.command("token")
@click.argument("name")
@_tokens
def token(name: str, tokens: Path) -> int:
    """Make a token for an analyst. It is shown once; the file keeps its hash."""
    from hubbub.service.tokens import create_token

    click.echo(printable(create_token(tokens, name)))
    return 0


def _say(line: str) -> None:
    click.echo(printable(line), err=True)
