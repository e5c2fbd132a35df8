"""Read the template and the style sheet of pages."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def template(name: str) -> str:
    """Return the text of a file of templates/."""
    return files("tasks.rendering").joinpath("templates", name).read_text(encoding="utf-8")
