"""A table of Postgres that is changed after the look before the charge: its question is answered as meant, or not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from engines.places import Postgres, answer
from engines.test_postgres_sources import Asked, make
from hubbub.engines.postgres import engine as postgres
from hubbub.errors import EngineError, PolicyError

FRESH = (
    "DROP SCHEMA IF EXISTS here, there CASCADE; CREATE SCHEMA here; CREATE SCHEMA there; "
    "CREATE TABLE here.v (id int, y int, x numeric(12, 2)); CREATE TABLE here.other (id int, y int, x numeric(12, 2)); "
    "INSERT INTO here.v SELECT i, 1, i FROM generate_series(1, 50) AS i; "
    "CREATE TABLE there.v (LIKE here.v); INSERT INTO there.v SELECT i, 1, i FROM generate_series(1, 70) AS i; "
    "GRANT USAGE ON SCHEMA here, there TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA here, there TO reader; "
)
SHOWN = "; GRANT SELECT ON ALL TABLES IN SCHEMA here, there TO reader"

OTHERS = {
    "a number is a text": "ALTER TABLE here.v ALTER x TYPE text",
    "a text is a number": "ALTER TABLE here.v ALTER x TYPE float8 USING x::float8",
    "two columns change names": "ALTER TABLE here.v RENAME id TO z; ALTER TABLE here.v RENAME y TO id; "
    "ALTER TABLE here.v RENAME z TO y",
    "the unit has another name": "ALTER TABLE here.v RENAME id TO z",
    "a column less": "ALTER TABLE here.v DROP y",
    "a column more": "ALTER TABLE here.v ADD z int",
    "a view": "DROP TABLE here.v; CREATE VIEW here.v AS SELECT id, count(*) OVER ()::int AS y, x FROM there.v",
    "a materialised view": "DROP TABLE here.v; CREATE MATERIALIZED VIEW here.v AS SELECT * FROM there.v",
    "a table that became a view": "ALTER TABLE here.v RENAME TO w; CREATE VIEW here.v AS SELECT * FROM here.w",
    "a foreign table": "DROP TABLE here.v; CREATE FOREIGN TABLE here.v (id int, y int, x numeric(12, 2)) SERVER files "
    "OPTIONS (filename '/dev/null')",
    "a part is a foreign table": "CREATE FOREIGN TABLE here.far () INHERITS (here.v) SERVER files "
    "OPTIONS (filename '/dev/null')",
    "a part has computed columns": "CREATE TABLE here.part (z int GENERATED ALWAYS AS (id) STORED) INHERITS (here.v)",
    "computed columns": "ALTER TABLE here.v DROP x; ALTER TABLE here.v ADD x numeric(12, 2) "
    "GENERATED ALWAYS AS (id) STORED",
    "in parts": "DROP TABLE here.v; CREATE TABLE here.v (id int, y int, x numeric(12, 2)) PARTITION BY LIST (id)",
    "another storage": "DROP TABLE here.v; CREATE TABLE here.v (id int, y int, x numeric(12, 2)) USING odd",
    "row security": "ALTER TABLE here.v ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON here.v USING (id < 5)",
    "another type of the same name": "ALTER TABLE here.v ALTER x TYPE here.numeric USING (7)",
    "gone": "DROP TABLE here.v",
    "the schema is another": "ALTER SCHEMA here RENAME TO gone; DROP SCHEMA gone CASCADE",
}
"""What makes of a table something else than its texts were written for."""

SAME = {
    "nothing": ("SELECT 1", 50),
    "other rows": ("TRUNCATE here.v; INSERT INTO here.v SELECT i, 1, i FROM generate_series(1, 60) AS i", 60),
    "tidied": ("ANALYZE here.v; CREATE INDEX ON here.v (id); ALTER TABLE here.v SET (fillfactor = 50)", 50),
    "written anew": ("ALTER TABLE here.v ALTER x TYPE numeric(14, 2)", 50),
    "another of the same columns": ("DROP TABLE here.v; CREATE TABLE here.v AS SELECT * FROM there.v", 70),
    "the schemas change names": (
        "ALTER SCHEMA here RENAME TO z; ALTER SCHEMA there RENAME TO here; ALTER SCHEMA z RENAME TO there",
        70,
    ),
    "a part": ("CREATE TABLE here.more () INHERITS (here.v); INSERT INTO here.more VALUES (99, 1, 1)", 51),
}

SQL = "SELECT COUNT(*) FROM v WHERE x < 1000"


@pytest.fixture(scope="module")
def place(postgres_server: str) -> Iterator[Postgres]:
    found = Postgres(postgres_server, {}, {})
    make(found, "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; "
                "CREATE ACCESS METHOD odd TYPE TABLE HANDLER heap_tableam_handler")  # fmt: skip
    yield found
    found.close()


def fresh(place: Postgres, first: str = "", **more: Any) -> Asked:
    place.con.execute((FRESH + "CREATE DOMAIN here.numeric AS int; " + first + SHOWN).encode())
    return Asked(place, "here.v", **more)


@pytest.mark.parametrize("change", OTHERS)
def test_a_table_that_became_something_else_is_not_answered(place: Postgres, change: str) -> None:
    asked = fresh(place, "ALTER TABLE here.v ALTER x TYPE text" if change == "a text is a number" else "")
    (plan,) = asked.plans(SQL.replace("x < 1000", "y = 1") if "text" in change else SQL)
    asked.engine.prepare(plan)
    assert answer(asked.engine, plan, {}) == ((50,),)
    place.con.execute((OTHERS[change] + (SHOWN if "schema" not in change else "")).encode())
    with pytest.raises(EngineError):
        asked.engine.run(plan)
    with pytest.raises(PolicyError):
        asked.engine.recheck("v")


@pytest.mark.parametrize("change", SAME)
def test_a_table_of_the_same_columns_is_answered(place: Postgres, change: str) -> None:
    asked = fresh(place)
    (plan,) = asked.plans(SQL)
    asked.engine.prepare(plan)
    text, truth = SAME[change]
    place.con.execute((text + SHOWN).encode())
    assert answer(asked.engine, plan, {}) == ((truth,),)


VIEWED = "ALTER TABLE here.v RENAME TO w; CREATE VIEW here.v AS SELECT * FROM here.w"
WAITED = {
    "the table": ("", {}),
    "its columns": ("REVOKE SELECT ON here.v FROM reader; GRANT SELECT (id, y, x) ON here.v TO reader", {}),
    "a view": (VIEWED, {"trusted_view": True}),
}
"""What a role may read; a view is trusted."""


@pytest.mark.parametrize("rights", WAITED)
def test_a_change_that_a_question_has_waited_for_is_seen(place: Postgres, rights: str) -> None:
    """The snapshot is older than the change, and the text is read by what the change left: they have to agree."""
    first, more = WAITED[rights]
    asked = fresh(place, first if more else "", **more)
    place.con.execute(first.encode() if not more else b"SELECT 1")
    (plan,) = asked.plans(SQL)
    asked.engine.prepare(plan)
    kind = "VIEW" if more else "TABLE"
    same = "CREATE OR REPLACE VIEW" if more else "DROP TABLE here.v; CREATE TABLE"
    for change, truth in (
        ("LOCK TABLE here.v", ((50,),)),
        (f"{same} here.v AS SELECT * FROM there.v", ((70,),)),
        (f"ALTER {kind} here.v RENAME COLUMN y TO z", None),
        (f"DROP {kind} here.v; CREATE TABLE here.v AS SELECT id, y, x::text FROM there.v", None),
    ):
        found = []

        def ask(found: list[Any] = found) -> None:
            try:
                found.append(answer(asked.engine, plan, {}))
            except EngineError:
                found.append(None)

        thread = threading.Thread(target=ask)
        with psycopg.connect(place.admin) as con:
            con.execute((change + "; GRANT SELECT ON here.v TO reader").encode())
            thread.start()
            while not place.con.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                time.sleep(0.01)
        thread.join()
        assert found == [truth], change


def test_what_a_lock_does_not_hold_is_looked_at_when_all_is_read(
    place: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of schemas and lists of parts, changed when the table is locked; and what does no harm."""
    look, (swapped, _) = postgres.steady, SAME["the schemas change names"]
    index = "CREATE INDEX ON here.v (y)"
    for change, answered in ((OTHERS["a part is a foreign table"], False), (swapped, False), (index, True)):
        asked = fresh(place)
        (plan,) = asked.plans(SQL)

        def after(con: Any, known: Any, change: str = change) -> Any:
            found = look(con, known)
            place.con.execute((change + SHOWN).encode())
            return found

        with monkeypatch.context() as patched:
            patched.setattr(postgres, "steady", after)
            if answered:
                assert answer(asked.engine, plan, {}) == ((50,),)
            else:
                with pytest.raises(EngineError):
                    asked.engine.run(plan)


def test_a_trusted_view_may_read_what_it_likes(place: Postgres) -> None:
    asked = fresh(
        place,
        VIEWED + "; CREATE FUNCTION here.some() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS "
        "$$BEGIN RETURN (SELECT count(*) FROM there.v); END$$; CREATE OR REPLACE VIEW here.v AS SELECT * FROM here.w "
        "WHERE id <> here.some()",
        trusted_view=True,
    )
    assert asked.answers(SQL) == [((50,),)]
