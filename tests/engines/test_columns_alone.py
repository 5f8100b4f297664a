"""An outer part that names columns alone has the answer that the engine over releases gives, type by type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from hubbub import plain
from hubbub.engines import outer as module
from hubbub.engines.columns_alone import columns_alone
from hubbub.engines.outer import OuterSide
from hubbub.tables.kinds import Kind

KINDS = {
    "k0": (Kind.TEXT, ["a", None, '"', "é\0"], pa.string()),
    "k1": (Kind.DATE, [dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(2020, 2, 29)], pa.date32()),
    "k2": (Kind.TIMESTAMP, [dt.datetime.min, dt.datetime.max, None, dt.datetime(2020, 1, 1)], pa.timestamp("us")),
    "k3": (Kind.BOOLEAN, [True, False, None, True], pa.bool_()),
    "a0": (Kind.INTEGER, [-(2**63), 2**63 - 1, None, 0], pa.int64()),
    "a1": (Kind.NUMBER, [-0.0, 1e308, None, float("nan")], pa.float64()),
    "place": (Kind.INTEGER, [0, 1, 2, 3], pa.int64()),
}
RELEASED = {"released0": pa.table({name: pa.array(values, kind) for name, (_, values, kind) in KINDS.items()})}
SCHEMA = {"released0": {name: kind for name, (kind, _, _) in KINDS.items()}}
TEXT = 'SELECT {} FROM "released0" AS "r" ORDER BY "r"."place"'
EVERY = TEXT.format(", ".join(f'"r"."{name}" AS "its ""{name}"""' for name in KINDS))


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with plain.only(plain=False):
        yield


def by_the_engine(monkeypatch: pytest.MonkeyPatch, work: Any) -> Any:
    with monkeypatch.context() as patched:
        patched.setattr(module, "columns_alone", lambda sql: None)
        return work()


def test_answers_and_their_types_are_the_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    side = OuterSide({})
    for text in (EVERY, TEXT.format('"r"."a0" AS "n", "r"."a0" AS "m", "r"."place" AS "its place"')):
        assert columns_alone(text) is not None
        quick, slow = side.run(text, (), RELEASED), by_the_engine(monkeypatch, lambda t=text: side.run(t, (), RELEASED))
        assert quick.schema == slow.schema
        assert str(quick.to_pylist()) == str(slow.to_pylist())
        described = side.describe(text, (), SCHEMA, answer=True)
        assert described == by_the_engine(monkeypatch, lambda t=text: side.describe(t, (), SCHEMA, answer=True))


def test_whatever_else_stands_there_is_the_engines() -> None:
    plain = TEXT.format('"r"."a0" AS "n"')
    assert columns_alone(plain) is not None
    for text in (
        plain + " LIMIT 1",
        plain.replace("ORDER BY", "ORDER BY 1 DESC,"),
        plain.replace('"r"."a0" AS', '"r"."a0" / 2 AS'),
        plain.replace('"released0"', '"people"'),
        plain.replace('"r"."a0"', '"q"."a0"'),
        plain.replace('FROM "released0" AS "r"', 'FROM "released0" AS "r", "released1"'),
        TEXT.format('"r"."a0" AS "n", "r"."a1" AS "N"'),
        TEXT.format('"r"."a0" AS "n" FROM x", "r"."a1" AS "m"').replace('"n" FROM', "\"n\", repeat('x', 9) FROM"),
    ):
        assert columns_alone(text) is None, text


def test_what_an_engine_would_change_is_left_to_it() -> None:
    lengths = pa.table({"a0": pa.array([1], pa.duration("us")), "place": [0]})
    turned = pa.table({"a0": [1, 2], "place": [1, 0]})
    named = columns_alone(TEXT.format('"r"."a0" AS "n"'))
    assert named is not None
    assert named.of({"released0": lengths}) is None
    assert named.of({"released0": turned}) is None
