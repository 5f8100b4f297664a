"""Quick paths together: random questions of random tables give the integers of the plain ways."""

from __future__ import annotations

from collections import Counter

import pytest

from engines import quick_paths
from engines.quick_paths import FORMS, Differs, block

QUESTIONS = 5
"""Of each of some blocks, where there is no soak: there are 500 of 20 in it."""


def test_random_questions_are_the_same_by_quick_ways_and_plain_ones() -> None:
    seen: Counter[str] = Counter()
    for seed in range(len(FORMS)):
        seen += block(seed, QUESTIONS)
    assert {form: seen[form] for form in FORMS} == dict.fromkeys(FORMS, QUESTIONS)
    assert seen["ranked"] > QUESTIONS
    assert seen["found"] > 0
    assert seen["listed"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(500))
def test_ten_thousand_random_questions_are_the_same(seed: int) -> None:
    assert block(seed)["questions"] == quick_paths.QUESTIONS


def test_an_answer_that_differs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = quick_paths.answer
    answers: list[object] = []

    def moved(*arguments: object) -> object:
        answers.append(real(*arguments))  # type: ignore[arg-type]
        return (len(answers), answers[-1])

    monkeypatch.setattr(quick_paths, "answer", moved)
    with pytest.raises(Differs, match="block 0, question 0"):
        block(0, 1)
