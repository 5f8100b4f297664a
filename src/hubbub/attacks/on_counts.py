"""Attacks on a table of one's own that go through counts: linkage, anonymity, differencing, averaging, hashes.

Each takes the table's columns, gives a `Report`, and asks the same questions twice: exactly, and of hubbub's mechanisms
at `epsilon`. Which of them cost how much is said in the report's notes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.accounting.amounts import Number, amount
from hubbub.attacks.anonymity import Intersection, dimension_curse, intersect_counts, k_anonymity, mondrian
from hubbub.attacks.ceilings import bit_ceiling, guess_ceiling, hit_ceiling
from hubbub.attacks.differencing import average, averaging_repeats, difference
from hubbub.attacks.hashes import Format, reverse_hashes
from hubbub.attacks.inputs import Integers, chosen, codes, columns_of, table_shape
from hubbub.attacks.linkage import secrets_from_counts, uniqueness
from hubbub.attacks.report import Finding, Report, column, has_value
from hubbub.errors import ParameterError
from hubbub.mechanisms import KaryResponse, LaplaceMechanism
from hubbub.noise import Bits

__all__ = ["anonymity", "averaging", "differencing", "hashes", "linkage"]

_MOST_DRAWS = 2_000_000


def linkage(
    table: Mapping[str, Any], columns: Sequence[str], secret: str, *, epsilon: Number, bits: Bits | None = None
) -> Report:
    """Who is alone in `columns`, and whose `secret` the counts of columns by secret give away."""
    alone = uniqueness(table, columns)
    exact = secrets_from_counts(table, columns, secret)
    private = secrets_from_counts(table, columns, secret, epsilon=epsilon, bits=bits)
    return Report(
        (
            Finding("people alone in these columns", alone.success),
            Finding(f"{secret}: known beyond doubt", exact.certain),
            Finding(f"{secret}: guessed rightly", exact.success, private.success, private.ceiling(epsilon)),
            Finding(
                "could be guessed just as well if the person were not in the data", exact.baseline, private.baseline
            ),
        ),
        (
            f"{alone.people:,} people in {alone.occupied:,} combinations of {', '.join(columns)}.",
            "Private counts: one histogram of columns by secret. The outsider knows everybody's columns.",
        ),
        exact,
    )


def anonymity(
    table: Mapping[str, Any],
    columns: Sequence[str],
    secret: str,
    *,
    epsilon: Number,
    k: int = 5,
    bits: Bits | None = None,
) -> Report:
    """How anonymous the table is, and what two k-anonymous releases of overlapping halves give away together.

    Two random samples of two thirds of the rows are each made k-anonymous; targets are in both.
    """
    anonymous, curse = k_anonymity(table, columns, secret), dimension_curse(table, columns)
    points = np.stack(columns_of(table, columns), axis=1)
    truth = codes(table[secret])
    targets, exact, places = _two_releases(points, truth, k, bits)
    noise = [LaplaceMechanism(sensitivity=1, epsilon=amount(epsilon, "epsilon") / 2, cells=c.size) for c in exact]
    private = [np.asarray(m.release(c.ravel(), bits=bits)).reshape(c.shape) for m, c in zip(noise, exact, strict=True)]
    both, noisy = (intersect_counts(counts, places, truth[targets]) for counts in (exact, private))
    baseline = _without_own(private, places, truth[targets]).success
    return Report(
        (
            Finding("k: people in the smallest class", anonymous.k),
            Finding("l: secrets in the least diverse class", anonymous.l),
            Finding("people alone in these columns", curse.success),
            Finding("people in a class with one secret", anonymous.exposed),
            Finding(f"two {k}-anonymous releases: one secret left", both.pinned),
            Finding("two releases: guessed rightly", both.success, noisy.success, hit_ceiling(baseline, epsilon)),
        ),
        (
            f"{len(truth):,} people; {len(targets):,} of them are in both releases.",
            "Private releases: the counts of class by secret, half of epsilon each, classes as they are.",
        ),
        curse,
    )


def _two_releases(
    points: Any, truth: Integers, k: int, bits: Bits | None
) -> tuple[Integers, list[Integers], list[Integers]]:
    """Who is in both samples; each sample's counts of class by secret; and the targets' class in each."""
    n = len(truth)
    samples = [np.sort(chosen(n, 2 * n // 3, bits)) for _ in range(2)]
    targets = np.intersect1d(samples[0], samples[1])
    if not len(targets):
        raise ParameterError(f"{n} rows are too few for two samples that overlap; give more.")
    released, places = [], []
    for rows in samples:
        classes = mondrian(points[rows], k)
        counts = np.zeros(table_shape(int(classes.max()) + 1, int(truth.max()) + 1), np.int64)
        np.add.at(counts, (classes, truth[rows]), 1)
        released.append(counts)
        places.append(classes[np.searchsorted(rows, targets)])
    return targets, released, places


def _without_own(counts: Sequence[Any], places: Sequence[Integers], truth: Integers) -> Intersection:
    """What would be guessed had each target been in neither release."""
    each, rows = np.arange(len(truth)), []
    for table, classes in zip(counts, places, strict=True):
        without = np.array(table[classes])
        without[each, truth] -= 1
        rows.append(without)
    return intersect_counts(rows, [each] * len(rows), truth)


def differencing(
    table: Mapping[str, Any],
    columns: Sequence[str],
    secret: str,
    value: str | None = None,
    *,
    epsilon: Number,
    bits: Bits | None = None,
) -> Report:
    """Everybody who is alone in `columns`, attacked by "how many have it?" and "how many others have it?"."""
    truth = has_value(table, secret, value)
    targets = np.flatnonzero(uniqueness(table, columns).sizes == 1)
    if not len(targets):
        raise ParameterError("nobody is alone in these columns, so nobody can be left out by name; give more columns.")
    bit, total = truth[targets].astype(np.int64), int(truth.sum())
    noise = LaplaceMechanism(sensitivity=1, epsilon=epsilon, cells=len(targets))
    everybody = np.full(len(targets), total)
    exact = difference(everybody, total - bit, bit)
    private = difference(noise.release(everybody, bits=bits), noise.release(total - bit, bits=bits), bit)
    blind = max(float(bit.mean()), 1 - float(bit.mean()))
    ceiling = guess_ceiling(blind, epsilon)
    return Report(
        (
            Finding("people who can be left out by name", len(targets) / len(truth)),
            Finding(f"{secret}: told rightly", exact.success, private.success, ceiling),
            Finding("a blind guess of the commoner answer", blind, blind),
        ),
        ("Two counts for each target; each private count costs epsilon. Only one of them is about the target.",),
        exact,
    )


def averaging(table: Mapping[str, Any], name: str, *, epsilon: Number, bits: Bits | None = None) -> Report:
    """The exact counts of a column's values, from 31/epsilon^2 draws each and from one stored answer."""
    counts = np.bincount(codes(column(table, name)))
    repeats = averaging_repeats(epsilon)
    shown = counts[: max(1, _MOST_DRAWS // repeats)]
    if repeats > _MOST_DRAWS:
        raise ParameterError(f"epsilon = {epsilon} was asked, which takes {repeats:,} draws; give at least 0.004.")
    noise = LaplaceMechanism(sensitivity=1, epsilon=epsilon, cells=len(shown) * repeats)
    draws = noise.release(np.repeat(shown, repeats), bits=bits).reshape(len(shown), repeats)
    fresh, stored = average(draws, shown), average(draws[:, :1], shown)
    paid = repeats * amount(epsilon, "epsilon")
    return Report(
        (
            Finding("exact counts, asking once", 1.0, stored.success, bit_ceiling(epsilon)),
            Finding(f"exact counts, asking {repeats:,} times", 1.0, stored.success, bit_ceiling(epsilon)),
            Finding(f"exact counts, {repeats:,} fresh draws paid for", 1.0, fresh.success, bit_ceiling(paid)),
        ),
        (
            f"{len(shown):,} counts of {name}. The same question again gets the stored answer, at no cost.",
            f"Fresh draws cost epsilon {float(paid):g} in all; a ledger refuses them when its budget is spent.",
        ),
        fresh,
    )


def hashes(
    table: Mapping[str, Any],
    name: str,
    patterns: Sequence[str],
    *,
    algorithm: str = "md5",
    epsilon: Number,
    bits: Bits | None = None,
) -> Report:
    """Reverses a column of hashes; values that are not hashes are hashed first, as a publisher would."""
    size = 2 * hashlib.new(algorithm).digest_size
    values = sorted({str(v) for v in np.asarray(column(table, name)).tolist() if v is not None})
    hashed = all(len(v) == size and set(v.lower()) <= set("0123456789abcdef") for v in values)
    given = values if hashed else [hashlib.new(algorithm, v.encode()).hexdigest() for v in values]
    reversal = reverse_hashes(given, [Format(p) for p in patterns], algorithm=algorithm)
    reports = KaryResponse(categories=reversal.tried, epsilon=epsilon).release(np.zeros(len(values), int), bits=bits)
    return Report(
        (Finding("identifiers found", reversal.success, float((reports == 0).mean()), reversal.ceiling(epsilon)),),
        (
            f"{len(values):,} different {'hashes' if hashed else f'values, put under {algorithm} here'}; "
            f"{reversal.tried:,} identifiers tried.",
            "Private: each identifier goes through k-ary randomised response over all of them.",
        ),
        reversal,
    )
