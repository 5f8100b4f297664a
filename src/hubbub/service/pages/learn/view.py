"""A step of Learn as a page: what `told` says, in the templates `learn_1.html` to `learn_4.html`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hubbub.service.pages.learn.pictures import bars_over_truth, belief, closing_in
from hubbub.service.pages.page import Page, Viewer, render

__all__ = ["view"]


def view(told: Mapping[str, Any], viewer: Viewer) -> Page:
    """The page of a step."""
    return render(f"learn_{told['step']}.html", viewer, at="learn", told=told, **_drawn(told))


def _drawn(told: Mapping[str, Any]) -> dict[str, Any]:
    match told["step"]:
        case 2:
            picture = closing_in(told["presses"], most=told["most"], budget_presses=told["budget"], many=told["many"])
            return {"picture": picture}
        case 3:
            low, high = told["belief"]
            return {
                "bars": bars_over_truth(told["answers"], truth=told["yes"], most=told["number"]),
                "belief": belief(low, int(told["prior"]) / 100, high),
                "table": [[a["answer"], a["low"], a["high"], "yes" if a["holds"] else "no"] for a in told["answers"]],
                "rows": [
                    [r["epsilon"], f"± {r['wide']}", f"{r['least']} in 100", f"{r['most']} in 100"]
                    for r in told["rows"]
                ],
            }
    return {}
