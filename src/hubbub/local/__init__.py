"""Local privacy: every person randomises the own answer, and nobody has to be trusted.

    from hubbub import local

    oracle = local.best_oracle(epsilon=1, categories=["never", "once", "often"])
    reports = oracle.privatize(answers)              # on the devices: one value, or a million
    tally = oracle.aggregate(reports)                # on the server: tallies add, in any order
    estimate = tally.estimate()                      # .shares, .sd, .interval(0.95), .projected()

The room's rules:
- Privacy is that of one report, replace neighbours, and exact: a client's chances are rationals rounded towards more
  privacy (`draws`), drawn exactly. The client of an oracle is its `randomizer`, and `randomizer.chance(report, place)`
  the probability of a report, as a Fraction.
- A server never raises on what strangers send: what no client can have sent is dropped and counted.
- Estimates are unbiased, with the exact variance of the protocol; bars cover the coins of the clients.

Frequencies   `best_oracle`, `DirectEncoding`, `SymmetricUnary`, `OptimizedUnary`, `SubsetSelection`, `LocalHashing`,
              `HadamardResponse`, `CountMeanSketch`, `Rappor`; `Tally`, `Estimate`, `simplex_projection`
Numbers       `OneBitMean`, `PiecewiseMean`, `HybridMean`, `BallMean` (vectors)
Sets          `SetValued`, `KeyValue`; `HeavyHitters` (strings nobody listed)
Surveys       `warner`, `two_coins`, their `_share` estimates, `plan`, `sample_size`
Clients       `Randomizer`, `CategoryRandomizer`, `MeanRandomizer`: the exact law of a report, for proofs and audits
Over time     `Memory`, `repeated_loss`; `shuffle`, `shuffled_delta`, `shuffled_delta_lower`
On the wire   `specification`, `from_specification`, `to_json`, `aggregate_json`, `to_arrow`, `aggregate_arrow`
"""

from hubbub.local.choose import best_oracle
from hubbub.local.direct import DirectEncoding
from hubbub.local.estimate import Estimate, MeanEstimate, simplex_projection
from hubbub.local.hadamard import HadamardResponse
from hubbub.local.hashing import LocalHashing
from hubbub.local.heavy import Found, HeavyHitters, HeavyTally
from hubbub.local.longitudinal import Memory, repeated_loss
from hubbub.local.means import HybridMean, MeanRandomizer, MeanTally, OneBitMean, PiecewiseMean
from hubbub.local.oracle import FrequencyOracle, Tally
from hubbub.local.randomizer import CategoryRandomizer, Randomizer
from hubbub.local.rappor import Rappor
from hubbub.local.set_valued import KeyValue, KeyValueEstimate, SetValued
from hubbub.local.shuffling import Shuffled, shuffle, shuffled_delta, shuffled_delta_lower
from hubbub.local.sketch import CountMeanSketch
from hubbub.local.subset import SubsetSelection
from hubbub.local.survey import (
    SurveyPlan,
    plan,
    plan_with,
    sample_size,
    two_coins,
    two_coins_share,
    warner,
    warner_share,
)
from hubbub.local.unary import OptimizedUnary, SymmetricUnary
from hubbub.local.vectors import BallMean, BallTally, VectorEstimate
from hubbub.local.wire import (
    aggregate_arrow,
    aggregate_json,
    from_specification,
    specification,
    to_arrow,
    to_json,
)

__all__ = [
    "BallMean",
    "BallTally",
    "CategoryRandomizer",
    "CountMeanSketch",
    "DirectEncoding",
    "Estimate",
    "Found",
    "FrequencyOracle",
    "HadamardResponse",
    "HeavyHitters",
    "HeavyTally",
    "HybridMean",
    "KeyValue",
    "KeyValueEstimate",
    "LocalHashing",
    "MeanEstimate",
    "MeanRandomizer",
    "MeanTally",
    "Memory",
    "OneBitMean",
    "OptimizedUnary",
    "PiecewiseMean",
    "Randomizer",
    "Rappor",
    "SetValued",
    "Shuffled",
    "SubsetSelection",
    "SurveyPlan",
    "SymmetricUnary",
    "Tally",
    "VectorEstimate",
    "aggregate_arrow",
    "aggregate_json",
    "best_oracle",
    "from_specification",
    "plan",
    "plan_with",
    "repeated_loss",
    "sample_size",
    "shuffle",
    "shuffled_delta",
    "shuffled_delta_lower",
    "simplex_projection",
    "specification",
    "to_arrow",
    "to_json",
    "two_coins",
    "two_coins_share",
    "warner",
    "warner_share",
]


def __dir__() -> list[str]:
    return sorted(__all__)
