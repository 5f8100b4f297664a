"""What may be a table, a unit and a column in Postgres: lists, held against everything that the server has."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from engines.places import Postgres, answer
from hubbub.engines.duckdb.relations import image
from hubbub.engines.postgres.catalog import TYPES
from hubbub.engines.postgres.engine import PostgresEngine
from hubbub.remedies import Attempt
from hubbub.sql.bind.query import TableInfo
from hubbub.tables.declare import Limits
from hubbub.tables.plan import Plan, make_plans


@pytest.fixture(scope="module")
def place(postgres_server: str) -> Iterator[Postgres]:
    found = Postgres(postgres_server, {}, {})
    found.con.execute("GRANT USAGE ON SCHEMA public TO reader")
    yield found
    found.close()


def make(place: Postgres, text: str) -> None:
    """Statements, and the right to look at what they made."""
    place.con.execute(text.encode())
    place.con.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")


def declared(place: Postgres, inner: str, **more: Any) -> Any:
    limits = {"unit": "id", "max_groups": 1, "max_rows": 1, "max_total": 1}
    return hb.table(place.url, table=inner, **(limits | more))


class Asked:
    """One table of Postgres, and the plans of questions on it."""

    def __init__(self, place: Postgres, inner: str, **more: Any) -> None:
        self.engine = PostgresEngine()
        table = declared(place, inner, **more)
        schema = self.engine.add("v", table)
        self.desk = Desk({})
        self.desk.catalog["v"] = TableInfo(schema.columns, private=True, unit=schema.unit, table=table.without_source())

    def plans(self, sql: str, limits: tuple[int, int] = (1, 1)) -> list[Plan]:
        questions = self.desk.statement(sql).questions
        return [p for q in questions for p in make_plans(q, image, limits=Limits(*limits, None), private_keys=True)]

    def answers(self, sql: str, limits: tuple[int, int] = (1, 1)) -> list[Any]:
        for plan in self.plans(sql, limits):
            self.engine.prepare(plan)
        return [answer(self.engine, plan, {}) for plan in self.plans(sql, limits)]


# -- units ------------------------------------------------------------------------------------------------------------

UNITS: dict[str, list[str]] = {
    "smallint": ["1", "01", "-1", " 7"],
    "integer": ["1", "01", "-1"],
    "bigint": ["1", "01", "9223372036854775807"],
    "real": ["0.1", "0.10", "-0", "0", "1e20", "NaN", "Infinity"],
    "double precision": ["0.1", "0.10", "-0", "0", "1e20", "1e308", "NaN", "-Infinity"],
    "numeric": ["1", "1.0", "1.000", "100", "1e2", "0", "0.00", "NaN", "Infinity", "1e-30", "0.10"],
    "text": ["a", "A", "a ", "1", "1.0"],
    "character varying": ["a", "A", "a "],
    "character(5)": ["a", "a ", "a    ", "A"],
    "name": ["a", "A"],
    "public.citext": ["a", "A", "\N{LATIN SMALL LETTER E WITH ACUTE}"],
    "public.mood": ["low", "high"],
    "public.whole": ["1", "1.0", "1.00"],
    "public.deep": ["1", "1.0"],
    "public.shy": ["a", "A"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"],
    "boolean": ["true", "t", "yes", "false"],
    "date": ["2025-01-02", "20250102", "infinity", "4713-01-01 BC"],
    "timestamp without time zone": ["2025-01-02", "2025-01-02 00:00:00.000", "2025-01-02 00:00:00.000001", "-infinity"],
    "timestamp with time zone": ["2025-01-02 00:00+00", "2025-01-02 02:00+02", "2025-01-01 23:59+00", "infinity"],
    "time without time zone": ["00:00", "00:00:00.0", "24:00", "12:30:00.5"],
    "bytea": ["\\\\x6162", "ab", "\\\\x00", ""],
}
"""What may be a unit: every type with several spellings of its values."""
MADE = (
    "CREATE EXTENSION IF NOT EXISTS citext; CREATE TYPE mood AS ENUM ('low', 'high'); "
    "CREATE DOMAIN whole AS numeric; "
    "CREATE DOMAIN deep AS whole CHECK (VALUE > 0); "
    "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false); "
    "CREATE DOMAIN shy AS text COLLATE blind; CREATE TYPE pair AS (a int, b int); "
    "CREATE TYPE span AS RANGE (subtype = int); CREATE DOMAIN several AS int[]; "
    "CREATE TYPE public.\"date\" AS ENUM ('x'); CREATE TYPE sly AS ENUM ('a', 'b'); "
    "CREATE FUNCTION told(sly) RETURNS text IMMUTABLE LANGUAGE sql AS $$SELECT 'same'$$; "
    "CREATE CAST (sly AS text) WITH FUNCTION told(sly)"
)


@pytest.fixture(scope="module")
def types(place: Postgres) -> Postgres:
    make(place, MADE)
    return place


def settled(answers: list[Any]) -> list[Any]:
    """Answers with groups in their own order."""
    return [[sorted(v.items()) if isinstance(v, dict) else v for v in vectors] for vectors in answers]


def test_every_type_of_the_server_may_be_a_unit_or_is_refused(types: Postgres) -> None:
    """All of its types, domains, enumerations, arrays, ranges and composites: those in the list, and no other."""
    names = types.con.execute(
        "SELECT format('%I.%I', nspname, typname), CASE WHEN typtype IN ('d', 'e') OR typname = 'citext' "
        "THEN format('%s.%s', nspname, typname) ELSE format_type(t.oid, NULL) END FROM pg_type AS t "
        "JOIN pg_namespace AS n ON n.oid = typnamespace WHERE nspname IN ('pg_catalog', 'public') "
        "AND typtype <> 'p' AND (typrelid = 0 OR typname = 'pair') AND typname !~ '^(pg_|reg|_cstring)' "
        "AND NOT (typinput = 'array_in'::regproc AND typname ~ '^_(pg_|reg)')"
    ).fetchall()
    assert len(names) > 100
    allowed, listed = set(), {name.split("(")[0] for name in UNITS} | {"public.date"}
    types.con.execute("CREATE TABLE kinds (id int)")
    for written, name in names:
        types.con.execute(f"DROP TABLE kinds; CREATE TABLE kinds (id {written}); GRANT SELECT ON kinds TO reader")
        engine = PostgresEngine()
        try:
            engine.add("v", declared(types, "kinds"))
            allowed.add(name)
        except hb.PolicyError as error:
            assert "a unit is named by" in str(error), written
    assert allowed == listed
    assert {*TYPES} - {"citext", "enum"} <= listed | {"character"}


@pytest.mark.parametrize("kind", [*UNITS])
def test_a_unit_is_hashed_by_its_value_and_never_by_its_spelling(types: Postgres, kind: str) -> None:
    """Rows of the same units in other orders, hashed and sorted: the same groups are kept. One unit more: its own."""
    spelled = UNITS[kind]
    rows = [(value, key) for value in spelled for key in "abcd"] * 2
    make(types, f"DROP TABLE IF EXISTS spelled; CREATE TABLE spelled (id {kind}, g text)")
    asked = Asked(types, "spelled")
    questions = [
        "SELECT g, COUNT(*) FROM v GROUP BY g",
        "SELECT COUNT(DISTINCT g) FROM v",
    ]
    if kind != "bytea" and not kind.startswith("time "):  # whose values no question can name
        inner = "SELECT id, g, COUNT(DISTINCT g) AS k FROM v GROUP BY id, g"
        questions += [f"SELECT g, COUNT(*), COUNT(id) FROM ({inner}) AS p WHERE k > 0 GROUP BY g"]
    found = set()
    for turn in range(6):
        random.Random(turn).shuffle(rows)
        types.con.execute("TRUNCATE spelled")
        for value, key in rows:
            types.con.execute(
                f"INSERT INTO spelled VALUES (%s::text::{kind.split('(')[0]}, %s)", [value.replace("\\\\", "\\"), key]
            )
        types.con.execute(f"ALTER ROLE reader SET enable_hashagg = {'on' if turn % 2 else 'off'}")
        found.add(repr([settled(asked.answers(sql)) for sql in questions]))
    types.con.execute("ALTER ROLE reader RESET ALL")
    assert len(found) == 1
    # A text for each value: what GROUP BY tells apart, the hash does.
    unit = asked.engine._known["v"].unit
    apart = f"SELECT count(DISTINCT {unit}), count(DISTINCT CAST({unit} AS text)) FROM spelled"
    ((values, texts),) = types.con.execute(apart.encode()).fetchall()
    assert values == texts > 0
    # One unit less: nobody else's groups.
    before = asked.answers(questions[0])[0][0]
    types.con.execute(
        f"DELETE FROM spelled WHERE CAST({unit} AS text) = (SELECT max(CAST({unit} AS text)) FROM spelled)".encode()
    )
    after = asked.answers(questions[0])[0][0]
    assert sum(abs(after.get(key, 0) - before.get(key, 0)) for key in {*before, *after}) == 1


# -- sources ----------------------------------------------------------------------------------------------------------

SOURCES = {
    "plain": ("CREATE TABLE plain (id int, x float8)", None),
    "unlogged": ("CREATE UNLOGGED TABLE unlogged (id int)", None),
    "parted": (
        "CREATE TABLE parted (id int, x int) PARTITION BY RANGE (id); "
        "CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (50) PARTITION BY LIST (x); "
        "CREATE TABLE low_one PARTITION OF low FOR VALUES IN (1); CREATE TABLE other PARTITION OF parted DEFAULT",
        None,
    ),
    "parent": ("CREATE TABLE parent (id int); CREATE TABLE child (y int) INHERITS (parent)", None),
    "looked": ("CREATE VIEW looked AS SELECT 1 AS id", "is a view"),
    "filled": ("CREATE MATERIALIZED VIEW filled AS SELECT 1 AS id", "is a materialised view"),
    "far": (
        "CREATE EXTENSION IF NOT EXISTS file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; "
        "CREATE FOREIGN TABLE far (id int) SERVER files OPTIONS (filename '/dev/null')",
        "is a foreign table",
    ),
    "half": (
        "CREATE EXTENSION IF NOT EXISTS postgres_fdw; CREATE SERVER afar FOREIGN DATA WRAPPER postgres_fdw; "
        "CREATE TABLE half (id int) PARTITION BY LIST (id); "
        "CREATE FOREIGN TABLE half_far PARTITION OF half FOR VALUES IN (1) SERVER afar",
        "has parts that are foreign tables",
    ),
    "elder": (
        "CREATE SERVER beyond FOREIGN DATA WRAPPER postgres_fdw; CREATE TABLE elder (id int); "
        "CREATE FOREIGN TABLE younger () INHERITS (elder) SERVER beyond",
        "has parts that are foreign tables",
    ),
    "kept": (
        "CREATE ACCESS METHOD odd TYPE TABLE HANDLER heap_tableam_handler; CREATE TABLE kept (id int) USING odd",
        "of a storage that is not the server's own",
    ),
    "grand": (
        "CREATE TABLE grand (id int) PARTITION BY LIST (id); "
        "CREATE TABLE grand_odd PARTITION OF grand FOR VALUES IN (1) USING odd",
        "of a storage that is not the server's own",
    ),
    "made": ("CREATE TABLE made (id int, y int GENERATED ALWAYS AS (id * 2) STORED)", "has generated columns"),
    "pg_catalog.pg_class": ("SELECT 1", "of the system"),
    "pg_catalog.pg_settings": ("SELECT 1", "is a view"),
    "counted": ("CREATE SEQUENCE counted", "is not a table"),
    "ordered": ("CREATE TABLE under (id int); CREATE INDEX ordered ON under (id)", "is not a table"),
    "composed": ("CREATE TYPE composed AS (id int)", "is not a table"),
    "secured": (
        "CREATE TABLE secured (id int); ALTER TABLE secured ENABLE ROW LEVEL SECURITY; "
        "CREATE POLICY p ON secured USING (id < 5)",
        "has row security for this role",
    ),
    "nowhere": ("SELECT 1", "has no table"),
    "n" * 63 + "o": (f"CREATE TABLE {'n' * 63} (id int)", "has no table"),
}


@pytest.fixture(scope="module")
def sources(place: Postgres) -> Postgres:
    for text, _ in SOURCES.values():
        place.con.execute(text.encode())
    make(place, "SELECT 1")
    return place


@pytest.mark.parametrize("inner", [*SOURCES], ids=[name[:20] for name in SOURCES])
def test_what_may_be_a_source_is_a_list(sources: Postgres, inner: str) -> None:
    says = SOURCES[inner][1]
    engine = PostgresEngine()
    table = declared(sources, inner, unit="oid" if "pg_" in inner else "id")
    if says is None:
        assert engine.add("v", table).columns
        return
    with pytest.raises(hb.PolicyError, match=says):
        engine.add("v", table)


def test_a_temporary_table_is_of_its_own_session_alone(sources: Postgres) -> None:
    sources.con.execute("CREATE TEMP TABLE fleeting (id int)")
    ((schema,),) = sources.con.execute("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()").fetchall()
    for inner in ("fleeting", f"{schema}.fleeting"):
        with pytest.raises(hb.PolicyError, match=r"has no table|temporary|cannot be read"):
            PostgresEngine().add("v", declared(sources, inner))


def test_partitions_and_children_are_read_with_their_parents(sources: Postgres) -> None:
    make(sources, "INSERT INTO parted SELECT i, 1 FROM generate_series(1, 99) AS i WHERE i <> 60")
    make(sources, "INSERT INTO parent SELECT generate_series(1, 9); INSERT INTO child SELECT generate_series(5, 20)")
    assert Asked(sources, "parted").answers("SELECT COUNT(*) FROM v") == [((98,),)]
    assert Asked(sources, "parent").answers("SELECT COUNT(*) FROM v", (1, 9)) == [((25,),)]


def test_row_security_is_off_or_an_error_and_never_rows_left_out(sources: Postgres) -> None:
    """Put on after the table was declared: noticed before the next charge, and no answer comes of it."""
    make(sources, "CREATE TABLE later (id int); INSERT INTO later SELECT generate_series(1, 9)")
    asked = Asked(sources, "later")
    assert asked.answers("SELECT COUNT(*) FROM v") == [((9,),)]
    sources.con.execute("ALTER TABLE later ENABLE ROW LEVEL SECURITY; CREATE POLICY q ON later USING (id < 5)")
    with pytest.raises(hb.PolicyError, match="row security"):
        asked.engine.recheck("v")
    with pytest.raises(hb.EngineError):
        asked.engine.run(asked.plans("SELECT COUNT(*) FROM v")[0])


def test_texts_are_told_apart_by_their_letters_whatever_their_type(types: Postgres) -> None:
    """citext, padded characters, a collation that knows no case: one group for each text, blanks of padding apart."""
    make(types, "CREATE TABLE texts (id int, c citext, p char(4), s shy, e mood)")
    types.con.execute("INSERT INTO texts VALUES (1, 'a', 'x', 'a', 'low'), (2, 'A', 'x ', 'A', 'high'), "
                      "(3, 'a', 'X', 'a', 'low')")  # fmt: skip
    asked = Asked(types, "texts")
    for column, truth in (("c", {"a": 2, "A": 1}), ("p", {"x": 2, "X": 1}), ("s", {"a": 2, "A": 1})):
        found = asked.answers(f"SELECT {column}, COUNT(*) FROM v GROUP BY {column}")[0][0]
        assert {key: n for (key,), n in found.items()} == truth
    assert asked.answers("SELECT COUNT(*) FROM v WHERE c = 'A' AND p = 'x' AND s = 'A' AND e = 'high'") == [((1,),)]


# -- rights and names -------------------------------------------------------------------------------------------------


def test_columns_that_a_role_may_not_read_are_refused_before_a_charge(place: Postgres) -> None:
    place.con.execute("CREATE TABLE narrow (id int, open int, secret text); INSERT INTO narrow VALUES (1, 2, 'x')")
    place.con.execute("GRANT SELECT (id, open) ON narrow TO reader")
    table = declared(place, "narrow")
    with hb.Session({"v": table}, budget=hb.Budget(10**6), ledger=None) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM v WHERE open = 2", epsilon=1000).rows() == [(1,)]
        left = session.remaining
        for sql in ("SELECT COUNT(*) AS n FROM v WHERE secret = 'x'", "SELECT COUNT(secret) AS n FROM v"):
            with pytest.raises(hb.QueryError, match="secret"):
                session.sql(sql, epsilon=1)
        assert session.remaining == left
    for more in ({"unit": "secret"}, {"columns": {"Secret": hb.one_of("x")}}, {"types": {"secret": "text"}}):
        with pytest.raises(hb.PolicyError, match=r"may not read the column 'secret'|no column 'Secret'"):
            PostgresEngine().add("v", declared(place, "narrow", **more))
    place.con.execute("REVOKE SELECT (open) ON narrow FROM reader")
    engine = PostgresEngine()
    engine.add("v", table)
    place.con.execute("REVOKE SELECT (id) ON narrow FROM reader")
    with pytest.raises(hb.PolicyError, match="have changed"):
        engine.recheck("v")
    with pytest.raises(hb.PolicyError, match="may not read"):
        PostgresEngine().add("v", table)


def test_public_columns_have_names_of_ours(place: Postgres) -> None:
    """Two names that agree in the 63 bytes that the server keeps of one."""
    make(place, "CREATE TABLE named (id int, t text); INSERT INTO named SELECT i, 'a' FROM generate_series(1, 40) AS i")
    long = "n" * 70
    public = hb.public(pa.table({"k": ["a", "b"], f"{long}1": [1, 2], f"{long}2": [2, 1], 'p0"': [1, 1]}))
    with hb.Session({"v": declared(place, "named"), "w": public}, budget=hb.Budget(10**6), ledger=None) as session:
        where = f'w."{long}1" = 1 AND w."{long}2" = 2 AND w."p0""" = 1'
        answered = session.sql(f"SELECT COUNT(*) AS n FROM v JOIN w ON v.t = w.k WHERE {where}", epsilon=1000)
        assert answered.rows() == [(40,)]


def test_one_number_has_one_text(place: Postgres) -> None:
    """0.0 and -0.0 are equal, so whichever row came first would say how the group is written, or hashed."""
    make(place, "CREATE TABLE zero (id int, x float8, n int)")
    asked, found = Asked(place, "zero"), set()
    z = "(SELECT DISTINCT id, CASE WHEN n > 0 THEN x ELSE -x END AS z FROM v) AS p"
    for order in (1, -1):
        rows = [(unit, 0.0, n) for unit in range(60) for n in (1, -1)] + [(u, float(u % 5), 1) for u in range(60)]
        place.con.execute("TRUNCATE zero")
        for row in rows[::order]:
            place.con.execute("INSERT INTO zero VALUES (%s, %s, %s)", row)
        asking = [
            f"SELECT CAST(z AS VARCHAR) AS k, COUNT(*) FROM {z} GROUP BY 1",
            f"SELECT z, COUNT(*) FROM {z} GROUP BY z",
        ]
        found.add(repr([sorted(a[0].items()) for sql in asking for a in asked.answers(sql)]))
        found.add(repr([sorted(a[0].items()) for sql in asking for a in asked.answers(sql)]))
    assert len(found) == 1
    assert "-0.0" not in repr(found)


def test_who_may_make_a_type_cannot_decide_how_a_column_reads(types: Postgres) -> None:
    """A cast of somebody's own to text would run his function on rows; a type with the name of another is itself."""
    make(types, 'CREATE TABLE sly_ones (id int, s sly, d public."date")')
    schema = PostgresEngine().add("v", declared(types, "sly_ones"))
    assert {n: k.name for n, k in schema.columns.items()} == {"id": "INTEGER", "s": "OTHER", "d": "TEXT"}
    with pytest.raises(psycopg.errors.InsufficientPrivilege), psycopg.connect(types.url) as con:
        con.execute("CREATE TYPE own AS ENUM ('a')")


def test_what_a_constraint_keeps_from_being_null_holds_in_every_part(place: Postgres) -> None:
    make(
        place,
        """CREATE TABLE never (id bigint PRIMARY KEY, x integer NOT NULL, y integer);
        CREATE TABLE above (id bigint NOT NULL, x integer NOT NULL, y integer);
        CREATE TABLE below () INHERITS (above);
        ALTER TABLE below ALTER x DROP NOT NULL;
        CREATE VIEW never_shown AS SELECT * FROM never""",
    )
    if place.con.info.server_version >= 180000:  # before, no NOT NULL is without validation
        make(place, "ALTER TABLE never ADD CONSTRAINT later NOT NULL y NOT VALID")
    kept = {inner: PostgresEngine().add("v", declared(place, inner)).never_null for inner in ("never", "above")}
    assert kept == {"never": {"id", "x"}, "above": {"id"}}
    shown = PostgresEngine().add("v", declared(place, "never_shown", trusted_view=True)).never_null
    assert shown == frozenset()


@pytest.mark.parametrize(
    ("inner", "filled", "is_answered"),
    [
        (None, {"value": "wards"}, True),
        ("wrads", {}, True),
        ("public.wrads", {}, True),
        ("nowhere.wards", {}, False),
        ("wards_2024", {}, False),  # beside wards_2023: another year is no slip
    ],
)
def test_the_table_that_was_meant_is_answered(
    place: Postgres, inner: str | None, filled: dict[str, Any], is_answered: bool, tmp_path: Path
) -> None:
    make(
        place,
        "CREATE TABLE IF NOT EXISTS wards (id int, ward text); CREATE TABLE IF NOT EXISTS wards_2023 (id int);",
    )
    tables = {"t": declared(place, inner)}  # type: ignore[arg-type]
    with pytest.raises(hb.PolicyError) as refused:
        hb.Session(tables, budget=hb.Budget(epsilon=1), ledger=None)
    assert len(refused.value.remedies) == is_answered
    for remedy in refused.value.remedies:
        assert remedy.in_python() in str(refused.value)
        attempt, put_right = remedy.fill(**filled).apply(Attempt("SELECT COUNT(*) AS x FROM t", {"epsilon": 1}), tables)
        with hb.Session(put_right, budget=hb.Budget(epsilon=1), ledger=tmp_path / "a.db") as session:
            assert session.sql(attempt.sql, **attempt.options).columns == ("x",)
