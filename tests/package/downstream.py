"""A program that uses hubbub, as a type checker sees it: every name has its type, from the wheel alone."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_type

import hubbub as hb
from hubbub import accounting, remedies

QUESTION = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def opened(path: str) -> hb.Session:
    visits = hb.table(
        path,
        unit="patient_id",
        max_groups=3,
        max_rows=2,
        columns={"age": hb.between(0, 120), "ward": hb.one_of("A", "B", "C")},
    )
    return hb.Session({"visits": visits}, budget=hb.Budget(epsilon=1), ledger="budget.db")


def ask(path: str) -> dict[str, list[float]]:
    with opened(path) as session:
        if not session.check(QUESTION, epsilon=0.1).affordable:
            return {}
        answer = session.sql(QUESTION, epsilon=0.1)
        assert_type(answer, hb.Release)
        assert_type(answer.epsilon, Fraction)
        return answer.error.half_widths()


def verbs(session: hb.Session) -> hb.Release:
    return session.table("visits").group_by("ward").agg(n=hb.count()).run(epsilon=0.1)


def way_out(error: hb.HubbubError) -> remedies.Remedy | None:
    return error.remedy


def price() -> float:
    return accounting.epsilon(accounting.Repeated(accounting.Gaussian(10), 100), 1e-6)
