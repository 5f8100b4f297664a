"""Sphinx's settings. `make docs` builds with warnings as errors."""

import json
from pathlib import Path
from typing import Any

from myst_parser.parsers.sphinx_ import MystParser

from hubbub import __version__

project = "hubbub"
author = "the hubbub authors"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.mathjax"]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown", ".ipynb": "notebook"}
exclude_patterns = ["_build", "**.ipynb_checkpoints"]

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


class _Notebooks(MystParser):
    """Notebooks as pages: their words, their code, and the outputs that are kept in them. Nothing is executed."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        super().parse("\n\n".join(map(_as_markdown, json.loads(inputstring)["cells"])), document)


def _as_markdown(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    shell = source.startswith("!")
    return "\n\n".join([_fenced("console" if shell else "python", source), *map(_output, cell["outputs"])])


def _output(shown: dict[str, Any]) -> str:
    data = shown.get("data", {})
    if "text/html" in data:
        return _fenced("{raw} html", "".join(data["text/html"]))
    return _fenced("text", "".join(shown.get("text") or data["text/plain"]))


def _fenced(kind: str, text: str) -> str:
    return f"``````{kind}\n{text.rstrip()}\n``````"


def setup(app: Any) -> None:
    app.add_source_parser(_Notebooks)
    app.connect("source-read", _theorems_once_there)
