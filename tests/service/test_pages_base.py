"""What all pages share: escaping, headers, hashed files, a style sheet that can be read by everybody."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from hubbub.service.pages import Viewer, page_headers, render, static_file, static_url
from hubbub.service.pages.static import _FILES

ADA = Viewer("ada", frozenset({"analyst"}), "c5r7", "1/2", "2")
TOLD = {"title": "No", "kind": "refused", "text": "x", "back": "/", "way": "Back"}


def test_what_is_told_is_text() -> None:
    hostile = "</script><script>alert(1)</script>\"' onload=x ‮"
    page = render("refused.html", Viewer(hostile, frozenset({"analyst"}), hostile), **{**TOLD, "text": hostile})
    assert "<script" not in page.text
    assert "&lt;script&gt;" in page.text


def test_what_a_template_was_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("refused.html", ADA, title="No")


def test_the_policy_of_the_content_allows_nothing_of_the_page_itself() -> None:
    page = render("refused.html", ADA, **TOLD)
    headers = page_headers(page.nonce)
    policy = headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self' 'nonce-")
    assert re.fullmatch("[0-9a-f]{32}", page.nonce)
    assert page.nonce != render("refused.html", ADA, **TOLD).nonce
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_static_files_are_named_by_their_hash() -> None:
    asked = static_url("style.css").removeprefix("/static/")
    file = static_file(asked)
    assert file is not None
    assert hashlib.sha256(file.content).hexdigest()[:12] in asked
    assert static_file("style.css") is None
    assert static_file("../page.py") is None


def test_nothing_of_the_pages_names_an_address_outside() -> None:
    folder = files("hubbub.service.pages")
    texts = {f.name: f.read_text() for f in folder.joinpath("templates").iterdir()}
    texts |= {name: f.content.decode() for name, f in _FILES.items() if name.endswith(("css", "svg"))}
    for name, text in texts.items():
        addresses = set(re.findall(r"https?://[^\s\"')]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not addresses, name
        assert not re.search(r"\sstyle=|\son[a-z]+=|<script(?![^>]* src=)|\|\s*safe", text), name


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    """The ratio of WCAG 2.2."""
    dark, light = sorted((_luminance(a), _luminance(b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_has_a_contrast_of_seven_and_marks_of_three(scheme: int) -> None:
    blocks = re.findall(r":root \{(.*?)\n\s*\}", _FILES["style.css"].content.decode(), re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[scheme]))
    grounds = ["ground", "surface", "sunk", "accent-soft", "good-soft", "warn-soft", "bad-soft"]
    for text in ("text", "quiet", "accent", "good", "warn", "bad"):
        for ground in grounds:
            assert _contrast(colours[text], colours[ground]) >= 7, (text, ground)
    assert _contrast(colours["on-accent"], colours["accent"]) >= 7
    for nth in ("", "-2", "-3", "-4", "-5", "-6"):
        assert _contrast(colours[f"ink{nth}"], colours[f"bar{nth}"]) >= 3
        assert _contrast(colours[f"ink{nth}"], colours["surface"]) >= 7
    assert _contrast(colours["edge"], colours["surface"]) >= 3


def test_the_editor_is_what_its_lock_file_built() -> None:
    """`make vendor` writes the hashes; where npm is there, `sh editor/build.sh check` builds it and compares."""
    folder = Path(__file__).parents[2] / "editor"
    at = {
        "package-lock.json": folder / "package-lock.json",
        "editor.js": folder / "editor.js",
        "../src/hubbub/service/pages/static/editor.js": folder / "../src/hubbub/service/pages/static/editor.js",
    }
    told = dict(line.split()[::-1] for line in (folder / "built.txt").read_text().splitlines())
    assert told == {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in at.items()}
    lock = json.loads(at["package-lock.json"].read_text())
    assert all(each.get("integrity") for name, each in lock["packages"].items() if name)
    licences = (folder / "../src/hubbub/service/pages/static/editor-licences.txt").read_text()
    there = {name.removeprefix("node_modules/"): each["version"] for name, each in lock["packages"].items() if name}
    for name, version in there.items():
        assert "esbuild" in name or f"== {name} {version}\n" in licences
