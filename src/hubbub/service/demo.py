"""`hubbub serve --demo`: the service on the demo's survey, with an analyst, a steward and an auditor, in a folder that
goes with it.

Fair's 6,366 women (`hubbub.cli.survey` says whose file it is): each row a unit, seven columns declared, two not. The
budget is 3, the analyst's limit 2; an answer comes after a second, from one runner at a time.

`hubbub serve --class N` is the same for a class: a teacher, steward and auditor, and N analysts with a limit of 1
each. The file is public, so that nobody is harmed by a joint budget that lets all of them spend their limits.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Final

from hubbub.ledger.policy import load_policy
from hubbub.service.people.at_home import opened_people
from hubbub.service.people.keys import new_link
from hubbub.service.people.people import link_of
from hubbub.session.session import Session

__all__ = ["DEMO", "class_entrances", "entrances", "listening_port", "pupils", "set_up", "set_up_class", "told"]

DEMO: Final = {"analyst": "ada", "steward": "stella", "auditor": "audrey"}
"""Who is there, by role."""
TEACHER: Final = "teacher"
_MINUTES: Final = 10
_LESSON: Final = 12 * 60
"""Minutes in which a pupil's link opens a page: a day at school."""
_LIMIT: Final = "\n[budget.analysts]\n{analyst} = 2\n".format(**DEMO)
_POLICY: Final = """\
# The demo of `hubbub serve`.
[ledger]
file = "budget.db"

[budget]
epsilon = {epsilon}
{limits}
[service]
answer_time = 1
lanes = {lanes}
public_url = "{url}"

[tables.survey]
source = {source}
each_row = true

[tables.survey.columns]
rate_marriage = {{ between = [1, 5] }}
religious = {{ between = [1, 4] }}
educ = {{ one_of = [9, 12, 14, 16, 17, 20] }}
age = {{ between = [17.5, 42] }}
yrs_married = {{ between = [0, 23] }}
children = {{ between = [0, 5.5] }}
affairs = {{ between = [0, 60] }}

[tables.survey.types]
rate_marriage = "integer"
religious = "integer"
educ = "integer"
age = "number"
yrs_married = "number"
children = "number"
affairs = "number"
occupation = "integer"
occupation_husb = "integer"
"""


def set_up(folder: Path, survey: Path, url: str) -> tuple[Path, dict[str, str]]:
    """The policy, its ledger and its people in an empty folder: the policy's file, and a token of each role."""
    policy = _written(folder, survey, url=url, epsilon=3, limits=_LIMIT, lanes=1)
    people = opened_people(load_policy(policy))
    try:
        for role, name in DEMO.items():
            people.roll.add(name, [role], by="the demo")
        return policy, {role: people.new_token(name, by="the demo")["token"] for role, name in DEMO.items()}
    finally:
        people.close()


def set_up_class(folder: Path, survey: Path, url: str, number: int) -> Path:
    """The same for so many pupils and a teacher: the policy's file."""
    policy = _written(folder, survey, url=url, epsilon=number, limits="per_analyst = 1\n", lanes=2)
    people = opened_people(load_policy(policy))
    try:
        people.roll.add(TEACHER, ["steward", "auditor"], by="the class")
        for name in pupils(number):
            people.roll.add(name, ["analyst"], by="the class")
        return policy
    finally:
        people.close()


def pupils(number: int) -> list[str]:
    """Their names.

    >>> pupils(2)
    ['pupil 01', 'pupil 02']
    """
    return [f"pupil {place:02}" for place in range(1, number + 1)]


def _written(folder: Path, survey: Path, **said: Any) -> Path:
    """The policy, with its ledger."""
    policy = folder / "hubbub.toml"
    source = '"' + str(survey).replace("\\", "\\\\").replace('"', '\\"') + '"'
    policy.write_text(_POLICY.format(source=source, **said), encoding="utf-8")
    Session.from_policy(policy, create_ledger=True).close()
    return policy


def entrances(policy: Path, url: str) -> dict[str, str]:
    """A link for each role that opens a page, logged in: once, for ten minutes."""
    links = _entrances(policy, url, list(DEMO.values()), _MINUTES)
    return {role: links[name] for role, name in DEMO.items()}


def class_entrances(policy: Path, url: str, number: int) -> dict[str, str]:
    """A link for the teacher and for each pupil, by name: once, for twelve hours."""
    return _entrances(policy, url, [TEACHER, *pupils(number)], _LESSON)


def _entrances(policy: Path, url: str, names: list[str], minutes: float) -> dict[str, str]:
    people = opened_people(load_policy(policy))
    try:
        keys = {name: new_link() for name in names}
        for name, key in keys.items():
            people.sessions.entrance(name, key, minutes=minutes)
        return {name: link_of("enter", key, url) for name, key in keys.items()}
    finally:
        people.close()


def listening_port(host: str, port: int) -> int:
    """The port, or one that is free where it is not."""
    for tried in (port, 0):
        try:
            with socket.create_server((host, tried)) as server:
                return int(server.getsockname()[1])
        except OSError:
            continue
    return port


def told(url: str, links: dict[str, str], tokens: dict[str, str]) -> dict[str, Any]:
    """What a program that starts the demo is told, once it is ready."""
    people = {role: {"link": links[role], "token": tokens[role]} for role in DEMO}
    return {"url": url, **people, "postgres": None, "mcp": None}
