"""A real browser: Debian's chromium, driven by playwright, started once; skipped with a reason where there is none.

Every page that a test opens is watched: what the policy of the content refused, what a script said was wrong, and
every request that leaves the service is written down, and must be nothing when the test ends.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from browser_site import Site

# Chromium's own editing writes a style where text with a colour is typed over: refused, and of no effect.
_REPORTS = """
document.addEventListener("securitypolicyviolation", e => {
  if (e.effectiveDirective === "style-src-attr" && e.target.closest?.(".cm-content")) return;
  console.error(`policy: ${e.violatedDirective} refused ${e.blockedURI} at ${location.pathname}, ${e.sourceFile}:` +
    `${e.lineNumber}`)})
"""
_REPORTED = ("the server responded with a status of", "violates the following Content Security Policy directive")
"""What the console says as well: a refusal is a page with a status of its own, and the policy's reports come above."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All that is here is a test of the browser: `make browser` runs it, `make test` does not."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.browser)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say it where nothing was looked at: a run whose tests were all skipped is green, and shows nothing."""
    counts = {kind: len(terminalreporter.stats.get(kind, ())) for kind in ("passed", "failed", "error", "skipped")}
    if counts["skipped"] and not counts["passed"] + counts["failed"] + counts["error"]:
        text = f"NO PAGE WAS LOOKED AT: all {counts['skipped']} tests of the browser were skipped."
        terminalreporter.write_line(f"{text} With HUBBUB_BROWSER=required they fail.", red=True, bold=True)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None and os.environ.get("HUBBUB_BROWSER") == "required":
        pytest.fail("no chromium, and HUBBUB_BROWSER=required: on Debian, `apt-get install chromium`")
    if program is None:
        pytest.skip("no chromium: on Debian, `apt-get install chromium`")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """A service on loopback with pages of every state."""
    with Site() as running:
        yield running


@dataclass
class Watched:
    """What a page did that it should not."""

    home: str
    complaints: list[str] = field(default_factory=list)

    def watch(self, context: Any) -> None:
        """Write down what the pages of a context do."""
        context.add_init_script(_REPORTS)
        context.on("console", lambda said: self._console(said.type, said.text))
        context.on("weberror", lambda error: self.complaints.append(f"error: {error.error}"))
        context.on("request", lambda request: self._request(request.url))

    def _console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(known in text for known in _REPORTED):
            self.complaints.append(f"console: {text}")

    def _request(self, url: str) -> None:
        if urlsplit(url).scheme != "data" and not url.startswith(self.home + "/"):
            self.complaints.append(f"request outside: {url}")


def _context(
    chromium: Any,
    home: str,
    *,
    scheme: str = "light",
    width: int = 1280,
    height: int = 900,
    scale: int = 1,
    script: bool = True,
) -> Any:
    context = chromium.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        device_scale_factor=scale,
        java_script_enabled=script,
        reduced_motion="reduce",
        base_url=home,
        locale="en-GB",
    )
    context.set_default_timeout(10_000)
    return context


@pytest.fixture(scope="session")
def kept(chromium: Any, site: Site) -> Iterator[tuple[Watched, Any]]:
    """One page of each look for many tests that only look: a new one takes as long as what is looked at."""
    watched, pages = Watched(site.url), {}

    def page(**look: Any) -> Any:
        name = repr(sorted(look.items()))
        if name not in pages:
            context = _context(chromium, site.url, **look)
            watched.watch(context)
            pages[name] = context.new_page()
        return pages[name]

    yield watched, page
    for each in pages.values():
        each.context.close()


@pytest.fixture
def seen(kept: tuple[Watched, Any]) -> Iterator[Any]:
    """Gives a page of a look that other tests have used; what it did meanwhile is looked at in the end."""
    watched, page = kept
    watched.complaints.clear()
    yield page
    assert watched.complaints == []


@pytest.fixture
def opened(chromium: Any, site: Site) -> Iterator[Any]:
    """Opens pages with a size and a scheme; what they did is looked at in the end."""
    watched, contexts = Watched(site.url), []

    def open_page(
        *,
        scheme: str = "light",
        width: int = 1280,
        height: int = 900,
        scale: int = 1,
        script: bool = True,
        home: str = "",
    ) -> Any:
        look: dict[str, Any] = {"scheme": scheme, "width": width, "height": height, "scale": scale, "script": script}
        context = _context(chromium, home or site.url, **look)
        watched.home = home or site.url
        watched.watch(context)
        contexts.append(context)
        return context.new_page()

    yield open_page
    for context in contexts:
        context.close()
    assert watched.complaints == []
