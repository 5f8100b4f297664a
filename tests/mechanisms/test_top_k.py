"""The most frequent of items that nobody declared: the law of whole answers, enumerated on small neighbours.

An item that one unit alone brings is seen with probability delta at most; given that it is not, choices are
epsilon-bounded range; and the event that is charged covers the law at every epsilon that was tried.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, permutations, product

import pytest

from hubbub.accounting import delta_bounds
from hubbub.errors import ParameterError
from hubbub.mechanisms import UnknownTopK
from hubbub.mechanisms.recording import recording, replaying
from seeded import SeededBits

Law = dict[tuple[int, ...], float]


def law(mechanism: UnknownTopK, counts: tuple[int, ...]) -> Law:
    """Every answer with its probability."""
    there = [i for i, count in enumerate(counts) if count]
    answers = (a for length in range(min(mechanism.k, len(there)) + 1) for a in permutations(there, length))
    return {a: math.exp(mechanism.log_prob(a, counts)) for a in answers}


def neighbours(items: int, sensitivity: int, width: int = 3) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Small tables, and the same with one unit more."""
    for counts in product((0, 1, 2, 5, 9), repeat=width):
        for added in product(range(sensitivity + 1), repeat=width):
            if 0 < sum(a > 0 for a in added) <= items:
                yield counts, tuple(c + a for c, a in zip(counts, added, strict=True))


def excess(p: Law, q: Law, epsilon: float) -> float:
    """The hockey-stick divergence of p over q."""
    return math.fsum(max(0.0, chance - math.exp(epsilon) * q.get(answer, 0.0)) for answer, chance in p.items())


MECHANISMS = [
    UnknownTopK(1, epsilon=1, delta="1/20"),
    UnknownTopK(2, epsilon="1/2", delta="1/10", items=2),
    UnknownTopK(2, epsilon=1, delta="1/5", items=1, sensitivity=2),
    UnknownTopK(3, epsilon=1, delta="1/100", items=3),
]


def test_laws_of_whole_answers_sum_to_one() -> None:
    for mechanism in MECHANISMS:
        for counts in ((0, 0, 0), (1, 0, 0), (3, 1, 9), (40, 2, 0)):
            assert math.fsum(law(mechanism, counts).values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_what_is_charged_for_unknown_items_covers_their_law(mechanism: UnknownTopK) -> None:
    """Both directions, at several epsilons up to that of pure composition, where delta alone is left."""
    whole = float(mechanism.epsilon) * mechanism.k
    claims = [(e, delta_bounds(mechanism.loss, e)[1]) for e in (0.0, whole / 3, whole)]
    worst = 0.0
    for before, after in neighbours(mechanism.items, mechanism.sensitivity):
        p, q = law(mechanism, before), law(mechanism, after)
        for epsilon, claimed in claims:
            assert max(excess(p, q, epsilon), excess(q, p, epsilon)) <= claimed + 1e-12
        worst = max(worst, excess(q, p, whole))
    assert worst <= float(mechanism.delta)
    assert worst >= float(mechanism.delta) / 30  # what is claimed is not far from what there is


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_an_item_of_one_unit_alone_is_seen_with_probability_delta_at_most(mechanism: UnknownTopK) -> None:
    for before, after in neighbours(mechanism.items, mechanism.sensitivity):
        new = {i for i, count in enumerate(before) if not count}
        seen = math.fsum(chance for answer, chance in law(mechanism, after).items() if new & set(answer))
        assert seen <= float(mechanism.delta)


def test_a_lower_floor_would_not_keep_delta() -> None:
    mechanism = UnknownTopK(1, epsilon=1, delta="1/20", items=3)
    lower = replace_floor(mechanism, mechanism.floor - 2)
    seen = 1 - law(lower, (1, 1, 1))[()]
    assert seen > 0.05 >= 1 - law(mechanism, (1, 1, 1))[()]


def replace_floor(mechanism: UnknownTopK, floor: int) -> UnknownTopK:
    other = UnknownTopK(mechanism.k, epsilon=mechanism.epsilon, delta=mechanism.delta, items=mechanism.items)
    object.__setattr__(other, "floor", floor)
    return other


def test_given_that_no_new_item_is_chosen_a_choice_is_bounded_range() -> None:
    for mechanism in (m for m in MECHANISMS if m.k == 1):
        for before, after in neighbours(mechanism.items, mechanism.sensitivity):
            p, q = law(mechanism, before), law(mechanism, after)
            losses = [math.log(q[answer] / p[answer]) for answer in p]
            assert max(losses) - min(losses) <= float(mechanism.epsilon) + 1e-9


def test_under_replace_both_sides_have_items_of_their_own() -> None:
    mechanism = UnknownTopK(1, epsilon=1, delta="1/20", items=2, monotone=False)
    for before, left in neighbours(2, 1):
        for other, entered in neighbours(2, 1):
            if other != before:
                continue
            p, q = law(mechanism, left), law(mechanism, entered)
            assert excess(p, q, 1.0) <= 0.05
            shared = [answer for answer in p if answer in q]
            losses = [math.log(q[answer] / p[answer]) for answer in shared]
            assert max(losses) - min(losses) <= 1 + 1e-9


def test_draws_follow_the_law() -> None:
    """4,000 draws of a fixed bit source: each answer within 5 standard deviations (a false alarm in 1e5 of others)."""
    mechanism, counts, n = UnknownTopK(2, epsilon="1/2", delta="1/10"), (9, 7, 0, 6), 4_000
    bits = SeededBits(7)
    drawn = Counter(tuple(mechanism.release(list(counts), bits=bits)) for _ in range(n))
    exact = law(mechanism, counts)
    assert set(drawn) <= set(exact)
    for answer, chance in exact.items():
        assert abs(drawn[answer] - n * chance) <= 5 * math.sqrt(n * chance * (1 - chance)) + 1


def test_the_floor_grows_with_the_items_of_one_unit_not_with_those_there_are() -> None:
    floors = [UnknownTopK(5, epsilon=1, delta="1e-6", items=items).floor for items in (1, 10, 1000)]
    assert [b - a for a, b in pairwise(floors)] == [2, 5]
    assert UnknownTopK(5, epsilon=1, delta="1e-6").release([0] * 1000) == []
    assert UnknownTopK(2, epsilon=1, delta="1e-6").release([10**6, 3, 5 * 10**5], bits=SeededBits(1)) == [0, 2]


def test_the_auditor_sees_a_unit_s_share_by_its_items() -> None:
    mechanism = UnknownTopK(2, epsilon=1, delta="1e-6", items=3)
    with recording() as records:
        mechanism.release([100, 90], keys=["a", "b"], bits=SeededBits(1))
    assert (records[0].norm, records[0].sensitivity, records[0].keys) == ("groups", 3, ("a", "b"))
    with replaying(records):
        assert mechanism.release([90, 1, 100], keys=["b", "new", "a"]) == [2, 0]


@pytest.mark.parametrize(
    ("wrong", "match"),
    [({"delta": 0}, "declare the items"), ({"k": 0}, "k"), ({"epsilon": -1}, "epsilon"), ({"items": 0}, "items")],
)
def test_what_cannot_be_asked_is_refused(wrong: dict[str, object], match: str) -> None:
    asked: dict[str, object] = {"k": 2, "epsilon": 1, "delta": "1e-6"} | wrong
    with pytest.raises(ParameterError, match=match):
        UnknownTopK(asked.pop("k"), **asked)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="whole numbers"):
        UnknownTopK(1, epsilon=1, delta="1e-6").release([0.5])
