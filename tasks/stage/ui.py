"""Show a stage's blocks and progress in the Prefect UI.

All except progress go to the stage's single page (`bsl.tasks.stage.ui_page`). Outside a stage (a notebook) there is no
page, so they are dropped.
"""

from __future__ import annotations

import logging
import math
import time
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact

from bsl.models.runtime.progress import Count
from bsl.tasks.rendering.escaping import plain
from bsl.tasks.stage.progress import notify
from bsl.tasks.stage.ui_page import in_run, open_page, shown

if TYPE_CHECKING:
    from bsl.models.runtime.progress import OnProgress
    from bsl.tasks.rendering.blocks import Block, Page

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_UPDATES = 2.0  # each update is a request to the server


def show(*blocks: Block) -> None:
    """Show blocks on the stage's page; charts become pictures, because a browser may not reach the store."""
    if (page := open_page()) is not None:
        page.blocks += blocks


def show_page(page: Page) -> None:
    """Show a complete page as the page of the stage; of its charts, those above the sections."""
    if (shown_page := open_page()) is not None:
        shown_page.page = page


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
