"""Audit."""

from hubbub.audit.black_box import LowerBound, lower_bound
