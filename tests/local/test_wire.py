"""Reports on the wire: round trips, strangers, streams in any order, and the vectors in the documentation."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hubbub import local
from hubbub.errors import ParameterError
from hubbub.local import wire
from local.reports import small_oracles
from seeded import SeededBits

FREQUENCIES = [*small_oracles(1, 6), local.DirectEncoding(2, 1000), local.DirectEncoding(1, ["a", "b", None])]
NUMBERS = [local.OneBitMean(1), local.PiecewiseMean("3/2", 0, 10), local.HybridMean(2)]
EVERY = [*FREQUENCIES, *NUMBERS, local.BallMean(1, 5, 2), local.HeavyHitters(2, "abc", length=7)]
PAGE = Path(__file__).parents[2] / "docs/reference/local-wire-format.md"


def some_reports(oracle: wire.Wired, n: int = 300) -> np.ndarray:
    bits = SeededBits(f"wire {oracle.name}")
    if isinstance(oracle, local.BallMean):
        return oracle.privatize(np.linspace(-1, 1, 5 * n).reshape(n, 5), bits=bits)
    if isinstance(oracle, local.HeavyHitters):
        return oracle.privatize(["abc", "cab", "b"] * (n // 3) + ["a"] * (n % 3), bits=bits)
    if isinstance(oracle, local.FrequencyOracle):
        values = [oracle.categories[i % oracle.size] for i in range(n)]
        return oracle.privatize(values if oracle.labels else np.array(values), bits=bits)
    return oracle.privatize(np.linspace(0, 1, n), bits=bits)


def same(a: object, b: object) -> bool:
    """Whether two tallies hold the same."""
    mine, other = (
        np.concatenate(t.levels) if hasattr(t, "levels") else getattr(t, "parts", getattr(t, "counts", None))
        for t in (a, b)
    )
    return bool(np.array_equal(mine, other)) and a.dropped == b.dropped and a.n == b.n  # type: ignore[attr-defined]


@pytest.mark.parametrize("oracle", EVERY, ids=lambda o: o.name)
def test_reports_survive_the_wire(oracle: wire.Wired) -> None:
    reports = some_reports(oracle)
    direct = oracle.aggregate(reports)
    assert direct.n == 300
    assert direct.dropped == 0
    assert same(wire.aggregate_json(oracle, wire.to_json(oracle, reports)), direct)
    assert same(wire.aggregate_arrow(oracle, wire.to_arrow(oracle, reports)), direct)
    rows = wire.to_bytes(oracle, reports)
    assert rows.shape == (300, oracle.randomizer.report_type.itemsize)
    assert np.array_equal(wire.from_bytes(oracle, rows), reports)


@pytest.mark.parametrize("oracle", EVERY, ids=lambda o: o.name)
def test_a_specification_makes_the_same_oracle(oracle: wire.Wired) -> None:
    text = json.dumps(wire.specification(oracle))
    again = wire.from_specification(text)
    assert again == oracle
    assert wire.key(again) == wire.key(oracle)
    weaker = json.loads(text)
    for name, value in weaker["derived"].items():
        changed = json.loads(text)
        changed["derived"][name] = "1/1000" if isinstance(value, str) else [value]
        with pytest.raises(ParameterError, match="derived"):
            wire.from_specification(changed)


@pytest.mark.parametrize(
    "bad",
    ["", "{", "[]", "1", {}, {"hubbub": "local", "version": 2}, {"hubbub": "local", "version": 1, "oracle": "x"}]
    + [{"hubbub": "local", "version": 1, "oracle": "direct", "arguments": a} for a in ({}, {"x": 1}, None)]
    + [
        {"hubbub": "local", "version": 1, "oracle": "one_bit_mean", "arguments": {"epsilon": e, "lower": low}}
        for e, low in (("1", "x"), ("1", "1/0"), ("1e400", "0"), ([], "0"), ("1", None))
    ],
)
def test_other_texts_are_no_specifications(bad: object) -> None:
    with pytest.raises(ParameterError):
        wire.from_specification(bad)


@pytest.mark.parametrize("text", ["1e4000000", "1e30000000", "9" * 5000, "1/" + "9" * 5000, "-1e-4000000", "1e", "nan"])
@pytest.mark.parametrize("oracle", [local.OneBitMean(1), local.HybridMean(2), local.BallMean(1, 5, 2)], ids=type)
def test_a_short_text_from_outside_never_becomes_an_enormous_number(oracle: wire.Wired, text: str) -> None:
    """Twelve characters used to keep a client busy for minutes. Here each is refused, by the length of its text."""
    for name in ("lower", "upper", "radius", "epsilon"):
        specified = json.loads(json.dumps(wire.specification(oracle)))
        if name in specified["arguments"]:
            specified["arguments"][name] = text
            with pytest.raises(ParameterError) as caught:
                wire.from_specification(json.dumps(specified))
            assert len(str(caught.value)) < 6000


def test_a_specification_nested_without_end_is_refused() -> None:
    with pytest.raises(ParameterError, match="JSON"):
        wire.from_specification("[" * 200_000)


def test_labels_must_be_plain() -> None:
    with pytest.raises(ParameterError, match="label"):
        wire.specification(local.DirectEncoding(1, [1.5, 2.5]))


@pytest.mark.parametrize("oracle", FREQUENCIES[:9], ids=lambda o: o.name)
def test_chunks_in_any_order_add_to_the_same_tally(oracle: local.FrequencyOracle) -> None:
    reports = some_reports(oracle, 1000)
    parts = np.array_split(reports, 7)
    random.Random(5).shuffle(parts)
    assert same(sum((oracle.aggregate(part) for part in parts), oracle.empty()), oracle.aggregate(reports))
    assert same(sum(oracle.aggregate(part) for part in parts), oracle.aggregate(reports))
    with pytest.raises(ParameterError, match="different oracles"):
        oracle.aggregate(reports) + local.DirectEncoding(9, 6).empty()


NO_LINES: list[Any] = [None, 7, True, 1.5, [], ["{"], {}, (), object(), bytearray(b"{}"), memoryview(b"{}")]
"""What a queue or a data frame may hold in place of a line."""


@pytest.mark.parametrize("oracle", EVERY, ids=lambda o: o.name)
def test_malformed_lines_are_counted_and_dropped(oracle: wire.Wired) -> None:
    good = list(wire.to_json(oracle, some_reports(oracle, 5)))
    report = json.loads(good[0])
    bad = [
        "{", "null", "[]", "7", '"x"', "{}", good[0][:-1], good[0] + "}", "[" * 100_000, "\x00", "{" * 3000,
        json.dumps(report | {"v": 2}),
        json.dumps(report | {"v": True}),
        json.dumps(report | {"v": 1.0}),
        json.dumps(report | {"k": "0" * 16}),
        json.dumps(report | {"r": report["r"] + "A"}),
        json.dumps(report | {"r": report["r"][:-1]}),
        json.dumps(report | {"r": "*" * len(report["r"])}),
        json.dumps(report | {"r": 5}),
        json.dumps(report | {"r": "é" * len(report["r"])}),
        b"\xff\xfe\xfd",
        json.dumps(report | {"r": "A" * 5000}),
        *NO_LINES, report,
    ]  # fmt: skip
    tally = wire.aggregate_json(oracle, [*bad, *good, "", "   \n"])
    assert (tally.n, tally.dropped) == (5, len(bad))


def test_one_report_has_one_spelling() -> None:
    oracle = local.DirectEncoding(1, 4)
    name = wire.key(oracle)
    lines = [json.dumps({"k": name, "r": text, "v": 1}) for text in ("AA", "AB", "AQ", "BA", "/w", "_w")]
    tally = wire.aggregate_json(oracle, lines)
    # AA is 0, AQ is 1; AB has stray bits, BA is 4, /w is another alphabet, _w is 255.
    assert tally.counts.tolist() == [1, 1, 0, 0]
    assert tally.dropped == 4


@pytest.mark.parametrize("oracle", FREQUENCIES, ids=lambda o: o.name)
@given(data=st.binary(max_size=200), junk=st.lists(st.one_of(st.none(), st.text(), st.floats(), st.integers())))
@settings(max_examples=30, deadline=None)
def test_no_bytes_and_no_objects_crash_the_server(oracle: local.FrequencyOracle, data: bytes, junk: list) -> None:
    width = oracle.report_bytes
    rows = np.frombuffer(data[: len(data) // width * width], np.uint8).reshape(-1, width)
    tally = oracle.aggregate(wire.from_bytes(oracle, rows))
    assert tally.n + tally.dropped == len(rows)
    assert np.isfinite(tally.estimate().shares).all()
    tally = oracle.aggregate(junk)
    assert tally.n + tally.dropped == len(junk)
    assert wire.aggregate_json(oracle, [data]).n == 0


@pytest.mark.parametrize("oracle", EVERY, ids=lambda o: o.name)
@pytest.mark.parametrize(
    "thing",
    [None, 5, "abc", b"abc", 2.5, [[1], [2, 3]], np.zeros((3, 99)), np.zeros((2, 2, 2), np.uint8), np.array("x"), {}],
    ids=str,
)
def test_things_that_are_no_reports_are_dropped(oracle: wire.Wired, thing: object) -> None:
    # 5 is a report where reports are integers that large.
    tally = oracle.aggregate(thing)
    assert tally.n == (1 if isinstance(thing, int) and oracle.aggregate(np.array([5])).n else 0)
    many = isinstance(thing, list) or (isinstance(thing, np.ndarray) and thing.ndim > 0)
    assert tally.n + tally.dropped == (len(thing) if many else 1)  # type: ignore[arg-type]


def test_out_of_range_reports_are_dropped() -> None:
    def tally(oracle: local.FrequencyOracle, reports: object) -> tuple[int, int]:
        found = oracle.aggregate(reports)
        return found.n, found.dropped

    assert tally(local.DirectEncoding(1, 4), np.array([0, 3, 4, -1, 255])) == (2, 3)
    assert tally(local.DirectEncoding(1, 4), [0, 3, 4, True, "1", None, 2.0]) == (2, 5)
    assert tally(local.HadamardResponse(1, 4), np.array([7, 8], np.uint8)) == (1, 1)
    assert tally(local.OptimizedUnary(1, 4), np.array([[0x10], [0x0F]], np.uint8)) == (1, 1)
    subset = local.SubsetSelection(1, 8, width=2)
    assert tally(subset, np.array([[0b11], [0b111], [0], [0xFF]], np.uint8)) == (1, 3)
    hashing = local.LocalHashing(1, 8)
    reports = hashing.privatize(np.zeros(4, int), bits=SeededBits(0))
    reports["y"][0], reports["a"][1], reports["b"][2] = hashing.randomizer.buckets, 1, 3
    assert tally(hashing, reports) == (1, 3)
    sketch = local.CountMeanSketch(1, 8, hashes=3, buckets=4)
    reports = sketch.privatize(np.zeros(3, int), bits=SeededBits(0))
    reports["hash"][0], reports["bits"][1] = 3, 0x0F
    assert tally(sketch, reports) == (1, 2)
    rappor = local.Rappor(1, 8, cohorts=2)
    reports = rappor.privatize(np.zeros(2, int), bits=SeededBits(0))
    reports["cohort"][0] = 2
    assert tally(rappor, reports) == (1, 1)


def test_arrow_batches_of_another_shape_are_dropped() -> None:
    pa = pytest.importorskip("pyarrow")
    oracle = local.DirectEncoding(1, 4)
    good = wire.to_arrow(oracle, np.array([1, 2, 3], np.uint8))
    sliced = good.to_batches()[0].slice(1)
    nulls = pa.record_batch({"report": pa.array([b"\x01", None, b"\x09"], pa.binary(1))})
    others = [
        pa.record_batch({"other": [1, 2]}),
        pa.record_batch({"report": ["a", "b", "c"]}),
        pa.record_batch({"report": pa.array([b"ab"], pa.binary(2))}),
    ]
    tally = wire.aggregate_arrow(oracle, [sliced, nulls, *others])
    assert tally.counts.tolist() == [0, 1, 1, 1]
    assert (tally.n, tally.dropped) == (3, 8)


def test_values_that_are_no_category_name_themselves_in_no_error() -> None:
    oracle = local.DirectEncoding(1, ["a", "b"])
    with pytest.raises(ParameterError) as error:
        oracle.privatize(["a", "secret-answer"])
    assert "secret" not in str(error.value)
    assert len(oracle.privatize(["a", "zzz", ["unhashable"]], unknown="b")) == 3
    with pytest.raises(ParameterError):
        local.DirectEncoding(1, 4).privatize(np.array([1, 4]))
    with pytest.raises(ParameterError):
        local.DirectEncoding(1, 4).privatize(np.array([1.5]))
    assert np.ndim(oracle.privatize("a")) == 0
    assert local.OptimizedUnary(1, 9).privatize(3).shape == (2,)


def test_parameters_out_of_range_are_refused() -> None:
    for epsilon in (0, -1, float("nan"), float("inf"), "x", True, 501, "1e300"):
        with pytest.raises(ParameterError):
            local.DirectEncoding(epsilon, 4)
    for categories in (1, 0, 2**40, ["a"], ["a", "a"], "ab"):
        with pytest.raises(ParameterError):
            local.DirectEncoding(1, categories)
    for width in (0, 4, True, 1.0):
        with pytest.raises(ParameterError):
            local.SubsetSelection(1, 4, width=width)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        local.LocalHashing(1, 4, buckets=1)
    with pytest.raises(ParameterError):
        local.Rappor(1, 4, bloom_bits=24)
    with pytest.raises(ParameterError):
        local.Rappor(1, 4, one_if_set="1/4")


def test_the_vectors_of_the_page_hold() -> None:
    page = PAGE.read_text()
    blocks = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    vectors = [json.loads(block) for block in blocks if '"vector"' in block]
    assert len(vectors) == 13
    for vector in vectors:
        oracle = wire.from_specification(vector["vector"])
        assert wire.key(oracle) == vector["key"]
        tally = wire.aggregate_json(oracle, [json.dumps(line) for line in vector["reports"]])
        assert tally.n == vector["n"]
        assert tally.dropped == vector["dropped"]
        if hasattr(tally, "counts"):
            found = tally.counts.tolist()
        else:
            found = [len(level) for level in tally.levels] if hasattr(tally, "levels") else [[*p] for p in tally.parts]
        assert found == vector["tally"]
