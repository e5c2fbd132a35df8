"""Show a stage in the Prefect UI: its progress, and a page of its artifact. Sorted keys of pages follow the pipeline.

Keys are `tiny-1-corpus`, `tiny-2-views`, … `tiny-9-report`: recipe, position in the pipeline, kind. If a run can have
several artifacts of a kind, stage, system and the beginning of the artifact's key follow, so that pages stay unique.
Content shown during a stage is collected and published once, between a title and links to its inputs. Pages are made
together with artifacts, so cached artifacts get no new page. Outside a stage (a notebook) content is dropped.
"""

from __future__ import annotations

import base64
import logging
import math
import re
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from httpx import HTTPError, HTTPStatusError
from prefect.artifacts import (
    create_image_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    update_progress_artifact,
)
from prefect.context import FlowRunContext, TaskRunContext
from prefect.runtime import flow_run

from bsl.models.runtime.progress import Count
from bsl.storage.artifacts.refs import LAST_PLACE, kind_of
from bsl.storage.errors import StorageError
from bsl.tasks.rendering.blocks import Charts
from bsl.tasks.rendering.escaping import code, plain
from bsl.tasks.rendering.markdown import markdown, rendered
from bsl.tasks.rendering.numbers import sized
from bsl.tasks.stage.progress import notify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bsl.models.runtime.progress import OnProgress
    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.rendering.blocks import Block, Page
    from bsl.tasks.rendering.svg import Chart

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ENDS: Final = {  # the kind that each flow makes exactly once, at its end
    "bsl-pipeline": "report", "bsl-adapt": "report", "bsl-evaluate": "evaluation", "bsl-compare": "sweep",
    "bsl-sweep": "sweep", "bsl-reproduce": "reproduction",
}  # fmt: skip
_ONCE: Final = ("ingest", "nli", "make_views")  # stages that a run of one recipe calls once
_SAME_AS_KIND: Final = (
    *_ONCE, "read_passages", "pair", "train", "embed", "fit_transform", "fit_on_sets", "score", "compare",
)  # fmt: skip
_SECONDS_BETWEEN_UPDATES: Final = 2.0  # each update is a request to the server
_LONGEST: Final = 60  # characters of a part of a key
_PAUSE_MINUTES: Final = 30  # each failed request costs up to two minutes, so pause after the first
_DIGEST: Final = re.compile(r"([0-9a-f]{12})[0-9a-f]{28,}")  # pages show the first 12 digits
_paused_until = 0.0
_NAMES: Final = ("recipe_name", "name", "row")  # flow parameters that name the recipe or row


@dataclass
class StagePage:
    """What a stage has shown so far: its blocks, or a complete page, which is shown instead of them."""

    blocks: list[Block] = field(default_factory=list)
    page: Page | None = None

    def publish(self, store: Store, ref: ArtifactRef, what: str) -> None:
        """Publish the page in the Prefect UI, with the first line of `what`; outside a run, do nothing."""
        if not in_run() or "/" in ref.kind:  # pages of shards would hide the others
            return
        manifest = store.manifest(ref)
        key = key_of(manifest)
        text = f"{self.text(title_of(manifest, what))}\n\n{lineage_of(store, manifest)}"
        size = plain(f"{_size(manifest)} · {manifest.ref}")  # the list of artifacts cuts the end
        shown(f"page of {ref}", lambda: create_markdown_artifact(markdown=text, key=key, description=size))
        for chart in self.charts:
            url = "data:image/svg+xml;base64," + base64.b64encode(chart.standalone().encode()).decode()
            picture, caption = f"{key}-{_slug(chart.name)}", plain(chart.label)
            shown(f"picture of {ref}", partial(create_image_artifact, image_url=url, key=picture, description=caption))

    def text(self, title: str) -> str:
        """Return the complete page, or a title above the blocks, as Markdown."""
        if self.page is not None:
            return markdown(self.page, pictures=False).rstrip()
        return "\n\n".join([title, *rendered(self.blocks, pictures=False)])

    @property
    def charts(self) -> list[Chart]:
        """The charts of the blocks, or those above the sections of the page."""
        blocks = self.blocks if self.page is None else self.page.lead
        return [chart for block in blocks if isinstance(block, Charts) for chart in block.drawn]


def shown(what: str, act: Callable[[], T]) -> T | None:
    """Show something in the UI and return what `act` returns; if the server fails, log a warning and return None.

    After a failed connection or a server error, the UI is skipped for a while; after a refused request it is not.
    """
    global _paused_until
    if time.monotonic() < _paused_until:
        return None
    try:
        return act()
    except HTTPError as error:
        line = str(error).partition("\n")[0]
        if isinstance(error, HTTPStatusError) and error.response.status_code < 500:
            logger.warning("%s: not in Prefect's UI, because its server refused it; the run continues (%s)", what, line)
            return None
        _paused_until = time.monotonic() + 60 * _PAUSE_MINUTES
        logger.warning(
            "%s: not in Prefect's UI because its server failed; the run continues, and nothing is shown for the next "
            "%d minutes (%s)",
            what,
            _PAUSE_MINUTES,
            line,
        )
        return None


_open: ContextVar[StagePage | None] = ContextVar("_open", default=None)


@contextmanager
def collected() -> Iterator[StagePage]:
    """Collect content shown in this block on one page."""
    page = StagePage()
    token = _open.set(page)
    try:
        yield page
    finally:
        _open.reset(token)


def show(*blocks: Block) -> None:
    """Show blocks on the stage's page; charts become pictures, because a browser may not reach the store."""
    if (open_page := _open.get()) is not None:
        open_page.blocks += blocks


def show_page(page: Page) -> None:
    """Show a complete page as the page of the stage; of its charts, those above the sections."""
    if (open_page := _open.get()) is not None:
        open_page.page = page


def in_run() -> bool:
    """Return whether Prefect runs the current code."""
    return FlowRunContext.get() is not None or TaskRunContext.get() is not None


def key_of(manifest: Manifest) -> str:
    """Return the key of an artifact's page: recipe, position, kind, and more if a run may have several of a kind."""
    kind, flow = manifest.kind.partition("/")[0], str(flow_run.flow_name)
    alone = manifest.kind == _ENDS.get(flow) or (flow == "bsl-pipeline" and manifest.provenance.stage in _ONCE)
    parts = [
        _recipe(),
        str(kind_of(kind).place or ""),
        _slug(kind),
        _slug(_method(manifest)),
        _slug(_system(manifest)),
        "" if alone else manifest.key[:6],
    ]
    return "-".join(filter(None, parts))


def title_of(manifest: Manifest, what: str) -> str:
    """Return a heading such as `# views · tiny`, and the first line of the stage's description."""
    method, system = _method(manifest), _system(manifest)
    subject = f"{manifest.kind.replace('/', ' ')}{f', {method}' if method else ''}{f' of {system}' if system else ''}"
    heading = " · ".join(filter(None, [subject, _recipe()]))
    first_line = what.strip().partition("\n")[0]
    return f"# {plain(heading)}\n\n{plain(first_line)}"


def lineage_of(store: Store, manifest: Manifest) -> str:
    """Return the artifact and its size, links to its inputs, and a link to the run's last page."""
    lines = [f"`{manifest.ref}` · {plain(_size(manifest))}"]
    inputs = {entry.key: entry for entry in manifest.provenance.inputs.values()}
    links = [_link(store, entry, manifest.provenance.run) for entry in inputs.values()]
    # A pretrained encoder is no artifact: its name distinguishes the pages of embeddings.
    values = [value for value in manifest.provenance.config.values() if isinstance(value, dict)]
    models = [code(_DIGEST.sub(r"\1", str(value["identity"]))) for value in values if "identity" in value]
    if links or models:
        lines.append(f"Made from {' · '.join([*links, *models])}")
    end = _ENDS.get(str(flow_run.flow_name))
    if end and 0 < kind_of(manifest.kind).place < LAST_PLACE:
        last = f"{_recipe()}-{LAST_PLACE}-{end}"
        lines.append(f"Leads to [{last}](/artifacts/key/{last})")
    return "\n\n".join(lines)


def _size(manifest: Manifest) -> str:
    tables = [f"{table.rows:,} rows of {name.replace('_', ' ')}" for name, table in manifest.tables.items()]
    return " · ".join([*tables, f"{sized(manifest.size)} in {manifest.duration_s:.1f} s"])


def _link(store: Store, ref: ArtifactRef, run: str) -> str:
    """Return a link to an input's page if this run made it; pages of other runs may have another name or not exist."""
    try:
        manifest = store.manifest(ref)
    except StorageError:
        return f"`{ref}`"
    if not run or manifest.provenance.run != run or "/" in ref.kind:
        return f"`{ref}`"
    key = key_of(manifest)
    return f"[{key}](/artifacts/key/{key}) `{ref}`"


def _method(manifest: Manifest) -> str:
    """Return the stage's name in words, if it adds information to the kind."""
    stage = manifest.provenance.stage
    known = stage in _SAME_AS_KIND or kind_of(manifest.kind).place == LAST_PLACE
    return "" if known or stage == manifest.kind else stage.replace("_", " ")


def _system(manifest: Manifest) -> str:
    """Return the system of scores, predictions or a comparison; empty for other kinds."""
    config = manifest.provenance.config
    if isinstance(model := config.get("model"), str) and manifest.kind in ("scores", "predictions"):
        return model
    if isinstance(names := config.get("names"), list) and manifest.kind == "comparison":
        return str(names[-1])
    return ""


def _recipe() -> str:
    """Return the recipe of this run, else its flow, in characters allowed in keys."""
    parameters = flow_run.parameters or {}
    named = next((str(parameters[name]) for name in _NAMES if parameters.get(name)), None)
    return _slug(named or str(flow_run.flow_name or "").removeprefix("bsl-"))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST].strip("-")


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
