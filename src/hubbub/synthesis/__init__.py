"""Many queries at once: marginals, ranges, synthetic data; each by the method that suits it.

The room's rules:
- A table is a matrix of integer codes over a public `Domain`; what is counted is an integer when noise is added.
- Every release states its accounting event (`loss`, with an exact rho where it is zCDP) and is charged as one plan.
- What follows a release (reconstruction, consistency, sampling of records) is post-processing and costs nothing.

Names load when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.late import late_names

if TYPE_CHECKING:
    from hubbub.synthesis.answers import Answer as Answer
    from hubbub.synthesis.consistency import (
        agreeing as agreeing,
        disagreement as disagreement,
        nonnegative as nonnegative,
        nonnegative_agreeing as nonnegative_agreeing,
        whole_numbers as whole_numbers,
    )
    from hubbub.synthesis.constraints import Constraint as Constraint, constraint as constraint
    from hubbub.synthesis.crossover import Crossover as Crossover, observe as observe, promises as promises
    from hubbub.synthesis.domain import Domain as Domain
    from hubbub.synthesis.marginals import (
        MarginalPlan as MarginalPlan,
        MarginalRelease as MarginalRelease,
        all_marginals as all_marginals,
        plan_marginals as plan_marginals,
    )
    from hubbub.synthesis.multiplicative_weights import OnlineAnswer as OnlineAnswer, OnlineWeights as OnlineWeights
    from hubbub.synthesis.mwem import OfflineWeights as OfflineWeights, WeightsRelease as WeightsRelease
    from hubbub.synthesis.planner import (
        METHODS as METHODS,
        SynthesisPlan as SynthesisPlan,
        plan_synthesis as plan_synthesis,
    )
    from hubbub.synthesis.ranges import (
        ChosenRanges as ChosenRanges,
        RangePlan as RangePlan,
        RangeRelease as RangeRelease,
        plan_ranges as plan_ranges,
    )
    from hubbub.synthesis.records import Categories as Categories, Edges as Edges, Schema as Schema
    from hubbub.synthesis.report import SynthesisReport as SynthesisReport
    from hubbub.synthesis.smalldb import SmallDB as SmallDB, SmallTable as SmallTable
    from hubbub.synthesis.synthetic import SyntheticData as SyntheticData, synthesize as synthesize

# Where each public name lives.
_LATER = {
    "agreeing": "consistency",
    "all_marginals": "marginals",
    "Answer": "answers",
    "ChosenRanges": "ranges",
    "Crossover": "crossover",
    "disagreement": "consistency",
    "Domain": "domain",
    "MarginalPlan": "marginals",
    "MarginalRelease": "marginals",
    "nonnegative": "consistency",
    "nonnegative_agreeing": "consistency",
    "observe": "crossover",
    "OfflineWeights": "mwem",
    "OnlineAnswer": "multiplicative_weights",
    "OnlineWeights": "multiplicative_weights",
    "plan_marginals": "marginals",
    "plan_ranges": "ranges",
    "promises": "crossover",
    "RangePlan": "ranges",
    "RangeRelease": "ranges",
    "SmallDB": "smalldb",
    "SmallTable": "smalldb",
    "WeightsRelease": "mwem",
    "whole_numbers": "consistency",
    "Categories": "records",
    "Constraint": "constraints",
    "constraint": "constraints",
    "Edges": "records",
    "METHODS": "planner",
    "plan_synthesis": "planner",
    "Schema": "records",
    "SyntheticData": "synthetic",
    "SynthesisPlan": "planner",
    "SynthesisReport": "report",
    "synthesize": "synthetic",
}

__all__ = [
    "METHODS",
    "Answer",
    "Categories",
    "ChosenRanges",
    "Constraint",
    "Crossover",
    "Domain",
    "Edges",
    "MarginalPlan",
    "MarginalRelease",
    "OfflineWeights",
    "OnlineAnswer",
    "OnlineWeights",
    "RangePlan",
    "RangeRelease",
    "Schema",
    "SmallDB",
    "SmallTable",
    "SynthesisPlan",
    "SynthesisReport",
    "SyntheticData",
    "WeightsRelease",
    "agreeing",
    "all_marginals",
    "constraint",
    "disagreement",
    "nonnegative",
    "nonnegative_agreeing",
    "observe",
    "plan_marginals",
    "plan_ranges",
    "plan_synthesis",
    "promises",
    "synthesize",
    "whole_numbers",
]


__getattr__ = late_names(__name__, _LATER, globals())


def __dir__() -> list[str]:
    return sorted(__all__)
