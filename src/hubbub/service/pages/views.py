"""Each page of an analyst as a function of what was told: plain data in, a page out, and nothing else read.

ask, line           the question, its price and its drawing; the same two alone, for the live line
waiting, failed     a question before its release; one that has no answer
answer, bounds      an answer, at any level, drawn in any way; what the limits of a question leave out
library, mine       answers that may be read; charges, and what is left
account, login, invitation, more, refusal
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from hubbub.plots.chart import Chart, Point
from hubbub.service.pages.answering import LEVELS, ShownAnswer, explained, read, snippets
from hubbub.service.pages.asking import Priced, Question, Refused, priced, refused
from hubbub.service.pages.page import Page, Viewer, render
from hubbub.service.pages.words import amount

__all__ = [
    "ShownAnswer",
    "account",
    "amount",
    "answer",
    "ask",
    "bounds",
    "failed",
    "held",
    "invitation",
    "library",
    "line",
    "login",
    "mine",
    "more",
    "read",
    "refusal",
    "seconds_between",
    "shown_of",
    "waiting",
]

_Told = Mapping[str, Any]
_LONGEST = 80


def ask(
    viewer: Viewer, question: Question, tables: _Told, *, check: _Told | None, request: str, changed: bool = False
) -> Page:
    """The question, with its price or why it has none. check: {"told": ...} or {"refused": ...}, or None.

    changed: whether it was to be asked at the price of another.
    """
    price, why = _judged(check, question, tables)
    return render(
        "ask.html",
        viewer,
        at="ask",
        question=question,
        tables=_tables(tables),
        price=price,
        refused=why,
        agreed=question.agreed,
        request=request,
        changed=changed,
    )


def line(viewer: Viewer, question: Question, tables: _Told, check: _Told) -> Page:
    """The price and the drawing alone, for the page that is there already."""
    price, why = _judged(check, question, tables)
    return render("fragment.html", viewer, question=question, price=price, refused=why, agreed=question.agreed)


def _judged(check: _Told | None, question: Question, tables: _Told) -> tuple[Priced | None, Refused | None]:
    if check is None:
        return None, None
    if "refused" in check:
        return None, refused(check["refused"], question.sql)
    return priced(check["told"], question, tables), None


def _tables(tables: _Told) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "private": table.get("private", True),
            "says": _limits(table),
            "columns": [
                {"name": column, "says": _declared(kind, (table.get("declared") or {}).get(column))}
                for column, kind in table["columns"].items()
            ],
        }
        for name, table in tables.items()
    }


def _limits(table: _Told) -> str:
    """How much of one unit counts, as a sentence."""
    if not table.get("private", True):
        return "Answered exactly, free."
    unit, limits = str(table.get("unit") or ""), table.get("limits") or {}
    if not unit:
        return ""
    if unit == "each row":
        return "Each row is a person of its own."
    said = [
        _limit(limits.get("max_groups"), "at most {} groups", "a number of groups that each question finds"),
        _limit(limits.get("max_rows"), "{} rows in each", "a number of rows that each question finds"),
        f"{limits['max_total']:,} rows in all" if limits.get("max_total") else "",
    ]
    counts = ", ".join(x for x in said if x)
    return f"One {unit} counts in {counts}." if counts else f"Protects each {unit}."


def _limit(limit: object, number: str, auto: str) -> str:
    return auto if limit == "auto" else number.format(f"{limit:,}") if isinstance(limit, int) and limit else ""


def _declared(kind: str, declared: _Told | None) -> str:
    """A column in a few words."""
    if not declared:
        return str(kind)
    if declared.get("between"):
        low, high = (_plain(end) for end in declared["between"])
        return f"{low} to {high}"
    for known in ("one_of", "labels"):
        values = [str(v) for v in declared.get(known) or ()]
        if values:
            more = f", and {len(values) - 6:,} more" if len(values) > 6 else ""
            return f"{', '.join(values[:6])}{more}"
    return str(declared.get("text") or kind)


def _plain(end: object) -> str:
    """A declared end, a fraction as its decimals."""
    return amount(end) if re.fullmatch(r"-?\d+/\d+", str(end)) else str(end)


def waiting(
    viewer: Viewer, told: _Told, *, sql: str, left: float, total: float, before: int = 0, cost: str = ""
) -> Page:
    """A question before its release. left: seconds until then; total: from its submission; before: questions."""
    return render(
        "waiting.html", viewer, at="ask", told=told, sql=sql, left=max(0.0, left), total=total,
        wait=max(1, math.ceil(left) + 1), before=before, cost=cost,
    )  # fmt: skip


def bounds(viewer: Viewer, told: _Told) -> Page:
    """How much the limits of a question leave out (`BoundsCheck.to_wire`)."""
    return render("bounds.html", viewer, at="library", sql=told["sql"], limits=told["limits"])


def failed(viewer: Viewer, told: _Told, *, sql: str, cost: str = "") -> Page:
    """A question that has no answer."""
    return render("failed.html", viewer, at="mine", told=told, sql=sql, cost=cost)


def held(viewer: Viewer, told: _Told, *, sql: str) -> Page:
    """A question that costs more than may be asked without a steward's yes, and what became of it."""
    return render("held.html", viewer, at="ask", told=told, sql=sql)


def shown_of(text: str, given: Mapping[str, str]) -> ShownAnswer:
    """An answer as the clerk told it, at the level and in the way that an address asks for.

    Raises ParameterError for what is not an answer.
    """
    return ShownAnswer(
        read(text), level=given.get("level", ""), column=given.get("column", ""), kind=given.get("kind", "")
    )


def answer(
    viewer: Viewer,
    shown: ShownAnswer,
    *,
    identity: str = "",
    sql: str = "",
    given: Mapping[str, str] | None = None,
    refining: _Told | None = None,
    request: str = "",
    url: str = "",
    clauses: _Told | None = None,
    edited: _Told | None = None,
    no: _Told | None = None,
) -> Page:
    """An answer. identity: its name in the ledger, "" for one about public tables. given: the address's fields.

    refining: {"told": ...} or {"refused": ...} of what refining would give, with "asked". clauses: those of the
    question that is shown; edited: what of it is not as it was asked; no: why what was wanted is not shown.
    """
    asked, release = given or {}, shown.release
    exact = not shown.estimates
    first, second = asked.get("first", "0"), asked.get("second", "1")
    text = sql or str(release.receipt.get("sql") or "")
    return render(
        "answer.html",
        viewer,
        at="library" if identity else "ask",
        shown=shown,
        id=identity,
        levels=LEVELS,
        cost="free" if exact else str(release.epsilon),
        charged=release.charged,
        remarks=release.text.remarks,
        first=first,
        second=second,
        compared=shown.compare(first, second) if "first" in asked else None,
        refining=_refining(refining),
        request=request,
        clauses=clauses,
        wanted={**(clauses or {}), **{k: v for k, v in asked.items() if k in ("having", "order", "limit")}},
        edited=bool(edited),
        why=None if no is None else refused(no, text),
        sql=text,
        snippets=snippets(text, str(release.receipt.get("epsilon") or ""), url) if url and not exact else {},
        receipt=[] if exact else explained(release.receipt, charged=release.charged),
    )


def _refining(told: _Told | None) -> dict[str, Any] | None:
    if told is None:
        return None
    asked = str(told.get("asked", ""))
    if "refused" in told:
        return {"refused": str(told["refused"].get("text", "")), "asked": asked}
    return {"refused": "", "asked": asked, **told["told"]}


def library(viewer: Viewer, answers: Sequence[_Told]) -> Page:
    """The answers that he may read, the newest first."""
    return render("library.html", viewer, at="library", answers=answers)


def mine(viewer: Viewer, history: Sequence[_Told], budget: _Told) -> Page:
    """What he asked and read, the newest first, and what is left."""
    charges = [
        {
            "id": one.get("reads") or one["id"],
            "asked_at": one.get("asked_at"),
            "short": _short(str(one.get("sql") or "")),
            "epsilon": one.get("epsilon") or "0",
            "state": one.get("state", ""),
            "kind": one.get("kind", ""),
        }
        for one in reversed(history)
    ]
    return render(
        "mine.html", viewer, at="mine", charges=charges, spaces=[_space(s, history) for s in budget["spaces"]]
    )


def _short(sql: str) -> str:
    text = " ".join(sql.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _space(space: _Told, history: Sequence[_Told]) -> dict[str, Any]:
    """What is left of a budget, with numbers for a bar."""
    yours = space["yours"]
    limit, spent = Fraction(str(yours.get("limit") or space["epsilon"])), Fraction(str(yours.get("spent") or 0))
    return {
        "space": space["space"],
        "epsilon": space["epsilon"],
        "left": space["left"],
        "limit": str(limit),
        "spent": str(spent),
        "left_of_yours": yours["left"],
        "chart": _steps(space, history, float(limit)),
    }


def _steps(space: _Told, history: Sequence[_Told], limit: float) -> Chart | None:
    """What was spent, question by question, beside one's own limit."""
    spent, points, total = [], [], 0.0
    for one in history:
        if one.get("space") in (None, space["space"]):
            total += float(Fraction(str(one.get("epsilon") or 0)))
            spent.append(total)
    if len(spent) < 2:
        return None
    joint = float(Fraction(str(space["epsilon"])))
    for n, x in enumerate([0.0, *spent]):
        points += [Point((n, "spent"), x), Point((n, "your limit"), limit), Point((n, "joint budget"), joint)]
    title = "The epsilon of your questions, added up, beside your limit and the joint budget"
    return Chart("epsilon", ("questions asked", "of"), tuple(points), None, title=title, kind="lines", steps=True)


def account(
    viewer: Viewer,
    who: _Told,
    tokens: Sequence[_Told],
    devices: Sequence[_Told],
    binding: _Told,
    *,
    url: str,
    made: _Told | None = None,
    refusal: _Told | None = None,
) -> Page:
    """One's own account. devices: where he is logged in. binding: whether it is bound to one of a provider, and what
    that is called. made: a token that was made just now, shown this once.
    """
    example = snippets("SELECT COUNT(*) AS n FROM visits", "0.1", url)
    why = None if refusal is None else refused(refusal)
    return render(
        "account.html", viewer, at="account", who=who, tokens=tokens, devices=devices, binding=binding,
        snippets=example, made=made, refused=why,
    )  # fmt: skip


def login(
    viewer: Viewer,
    *,
    name: str = "",
    after: str = "/",
    ended: bool = False,
    provider: str | None = None,
    refusal: _Told | None = None,
) -> Page:
    """The form to log in. after: where it leads then; ended: whether a session has ended; provider: by what one may log
    in, too.
    """
    why = None if refusal is None else refused(refusal)
    return render("login.html", viewer, name=name, next=after, ended=ended, provider=provider, refused=why)


def invitation(
    viewer: Viewer,
    key: str,
    *,
    told: _Told | None = None,
    gone: str = "",
    provider: str | None = None,
    refusal: _Told | None = None,
) -> Page:
    """A link that leads to a passphrase. told: whom it is for; gone: why it leads nowhere; provider: by what one may
    log in instead.
    """
    about = told or {"name": "", "kind": ""}
    why = None if refusal is None else refused(refusal)
    return render(
        "invitation.html", viewer, key=key, name=about["name"], kind=about["kind"], gone=gone, provider=provider,
        refused=why,
    )  # fmt: skip


def entrance(viewer: Viewer, key: str, name: str) -> Page:
    """A link that opens a session, before it is used. name: whose."""
    return render("entrance.html", viewer, key=key, name=name)


def onward(viewer: Viewer, provider: str) -> Page:
    """The link to a provider, from a form."""
    return render("onward.html", viewer, at="account", provider=provider)


def more(
    viewer: Viewer,
    *,
    epsilon: str = "",
    reason: str = "",
    sent: bool = False,
    requests: Sequence[_Told] = (),
    refusal: _Told | None = None,
) -> Page:
    """A request for more of the budget. requests: those there are, the newest first."""
    why = None if refusal is None else refused(refusal)
    return render(
        "more.html", viewer, at="mine", epsilon=epsilon, reason=reason, sent=sent, requests=requests, refused=why
    )


def refusal(viewer: Viewer, told: _Told, *, back: str = "/", way: str = "Back") -> Page:
    """A page that cannot be shown, and why."""
    why = refused(told)
    kind = {"locked": "locked", "away": "loading", "engine": "failed", "incident": "failed"}.get(why.kind, "refused")
    return render("refused.html", viewer, title=why.title, kind=kind, text=why.text, back=back, way=way)


def seconds_between(start: object, end: object) -> float:
    """The seconds between two times that are told as ISO 8601; 1 where one is none."""
    try:
        return max(1.0, (datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(start))).total_seconds())
    except (TypeError, ValueError):
        return 1.0
