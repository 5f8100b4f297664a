"""Changes that nobody could notice, each with the reason. The runner leaves them out of its sample.

A change is named as the runner prints it, with the function it is in; a test says that each is a change
of its module still.
"""

from __future__ import annotations

from typing import Final

__all__ = ["EQUIVALENT"]

_CODEC: Final = "Python reads a codec's name less its signs: 'utf-8?' is 'utf-8'"

EQUIVALENT: Final[dict[str, dict[str, str]]] = {
    "hubbub.engines.postgres.dialect": {
        "holds: 'latin-1' -> 'latin-1?'": _CODEC,
        "holds: 'utf-8' -> 'utf-8?'": _CODEC,
    },
    "hubbub.engines.spark.dialect": {
        "shown_as: 'utf-8' -> 'utf-8?'": _CODEC,
        "_literal: 'utf-8' -> 'utf-8?'": _CODEC,
        ": '[a-z][a-z0-9_]*' -> '[a-z][a-z0-9_]*?'": "with fullmatch a lazy pattern matches the same texts",
    },
    "hubbub.sql.emit.expression": {
        "_constant: isinstance(node, Literal) -> True": "what the binder takes as a constant argument is a Literal",
        "_constant: return self.sql(node) -> return None": "the same: never reached",
        "_call: i in function.constants and argument.kind is not Kind.NULL -> i in function.constants": (
            "the binder refuses NULL where a constant argument stands"
        ),
        "_argument: (Kind.TEXT, Kind.TIMESTAMP, Kind.NUMBER) -> (Kind.TEXT, Kind.TIMESTAMP)": (
            "what takes numbers alone is a function of doubles, whose NULL is written by `_raw`"
        ),
        "_number: node.value if isinstance(node.value, int | Fraction) else None -> node.value": (
            "a constant that is a number is an int, a Fraction or None; the test is for the type checker"
        ),
        "_number: isinstance(node.value, int | Fraction) -> True": "the same",
    },
}
