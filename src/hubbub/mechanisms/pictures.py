"""Pictures of laws: what an answer looks like on two data sets that are neighbours, or further apart.

Under epsilon-DP the curves of two neighbours are within a factor of e^epsilon of each other everywhere; for the Laplace
mechanism they are that far apart at both ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hubbub.errors import ParameterError

__all__ = ["draw_laws"]


def draw_laws(mechanism: Any, data: Sequence[Any], outputs: Sequence[Any], *, log: bool = False, ax: Any = None) -> Any:
    """The probability of each output on each of some data sets, one curve a data set, as a matplotlib Axes.

    mechanism: anything with `log_prob(output, data)`. log: a logarithmic axis, on which a factor of e^epsilon is the
    same distance everywhere. Raises ParameterError where there is nothing to draw.
    """
    from hubbub import plots

    if not len(data) or not len(outputs):
        raise ParameterError("give at least one data set and one output to draw.")
    places = [float(o) for o in outputs]
    lines = [(str(x), places, [math.exp(mechanism.log_prob(o, x)) for o in outputs]) for x in data]
    title = type(mechanism).__name__
    drawn = plots.curves(lines, title=title, xlabel="answer", ylabel="probability", log=log, ax=ax)
    drawn.legend(frameon=False, loc="upper left", title="on")
    return drawn
