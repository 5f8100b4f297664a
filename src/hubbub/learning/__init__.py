"""Learning under privacy: what can be learned from examples without learning about any one of them.

Models: `LogisticRegression`, `LinearRegression`, `CategoricalNB`, `GaussianNB`, `AdditiveModel`, `KMeans`, `PCA`,
fitted by `Session.fit`; `load` reads one that `to_json` wrote.

`FiniteClassLearner` picks a hypothesis of a finite class (private PAC learning), `learning_sample_size` says from how
many examples, `halfspaces` is a finite class of them. `StatisticalQueryOracle` answers adaptive statistical queries
within a tolerance, `oracle_sample_size` says from how many rows.
"""

from hubbub.learning.additive import AdditiveModel
from hubbub.learning.bayes import CategoricalNB, GaussianNB
from hubbub.learning.clusters import KMeans
from hubbub.learning.components import PCA
from hubbub.learning.finite_class import FiniteClassLearner, halfspaces, learning_sample_size
from hubbub.learning.linear import LinearRegression
from hubbub.learning.logistic import LogisticRegression
from hubbub.learning.reading import load
from hubbub.learning.statistical_queries import StatisticalQueryOracle, oracle_sample_size

__all__ = [
    "PCA",
    "AdditiveModel",
    "CategoricalNB",
    "FiniteClassLearner",
    "GaussianNB",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "StatisticalQueryOracle",
    "halfspaces",
    "learning_sample_size",
    "load",
    "oracle_sample_size",
]


def __dir__() -> list[str]:
    return sorted(__all__)
