"""Templates, navigation and headers: `render` makes a page of plain data.

    page = render("library.html", viewer, answers=told)
    Response(page.text, headers=page_headers(page.nonce), media_type="text/html")

Everything is escaped where it is written, and a name that was not given is an error (jinja2's `StrictUndefined`). The
templates are read when this module is loaded: a front that is shut in opens no file later.

**The policy of the content** (W3C, Content Security Policy Level 3): scripts and styles from this service alone, none
in the page; the nonce is for the one style element that the editor writes into.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined

from hubbub.noise import system_bits
from hubbub.service.pages import words
from hubbub.service.pages.static import static_url

__all__ = ["NAVIGATION", "Page", "Place", "Viewer", "environment", "page_headers", "render"]


@dataclass(frozen=True)
class Place:
    """An entry of the navigation. key: what a page calls itself; roles: who sees it, everybody where there are none."""

    key: str
    path: str
    label: str
    roles: frozenset[str] = frozenset()


_ANALYST: Final = frozenset({"analyst"})
_STEWARD: Final = frozenset({"steward"})
_AUDITOR: Final = frozenset({"auditor"})

NAVIGATION: Final = (
    Place("ask", "/", "Ask", _ANALYST),
    Place("library", "/library", "Library", _ANALYST),
    Place("mine", "/mine", "Mine", _ANALYST),
    Place("today", "/today", "Today", _STEWARD),
    Place("people", "/people", "People", _STEWARD),
    Place("requests", "/requests", "Requests", _STEWARD),
    Place("tables", "/tables", "Tables", _STEWARD),
    Place("incidents", "/incidents", "Incidents", _STEWARD),
    Place("charges", "/charges", "Charges", _AUDITOR),
    Place("log", "/log", "Log", _AUDITOR),
    Place("chain", "/chain", "Records", _STEWARD | _AUDITOR),
    Place("attacks", "/attacks", "Attacks", _STEWARD | _AUDITOR),
    Place("learn", "/learn", "Learn"),
)
"""Where one can go, in the order of the page's head."""


@dataclass(frozen=True)
class Viewer:
    """Who looks at a page. name: "" for nobody known. csrf: the text that each of his forms holds.

    left: what is left of his own limit, and limit: that limit, as exact texts; None where he has none.
    """

    name: str = ""
    roles: frozenset[str] = frozenset()
    csrf: str = ""
    left: str | None = None
    limit: str | None = None

    @property
    def places(self) -> tuple[Place, ...]:
        """Where he can go."""
        return tuple(p for p in NAVIGATION if self.name and (not p.roles or p.roles & self.roles))


@dataclass(frozen=True)
class Page:
    """A page as text, and the nonce that its headers name."""

    text: str
    nonce: str


def environment() -> Environment:
    """Where templates are rendered."""
    folder = files("hubbub.service.pages").joinpath("templates")
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".html")}
    made = Environment(
        loader=DictLoader(texts),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {name: getattr(words, name) for name in words.__all__}
    made.globals |= {"static": static_url}
    return made


_ENVIRONMENT: Final = environment()


def render(template: str, viewer: Viewer, /, *, at: str = "", **told: Any) -> Page:
    """A page. at: the entry of the navigation that it belongs to. told: what the template is given."""
    nonce = system_bits().u64(2).tobytes().hex()
    given: Mapping[str, Any] = {"viewer": viewer, "at": at, "nonce": nonce, **told}
    return Page(_ENVIRONMENT.get_template(template).render(given), nonce)


def page_headers(nonce: str) -> dict[str, str]:
    """The headers of every page."""
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
