"""What is sent and told, as JSON Schema (2020-12), for the OpenAPI document. Amounts are texts, such as "1/3"."""

from __future__ import annotations

from typing import Any, Final

from hubbub.service.http.problem import STATUS
from hubbub.service.states import FATES, STATES

__all__ = ["FIELDS", "KINDS", "OPTIONS", "SCHEMAS", "question_schema"]

KINDS: Final[dict[type, dict[str, Any]]] = {
    str: {"type": "string"},
    dict: {"type": "object"},
    list: {"type": "array"},
    int: {"type": "integer", "minimum": 0, "maximum": 10**9},
    bool: {"type": "boolean"},
}
"""The schema of each kind of field of an act."""

_TEXT: Final = {"type": "string"}
_AMOUNT: Final = {"type": "string", "examples": ["0.1", "1/3"]}
_GIVEN: Final = {"type": ["string", "number"], "examples": ["0.1"]}
_WHOLE: Final = {"type": "integer", "minimum": 1}
OPTIONS: Final[dict[str, Any]] = {
    "epsilon": _GIVEN,
    "rho": _GIVEN,
    "noise": {"enum": ["laplace", "gaussian"]},
    "delta": _GIVEN,
    "max_groups": {"type": ["integer", "string"]},
    "max_rows": {"type": ["integer", "string"]},
    "max_total": _WHOLE,
    "bounding": {"enum": ["groups", "norm"]},
    "keys": {"type": "object"},
    "params": {"type": ["object", "array"]},
    "weights": {"type": "object"},
    "weight": _TEXT,
    "within": {"type": ["number", "string", "object"]},
    "at_least": {"type": "number"},
    "at_most": _GIVEN,
    "total_error": {"type": "boolean"},
    "rows_per_unit_at_most": _WHOLE,
    "assume_rows": _WHOLE,
}
"""The options of a question: those of `Session.sql`."""


def question_schema() -> dict[str, Any]:
    """A question of a plan."""
    return {
        "type": "object",
        "properties": {"sql": FIELDS["sql"], "options": FIELDS["options"]},
        "required": ["sql"],
    }


FIELDS: Final[dict[str, dict[str, Any]]] = {
    "sql": {"type": "string", "maxLength": 100_000, "examples": ["SELECT COUNT(*) AS n FROM visits"]},
    "options": {"$ref": "#/components/schemas/Options"},
    "questions": {"type": "array", "items": {"$ref": "#/components/schemas/Question"}, "minItems": 1},
    "epsilon": _AMOUNT,
    "at": {"type": "string", "examples": ["0.1"], "description": "The epsilon that errors are predicted for."},
    "level": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "form": {"enum": ["json", "arrow", "csv"]},
}
"""The schema of a field of that name, where it is more than its kind."""

_STATE: Final = {"enum": list(STATES)}
_FATE: Final = {"enum": list(FATES)}
_TIME: Final = {"type": "string", "format": "date-time"}


def _told(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


def _listed(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


_ASKED: Final = _told(["state"], id=_TEXT, state=_STATE, release_at=_TIME, incident=_TEXT, asked_at=_TIME, reason=_TEXT)
_BOUNDS: Final = {"type": "object", "description": "What limits leave out, where that was asked."}
_LEFT: Final = _told(["left", "limit", "spent"], left=_AMOUNT, limit=_AMOUNT, spent=_AMOUNT)
SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "Options": {"type": "object", "properties": OPTIONS, "additionalProperties": False},
    "Question": {},
    "Told": {"type": "object"},
    "List": _listed({"type": "object"}),
    "Check": _told(
        ["epsilon", "left", "columns", "cost", "stored", "affordable", "types", "answer_time"],
        epsilon=_AMOUNT, left=_AMOUNT, cost=_AMOUNT, columns=_listed({"type": "object"}), mechanism=_TEXT,
        notes=_listed(_TEXT), stored={"type": "boolean"}, affordable={"type": "boolean"},
        types=_listed(_listed(_TEXT)), answer_time={"type": "number"},
    ),
    "Asked": {**_ASKED, "description": "Its place; with `answer` (or `bounds`) where it is stored or public."},
    "Answer": {**_ASKED, "properties": {**_ASKED["properties"], "answer": {"type": "object"}, "bounds": _BOUNDS}},
    "Plan": _told(["questions"], questions=_listed({"$ref": "#/components/schemas/Answer"})),
    "Answers": _listed(
        _told(
            ["id", "by", "mine", "sql", "epsilon", "costs"],
            id=_TEXT, by=_TEXT, mine={"type": "boolean"}, sql=_TEXT, epsilon=_AMOUNT, asked_at=_TIME,
            release_at=_TIME, costs=_AMOUNT,
        )
    ),
    "History": _listed(_told(["id", "state", "sql"], id=_TEXT, state=_FATE, sql=_TEXT, epsilon=_AMOUNT)),
    "Refinement": _told(
        ["epsilon", "left", "columns", "helps", "fits"],
        epsilon=_AMOUNT, left=_AMOUNT, columns=_listed({"type": "array"}), helps={"type": "boolean"},
        fits={"type": "boolean"}, answer_time={"type": "number"},
    ),
    "Budget": _told(
        ["left", "spaces"],
        left=_AMOUNT,
        spaces=_listed(
            _told(
                ["space", "epsilon", "delta", "left", "yours"],
                space=_TEXT, epsilon=_AMOUNT, delta={"type": ["string", "null"]}, left=_AMOUNT, yours=_LEFT,
            )
        ),
    ),
    "Problem": _told(
        ["type", "title", "status", "detail", "kind"],
        type=_TEXT, title=_TEXT, status={"type": "integer"}, detail=_TEXT, kind={"enum": sorted(STATUS)},
        position={"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        remedies=_listed({"type": "object"}), asked=_TEXT, left=_TEXT, retry_after={"type": "number"}, incident=_TEXT,
        **{"class": _TEXT},
    ),
}  # fmt: skip
"""What is told, by name."""
SCHEMAS["Question"].update(question_schema())
