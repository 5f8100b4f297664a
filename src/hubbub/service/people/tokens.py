"""Bearer tokens: shown once, kept as their SHA-256, looked up by the id in them. Revoking one works at once.

Each has scopes, an end, and perhaps the greatest epsilon of one question and a cap: what all that is asked and read
with it may cost. The cap is an account of the ledger (`token:ID`), charged with the question or the reading.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

from hubbub.errors import PolicyError, QueryError
from hubbub.ledger.accounts import read_amount, write_amount
from hubbub.ledger.budget import decimal_text, parse_epsilon
from hubbub.service.people.keys import digest, new_token
from hubbub.service.people.person import NotAllowed, NotKnown, Person, TokenLimits, checked_scopes, scopes_of
from hubbub.service.people.store import Store, after

__all__ = ["Tokens"]

_DAYS: Final = 90
_LONGEST: Final = 366
_MOST: Final = 50  # live tokens of one person
_A_DAY: Final = 200  # made for one person: what is known of each, and the cap in the ledger, stays
_UNKNOWN: Final = "this token is not one of this service, or has ended."


class Tokens:
    """The tokens in the file."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def person(self, token: str) -> Person:
        """Whose it is, and what may be done with it.

        Raises NotKnown where it is nobody's, has ended, or its person may not come in.
        """
        parts = token.split("_")
        row = self._store.row(
            "SELECT token.hash, token.person, token.scopes, token.most, token.cap, token.until, token.ended, "
            "person.state, person.roles FROM token JOIN person ON person.name = token.person WHERE token.id = ?",
            parts[1] if len(parts) == 3 and token.isascii() else "",
        )
        kept = "0" * 64 if row is None else row[0]
        if not hmac.compare_digest(digest(token), kept) or row is None:
            raise NotKnown(_UNKNOWN)
        _, name, scopes, most, cap, until, ended, state, roles = row
        if ended is not None or until <= self._store.moment() or state != "active":
            raise NotKnown(_UNKNOWN)
        limits = TokenLimits(parts[1], _read(most), _read(cap))
        have = tuple(roles.split())
        return Person(name, have, scopes_of(have).intersection(scopes.split()), until, limits)

    def create(
        self,
        name: str,
        *,
        by: str,
        label: str = "",
        scopes: Iterable[str] | None = None,
        days: float | None = None,
        most: str | None = None,
        cap: str | None = None,
        under: Person | None = None,
    ) -> tuple[str, TokenLimits, str]:
        """A new token of somebody: its text, which is shown this once; its limits; and until when it holds.

        days: at most 366; by default 90. most: the greatest epsilon of one question. cap: what it may cost in all.
        under: who makes it with a token, which it may not exceed.

        Raises QueryError, PolicyError, NotAllowed.
        """
        amounts = [None if amount is None else parse_epsilon(amount) for amount in (most, cap)]
        length = _DAYS if days is None else days
        if not 0 < length <= _LONGEST:
            raise QueryError(f"a token holds for {_LONGEST} days at most, and not for {days!r}.")
        if len(label) > 100 or not label.isprintable():
            raise QueryError("a token's label is a text of at most 100 characters that can be printed.")
        text, identity = new_token()
        with self._store.writing() as write:
            row = write("SELECT roles FROM person WHERE name = ? AND state = 'active'", name).fetchone()
            if row is None:
                raise PolicyError(f"there is nobody of the name {name!r:.120} here who is active.")
            default = [s for s in ("check", "ask") if "analyst" in row[0].split()] or sorted(scopes_of(row[0].split()))
            have = checked_scopes(default if scopes is None else scopes, row[0].split())
            until = after(write.time, days=length)
            if under is not None and under.token is not None:
                have = have if scopes is not None else have & under.scopes
                until = until if days is not None else min(until, under.until)
                _check_under(under, under.token, have, until, amounts[0])
            live = "SELECT count(*) FROM token WHERE person = ? AND ended IS NULL AND until > ?"
            if write(live, name, write.time).fetchone()[0] >= _MOST:
                raise PolicyError(f"{name!r} has {_MOST} tokens. End one of them first.")
            made = "SELECT count(*) FROM token WHERE person = ? AND made > ?"
            if write(made, name, after(write.time, days=-1)).fetchone()[0] >= _A_DAY:
                raise PolicyError(f"{_A_DAY} tokens were made for {name!r} within a day. Make more tomorrow.")
            write(
                "INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                identity, digest(text), name, label, " ".join(sorted(have)), *map(_written, amounts), write.time, until,
            )  # fmt: skip
            write.note(
                by, "token created", token=identity, person=name, scopes=sorted(have), until=until,
                most=_shown(amounts[0]), cap=_shown(amounts[1]),
            )  # fmt: skip
        return text, TokenLimits(identity, *amounts), until

    def limits(self, identity: str) -> TokenLimits:
        """What a token may spend that is live, by its id.

        Raises PolicyError where there is none.
        """
        row = self._store.row(
            "SELECT most, cap FROM token WHERE id = ? AND ended IS NULL AND until > ?", identity, self._store.moment()
        )
        if row is None:
            raise PolicyError("the token with which this was asked has ended.")
        return TokenLimits(identity, _read(row[0]), _read(row[1]))

    def of(self, name: str | None = None) -> list[dict[str, Any]]:
        """The tokens of somebody, or of everybody, by when they were made: all that is known of them."""
        rows = self._store.rows(
            "SELECT id, person, label, scopes, most, cap, made, until, ended FROM token "
            f"{'' if name is None else 'WHERE person = ? '}ORDER BY made",
            *([] if name is None else [name]),
        )
        now = self._store.moment()
        return [
            {
                "id": identity,
                "person": person,
                "label": label,
                "scopes": scopes.split(),
                "most": _shown(_read(most)),
                "cap": _shown(_read(cap)),
                "made": made,
                "until": until,
                "ended": ended,
                "live": ended is None and until > now,
            }
            for identity, person, label, scopes, most, cap, made, until, ended in rows
        ]

    def end(self, identity: str, *, by: str, owner: str | None = None, under: Person | None = None) -> None:
        """End a token, at once. owner: only if it is this person's. under: who ends it with a token, which ends itself,
        or one that it could have made.

        Raises PolicyError where there is none, NotAllowed for one that may do more than the token it is ended with.
        """
        with self._store.writing() as write:
            row = write("SELECT person, scopes, most, until, ended FROM token WHERE id = ?", identity).fetchone()
            if row is None or (owner is not None and row[0] != owner):
                raise PolicyError(f"there is no token {identity!r:.40}{'' if owner is None else ' of yours'}.")
            person, scopes, most, until, ended = row
            with_token = None if under is None else under.token
            if under is not None and with_token is not None and with_token.id != identity:
                more = _is_more(under, with_token, frozenset(scopes.split()), until, _read(most))
                if more or with_token.cap is not None:
                    raise NotAllowed(
                        "a token ends itself, or one that may do no more, costs no more and lasts no longer. Log in to "
                        "end others."
                    )
            if ended is None:
                write("UPDATE token SET ended = ? WHERE id = ?", write.time, identity)
                write.note(by, "token ended", token=identity, person=person)


def _check_under(under: Person, token: TokenLimits, scopes: frozenset[str], until: str, most: Fraction | None) -> None:
    """A token makes no token that may more than itself."""
    if token.cap is not None:
        raise NotAllowed("a token with a cap makes no tokens: what they learn would not count. Log in to make one.")
    if _is_more(under, token, scopes, until, most):
        raise NotAllowed("a token makes no token that may do more, cost more or last longer than itself.")


def _is_more(under: Person, token: TokenLimits, scopes: frozenset[str], until: str, most: Fraction | None) -> bool:
    """Whether such a token would do more, cost more or last longer than this one."""
    own = token.most
    costs_more = own is not None and (most is None or most > own)
    return not scopes <= under.scopes or until > under.until or costs_more


def _written(amount: Fraction | None) -> str | None:
    return None if amount is None else write_amount(amount)


def _read(amount: str | None) -> Fraction | None:
    return None if amount is None else read_amount(amount)


def _shown(amount: Fraction | None) -> str | None:
    return None if amount is None else decimal_text(amount)
