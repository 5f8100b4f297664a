"""Which values may name a group: what a column of the answer can hold."""

from __future__ import annotations

import pytest

from hubbub.errors import PolicyError, QueryError
from hubbub.tables.groups import _usable, fitted
from hubbub.tables.kinds import Kind

LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize("group", [LEAST, MOST, float(LEAST), float(2**63 - 1024), 0, None, 0.5, "x", True])
def test_a_group_of_64_bits_is_answered(group):
    assert _usable((0, group), Kind.NUMBER) == (0, group)


@pytest.mark.parametrize("group", [LEAST - 1, MOST + 1, float(2**63), float(LEAST) - 2048])
def test_a_group_beyond_64_bits_is_refused(group):
    with pytest.raises(QueryError, match="is out of range for"):
        _usable((0, group), Kind.NUMBER)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_has_room_for_what_is_computed_of_it(sign):
    """Below 2^1000: products of two, and sums of millions, are numbers still."""
    below = sign * (2.0**1000 - 2.0**947)
    assert fitted(below, Kind.NUMBER, "x") == below
    for value in (2.0**1000, 2**1000, float("inf")):
        with pytest.raises(PolicyError, match="which are never equal to that"):
            fitted(sign * value, Kind.NUMBER, "x")
