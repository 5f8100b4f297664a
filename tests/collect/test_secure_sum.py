"""Secure sums: exact but for the noise, whoever drops out; uniform to the server; private for who is honest."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hubbub import accounting as acc
from hubbub.collect import SecureSum, SumClient, SumServer, simulate_secure_sum
from hubbub.collect.secure_sum import masked, stream
from hubbub.collect.shamir import PRIME, joined, split, weights_at_zero
from hubbub.errors import ParameterError, PolicyError, QueryError
from hubbub.noise import DiscreteLaplace, Polya
from seeded import SeededBits

VALUES = [[i, 2 * i] for i in range(6)]


def quiet(**options: Any) -> SecureSum:
    """Six clients at an epsilon so large that the noise is 0 but with probability below e^-1000."""
    settings: dict[str, Any] = {
        "clients": 6,
        "threshold": 4,
        "colluders": 1,
        "cells": 2,
        "largest": 10,
        "epsilon": 10**6,
    }
    return SecureSum(**{**settings, **options})


@pytest.mark.parametrize("gone", [c for k in range(3) for c in itertools.combinations(range(1, 7), k)], ids=str)
def test_the_sum_is_exact_with_any_drop_outs_down_to_the_threshold(gone: tuple[int, ...]) -> None:
    for rounds in itertools.product((1, 2, 3, 4), repeat=len(gone)):
        if len(gone) == 2 and rounds[0] + rounds[1] not in (3, 5, 7):
            continue
        dropped = dict(zip(gone, rounds, strict=True))
        found = simulate_secure_sum(quiet(), VALUES, dropped=dropped)
        counted = [v for i, v in enumerate(VALUES, 1) if dropped.get(i, 4) == 4]
        assert found.values == tuple(sum(column) for column in zip(*counted, strict=True))
        assert found.reports == len(counted)
        assert found.law == Polya(Fraction(20, 10**6), Fraction(len(counted), 3))


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_below_the_threshold_there_is_no_sum(step: int) -> None:
    with pytest.raises(PolicyError, match="there is no sum"):
        simulate_secure_sum(quiet(), VALUES, dropped={1: step, 3: step, 5: step})


def test_what_the_server_sees_depends_on_the_sum_alone() -> None:
    """Exhaustively, three clients modulo 5: masked numbers and revealed own masks, over all masks."""
    laws = {}
    for x in itertools.product(range(5), repeat=3):
        view: Counter[tuple[int, ...]] = Counter()
        for one, two, three in itertools.product(range(5), repeat=3):
            pairs = [{2: one, 3: two}, {1: one, 3: three}, {1: two, 2: three}]
            view[tuple(masked(x[i], 0, pairs[i], i + 1) % 5 for i in range(3))] += 1
        laws.setdefault(sum(x) % 5, set()).add(frozenset(view.items()))
        for pair in itertools.combinations(range(3), 2):
            seen: Counter[tuple[int, ...]] = Counter()
            for y, times in view.items():
                seen[tuple(y[i] for i in pair)] += times
            assert set(seen.values()) == {5}
            assert len(seen) == 25
    assert all(len(found) == 1 for found in laws.values())
    assert len(set().union(*laws.values())) == 5


def test_one_client_s_own_mask_hides_it_where_its_key_was_revealed_wrongly() -> None:
    """All pairwise masks known, the own one not: uniform, modulo 5."""
    for x in range(5):
        assert {masked(x, own, {2: 3, 3: 1}, 1) % 5 for own in range(5)} == set(range(5))


def test_a_masked_input_is_uniform_over_64_bits() -> None:
    """4,000 first words of one client's masked zeros, top byte: chi-square, false alarm 1e-9."""
    top = []
    for _ in range(20):
        plan = SecureSum(clients=2, threshold=2, colluders=0, cells=200, epsilon=1)
        clients = [SumClient(plan, i, np.zeros(200, np.int64)) for i in (1, 2)]
        keys = {c.place: c.advertise() for c in clients}
        boxes = {c.place: c.share(keys) for c in clients}
        top += [int(v >> np.uint64(56)) for v in clients[0].mask({2: boxes[2][1]})]
    counts = np.bincount(top, minlength=256)
    assert ((counts - 4000 / 256) ** 2 / (4000 / 256)).sum() < 408


def test_the_noise_of_exactly_h_clients_is_discrete_laplace() -> None:
    plan = SecureSum(clients=9, threshold=5, colluders=2, epsilon="1/3")
    x = np.arange(-200, 201)
    assert plan.error(3) == Polya(3, 1)
    assert np.abs(plan.error(3).pmf(x) - DiscreteLaplace(3).pmf(x)).max() < 1e-13


@pytest.mark.parametrize(("clients", "threshold", "colluders", "gone"), [(3, 3, 0, {}), (5, 3, 1, {2: 3})])
def test_the_noise_in_a_sum_has_the_law_for_those_who_came(
    clients: int, threshold: int, colluders: int, gone: dict[int, int]
) -> None:
    """Clients who leave take their noise along: 40 sums of 40 cells, chi-square over 12 bins, false alarm 1e-9."""
    from scipy.stats import chi2

    plan = SecureSum(clients=clients, threshold=threshold, colluders=colluders, cells=40, epsilon=40)
    bits, errors, truth = SeededBits(f"sums {clients}"), [], clients - len(gone)
    for _ in range(40):
        found = simulate_secure_sum(plan, [[1] * 40] * clients, dropped=gone, bits=bits)
        errors += [v - truth for v in found.values]
    law = plan.error(truth)
    assert found.law == law
    edges = np.arange(-5, 6)
    counts = np.bincount(np.searchsorted(edges, errors, "left"), minlength=12)
    expected = np.diff([0, *law.cdf(edges), 1]) * len(errors)
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 11) > 1e-9


@pytest.mark.parametrize("n", [10, 100])
def test_m3_distributed_error_is_the_central_one_within_three_percent(n: int) -> None:
    """The third curve: 120,000 or 12,000 sums of every client's share; a standard error is .3 or 1 %, bits fixed."""
    runs = 1_200_000 // n
    draws = SecureSum(clients=n, threshold=n, colluders=0, epsilon=1).share.sample(
        (n, runs), bits=SeededBits(f"m3 {n}")
    )
    assert np.sqrt(np.mean(draws.sum(axis=0) ** 2.0) / DiscreteLaplace(1).variance) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(("threshold", "colluders"), [(10, 0), (10, 3), (7, 6)])
def test_the_loss_stays_with_colluders_and_with_more_clients_than_needed(threshold: int, colluders: int) -> None:
    """Of the honest clients that came at least h added noise: worst log ratio of its law at distance D1."""
    plan = SecureSum(clients=12, threshold=threshold, colluders=colluders, epsilon="1/2", largest=2)
    x = np.arange(-60, 61)
    for came in range(threshold, 13):
        law = Polya(plan.scale, Fraction(came - colluders, plan.honest))
        losses = np.abs(np.log(law.pmf(x)) - np.log(law.pmf(x + 2)))
        assert losses.max() <= 0.5 + 1e-9
        assert came > threshold or losses.max() == pytest.approx(0.5, abs=1e-9)
    assert acc.cost(plan.loss).epsilon == Fraction(1, 2)


def test_shares_for_all_clients_would_not_survive_a_drop_out() -> None:
    """Why h and not n: with shares of 1/12 and 10 present, the loss exceeds epsilon."""
    x = np.arange(0, 60)
    law = Polya(4, Fraction(10, 12))
    assert (np.log(law.pmf(x)) - np.log(law.pmf(x + 2))).max() > 0.55


def test_shamir_gives_the_secret_to_the_threshold_and_nothing_below() -> None:
    secret = bytes(range(32))
    shares = split(secret, range(1, 8), 4, bits=SeededBits("shamir"))
    for chosen in itertools.combinations(shares, 4):
        assert joined({i: shares[i] for i in chosen}, weights_at_zero(chosen)) == secret
    # Three shares fit any secret: there is a polynomial of degree 3 through them and any value at 0.
    weights = weights_at_zero((1, 2, 3, 4))
    known = sum(int.from_bytes(shares[i], "little") * weights[i] for i in (1, 2, 3))
    for other in (0, 12345):
        fourth = (other - known) * pow(weights[4], -1, PRIME) % PRIME
        forged = {**shares, 4: fourth.to_bytes(66, "little")}
        assert joined({i: forged[i] for i in weights}, weights) == other.to_bytes(32, "little")


def _at_round(step: int) -> tuple[SumServer, dict[int, SumClient]]:
    plan = quiet()
    clients = {i: SumClient(plan, i, v) for i, v in enumerate(VALUES, 1)}  # type: ignore[arg-type]
    server = SumServer(plan, {i: c.advertise() for i, c in clients.items()})
    if step > 2:
        server.boxes = {i: c.share(server.keys) for i, c in clients.items()}
    if step > 3:
        server.inputs = {i: c.mask(server.boxes_for(i)) for i, c in clients.items() if i != 6}
        clients[6].mask(server.boxes_for(6))
    return server, clients


def test_a_client_answers_each_round_once() -> None:
    server, clients = _at_round(4)
    clients[1].unmask(server.present)
    for again in (lambda: clients[1].unmask([1, 2, 3, 4, 6]), lambda: clients[1].mask(server.boxes_for(1)),
                  lambda: clients[1].share(server.keys), lambda: clients[1].advertise()):  # fmt: skip
        with pytest.raises(PolicyError, match="once"):
            again()


def test_a_client_refuses_lists_that_cannot_be() -> None:
    server, clients = _at_round(2)
    with pytest.raises(PolicyError, match="own"):
        clients[1].share({**server.keys, 1: server.keys[2]})
    with pytest.raises(PolicyError, match="own"):
        clients[1].share({**server.keys, 3: server.keys[2]})
    with pytest.raises(PolicyError, match="number"):
        clients[1].share({**server.keys, 9: (bytes(32), bytes(31))})
    server, clients = _at_round(3)
    boxes = server.boxes_for(1)
    with pytest.raises(PolicyError, match="box of client 2"):
        clients[1].mask({**boxes, 2: boxes[3]})
    server, clients = _at_round(4)
    with pytest.raises(PolicyError, match="no sum"):
        clients[1].unmask([1, 2, 3])
    with pytest.raises(PolicyError, match="number"):
        clients[1].unmask([1, 2, 3, 4, 77])


def test_false_and_missing_shares_are_seen() -> None:
    server, clients = _at_round(4)
    shares = {i: clients[i].unmask(server.present) for i in server.present}
    assert server.total(shares).values == (10, 20)
    lying = {**shares, 1: {**shares[1], 6: shares[1][5]}}
    with pytest.raises(PolicyError, match="false one"):
        server.total(lying)
    missing = {**shares, 2: {k: v for k, v in shares[2].items() if k != 4}}
    with pytest.raises(PolicyError, match="no share of client 4"):
        server.total(missing)
    with pytest.raises(PolicyError, match="no sum"):
        server.total({i: shares[i] for i in (1, 2, 3)})


@pytest.mark.parametrize(
    "options",
    [{"clients": 1}, {"threshold": 7}, {"threshold": 1}, {"colluders": 4}, {"epsilon": 0}, {"cells": 0},
     {"one_hot": True}, {"largest": 2**41}, {"epsilon": Fraction(1, 2**40)}, {"clients": 2**15}],
    ids=str,
)  # fmt: skip
def test_what_is_no_plan_is_refused(options: Any) -> None:
    with pytest.raises(ParameterError):
        quiet(**options)


@pytest.mark.parametrize("values", [[1], [1, 11], [-1, 0], ["a", "b"], [0.5, 1], None])
def test_numbers_that_are_not_as_declared_stay_on_the_device(values: Any) -> None:
    with pytest.raises(QueryError):
        SumClient(quiet(), 1, values)


def test_one_hot_costs_two_and_is_checked_on_the_device() -> None:
    plan = SecureSum(clients=3, threshold=3, colluders=1, cells=5, one_hot=True, epsilon=1)
    assert plan.scale == 2
    with pytest.raises(QueryError):
        SumClient(plan, 1, [1, 1, 0, 0, 0])  # type: ignore[arg-type]
    assert stream(bytes(32), 3).tolist() != stream(bytes([1]) + bytes(31), 3).tolist()
