"""The grey-box audit: the product quiet, every planted bug caught."""

from __future__ import annotations

import itertools
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
import pytest

from audit import planted
from audit.frozen import FrozenBits
from hubbub.audit import Pair, SessionAudit, Violation, audit_session, fresh, pairs, replay
from hubbub.audit.fixtures import SCENES, Scene, people
from hubbub.audit.grey_box import spent
from hubbub.audit.neighbours import Relation
from hubbub.audit.questions import AGGREGATES, FOUND, HOUSE, PRIVATE_KEYS, ROWS, SYNTHESIS, TOGETHER
from hubbub.errors import InternalError, ParameterError
from hubbub.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    GroupThreshold,
    KNormMechanism,
    LaplaceMechanism,
    NoisyMax,
    Polytope,
    SparseVector,
    StaircaseMechanism,
)
from hubbub.mechanisms.quantiles import QuantileMechanism
from hubbub.mechanisms.recording import recording, replaying, through
from hubbub.synthesis import OnlineWeights
from seeded import SeededBits

FEW = (
    "SELECT COUNT(*) AS a, SUM(x) AS b FROM t",
    "SELECT ward, COUNT(*) AS a, SUM(n) AS b FROM t GROUP BY ward",
)
BOTH = get_args(Relation)
WORST = ("every extreme of every column", "every extreme everywhere", "in every group")


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def kinds(violations: list[Violation]) -> set[str]:
    return {v.kind for v in violations}


def audited(scene: Scene, relation: Any, questions: Any, neighbours: list[Pair], runs: int = 0) -> SessionAudit:
    return audit_session(
        lambda data: scene.open(data, relation, FrozenBits() if runs == 0 else None),
        questions=questions,
        relation=relation,
        neighbours=neighbours,
        runs=runs,
    )


def scene_of(name: str) -> Scene:
    return next(s for s in SCENES if s.name == name)


def together(aggregates: Sequence[str], rest: str, keys: str = "") -> list[str]:
    """A few aggregates in each question."""
    some = [aggregates[i::6] for i in range(6)]
    return [f"SELECT {keys}{', '.join(f'{a} AS a{i}' for i, a in enumerate(part))} {rest}" for part in some]


LEAN = {
    "people": [*together(AGGREGATES, "FROM t"), *together(AGGREGATES, "FROM t GROUP BY ward", "ward, "), *TOGETHER],
    "rows": [*together(AGGREGATES, "FROM t GROUP BY ward", "ward, "), *ROWS[-3:]],
    "house": [*HOUSE],
    "delta": [
        *HOUSE[::5],
        *together(AGGREGATES, "FROM t GROUP BY ward", "ward, "),
        *TOGETHER[::3],
    ],
    "names": [*PRIVATE_KEYS],
    "found": [*FOUND],
    "whole": [*SYNTHESIS],
}
"""Every aggregate and every form, several to a question."""


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        ("people", "replace"),
        ("rows", "add_remove"),
        ("house", "add_remove"),
        ("delta", "replace"),
        ("names", "replace"),
        ("found", "add_remove"),
        ("found", "replace"),
        ("whole", "replace"),
    ],
)
def test_everything_that_can_be_asked_passes_on_the_worst_neighbours(name: str, relation: Any) -> None:
    scene = scene_of(name)
    tried = list(scene.pairs(relation))
    worst = [p for p in tried if p.name.startswith(WORST)] or tried[4:80:20]
    found = audited(scene, relation, LEAN[name], [worst[-1], *[p for p in tried if p.same and name == "house"][:1]])
    assert found.questions == len(LEAN[name])
    assert found.violations == ()


@pytest.mark.soak
@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_every_question_of_every_scene_passes_on_every_nasty_neighbour(scene: Scene, relation: Any) -> None:
    tried = list(scene.pairs(relation))
    assert len(tried) > 50
    assert audited(scene, relation, scene.questions, tried).violations == ()


@pytest.mark.soak
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_noise_is_fresh_in_every_question(scene: Scene) -> None:
    tried = list(scene.pairs("add_remove"))
    assert audited(scene, "add_remove", scene.questions, tried[:1], runs=8).violations == ()


JOIN = "SELECT p.sex, SUM(p.income) AS a FROM t JOIN p ON t.id = p.id GROUP BY p.sex"
WINDOW = "SELECT SUM(LEAST(GREATEST(m, 0), 99)) AS a FROM (SELECT id, AVG(x) OVER (PARTITION BY id) AS m FROM t)"
CHOICE = "SELECT ward, MODE(ok) AS a FROM t GROUP BY ward"
PAIR = "SELECT AVG(x) AS a, COUNT(x) AS b FROM t"
RANKS = "SELECT MEDIAN(x) AS a, MAX(x) AS b FROM t"
EXTREMES, GROUPS, MANY, ALONE = "every extreme", "in every group", "a thousand rows", "one unit a"
PLANTED = [
    (planted.sensitivity_off_by_one_group, "moved", "house", "add_remove", FEW, GROUPS),
    (planted.pair_with_half_its_sensitivity, "moved", "house", "add_remove", [PAIR], GROUPS),
    (planted.quantiles_of_replace_as_of_add_remove, "moved", "house", "replace", [RANKS], EXTREMES),
    (planted.choices_in_several_groups_at_the_price_of_one, "cost", "house", "add_remove", [CHOICE], GROUPS),
    (planted.charge_of_half_the_price, "cost", "house", "add_remove", FEW, ALONE),
    (planted.missing_clamp, "moved", "house", "add_remove", FEW, EXTREMES),
    (planted.nan_passing, "moved", "house", "add_remove", FEW, EXTREMES),
    (planted.rows_unbounded, "moved", "house", "add_remove", FEW, GROUPS),
    (planted.join_without_the_owner, "moved", "house", "add_remove", [JOIN], MANY),
    (planted.window_without_the_unit, "moved", "house", "add_remove", [WINDOW], MANY),
    (planted.groups_chosen_by_all_rows, "moved", "rows", "add_remove", ROWS[-3:-2], "one row, n ="),
    (planted.group_kept_without_threshold, "impossible", "names", "add_remove", PRIVATE_KEYS[:1], ALONE),
    (planted.threshold_too_low, "cost", "names", "add_remove", PRIVATE_KEYS[:1], ALONE),
    (planted.rows_of_a_unit_unbounded, "moved", "whole", "add_remove", SYNTHESIS[5:], MANY),
    (planted.noise_reused, "reused", "house", "add_remove", FEW, ALONE),
    (planted.noise_of_one_cell_for_all, "reused", "house", "add_remove", FEW, ALONE),
    (planted.charge_after_answer, "cost", "house", "add_remove", FEW, ALONE),
    (planted.groups_in_order_of_their_counts, "answer", "house", "add_remove", FEW, ALONE),
    (planted.search_that_never_stops_alike, "moved", "found", "add_remove", FOUND[1:2], "every extreme of x"),
    (planted.histograms_at_the_price_of_one, "cost", "found", "add_remove", FOUND[7:8], ALONE),
    (planted.charge_of_half_the_price, "cost", "found", "add_remove", FOUND[9:10], ALONE),
    (planted.words_of_the_data, "said", "house", "add_remove", FEW, ALONE),
]


def one_pair(name: str, relation: Any, questions: Any, neighbour: str, runs: int = 0) -> SessionAudit:
    scene = scene_of(name)
    chosen = next(p for p in scene.pairs(relation) if p.name.startswith(neighbour))
    return audited(scene, relation, questions, [chosen], runs)


QUIET = dict[str, SessionAudit]()


def without_a_bug(*asked: Any) -> SessionAudit:
    """`one_pair` of the product as it is: the same for each bug of the same questions."""
    if repr(asked) not in QUIET:
        QUIET[repr(asked)] = one_pair(*asked)
    return QUIET[repr(asked)]


@pytest.mark.parametrize(
    ("bug", "expected", "scene", "relation", "questions", "neighbour"),
    PLANTED,
    ids=[bug.__name__ for bug, *_ in PLANTED],
)
def test_a_planted_bug_is_caught(
    bug: Callable[[Any], None],
    expected: str,
    scene: str,
    relation: Any,
    questions: Any,
    neighbour: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One pair of neighbours is enough; without the bug it shows nothing."""
    runs = 6 if expected == "reused" else 0
    assert without_a_bug(scene, relation, questions, neighbour, runs).violations == ()
    bug(monkeypatch)
    found = one_pair(scene, relation, questions, neighbour, runs)
    assert expected in {v.kind for _, _, v in found.violations}, found.violations


def test_a_group_kept_without_threshold_is_impossible_under_its_law(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = GroupThreshold(epsilon=1, delta="1e-5", groups=2)
    wards, more = {"A": 400, "B": 300}, {"A": 400, "B": 301, "C": 1}

    def run(counts: dict[str, int]) -> list[str]:
        shown = mechanism.release(np.array(list(counts.values())), keys=counts)
        names = list(counts)
        return [names[i] for i in shown]

    assert replay(run, wards, more) == []
    assert replay(run, more, wards) == []
    object.__setattr__(mechanism, "threshold", 10**9)
    monkeypatch.setattr(
        GroupThreshold,
        "release",
        lambda self, counts, keys=None: _unthresholded(self, counts, keys),
    )
    assert "impossible" in kinds(replay(run, wards, more))


def _unthresholded(mechanism: Any, counts: Any, keys: Any) -> Any:
    noise = mechanism.noise.sample(len(counts))
    return through(
        counts, sensitivity=mechanism.groups, norm="groups", law=mechanism, keys=keys,
        draw=lambda: {i: int(c + z) for i, (c, z) in enumerate(zip(counts, noise, strict=True))},
    )  # fmt: skip


def count(rows: list[Any]) -> int:
    return int(LaplaceMechanism(sensitivity=1, epsilon=1).release(len(rows)))


def test_a_count_passes_and_two_rows_for_one_do_not() -> None:
    assert replay(count, [1, 2], [1, 2, 3]) == []
    assert kinds(replay(count, [1, 2], [1, 2, 3, 4])) == {"moved"}


def test_the_same_rows_in_another_form_may_move_nothing() -> None:
    assert replay(count, [1, 2], [2, 1], same=True) == []
    assert kinds(replay(count, [1, 2], [1, 2, 3], same=True)) == {"moved"}


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (lambda rows: [count(rows) for _ in rows], "flow"),
        (lambda rows: (count(rows), len(rows)), "answer"),
        (lambda rows: (count(rows), 1 if len(rows) > 2 else 1.0), "answer"),
        (lambda rows: (count(rows), {"a": 1, "b": 2} if len(rows) > 2 else {"b": 2, "a": 1}), "answer"),
        (lambda rows: count(rows) + [0][len(rows) - 2], "error"),
        (lambda rows: (count(rows), int("x" * len(rows))), "error"),
        (lambda rows: (count(rows), print(len(rows))), "said"),
        (lambda rows: (count(rows), logging.getLogger("any").warning("%d rows", len(rows))), "said"),
        (lambda rows: (count(rows), warnings.warn(f"{len(rows)}", stacklevel=1)), "said"),
        (lambda rows: LaplaceMechanism(sensitivity=1, epsilon=len(rows)).release(0), "flow"),
        (lambda rows: LaplaceMechanism(sensitivity=1, epsilon=1, cells=len(rows)).release([0] * len(rows)), "moved"),
    ],
    ids="calls answer dtype order error error-text print log warning law cells".split(),
)
def test_what_differs_beside_the_noise_is_said(run: Callable[[Any], Any], kind: str) -> None:
    assert kind in kinds(replay(run, [1, 2], [1, 2, 3]))


def test_adaptive_steps_see_the_frozen_answer() -> None:
    """The second question depends on the first answer; without freezing, every run would take another way."""

    def run(rows: list[int]) -> list[int]:
        first = count(rows)
        return [first] + [count(rows) for _ in range(abs(first) % 7)]

    for _ in range(20):
        assert replay(run, [1] * 50, [1] * 51) == []


def test_each_norm_is_measured() -> None:
    gaussian = GaussianMechanism(sensitivity=2, rho=1, cells=2)
    assert replay(gaussian.release, [0, 0], [0, 2]) == []
    assert kinds(replay(gaussian.release, [0, 0], [2, 1])) == {"moved"}
    scores = ExponentialMechanism(epsilon=1, sensitivity=1)
    assert replay(scores.release, [5, 5, 5], [6, 4, 5]) == []
    assert kinds(replay(scores.release, [5, 5, 5], [7, 5, 5])) == {"moved"}
    monotone = NoisyMax(epsilon=1, sensitivity=1, monotone=True)
    assert replay(monotone.release, [5, 5, 5], [6, 6, 5]) == []
    assert kinds(replay(monotone.release, [5, 5, 5], [6, 4, 5])) == {"moved"}
    median = QuantileMechanism(shares=["1/2"], lower=0, upper=10, epsilon=1, rows=2)
    assert replay(median.release, [1, 2, 3], [1, 2, 3, 9, 9]) == []
    assert kinds(replay(median.release, [1, 2, 3], [9, 9, 9])) == {"moved"}


@pytest.mark.parametrize(
    ("release", "near", "far"),
    [
        (KNormMechanism(norm="linf", sensitivity=1, epsilon=1, cells=3).release, [2, 1, 4], [2, 1, 5]),
        (KNormMechanism(norm="l1", sensitivity=3, epsilon=1, cells=3).release, [2, 1, 4], [2, 0, 4]),
        (KNormMechanism(norm="l2", squared_sensitivity=3, epsilon=1, cells=3).release, [2, 1, 4], [2, 2, 5]),
        (KNormMechanism(norm=Polytope.of(np.eye(3, dtype=int)), sensitivity=1, epsilon=1, cells=3).release, [1, 1, 3],
         [2, 1, 3]),
        (lambda three: StaircaseMechanism(sensitivity=2, epsilon=1).release(sum(three)), [1, 1, 2], [1, 1, 1]),
        (lambda three: SparseVector(sensitivity=1, epsilon=1, positives=2).release(three, threshold=2), [2, 1, 4],
         [3, 2, 3]),
        (lambda three: SparseVector(sensitivity=1, epsilon=1, positives=1, answers_epsilon=1).release(
            [0, *three], threshold=2), [2, 1, 4], [3, 2, 3]),
    ],
    ids=["linf", "l1", "l2", "polytope", "staircase", "sparse vector", "sparse vector with numbers"],
)  # fmt: skip
def test_every_mechanism_of_the_library_is_frozen_and_measured(release: Any, near: Any, far: Any) -> None:
    """Noise that did not go through the recording was drawn anew in the replay: every answer differed."""
    for _ in range(5):
        assert replay(release, [1, 2, 3], near) == []
    # A sparse vector may be through before the question that moves too far.
    assert any(kinds(replay(release, [1, 2, 3], far)) == {"moved"} for _ in range(20))
    assert fresh(release, [1, 2, 3]) == []


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [
        (StaircaseMechanism(sensitivity=10**9, epsilon="1/1000000"), 3),
        *((KNormMechanism(norm=norm, sensitivity=1000, epsilon="1/100", cells=3), [3, 3, 3])
          for norm in ("l1", "l2", "linf")),
    ],
    ids=["staircase", "l1", "l2", "linf"],
)  # fmt: skip
def test_noise_that_is_drawn_once_is_seen_whatever_its_law(mechanism: Any, value: Any) -> None:
    """Only noise of Laplace and Gauss was compared."""
    assert fresh(mechanism.release, value) == []
    with recording() as tape:
        mechanism.release(value)
    kept = tape[0]

    def again(rows: Any) -> Any:
        return through(kept.values, sensitivity=1, norm=kept.norm, law=mechanism, draw=lambda: kept.released)

    assert kinds(fresh(again, value)) == {"reused"}


def test_a_sparse_vector_is_paid_for_once_however_much_is_asked() -> None:
    vector = SparseVector(sensitivity=1, epsilon="1/2", positives=2)
    with recording() as records:
        vector.release([0, 1, 0, 1], threshold=50)
        vector.release([0], threshold=50)
    assert spent(records).epsilon == 1
    assert kinds(replay(lambda rows: vector.release(rows, threshold=50), [0, 0], [0, 2])) == {"moved"}


@pytest.mark.parametrize("monotone", [False, True])
def test_the_threshold_of_a_sparse_vector_is_public_and_monotone_questions_move_one_way(monotone: bool) -> None:
    """Neither was looked at: half the noise is enough only for questions of one direction, in each run by itself."""
    vector = SparseVector(sensitivity=1, epsilon=1, positives=3, monotone=monotone)

    def above_the_mean(rows: list[int]) -> Any:
        return vector.release([5, 5], threshold=sum(rows))

    def asked(rows: list[int]) -> Any:
        return vector.release(rows, threshold=0)

    def two_runs(rows: list[int]) -> Any:
        one, other = vector.open(0), vector.open(0)
        return [one.ask(rows[0]), other.ask(rows[1]), one.ask(rows[0])]

    assert kinds(replay(above_the_mean, [1, 2], [1, 3])) == {"moved"}
    assert replay(asked, [5, 5, 7], [6, 5, 8]) == replay(asked, [5, 5, 7], [4, 4, 7]) == []
    assert kinds(replay(asked, [5, 5], [6, 4])) == ({"moved"} if monotone else set())
    assert replay(two_runs, [5, 5], [6, 4]) == []


def test_online_weights_are_quiet_and_loud() -> None:
    def run(rows: list[int]) -> list[float]:
        weights = OnlineWeights(rows, universe=8, queries=5, rho=1, updates=3, threshold=4)
        return [weights.ask(np.arange(8) > k).value for k in (1, 3, 5) if weights.left]

    rows = [0] * 40 + [7] * 20
    assert replay(run, rows, [1, *rows[1:]]) == []
    assert replay(run, rows, [7, *rows[1:]]) == []


def test_steps_that_follow_released_numbers_are_no_fault_of_noise_and_others_are() -> None:
    vector = LaplaceMechanism(sensitivity=1, epsilon=1)
    toss = iter([1, 2] * 20)

    def adaptive(rows: list[int]) -> list[int]:
        first = vector.release(len(rows))
        return [first] + [vector.release(0) for _ in range(abs(first) % 7)]

    assert fresh(adaptive, [1] * 50, runs=16) == []

    def of_many_shapes(rows: list[int]) -> list[int]:
        more = next(runs)
        first = [wider.release(len(rows), bits=SeededBits(str(more))) for _ in range(2)]
        return first + [vector.release(0) for _ in range(more)]

    # No two runs have one shape: all begin with a draw and the same again.
    wider, runs = LaplaceMechanism(sensitivity=1000, epsilon="1/1000"), itertools.count()
    assert kinds(fresh(of_many_shapes, [1] * 50)) == {"reused"}
    # Two runs are only comparable up to where they released different numbers.
    still = LaplaceMechanism(sensitivity=1, epsilon=100)
    assert kinds(fresh(lambda rows: [still.release(0) for _ in range(next(toss))], [1])) == {"flow"}
    wide = [LaplaceMechanism(sensitivity=1, epsilon=1, cells=cells) for cells in (1, 2)]
    assert kinds(fresh(lambda rows: wide[(n := next(toss)) - 1].release([0] * n), [1])) == {"flow"}


def test_fresh_noise_passes_and_kept_noise_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    vector = LaplaceMechanism(sensitivity=1, epsilon=1, cells=60)
    assert fresh(vector.release, [0] * 60) == []
    planted.noise_reused(monkeypatch)
    assert kinds(fresh(vector.release, [0] * 60)) == {"reused"}


def test_records_cannot_be_copied_or_read() -> None:
    import pickle

    with recording() as records:
        count([1, 2, 3])
    assert "3" not in repr(records).replace("Recorded(1 private integers, sensitivity=1)", "")
    with pytest.raises(InternalError):
        pickle.dumps(records)


def test_recording_ends_with_its_block() -> None:
    with recording() as records:
        count([1])
    count([1])
    assert len(records) == 1
    with replaying(records) as again:
        assert count([1, 1]) == records[0].released[0]
    assert again[0].values == (2,)


def test_a_question_that_is_never_answered_is_no_audit() -> None:
    with pytest.raises(ParameterError, match="not answered"):
        audit_session(questions=["SELECT SUM(nothing) AS a FROM t"], neighbours=list(pairs(people(), "id"))[:1])


def test_neighbours_of_nothing_are_refused() -> None:
    with pytest.raises(ParameterError, match="unit = 'who'"):
        next(pairs(people(), "who"))
    with pytest.raises(ParameterError, match="no row has"):
        next(pairs(people().slice(0, 0), "id"))


@pytest.mark.parametrize("relation", BOTH)
def test_neighbours_differ_in_one_unit(relation: Any) -> None:
    for pair in pairs(people(), "id", relation=relation):
        before, after = (
            {u: sorted(repr(r) for r in t.to_pylist() if r["id"] == u) for u in set(t["id"].to_pylist()) - {None}}
            for t in (pair.d, pair.d_prime)
        )
        differing = [u for u in before.keys() | after.keys() if before.get(u) != after.get(u)]
        assert len(differing) <= (0 if pair.same else 1), pair.name
