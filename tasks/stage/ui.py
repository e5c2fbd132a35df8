"""What a person sees of a stage in the Prefect UI: tables, prose, pictures, links and progress.

All but progress is on the stage's one page (`tasks.stage.ui_page`). The UI renders it as Markdown, so foreign text in
tables, descriptions and links is escaped here; what is Markdown already escapes its own.

Outside a stage (a notebook) there is no page to show it on, so each is logged and dropped.
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

from models.runtime.progress import Count, spelled
from tasks.rendering.escaping import code, plain
from tasks.rendering.markdown import markdown_table
from tasks.stage.progress import tell
from tasks.stage.ui_page import in_run, open_page, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.runtime.progress import OnProgress, Progress

logger = logging.getLogger(__name__)

Row = dict[str, Any]

_SECONDS_BETWEEN_UPDATES = 2.0  # each update is a request to the server; a person reads no faster


def show_table(key: str, rows: Sequence[Row], description: str) -> None:
    """A table under a heading; figures are rounded, lists are lines of their cell."""
    cells = [{name.replace("_", " "): _shown(value) for name, value in row.items()} for row in rows]
    _show(key, f"## {plain(description)}\n\n{markdown_table(cells)}")


def show_markdown(key: str, text: str, description: str) -> None:
    """Markdown; a heading of its own takes the place of the description."""
    _show(key, text if text.startswith("# ") else f"## {plain(description)}\n\n{text}")


def show_link(key: str, url: str, description: str) -> None:
    """An address, which a browser may not be able to open: a file of the machine that ran it."""
    _show(key, f"{plain(description)}: {code(url)}")


def show_chart(key: str, svg: str, description: str) -> None:
    """An SVG file, carried inside its own URL so that the browser needs no access to the store."""
    if (page := open_page()) is not None:
        url = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
        page.pictures.append((key, url, description))


def _show(key: str, section: str) -> None:
    page = open_page()
    if page is None:
        logger.debug("not in a stage, so %s is not shown", key)
    else:
        page.sections.append(section)


def progress_of(what: str, following: int | None = 0) -> OnProgress:
    """A callback `(done, total, detail)` that keeps listeners, a progress artifact and a log line current.

    Args:
        what: what advances, such as `translation en→de`; shown with the rate and the time left.
        following: counts of the same size that follow in the same stage; None where nobody knows.
    """
    count = Count(what, following)
    last = -math.inf
    page: UUID | None = None

    def advance(done: int, total: int, detail: str) -> None:
        nonlocal last, page
        now = time.monotonic()
        progress = count.told(done, total, detail, now)
        if now - last < _SECONDS_BETWEEN_UPDATES and done < total:
            return
        last = now
        tell("advances", progress)
        text = _told(progress)
        logger.info(text)
        if not in_run():
            return
        text = plain(text)
        share = 100.0 * done / max(total, 1)
        if page is None:
            made = shown("progress", partial(create_progress_artifact, progress=share, description=text))
            page = made if isinstance(made, UUID) else None
        else:
            update = partial(update_progress_artifact, artifact_id=page, progress=share, description=text)
            shown("progress", update)

    return advance


def _told(progress: Progress) -> str:
    left = "" if progress.left is None else f"{spelled(progress.left)} left"
    head = f"{progress.what}: {progress.done:,} of {progress.total:,}"
    return " · ".join(filter(None, [head, progress.pace, left, progress.detail]))


def _shown(value: Any) -> Any:  # noqa: ANN401 - a cell
    """A cell as `markdown_table` takes it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return " · ".join(map(str, value)) if isinstance(value, list) else "–" if value is None else value
