"""What the Prefect UI shows of an artifact: one page a stage, whose keys read as the pipeline in order.

`tiny-1-corpus`, `tiny-2-views`, … `tiny-9-report`: recipe, place on the data's way, kind. What a stage shows while it
works (`tasks.stage.show`) is collected and published once, below a head that says what it is and leads to what it was
made of.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from prefect.artifacts import create_image_artifact, create_markdown_artifact
from prefect.context import FlowRunContext, TaskRunContext
from prefect.runtime import flow_run

from models.report.escaping import plain
from storage.errors import StorageError
from storage.refs import ArtifactRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.manifest import Manifest
    from storage.store import Store

PLACES: Final = {
    "corpus": 1, "nli": 1, "passages": 1, "views": 2, "pairs": 3, "checkpoint": 4, "embeddings": 5, "transform": 6,
    "scores": 7, "predictions": 7, "comparison": 8, "report": 9, "evaluation": 9,
}  # fmt: skip
_LONGEST: Final = 60  # letters of a part of a key
_NAMES: Final = ("recipe_name", "name", "row")  # parameters by which flows are told what to run


@dataclass
class StagePage:
    """What a stage has shown so far.

    Attributes:
        sections: Markdown.
        pictures: name, URL of the picture's own bytes, description.
    """

    sections: list[str] = field(default_factory=list)
    pictures: list[tuple[str, str, str]] = field(default_factory=list)

    def publish(self, store: Store, ref: ArtifactRef, what: str) -> None:
        """Show it in the UI, if a run is there to show it in.

        Args:
            store: has the artifact.
            ref: what was made.
            what: what the stage does, in a sentence.
        """
        if not in_run() or "/" in ref.kind:  # a shard, whose pages would hide the others
            return
        manifest = store.manifest(ref)
        key = key_of(manifest)
        text = "\n\n".join([head(store, manifest, what), *self.sections])
        create_markdown_artifact(markdown=text, key=key, description=plain(f"{manifest.ref}: {_size(manifest)}"))
        for name, url, description in self.pictures:
            create_image_artifact(image_url=url, key=f"{key}-{_slug(name)}", description=plain(description))


_open: ContextVar[StagePage | None] = ContextVar("_open", default=None)


@contextmanager
def collected() -> Iterator[StagePage]:
    """In this block, what is shown belongs to one page."""
    page = StagePage()
    token = _open.set(page)
    try:
        yield page
    finally:
        _open.reset(token)


def open_page() -> StagePage | None:
    """The page that is being made; None outside a stage."""
    return _open.get()


def in_run() -> bool:
    """Whether Prefect runs this."""
    return FlowRunContext.get() is not None or TaskRunContext.get() is not None


def key_of(manifest: Manifest) -> str:
    """The key of an artifact's page: recipe, place, kind, and whose it is where a run has several of a kind."""
    kind = manifest.kind.partition("/")[0]
    place = PLACES.get(kind)
    return "-".join(filter(None, [_recipe(), str(place or ""), _slug(kind), _slug(_owner(manifest))]))


def head(store: Store, manifest: Manifest, what: str) -> str:
    """What it is, how large, from what, and where the run's report is."""
    lines = [
        f"# {plain(_title(manifest))}",
        plain(what.strip().partition("\n")[0]),
        f"`{manifest.ref}` · {plain(_size(manifest))}",
    ]
    inputs = {entry.key: entry for entry in manifest.provenance.inputs.values()}
    if inputs:
        links = [_link(store, ArtifactRef(kind=entry.kind, key=entry.key)) for entry in inputs.values()]
        lines.append(f"Made from {' · '.join(links)}")
    if PLACES.get(manifest.kind, 9) < PLACES["report"] and _recipe():
        report = f"{_recipe()}-{PLACES['report']}-report"
        lines.append(f"Leads to [{report}](/artifacts/key/{report})")
    return "\n\n".join(lines)


def _size(manifest: Manifest) -> str:
    tables = [f"{table.rows:,} rows of {name}" for name, table in manifest.tables.items()]
    return " · ".join([*tables, f"{manifest.size / 1e6:.2f} MB in {manifest.duration_s:.1f} s"])


def _link(store: Store, ref: ArtifactRef) -> str:
    """A link to the page of an input, which another recipe's run may have made first."""
    try:
        key = key_of(store.manifest(ref))
    except StorageError:
        return f"`{ref}`"
    return f"[{key}](/artifacts/key/{key}) `{ref}`"


def _title(manifest: Manifest) -> str:
    owner = _owner(manifest)
    name = manifest.kind.replace("/", " ")
    return f"{_recipe()}: {name}{f' of {owner}' if owner else ''}".removeprefix(": ")


def _owner(manifest: Manifest) -> str:
    """Whose figures they are; of vectors the beginning of their key."""
    config = manifest.provenance.config
    if isinstance(model := config.get("model"), str) and manifest.kind in ("scores", "predictions"):
        return model
    if isinstance(names := config.get("names"), list) and manifest.kind == "comparison":
        return str(names[-1])
    return manifest.key[:6] if manifest.kind in ("embeddings", "transform") else ""


def _recipe() -> str:
    """What this run was told to run, else its flow; in letters that keys may have."""
    parameters = flow_run.parameters or {}
    named = next((str(parameters[name]) for name in _NAMES if parameters.get(name)), None)
    return _slug(named or str(flow_run.flow_name or "").removeprefix("bsl-"))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST].strip("-")
