"""Audit."""

from hubbub.audit.black_box import LowerBound as LowerBound, lower_bound as lower_bound
from hubbub.audit.grey_box import Violation as Violation, fresh as fresh, replay as replay
from hubbub.audit.neighbours import pairs as pairs
from hubbub.audit.sessions import audit_session as audit_session
