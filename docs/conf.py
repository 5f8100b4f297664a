"""Sphinx's settings. `make docs` builds with warnings as errors."""

from hubbub import __version__

project = "hubbub"
author = "the hubbub authors"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.mathjax"]
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
# A section lists its own pages first, then any other page of its folder: some rooms have none yet.
suppress_warnings = ["toc.empty_glob"]

html_theme = "furo"
html_title = f"hubbub {version}"
html_show_sourcelink = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
