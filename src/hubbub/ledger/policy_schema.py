"""The JSON Schema of `hubbub.toml`, for editors that complete and check as one types.

It says what a schema can: keys, types and ranges. `hubbub policy check` says the rest.
"""

from __future__ import annotations

from typing import Any, Final

from hubbub.file_formats import ENCODINGS
from hubbub.ledger.column_policy import KINDS
from hubbub.ledger.policy import BOUNDINGS, NEIGHBOURS

__all__ = ["policy_schema"]

_TEXT: Final = {"type": "string", "minLength": 1}
_COUNT: Final = {"type": "integer", "minimum": 1}
_COUNT_OR_AUTO: Final = {"oneOf": [_COUNT, {"const": "auto"}], "description": "A number; auto: each question finds it."}
_AMOUNT: Final = {
    "description": "A positive number, or text such as '1/3'. Read exactly as written.",
    "anyOf": [{"type": "number", "exclusiveMinimum": 0}, _TEXT],
}
_KINDS: Final = {"type": "object", "additionalProperties": {"enum": list(KINDS)}}
_FLAG: Final = {"type": "boolean"}
_SECONDS: Final = {"type": "number", "minimum": 0.1, "maximum": 3600}


def _table(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object", "additionalProperties": False, "properties": properties, "required": list(required), **more,
    }  # fmt: skip


_BETWEEN: Final = _table(
    {"between": {"type": "array", "minItems": 2, "maxItems": 2}, "nullable": _FLAG, "tz": _TEXT}, "between"
)
_VALUES: Final = {"type": "array", "minItems": 1}
_ONE_OF: Final = _table({"one_of": _VALUES, "null": _FLAG, "other": _TEXT, "others": _FLAG, "trim": _FLAG}, "one_of")
_TRIM: Final = _table({"trim": _FLAG}, "trim")
_NUMBERS: Final = {"type": "array", "minItems": 2, "items": {"type": "number"}}
_EDGES: Final = _table({"edges": _NUMBERS, "nullable": _FLAG}, "edges")
_CSV: Final = _table(
    {
        "delimiter": {**_TEXT, "description": "One character between fields, such as ';' or a tab."},
        "encoding": {"enum": list(ENCODINGS)},
        "decimal": {"enum": [".", ","]},
        "thousands": {"enum": [".", ",", " ", "'", "_", "\N{NO-BREAK SPACE}"]},
        "names": {
            "type": "array",
            "minItems": 1,
            "items": _TEXT,
            "description": "The columns, where no line has them.",
        },
        "formats": {"type": "object", "additionalProperties": _TEXT, "description": "Dates: { day = '%d.%m.%Y' }."},
        "quoted_line_breaks": {**_FLAG, "description": "A line break in quotes is its field's: vouched for."},
    },
    description="How a CSV is written, where not with commas, in UTF-8, with a header line.",
)
_ONE_NAME: Final = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": _TEXT}
_SOURCE: Final = {**_TEXT, "description": "A file (.parquet, .csv, .duckdb, ...), relative to this one."}
_ANYWHERE: Final = {
    **_TEXT,
    "description": "A file, or postgresql://USER@HOST/DATABASE, env:NAME, s3://BUCKET/KEY, spark:TABLE.",
}
_PRIVATE: Final = _table(
    {
        "source": _ANYWHERE,
        "table": _TEXT,
        "unit": {**_TEXT, "description": "The column that names who is protected."},
        "each_row": _FLAG,
        "max_groups": _COUNT_OR_AUTO,
        "max_rows": _COUNT_OR_AUTO,
        "max_total": _COUNT,
        "rows_per_unit_at_most": {**_COUNT, "description": "A statement: no unit has more rows. It bounds nothing."},
        "neighbours": {"enum": list(NEIGHBOURS)},
        "budget": _AMOUNT,
        "columns": {"type": "object", "additionalProperties": {"oneOf": [_BETWEEN, _ONE_OF, _EDGES, _TRIM]}},
        "types": _KINDS,
        "unit_space": {**_TEXT, "description": "Tables of one unit space share one budget."},
        "through": {"oneOf": [_TEXT, _ONE_NAME], "description": "The column that leads to the unit's table."},
        "bounding": {"enum": list(BOUNDINGS)},
        "answer_time": {**_SECONDS, "description": "Seconds until the service answers a question about this table."},
        "rows_kept": {**_COUNT, "description": "Questions read a copy with at most so many rows of one unit."},
        "trusted_view": {**_FLAG, "description": "Each row of this view is one unit's own: a steward has seen it."},
        "looked_at_rows": {**_FLAG, "description": "What is declared here was written after a look at the rows."},
        "csv": _CSV,
    },
    "source",
    oneOf=[{"required": ["unit"]}, {"required": ["each_row"]}],
)
_LEDGER: Final = _table(
    {
        "file": _TEXT,
        "url": _TEXT,
        "key_file": _TEXT,
        "anchor": _TEXT,
        "max_failures": _COUNT,
        "max_failures_all": _COUNT,
        "witness": {
            "description": "To where the head of the chain goes daily: a folder, https://..., a command's words.",
            "anyOf": [_TEXT, {"type": "array", "minItems": 1, "items": _TEXT}],
        },
        "keep_texts": {**_COUNT, "description": "Days after which the texts of questions are removed."},
        "require_purpose": {**_FLAG, "description": "Refuse a question that does not say what it is asked for."},
    },
    oneOf=[{"required": ["file"]}, {"required": ["url"]}],
)
_ANALYSTS: Final = {"type": "object", "additionalProperties": _AMOUNT}
_BUDGET: Final = _table(
    {
        "epsilon": _AMOUNT,
        "delta": _AMOUNT,
        "delta_threshold": _AMOUNT,
        "training": {
            "description": "What is set aside for nets that are trained elsewhere: [epsilon, delta].",
            "type": "array",
            "items": _AMOUNT,
            "minItems": 2,
            "maxItems": 2,
        },
        "per_analyst": _AMOUNT,
        "analysts": _ANALYSTS,
    },
    "epsilon",
)
_SERVICE: Final = _table(
    {
        "answer_time": {**_SECONDS, "description": "Seconds until an answer, for each table that does not say."},
        "tick": {**_SECONDS, "minimum": 0.01},
        "lanes": {**_COUNT, "description": "How many questions run at once."},
        "shared_answers": {**_FLAG, "description": "Whether analysts see and reuse each other's stored answers."},
        "max_aggregates": _COUNT,
        "max_answer_groups": {**_COUNT, "description": "How many groups an answer may have."},
        "memory": {**_COUNT, "description": "MiB that a runner's engine may use."},
        "checks_a_second": {**_SECONDS, "minimum": 0.01, "description": "Of one person."},
        "checks_at_once": _COUNT,
        "logins_a_minute": {**_SECONDS, "minimum": 1, "description": "Tries for one name."},
        "most_waiting": {**_COUNT, "description": "How many questions of one analyst wait at once."},
        "longest_waiting": {**_SECONDS, "minimum": 1, "description": "Seconds of answer times that they are in all."},
        "ask_steward_above": {**_AMOUNT, "description": "A question at more waits for a steward's yes."},
        "public_url": {**_TEXT, "description": "Where the pages are, for links: https://..."},
        "oidc": {
            **_table(
                {
                    "issuer": {**_TEXT, "description": "The provider's https:// address, as in its tokens."},
                    "client_id": _TEXT,
                    "client_secret": {**_TEXT, "description": "env:NAME, the variable that holds it."},
                    "name": {**_TEXT, "description": "What the pages call it."},
                },
                "issuer",
                "client_id",
            ),
            "description": "A provider of OpenID Connect by which people may log in.",
        },
    }
)
_PUBLIC: Final = _table({"source": _SOURCE, "table": _TEXT, "types": _KINDS, "csv": _CSV}, "source")


def policy_schema() -> dict[str, Any]:
    """The schema, as a value for `json.dumps`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hubbub.toml",
        **_table(
            {
                "ledger": _LEDGER,
                "budget": _BUDGET,
                "tables": {"type": "object", "minProperties": 1, "additionalProperties": _PRIVATE},
                "public": {"type": "object", "additionalProperties": _PUBLIC},
                "service": _SERVICE,
            },
            "ledger",
            "budget",
            "tables",
        ),
    }
