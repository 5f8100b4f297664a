"""The planner: no data is read, errors fall with budget and rows, and each method has its place."""

from __future__ import annotations

import pytest

from hubbub.accounting import rho_of_epsilon
from hubbub.errors import ParameterError
from hubbub.synthesis import METHODS, Domain, plan_synthesis, synthesize
from seeded import SeededBits

# The columns of UCI Adult.
WIDE = Domain(tuple("abcdefghijklmn"), (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2))
ROWS = 48_842


@pytest.mark.parametrize(
    ("epsilon", "method"), [("1/10000", "uniform"), ("1/50", "independent"), (1, "marginals"), (10, "marginals")]
)
def test_more_budget_buys_more_structure(epsilon: str | int, method: str) -> None:
    plan = plan_synthesis(WIDE, rho=rho_of_epsilon(epsilon, "1e-9"), rows=ROWS)
    assert plan.method == method
    assert plan.beats_uniform == (method != "uniform")
    assert plan.reason.startswith(f"{method}: ")
    assert f"*{method}" in str(plan)


def test_the_adaptive_method_is_picked_only_where_time_may_be_spent() -> None:
    rho = rho_of_epsilon("1/10", "1e-9")
    quick, slow = (plan_synthesis(WIDE, rho=rho, rows=ROWS, thorough=thorough) for thorough in (False, True))
    assert (quick.method, slow.method) == ("marginals", "adaptive")


def test_a_tiny_universe_is_measured_whole() -> None:
    assert plan_synthesis(Domain(("a", "b"), (2, 2)), rho="1/100", rows=1000).method in ("joint", "marginals")
    assert "joint" not in plan_synthesis(WIDE, rho=1, rows=ROWS).errors


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("joint", "uniform")])
def test_predicted_errors_fall_with_budget_and_rows_and_stay_below_those_of_uniform_records(method: str) -> None:
    last = (1.0, 1.0, 1.0)
    for k in range(-12, 4):
        plan = plan_synthesis(WIDE, rho=10.0**k, rows=ROWS, method=method)
        assert all(now <= before + 1e-9 for now, before in zip(plan.error, last, strict=True))
        assert all(now <= most + 1e-9 for now, most in zip(plan.error, plan.errors["uniform"], strict=True))
        last = plan.error
    # Ten times the rows are a hundred times the budget.
    more_rows = plan_synthesis(WIDE, rho="1/10000", rows=10 * ROWS, method=method).error
    assert more_rows == pytest.approx(plan_synthesis(WIDE, rho="1/100", rows=ROWS, method=method).error, rel=1e-9)


def test_units_of_many_rows_are_priced_as_noise() -> None:
    one = plan_synthesis(WIDE, rho=9, rows=ROWS, squared_sensitivity=9)
    assert one.errors == plan_synthesis(WIDE, rho=1, rows=ROWS).errors


@pytest.mark.parametrize("options", [{"rho": 0}, {"rho": -1}, {"rho": 1, "method": "best"}, {"rho": "x"}])
def test_bad_plans_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        plan_synthesis(WIDE, rows=ROWS, **options)  # type: ignore[arg-type]


def test_a_report_draws_its_worst_marginals() -> None:
    pytest.importorskip("matplotlib")
    domain = Domain(("a", "b", "c"), (3, 4, 2))
    report = synthesize([[i % 3, i % 4, i % 2] for i in range(600)], domain, rho=1, bits=SeededBits("plot")).report
    ax = report.plot(2, most=2)
    worst = sorted(report.distances(2), key=lambda c: -report.distances(2)[c])[:2]
    assert [t.get_text() for t in ax.get_xticklabels()] == [" x ".join(c) for c in worst]
    low, high = report.interval(worst[0])
    assert low < report.distances(2)[worst[0]] < high <= 1
    with pytest.raises(ParameterError, match="1-, 2- and 3-way"):
        report.distances(4)
