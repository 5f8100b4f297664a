"""The engines of all sessions take one amount of memory together."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import hubbub as hb
from hubbub.engines.duckdb import engine as opened
from hubbub.engines.duckdb.memory import LEAST, Memory, Part
from hubbub.engines.duckdb.relations import _bytes


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    memory = Memory(0)
    monkeypatch.setattr(opened, "MEMORY", memory)
    return memory


pytestmark = pytest.mark.filterwarnings("ignore:ledger=None")


def session(rows: object) -> hb.Session:
    table = hb.table(rows, unit="u", max_total=1, columns={"x": hb.between(0, 9)})
    return hb.Session({"t": table}, budget=hb.Budget(1000), ledger=None)


def engine_of(one: hb.Session) -> Any:
    return one._engine


def limit_of(one: hb.Session) -> int:
    ((told,),) = engine_of(one)._con.cursor().execute("SELECT current_setting('memory_limit')").fetchall()
    return _bytes(told)


def test_a_session_that_rests_gives_back_what_it_keeps(memory: Memory, tmp_path: Path) -> None:
    rows = pa.table({"u": np.arange(1000), "x": np.arange(1000) % 10})
    pq.write_table(rows, tmp_path / "rows.parquet")
    with session(rows) as one, session(str(tmp_path / "rows.parquet")) as two:
        one.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        assert limit_of(one) == pytest.approx(memory.size * 3 / 4, rel=0.01)
        two.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        assert limit_of(one) == pytest.approx(LEAST, rel=0.01)
        assert limit_of(two) == pytest.approx((memory.size - LEAST) * 3 / 4, rel=0.01)
        one.sql("SELECT SUM(x) AS n FROM t", epsilon=1)
        assert limit_of(one) == pytest.approx((memory.size - LEAST) * 3 / 4, rel=0.01)


def test_a_sealed_engine_lets_nothing_else_be_set() -> None:
    with session(pa.table({"u": [1], "x": [1]})) as one:
        for name in ("enable_external_access", "allowed_configs", "temp_directory", "lock_configuration"):
            with pytest.raises(duckdb.Error, match="locked"):
                engine_of(one)._con.cursor().execute(f"SET {name} = 'true'")


@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=40), st.integers(40, 1000).map(lambda n: n * LEAST)
)
def test_limits_of_engines_never_come_to_more_than_the_memory(steps: list[tuple[int, bool]], size: int) -> None:
    memory, limits = Memory(size), [0] * 5

    def limit(i: int) -> Callable[[int], None]:
        return lambda allowed: limits.__setitem__(i, allowed)

    parts = [memory.part(limit(i)) for i in range(5)]
    works: list[list[Any]] = [[] for _ in parts]
    for i, begins in steps:
        before = list(limits)
        if begins:
            work = parts[i].at_work()
            work.__enter__()
            works[i].append(work)
        elif works[i]:
            works[i].pop().__exit__(None, None, None)
        for j, at_work in enumerate(works):
            assert limits[j] >= LEAST or not at_work
            assert limits[j] == before[j] or not at_work or (j == i and len(at_work) == 1 and begins)
        assert sum(limits) <= size + 4 * LEAST


def test_what_cannot_give_back_its_memory_is_counted_with_it() -> None:
    memory, allowed = Memory(100 * LEAST), list[int]()

    def full(limit: int) -> None:
        if limit < 50 * LEAST:
            raise duckdb.OutOfMemoryException

    one, two = memory.part(full), memory.part(allowed.append)
    with one.at_work():
        pass
    with two.at_work():
        pass
    assert one.limit == 75 * LEAST
    assert allowed == [75 * LEAST // 4]


@pytest.mark.parametrize("early", [True, False])
def test_an_interrupt_while_a_limit_is_set_leaves_no_engine_with_less_or_more(early: bool) -> None:
    """It may come before or after DuckDB has set the limit, and before that is noted."""
    memory, limits, interrupts = Memory(100 * LEAST), [0, 0], [False]

    def limit(i: int) -> Callable[[int], None]:
        def set_to(allowed: int) -> None:
            if not (interrupts[0] and early):
                limits[i] = allowed
            if interrupts[0]:
                raise KeyboardInterrupt

        return set_to

    one, two = (memory.part(limit(i)) for i in range(2))
    for part, other in ((one, two), (one, one), (two, two), (one, two)):
        interrupts[0] = True
        with pytest.raises(KeyboardInterrupt), part.at_work():
            pass
        interrupts[0] = False
        with other.at_work():
            assert limits[other is two] >= 74 * LEAST
            assert sum(limits) <= 101 * LEAST


def test_many_threads_leave_it_as_it_was(memory: Memory) -> None:
    rows = pa.table({"u": np.arange(1000), "x": np.arange(1000) % 10})
    with session(rows) as one, session(rows) as two:
        asks = [
            threading.Thread(target=lambda s=s, i=i: s.sql(f"SELECT SUM(x + {i}) AS n FROM t", epsilon=1))
            for s in (one, two)
            for i in range(8)
        ]
        for ask in asks:
            ask.start()
        for ask in asks:
            ask.join()
        assert all(not part.questions for part in memory._parts)
        assert sum(map(limit_of, (one, two))) <= memory.size * 1.01


def test_an_engine_that_is_opened_again_keeps_its_limit(memory: Memory) -> None:
    with session(pa.table({"u": [1], "x": [1]})) as one:
        one.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        before = limit_of(one)
        engine_of(one)._open()
        assert limit_of(one) == before < memory.size


def test_a_session_may_be_opened_while_another_one_begins() -> None:
    class Slow(WeakSet[Part]):
        def __iter__(self) -> Iterator[Part]:
            for part in super().__iter__():
                opening.start()
                opening.join(0.1)
                yield part

    memory = Memory(16 << 30)
    memory._parts = Slow()
    one, two = memory.part(lambda size: None), []
    opening = threading.Thread(target=lambda: two.append(memory.part(lambda size: None)))
    with one.at_work():
        opening.join()
    assert len(two) == 1
