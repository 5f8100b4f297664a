"""Junction trees against enumeration, the fit against its optimality conditions, rounding against its bounds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.synthesis.graphical import JunctionTree, Target, cliques_of, estimate, grow
from hubbub.synthesis.parts import cut, projected
from hubbub.synthesis.residuals import project
from hubbub.synthesis.sampling import draw_records, refine, systematic
from seeded import SeededBits

SIZES = (2, 3, 2, 4, 3)
CYCLE = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)]


def random_tables(seed: int, edges: list[tuple[int, ...]]) -> dict[tuple[int, ...], NDArray[np.float64]]:
    generator = np.random.Generator(np.random.PCG64(seed))
    return {e: generator.normal(size=[SIZES[a] for a in e]) for e in edges}


def joint_of(tables: dict[tuple[int, ...], NDArray[np.float64]]) -> NDArray[np.float64]:
    logs = np.zeros(SIZES)
    for columns, table in tables.items():
        logs = logs + table.reshape([SIZES[a] if a in columns else 1 for a in range(len(SIZES))])
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum())


def marginal_of(joint: NDArray[np.float64], columns: tuple[int, ...]) -> NDArray[np.float64]:
    return np.asarray(joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in columns)))


@pytest.mark.parametrize("seed", range(5))
def test_beliefs_and_the_normaliser_equal_those_of_enumeration(seed: int) -> None:
    tables = random_tables(seed, CYCLE)
    tree = JunctionTree.of(CYCLE, SIZES)
    potentials = [np.zeros(tree.shape(i)) for i in range(len(tree.cliques))]
    for columns, table in tables.items():
        home = tree.home(columns)
        assert home is not None
        potentials[home] += tree.spread(table, columns, home)
    log_z, beliefs = tree.beliefs(potentials)
    joint = joint_of(tables)
    for clique, belief in zip(tree.cliques, beliefs, strict=True):
        assert belief == pytest.approx(marginal_of(joint, clique), abs=1e-12)
    logs = sum(t.reshape([SIZES[a] if a in c else 1 for a in range(5)]) for c, t in tables.items())
    assert log_z == pytest.approx(math.log(np.exp(logs).sum()), abs=1e-10)


def test_what_one_clique_makes_likely_and_the_next_forbids_is_not_lost_to_underflow() -> None:
    """Against enumeration in logarithms: potentials thousands apart, and cells that are impossible."""
    sizes, edges = (2, 2, 3), [(0, 1), (1, 2)]
    generator = np.random.Generator(np.random.PCG64(2))
    for _ in range(50):
        tables = [generator.choice([-5000.0, -1000.0, 0.0, 3000.0], (sizes[a], sizes[b])) for a, b in edges]
        tables = [np.where(generator.random(t.shape) < 0.3, -math.inf, t) for t in tables]
        tree = JunctionTree.of(edges, sizes)
        logs = tables[0][:, :, None] + tables[1][None, :, :]
        potentials = [tables[edges.index(clique)] for clique in tree.cliques]
        if logs.max() == -math.inf:
            with pytest.raises(ParameterError, match="no record at all"):
                tree.beliefs(potentials)
            continue
        log_z, beliefs = tree.beliefs(potentials)
        weights = np.exp(logs - logs.max())
        assert log_z == pytest.approx(math.log(weights.sum()) + logs.max(), abs=1e-9)
        for clique, belief in zip(tree.cliques, beliefs, strict=True):
            assert belief == pytest.approx(marginal_of(weights / weights.sum(), clique), abs=1e-12)


@pytest.mark.parametrize("edges", [CYCLE, [(0, 1), (1, 2), (2, 3), (3, 4)], [(0, 1), (3, 4)], []])
def test_marginals_across_cliques_equal_those_of_enumeration(edges: list[tuple[int, ...]]) -> None:
    singles = [(a,) for a in range(5)]
    joint = joint_of(random_tables(7, [*edges, *singles]))
    tree = JunctionTree.of(edges, SIZES)
    targets = [Target(c, marginal_of(joint, c), 1e-6) for c in [*edges, *singles]]
    model = estimate(tree, targets, [marginal_of(joint, (a,)) for a in range(5)], iterations=2000)
    for k in (1, 2, 3):
        for columns in itertools.combinations(range(5), k):
            assert model.marginal(columns) == pytest.approx(marginal_of(joint, columns), abs=2e-4)


def test_separators_are_shared_with_the_parent_and_cliques_run_on() -> None:
    tree = JunctionTree.of(CYCLE, SIZES)
    seen: set[int] = set(tree.cliques[0])
    for i in range(1, len(tree.cliques)):
        assert set(tree.separators[i]) == set(tree.cliques[i]) & seen
        assert set(tree.separators[i]) <= set(tree.cliques[tree.parents[i]])
        seen |= set(tree.cliques[i])
    for a, b in CYCLE:
        assert any({a, b} <= set(c) for c in tree.cliques)


def test_the_fit_meets_its_optimality_conditions() -> None:
    joint = joint_of(random_tables(3, CYCLE))
    generator = np.random.Generator(np.random.PCG64(9))
    targets = []
    for columns in CYCLE:
        shares = marginal_of(joint, columns)
        targets.append(Target(columns, shares + generator.normal(size=shares.shape) * 0.01, 0.01))
    noisy = project(marginal_of(joint, (1, 4)) + generator.normal(size=(3, 3)) * 0.02)
    targets.append(Target((1, 4), noisy, 0.02, centred=True))
    tree = JunctionTree.of([*CYCLE, (1, 4)], SIZES)
    model = estimate(tree, targets, [np.full(n, 1 / n) for n in SIZES], iterations=2000)
    for t in targets:
        mu, theta = model.marginal(t.columns), model.theta[t.columns, t.centred]
        seen = project(mu) if t.centred else mu
        assert seen - t.shares + t.deviation * theta == pytest.approx(np.zeros_like(mu), abs=1e-5)
    assert project(model.theta[(1, 4), True]) == pytest.approx(model.theta[(1, 4), True], abs=1e-9)


def test_a_better_measured_marginal_is_followed_more_closely() -> None:
    tree = JunctionTree.of([(0,)], (2,))
    base = [np.array([0.5, 0.5])]
    gaps = []
    for deviation in (1.0, 0.1, 0.001):
        model = estimate(tree, [Target((0,), np.array([0.9, 0.1]), deviation)], base)
        gaps.append(abs(float(model.marginal((0,))[0]) - 0.9))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.01


def test_masked_cells_have_no_mass_and_impossible_models_are_refused() -> None:
    tree = JunctionTree.of([(0, 1), (1, 2)], (2, 3, 2))
    mask = np.array([[True, False, True], [True, True, True]])
    base = [np.full(n, 1 / n) for n in (2, 3, 2)]
    targets = [Target((1, 2), np.full((3, 2), 1 / 6), 0.01)]
    model = estimate(tree, targets, base, masks={(0, 1): mask})
    assert model.marginal((0, 1))[0, 1] == 0
    assert model.marginal((1, 2)) == pytest.approx(np.full((3, 2), 1 / 6), abs=0.02)
    both = {(0,): np.array([True, False]), (0, 1): np.array([[False] * 3, [True] * 3])}
    with pytest.raises(ParameterError, match="no record at all"):
        estimate(tree, targets, base, masks=both)


def test_growing_keeps_cliques_small_and_says_what_is_left_out() -> None:
    wanted = list(itertools.combinations(range(6), 2))
    taken, left = grow(wanted, [10] * 6, cells=1000)
    assert sorted(taken + left) == wanted
    assert left
    assert max(math.prod(10 for _ in c) for c in cliques_of(taken, [10] * 6)) <= 1000


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda p: sum(p) > 0),
    st.integers(0, 1000),
    st.floats(0, 1, exclude_max=True),
)
@settings(max_examples=300, deadline=None)
def test_systematic_rounding_is_within_one_and_gives_nothing_to_the_impossible(
    shares: list[float], total: int, start: float
) -> None:
    weights = np.array(shares)
    counts = systematic(weights, total, start)
    assert counts.sum() == total
    assert (counts[weights == 0] == 0).all()
    assert np.abs(counts - total * weights / weights.sum()).max() <= 1 + 1e-6


def test_records_follow_the_model_s_marginals_within_rounding() -> None:
    joint = joint_of(random_tables(1, CYCLE))
    tree = JunctionTree.of(CYCLE, SIZES)
    model = estimate(
        tree,
        [Target(c, marginal_of(joint, c), 1e-4) for c in CYCLE],
        [np.full(n, 1 / n) for n in SIZES],
        iterations=500,
    )
    n = 5000
    records = draw_records(model, n, bits=SeededBits("records"))
    for i, clique in enumerate(tree.cliques):
        flat = np.ravel_multi_index(tuple(records[:, a] for a in clique), tree.shape(i))
        counts = np.bincount(flat, minlength=model.tables[i].size).reshape(tree.shape(i))
        # Each clique adds a rounding of at most 1 per cell to those above it.
        assert np.abs(counts - n * model.tables[i]).max() <= 3 * len(tree.cliques)
    assert draw_records(model, 0).shape == (0, 5)


def test_values_within_parts_follow_their_shares() -> None:
    parts, shares = np.array([0, 0, 1, 2, 2]), np.array([0.1, 0.3, 0.2, 0.0, 0.0])
    coarse = np.repeat([0, 1, 2], [400, 10, 50])
    values = refine(coarse, parts, shares, bits=SeededBits("parts"))
    assert np.array_equal(parts[values], coarse)
    assert np.bincount(values, minlength=5).tolist() == pytest.approx([100, 300, 10, 25, 25], abs=1)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=40), st.integers(1, 12), st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_parts_are_numbered_and_never_join_classes(mass: list[float], parts: int, seed: int) -> None:
    classes = np.random.Generator(np.random.PCG64(seed)).integers(0, 3, len(mass))
    # Classes are contiguous from 0, as `Constraint.classes` makes them.
    classes = np.unique(classes, return_inverse=True)[1]
    found = cut(np.array(mass), parts, classes)
    assert sorted(set(found.tolist())) == list(range(found.max() + 1))
    for part in range(found.max() + 1):
        assert len(set(classes[found == part].tolist())) == 1


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20), st.floats(0.1, 1000))
@settings(max_examples=200, deadline=None)
def test_projection_is_the_nearest_point_of_the_simplex(counts: list[float], total: float) -> None:
    values = np.array(counts)
    found = projected(values, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, rel=1e-9)
    # Optimality: where there is mass the shift is the same, elsewhere it is not a smaller.
    shift = values - found
    assert shift[found > 0] == pytest.approx(np.full(int((found > 0).sum()), shift[found > 0][0]), abs=1e-6)
    assert (shift[found == 0] <= shift[found > 0][0] + 1e-6).all()
