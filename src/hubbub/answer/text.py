"""An answer in words: its rows as text, and what stands under them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.answer.cells import label, unreliable, with_ends, with_reach
from hubbub.arguments import RELIABLE, a_share
from hubbub.keywords import named_calls

if TYPE_CHECKING:
    from hubbub.answer.release import Release

__all__ = ["AnswerText"]


@named_calls
@dataclass(frozen=True, eq=False, repr=False)
class AnswerText:
    """An answer in words. `str(answer)` has them all."""

    _release: Release

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd about the question, found from declarations alone."""
        return self._release._notes

    @property
    def bounded(self) -> tuple[str, ...]:
        """What of one unit is in this answer, and that the ± does not hold the rest; nothing where nothing is cut."""
        answered = self._release._answered
        return () if answered is None else answered.bounded

    @property
    def remarks(self) -> tuple[str, ...]:
        """What stands under the answer: what bounding left out, how good choices are, and the notes."""
        answered = self._release._answered
        return (*self.bounded, *(() if answered is None else answered.promises), *self.notes)

    def rows(self, level: float = 0.95, *, reliable: float = RELIABLE) -> list[tuple[str, ...]]:
        """The rows as text, each estimate as `value ± half-width`, a quantile as `value (low..high)`.

        reliable: an estimate whose error is more than this part of it carries a ~.

        Raises ParameterError for a level outside (0, 1), and where `reliable` is not above 0.
        """
        release, answered, reliable = self._release, self._release._answered, a_share(reliable)
        ends_of, reach = release._every_end(level), release.error.half_widths(level)
        ranges = {} if answered is None else answered.ranges
        shown = []
        for i, (name, values) in enumerate(release.to_dict().items()):
            if i not in ends_of:
                shown.append([label(v) for v in values])
                continue
            marks = ["~" * unreliable(v, r, reliable) for v, r in zip(values, reach[name], strict=True)]
            if i in ranges:
                kind, both = release.to_arrow().schema.field(i).type, zip(*ends_of[i], strict=True)
                texts = [with_ends(v, ends, ranges[i], kind) for v, ends in zip(values, both, strict=True)]
            else:
                texts = [with_reach(v, r) for v, r in zip(values, reach[name], strict=True)]
            shown.append([mark + text for mark, text in zip(marks, texts, strict=True)])
        return list(zip(*shown, strict=True))
