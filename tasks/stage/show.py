"""What a person sees of a stage in the Prefect UI: tables, prose, pictures, links and progress.

The UI renders cells and descriptions as Markdown, so foreign text in them is escaped here; pages escape their own.

Outside a run (a stage called from a test or a notebook) there is no page to show it on, so each is logged and dropped.
"""

from __future__ import annotations

import base64
import logging
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

from prefect.artifacts import (
    create_image_artifact,
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.context import FlowRunContext, TaskRunContext

from models.report.escaping import plain
from tasks.stage.watch import watchers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.progress import OnProgress

logger = logging.getLogger(__name__)

Row = dict[str, Any]

_SECONDS_BETWEEN_UPDATES = 2.0  # each update is a request to the server; a person reads no faster


def show_table(key: str, rows: Sequence[Row], description: str) -> None:
    """A table artifact. `key` is `[a-z0-9-]+`; runs of the same key become versions of one page."""
    if _has_page(key):
        cells = [{name: _shown(value) for name, value in row.items()} for row in rows]
        create_table_artifact(table=cells, key=key, description=plain(description))


def show_markdown(key: str, text: str, description: str) -> None:
    """A Markdown artifact."""
    if _has_page(key):
        create_markdown_artifact(markdown=text, key=key, description=plain(description))


def show_link(key: str, url: str, text: str, description: str) -> None:
    """A link artifact."""
    if _has_page(key):
        link = quote(url, safe=":/?#@!$&'*+,;=%~")
        create_link_artifact(link=link, link_text=plain(text), key=key, description=plain(description))


def show_image(key: str, png: bytes, description: str) -> None:
    """A picture, carried inside its own URL so that the browser needs no access to the store."""
    if _has_page(key):
        url = "data:image/png;base64," + base64.b64encode(png).decode()
        create_image_artifact(image_url=url, key=key, description=plain(description))


def progress_of(what: str) -> OnProgress:
    """A callback `(done, total, detail)` that keeps a progress artifact and a log line current.

    Args:
        what: what advances, such as `translation en→de`; shown with the rate and the time left.
    """
    started = time.monotonic()
    last = -_SECONDS_BETWEEN_UPDATES
    page: UUID | None = None

    def advance(done: int, total: int, detail: str) -> None:
        nonlocal last, page
        elapsed = time.monotonic() - started
        if elapsed - last < _SECONDS_BETWEEN_UPDATES and done < total:
            return
        last = elapsed
        for watcher in watchers():
            watcher.advances(what, done, total, detail)
        text = f"{what}: {done:,} of {total:,}{_pace(done, total, elapsed)}{' · ' + detail if detail else ''}"
        logger.info(text)
        if not _in_run():
            return
        text = plain(text)
        share = 100.0 * done / max(total, 1)
        if page is None:
            made = create_progress_artifact(progress=share, description=text)
            page = made if isinstance(made, UUID) else None
        else:
            update_progress_artifact(artifact_id=page, progress=share, description=text)

    return advance


def _shown(value: Any) -> Any:  # noqa: ANN401 - a cell
    """A cell; also in a list of the cell's own."""
    if isinstance(value, str):
        return plain(value)
    return [_shown(part) for part in value] if isinstance(value, list) else value


def _pace(done: int, total: int, elapsed: float) -> str:
    if done == 0 or elapsed <= 0:
        return ""
    rate = done / elapsed
    return f" · {rate:,.1f}/s · {(total - done) / rate:,.0f} s left"


def _in_run() -> bool:
    return FlowRunContext.get() is not None or TaskRunContext.get() is not None


def _has_page(key: str) -> bool:
    if not _in_run():
        logger.debug("not in a run, so %s is not shown", key)
    return _in_run()
