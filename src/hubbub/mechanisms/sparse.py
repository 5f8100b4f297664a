"""The sparse vector technique: many questions "is it above the threshold?", of which only the Yes are paid for.

Values q_1, q_2, ... of sensitivity Delta may be chosen one after the other, adaptively. Lyu, Su, Li 2017, Algorithm 7,
on integers: rho = discrete Laplace of scale Delta / e1, drawn once; nu_i of scale 2 c Delta / e2 (c Delta / e2 if all
values move in one direction); answer Yes iff q_i + nu_i >= T + rho, and stop after c Yes. That is (e1 + e2)-DP. A
numeric answer is a *fresh* draw, q_i + discrete Laplace of scale c Delta / e3, for e3 more. The proof shifts integer
noise by at most Delta or 2 Delta, so it holds on the integers as it does on the reals.

Budget split e1 : e2 = 1 : (2c)^(2/3), or 1 : c^(2/3) if monotone (their Section 4.2: least variance of nu - rho).
Accuracy (as Dwork, Roth 2014, Theorem 3.24): with probability 1 - beta over k questions, every Yes has
q_i >= T - alpha and every No has q_i <= T + alpha, alpha = b_rho ln(2/beta) + b_nu ln(2k/beta).

Exact law: given rho, the answers are independent, so
P(answers) = sum_r P(rho = r) prod_i P(nu_i >= T + r - q_i or <).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.accounting import events as ev
from hubbub.accounting.amounts import Number
from hubbub.errors import ParameterError
from hubbub.mechanisms.calibrate import beta_of, epsilon_of, flag, integers, sensitivity_of, steps_of, whole_number
from hubbub.mechanisms.recording import place_on_tape, through
from hubbub.mechanisms.slots import Slots
from hubbub.noise import Bits, DiscreteLaplace
from hubbub.noise.parameters import drawable

__all__ = ["SparseVector", "SparseVectorRun", "above_threshold"]

Answer = bool | int

_MOST = 2**24


@dataclass(frozen=True, init=False)
class SparseVector:
    """Up to `positives` answers Yes for one epsilon; with `answers_epsilon`, each Yes comes with a noisy value.

    >>> SparseVector(epsilon=1, positives=4, sensitivity=1).loss
    PureDP(epsilon=Fraction(1, 1))
    """

    epsilon: Fraction
    sensitivity: int
    positives: int
    monotone: bool
    answers_epsilon: Fraction | None

    def __init__(
        self,
        *,
        epsilon: Number,
        sensitivity: Number | None,
        positives: int,
        monotone: bool = False,
        answers_epsilon: Number | None = None,
    ) -> None:
        numeric = None if answers_epsilon is None else epsilon_of(answers_epsilon, name="answers_epsilon")
        object.__setattr__(self, "epsilon", epsilon_of(epsilon))
        object.__setattr__(self, "sensitivity", steps_of(sensitivity_of(sensitivity), None, 1))
        object.__setattr__(self, "positives", whole_number(positives, "positives"))
        object.__setattr__(self, "monotone", flag(monotone, "monotone"))
        object.__setattr__(self, "answers_epsilon", numeric)
        if self.positives > _MOST:
            raise ParameterError(f"positives = {positives} was asked; a run gives at most {_MOST} answers Yes.")
        # Before anybody charges for it; that a noise cannot be drawn must not show with the first Yes.
        noises = (self.threshold_noise, self.question_noise, *(() if numeric is None else (self.answer_noise,)))
        for noise in noises:
            drawable(noise.scale, "a scale of the sparse vector")

    @property
    def threshold_epsilon(self) -> Fraction:
        """e1: epsilon / (1 + (2c)^(2/3)), or with c if monotone; rounded to a simple fraction, and e2 is the rest."""
        factor = (self.positives if self.monotone else 2 * self.positives) ** (2 / 3)
        return self.epsilon / (1 + Fraction(factor).limit_denominator(1000))

    @property
    def threshold_noise(self) -> DiscreteLaplace:
        """The law of rho."""
        return DiscreteLaplace(self.sensitivity / self.threshold_epsilon)

    @property
    def question_noise(self) -> DiscreteLaplace:
        """The law of nu."""
        shift = self.positives * self.sensitivity * (1 if self.monotone else 2)
        return DiscreteLaplace(shift / (self.epsilon - self.threshold_epsilon))

    @property
    def answer_noise(self) -> DiscreteLaplace:
        """The law of the noise on a numeric answer. Raises ParameterError where none was paid for."""
        if self.answers_epsilon is None:
            raise ParameterError("numeric answers were not paid for; give answers_epsilon=.")
        return DiscreteLaplace(self.positives * self.sensitivity / self.answers_epsilon)

    @property
    def loss(self) -> ev.Event:
        """The event to charge, in full, when the run is opened."""
        total = ev.PureDP(self.epsilon)
        if self.answers_epsilon is None:
            return total
        answers = ev.DiscreteLaplace(self.answer_noise.scale, sensitivity=self.sensitivity)
        return ev.Composed([total, ev.Repeated(answers, self.positives)])

    def open(self, threshold: int, *, bits: Bits | None = None) -> SparseVectorRun:
        """Start a run against a public threshold."""
        return SparseVectorRun(self, threshold, bits)

    def release(self, values: Sequence[int], *, threshold: int, bits: Bits | None = None) -> tuple[Answer, ...]:
        """Answers to the values in order, until `positives` of them were Yes."""
        run = self.open(threshold, bits=bits)
        answers: list[Answer] = []
        for value in values:
            if run.left == 0:
                break
            answers.append(run.ask(value))
        return tuple(answers)

    def accuracy(self, beta: Number, *, questions: int) -> float:
        """alpha: how far on the wrong side of the threshold a value may be, for `questions` questions."""
        chance = beta_of(beta)
        return float(self.threshold_noise.scale) * math.log(2 / chance) + float(self.question_noise.scale) * math.log(
            2 * whole_number(questions, "questions") / chance
        )

    def log_prob(self, output: Sequence[Answer], data: Sequence[int], *, threshold: int) -> float:
        """ln P(release(data) = output); numeric answers are ints that are not bools."""
        numeric = self.answers_epsilon is not None
        positive = [type(a) is not bool or a for a in output]
        if len(output) > len(data) or any(
            (type(a) is bool) == numeric for a, y in zip(output, positive, strict=True) if y
        ):
            return -math.inf
        stopped = sum(positive) == self.positives
        if sum(positive) > self.positives or (not positive[-1] if stopped else len(output) < len(data)):
            return -math.inf
        reach = math.ceil(45 * float(self.threshold_noise.scale)) + 1
        r = np.arange(-reach, reach + 1)
        logs = np.asarray(self.threshold_noise.log_pmf(r))
        for answer, yes, value in zip(output, positive, data, strict=False):
            bar = threshold + r - value
            law = self.question_noise
            with np.errstate(all="ignore"):
                logs = logs + np.log(np.asarray(law.tail(bar - 1) if yes else law.cdf(bar - 1)))
            if type(answer) is not bool:
                logs = logs + float(self.answer_noise.log_pmf(int(answer) - value))
        top = float(logs.max())
        return -math.inf if top == -math.inf else top + math.log(float(np.exp(logs - top).sum()))


def above_threshold(*, epsilon: Number, sensitivity: Number | None, monotone: bool = False) -> SparseVector:
    """AboveThreshold (Dwork, Roth 2014, Algorithm 1): a sparse vector that stops at the first Yes."""
    return SparseVector(epsilon=epsilon, sensitivity=sensitivity, positives=1, monotone=monotone)


class SparseVectorRun:
    """An open run: holds the noisy threshold, which must never be shown, and how many Yes are left."""

    def __init__(self, mechanism: SparseVector, threshold: int, bits: Bits | None) -> None:
        self._mechanism, self._bits = mechanism, bits
        public = integers(threshold, None, 1)
        self._bar = public[0] + mechanism.threshold_noise.sample(bits=bits)
        self._opened = place_on_tape()
        through(public, sensitivity=0, norm="opened", law=mechanism, draw=lambda: public)
        self._slots = Slots(
            mechanism.positives,
            "all positive answers of this sparse vector are used; open, and pay for, another run.",
        )

    @property
    def left(self) -> int:
        """How many Yes may still be given; one less while a question is being answered."""
        return self._slots.left

    def ask(self, value: int) -> Answer:
        """False below the threshold; above, True, or the noisy value where numeric answers were paid for.

        value: an int. Threads wait for each other. Raises QueryError once all Yes are used up, for a question asked
        from within the last one, and in a forked process.
        """
        exact = integers(value, None, 1)[0]
        # A question holds a slot while it is answered, so that never more than `positives` are answered Yes.
        with self._slots.taken():
            answer: Answer = through(
                (exact,),
                sensitivity=self._mechanism.sensitivity,
                norm="asked",
                law=self._mechanism,
                keys=(self._opened,),
                draw=lambda: self._answer(exact),
            )
            if answer is False:
                self._slots.put_back()
            return answer

    def _answer(self, exact: int) -> Answer:
        if exact + self._mechanism.question_noise.sample(bits=self._bits) < self._bar:
            return False
        if self._mechanism.answers_epsilon is None:
            return True
        return exact + self._mechanism.answer_noise.sample(bits=self._bits)

    def __reduce__(self) -> str:
        raise ParameterError("an open sparse vector holds a secret threshold and cannot be pickled.")

    def __repr__(self) -> str:
        return f"SparseVectorRun(left={self.left})"
