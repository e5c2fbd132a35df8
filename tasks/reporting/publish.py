"""Write the page of a stage as HTML, Markdown and charts, and show it in the Prefect UI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks.rendering.blocks import Charts
from tasks.rendering.markdown import markdown
from tasks.stage.ui import show_chart, show_link, show_markdown

if TYPE_CHECKING:
    from pathlib import Path

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store
    from tasks.rendering.blocks import Page
    from tasks.stage.cached import StageContext


def publish(context: StageContext, page: Page) -> None:
    """Write `<kind>.html`, `<kind>.md` and an SVG file per chart into a stage's artifact, and show them in the UI."""
    from tasks.rendering.html import html

    folder, draft, name = context.store.local, context.draft.folder, context.ref.kind
    for chart in page.chart_files:
        (draft / chart.file).write_text(chart.standalone(), encoding="utf-8")
    (draft / f"{name}.md").write_text(markdown(page), encoding="utf-8")
    (draft / f"{name}.html").write_text(html(page), encoding="utf-8")
    path = f"{context.ref.path}/{name}.html"
    url = (folder.absolute() / path).as_uri() if folder else f"{context.store.url}/{path}"
    show_link(url, "The page with charts, in the store")
    show_markdown(markdown(page, pictures=False))
    for block in page.lead:
        if isinstance(block, Charts):
            for chart in block.drawn:
                show_chart(chart.name, chart.standalone(), chart.label)


def page_of(store: Store, ref: ArtifactRef) -> Path:
    """Return the path of the HTML page of an artifact, fetched from the store."""
    return store.fetch(ref) / f"{ref.kind}.html"
