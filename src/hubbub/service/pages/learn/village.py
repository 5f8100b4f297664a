"""The invented people of Learn. Nobody here lives anywhere: the names are common ones, the answers were made up.

A village of 40 people was asked: "Were you lonely last week?" Who lives there is known to all; what each said is the
secret. So neighbours differ in what one person said, and a count of those who said yes moves by at most one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["OTHERS", "PEOPLE", "SECRET", "TASKS", "TOWN_BUDGET", "YES", "Person", "Task", "person"]

SECRET: Final = "Were you lonely last week?"
_NAMES: Final = (
    "Ada Amir Anna Ben Bela Carla Chen Clara Dan Dora Elif Emil Eva Femi Finn Gita Hans Hugo Ines Ivan "
    "Jack Jana Kofi Lena Leo Lucy Mara Max Mei Mona Nils Noor Olga Omar Otto Paul Rosa Sven Tom Zoe"
).split()
_YES: Final = frozenset("Amir Anna Bela Clara Dora Emil Eva Gita Hugo Ivan Jana Lena Lucy Mei Mona Omar Zoe".split())


@dataclass(frozen=True)
class Person:
    """One of the village: a name, and what was said."""

    name: str
    said_yes: bool

    def __post_init__(self) -> None:
        if not self.name.isalpha():
            raise ValueError(f"a name is letters; {self.name!r} was given.")


PEOPLE: Final = tuple(Person(name, name in _YES) for name in _NAMES)
YES: Final = sum(one.said_yes for one in PEOPLE)
OTHERS: Final = YES - PEOPLE[-1].said_yes
"""How many said yes without Zoe."""


def person(name: str) -> Person:
    """The one of this name; Zoe where there is none."""
    return next((one for one in PEOPLE if one.name == name), PEOPLE[-1])


@dataclass(frozen=True)
class Task:
    """A count of the town that somebody needs: the truth, and how close the answer must be to be of use."""

    key: str
    question: str
    why: str
    truth: int
    needed: int


TASKS: Final = (
    Task("a", "How many children start school next year?", "The school orders chairs: to within 5.", 312, 5),
    Task("b", "How many people were lonely last week?", "The council compares with last year: to within 10.", 641, 10),
    Task("c", "How many would take a bus on Sundays?", "The bus company wants a rough idea: to within 40.", 1482, 40),
)
TOWN_BUDGET: Final = 1
