"""Attacks: what an outsider learns from answers that are too exact, and the ceiling that privacy puts on it.

Each attack is a function that gives a frozen result: `success` (its metric, in the result's own words), what was
learned, `ceiling(epsilon)` and `plot()`. The attack does not know whether the answers it is given are exact or
private. `hubbub attack` runs them on a file.

Linkage            `uniqueness`, `expected_uniqueness`, `link`, `secrets_from_counts`, `secret_counts`
k-anonymity        `k_anonymity`, `dimension_curse`, `mondrian`, `intersect`, `intersect_counts`
Sparse ratings     `deanonymise`, `RatingTable`, `randomised_rows`
Hashes             `reverse_hashes`, `Format`, `TAXI_MEDALLIONS`
Differencing       `difference`, `difference_of_means`, `right_by_differencing`, `right_by_differencing_continuous`
Averaging          `average`, `averaging_repeats`, `right_by_averaging`
Membership         `find_members`, `membership_z`, `membership_power`, `people`
Reconstruction     `reconstruct`, `random_subsets`, `all_subsets`, `contingency_queries`, `adversarial_answers`,
                   `least_squares_accuracy`
Model inversion    `invert_model`, `fit_linear`, `LinearModel`
Overfitting        `overfit_holdout`, `Thresholdout`, `overfit_leaderboard`, `Ladder`, `private_board`,
                   `leaderboard_accuracy`
Floats             `read_floats`, `float_laplace`
Tracing            `TracingScheme`, `Pirate`, `WaryPirate`, `private_pirate`, `tracing_repeats`, `innocent_chance`,
                   `accusation_floor`, `accusation_law`, `draw_staircases`, `draw_private_pirates`, `TardosCode`,
                   `tardos_length`
Signed rows        `signed_rows`, `valid_share`, `hardness_report`, `copied_chance`
Ceilings           `advantage_ceiling`, `hit_ceiling`, `guess_ceiling`, `bit_ceiling`, `row_ceiling`

What an attack tosses (which subsets to ask, which people to try) comes from `hubbub.noise` like all randomness; tests
pass `bits`. The room draws nothing itself and charges nothing: it reads tables as their steward does.
"""

from hubbub.attacks.anonymity import (
    Anonymity,
    Curse,
    Intersection,
    dimension_curse,
    intersect,
    intersect_counts,
    k_anonymity,
    mondrian,
)
from hubbub.attacks.ceilings import advantage_ceiling, bit_ceiling, guess_ceiling, hit_ceiling, row_ceiling
from hubbub.attacks.differencing import (
    Averaged,
    Differenced,
    average,
    averaging_repeats,
    difference,
    difference_of_means,
    right_by_averaging,
    right_by_differencing,
    right_by_differencing_continuous,
)
from hubbub.attacks.fingerprints import TardosCode, tardos_length
from hubbub.attacks.floating import FloatingPoint, float_laplace, read_floats
from hubbub.attacks.hashes import TAXI_MEDALLIONS, Format, HashReversal, reverse_hashes
from hubbub.attacks.inversion import LinearModel, ModelInversion, fit_linear, invert_model
from hubbub.attacks.linkage import (
    Linkage,
    Secrets,
    Uniqueness,
    expected_uniqueness,
    link,
    secret_counts,
    secrets_from_counts,
    uniqueness,
)
from hubbub.attacks.membership import Membership, find_members, membership_power, membership_z, people
from hubbub.attacks.overfitting import (
    HoldoutOverfitting,
    Ladder,
    LeaderboardOverfitting,
    Thresholdout,
    leaderboard_accuracy,
    overfit_holdout,
    overfit_leaderboard,
    private_board,
)
from hubbub.attacks.ratings import Deanonymised, Match, RatingTable, deanonymise, randomised_rows
from hubbub.attacks.reconstruction import (
    Reconstruction,
    adversarial_answers,
    all_subsets,
    contingency_queries,
    least_squares_accuracy,
    random_subsets,
    reconstruct,
)
from hubbub.attacks.signed_rows import (
    Hardness,
    SignedRows,
    copied_chance,
    hardness_report,
    signed_rows,
    valid_share,
)
from hubbub.attacks.tracing import (
    STRATEGIES,
    Accusation,
    Decoder,
    Pirate,
    PrivatePirate,
    TracingScheme,
    WaryPirate,
    accusation_floor,
    accusation_law,
    draw_private_pirates,
    draw_staircases,
    innocent_chance,
    private_pirate,
    tracing_repeats,
)

__all__ = [
    "STRATEGIES",
    "TAXI_MEDALLIONS",
    "Accusation",
    "Anonymity",
    "Averaged",
    "Curse",
    "Deanonymised",
    "Decoder",
    "Differenced",
    "FloatingPoint",
    "Format",
    "Hardness",
    "HashReversal",
    "HoldoutOverfitting",
    "Intersection",
    "Ladder",
    "LeaderboardOverfitting",
    "LinearModel",
    "Linkage",
    "Match",
    "Membership",
    "ModelInversion",
    "Pirate",
    "PrivatePirate",
    "RatingTable",
    "Reconstruction",
    "Secrets",
    "SignedRows",
    "TardosCode",
    "Thresholdout",
    "TracingScheme",
    "Uniqueness",
    "WaryPirate",
    "accusation_floor",
    "accusation_law",
    "advantage_ceiling",
    "adversarial_answers",
    "all_subsets",
    "average",
    "averaging_repeats",
    "bit_ceiling",
    "contingency_queries",
    "copied_chance",
    "deanonymise",
    "difference",
    "difference_of_means",
    "dimension_curse",
    "draw_private_pirates",
    "draw_staircases",
    "expected_uniqueness",
    "find_members",
    "fit_linear",
    "float_laplace",
    "guess_ceiling",
    "hardness_report",
    "hit_ceiling",
    "innocent_chance",
    "intersect",
    "intersect_counts",
    "invert_model",
    "k_anonymity",
    "leaderboard_accuracy",
    "least_squares_accuracy",
    "link",
    "membership_power",
    "membership_z",
    "mondrian",
    "overfit_holdout",
    "overfit_leaderboard",
    "people",
    "private_board",
    "private_pirate",
    "random_subsets",
    "randomised_rows",
    "read_floats",
    "reconstruct",
    "reverse_hashes",
    "right_by_averaging",
    "right_by_differencing",
    "right_by_differencing_continuous",
    "row_ceiling",
    "secret_counts",
    "secrets_from_counts",
    "signed_rows",
    "tardos_length",
    "tracing_repeats",
    "uniqueness",
    "valid_share",
]


def __dir__() -> list[str]:
    return sorted(__all__)
