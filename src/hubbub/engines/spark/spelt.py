r"""Units that are texts of JSON, where Spark makes one text of several.

Half a character (`\ud800`) becomes a question mark. Bytes that are not text become U+FFFD, under the option `encoding`.
So a text with one of the two names nobody: two people could be one.
"""

from __future__ import annotations

from typing import Final

from hubbub._typing import override
from hubbub.engines.spark.dialect import Spark

__all__ = ["SPELT"]


class _Spelt(Spark):
    @override
    def unit_text(self, sql: str) -> str:
        made = f"contains({sql}, '?') OR contains({sql}, CAST(X'EFBFBD' AS STRING))"
        return f"(CASE WHEN NOT ({made}) THEN {super().unit_text(sql)} END)"


SPELT: Final = _Spelt()
