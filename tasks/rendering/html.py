"""Render a page as one HTML file that needs no other file.

Templates escape every string, except charts, which `bsl.tasks.rendering.svg` draws.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from bsl.storage.filesystem.control_characters import visible
from bsl.tasks.rendering.blocks import split_interval
from bsl.tasks.rendering.escaping import html_sentence
from bsl.tasks.rendering.svg import template

if TYPE_CHECKING:
    from bsl.tasks.rendering.blocks import Page


def html(page: Page) -> str:
    """Return the page as HTML; equal pages give equal text."""
    return _environment().get_template("page.html").render(page=page, style=Markup(template("style.css"))) + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(template),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_plain,
    )
    environment.filters |= {"drawn": Markup, "sentence": html_sentence, "split_interval": split_interval}
    environment.globals["show"] = lambda block: Markup(_block(block.template).render(block=block))
    return environment


@cache
def _block(text: str) -> Template:
    return _environment().from_string(text)


def _plain(value: object) -> object:
    """Show control characters as escapes."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible(value)
