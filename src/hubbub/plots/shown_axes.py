"""Axes of matplotlib that show themselves in a notebook, and that can be read on a light ground and on a dark one.

A figure that belongs to no window system is shown by nobody: a notebook would write `<Axes: title=...>`. These Axes say
how they look, as SVG without scripts. The ground is transparent. Letters and axes are of a grey that has a contrast of
4.6 to white and of 4 to the darkest ground of a notebook; where they are shown, they take the colour of the text
around them.
"""

from __future__ import annotations

import io
from functools import cache
from typing import Any, Final

__all__ = ["INK", "shown_axes"]

INK: Final = "#757575"
"""Of letters and axes."""


@cache
def shown_axes() -> type[Any]:
    """The class of these Axes. Raises ImportError where matplotlib is not installed."""
    from matplotlib import rc_context
    from matplotlib.axes import Axes

    class ShownAxes(Axes):
        """Axes that a notebook shows as a picture."""

        def __init__(self, *args: Any, **options: Any) -> None:
            with rc_context({"text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK}):
                super().__init__(*args, **options)
            self.tick_params(which="both", color=INK, labelcolor=INK)
            self.set_facecolor("none")

        def legend(self, *args: Any, **options: Any) -> Any:
            return super().legend(*args, **{"labelcolor": INK, "facecolor": "none", **options})

        def text(self, *args: Any, **options: Any) -> Any:
            return super().text(*args, **{"color": INK, **options})

        def annotate(self, *args: Any, **options: Any) -> Any:
            return super().annotate(*args, **{"color": INK, **options})

        def _repr_html_(self) -> str:
            file = io.StringIO()
            figure: Any = self.figure
            with rc_context({"svg.fonttype": "none", "svg.hashsalt": "hubbub"}):
                figure.savefig(file, format="svg", metadata={"Date": None})
            svg = file.getvalue()
            return svg[svg.index("<svg") :].replace(INK, "currentColor")

    return ShownAxes
