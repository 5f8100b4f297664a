"""Sphinx's settings. `make docs` builds with warnings as errors."""

from pathlib import Path
from typing import Any

from hubbub import __version__

project = "hubbub"
author = "the hubbub authors"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.mathjax"]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"hubbub {version}"
_code = {"code-font-size": "80%"}
html_theme_options = {"light_css_variables": _code, "dark_css_variables": _code}
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False


def _theorems_once_there(app: Any, page: str, source: list[str]) -> None:
    """The list of theorems is written with the rooms they belong to; until it stands, nothing links to it."""
    if page == "index" and not (Path(app.srcdir) / "theorems.md").exists():
        source[0] = source[0].replace("\ntheorems\n", "\n")


def setup(app: Any) -> None:
    app.connect("source-read", _theorems_once_there)
