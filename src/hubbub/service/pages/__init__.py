"""The pages: what a person sees of the service, rendered here, working as plain forms.

    page.py      templates, navigation and headers: `render(name, viewer, **told)`
    words.py     how amounts, numbers and times are written
    static.py    the style sheet and the scripts, under names that hold their hash

A page is a function of plain data that the clerk told, and of nothing else. Everything told is text in it: templates
escape what they are given, and a template that names something it was not given is an error. There are no scripts and
no styles in the page itself, and no address outside this service.
"""

from hubbub.service.pages.page import NAVIGATION, Page, Place, Viewer, page_headers, render
from hubbub.service.pages.static import static_file, static_url

__all__ = ["NAVIGATION", "Page", "Place", "Viewer", "page_headers", "render", "static_file", "static_url"]
