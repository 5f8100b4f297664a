"""`hubbub serve`: the service for analysts who are not trusted."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hubbub.cli.console import printable
from hubbub.cli.options import policy_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hubbub.service.serve import Part, Service

__all__ = ["command"]

_PLACE: Final = "127.0.0.1:8080"


@click.command("serve")
@policy_option
@click.option("--listen", default=_PLACE, show_default=True, metavar="HOST:PORT", help="Where to listen.")
@click.option("--tls-cert", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="For TLS.")
@click.option("--tls-key", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Its key.")
@click.option("--only", type=click.Choice(["rows", "front"]), help="One part alone, where two users run them.")
@click.option(
    "--line",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The folder between the two parts, with --only; both users may enter it, and nobody else.",
)
@click.option("--metrics", metavar="HOST:PORT", help="The place of the counts, on this machine alone.")
@click.option(
    "--log", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Its lines."
)
@click.option("--request-id", metavar="HEADER", help="Take a request's name from this header, of a server before it.")
@click.option("--calibrate", type=int, metavar="ROWS", help="Suggest answer times for tables of so many rows, and end.")
@click.option("--demo", is_flag=True, help="Serve a survey, with an analyst, a steward and an auditor.")
@click.option(
    "--class", "pupils", type=click.IntRange(1, 500), metavar="N", help="Serve the survey to a class: a link a pupil."
)
@click.option("--json", "as_json", is_flag=True, help="Say as one line of JSON when it is ready, and where.")
def command(
    policy: Path | None,
    listen: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    only: Part | None,
    line: Path | None,
    metrics: str | None,
    form: str,
    request_id: str | None,
    calibrate: int | None,
    demo: bool,
    pupils: int | None,
    as_json: bool,
) -> int:
    """Serve the policy's tables to analysts who are not trusted.

    They ask on pages, and by HTTP with tokens that `hubbub token create` makes. Answers leave at times that follow from
    when questions were asked, whatever their runs did. Without TLS it listens on this machine alone. If no steward
    can log in, a link for one is shown.
    """
    from hubbub.service.serve import listening_place

    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key are given together.")
    if (only is None) != (line is None):
        raise click.UsageError("--only and --line are given together.")
    if (demo or pupils) and (policy or only) is not None:
        raise click.UsageError("--demo and --class have a policy of their own, and both parts.")
    if demo and pupils:
        raise click.UsageError("--demo and --class are two services: give one of them.")
    if calibrate is not None:
        from hubbub.ledger.policy import find_policy, load_policy
        from hubbub.service.calibrate import suggested

        suggested(load_policy(policy or find_policy()), calibrate, say=click.echo)
        return 0
    tls = None if tls_cert is None or tls_key is None else (tls_cert, tls_key)
    host, port = listening_place(listen, tls=tls is not None)
    more: dict[str, Any] = {
        "tls": tls,
        "metrics": None if metrics is None else listening_place(metrics, tls=False, option="--metrics"),
        "only": only,
        "line": line,
        "log": form,
        "request_id": request_id,
        "say": _say,
    }
    scheme = "http" if tls is None else "https"
    if demo:
        return _demo(host, port, scheme, as_json, more)
    if pupils:
        return _class(host, port, scheme, pupils, as_json, more)
    return _serve(policy, host, port, scheme, as_json, more)


def _serve(policy: Path | None, host: str, port: int, scheme: str, as_json: bool, more: dict[str, Any]) -> int:
    """The service of a policy."""
    from hubbub.ledger.policy import find_policy, load_policy
    from hubbub.service.people.at_home import opened_people
    from hubbub.service.people.people import link_of
    from hubbub.service.serve import Service

    url = _address(scheme, host, port)
    if more["only"] == "front":  # it may not read the policy
        return _run(Service(Path(), host=host, port=port, **more), lambda: None, url)
    file = policy or find_policy()
    url = load_policy(file).service.public_url or url

    def ready() -> None:
        people = opened_people(load_policy(file))
        first = people.roll.first_steward()
        people.close()
        steward = None if first is None else {"name": first[0], "link": link_of("invitation", first[1], url)}
        if as_json:
            none = {"analyst": None, "steward": steward, "auditor": None}
            click.echo(json.dumps({"url": url, **none, "postgres": None, "mcp": None}))
        elif steward is not None:
            click.echo(printable(f"the first steward, {steward['name']}, chooses a passphrase at {steward['link']}"))

    return _run(Service(file, host=host, port=port, **more), ready, url)


def _demo(host: str, port: int, scheme: str, as_json: bool, more: dict[str, Any]) -> int:
    """The demo's service, in a folder that goes with it."""
    from hubbub.cli.survey import find_survey
    from hubbub.service import demo
    from hubbub.service.serve import Service

    survey = find_survey()
    port = demo.listening_port(host, port)
    url = _address(scheme, host, port)
    with tempfile.TemporaryDirectory(prefix="hubbub-demo-") as folder:
        file, tokens = demo.set_up(Path(folder), survey, url)

        def ready() -> None:
            links = demo.entrances(file, url)
            if as_json:
                click.echo(json.dumps(demo.told(url, links, tokens)))
                return
            for role, name in demo.DEMO.items():
                click.echo(printable(f"{role:<8} {name:<7} {links[role]}"))
            click.echo("Each link opens a page once, within ten minutes. Tokens, for programs:")
            for role in demo.DEMO:
                click.echo(printable(f"{role:<8} {tokens[role]}"))

        return _run(Service(file, host=host, port=port, **more), ready, url)


def _class(host: str, port: int, scheme: str, number: int, as_json: bool, more: dict[str, Any]) -> int:
    """The demo's survey for a class, in a folder that goes with it."""
    from hubbub.cli.survey import find_survey
    from hubbub.service import demo
    from hubbub.service.serve import Service

    survey = find_survey()
    port = demo.listening_port(host, port)
    url = _address(scheme, host, port)
    with tempfile.TemporaryDirectory(prefix="hubbub-class-") as folder:
        file = demo.set_up_class(Path(folder), survey, url, number)

        def ready() -> None:
            links = demo.class_entrances(file, url, number)
            if as_json:
                told = [{"name": name, "link": link} for name, link in links.items()]
                click.echo(json.dumps({"url": url, "teacher": told[0], "pupils": told[1:]}))
                return
            for name, link in links.items():
                click.echo(printable(f"{name:<10} {link}"))
            click.echo("Each link opens a page once, within twelve hours. What is asked goes when this stops.")

        return _run(Service(file, host=host, port=port, **more), ready, url)


def _run(service: Service, ready: Any, url: str) -> int:
    """Start it, say that it is ready, and serve until it is stopped."""
    try:
        service.start()
        ready()
    except BaseException:
        service.stop()
        raise
    if service.only != "rows":
        service.say(f"listening on {url}")
    if service.only != "front":
        service.say(f"a runner is ready within {service.ready['respawn']:.1f} s")
    if held := service.ready.get("held"):
        service.say(shut_in(held))
    service.run()
    return 0


def shut_in(held: Mapping[str, Any]) -> str:
    """What holds of runners (`confine.Held`), in words for whoever starts the service.

    >>> shut_in({"landlock": 7, "undumpable": True, "no_new_privs": True, "network": False})
    'runners: files shut in by Landlock 7, memory hidden, no new rights, network closed'
    """
    files = f"files shut in by Landlock {held['landlock']}" if held["landlock"] else "files NOT shut in (no Landlock)"
    memory = "memory hidden" if held["undumpable"] else "memory NOT hidden"
    rights = "no new rights" if held["no_new_privs"] else "new rights possible"
    return f"runners: {files}, {memory}, {rights}, network {'open' if held['network'] else 'closed'}"


def _address(scheme: str, host: str, port: int) -> str:
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _say(line: str) -> None:
    click.echo(printable(line), err=True)
