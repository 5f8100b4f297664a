"""Every setting that a role, a database, an address or the environment can have, set against us: the same answers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from engines.places import Postgres, answer
from hubbub.engines.duckdb.relations import image
from hubbub.engines.postgres.engine import PostgresEngine
from hubbub.engines.postgres.settings import ENCODINGS, FIXED, FREE, REQUIRED, Kept, begin, connect, settings
from hubbub.sql.bind.query import TableInfo
from hubbub.tables.declare import Limits
from hubbub.tables.plan import Plan, make_plans
from hubbub.tables.relations import leaves

TEXTS = ["a", "A ", "\\", "é", "\N{SNOWMAN}", "2025-01-02T03:04:05Z", "2025-01-02", "1e3", "NULL", None, "\uffff"]
ROWS = pa.table(
    {
        "id": [i % 7 for i in range(33)],
        "t": [TEXTS[i % 11] for i in range(33)],
        "x": [[0.1, -0.0, 0.0, 1e11, -1e11, 5e-6, None, 1e20, 2.5, 3.0][i % 10] for i in range(33)],
        "day": [dt.date(2025, 1, 1 + i % 28) for i in range(33)],
        "at": [dt.datetime(2025, 1, 1, i % 24, 30, 0, i) for i in range(33)],
    }
)
NAMES = pa.table(
    {"t": ["a", "NULL", None, "é", "\N{SNOWMAN}", "x\0y"], "day": [dt.date(2025, 3, 4)] * 6, "n": [1.5] * 6}
)
QUESTIONS = [
    "SELECT t, COUNT(*) FROM v GROUP BY t",
    "SELECT CAST(x AS VARCHAR) AS k, COUNT(*) FROM v GROUP BY 1",
    "SELECT CAST(day AS VARCHAR) || CAST(at AS VARCHAR) AS k, COUNT(*) FROM v GROUP BY 1",
    r"SELECT COUNT(*) FROM v WHERE t = '\' OR t LIKE '\%' OR t = 'a''b' OR t = 'é' OR UPPER(TRIM(t)) = 'É'",
    "SELECT COUNT(*) FROM v WHERE NULLIF(x, NULL) IS NULL OR NOT (x = NULL)",
    "SELECT CAST(t AS TIMESTAMP) AS k, COUNT(*), COUNT(DISTINCT x) FROM v GROUP BY 1",
    "SELECT COUNT(*) FROM (SELECT id, SUM(x) AS s, AVG(x) AS m FROM v GROUP BY id) AS p WHERE s > 0 OR m > 0.3",
    "SELECT COUNT(*) FROM (SELECT id, SUM(x) OVER (PARTITION BY id ORDER BY at) AS s FROM v) AS p WHERE s > 0",
    "SELECT COUNT(*), COUNT(DISTINCT v.t) FROM v JOIN names AS w ON v.t = w.t AND v.day < w.day",
]
CREATE = "CREATE TABLE v (id timestamptz, t text, x double precision, day date, at timestamp)"


class Asked:
    """A table of Postgres, and plans of the questions on it; answers come from a new engine's connection each time."""

    def __init__(self, place: Postgres) -> None:
        self.place = place
        place.con.execute(f"{CREATE}; GRANT SELECT ON v TO reader")
        self.fill(ROWS)
        names = hb.public(NAMES)
        self.engine = PostgresEngine()
        schema = self.engine.add("v", self.declared())
        self.engine.add("names", names)
        self.desk = Desk({"names": names})
        table = self.declared().without_source()
        self.desk.catalog["v"] = TableInfo(schema.columns, private=True, unit="id", table=table)
        self.plans = [plan for sql in QUESTIONS for plan in self.of(sql)]

    def declared(self, url: str | None = None) -> Any:
        return hb.table(url or self.place.url, table="public.v", unit="id", max_groups=1, max_rows=1)

    def fill(self, rows: pa.Table) -> None:
        self.place.con.execute("TRUNCATE v")
        start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
        with self.place.con.cursor().copy("COPY v FROM STDIN") as copy:
            for i, *rest in zip(*(c.to_pylist() for c in rows.columns), strict=True):
                copy.write_row((start + dt.timedelta(hours=i), *rest))

    def of(self, sql: str) -> Iterator[Plan]:
        for question in self.desk.statement(sql).questions:
            yield from make_plans(question, image, limits=Limits(1, 1, None), private_keys=True)

    def answers(self, engine: PostgresEngine | None = None) -> list[Any]:
        found = []
        for plan in self.plans:
            public = {leaf.place: self.desk.outer.leaf(leaf, {}) for leaf in leaves(plan.question.relation)}
            found.append(answer(engine or self.engine, plan, public))
        return found


@pytest.fixture(scope="module")
def asked(postgres_server: str) -> Iterator[Asked]:
    place = Postgres(postgres_server, {}, {})
    place.con.execute(
        "CREATE SCHEMA trap; GRANT USAGE ON SCHEMA trap TO reader; "
        "CREATE FUNCTION trap.md5(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT 'x'$$; "
        "CREATE FUNCTION trap.lower(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT 'x'$$; "
        "CREATE FUNCTION trap.current_setting(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT 'x'$$; "
        "CREATE FUNCTION trap.never(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS $$SELECT false$$; "
        "CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.never); "
        "CREATE TABLE trap.pg_class (x int); CREATE TYPE trap.text AS ENUM ('a')"
    )
    found = Asked(place)
    yield found
    found.engine.close()
    place.close()


def every(asked: Asked) -> dict[str, tuple[str, Any, Any, Any, str]]:
    """The server's settings that a role can have."""
    found = asked.place.con.execute(
        "SELECT name, vartype, min_val, max_val, enumvals, boot_val FROM pg_settings "
        "WHERE context IN ('user', 'superuser', 'backend', 'superuser-backend') AND name NOT LIKE '%.%'"
    )
    return {name: tuple(rest) for name, *rest in found}


def test_every_setting_that_a_role_can_have_is_decided(asked: Asked) -> None:
    names = set(every(asked))
    assert names <= {*FIXED, *REQUIRED, *FREE}
    assert not {*FIXED, *REQUIRED} & set(FREE)
    assert set(settings(asked.place.con.info.server_version)) <= names


WORDS = {
    "search_path": ["trap, pg_catalog, public", "public", "''"],
    "DateStyle": ["German, DMY", "SQL, MDY"],
    "TimeZone": ["Asia/Tokyo", "America/New_York"],
    "timezone_abbreviations": ["India"],
    "client_encoding": ["LATIN1", "SQL_ASCII", "SHIFT_JIS_2004", "UTF8"],
    "default_transaction_isolation": ["serializable"],
    "lc_monetary": ["POSIX"],
    "default_text_search_config": ["pg_catalog.german"],
    "statement_timeout": ["3s"],
    "lock_timeout": ["1s"],
    "idle_session_timeout": ["60s"],
    "idle_in_transaction_session_timeout": ["60s"],
    "transaction_timeout": ["60s"],
    "geqo_threshold": ["2"],
    # Ten thousand of each are half a minute of planning.
    "geqo_generations": ["1", "100"],
    "geqo_pool_size": ["50", "100"],
    "max_stack_depth": ["100kB"],
    "temp_file_limit": ["1GB"],
    "work_mem": ["64kB"],
    "default_transaction_read_only": ["on"],
    "transaction_isolation": [],  # of a transaction, not of a role
    "transaction_read_only": [],
    "transaction_deferrable": [],
    # The login fails, waits, or is another program: nothing is asked.
    "post_auth_delay": [],
    "ignore_system_indexes": [],
    "log_connections": [],
    "log_disconnections": [],
    "session_preload_libraries": [],
    "local_preload_libraries": [],
    "jit_debugging_support": [],
    "jit_profiling_support": [],
}


def against(name: str, kind: str, low: Any, high: Any, words: Any, normal: str) -> list[str]:
    """Values of a setting that are not its usual one."""
    if name in WORDS:
        return WORDS[name]
    if kind == "bool":
        return ["off" if normal == "on" else "on"]
    if kind == "enum":
        return [word for word in words if word != normal]
    if kind in ("integer", "real"):
        return [v for v in (low, str(min(float(high), 10_000.0)).removesuffix(".0")) if v != normal]
    return []


def hold(asked: Asked, truth: list[Any], chosen: dict[str, str]) -> None:
    """The same answers under these settings of the role, or a refusal where one has to be otherwise."""
    try:
        for name, value in chosen.items():
            shown = value if name == "search_path" else repr(value)
            asked.place.con.execute(f'ALTER ROLE reader SET "{name}" = {shown}'.encode())
        if chosen.keys() & REQUIRED.keys() - {"client_encoding"}:
            refused(asked)
        else:
            assert asked.answers() == truth, chosen
            asked.engine.mark("v")
    except hb.EngineError:
        raise AssertionError(chosen) from None
    finally:
        asked.place.con.execute("ALTER ROLE reader RESET ALL")


def together(asked: Asked, truth: list[Any], names: Iterable[str], always: dict[str, str]) -> None:
    """The values of these settings, twelve settings at a time; one at a time in the soak."""
    known = every(asked)
    values = {name: against(name, *known[name]) for name in sorted(known.keys() & set(names))}
    for turn in range(max(map(len, values.values()))):
        turned = [name for name in values if turn < len(values[name])]
        for start in range(0, len(turned), 12):
            hold(asked, truth, always | {name: values[name][turn] for name in turned[start : start + 12]})


def test_no_setting_that_we_set_changes_an_answer(asked: Asked) -> None:
    truth, known = asked.answers(), every(asked)
    together(asked, truth, FIXED, {})
    for name in REQUIRED.keys() & known.keys():
        for value in against(name, *known[name]):
            hold(asked, truth, {name: value})


def test_no_setting_that_we_leave_changes_an_answer(asked: Asked) -> None:
    known = every(asked)
    assert sum(bool(against(name, *known[name])) for name in FREE.keys() & known.keys()) > 120
    # Without forms that are slow to compile, where compiling is not what is set.
    together(asked, asked.answers(), FREE, {"jit": "off"})


@pytest.mark.soak
def test_no_setting_changes_an_answer_by_itself(asked: Asked) -> None:
    truth, known = asked.answers(), every(asked)
    for name in (FREE.keys() | FIXED.keys()) & known.keys():
        for value in against(name, *known[name]):
            hold(asked, truth, {name: value})


def refused(asked: Asked) -> None:
    """What the server keeps otherwise than it has to be is refused before the charge, and never answered."""
    engine = PostgresEngine()
    with pytest.raises(hb.PolicyError, match="cannot be asked as answers need it"):
        engine.add("v", asked.declared())
    with pytest.raises(hb.QueryError, match="cannot be asked as answers need it"):
        asked.engine.prepare(asked.plans[0])
    with pytest.raises(hb.EngineError):
        asked.engine.run(asked.plans[0])


@pytest.mark.parametrize("where", ["address", "database", "PGCLIENTENCODING", "PGOPTIONS"])
def test_nor_does_one_of_the_address_the_database_or_the_environment(
    asked: Asked, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, place = asked.answers(), asked.place
    url = place.url
    hostile = "-c transform_null_equals=on -c standard_conforming_strings=off -c DateStyle=German -c array_nulls=off"
    if where == "address":
        url += "&client_encoding=latin1&options=" + hostile.replace(" ", "%20").replace("=", "%3D")
    elif where == "database":
        place.con.execute(f"ALTER DATABASE {place.database} SET client_encoding = 'LATIN1'")
        place.con.execute(f"ALTER DATABASE {place.database} SET transform_null_equals = on")
    else:
        monkeypatch.setenv(where, "latin1" if where == "PGCLIENTENCODING" else hostile)
    engine = PostgresEngine()
    try:
        engine.add("v", asked.declared(url))
        assert asked.answers(engine) == truth
    finally:
        engine.close()
        if where == "database":
            place.con.execute(f"ALTER DATABASE {place.database} RESET ALL")


@pytest.mark.parametrize("lifted", ["role", "right", "superuser"])
def test_no_limit_of_temporary_files_makes_the_rows_of_one_person_an_error(asked: Asked, lifted: str) -> None:
    """Sorted on disk, they were: a hundred people were answered, and with one more, who has 20,000 rows, there was an
    error. A role that may lift the limit does so for its questions; any other is told who may."""
    con = asked.place.con
    con.execute("CREATE TABLE many AS SELECT i AS id, repeat('x', 200) || i AS g FROM generate_series(1, 100) AS i")
    con.execute("GRANT SELECT ON many TO reader; ALTER ROLE reader SET work_mem = '64kB'")
    con.execute("ALTER ROLE reader SET temp_file_limit = '1MB'")
    declared = hb.table(asked.place.url, table="many", unit="id", max_groups=1, max_rows=1)
    try:
        for more in (0, 20_000):
            con.execute("INSERT INTO many SELECT 0, repeat('y', 200) || i FROM generate_series(1, %s) AS i", [more])
            with pytest.raises(hb.PolicyError, match=r'is 1MB, not -1 .*ALTER ROLE "reader" SET temp_file_limit = -1'):
                hb.Session({"v": declared}, budget=hb.Budget(9), ledger=None)
        if lifted == "role":
            con.execute("ALTER ROLE reader RESET temp_file_limit")
        elif lifted == "right":
            if con.info.server_version < 150_000:
                pytest.skip("this server lends no right to a setting")
            con.execute("GRANT SET ON PARAMETER temp_file_limit TO reader")
        else:
            con.execute("ALTER ROLE reader SUPERUSER")
        with (
            pytest.warns(UserWarning, match="ledger=None"),
            hb.Session({"v": declared}, budget=hb.Budget(10**9), ledger=None) as session,
        ):
            assert session.sql("SELECT COUNT(DISTINCT g) AS n FROM v", epsilon=10**6).rows() == [(101,)]
    finally:
        con.execute("ALTER ROLE reader NOSUPERUSER; ALTER ROLE reader RESET ALL; DROP TABLE many")
        if con.info.server_version >= 150_000:
            con.execute("REVOKE SET ON PARAMETER temp_file_limit FROM reader")


def test_our_settings_are_read_back(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.engines.postgres.settings.statements", lambda version: "SELECT 1")
    con = connect(asked.place.url)
    with pytest.raises(Kept, match=r'search_path is "\$user", public, not pg_catalog, pg_temp'):
        begin(con)
    con.close()


def test_a_replica_that_ends_long_questions_is_refused(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """After 30 seconds, by default: a limit of time, which one person's many rows would pass."""
    with connect(asked.place.url) as con:
        begin(con)
        monkeypatch.setattr("hubbub.engines.postgres.settings._replays", lambda con: True)
        con.execute("ROLLBACK")
        with pytest.raises(Kept, match=r"max_standby_streaming_delay is 30s, not -1 \(in the settings of this replica"):
            begin(con)


def test_a_plan_does_not_change_an_answer(asked: Asked) -> None:
    """Rows in another order, in parallel, sorted or hashed: no float is added up, and ties are broken."""
    truth = asked.answers()
    shapes = [
        {"jit": "off", "enable_hashagg": "off", "enable_seqscan": "off"},
        {"jit": "off", "enable_sort": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"},
        {"min_parallel_table_scan_size": "0", "parallel_setup_cost": "0", "parallel_tuple_cost": "0"},
        {"work_mem": "'64kB'", "enable_memoize": "off"},
    ]
    for i, shape in enumerate(shapes):
        order = list(range(ROWS.num_rows))
        asked.fill(ROWS.take(order[::-1] if i % 2 else order[7:] + order[:7]))
        for name, value in shape.items():
            asked.place.con.execute(f"ALTER ROLE reader SET {name} = {value}".encode())
        try:
            assert asked.answers() == truth, shape
        finally:
            asked.place.con.execute("ALTER ROLE reader RESET ALL")
    asked.fill(ROWS)


HELD: tuple[str, ...] = (
    "Hash Join",
    "Hash Semi Join",
    "Hash Anti Join",
    "Hash Left Join",
    "Hash Right Join",
    "Hash Full Join",
)
HELD += ("HashSetOp", "Bitmap", "Parallel Hash", "hashed SubPlan", "JIT")
TOGETHER = [
    *(f"SELECT COUNT(*) FROM v {how} v AS w ON v.id = w.id{more}" for how in ("JOIN", "LEFT JOIN", "FULL JOIN")
      for more in ("", " AND v.t = w.t", " AND v.x < w.x", " AND v.t IS NOT NULL")),
    *(f"SELECT COUNT(*) FROM v WHERE {no}EXISTS (SELECT 1 FROM v AS w WHERE w.id = v.id{more})" for no in ("", "NOT ")
      for more in ("", " AND v.t = w.t", " AND v.x < w.x")),
    *(f"SELECT COUNT(*) FROM (SELECT id, t FROM v {op} SELECT id, t FROM v WHERE x > 0)"
      for op in ("INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "UNION")),
    "SELECT COUNT(*) FROM v JOIN names AS w ON v.t = w.t",
    "SELECT COUNT(*) FROM v WHERE t NOT IN (SELECT t FROM names)",
    "SELECT COUNT(*) FROM (SELECT DISTINCT id, t FROM v) AS a JOIN (SELECT id, MAX(t) AS m FROM v GROUP BY id) AS b "
    "ON a.id = b.id AND a.t < b.m",
]  # fmt: skip
HOSTILE = [
    {
        "min_parallel_table_scan_size": "0",
        "parallel_setup_cost": "0",
        "parallel_tuple_cost": "0",
        "jit_above_cost": "0",
    },
    {"enable_mergejoin": "off", "enable_nestloop": "off", "enable_sort": "off", "jit_above_cost": "0"},
]


@pytest.mark.parametrize("shape", HOSTILE)
def test_no_rows_are_held_in_memory_that_does_not_go_to_disk(
    asked: Asked, shape: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A join by hashes keeps the rows of one unit together, INTERSECT by hashes all rows, whatever work_mem says, and
    shared memory is as small as the machine has it: one person's 300 rows, with texts that the question makes long,
    took 600 MB, and 1,000 would take what no server has."""
    plans, shown = [plan for sql in TOGETHER for plan in asked.of(sql)], list[str]()
    real = PostgresEngine._answers

    def explained(self: PostgresEngine, names: Any, statements: Any, **more: Any) -> None:
        for rows in real(self, names, [(f"EXPLAIN {text}", values) for text, values in statements], **more) or []:
            shown.append("\n".join(row for (row,) in rows))

    monkeypatch.setattr(PostgresEngine, "_answers", explained)
    for name, value in shape.items():
        asked.place.con.execute(f"ALTER ROLE reader SET {name} = {value}".encode())
    try:
        for plan in plans:
            public = {leaf.place: asked.desk.outer.leaf(leaf, {}) for leaf in leaves(plan.question.relation)}
            with pytest.raises(hb.EngineError):
                asked.engine.run(plan, public)
    finally:
        asked.place.con.execute("ALTER ROLE reader RESET ALL")
    assert len(shown) == len(plans) > 20
    assert [(word, text) for text in shown for word in HELD if word in text] == []


def test_a_full_join_without_hashes_has_the_rows_of_one(asked: Asked) -> None:
    """On Postgres it is written as a LEFT JOIN and the rows that meet none."""
    here = Desk({"v": hb.table(ROWS, unit="id", max_groups=99, max_rows=99, max_total=999)})
    for on in ("v.t = w.t", "v.x < w.x", "v.t IS NOT NULL", "v.x > 1 AND w.t <> 'a'", "w.day = DATE '2025-01-03'"):
        sql = (
            "SELECT COUNT(*), COUNT(v.t), COUNT(w.t), COUNT(DISTINCT v.x), SUM(LEAST(GREATEST(w.x, 0), 5)) FROM "
            "(SELECT * FROM v WHERE x > 0) AS v FULL JOIN (SELECT * FROM v WHERE t <> 'a') AS w "
            f"ON v.id = w.id AND {on}"
        )
        wide = Limits(99, 99, 999)
        (plan,) = (p for q in here.statement(sql).questions for p in make_plans(q, image, limits=wide))
        (there,) = (p for q in asked.desk.statement(sql).questions for p in make_plans(q, image, limits=wide))
        assert answer(asked.engine, there, {}) == answer(here.engine, plan, {}), on


class Encoded:
    """A database in another encoding, with one table that holds every character of Latin 1."""

    def __init__(self, server: str, encoding: str) -> None:
        self.name = f"encoded_{encoding.lower()}"
        with psycopg.connect(f"postgresql://hubbub@/postgres?host={server}", autocommit=True) as con:
            con.execute(f"CREATE DATABASE {self.name} ENCODING '{encoding}' TEMPLATE template0")
            if con.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchone() is None:
                con.execute("CREATE ROLE reader LOGIN")
        self.url = f"postgresql://reader@/{self.name}?host={server}"
        with psycopg.connect(f"postgresql://hubbub@/{self.name}?host={server}", client_encoding="UTF8") as con:
            con.execute("CREATE TABLE v (id int, t text); GRANT SELECT ON v TO reader")
            if encoding == "LATIN1":
                con.execute("INSERT INTO v SELECT i, convert_from(set_byte('\\x00'::bytea, 0, i), 'LATIN1') "
                            "FROM generate_series(1, 255) AS i")  # fmt: skip
                con.execute("INSERT INTO v SELECT 1000 + i, 'café' FROM generate_series(1, 100) AS i")


def test_a_database_without_an_encoding_is_refused(postgres_server: str) -> None:
    place = Encoded(postgres_server, "SQL_ASCII")
    with pytest.raises(hb.PolicyError, match="server_encoding is SQL_ASCII, not UTF8 or LATIN1"):
        PostgresEngine().add("v", hb.table(place.url, table="v", unit="id", max_total=1))


def test_a_database_in_latin_1_gives_the_right_answers(postgres_server: str) -> None:
    assert ENCODINGS == ("UTF8", "LATIN1")  # each of their characters can be sent, as is seen here
    place = Encoded(postgres_server, "LATIN1")
    names = hb.public(pa.table({"t": ["café", "\N{SNOWMAN}"], "n": [1, 2]}))
    table = hb.table(place.url, table="v", unit="id", max_groups=1, max_rows=1, max_total=1,
                     columns={"t": hb.one_of("café", "é")})  # fmt: skip
    with hb.Session({"v": table, "w": names}, budget=hb.Budget(10**9), ledger=None) as session:

        def count(sql: str) -> Any:
            return session.sql(sql, epsilon=1000).rows()

        assert count("SELECT t, COUNT(*) AS n FROM v GROUP BY t") == [("café", 100), ("é", 1)]
        assert count("SELECT COUNT(*) AS n FROM v WHERE t = 'café'") == [(100,)]
        assert count("SELECT COUNT(*) AS n FROM v JOIN w ON v.t = w.t") == [(100,)]
        assert count("SELECT COUNT(*) AS n FROM v WHERE LENGTH(TRIM(t)) < 1") == [
            (2,)
        ]  # a blank, and one that does not break
        assert count("SELECT COUNT(DISTINCT t) AS n FROM v") == [(256,)]
    table = hb.table(place.url, table="v", unit="id", max_groups=1, max_rows=1)
    with hb.Session({"v": table}, budget=hb.Budget(10**6, delta="1e-3"), ledger=None) as session:
        assert session.sql("SELECT t, COUNT(*) AS n FROM v GROUP BY t", epsilon=100).rows() == [("café", 100)]
        left = session.remaining
        with pytest.raises(hb.QueryError, match="its encoding, LATIN1, does not have"):
            session.sql("SELECT COUNT(*) AS n FROM v WHERE t = '\N{SNOWMAN}'", epsilon=1)
        assert session.remaining == left


def test_a_constant_with_a_zero_byte_equals_no_row(asked: Asked) -> None:
    """No text of Postgres has one; U+FFFF, which some have, is itself."""
    (plan,) = asked.desk.plans("SELECT COUNT(*) FROM v WHERE t = '\uffff'")
    assert answer(asked.engine, plan, {}) == ((3,),)
    (plan,) = asked.desk.plans("SELECT COUNT(*) FROM v WHERE t = 'x\0y'")
    with pytest.raises(hb.QueryError, match="a zero byte"):
        asked.engine.prepare(plan)
