"""What stands under an answer, of which its intervals do not hold all."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hubbub as hb
from answers import Desk
from hubbub.engines.duckdb.relations import image
from hubbub.tables.left_out import left_out
from hubbub.tables.plan import make_plans

T = pa.table({"id": [1, 2], "g": ["a", "b"], "x": [1.0, 2.0]})
W = pa.table({"g": ["a", "b"], "least": [1, 2]})
G = "(SELECT g, COUNT(*) AS c FROM t GROUP BY g)"
NOISE = "the noise of the answer that rows are compared with"


@pytest.fixture(scope="module")
def desk() -> Desk:
    columns = {"g": hb.one_of("a", "b"), "x": hb.between(0, 9)}
    return Desk({"t": hb.table(T, unit="id", max_groups=1, max_rows=1, columns=columns), "w": hb.public(W)})


@pytest.mark.parametrize(
    "rest",
    [
        "FROM t WHERE x > (SELECT AVG(x) FROM t)",
        f"FROM t WHERE g IN (SELECT g FROM {G} WHERE c > 1)",
        f"FROM t WHERE g NOT IN (SELECT g FROM {G} WHERE c > 1)",
        f"FROM t JOIN {G} AS q ON t.g = q.g AND t.x < q.c",
        "FROM (SELECT id, x FROM t) AS t WHERE EXISTS (SELECT COUNT(*) FROM t HAVING COUNT(*) > 3)",
    ],
)
@pytest.mark.parametrize("one", [True, False])
def test_rows_that_are_compared_with_a_noisy_answer_have_its_noise_too(desk: Desk, rest: str, one: bool) -> None:
    """Their number is one of rows above the noisy mean; that the mean was noisy is in no interval."""
    each = "(SELECT id, MAX(g) AS g, MAX(x) AS x FROM t GROUP BY id) AS t"
    asked = f"SELECT COUNT(*) AS n {rest.replace('FROM t ', f'FROM {each} ', 1) if one else rest}"
    said = [left_out(plan) for q in desk.statement(asked).questions for plan in make_plans(q, image)]
    assert sum(NOISE in (line or "") for line in said) == 1, said


def test_public_rows_have_no_noise(desk: Desk) -> None:
    asked = "SELECT COUNT(*) AS n FROM t JOIN w USING (g) WHERE x > (SELECT MIN(least) FROM w)"
    (question,) = desk.statement(asked).questions
    (plan,) = make_plans(question, image)
    assert NOISE not in (left_out(plan) or "")
