"""Attacks on the invented village of Learn, drawn afresh: what an outsider gets right.

Each attack asks about what one person said, and guesses. All its private answers together cost one epsilon, as a budget
would have it; each gets the same part. Shown is the share that is right, the mean of the share among those who said yes
and among those who said no: whoever tosses a coin has one half, and no attack on answers that cost epsilon together has
more than e^epsilon / (1 + e^epsilon) in the long run (`docs/theorems.md`, D9: the largest advantage is
tanh(epsilon/2)).

Reconstruction solves for everybody at once: counts of random subsets, by least squares, rounded (Dinur, Nissim 2003).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import numpy as np

from hubbub.accounting.meaning import advantage
from hubbub.mechanisms.laplace import LaplaceMechanism
from hubbub.noise import Bits
from hubbub.noise.public import public_generator
from hubbub.service.pages.learn.village import PEOPLE

__all__ = ["EPSILONS", "simulated"]

EPSILONS: Final = ("0.1", "0.5", "1", "2", "5")
_ROUNDS: Final = 50
_REPEATS: Final = 100
_SUBSETS: Final = 4 * len(PEOPLE)

_SAID: Final = np.array([p.said_yes for p in PEOPLE])


def simulated(epsilon: Fraction, *, bits: Bits | None = None) -> list[dict[str, Any]]:
    """Each attack: what it does, how many answers it takes, and what it gets right: exactly, privately, at most."""
    most = (1 + advantage(float(epsilon))) / 2
    attacks = (
        ("Subtraction", "The count of all, less the count of all but one.", 2, _subtraction),
        ("Averaging", "The same count, again and again, less what the others said.", _REPEATS, _averaging),
        ("Reconstruction", "Counts of random groups, solved for everybody at once.", _SUBSETS, _reconstruction),
    )  # fmt: skip
    return [
        {"name": name, "what": what, "answers": answers, "exact": attack(None, bits), "most": most}
        | {"private": attack(epsilon, bits)}
        for name, what, answers, attack in attacks
    ]


def _noise(epsilon: Fraction | None, answers: int, shape: tuple[int, ...], bits: Bits | None) -> Any:
    """Noise for so many answers that cost epsilon together; None: exact ones."""
    if epsilon is None:
        return np.zeros(shape, dtype=np.int64)
    return LaplaceMechanism(sensitivity=1, epsilon=epsilon / answers).error().sample(shape, bits=bits)


def _subtraction(epsilon: Fraction | None, bits: Bits | None) -> float:
    noise = _noise(epsilon, 2, (_ROUNDS, len(_SAID), 2), bits)
    return _right(_SAID + noise[..., 0] - noise[..., 1] > 0.5)


def _averaging(epsilon: Fraction | None, bits: Bits | None) -> float:
    noise = _noise(epsilon, _REPEATS, (_ROUNDS, len(_SAID), _REPEATS), bits)
    return _right(_SAID + noise.mean(axis=2) > 0.5)


def _reconstruction(epsilon: Fraction | None, bits: Bits | None) -> float:
    rounds = _ROUNDS // 5
    groups = public_generator(b"groups of the village").integers(0, 2, (_SUBSETS, len(_SAID)))
    counts = (groups @ _SAID)[:, None] + _noise(epsilon, _SUBSETS, (_SUBSETS, rounds), bits)
    guessed, *_ = np.linalg.lstsq(groups.astype(float), counts.astype(float), rcond=None)
    return _right(guessed.T > 0.5)


def _right(guesses: Any) -> float:
    """The share right among those who said yes and among those who said no, their mean."""
    return float((guesses[..., _SAID].mean() + (~guesses[..., ~_SAID]).mean()) / 2)
