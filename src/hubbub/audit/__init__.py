"""What we do to catch our own bugs, and yours: audits that try to refute a claim of privacy.

None of them says "is private". Each says what was shown, with which confidence, and the most it could have shown.

Exact       `exact`, `exact_density`: output distributions by enumeration or quadrature against the claim
Grey box    `replay`, `fresh`, `audit_session`, `pairs`, `Question`, `Violation`, `SessionAudit`: two runs on neighbours
            with the noise frozen; one differing pair is a proof. `SCENES`, `Scene`: hubbub's own tables and questions
Black box   `lower_bound`, `LowerBound`: for any callable, a lower bound on epsilon with stated confidence
Floats      `float_support`, `bytes_drawn`: last bits of outputs, and bytes drawn against the value
One run     `one_run`, `one_run_bound`: canaries in a single run
Reports     `Report`, `Line`, `line_of`; `self_test`: hubbub's audit of itself

Private integers are held while the grey box runs; they are never printed, stored or pickled, but a `Violation` may
name a number taken from the audited rows.
"""

from hubbub.audit.black_box import LowerBound, lower_bound
from hubbub.audit.canaries import OneRun, one_run, one_run_bound
from hubbub.audit.exact import Exact, exact, exact_density
from hubbub.audit.fixtures import SCENES, Scene
from hubbub.audit.floats import BytesDrawn, FloatSupport, bytes_drawn, float_support
from hubbub.audit.grey_box import Violation, fresh, replay
from hubbub.audit.neighbours import Pair, pairs
from hubbub.audit.questions import Question
from hubbub.audit.report import Line, Report, line_of
from hubbub.audit.self_test import self_test
from hubbub.audit.sessions import SessionAudit, audit_session

__all__ = [
    "SCENES",
    "BytesDrawn",
    "Exact",
    "FloatSupport",
    "Line",
    "LowerBound",
    "OneRun",
    "Pair",
    "Question",
    "Report",
    "Scene",
    "SessionAudit",
    "Violation",
    "audit_session",
    "bytes_drawn",
    "exact",
    "exact_density",
    "float_support",
    "fresh",
    "line_of",
    "lower_bound",
    "one_run",
    "one_run_bound",
    "pairs",
    "replay",
    "self_test",
]


def __dir__() -> list[str]:
    return sorted(__all__)
