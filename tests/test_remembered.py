"""Which statements are kept, for whom, and until when: what is found again is what would be worked out anew."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.ledger.budget import Budget
from hubbub.session.data import OpenTables
from hubbub.session.options import Options
from hubbub.session.remembered import Remembered, key_of

LIMITS = {"max_aggregates": 20, "max_answer_groups": None}


def options(**given: Any) -> Options:
    return Options.of({"epsilon": "0.5", **given})


def test_a_key_tells_apart_whatever_is_asked() -> None:
    asked = [
        ("SELECT 1", options(), LIMITS),
        ("SELECT  1", options(), LIMITS),
        ("SELECT 1", options(epsilon="0.6"), LIMITS),
        ("SELECT 1", options(max_rows=2), LIMITS),
        ("SELECT 1", options(), {**LIMITS, "max_aggregates": 21}),
        ("SELECT 1", options(), {**LIMITS, "max_answer_groups": 5}),
    ]
    assert len({key_of(*one) for one in asked}) == len(asked)
    assert key_of("SELECT 1", options(), dict(reversed(LIMITS.items()))) == key_of(*asked[0])


def test_what_is_given_beside_the_text_or_is_very_long_has_no_key() -> None:
    assert key_of("x" * 20_000, options(), LIMITS) is not None
    assert key_of("x" * 20_001, options(), LIMITS) is None
    assert key_of("x", options(params={"a": 1}), LIMITS) is None
    assert key_of("x", options(keys={"a": ["b"]}), LIMITS) is None
    rows = pa.chunked_array([["a"]]).to_pandas()  # it has no truth: what it is instead of, is said where it is read
    assert key_of("x", options(keys=rows), LIMITS) is None
    assert key_of("x", options(params=rows), LIMITS) is None


@dataclass(frozen=True)
class Asked:
    """What is kept of a statement, as far as it is looked at."""

    name: str
    space: str = "u"
    now: dt.datetime | None = None
    dated: bool = False
    public: tuple[str, ...] = ()
    groups: tuple[int | None, ...] = (3,)
    outside: tuple[bool, ...] = (False,)
    plans: Any = field(default=None)

    @property
    def statement(self) -> Any:
        return SimpleNamespace(public=self.public)

    @property
    def price(self) -> Any:
        return SimpleNamespace(plans=[SimpleNamespace(group_count=n) for n in self.groups])

    def leaves(self, question: int) -> bool:
        return self.outside[question]


def asked(name: str, **given: Any) -> Any:
    made = Asked(name, **given)
    return Asked(name, **given, plans=(None,) * len(made.outside))


def one_budget(space: str) -> Any:
    return f"of {space}"


@pytest.fixture
def kept() -> Remembered:
    return Remembered()


def test_a_statement_is_found_by_its_own_analyst_and_key_alone(kept: Remembered) -> None:
    kept.keep("ada", "k", one_budget, asked("one"))
    found = kept.find("ada", "k", one_budget, None)
    assert found is not None
    assert found.name == "one"  # type: ignore[attr-defined]
    for analyst, key in (("bob", "k"), ("ada", "l"), ("", "k")):
        assert kept.find(analyst, key, one_budget, None) is None
    kept.keep("ada", "k", one_budget, asked("another"))
    assert kept.find("ada", "k", one_budget, None).name == "another"  # type: ignore[union-attr]


def test_it_is_asked_at_the_moment_that_is_said_or_now(kept: Remembered) -> None:
    kept.keep("ada", "k", one_budget, asked("one", now=dt.datetime(2001, 1, 1)))
    moment = dt.datetime(2020, 2, 2)
    assert kept.find("ada", "k", one_budget, moment).now == moment  # type: ignore[union-attr]
    before = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    found = kept.find("ada", "k", one_budget, None)
    assert before <= found.now <= dt.datetime.now(dt.UTC).replace(tzinfo=None)  # type: ignore[union-attr]


def test_with_another_budget_it_is_worked_out_anew(kept: Remembered) -> None:
    kept.keep("ada", "k", one_budget, asked("one", space="v"))
    assert kept.find("ada", "k", lambda space: f"another of {space}", None) is None
    assert kept.find("ada", "k", lambda space: f"of {'v' if space == 'v' else ''}", None) is not None


@pytest.mark.parametrize(
    "more",
    [
        {"dated": True},
        {"public": ("p",)},
        {"groups": (3, 20_001)},
        {"outside": (False, True)},
        {"outside": (True, False)},
    ],
    ids=str,
)
def test_what_follows_from_more_than_the_text_is_not_kept(kept: Remembered, more: dict[str, Any]) -> None:
    kept.keep("ada", "k", one_budget, asked("one", **more))
    assert kept.find("ada", "k", one_budget, None) is None
    assert kept._of == {}


def test_as_many_groups_as_may_be_and_groups_that_nobody_knows_are_kept(kept: Remembered) -> None:
    kept.keep("ada", "k", one_budget, asked("one", groups=(20_000, None), outside=(False, False)))
    assert kept.find("ada", "k", one_budget, None) is not None


def test_of_one_analyst_sixteen_are_kept_those_asked_last(kept: Remembered) -> None:
    for i in range(16):
        kept.keep("ada", str(i), one_budget, asked(str(i)))
    assert kept.find("ada", "0", one_budget, None) is not None  # and so it is not the one asked longest ago
    kept.keep("ada", "2", one_budget, asked("2"))
    kept.keep("ada", "more", one_budget, asked("more"))
    kept.keep("ada", "still more", one_budget, asked("still more"))
    left = [i for i in range(16) if kept.find("ada", str(i), one_budget, None) is not None]
    assert left == [0, 2, *range(4, 16)]


def test_of_so_many_analysts_some_are_kept_those_who_asked_last(kept: Remembered) -> None:
    for i in range(256):
        kept.keep(str(i), "k", one_budget, asked("one"))
    kept.keep("0", "l", one_budget, asked("another"))
    kept.keep("more", "k", one_budget, asked("one"))
    assert len(kept._of) == 256
    assert kept.find("0", "k", one_budget, None) is not None
    assert kept.find("1", "k", one_budget, None) is None
    assert kept.find("2", "k", one_budget, None) is not None


def test_it_is_kept_with_the_budget_that_it_was_priced_for_though_another_came_meanwhile() -> None:
    budgets, text = iter([Budget(1), Budget(2)]), "SELECT COUNT(*) AS n FROM t"
    data = OpenTables({"t": hb.table(pa.table({"id": [1, 2]}), unit="id", max_total=1)})
    data.ask(text, options(), lambda space: next(budgets), analyst="ann")
    key = key_of(text, options(), dict.fromkeys(LIMITS))
    assert key is not None
    assert data._remembered.find("ann", key, lambda space: Budget(2), None) is None
    assert data._remembered.find("ann", key, lambda space: Budget(1), None) is not None
    data.close()
