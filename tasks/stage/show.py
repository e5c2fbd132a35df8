"""What a person sees of a stage in the Prefect UI: tables, prose, pictures, links and progress.

All but progress stands on the stage's one page (`tasks.stage.page`). The UI renders it as Markdown, so foreign text in
tables, descriptions and links is escaped here; what is Markdown already escapes its own.

Outside a stage (a notebook) there is no page to show it on, so each is logged and dropped.
"""

from __future__ import annotations

import base64
import logging
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact

from models.report.escaping import code, plain
from models.report.page import markdown_table
from tasks.stage.page import in_run, open_page
from tasks.stage.watch import watchers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.progress import OnProgress

logger = logging.getLogger(__name__)

Row = dict[str, Any]

_SECONDS_BETWEEN_UPDATES = 2.0  # each update is a request to the server; a person reads no faster


def show_table(key: str, rows: Sequence[Row], description: str) -> None:
    """A table under a heading; figures are rounded, lists are lines of their cell."""
    cells = [{name: _shown(value) for name, value in row.items()} for row in rows]
    _show(key, f"## {plain(description)}\n\n{markdown_table(cells)}")


def show_markdown(key: str, text: str, description: str) -> None:
    """Markdown; a heading of its own takes the place of the description."""
    _show(key, text if text.startswith("# ") else f"## {plain(description)}\n\n{text}")


def show_link(key: str, url: str, description: str) -> None:
    """An address, which a browser may not be able to open: a file of the machine that ran it."""
    _show(key, f"{plain(description)}: {code(url)}")


def show_image(key: str, png: bytes, description: str) -> None:
    """A picture, carried inside its own URL so that the browser needs no access to the store."""
    if (page := open_page()) is not None:
        page.pictures.append((key, "data:image/png;base64," + base64.b64encode(png).decode(), description))


def _show(key: str, section: str) -> None:
    page = open_page()
    if page is None:
        logger.debug("not in a stage, so %s is not shown", key)
    else:
        page.sections.append(section)


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
        if not in_run():
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
    """A cell as `markdown_table` takes it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return " · ".join(map(str, value)) if isinstance(value, list) else "–" if value is None else value


def _pace(done: int, total: int, elapsed: float) -> str:
    if done == 0 or elapsed <= 0:
        return ""
    rate = done / elapsed
    return f" · {rate:,.1f}/s · {(total - done) / rate:,.0f} s left"
