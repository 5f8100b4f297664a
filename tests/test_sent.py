"""An answer that was sent to another process is the same answer: table, intervals, text, receipt."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.answer.release import Release
from hubbub.answer.wire import LEVELS

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM v",
    "SELECT w, COUNT(*) AS n, AVG(x) AS m, MEDIAN(x) AS h, COUNT(*) / 7 AS part FROM v GROUP BY w",
    "SELECT w, AVG(x) AS m FROM v WHERE x > 1000 GROUP BY w ORDER BY w DESC LIMIT 2",
    "SELECT MIN(day) AS first, MAX(day) AS last FROM v",
    "SELECT name, 1 + 1 AS two FROM p",
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> hb.Session:
    n = 600
    rows = pa.table(
        {
            "id": list(range(n)),
            "x": [i % 50 for i in range(n)],
            "w": ["a", "b", "c"] * (n // 3),
            "day": [dt.date(2024, 1, 1) + dt.timedelta(i % 366) for i in range(n)],
        }
    )
    columns = {
        "x": hb.between(0, 50),
        "w": hb.one_of("a", "b", "c"),
        "day": hb.between(dt.date(2024, 1, 1), dt.date(2024, 12, 31)),
    }
    table = hb.table(rows, unit="id", columns=columns, max_groups=1, max_rows=1)
    tables = {"v": table, "p": hb.public(pa.table({"name": ["x", None]}))}
    path = tmp_path_factory.mktemp("sent") / "l.db"
    return hb.Session(tables, budget=hb.Budget(200), ledger=path, analyst="ada")


@pytest.mark.parametrize("sql", QUESTIONS)
def test_an_answer_is_the_same_after_the_wire(session: hb.Session, sql: str) -> None:
    release = session.sql(sql, epsilon=2)
    sent = release.to_wire()
    assert json.loads(sent)["format"] == "release 1"
    back = Release.from_wire(sent)
    assert back.to_arrow().equals(release.to_arrow())
    assert str(back) == str(release)
    assert (back.cost, back.epsilon, back.charge_id, back.text.notes) == (
        release.cost,
        release.epsilon,
        release.charge_id,
        release.text.notes,
    )
    assert json.loads(json.dumps(dict(back.receipt))) == json.loads(json.dumps(dict(release.receipt), default=str))
    for level in LEVELS:
        assert back.intervals(level).equals(release.intervals(level))
        for name, widths in release.error.half_widths(level).items():
            np.testing.assert_array_equal(back.error.half_widths(level)[name], widths)


def test_what_was_not_sent_is_refused_in_our_words(session: hb.Session) -> None:
    back = Release.from_wire(session.sql(QUESTIONS[0], epsilon=2).to_wire())
    with pytest.raises(hb.ParameterError, match="sent with intervals at"):
        back.intervals(0.123)
    with pytest.raises(hb.QueryError, match="no draws"):
        back.error.draws(10)
    with pytest.raises(hb.QueryError, match="cannot be refined"):
        back.refine(1)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"format": "release 0"}', '{"format": "release 1"}'])
def test_what_is_not_an_answer_is_refused(text: str) -> None:
    with pytest.raises(hb.ParameterError, match="not an answer"):
        Release.from_wire(text)


def test_a_process_without_rows_reads_it(session: hb.Session) -> None:
    release = session.sql(QUESTIONS[1], epsilon=2)
    program = "import sys\nfrom hubbub.answer.release import Release\nprint(Release.from_wire(sys.stdin.read()))"
    done = subprocess.run([sys.executable, "-c", program], input=release.to_wire(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(release).strip()


def test_the_folder_of_the_ledger_is_not_in_it(session: hb.Session) -> None:
    sent = session.sql(QUESTIONS[0], epsilon=2).to_wire()
    assert str(Path(session.ledger.where).parent) not in sent
