r"""Patterns: those of LIKE, and regular expressions of a linear kind, which every engine reads alike.

A regular expression is taken apart here and written anew, from what RE2 (DuckDB), Postgres and java.util.regex (Spark)
share: characters, classes of ASCII spelled out, the two ends of the text, `?` and one `*` or `+` in each alternative.
A part that is repeated is one character or class, so Java's matcher, which calls itself for a repeated group, needs no
stack that grows with a row's text; and one repetition without end beside three `?` keeps a match within the square of
the length of the text, of which the first `LOOKED_AT` characters are looked at.

`\d`, `\w`, `\s` are ASCII. A dot is any character but a new line; `^` and `$` are the ends of the text, not of a line.
`{2}`, `{1,3}` are written out, and so is a group of alternatives, which is not repeated.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = ["LOOKED_AT", "BadPattern", "like_parts", "parsed", "printed"]

LOOKED_AT: Final = 1_000
"""A text's first characters are looked at; the `$` of a pattern is the end of these."""
LONGEST: Final = 200
_MOST_PARTS: Final = 1_000
_MOST_OPTIONAL: Final = 3

_WORD: Final = frozenset(string.ascii_letters + string.digits + "_")
_CLASSES: Final = {"d": frozenset(string.digits), "w": _WORD, "s": frozenset(" \t\n\r\f\v")}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_ASCII: Final = frozenset(map(chr, range(1, 128)))


class BadPattern(ValueError):
    """What is wrong with a pattern, in words for people, and at which character."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.at = at


@dataclass(frozen=True)
class One:
    """One character out of a set, or out of all others; `times` is "", "?", "*" or "+"."""

    characters: frozenset[str]
    negated: bool = False
    times: Literal["", "?", "*", "+"] = ""


End: TypeAlias = Literal["^", "$"]
Sequence: TypeAlias = tuple[One | End, ...]


def parsed(pattern: str) -> tuple[Sequence, ...]:
    """The alternatives of a pattern.

    Raises BadPattern for what is not of this kind.

    >>> len(parsed("^(cat|dog)s?$"))
    2
    """
    if len(pattern) > LONGEST:
        raise BadPattern(f"a pattern has at most {LONGEST} characters", LONGEST)
    for at, character in enumerate(pattern):
        if character not in _ASCII:
            raise BadPattern("a pattern is written in ASCII; compare other letters with LIKE or CONTAINS", at)
    reader = _Reader(pattern)
    ways = reader.alternatives()
    if reader.at < len(pattern):
        raise BadPattern("this ')' closes nothing", reader.at)
    for sequence in ways:
        endless = sum(isinstance(part, One) and part.times in ("*", "+") for part in sequence)
        optional = sum(isinstance(part, One) and part.times == "?" for part in sequence)
        if endless > 1:
            raise BadPattern("one * or + may stand in each alternative; write LIKE 'a%b%c' for more", 0)
        if optional > _MOST_OPTIONAL:
            raise BadPattern(f"at most {_MOST_OPTIONAL} parts of an alternative may be left out (?, {{1,3}})", 0)
    return ways


def printed(pattern: str, end: str) -> str:
    r"""A pattern as engines read it; `end` is how one of them writes the end of a text.

    >>> printed("^A.[0-2]+$", r"\z")
    '\\AA[^\n][012]+\\z'
    """
    return "|".join("".join(_printed(part, end) for part in sequence) for sequence in parsed(pattern))


def _printed(part: One | End, end: str) -> str:
    if not isinstance(part, One):
        return r"\A" if part == "^" else end
    listed = sorted(part.characters)
    if len(listed) == 1 and not part.negated:
        return _escaped(listed[0]) + part.times
    return f"[{'^' * part.negated}{''.join(map(_escaped, listed))}]{part.times}"


def _escaped(character: str) -> str:
    """A character that stands for itself, within a class and outside."""
    return character if character in _WORD or character in " \t\n\r\f\v" or ord(character) < 32 else f"\\{character}"


@dataclass
class _Reader:
    text: str
    at: int = 0

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _fail(self, why: str, at: int | None = None) -> BadPattern:
        return BadPattern(why, self.at if at is None else at)

    def alternatives(self) -> tuple[Sequence, ...]:
        ways = list(self._concatenated())
        while self._next() == "|":
            self.at += 1
            ways += self._concatenated()
        return tuple(ways)

    def _concatenated(self) -> list[Sequence]:
        """The alternatives of a run of parts: a group within it is written out."""
        pieces_so_far: list[Sequence] = [()]
        while self._next() not in ("", "|", ")"):
            pieces = self._group() if self._next() == "(" else [self._piece()]
            pieces_so_far = [(*before, *piece) for before in pieces_so_far for piece in pieces]
            if sum(map(len, pieces_so_far)) > _MOST_PARTS:
                raise self._fail("written out, this pattern has too many parts")
        return pieces_so_far

    def _group(self) -> list[Sequence]:
        opened = self.at
        self.at += 3 if self.text.startswith("(?:", self.at) else 1
        if self._next() == "?":
            raise self._fail("(?...) is not supported")
        ways = list(self.alternatives())
        if self._next() != ")":
            raise self._fail("this '(' is not closed", opened)
        self.at += 1
        if self._next() in ("*", "+", "?", "{"):
            raise self._fail("a group is not repeated: *, + and ? stand after one character or class")
        return ways

    def _piece(self) -> Sequence:
        character = self._next()
        if character in ("^", "$"):
            self.at += 1
            return ("^" if character == "^" else "$",)
        one = self._one()
        return self._repeated(one)

    def _one(self) -> One:
        character = self._next()
        self.at += 1
        match character:
            case ".":
                return One(frozenset("\n"), negated=True)
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise self._fail(f"nothing stands before this {character}", self.at - 1)
            case "{":
                raise self._fail("nothing stands before this {; write \\{ for the character", self.at - 1)
        return One(frozenset(character))

    def _escape(self) -> One:
        letter = self._next()
        self.at += 1
        if letter.lower() in _CLASSES and letter:
            return One(_CLASSES[letter.lower()], negated=letter.isupper())
        if letter in _CONTROLS:
            return One(frozenset(_CONTROLS[letter]))
        if not letter or letter.isalnum():
            raise self._fail(f"\\{letter} is not supported; there are \\d, \\w, \\s, \\t, \\n and signs", self.at - 2)
        return One(frozenset(letter))

    def _class(self) -> One:
        opened = self.at - 1
        negated = self._next() == "^"
        self.at += negated
        listed: set[str] = set()
        first = True
        while first or self._next() != "]":
            first = False
            if not self._next():
                raise self._fail("this '[' is not closed", opened)
            if self.text.startswith("[:", self.at):
                raise self._fail("[:name:] is not supported; spell the class out: [a-z]")
            low = self._in_class()
            if self._next() == "-" and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                high = self._in_class()
                if len(low) != 1 or len(high) != 1 or min(low) > min(high):
                    raise self._fail("this range of a class has no characters")
                listed |= set(map(chr, range(ord(min(low)), ord(min(high)) + 1)))
            else:
                listed |= low
        self.at += 1
        return One(frozenset(listed), negated)

    def _in_class(self) -> frozenset[str]:
        character = self._next()
        self.at += 1
        if character != "\\":
            return frozenset(character)
        one = self._escape()
        if one.negated:
            raise self._fail("\\D, \\W and \\S do not stand in a class", self.at - 2)
        return one.characters

    def _repeated(self, one: One) -> Sequence:
        sign = self._next()
        if sign in ("*", "+", "?"):
            self.at += 1
            repeated: Sequence = (One(one.characters, one.negated, sign),)  # type: ignore[arg-type]
        elif sign == "{":
            repeated = self._counted(one)
        else:
            return (one,)
        if self._next() in ("*", "+", "?", "{"):
            raise self._fail("a part is repeated once; lazy and possessive forms are not supported")
        return repeated

    def _counted(self, one: One) -> Sequence:
        opened, closed = self.at, self.text.find("}", self.at)
        least, comma, most = self.text[opened + 1 : closed].partition(",")
        if closed < 0 or not least.isdigit() or (most and not most.isdigit()):
            raise self._fail("write {2}, {2,} or {1,3}")
        self.at = closed + 1
        low = int(least)
        if low > LONGEST or (most and not low <= int(most) <= LONGEST):
            raise self._fail("write {2}, {2,} or {1,3}", opened)
        copies: Sequence = (one,) * low
        if comma and not most:
            return (*copies, One(one.characters, one.negated, "*"))
        return (*copies, *(One(one.characters, one.negated, "?"),) * (int(most) - low if most else 0))


def like_parts(pattern: str, escape: str | None) -> tuple[str, ...] | None:
    """A pattern of LIKE as wildcards and literal texts: ("%", "=abc", "_"); None if its escape character ends it."""
    parts: list[str] = []
    literal = ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                return None
            literal += following
        elif character in "%_":
            parts += [f"={literal}", character] if literal else [character]
            literal = ""
        else:
            literal += character
    return (*parts, f"={literal}") if literal else tuple(parts)
