"""What a clerk could have told, and the state of each page of an analyst that follows: for tests and golden pictures.

STATES["answer"]()      a Page
python -m canned OUT    all of them as files in a folder, with tests/ on the path
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hubbub.answer.release import Release
from hubbub.answer.wire import SentAnswer
from hubbub.service.pages import Page, Viewer, views
from hubbub.service.pages.answering import LEVELS
from hubbub.service.pages.asking import Question

__all__ = ["ADA", "BOUNDS", "CHECK", "HISTORY", "ID", "STATES", "TABLES", "Line", "answered", "written"]

ADA = Viewer("ada", frozenset({"analyst"}), "c5r7", "3/2", "2")
NOBODY = Viewer()
URL = "https://data.example.org"
SQL = "SELECT rate_marriage, COUNT(*) AS n, AVG(age) AS age\nFROM survey\nGROUP BY rate_marriage"
QUESTION = Question(sql=SQL, within="180", proposed="180")
ID = "5d0e1f0c5a7e4b7c9d2f3a4b5c6d7e8f"
FACTOR = {0.5: 0.35, 0.68: 0.5, 0.8: 0.65, 0.9: 0.84, 0.95: 1.0, 0.99: 1.35, 0.999: 1.8}

TABLES: dict[str, Any] = {
    "survey": {
        "columns": {
            "rate_marriage": "integer", "religious": "integer", "educ": "integer", "age": "double",
            "yrs_married": "double", "children": "double", "affairs": "double", "occupation": "integer",
        },
        "private": True, "answer_time": 1.0, "unit": "each row", "limits": {},
        "declared": {
            "rate_marriage": {"text": "one_of(1, 2, 3, 4, 5)", "one_of": [1, 2, 3, 4, 5]},
            "religious": {"text": "one_of(1, 2, 3, 4)", "one_of": [1, 2, 3, 4]},
            "educ": {"text": "one_of(9, 12, 14, 16, 17, 20)", "one_of": [9, 12, 14, 16, 17, 20]},
            "age": {"text": "between('17.5', 42)", "between": ["17.5", 42]},
            "yrs_married": {"text": "between(0, 23)", "between": [0, 23]},
            "children": {"text": "between(0, '5.5')", "between": [0, "5.5"]},
            "affairs": {"text": "between(0, 60)", "between": [0, 60]},
        },
    },
    "visits": {
        "columns": {"ward": "text", "cost": "double"}, "private": True, "answer_time": 5.0, "unit": "patient",
        "limits": {"max_groups": 3, "max_rows": 2},
        "declared": {"ward": {"text": "one_of('A', 'B')", "one_of": ["A", "B"]}, "cost": {"between": [0, 500]}},
    },
    "wards": {"columns": {"ward": "text", "beds": "integer"}, "private": False, "answer_time": 0.0, "unit": None,
              "limits": {}, "declared": {}},
}  # fmt: skip

CHECK: dict[str, Any] = {
    "format": "check 1", "epsilon": "1/10", "left": "3/2",
    "columns": [
        {"name": "n", "plus_minus": 180.0, "unit_note": "", "ranks": None, "rows": None, "even": None},
        {"name": "age", "plus_minus": 2.21, "unit_note": "at most, if a group has 1,000 values", "ranks": None,
         "rows": None, "even": None},
    ],
    "mechanism": "mechanism: exact discrete Gaussian noise of sigma 92 on pair of sums",
    "notes": ["protected: each single row. The ± covers the noise.", "groups: 5, each answered."],
    "stored": False, "groups": 5, "fits": True, "sides": [], "how_many": 15, "bounds": [], "affordable": True,
    "cost": "1/10", "types": [["rate_marriage", "int64"], ["n", "int64"], ["age", "double"]], "answer_time": 1.0,
}  # fmt: skip

BUDGET: dict[str, Any] = {
    "left": "3/2",
    "spaces": [
        {"space": "each row", "epsilon": "3", "delta": None, "left": "23/10",
         "yours": {"left": "3/2", "limit": "2", "spent": "1/2"}},
    ],
}  # fmt: skip

HISTORY: list[dict[str, Any]] = [
    {"id": f"{n:032x}", "state": state, "release_at": f"2026-11-23T09:0{n}:05Z", "incident": "5ad37e753933",
     **({"reads": ID} if kind == "reading" else {}), "sql": sql, "asked_at": f"2026-11-23T09:0{n}:00Z",
     "epsilon": epsilon, "kind": kind, "space": "each row"}
    for n, (state, sql, epsilon, kind) in enumerate([
        ("answered", "SELECT COUNT(*) AS n FROM survey", "1/10", "sql"),
        ("no answer", "SELECT AVG(affairs) AS a FROM survey GROUP BY educ", "1/5", "sql"),
        ("answered", SQL, "1/10", "reading"),
        ("asked", SQL, "1/10", "sql"),
    ])
]  # fmt: skip

RECEIPT: dict[str, Any] = {
    "id": ID, "time": "2026-11-23T09:00:00.000000Z", "analyst": "ada", "sql": SQL, "epsilon": "0.1",
    "table": "survey", "tables": ["survey"], "unit": "each row", "neighbours": "add_remove", "max_groups": None,
    "max_rows": None, "groups": 5, "mechanism": "discrete Gaussian", "rho": "1/200", "delta": "0",
    "measurements": [{"plan": 0, "rho": "1/200", "counts": "rows", "step": "1", "sigma2": "8464"}],
    "data_version": "6018a44aaa684c79b98688f794079c59", "policy": "7d8dedd0d9d8d075c7682338bd48fef84ec36a1f2bc1c5e7",
    "chain": {"charge": {"hash": "368816de9fddad5c83d520b695423cbff5a80f1d371a443cd3549862ed0f95ff"}},
}  # fmt: skip


def answered(
    table: dict[str, Sequence[Any]],
    reach: dict[str, float],
    *,
    charged: bool = True,
    bounded: tuple[str, ...] = (),
    receipt: dict[str, Any] = RECEIPT,
) -> Release:
    """An answer with these half-widths at 95 %: what has none is a key."""
    arrow = pa.table(table)
    ends = {}
    for level in {*FACTOR, *LEVELS}:
        both = {}
        for i, name in enumerate(arrow.column_names):
            if name in reach:
                values = np.array([np.nan if v is None else float(v) for v in table[name]])
                both[i] = (values - reach[name] * FACTOR[level], values + reach[name] * FACTOR[level])
        ends[level] = both
    numbers = tuple(i for i, name in enumerate(arrow.column_names) if name in reach)
    keys = tuple(i for i in range(arrow.num_columns) if i not in numbers)
    sent = SentAnswer(arrow, keys, numbers, frozenset(), (), ends, bounded)
    return Release(Fraction(1, 10), charged, ID, receipt, Fraction(1, 10), (), sent)


def written(release: Release) -> str:
    """An answer as the clerk tells it."""
    return release.to_wire()


FIVE = {"rate_marriage": [1, 2, 3, 4, 5], "n": [99, 348, 1012, 2260, 2684], "age": [31.2, 30.1, 30.6, 29.2, 28.6]}
SORTED = {"rate_marriage": [5, 4, 3], "n": [2684, 2260, 1012], "age": [28.6, 29.2, 30.6]}
WARDS = {"ward": ["North", "South", "West"], "n": [5120, 3310, 840]}


def _shown(release: Release, **given: str) -> views.ShownAnswer:
    return views.shown_of(written(release), given)


def _five() -> Release:
    return answered(FIVE, {"n": 180.0, "age": 2.2})


_REFINE = {"told": {"epsilon": "1/10", "left": "3/2", "columns": [["n", 180.0, 127.0, ""], ["age", 2.2, 1.6, ""]],
                    "helps": True, "fits": True, "answer_time": 1.0}, "asked": "0.1"}  # fmt: skip


_NO_CLAUSES = {"having": "", "order": "", "limit": ""}


def _answer(release: Release, *, identity: str = ID, **more: Any) -> Page:
    given = {name: more.pop(name) for name in list(more) if isinstance(more[name], str)}
    more = {"clauses": _NO_CLAUSES, **more}
    return views.answer(ADA, _shown(release, **given), identity=identity, given=given, request="r1", url=URL, **more)


def _ask(check: Any, question: Question = QUESTION, *, viewer: Viewer = ADA, tables: Any = TABLES, **more: Any) -> Page:
    return views.ask(viewer, question, tables, check=check, request="r1", **more)


_WRONG = "SELECT ward, COUNT(*) AS n FROM visitss GROUP BY ward"
_REFUSED = {
    "kind": "query", "position": [32, 39],
    "text": f"unknown table 'visitss'. Did you mean visits?\n{_WRONG}\n{' ' * 32}{'^' * 7}",
}  # fmt: skip
_TOLD = {"id": ID, "state": "asked", "release_at": "2026-11-23T09:00:05.000000Z", "incident": "5ad37e753933"}
_ANSWERS = [
    {"id": ID, "by": "ada", "mine": True, "sql": SQL, "epsilon": "1/10", "asked_at": "2026-11-23T09:00:00Z",
     "release_at": "2026-11-23T09:00:05Z", "costs": "0"},
    {"id": ID[::-1], "by": "grace", "mine": False, "sql": "SELECT COUNT(*) AS n FROM survey", "epsilon": "1/5",
     "asked_at": "2026-11-22T17:00:00Z", "release_at": "2026-11-22T17:00:01Z", "costs": "1/5"},
]  # fmt: skip
_WHO = {"name": "ada", "roles": ["analyst"], "scopes": ["ask", "check"], "until": "2026-11-23T21:00:00Z", "token": None}
_TOKENS = [
    {"id": "t1", "label": "notebook", "scopes": ["ask", "check"], "most": "0.2", "cap": "1",
     "until": "2027-02-21T09:00:00Z", "live": True},
    {"id": "t2", "label": "old", "scopes": ["check"], "most": None, "cap": None, "until": "2026-10-01T09:00:00Z",
     "live": False},
]  # fmt: skip
_DEVICES = [
    {"id": "0a1b2c3d4e5f6071", "device": "Firefox on Linux", "since": "2026-11-23T09:00:00Z",
     "until": "2026-11-23T21:00:00Z", "here": True},
    {"id": "8192a3b4c5d6e7f8", "device": "Safari on an iPhone", "since": "2026-11-23T07:30:00Z",
     "until": "2026-11-23T19:30:00Z", "here": False},
]  # fmt: skip
_REQUESTS = [
    {"id": "w1", "kind": "budget", "state": "open", "epsilon": "1/2", "reason": "the second half of the study",
     "asked_at": "2026-11-23T09:00:00Z", "decision": None, "question": None},
    {"id": "w2", "kind": "question", "state": "granted", "epsilon": "1", "reason": "once a year", "sql": SQL,
     "asked_at": "2026-11-22T09:00:00Z", "decision": "as agreed", "question": ID},
]  # fmt: skip
_NOT_THERE = {"provider": None, "bound": False}
_MADE = {"token": "hub_t3_abcdefghijklmnopqrstuvwxyz234567", "id": "t3", "until": "2027-02-21T09:00:00Z"}
_STORED = {"stored": True, "cost": "0", "released_at": "2026-05-03T09:00:00.000000Z", "counts": "0"}
_NOT_ENOUGH = {**CHECK, "left": "1/20", "affordable": False, "fits": False, "how_many": 0}
_DROWNED = {
    **CHECK, "epsilon": "1/100", "cost": "1/100", "how_many": 150,
    "columns": [{**CHECK["columns"][0], "plus_minus": 1800.0}, {**CHECK["columns"][1], "plus_minus": 22.1}],
}  # fmt: skip

BOUNDS: dict[str, Any] = {
    "format": "bounds 1", "cost": "1/5", "charged": True, "charge_id": ID, "sql": SQL,
    "limits": [
        {"what": "max_rows", "units": 2000, "recommended": "4",
         "candidates": [{"bound": str(2**k), "beyond": 0.3 / 2**k, "low": 0.2 / 2**k, "high": 0.4 / 2**k,
                         "left_out": 0.2 / 4**k, "error": abs(k - 2) / 50 + 0.01} for k in range(5)]},
        {"what": "max_groups", "units": 3, "recommended": None, "candidates": []},
    ],
}  # fmt: skip

STATES: dict[str, Callable[[], Page]] = {
    "ask": lambda: _ask({"told": CHECK}),
    "ask-new": lambda: _ask(None, Question()),
    "ask-refused": lambda: _ask({"refused": _REFUSED}, Question(sql=_WRONG)),
    "ask-stored": lambda: _ask({"told": {**CHECK, **_STORED}}),
    "ask-another-s": lambda: _ask({"told": {**CHECK, **_STORED, "counts": "1/10"}}),
    "ask-public": lambda: _ask({"told": {**CHECK, "epsilon": "0", "cost": "0", "columns": [], "answer_time": 0.0}}),
    "ask-not-enough": lambda: _ask({"told": _NOT_ENOUGH}, viewer=Viewer("ada", ADA.roles, ADA.csrf, "1/20", "2")),
    "ask-drowned": lambda: _ask({"told": _DROWNED}, Question(sql=SQL, within="1800")),
    "ask-changed": lambda: _ask({"told": CHECK}, changed=True),
    "ask-locked": lambda: _ask({"refused": {"kind": "locked", "text": "Three of your questions had no answer."}}),
    "ask-empty": lambda: _ask(None, Question(), tables={}),
    "waiting": lambda: views.waiting(ADA, _TOLD, sql=SQL, left=3.2, total=5.0, before=2, cost="0.1"),
    "failed": lambda: views.failed(ADA, {**_TOLD, "state": "no answer"}, sql=SQL, cost="0.1"),
    "answer": lambda: _answer(_five(), refining=_REFINE, first="0", second="1"),
    "answer-one": lambda: _answer(answered({"n": [6366]}, {"n": 180.0})),
    "answer-99": lambda: _answer(_five(), level="0.99", column="age", kind="points", first="3", second="4"),
    "answer-sorted": lambda: _answer(
        answered(
            SORTED, {"n": 180.0, "age": 2.2}, receipt={**RECEIPT, "sql": f"{SQL}\nHAVING n > 500\nORDER BY n DESC"}
        ),
        clauses={"having": "n > 500", "order": "n DESC", "limit": ""},
        edited={"order": "n DESC"},
    ),
    "answer-not-sorted": lambda: _answer(
        _five(),
        having="SUM(children) > 3",
        no={"kind": "query", "text": "this wants something that was not drawn."},
    ),
    "answer-wards": lambda: _answer(answered(WARDS, {"n": 180.0}, charged=False)),
    "answer-public": lambda: _answer(
        Release(Fraction(0), False, "", {}, _exact=pa.table({"ward": ["A", "B"], "beds": [12, 8]})), identity=""
    ),
    "answer-none": lambda: _answer(answered({"ward": [], "n": []}, {"n": 180.0})),
    "bounds": lambda: views.bounds(ADA, BOUNDS),
    "library": lambda: views.library(ADA, _ANSWERS),
    "library-empty": lambda: views.library(ADA, []),
    "mine": lambda: views.mine(ADA, HISTORY, BUDGET),
    "mine-empty": lambda: views.mine(ADA, [], BUDGET),
    "account": lambda: views.account(ADA, _WHO, _TOKENS, _DEVICES, _NOT_THERE, url=URL),
    "account-made": lambda: views.account(ADA, _WHO, _TOKENS, _DEVICES, _NOT_THERE, url=URL, made=_MADE),
    "account-refused": lambda: views.account(
        ADA, _WHO, [], _DEVICES[:1], _NOT_THERE, url=URL, refusal={"kind": "query", "text": "too long."}
    ),
    "account-provider": lambda: views.account(
        ADA, _WHO, _TOKENS, _DEVICES, {"provider": "St Anne\u2019s clinic", "bound": True}, url=URL
    ),
    "login": lambda: views.login(NOBODY),
    "login-provider": lambda: views.login(NOBODY, provider="St Anne\u2019s clinic"),
    "entrance": lambda: views.entrance(NOBODY, "inv_x", "ada"),
    "onward": lambda: views.onward(ADA, "St Anne\u2019s clinic"),
    "login-refused": lambda: views.login(
        NOBODY, name="ada", refusal={"kind": "unauthenticated", "text": "name and passphrase do not fit."}
    ),
    "login-ended": lambda: views.login(NOBODY, ended=True),
    "invitation": lambda: views.invitation(NOBODY, "inv_x", told={"name": "ada", "kind": "invitation"}),
    "invitation-provider": lambda: views.invitation(
        NOBODY, "inv_x", told={"name": "ada", "kind": "invitation"}, provider="St Anne\u2019s clinic"
    ),
    "invitation-gone": lambda: views.invitation(NOBODY, "inv_x", gone="this link was used, or is too old."),
    "reset": lambda: views.invitation(NOBODY, "inv_x", told={"name": "ada", "kind": "reset"}),
    "more": lambda: views.more(ADA, epsilon="0.5", requests=_REQUESTS),
    "held": lambda: views.held(ADA, {"state": "waiting", "id": "w1", "asked_at": "2026-11-23T09:00:00Z"}, sql=SQL),
    "declined": lambda: views.held(ADA, {"state": "declined", "id": "w1", "reason": "Use fewer groups."}, sql=SQL),
    "more-sent": lambda: views.more(ADA, sent=True),
    "refusal": lambda: views.refusal(ADA, {"kind": "unknown", "text": "there is no such question of yours."}),
    "away": lambda: views.refusal(
        ADA, {"kind": "away", "text": "the service is starting again; ask in a few seconds."}
    ),
}
"""Each state of each page, by name."""


class Line:
    """A line to a clerk that tells what is canned. told: what each act tells, or a function of what it is given.

    asked: what was asked of it, with the proof.
    """

    def __init__(self, **told: Any) -> None:
        self.asked: list[tuple[str, dict[str, Any], Any]] = []
        self.told: dict[str, Any] = {
            "whoami": {**_WHO, "csrf": "c5r7"}, "budget": BUDGET, "tables": TABLES, "check": CHECK,
            "ask": _TOLD, "receipt": RECEIPT,
            "answer": {**_TOLD, "state": "answered", "answer": written(_five()), "clauses": _NO_CLAUSES},
            "events": [{"id": ID, "before": 2, "seconds": 3.2}], "check_refine": _REFINE["told"], "refine": _TOLD,
            "read": {**_TOLD, "state": "answered"}, "answers": _ANSWERS, "history": HISTORY, "tokens": _TOKENS,
            "devices": _DEVICES, "end_device": {"ended": 1}, "end_other_devices": {"ended": 1},
            "create_token": _MADE, "end_token": {}, "logout": {}, "login": {"session": "s1"},
            "accept": {"session": "s1"}, "enter": {"session": "s1"}, "change_passphrase": {"session": "s2"},
            "invited": {"name": "ada", "kind": "invitation"}, "request_budget": {}, "my_requests": _REQUESTS,
            "withdraw_request": {}, "ways": {"provider": None}, "binding": _NOT_THERE,
            **told,
        }  # fmt: skip

    def ask(self, act: str, given: Any, proof: Any = None) -> dict[str, Any]:
        self.asked.append((act, dict(given), proof))
        if act in ("whoami", "budget") and (proof or {}).get("session") not in ("s1", "s2"):
            return {"refused": {"kind": "unauthenticated", "text": "this session has ended: log in."}}
        told = self.told[act]
        told = told(given) if callable(told) else told
        return told if isinstance(told, dict) and "refused" in told else {"told": told}


def main() -> None:
    """Write all states into a folder."""
    from hubbub.service.pages.static import _FILES

    out = Path(sys.argv[1])
    (out / "static").mkdir(parents=True, exist_ok=True)
    for file in _FILES.values():
        (out / "static" / file.name).write_bytes(file.content)
    for name, state in STATES.items():
        (out / f"{name}.html").write_text(state().text.replace('"/static/', '"static/'), "utf-8")


if __name__ == "__main__":
    main()
