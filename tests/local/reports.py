"""What several tests of local privacy need: small oracles, all their reports, and who supports what."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from hubbub import local
from hubbub.local.hashes import bucket
from hubbub.local.hashing import REPORT


def small_oracles(epsilon: object, k: int) -> list[local.FrequencyOracle]:
    """One of each, with so few reports that all can be listed."""
    return [
        local.DirectEncoding(epsilon, k),
        local.SymmetricUnary(epsilon, k),
        local.OptimizedUnary(epsilon, k),
        local.SubsetSelection(epsilon, k),
        local.LocalHashing(epsilon, k),
        local.LocalHashing(epsilon, k, buckets=2),
        local.HadamardResponse(epsilon, k),
        local.CountMeanSketch(epsilon, k, hashes=3, buckets=4),
        local.Rappor(epsilon, k, bloom_bits=8, cohorts=2, hashes=2),
    ]


def bit_rows(size: int) -> np.ndarray:
    """All sets of 0 .. size-1, packed."""
    return np.packbits(np.array(list(product([0, 1], repeat=size)), np.uint8), axis=1)


def all_reports(oracle: local.FrequencyOracle) -> list:
    """Every report a client may send; for local hashing, every answer under one hash (the hash is drawn beforehand)."""
    if isinstance(oracle, local.DirectEncoding):
        return list(range(oracle.size))
    if isinstance(oracle, local.HadamardResponse):
        return list(range(oracle.randomizer.rows))
    if isinstance(oracle, local.SubsetSelection):
        rows = np.zeros((0, oracle.size), np.uint8)
        for members in combinations(range(oracle.size), oracle.randomizer.width):
            row = np.zeros((1, oracle.size), np.uint8)
            row[0, list(members)] = 1
            rows = np.concatenate([rows, row])
        return list(np.packbits(rows, axis=1))
    if isinstance(oracle, local.LocalHashing):
        return [np.array((2 * 0x2E3779B97F4A7C15, 2 * 77, y), REPORT)[()] for y in range(oracle.randomizer.buckets)]
    if isinstance(oracle, local.CountMeanSketch):
        rows = bit_rows(oracle.randomizer.buckets)
        kind, numbers = oracle.randomizer.report_type, range(oracle.randomizer.hashes)
        return [np.array((j, row), kind)[()] for j in numbers for row in rows]
    if isinstance(oracle, local.Rappor):
        rows = bit_rows(oracle.randomizer.bloom_bits)
        kind, numbers = oracle.randomizer.report_type, range(oracle.randomizer.cohorts)
        return [np.array((j, row), kind)[()] for j in numbers for row in rows]
    return list(bit_rows(oracle.size))


def supports(oracle: local.FrequencyOracle, reports: np.ndarray, category: int) -> np.ndarray:
    """Which reports support a category, written out anew for every protocol."""
    if isinstance(oracle, local.DirectEncoding):
        return reports == category
    if isinstance(oracle, local.HadamardResponse):
        return np.bitwise_count(reports.astype(np.int64) & (category + 1)) % 2 == 0
    if isinstance(oracle, local.LocalHashing):
        return bucket(reports["a"], reports["b"], category, oracle.randomizer.buckets) == reports["y"]
    return (reports[:, category // 8] >> (7 - category % 8)) & 1 == 1
