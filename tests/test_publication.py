"""What is published: the numbers that were released, what they promise, and nothing of the ledger or its analysts."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.accounting import ZCDP, delta_bounds, rho_of_epsilon
from hubbub.answer.publication import promise
from hubbub.synthesis.utility import Followed, Utility


@pytest.fixture
def opened(tmp_path):
    rows = [{"id": i, "w": "ab"[i % 2], "v": "xyz"[i % 3], "x": i % 7} for i in range(900)]
    columns = {"w": hb.one_of("a", "b"), "v": hb.one_of("x", "y", "z"), "x": hb.one_of(*range(7))}
    t = hb.table(pa.Table.from_pylist(rows), unit="id", max_groups=1, max_rows=1, columns=columns)
    budget = hb.Budget(epsilon=20, delta=1e-6)
    with hb.Session({"t": t}, budget=budget, ledger=tmp_path / "b.db", analyst="somebody_secret") as session:
        yield session


def about(folder: Path) -> dict:
    return json.loads((folder / "metadata.json").read_text("utf-8"))


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_an_answer_is_published_with_its_intervals_and_what_it_promises(opened, tmp_path):
    answer = opened.sql("SELECT w, COUNT(*) AS n FROM t GROUP BY w", epsilon=1)
    folder = answer.publish(tmp_path / "out", title="<Wards> & co")
    assert sorted(f.name for f in folder.iterdir()) == ["answer.csv", "index.html", "metadata.json"]
    said = about(folder)
    table = rows(folder / "answer.csv")
    assert [(r["w"], int(r["n"])) for r in table] == answer.rows()
    low, high = (answer.intervals().to_pydict()[f"n_{end}"] for end in ("low", "high"))
    assert [(float(r["n_low"]), float(r["n_high"])) for r in table] == list(zip(low, high, strict=True))
    assert (said["epsilon"], said["unit"], said["bounding"]["max_rows"]) == ("1", "id", 1)
    assert said["error"]["median_half_width"]["n"] == answer.error.half_widths()["n"][0]
    assert said["error"]["remarks"] == list(answer.text.remarks)
    certified = delta_bounds(ZCDP(answer.receipt["rho"]), 1)[1]
    assert certified <= said["delta"] <= 1.01 * certified
    assert said["delta"] <= 1e-6
    page = (folder / "index.html").read_text("utf-8")
    assert "&lt;Wards&gt; &amp; co" in page
    assert "<script" not in page
    assert opened.history()[0].epsilon == 1
    assert len(opened.history()) == 1, "publishing charged something"


def test_nothing_of_the_ledger_or_its_people_is_in_a_publication(opened, tmp_path):
    answer = opened.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
    made = opened.synthesize("t", epsilon=2)
    tables = opened.marginals("t", [("w", "v")], epsilon=1)
    for i, release in enumerate((answer, made, tables)):
        folder = release.publish(tmp_path / f"out{i}")
        receipt = opened.receipt(release.charge_id)
        secret = {
            "somebody_secret",
            receipt["id"],
            receipt["data_version"],
            receipt["policy"],
            receipt["chain"]["ledger"],
        }
        for file in folder.iterdir():
            text = file.read_text("utf-8")
            assert not [word for word in secret if word in text], file


def test_a_pure_budget_has_no_delta_and_public_tables_no_epsilon(tmp_path):
    assert promise({"sql": "SELECT 1"}) == {
        "epsilon": "0", "delta": 0, "protected": "public tables only: answered exactly",
    }  # fmt: skip
    receipt = {"unit_space": "id", "unit": None, "epsilon": "1/3", "delta": "0", "rho": None, "max_rows": 2}
    said = promise(receipt)
    assert (said["epsilon"], said["delta"], said["protected"]) == ("1/3", 0.0, "each single row")
    with_thresholds = promise(receipt | {"delta": "1e-7"})
    assert with_thresholds["delta"] == 1e-7


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_refined_answer_promises_what_both_of_its_draws_cost(tmp_path, delta):
    t = hb.table(pa.table({"id": range(50)}), unit="id", max_groups=1, max_rows=1)
    with hb.Session({"t": t}, budget=hb.Budget(20, delta), ledger=tmp_path / "l.db") as session:
        first = session.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.2")
        better = first.refine("0.3")
        said = about(better.publish(tmp_path / "out"))
    assert (said["epsilon"], better.receipt["refined"]) == ("0.5", first.charge_id)
    parts = {part["charge"]: part for part in better.receipt["measurements"]}
    assert list(parts) == [first.charge_id, better.charge_id]
    (drawn,) = first.receipt["measurements"]
    assert parts[first.charge_id] == {**drawn, "charge": first.charge_id}
    if delta is None:
        assert [part["epsilon"] for part in parts.values()] == ["1/5", "3/10"]
    if delta is not None:
        parts = [rho_of_epsilon(Fraction(e), Fraction(delta) / 2) for e in ("0.2", "0.3")]
        assert float(Fraction(said["rho"])) == pytest.approx(float(sum(parts)))
        assert said["delta"] >= delta_bounds(ZCDP(said["rho"]), "0.5")[0]


def test_each_row_that_is_its_own_unit_is_protected_alone(tmp_path):
    t = hb.table(pa.table({"x": range(50)}), unit=hb.EACH_ROW)
    with hb.Session({"t": t}, budget=hb.Budget(20), ledger=tmp_path / "l.db") as session:
        said = about(session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).publish(tmp_path / "out"))
    assert (said["unit"], said["protected"]) == ("each row", "each single row")


def test_no_text_of_a_published_table_is_a_formula_or_ends_a_line(tmp_path):
    columns = {"w": hb.one_of("=1+1", "b\rc")}
    t = hb.table(pa.table({"id": range(4), "w": ["=1+1", "b\rc"] * 2}), unit="id", max_total=1, columns=columns)
    with hb.Session({"t": t}, budget=hb.Budget(20), ledger=tmp_path / "l.db") as session:
        answer = session.sql("SELECT w, COUNT(*) AS n FROM t GROUP BY w", epsilon=1, max_groups=1, max_rows=1)
        folder = answer.publish(tmp_path / "out")
    assert [r["w"] for r in rows(folder / "answer.csv")] == ["'=1+1", "b\rc"]


def test_the_ends_of_an_interval_keep_their_place_beside_a_column_of_their_name(opened, tmp_path):
    answer = opened.sql("SELECT COUNT(*) AS n, COUNT(x) AS n_low FROM t", epsilon=1)
    ends = answer.intervals()
    assert ends.column_names == ["n", "n_low_", "n_high", "n_low", "n_low_low", "n_low_high"]
    (row,) = rows(answer.publish(tmp_path / "out") / "answer.csv")
    assert float(row["n_low_"]) < int(row["n"]) == answer.rows()[0][0]
    assert int(row["n_low"]) == answer.rows()[0][1]


def test_two_marginals_of_long_names_that_begin_alike_are_two_files(tmp_path):
    long = "the_department_of_the_admission_and_its_ward_as_the_register_has_it_in_the_long_form_"
    columns = {f"{long}{i}": hb.one_of("a", "b") for i in (1, 2)}
    frame = pa.table({"id": range(900), **{name: ["a", "b"] * 450 for name in columns}})
    t = hb.table(frame, unit="id", max_total=1, columns=columns)
    with hb.Session({"t": t}, budget=hb.Budget(20, 1e-6), ledger=tmp_path / "l.db") as session:
        folder = session.marginals("t", [(name,) for name in columns], epsilon=2).publish(tmp_path / "out")
    files = sorted(f.name for f in folder.glob("*.csv"))
    assert len(files) == 2
    assert about(folder)["files"] == files


def test_a_file_that_is_there_stays_unless_it_may_go(opened, tmp_path):
    answer = opened.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/index.html").write_text("mine")
    with pytest.raises(hb.PolicyError, match=r"holds index\.html already"):
        answer.publish(tmp_path / "out")
    assert (tmp_path / "out/index.html").read_text() == "mine"
    assert not (tmp_path / "out/answer.csv").exists()
    answer.publish(tmp_path / "out", force=True)
    assert (tmp_path / "out/index.html").read_text() != "mine"
    (tmp_path / "file").write_text("")
    with pytest.raises(hb.PolicyError, match="cannot write"):
        answer.publish(tmp_path / "file")
    with pytest.raises(hb.ParameterError, match="name the folder"):
        answer.publish("")


def test_a_synthetic_table_is_published_with_what_it_keeps(opened, tmp_path):
    made = opened.synthesize("t", epsilon=5)
    folder = made.publish(tmp_path / "out")
    assert len(rows(folder / "synthetic.csv")) == len(made) == about(folder)["rows"]
    assert {r["marginal"] for r in rows(folder / "utility.csv")} >= {"w", "v", "x"}
    missing = [" x ".join(pair) for pair in made.utility.not_kept]
    assert about(folder)["error"]["relations_not_measured"] == missing
    again = opened.synthesize("t", epsilon=5)
    assert (again.charged, again.utility, again.receipt["sql"]) == (False, made.utility, made.receipt["sql"])
    assert all(pair in made._repr_html_() for pair in missing)


def test_a_synthetic_table_says_what_of_a_target_it_keeps(opened, tmp_path):
    """In print, in the report, in a notebook, in what is published; another column of the stored table is free."""
    none = opened.synthesize("t", epsilon=5, method="independent", target="w")
    assert none.report.startswith("No relation of w to another column was kept: a model that learns w from this table")
    assert "No relation of w" in none._repr_html_()
    assert about(none.publish(tmp_path / "none"))["error"]["relations_kept_of"] == {"w": []}
    some = opened.synthesize("t", epsilon=5, method="tree", target="x")
    kept = some.utility.kept_of("x")
    assert kept
    assert some.report.startswith(f"Relations of x that were kept: to {', '.join(kept)}")
    other = opened.synthesize("t", epsilon=5, method="tree", target="v")
    assert not other.charged
    assert other.to_dict() == some.to_dict()
    with pytest.raises(hb.ParameterError, match="would have the columns"):
        opened.synthesize("t", epsilon=5, target="nobody")


def test_a_pair_that_was_bought_and_left_out_of_the_model_is_not_kept():
    told = Utility(("a", "b"), (Followed(("a", "b"), 0.5, 0.01, used=False),))
    assert told.kept_of("a") == []
    assert Utility.from_wire(("a", "b"), json.loads(json.dumps(told.to_wire()))) == told
    assert Utility.from_wire(("a", "b"), [[["a", "b"], 0.5, 0.01]]).kept_of("a") == ["b"]  # of an older hubbub


def test_marginals_are_published_each_in_a_file_of_its_own(opened, tmp_path):
    tables = opened.marginals("t", [("w",), ("w", "v")], epsilon=1)
    folder = tables.publish(tmp_path / "out")
    assert about(folder)["files"] == ["count_by_w.csv", "count_by_w_by_v.csv"]
    assert [float(r["count"]) for r in rows(folder / "count_by_w.csv")] == tables.table("w").to_pydict()["count"]


def test_utility_is_the_distance_from_the_noisy_shares():
    """Two columns that are equal in the noisy pair, and independent in the table: the distance is 1/2."""
    told = Utility(("a", "b", "c"), (Followed(("a", "b"), 0.5, 0.01), Followed(("c",), 0.0, 0.01)))
    assert told.not_kept == [("a", "c"), ("b", "c")]
    assert "a x b: 0.5000 (0.0100)" in str(told)
    assert "may be missing: a x c, b x c" in str(told)
    assert Utility.from_wire(("a", "b", "c"), json.loads(json.dumps(told.to_wire()))) == told


def test_utility_sees_a_relation_that_the_table_lost():
    import numpy as np

    from hubbub.synthesis.domain import Domain
    from hubbub.synthesis.synthetic import synthesize
    from hubbub.synthesis.utility import utility_of

    codes = np.repeat([[0, 0], [1, 1]], 500, axis=0)
    data = synthesize(codes, Domain(("a", "b"), (2, 2)), rho=Fraction(50), rows=1000, method="tree")
    kept = utility_of(data.report)
    (pair,) = [one for one in kept.followed if len(one.columns) == 2]
    assert pair.distance < 0.05
    from dataclasses import replace

    torn = replace(data.report, codes=np.stack([codes[:, 0], np.tile([0, 1], 500)], axis=1))
    (pair,) = [one for one in utility_of(torn).followed if len(one.columns) == 2]
    assert abs(pair.distance - 0.5) < 0.05
