"""tables: what a private table is, and what one question about it costs.

A table is declared (`declare`): who is protected, how much one unit may contribute, which values a column can
take. Row expressions (`expressions`) are typed and total: they never raise on any row, and an operation without
an answer (division by zero, NaN) gives NULL. A question (`question`) is owned rows below one private aggregate
and a choice of released rows above it. The plan (`plan`) turns a question into *measurements*, vectors of
integers with a known sensitivity, and the price (`price`) turns an epsilon into exact noise scales and expected
errors. Nothing here reads rows, and nothing here speaks SQL.

The one rule is ownership (Definition in `question`): every row belongs to one unit, and adding a unit changes no
other unit's rows. Sensitivity then comes from one place: the bound on a unit's contribution at the aggregate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.late import late_names

if TYPE_CHECKING:
    from hubbub.tables.aggregates import FAMILIES as FAMILIES
    from hubbub.tables.columns import between as between, edges as edges, one_of as one_of, text as text
    from hubbub.tables.declare import EACH_ROW as EACH_ROW, public as public, table as table

# Where each name that other rooms may take lives.
_LATER = {
    "EACH_ROW": "declare",
    "FAMILIES": "aggregates",
    "between": "columns",
    "edges": "columns",
    "one_of": "columns",
    "public": "declare",
    "table": "declare",
    "text": "columns",
}

__all__ = ["EACH_ROW", "FAMILIES", "between", "edges", "one_of", "public", "table", "text"]


__getattr__ = late_names(__name__, _LATER, globals())
