"""Show a stage's tables, text, charts, links and progress in the Prefect UI.

All except progress go to the stage's single page (`bsl.tasks.stage.ui_page`). The UI renders Markdown, so foreign text
in tables, descriptions and links is escaped here; text passed as Markdown must already be escaped.

Outside a stage (a notebook) there is no page, so they are dropped.
"""

from __future__ import annotations

import base64
import logging
import math
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact

from bsl.models.runtime.progress import Count
from bsl.tasks.rendering.escaping import code, plain
from bsl.tasks.rendering.markdown import markdown_table
from bsl.tasks.stage.progress import notify
from bsl.tasks.stage.ui_page import in_run, open_page, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bsl.models.runtime.progress import OnProgress

logger = logging.getLogger(__name__)

Row = dict[str, Any]

_SECONDS_BETWEEN_UPDATES = 2.0  # each update is a request to the server


def show_table(rows: Sequence[Row], description: str) -> None:
    """Show a table under a heading; figures are rounded, items of lists joined by " · "."""
    cells = [{name.replace("_", " "): _cell(value) for name, value in row.items()} for row in rows]
    show_markdown(f"## {plain(description)}\n\n{markdown_table(cells)}")


def show_link(url: str, description: str) -> None:
    """Show a URL as text; a browser may not be able to open it, for example a local file of the worker."""
    show_markdown(f"{plain(description)}: {code(url)}")


def show_markdown(text: str) -> None:
    """Show Markdown, as a section of the stage's page."""
    if (page := open_page()) is not None:
        page.sections.append(text)


def show_chart(key: str, svg: str, description: str) -> None:
    """Show an SVG image, embedded in its own URL so that the browser needs no access to the store."""
    if (page := open_page()) is not None:
        url = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
        page.pictures.append((key, url, description))


def progress_of(what: str, following: int | None = 0) -> OnProgress:
    """Return a callback `(done, total, detail)` that updates listeners, a progress artifact and the log.

    Args:
        what: name of the work, such as `translation en→de`; shown with the rate and the remaining time.
        following: number of later counts of equal size in the same stage; None if unknown.
    """
    count = Count(what, following)
    last = -math.inf
    page: UUID | None = None

    def advance(done: int, total: int, detail: str) -> None:
        nonlocal last, page
        now = time.monotonic()
        progress = count.update(done, total, detail, now)
        if now - last < _SECONDS_BETWEEN_UPDATES and done < total:
            return
        last = now
        notify("advances", progress)
        text = f"{what}: {done:,} of {total:,} · {progress.status()}".removesuffix(" · ")
        logger.info(text)
        if not in_run():
            return
        text = plain(text)
        share = 100.0 * done / max(total, 1)
        if page is None:
            artifact = shown("progress", partial(create_progress_artifact, progress=share, description=text))
            page = artifact if isinstance(artifact, UUID) else None
        else:
            update = partial(update_progress_artifact, artifact_id=page, progress=share, description=text)
            shown("progress", update)

    return advance


def _cell(value: Any) -> Any:  # noqa: ANN401 - a cell
    """Convert a cell for `markdown_table`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return " · ".join(map(str, value)) if isinstance(value, list) else "–" if value is None else value
