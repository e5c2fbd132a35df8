"""Lists of pages, as Sphinx reads them from Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def contents(pages: Iterable[str], caption: str = "") -> str:
    """A hidden list of pages: it puts them into the navigation.

    Args:
        pages: paths without suffix, beside the page that holds the list.
        caption: heading in the navigation.
    """
    options = (":hidden:", *((f":caption: {caption}",) if caption else ()))
    return "\n".join(("", ":::{toctree}", *options, "", *pages, ":::", ""))
