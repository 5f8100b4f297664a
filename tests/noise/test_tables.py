"""The tables, bit by bit: every step against 400-bit arithmetic, every 16-bit prefix, every refinement."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from hubbub.noise import DiscreteGaussian, DiscreteLaplace, Geometric
from hubbub.noise.certified import exp_bounds
from hubbub.noise.steps import BlockSteps, GaussianSteps, LaplaceSteps, Steps
from hubbub.noise.tables import GaussianTable, InverseTable, LaplaceTable, PlainTable, gaussian_table, laplace_table
from seeded import ReplayBits, SeededBits

LAPLACE = [Fraction(1, 10**9), Fraction(1, 10), Fraction(1), Fraction(22, 7), Fraction(10), Fraction(1279, 10)]
WIDE = [Fraction(128), Fraction(100001, 3), Fraction(10**9), Fraction(2**53)]
SQUARES = [Fraction(1, 10**18), Fraction(1, 100), Fraction(1), Fraction(50, 3), Fraction(10**4), Fraction(299**2)]
WIDE_SQUARES = [Fraction(90000), Fraction(10**7, 7), Fraction(10**18), Fraction(2**106)]


def _mp(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def _high(scale: Fraction) -> tuple[Fraction, int]:
    table = laplace_table(scale, two_sided=True)
    digits = table.digits if isinstance(table, LaplaceTable) else 0
    return scale / (1 << digits), digits


def _laplace_truth(scale: Fraction, two_sided: bool, steps: Steps) -> list[mpmath.mpf]:
    high, _ = _high(scale)
    q, ratio = mpmath.exp(-1 / _mp(scale)), mpmath.exp(-1 / _mp(high))
    symbols = range(steps.first, steps.first + len(steps.values))
    if not two_sided:
        return [1 - ratio ** (h + 1) for h in symbols]
    return [q / (1 + q) * ratio ** (-1 - h) if h < 0 else 1 - ratio ** (h + 1) / (1 + q) for h in symbols]


def _gaussian_truth(s: Fraction, digits: int, steps: Steps) -> list[mpmath.mpf]:
    """Cumulative shares over a range 1.5 times as wide as the table's."""
    extra = len(steps.values) // 4 + 40
    symbols = range(steps.first - extra, steps.first + len(steps.values) + extra)
    width = 1 << digits
    near = [h * width if h >= 0 else -(h * width + width - 1) for h in symbols]
    masses = [mpmath.exp(-(mpmath.mpf(m) ** 2) / (2 * _mp(s))) for m in near]
    total, running, shares = mpmath.fsum(masses), mpmath.mpf(0), []
    for mass in masses:
        running += mass
        shares.append(running / total)
    return shares[extra : extra + len(steps.values)]


def _audit(steps: Steps, truth: list[mpmath.mpf], precision: int) -> None:
    assert len(steps.values) == len(truth)
    for value, share in zip(steps.values, truth, strict=True):
        assert abs(value - mpmath.ldexp(share, precision)) <= steps.error
    assert mpmath.ldexp(truth[0], precision) < 1
    assert mpmath.ldexp(1 - truth[-1], precision) < 1


def _as_built(table: InverseTable) -> Steps:
    """The steps that the table came from; near-dyadic ones need more than 96 bits."""
    return next(s for s in map(table.steps, (96, 160, 224)) if table.cuts.size == len(s.values))


def _audit_cuts(table: InverseTable, truth: list[mpmath.mpf]) -> None:
    for cut, share in zip(table.cuts.tolist(), truth, strict=True):
        # A share that 400 bits cannot tell from 1 lies in the last cell.
        assert cut == min(int(mpmath.floor(mpmath.ldexp(share, 64))), 2**64 - 1)


@pytest.mark.parametrize("two_sided", [True, False], ids=["laplace", "geometric"])
@pytest.mark.parametrize("scale", LAPLACE + WIDE, ids=str)
def test_every_laplace_step_agrees_with_400_bit_arithmetic(scale: Fraction, two_sided: bool) -> None:
    _, digits = _high(scale)
    steps = LaplaceSteps(scale, digits, two_sided)
    with mpmath.workprec(400):
        for precision in (96, 160):
            _audit(steps(precision), _laplace_truth(scale, two_sided, steps(precision)), precision)
        table = laplace_table(scale, two_sided=two_sided).inverse
        known = _as_built(table)
        _audit_cuts(table, _laplace_truth(scale, two_sided, known))


@pytest.mark.parametrize("s", SQUARES + WIDE_SQUARES, ids=str)
def test_every_gaussian_step_agrees_with_400_bit_arithmetic(s: Fraction) -> None:
    table = gaussian_table(s)
    digits = table.digits if isinstance(table, GaussianTable) else 0
    steps = (BlockSteps(s, digits) if digits else GaussianSteps(s))(96)
    with mpmath.workprec(400):
        _audit(steps, _gaussian_truth(s, digits, steps), 96)
        truth = _gaussian_truth(s, digits, _as_built(table.inverse))
        _audit_cuts(table.inverse, truth)


@pytest.mark.parametrize("s", [Fraction(30), Fraction(90000)], ids=str)
def test_gaussian_steps_hold_at_the_precision_of_a_refinement(s: Fraction) -> None:
    digits = 0 if s == 30 else 3
    steps = (BlockSteps(s, digits) if digits else GaussianSteps(s))(224)
    with mpmath.workprec(500):
        _audit(steps, _gaussian_truth(s, digits, steps), 224)


PLAIN = [
    (laplace_table(Fraction(1, 10), two_sided=True), DiscreteLaplace(Fraction(1, 10))),
    (laplace_table(Fraction(10), two_sided=True), DiscreteLaplace(10)),
    (laplace_table(Fraction(127), two_sided=True), DiscreteLaplace(127)),
    (laplace_table(Fraction(10), two_sided=False), Geometric(10)),
    (gaussian_table(Fraction(1)), DiscreteGaussian(1)),
    (gaussian_table(Fraction(299**2)), DiscreteGaussian(299)),
]


@pytest.mark.parametrize(("table", "law"), PLAIN, ids=[str(law) for _, law in PLAIN])
def test_all_prefixes_give_each_symbol_its_exact_share(table: PlainTable, law: DiscreteLaplace) -> None:
    """No statistics: of 2^16 prefixes, a symbol owns 2^16 p of them, less what its two border cells hold."""
    every = np.arange(1 << 16, dtype=np.uint16)
    pure = ~table.inverse.mixed
    symbols, counts = np.unique(table.inverse.symbols[pure], return_counts=True)
    deficit = law.pmf(symbols) * 65536 - counts
    assert deficit.min() > -1e-6
    assert deficit.max() < 2
    # What is drawn is what the table says, and mixed prefixes fall next to their neighbours.
    out = np.empty(every.size, np.int64)
    table.fill(out, ReplayBits(every.tobytes()))
    assert np.array_equal(out[pure], table.inverse.symbols[pure])
    assert np.all(np.diff(out) >= 0)


@pytest.mark.parametrize(("table", "law"), PLAIN, ids=[str(law) for _, law in PLAIN])
def test_the_second_step_is_monotone_and_hits_both_sides_of_each_cut(table: PlainTable, law: DiscreteLaplace) -> None:
    cuts = table.inverse.cuts.astype(object)
    gaps = np.diff(cuts)
    # Steps at least 3 units from their neighbours: all but those in the outermost tails.
    alone = 1 + np.flatnonzero((gaps[:-1] > 2) & (gaps[1:] > 2))
    assert alone.size > 0.5 * np.count_nonzero(law.pmf(table.inverse.first + np.arange(cuts.size)) > 1e-15)
    below = _finish(table.inverse, np.array(cuts[alone] - 1, np.uint64))
    above = _finish(table.inverse, np.array(cuts[alone] + 1, np.uint64))
    assert np.array_equal(below, table.inverse.first + alone)
    assert np.array_equal(above, table.inverse.first + alone + 1)


def _finish(table: InverseTable, words: np.ndarray, more: bytes = b"") -> np.ndarray:
    """The draws of uniforms whose first 64 bits are given, continued by the bytes `more`."""
    prefixes = (words >> np.uint64(48)).astype(np.uint16)
    return table.finish(prefixes, ReplayBits((words << np.uint64(16)).tobytes() + more))


@pytest.mark.parametrize(
    "steps",
    [
        LaplaceSteps(Fraction(10), 0, True),
        LaplaceSteps(Fraction(10**6), 14, True),
        LaplaceSteps(Fraction(3), 0, False),
        GaussianSteps(Fraction(7)),
        BlockSteps(Fraction(10**10), 11),
    ],
    ids=str,
)
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_a_uniform_equal_to_a_cut_is_refined_to_the_right_side(steps: LaplaceSteps, beyond: int) -> None:
    """U = floor(2^128 F(x)) + beyond, then random bits: below F gives x, above gives x + 1, equal goes on."""
    table = InverseTable.build(steps)
    wide = steps(128 + 64)
    for x in range(6):
        u = (wide.values[x - wide.first] >> 64) + beyond
        assert u >> 64 == int(table.cuts[x - table.first])
        found = _finish(table, np.array([u >> 64], np.uint64), (u & (2**64 - 1)).to_bytes(8, "little"))
        assert found[0] in ((x,) if beyond < 0 else (x + 1,) if beyond > 0 else (x, x + 1))


@pytest.mark.parametrize("low_word", [0, 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("end", [0, 2**64 - 1])
def test_the_end_cells_reach_into_the_far_tails(end: int, low_word: int) -> None:
    """U below 2^-64, or above 1 - 2^-64: |X| is then -b ln(2 U) or so, beyond every stored cut."""
    scale = Fraction(10)
    table = InverseTable.build(LaplaceSteps(scale, 0, True))
    more = low_word.to_bytes(8, "little")
    found = int(_finish(table, np.array([end], np.uint64), more)[0])
    rest = low_word if end == 0 else 2**64 - 1 - low_word
    with mpmath.workprec(300):
        q = mpmath.exp(-1 / _mp(scale))
        widest = -_mp(scale) * mpmath.log(mpmath.ldexp(rest + 1, -128) * (1 + q))
        assert abs(found) >= widest - 2
        if rest:
            assert abs(found) <= -_mp(scale) * mpmath.log(mpmath.ldexp(rest, -128) * (1 + q)) + 2
    assert (found < 0) == (end == 0)


@pytest.mark.parametrize("scale", [Fraction(128), Fraction(10**9), Fraction(2**53)], ids=str)
def test_digits_kept_at_sight_are_kept_by_the_exact_test(scale: Fraction) -> None:
    table = laplace_table(scale, two_sided=True)
    assert isinstance(table, LaplaceTable)
    least = exp_bounds(Fraction((1 << table.digits) - 1) / scale, 200)[0]
    assert table.sure << 184 <= least < (table.sure + 1) << 184
    assert 16 + table.digits <= 64  # the digits and the 16 bits of the test come from one word


@pytest.mark.parametrize("s", WIDE_SQUARES, ids=str)
def test_points_kept_at_sight_are_kept_by_the_exact_test(s: Fraction) -> None:
    table = gaussian_table(s)
    assert isinstance(table, GaussianTable)
    width = 1 << table.digits
    assert 16 + table.digits <= 64
    seen = set()
    for packed, mixed in zip(table.packed.tolist(), table.inverse.mixed.tolist(), strict=True):
        block, sure = packed >> 16, packed & 0xFFFF
        if mixed:
            assert sure == 0
            continue
        if block in seen:
            continue
        seen.add(block)
        ends = sorted((abs(block * width), abs(block * width + width - 1)))
        least = exp_bounds(Fraction(ends[1] ** 2 - ends[0] ** 2) / (2 * s), 200)[0]
        assert sure << 184 <= least < (sure + 2) << 184
    assert len(seen) > 100


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(100)], ids=str)
def test_adjacent_probabilities_differ_by_exp_epsilon_at_most(scale: Fraction) -> None:
    """P(X = x) <= e^(1/b) P(X = x +- 1), from integer masses: exact up to the stated error of the steps."""
    precision = 400
    steps = LaplaceSteps(scale, 0, True)(precision)
    masses = np.diff(np.array(steps.values, dtype=object))
    q = exp_bounds(1 / scale, precision)[0]
    slack = 8 * steps.error
    for here, there in pairwise(masses):
        assert here * q >> precision <= there + slack
        assert there * q >> precision <= here + slack


def test_the_split_draws_the_sign_with_q_itself() -> None:
    """With Q = q^(2^w) in its place, X < 0 would have probability Q/(1+Q), 1 % less than q/(1+q) here."""
    scale = Fraction(128)
    table = laplace_table(scale, two_sided=True)
    out = np.empty(4_000_000, np.int64)
    table.fill(out, SeededBits("sign"))
    q = float(np.exp(-1 / 128))
    mean = q / (1 + q)
    # n = 4e6; six and a half standard deviations, false alarm below 1e-10.
    assert abs((out < 0).mean() - mean) < 6.5 * 0.5 / 2000


def test_narrow_and_wide_tables_store_what_fits() -> None:
    assert laplace_table(Fraction(1), two_sided=True).values.dtype == np.int16
    assert isinstance(laplace_table(Fraction(128), two_sided=True), LaplaceTable)
    assert isinstance(laplace_table(Fraction(128) - Fraction(1, 1000), two_sided=True), PlainTable)
    assert isinstance(gaussian_table(Fraction(90000) - Fraction(1, 1000)), PlainTable)


@pytest.mark.parametrize(("offset", "word", "symbol"), [(1, 0, 0), (-1, 2**64 - 1, 1)])
@pytest.mark.parametrize("bias", [-3, 0, 3])
def test_a_refinement_trusts_no_step_beyond_its_error(offset: int, word: int, symbol: int, bias: int) -> None:
    """F(0) lies 2^-160 inside an end of U's 128-bit cell; the step, known to 4 units, may stand on either side."""
    k = (0x5555 << 112) | 12345
    share = Fraction((k + (offset < 0)) * 2**32 + offset, 2**160)

    def steps(precision: int) -> Steps:
        top = 1 << precision
        return Steps(-1, [0, int(share * top) + bias, top], 4)

    table = InverseTable.build(steps)
    more = (k & (2**64 - 1)).to_bytes(8, "little") + word.to_bytes(8, "little") * 4
    assert _finish(table, np.array([k >> 64], np.uint64), more)[0] == symbol
