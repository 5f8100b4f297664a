"""What the four steps of Learn show, as plain values, and what is drawn for them.

A count of those who said yes moves by at most one when one person says something else, so discrete Laplace noise of
scale 1/epsilon makes it epsilon-differentially private (`hubbub.mechanisms.LaplaceMechanism`); the half-width of its
95 % error bar is the law's own; the beliefs are `hubbub.accounting.meaning.posterior`, exact for an answer that is
epsilon-differentially private when what one person said is changed (`docs/theorems.md`, D9). All of it is drawn afresh
for whoever asks, on invented people: no ledger, no person, nothing charged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final
from urllib.parse import urlencode

from hubbub.accounting.meaning import posterior
from hubbub.mechanisms.laplace import LaplaceMechanism
from hubbub.noise import Bits, DiscreteLaplace
from hubbub.service.pages.learn.village import OTHERS, PEOPLE, SECRET, TASKS, TOWN_BUDGET, YES, person

__all__ = ["PRESSES", "STEPS", "address_of", "half_width", "told"]

STEPS: Final = (
    "Two exact answers and a subtraction",
    "The same with noise, asked ten times",
    "What epsilon buys for one person",
    "Spend a budget yourself",
)
PRESSES: Final = 10
_EACH: Final = Fraction(1)
"""Epsilon of a press of step 2."""
_MANY: Final = 1_000
_BUDGET: Final = 3
"""The budget that step 2 shows; three presses spend it."""
_EPSILONS: Final = ("0.1", "0.3", "1", "3", "10")
_PRIORS: Final = ("1", "10", "50")
_BARS: Final = 20
_LEVEL: Final = Fraction(95, 100)
_LARGEST: Final = 1_000_000


def half_width(epsilon: Fraction) -> int:
    """The ± of a count at this epsilon: the truth lies within it 95 times in 100, or more often.

    >>> half_width(Fraction(1)), half_width(Fraction(1, 10))
    (3, 30)
    """
    return DiscreteLaplace(1 / epsilon).half_width(_LEVEL)


def address_of(step: int, given: Mapping[str, str], *, bits: Bits | None = None) -> str | None:
    """Where a form that asks for a draw leads: to the page with what was drawn. None: nothing is asked for."""
    if "ask" not in given:
        return None
    match step:
        case 2:
            heard, many = _whole(given.get("heard", ""), PRESSES), _whole(given.get("many", ""), 1)
            if given["ask"] == "many":
                many = [round(100 * sum(_drawn(YES - OTHERS, _EACH, _MANY, bits)) / _MANY)]
            elif len(heard) < PRESSES:
                heard = [*heard, *_drawn(YES, _EACH, 1, bits)]
            return _address(2, heard=_joined(heard), many=_joined(many))
        case 3:
            epsilon = _epsilon(given)
            drawn = _drawn(YES, epsilon, _BARS, bits)
            return _address(3, epsilon=_text(epsilon), prior=_prior(given), heard=_joined(drawn))
        case 4:
            amounts = _amounts(given)
            if _trouble(amounts) is not None:
                return _address(4, **_written(given), refused="1")
            pairs = [(task.truth, e or Fraction(0)) for task, e in zip(TASKS, amounts, strict=True)]
            heard = [_drawn(truth, e, 1, bits)[0] if e else None for truth, e in pairs]
            return _address(4, **_written(given), heard=_joined(heard))
    return None


def told(step: int, given: Mapping[str, str]) -> dict[str, Any]:
    """What the page of a step shows. What is not as a form of ours would send it, is as if it were not there."""
    more = (_subtract, _repeat, _buys, _spend)[step - 1](given)
    return {"step": step, "title": STEPS[step - 1], "steps": STEPS, "question": SECRET, **more}


def _subtract(given: Mapping[str, str]) -> dict[str, Any]:
    one = person(given.get("who", ""))
    return {
        "people": [{"name": p.name, "yes": p.said_yes} for p in PEOPLE],
        "who": one.name,
        "asked": "who" in given,
        "everybody": YES,
        "others": YES - one.said_yes,
        "difference": int(one.said_yes),
        "number": len(PEOPLE),
    }


def _repeat(given: Mapping[str, str]) -> dict[str, Any]:
    heard, many = _whole(given.get("heard", ""), PRESSES), _whole(given.get("many", ""), 1)
    presses, total = [], 0
    for place, answer in enumerate(heard, 1):
        total += answer - OTHERS
        spent = _EACH * place
        presses.append(
            {"press": place, "answer": answer, "difference": answer - OTHERS, "average": total / place}
            | {"spent": _text(spent), "within": spent <= _BUDGET}
        )
    return {
        "presses": presses,
        "heard": _joined(heard),
        "many": many[0] / 100 if many else None,
        "left": PRESSES - len(presses),
        "most": PRESSES,
        "program": _MANY,
        "program_spends": _text(_EACH * _MANY),
        "each": _text(_EACH),
        "budget": _BUDGET,
        "others": OTHERS,
        "everybody": YES,
        "truth": YES - OTHERS,
    }


def _buys(given: Mapping[str, str]) -> dict[str, Any]:
    epsilon, prior = _epsilon(given), _prior(given)
    low, high = posterior(int(prior) / 100, float(epsilon))
    wide = half_width(epsilon)
    drawn = _whole(given.get("heard", ""), _BARS)
    answers = [{"answer": x, "low": x - wide, "high": x + wide, "holds": x - wide <= YES <= x + wide} for x in drawn]
    rows = []
    for text in _EPSILONS:
        e = Fraction(text)
        least, most = posterior(int(prior) / 100, float(e))
        rows.append({"epsilon": text, "wide": half_width(e), "least": _percent(least), "most": _percent(most)})
    return {
        "epsilon": _text(epsilon),
        "epsilons": _EPSILONS,
        "prior": prior,
        "priors": _PRIORS,
        "wide": wide,
        "least": _percent(low),
        "most": _percent(high),
        "belief": (low, high),
        "answers": answers,
        "holding": sum(a["holds"] for a in answers),
        "bars": _BARS,
        "rows": rows,
        "yes": YES,
        "number": len(PEOPLE),
    }


def _spend(given: Mapping[str, str]) -> dict[str, Any]:
    amounts, drawn = _amounts(given), _whole(given.get("heard", ""), len(TASKS), gaps=True)
    trouble = _trouble(amounts)
    asked = trouble is None and len(drawn) == len(TASKS)
    rows, score = [], 0
    for place, (task, amount) in enumerate(zip(TASKS, amounts, strict=True)):
        wide = half_width(amount) if asked and amount else None
        enough = wide is not None and wide <= task.needed
        score += enough
        rows.append(
            {
                "key": task.key,
                "question": task.question,
                "why": task.why,
                "needed": task.needed,
                "truth": task.truth,
                "given": given.get(task.key, ""),
                "wide": wide,
                "answer": drawn[place] if wide is not None else None,
                "enough": enough,
            }
        )
    spent = sum((x for x in amounts if x is not None), Fraction(0))
    return {
        "tasks": rows,
        "asked": asked,
        "again": "again" in given,
        "another": "another" in given,
        "trouble": trouble if "refused" in given else None,
        "score": score,
        "spent": _text(spent),
        "left": _text(max(Fraction(0), TOWN_BUDGET - spent)),
        "budget": TOWN_BUDGET,
        "state": {**_written(given), "heard": given.get("heard", "")},
    }


def _drawn(truth: int, epsilon: Fraction, times: int, bits: Bits | None) -> list[int]:
    """So many answers to one question, each with noise of its own."""
    noise = LaplaceMechanism(sensitivity=1, epsilon=epsilon).error().sample(times, bits=bits)
    return [truth + int(x) for x in noise]


def _address(step: int, **more: str) -> str:
    return f"/learn/{step}?{urlencode({name: value for name, value in more.items() if value})}"


def _joined(numbers: Iterable[int | None]) -> str:
    return ".".join("" if number is None else str(number) for number in numbers)


def _whole(text: str, most: int, *, gaps: bool = False) -> list[Any]:
    """Whole numbers between points, at most so many; nothing where one is none. gaps: an empty place is None."""
    pieces = text.split(".") if text else []
    if len(pieces) > most or any(len(piece) > 8 for piece in pieces):
        return []
    try:
        return [None if gaps and not piece else _within(int(piece)) for piece in pieces]
    except ValueError:
        return []


def _within(number: int) -> int:
    if abs(number) > _LARGEST:
        raise ValueError
    return number


def _epsilon(given: Mapping[str, str]) -> Fraction:
    text = given.get("epsilon", "")
    return Fraction(text if text in _EPSILONS else "1")


def _prior(given: Mapping[str, str]) -> str:
    text = given.get("prior", "")
    return text if text in _PRIORS else "10"


def _written(given: Mapping[str, str]) -> dict[str, str]:
    """What was written for each task, as it was written, but not without end."""
    return {task.key: given.get(task.key, "")[:12] for task in TASKS}


def _amounts(given: Mapping[str, str]) -> list[Fraction | None]:
    """What each task is to get; an empty place is 0; None: that is not an amount."""
    amounts: list[Fraction | None] = []
    for text in _written(given).values():
        plain = text.strip().replace(",", ".") or "0"
        well = plain.replace(".", "", 1).isdecimal() and plain.isascii()
        amounts.append(Fraction(plain) if well else None)
    return amounts


def _trouble(amounts: list[Fraction | None]) -> str | None:
    """Why nothing is asked."""
    known = [x for x in amounts if x is not None]
    if len(known) < len(amounts):
        return "Give each task a number from 0 to 1, such as 0.3. Nothing was asked."
    if any(0 < x < Fraction(1, 100) for x in known):
        return "An amount here is at least 0.01, or 0. Nothing was asked."
    if sum(known) > TOWN_BUDGET:
        return f"That is {_text(sum(known, Fraction(0)))}, and the budget is {TOWN_BUDGET}. Nothing was asked."
    if not any(known):
        return "Give at least one task something: an answer costs more than nothing. Nothing was asked."
    return None


def _percent(share: float) -> str:
    """A share in whole percent; where that would say never or always, with the digits that say otherwise.

    >>> _percent(0.2319), _percent(0.00005), _percent(0.99996)
    ('23', '0.01', '99.996')
    """
    for digits in range(6):
        text = f"{100 * share:.{digits}f}"
        if 0 < float(text) < 100:
            return text
    return text


def _text(amount: Fraction) -> str:
    return f"{float(amount):g}"
