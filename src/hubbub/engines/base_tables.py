"""The refusal of a source that nothing in a catalogue shows to keep each row one unit's own."""

from __future__ import annotations

from hubbub.errors import PolicyError

__all__ = ["not_trusted"]


def not_trusted(name: str, inner: str, what: str) -> PolicyError:
    """The refusal of a source that is not a base table. what: such as "is a view"."""
    return PolicyError(
        f"table {name!r}: {inner!r} {what}, which can mix rows of several people. Name a base table; or, where each "
        "row belongs to one unit and depends on nobody else's rows, declare trusted_view = true."
    )
