"""Write the page of a stage as HTML, Markdown and charts, with its provenance, and show it in the Prefect UI."""

from __future__ import annotations

import json
import platform
import subprocess
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from bsl.storage.artifacts.manifest import installed_versions
from bsl.storage.errors import StorageError
from bsl.storage.record import NotInKey, Record
from bsl.tasks.rendering.blocks import Code, Facts, Part, Prose
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.stage.ui import show_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.rendering.blocks import Page
    from bsl.tasks.stage.cached import StageContext


HERE: Final = Path(__file__).resolve().parents[2]  # of a clone: its root, behind the link bsl/tasks
_SECONDS: Final = 5.0


class RunCommand(Record):
    """The command of a run, shown on its page; it does not affect the result."""

    command: Annotated[str, NotInKey] = ""
    """Command that repeats the run; empty if no single command does."""


def publish(
    context: StageContext, page: Page, repeat: RunCommand | None = None, seeds: Mapping[str, str] | None = None
) -> None:
    """Write `<kind>.html`, `<kind>.md` and an SVG file per chart into a stage's artifact, and show them in the UI.

    Args:
        context: The stage.
        page: The page; the section *Reproduce* is added.
        repeat: The command that repeats the run.
        seeds: Field → seed.
    """
    from bsl.tasks.rendering.html import html

    page = replace(page, parts=[*page.parts, reproduce_part(repeat, seeds)])
    folder, draft, name = context.store.local, context.draft.folder, context.ref.kind
    for chart in page.chart_files:
        (draft / chart.file).write_text(chart.standalone(), encoding="utf-8")
    (draft / f"{name}.md").write_text(markdown(page), encoding="utf-8")
    (draft / f"{name}.html").write_text(html(page), encoding="utf-8")
    path = f"{context.ref.path}/{name}.html"
    url = (folder.absolute() / path).as_uri() if folder else f"{context.store.url}/{path}"
    show_page(replace(page, lead=[*page.lead, Prose(f"The page with charts, in the store: `{url}`")]))


def page_of(store: Store, ref: ArtifactRef) -> Path:
    """Return the path of the HTML page of an artifact, fetched from the store."""
    return store.fetch(ref) / f"{ref.kind}.html"


def reproduce_part(repeat: RunCommand | None, seeds: Mapping[str, str] | None = None) -> Part:
    """Return how to reproduce the page: command, commit, versions, and the seed of each field."""
    command = [Code(repeat.command)] if repeat and repeat.command else []
    environment = {"commit": commit(), "system": platform.platform(terse=True), **installed_versions()}
    return Part("Reproduce", [*command, Facts(environment), *([Facts(seeds)] if seeds else [])], html_only=True)


def commit() -> str:
    """Return the commit of the clone or installed package, marked if files have changed, or why it is unknown."""
    try:
        return _of_clone() or _of_package() or "unknown: not a clone of the repository, nor installed from one"
    except (OSError, subprocess.SubprocessError):
        return _of_package() or "unknown: git failed"


def _of_clone() -> str:
    if not (HERE / ".git").exists():
        return ""
    head = _git("rev-parse", "HEAD")
    return f"{head} with changes" if _git("status", "--porcelain", "--untracked-files=no") else head


def _git(*words: str) -> str:
    command = ["git", "-C", str(HERE), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True).stdout.strip()


def _of_package() -> str:
    """Return the commit that pip recorded at installation (PEP 610); empty without one."""
    try:
        origin = json.loads(distribution("bsl-pipeline").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return ""
    return str(origin.get("vcs_info", {}).get("commit_id", ""))


def lineage(store: Store, refs: Iterable[ArtifactRef]) -> list[Manifest]:
    """Return the manifests of artifacts and of all their direct and indirect inputs, inputs first.

    A missing or unreadable input is skipped together with its own inputs.
    """
    manifests: dict[str, Manifest] = {}
    for ref in refs:
        _add(store, ref, manifests)
    return list(manifests.values())


def _add(store: Store, ref: ArtifactRef, manifests: dict[str, Manifest]) -> None:
    if ref.path in manifests:
        return
    try:
        manifest = store.manifest(ref)
    except StorageError:
        return
    for entry in manifest.provenance.inputs.values():
        _add(store, entry, manifests)
    manifests[ref.path] = manifest
