"""The pages of stewards and auditors: what the clerk's office told, in their templates.

    today       what waits for a steward          people, person     who may come in, and spend what
    requests    for more budget, and for a yes    tables             what is declared, and what a bound costs
    incidents   questions without an answer       chain              whether the lines still fit
    charges     what was charged                  log                who did what
    attacks     what an outsider would get right, simulated on invented people

Each is a function of plain data. What a steward may see, the clerk decides; nothing is left out or added here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any
from urllib.parse import quote

from hubbub.ledger.wording import is_commitment
from hubbub.plots.chart import Chart, Point
from hubbub.service.pages.learn.village import PEOPLE
from hubbub.service.pages.page import Page, Viewer, render
from hubbub.service.pages.simulated import EPSILONS, simulated
from hubbub.service.pages.words import amount, moment, number

__all__ = [
    "attacks",
    "chain",
    "charges",
    "declared_table",
    "incidents",
    "log",
    "people",
    "person",
    "requests",
    "tables",
    "today",
]

Told = Mapping[str, Any]
_LONGEST = 120
_STATES = {
    "charged": "asked", "drawing": "asked", "retried": "asked", "stored": "answered", "shown": "answered",
    "failed": "no answer", "lost": "no answer",
}  # fmt: skip
_UNSAID = {"refused": None, "done": None, "link": None, "opened": ""}


def today(told: Told, viewer: Viewer) -> Page:
    """What waits for a steward, and what is left for all."""
    everybody = told["people"]
    locked = [
        {"name": one["name"], "failures": account["failures"]}
        for one in everybody
        for account in one.get("accounts", [])
        if account.get("locked")
    ]
    more = {
        "locked": locked,
        "unseen": sum(not one.get("looked_at") for one in told["incidents"]),
        "invited": [
            one for one in everybody if not one["passphrase"] and one["state"] == "active" and one["link_until"]
        ],
        "active": sum(one["state"] == "active" for one in everybody),
    }
    return render("today.html", viewer, at="today", told={**told, **more}, **_joint(told["spaces"]))


def people(told: Told, viewer: Viewer) -> Page:
    """Everybody, and a form to invite somebody."""
    rows, links = [], []
    for one in told["people"]:
        accounts = one.get("accounts") or [None]
        for account in accounts:
            state = "locked" if account and account.get("locked") else one["state"]
            if not one["passphrase"] and one["state"] == "active" and one["link_until"]:
                state = "invited"
            rows.append([one["name"], ", ".join(one["roles"]), state, *_amounts(account), one["tokens"]])
            links.append(f"/people/{_quoted(one['name'])}")
    return render("people.html", viewer, at="people", told={**_UNSAID, **told}, rows=rows, links=links)


def person(told: Told, viewer: Viewer) -> Page:
    """One person: limits, tokens, roles, and whether he may come in."""
    one = told["person"]
    accounts = one.get("accounts", [])
    more = {**_UNSAID, **told, "accounts": accounts, "path": f"/people/{_quoted(one['name'])}"}
    asked = [
        [moment(one["time"]), _short(one.get("sql")), amount(one["epsilon"]), _STATES.get(one["state"], one["state"])]
        for one in told.get("charges", ())
    ]
    return render("person.html", viewer, at="people", told=more, asked=asked)


def _short(sql: Any) -> str:
    """A question on a line; one whose text was removed says so."""
    if not isinstance(sql, str) or is_commitment(sql):
        return "(its text was removed)"
    text = " ".join(sql.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def requests(told: Told, viewer: Viewer) -> Page:
    """Requests that are open, each with its two answers, and those that were decided."""
    bare = {"sql": None, "spent": None, "reason": "", "in_all": None}
    waiting = [{**bare, **one} for one in told["requests"] if one["state"] == "open"]
    for one in waiting:
        left = None if one["spent"] is None else min(Fraction(str(one[name])) for name in ("left", "joint_left"))
        one["short"] = left is not None and Fraction(str(one["epsilon"])) > left
        if one["in_all"] is None:
            one["in_all"] = one["epsilon"] if one["spent"] is None else str(_sum(one["limit"], one["epsilon"]))
    decided = [
        [
            one["analyst"],
            "a question" if one["kind"] == "question" else "budget",
            amount(one["epsilon"]),
            one["state"],
            one.get("decided_by") or "",
            moment(one.get("decided_at")),
            one.get("decision") or "",
        ]
        for one in told["requests"]
        if one["state"] != "open"
    ]
    return render("requests.html", viewer, at="requests", told={**_UNSAID, **told}, open=waiting, decided=decided)


def tables(told: Told, viewer: Viewer) -> Page:
    """What is declared of each table, and what each bound costs."""
    bare = {"changes": [], "problem": ""}
    return render("declared.html", viewer, at="tables", told={**_UNSAID, **bare, **told})


def incidents(told: Told, viewer: Viewer) -> Page:
    """Questions that had no answer; the engine's words of one, where they were asked for."""
    return render("incidents.html", viewer, at="incidents", told={**_UNSAID, "words": None, "shown": "", **told})


def chain(told: Told, viewer: Viewer) -> Page:
    """Whether the lines of the ledger and of the log still fit, and whether a fingerprint is among them."""
    return render(
        "chain.html", viewer, at="chain", told={"receipt": "", "head": "", "refused": None, "walk": None, **told}
    )


def charges(told: Told, viewer: Viewer) -> Page:
    """Everything that was charged."""
    rows = [
        [moment(c["time"]), c["analyst"], c["space"], amount(c["epsilon"]), c["state"], c.get("purpose") or ""]
        for c in told["charges"]
    ]
    limits = [
        [x["account"], x["space"], "nothing" if x["epsilon"] is None else amount(x["epsilon"]), _until(x["until"])]
        for x in told.get("limits", [])
    ]
    given = {"more": None, **told, "limits": limits}
    return render(
        "charges.html", viewer, at="charges", told=given, charges=rows, limits=limits, **_joint(told["spaces"])
    )


def log(told: Told, viewer: Viewer) -> Page:
    """Who did what."""
    rows = [[one["serial"], moment(one["time"]), one["who"], one["act"], _about(one["about"])] for one in told["lines"]]
    return render("log.html", viewer, at="log", told={"more": None, **told}, lines=rows)


def attacks(asked: str, viewer: Viewer) -> Page:
    """What an outsider would get right at an epsilon."""
    epsilon = asked if asked in EPSILONS else "1"
    drawn = simulated(Fraction(epsilon))
    shown = [{**one, "chart": _right(one)} for one in drawn]
    told = {"epsilon": epsilon, "epsilons": EPSILONS, "people": len(PEOPLE), "attacks": shown}
    return render("attacks.html", viewer, at="attacks", told=told)


def declared_table(name: str, told: Told, costs: Told | None = None) -> dict[str, Any]:
    """A table as the page shows it, from what is told of it: what is declared, and what each bound costs."""
    declared, known = told.get("declared", {}), costs or {}
    says = [[c, kind, declared.get(c, {}).get("text", "not declared")] for c, kind in told["columns"].items()]
    bounds = [(bound, value, _costs(value, known.get(bound))) for bound, value in told.get("limits", {}).items()]
    return {"name": name, **told, "columns": says, "bounds": [each for each in bounds if each[1] is not None]}


def _costs(value: Any, costs: Told | None) -> str:
    """What a bound costs, in a sentence; "" where no count shows it."""
    if costs is None:
        return ""
    widths = {size: number(width) for size, width in costs["widths"]}
    counted = "A count" if costs["by"] is None else f"A count by {costs['by']}"
    others = ", ".join(f"± {width} with {size}" for size, width in widths.items() if size != value)
    return f"{counted} is ± {widths[value]} at epsilon {costs['epsilon']}; it would be {others}."


def _joint(spaces: Sequence[Told]) -> dict[str, Any]:
    rows = [[one["space"], *_amounts({**one, "limit": one["budget"]}, budget_first=True)] for one in spaces]
    return {"spaces": rows}


def _amounts(account: Told | None, *, budget_first: bool = False) -> list[str]:
    if account is None:
        return ["", "", ""]
    spent, limit, left = (amount(account[name]) for name in ("spent", "limit", "left"))
    return [limit, spent, left] if budget_first else [spent, limit, left]


def _right(one: Told) -> Chart:
    """What an attack gets right: of exact answers, of private ones, at most, and by a coin."""
    shares = (
        ("exact answers", one["exact"]),
        ("private answers", one["private"]),
        ("private, at most", one["most"]),
        ("tossing a coin", 0.5),
    )
    points = tuple(Point((name,), 100 * share, text=_percent(share)) for name, share in shares)
    return Chart("% right", ("from",), points, None, title=f"{one['name']}: how often it is right", width=340)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _sum(*amounts: str) -> Fraction:
    return sum((Fraction(x) for x in amounts), Fraction(0))


def _until(told: str | None) -> str:
    return "no end" if told is None else moment(told)


def _about(about: Mapping[str, Any]) -> str:
    """What a line of the log is about, on one line."""
    return ", ".join(f"{name} {_plain(value)}" for name, value in about.items())


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def _quoted(name: str) -> str:
    return quote(name, safe="")
