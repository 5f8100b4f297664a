"""The pages of stewards and auditors: what the clerk's office told, in their templates.

    today       what waits for a steward          people, person     who may come in, and spend what
    requests    for more budget, and for a yes    tables             what is declared, and what a bound costs
    incidents   questions without an answer       chain              whether the lines still fit
    charges     what was charged                  log                who did what
    attacks     what an outsider would get right, simulated on invented people

Each is a function of plain data. What a steward may see, the clerk decides; nothing is left out or added here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from hubbub.service.pages.learn.village import PEOPLE
from hubbub.service.pages.page import Page, Viewer, render
from hubbub.service.pages.simulated import EPSILONS, simulated
from hubbub.service.pages.words import amount, moment

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
    return render("person.html", viewer, at="people", told=more, gauges=_gauges(accounts, "limit"))


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
    return render("declared.html", viewer, at="tables", told={**_UNSAID, **told})


def incidents(told: Told, viewer: Viewer) -> Page:
    """Questions that had no answer; the engine's words of one, where they were asked for."""
    return render("incidents.html", viewer, at="incidents", told={**_UNSAID, "words": None, "shown": "", **told})


def chain(told: Told, viewer: Viewer) -> Page:
    """Whether the lines of the ledger and of the log still fit, and whether a fingerprint is among them."""
    return render("chain.html", viewer, at="chain", told={"receipt": "", "head": "", "refused": None, **told})


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
    pictures = [_shares(place, one["exact"], one["private"], one["most"]) for place, one in enumerate(drawn)]
    told = {
        "epsilon": epsilon,
        "epsilons": EPSILONS,
        "people": len(PEOPLE),
        "attacks": [{**one, **{name: _percent(one[name]) for name in ("exact", "private", "most")}} for one in drawn],
    }
    return render("attacks.html", viewer, at="attacks", told=told, pictures=pictures)


def declared_table(name: str, told: Told) -> dict[str, Any]:
    """A table as the page shows it, from what is told of it: what is declared, and what each bound costs."""
    declared = told.get("declared", {})
    says = [[c, kind, declared.get(c, {}).get("text", "not declared")] for c, kind in told["columns"].items()]
    bounds = [(bound, value, _COSTS.get(bound, "")) for bound, value in told.get("limits", {}).items()]
    return {"name": name, **told, "columns": says, "bounds": [each for each in bounds if each[1] is not None]}


_COSTS = {
    "max_groups": "Twice as many: the ± of each group doubles at the same epsilon, at most.",
    "max_rows": "Twice as many: the ± doubles at the same epsilon.",
    "max_total": "Twice as many: the ± of totals doubles at the same epsilon.",
}


def _joint(spaces: Sequence[Told]) -> dict[str, Any]:
    rows = [[one["space"], *_amounts({**one, "limit": one["budget"]}, budget_first=True)] for one in spaces]
    return {"spaces": rows, "gauges": _gauges(spaces, "budget")}


def _amounts(account: Told | None, *, budget_first: bool = False) -> list[str]:
    if account is None:
        return ["", "", ""]
    spent, limit, left = (amount(account[name]) for name in ("spent", "limit", "left"))
    return [limit, spent, left] if budget_first else [spent, limit, left]


def _gauges(accounts: Iterable[Told], whole: str) -> dict[str, Markup]:
    return {one["space"]: _gauge(place, one["space"], one["spent"], one[whole]) for place, one in enumerate(accounts)}


def _gauge(place: int, name: str, spent: str, whole: str | None) -> Markup:
    """A bar of what is left of a whole."""
    if whole is None or not Fraction(whole):
        return Markup("")
    left = max(Fraction(0), Fraction(whole) - Fraction(spent))
    share = float(left / Fraction(whole))
    title = f"{name}: {amount(left)} of {amount(whole)} left"
    return Markup(
        '<svg class="gauge" viewBox="0 0 400 14" role="img" aria-labelledby="gauge-{0}" preserveAspectRatio="none">'
        '<title id="gauge-{0}">{1}</title><rect class="trough" width="400" height="14" rx="3"/>'
        '<rect class="full" width="{2}" height="14" rx="3"/></svg>'
    ).format(place, title, f"{400 * share:.1f}")


def _shares(place: int, exact: float, private: float, most: float) -> Markup:
    """Two bars from tossing a coin to certainty, and the line that private answers stay below."""

    def at(share: float) -> str:
        return f"{90 + 300 * max(0.0, min(1.0, share)):.1f}"

    def bar(kind: str, share: float, y: int, name: str) -> Markup:
        start, end = sorted((float(at(0.5)), float(at(share))))
        return Markup(
            '<text class="tick" x="84" y="{}" text-anchor="end">{}</text>'
            '<rect class="{}" x="{}" y="{}" width="{:.1f}" height="16"/>'
        ).format(y + 13, name, kind, start, y, max(2.0, end - start))

    title = (
        f"Right: {_percent(exact)} from exact answers, {_percent(private)} from private ones, {_percent(most)} at most"
    )
    return (
        Markup('<svg class="shares" viewBox="0 0 400 78" role="img" aria-labelledby="shares-{0}">').format(place)
        + Markup('<title id="shares-{0}">{1}</title>').format(place, title)
        + bar("exact", exact, 6, "exact")
        + bar("private", private, 28, "private")
        + Markup('<line class="coin" x1="{0}" x2="{0}" y1="2" y2="52"/>').format(at(0.5))
        + Markup('<line class="most" x1="{0}" x2="{0}" y1="22" y2="52"/>').format(at(most))
        + Markup('<text class="tick" x="{}" y="70" text-anchor="middle">a coin: 50 %</text>').format(at(0.5))
        + Markup('<text class="tick" x="390" y="70" text-anchor="end">100 %</text></svg>')
    )


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
