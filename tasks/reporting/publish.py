"""Write the page of a stage as HTML, Markdown and charts, and show it in the Prefect UI."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import TYPE_CHECKING

from bsl.storage.artifacts.manifest import installed_versions
from bsl.tasks.rendering.blocks import Code, Facts, Part, Prose
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.reporting.provenance import RunCommand, commit
from bsl.tasks.stage.ui import show_page

if TYPE_CHECKING:
    from pathlib import Path

    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.rendering.blocks import Block, Page
    from bsl.tasks.stage.cached import StageContext


def publish(context: StageContext, page: Page, repeat: RunCommand | None = None) -> None:
    """Write `<kind>.html`, `<kind>.md` and an SVG file per chart into a stage's artifact, and show them in the UI.

    The section *Reproduce* is added: the command that repeats the run, commit and versions.
    """
    from bsl.tasks.rendering.html import html

    blocks: list[Block] = [Code(repeat.command)] if repeat and repeat.command else []
    blocks.append(Facts({"commit": commit(), "system": platform.platform(terse=True), **installed_versions()}))
    page = replace(page, parts=[*page.parts, Part("Reproduce", blocks, html_only=True)])
    folder, draft, name = context.store.local, context.draft.folder, context.ref.kind
    for chart in page.chart_files:
        (draft / chart.file).write_text(chart.standalone(), encoding="utf-8")
    (draft / f"{name}.md").write_text(markdown(page), encoding="utf-8")
    (draft / f"{name}.html").write_text(html(page), encoding="utf-8")
    if folder:
        where = (
            f"The page with charts, in the store: `{(folder / context.ref.path / f'{name}.html').absolute().as_uri()}`"
        )
    else:  # on an object store its address is known only after the upload
        where = f"The page with charts is in {context.ref}: `bsl artifacts export {context.ref} FOLDER`"
    show_page(replace(page, lead=[*page.lead, Prose(where)]))


def page_of(store: Store, ref: ArtifactRef) -> Path:
    """Return the path of the HTML page of an artifact, fetched from the store."""
    return store.fetch(ref) / f"{ref.kind}.html"
