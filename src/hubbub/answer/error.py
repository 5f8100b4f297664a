"""The error of an answer as numbers: half-widths of its intervals, and other draws of the noise that was drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hubbub.errors import ParameterError, QueryError, what_was_given
from hubbub.keywords import named_calls

if TYPE_CHECKING:
    from hubbub.answer.release import Release

__all__ = ["AnswerError"]


@named_calls
@dataclass(frozen=True, eq=False, repr=False)
class AnswerError:
    """What is known of an answer's error, beside its intervals and its charts."""

    _release: Release

    def half_widths(self, level: float = 0.95) -> dict[str, list[float]]:
        """The larger distance from each estimate to an end of its interval, by column of the answer; NaN for NULL.

        Of dates in days, of times in seconds.
        """
        widths = {}
        for i, (low, high) in self._release._every_end(level).items():
            values, kind = self._release._floats(i), self._release.to_arrow().schema.field(i).type
            times = 1e-6 if pa.types.is_temporal(kind) and not pa.types.is_date(kind) else 1.0
            widths[self._release.columns[i]] = (np.maximum(values - low, high - values) * times).tolist()
        return widths

    def draws(self, n: int = 1000) -> dict[str, Any]:
        """Other answers that the known noise could have given: for each estimate an array of `n` draws by rows.

        The columns of a draw belong together; dates and times are numpy's. An exact column is an array of its values.

        Raises ParameterError unless 1 <= n <= 100,000; QueryError where the SQL above the aggregates is too slow to be
        run so often.
        """
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= 100_000:
            raise ParameterError(f"draws: n={what_was_given(n)}; allowed is a whole number from 1 to 100,000.")
        drawn = {} if self._release._answered is None else self._release._answered.draws(n).columns
        if any(len(values) < n for values in drawn.values()):
            raise QueryError(
                f"draws: n={n:,} is too many here: each runs the SQL above the aggregates again, and the time for that "
                "is up. Ask for fewer."
            )
        table = self._release.to_arrow()
        return {
            name: _of_type(drawn[i], table.schema.field(i).type)
            if i in drawn
            else table.column(i).to_numpy(zero_copy_only=False)
            for i, name in enumerate(self._release.columns)
        }


def _of_type(values: Any, kind: pa.DataType) -> Any:
    """Floats as numpy's dates, times or lengths of time, NaN as NaT."""
    if not pa.types.is_temporal(kind):
        return values
    name = "datetime64[us]" if pa.types.is_timestamp(kind) else "timedelta64[us]"
    name = "datetime64[D]" if pa.types.is_date(kind) else name
    missing = np.isnan(values)
    whole = np.where(missing, 0, np.rint(values)).astype(np.int64).astype(name)
    return np.where(missing, np.array("NaT", name), whole)
