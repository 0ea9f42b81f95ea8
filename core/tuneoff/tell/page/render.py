"""From the page's content to HTML: everything that comes from outside is escaped, and nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tuneoff.tell.page.view import Page
from tuneoff.tell.page.words import visible
from tuneoff.tell.plots import theme

STYLE, SCRIPT = "report.css", "report.js"


def render(page: Page) -> str:
    """Return the HTML of a page."""
    environment = Environment(
        loader=PackageLoader("tuneoff.tell.page"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = resource(SCRIPT)
    return environment.get_template("report.html").render(
        page=page,
        style=Markup(style()),  # our own, so nothing to escape
        script=Markup(script),  # our own, so nothing to escape
        script_hash=content_hash(script),
    )


def style() -> str:
    """Return the page's style sheet, with the colours that the plots are drawn in."""
    light, dark = theme.css("light"), theme.css("dark")
    colours = (
        f":root{{{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n"
    )
    return colours + resource(STYLE)


def resource(name: str) -> str:
    """Return a file of the templates' folder."""
    return (files("tuneoff.tell.page") / "templates" / name).read_text(encoding="utf-8")


def content_hash(script: str) -> str:
    """Return what a Content-Security-Policy says of a script: `sha256-...`."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _shown(value: Any) -> Any:
    """Make every text visible before it is escaped; what is markup already is our own."""
    if isinstance(value, Markup):
        return value
    return visible(str(value))
