"""The JSON Schema of `hubbub.toml`, for editors that complete and check as one types.

It says what a schema can: keys, types and ranges. `hubbub policy check` says the rest.
"""

from __future__ import annotations

from typing import Any, Final

from hubbub.ledger.policy import BOUNDINGS, KINDS, NEIGHBOURS

__all__ = ["policy_schema"]

_TEXT: Final = {"type": "string", "minLength": 1}
_COUNT: Final = {"type": "integer", "minimum": 1}
_AMOUNT: Final = {
    "description": "A positive number, or text such as '1/3'. Read exactly as written.",
    "anyOf": [{"type": "number", "exclusiveMinimum": 0}, _TEXT],
}
_KINDS: Final = {"type": "object", "additionalProperties": {"enum": list(KINDS)}}
_FLAG: Final = {"type": "boolean"}


def _table(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object", "additionalProperties": False, "properties": properties, "required": list(required), **more,
    }  # fmt: skip


def policy_schema() -> dict[str, Any]:
    """The schema, as a value for `json.dumps`."""
    between = _table({"between": {"type": "array", "minItems": 2, "maxItems": 2}, "nullable": _FLAG}, "between")
    values = {"type": "array", "minItems": 1}
    one_of = _table({"one_of": values, "null": _FLAG, "other": _TEXT, "others": _FLAG, "trim": _FLAG}, "one_of")
    trim = _table({"trim": _FLAG}, "trim")
    numbers = {"type": "array", "minItems": 2, "items": {"type": "number"}}
    edges = _table({"edges": numbers, "nullable": _FLAG}, "edges")
    one_name = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": _TEXT}
    source = {**_TEXT, "description": "A .parquet, .csv or .duckdb file, relative to this one."}
    anywhere = {**_TEXT, "description": "A file, or postgresql://USER@HOST/DATABASE, env:NAME, spark:TABLE."}
    private = _table(
        {
            "source": anywhere,
            "table": _TEXT,
            "unit": {**_TEXT, "description": "The column that names who is protected."},
            "each_row": _FLAG,
            "max_groups": _COUNT,
            "max_rows": _COUNT,
            "max_total": _COUNT,
            "neighbours": {"enum": list(NEIGHBOURS)},
            "budget": _AMOUNT,
            "columns": {"type": "object", "additionalProperties": {"oneOf": [between, one_of, edges, trim]}},
            "types": _KINDS,
            "unit_space": {**_TEXT, "description": "Tables of one unit space share one budget."},
            "through": {"oneOf": [_TEXT, one_name], "description": "The column that leads to the unit's table."},
            "bounding": {"enum": list(BOUNDINGS)},
            "trusted_view": {**_FLAG, "description": "Each row of this view is one unit's own: a steward has seen it."},
        },
        "source",
        oneOf=[{"required": ["unit"]}, {"required": ["each_row"]}],
    )
    ledger = _table(
        {
            "file": _TEXT,
            "url": _TEXT,
            "key_file": _TEXT,
            "anchor": _TEXT,
            "max_failures": _COUNT,
            "max_failures_all": _COUNT,
            "require_purpose": {**_FLAG, "description": "Refuse a question that does not say what it is asked for."},
        },
        oneOf=[{"required": ["file"]}, {"required": ["url"]}],
    )
    analysts = {"type": "object", "additionalProperties": _AMOUNT}
    budget = _table(
        {
            "epsilon": _AMOUNT,
            "delta": _AMOUNT,
            "delta_threshold": _AMOUNT,
            "per_analyst": _AMOUNT,
            "analysts": analysts,
        },
        "epsilon",
    )
    public = _table({"source": source, "table": _TEXT, "types": _KINDS}, "source")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hubbub.toml",
        **_table(
            {
                "ledger": ledger,
                "budget": budget,
                "tables": {"type": "object", "minProperties": 1, "additionalProperties": private},
                "public": {"type": "object", "additionalProperties": public},
            },
            "ledger",
            "budget",
            "tables",
        ),
    }
