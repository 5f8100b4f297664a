"""What a clerk's office could have told: the steward's and the auditor's pages, hostile names included."""

from __future__ import annotations

from typing import Any

__all__ = ["CHAINS", "CHANGES", "CHARGES", "COSTS", "INCIDENTS", "LINES", "PEOPLE", "REQUESTS", "SPACES", "TABLES"]

_AT = "2026-11-22T09:{:02d}:00.000000Z"


def _person(name: str, roles: list[str], **more: Any) -> dict[str, Any]:
    known = {
        "state": "active",
        "added": _AT.format(1),
        "passphrase": True,
        "link_until": None,
        "tokens": 0,
        "provider": False,
    }
    return {"name": name, "roles": roles, **known, "accounts": [], **more}


def _account(spent: str, limit: str, left: str, **more: Any) -> dict[str, Any]:
    return {
        "space": "survey",
        "spent": spent,
        "limit": limit,
        "left": left,
        "until": None,
        "locked": False,
        "failures": 0,
    } | more


PEOPLE = [
    _person("ada", ["analyst"], accounts=[_account("1/2", "2", "3/2")], tokens=2),
    _person("audrey", ["auditor"]),
    _person("ben", ["analyst"], accounts=[_account("13/10", "2", "7/10", locked=True, failures=3)]),
    _person("<b>mallory</b> \"'&", ["analyst"], accounts=[_account("0", "1", "1")], state="disabled"),
    _person(
        "new one",
        ["analyst"],
        passphrase=False,
        link_until="2026-11-29T09:00:00.000000Z",
        accounts=[_account("0", "2", "2")],
    ),
    _person("stella", ["steward"]),
]
SPACES = [{"space": "survey", "budget": "3", "spent": "9/5", "left": "6/5"}]
REQUESTS = [
    {"id": "r1", "kind": "budget", "state": "open", "analyst": "ada", "epsilon": "1/2", "space": "survey",
     "reason": "The yearly report needs the four regions, too. </q><script>alert(1)</script>",
     "asked_at": _AT.format(12),
     "spent": "1/2", "limit": "2", "left": "3/2", "joint": "3", "joint_left": "6/5"},
    {"id": "r2", "kind": "question", "state": "open", "analyst": "ben", "epsilon": "1", "space": "survey",
     "reason": "A first look.", "asked_at": _AT.format(15),
     "sql": "SELECT rate_marriage, COUNT(*) AS n\nFROM survey\nGROUP BY rate_marriage",
     "spent": "13/10", "limit": "2", "left": "7/10", "joint": "3", "joint_left": "6/5"},
    {"id": "r0", "kind": "budget", "state": "granted", "analyst": "ada", "epsilon": "1", "space": "survey",
     "reason": "x", "asked_at": _AT.format(2),
     "decided_by": "stella", "decided_at": _AT.format(5), "decision": "for the report"},
]  # fmt: skip
INCIDENTS = [
    {"incident": "5ad37e753933", "analyst": "ben", "space": "survey", "at": _AT.format(20), "looked_at": None},
    {"incident": "77c0e1d2a9b4", "analyst": "ben", "space": "survey", "at": _AT.format(8), "looked_at": _AT.format(9)},
]
_COUNT = "A count by rate_marriage is ± 180 at epsilon 0.1"
TABLES = [
    {"name": "survey", "private": True, "unit": "each row", "answer_time": 1.0, "version": "v-3f60a2",
     "bounds": [("max_groups", 3, f"{_COUNT}; it would be ± 60 with 1, ± 300 with 6."),
                ("max_rows", 2, f"{_COUNT}; it would be ± 90 with 1, ± 359 with 4.")],
     "columns": [["rate_marriage", "number", "1 to 5"], ["religious", "number", "1 to 4"],
                 ["age", "number", "17.5 to 42"],
                 ["educ", "number", "9, 12, 14, 16, 17, 20"], ["occupation", "text", "not declared"]]},
    {"name": "regions", "private": False, "unit": None, "answer_time": 0, "version": None, "bounds": [],
     "columns": [["region", "text", "not declared"]]},
]  # fmt: skip
DECLARED = {
    "survey": {"columns": {"age": "double", "occupation": "integer"}, "private": True, "answer_time": 1.0,
               "unit": "each row",
               "limits": {"max_groups": None, "max_rows": 1}, "declared": {"age": {"text": "between('17.5', 42)"}}},
}  # fmt: skip
COSTS = {"survey": {"max_rows": {"by": None, "epsilon": "0.1", "widths": [[1, 30.0], [2, 60.0]]}}}
CHANGES = [
    "The limit of each analyst changes from epsilon 2 to epsilon 1.5.",
    "survey: max_rows changes from 2 to 1: with how many rows a person counts in one group at most.",
]
CHAINS = [
    {
        "name": "Ledger",
        "links": 1482,
        "sound": True,
        "head": "9f2c" * 16,
        "problems": [],
        "notes": [],
        "at": _AT.format(30),
        "kept": True,
    },
    {
        "name": "Log",
        "links": 97,
        "sound": True,
        "head": "03be" * 16,
        "problems": [],
        "notes": [],
        "at": _AT.format(30),
        "kept": True,
    },
]
BROKEN = [{**CHAINS[0], "sound": False, "problems": ["charge 31: epsilon was changed"]}, CHAINS[1]]
_ASKED = "SELECT rate_marriage, COUNT(*) AS n\nFROM survey"
CHARGES = [
    {"id": f"c{i}", "time": _AT.format(i), "analyst": ("ada", "ben")[i % 2], "space": "survey", "epsilon": "1/10",
     "state": ("answered", "no answer", "asked")[i % 3], "purpose": "" if i % 2 else "report",
     "sql": None if i == 4 else f"{_ASKED}\nWHERE age > {20 + i}\nGROUP BY rate_marriage"}
    for i in reversed(range(12))
]  # fmt: skip
LIMITS = [
    {"account": "analyst:ada", "space": "survey", "epsilon": "2", "until": None},
    {"account": "token:1f0c5a7e", "space": "survey", "epsilon": "1/2", "until": "2026-12-31T00:00:00.000000Z"},
]
LINES = [
    {
        "serial": 4,
        "time": _AT.format(9),
        "who": "stella",
        "act": "grant",
        "about": {"account": "analyst:ada", "epsilon": "2", "reason": "report"},
    },
    {
        "serial": 3,
        "time": _AT.format(7),
        "who": "stella",
        "act": "person added",
        "about": {"name": "new one", "roles": ["analyst"]},
    },
    {"serial": 2, "time": _AT.format(6), "who": "ada", "act": "login", "about": {}},
]
