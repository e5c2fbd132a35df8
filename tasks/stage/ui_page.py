"""What the Prefect UI shows of an artifact: a page for each stage, whose keys, sorted, follow the pipeline.

`tiny-1-corpus`, `tiny-2-views`, … `tiny-9-report`: recipe, place on the data's way, kind. Where a run has, or may have,
several of a kind, its stage, its system and the beginning of the artifact's key follow: no two artifacts of a run share
a page. What a stage shows while it works (`tasks.stage.ui`) is collected and published once, below a title and above
links to its inputs. A page is made where its artifact is, so what this run found made has none.
"""

from __future__ import annotations

import logging
import re
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from httpx import HTTPError, HTTPStatusError
from prefect.artifacts import create_image_artifact, create_markdown_artifact
from prefect.context import FlowRunContext, TaskRunContext
from prefect.runtime import flow_run

from storage.artifacts.refs import ArtifactRef
from storage.errors import StorageError
from tasks.rendering.escaping import plain
from tasks.rendering.numbers import sized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage.artifacts.manifest import Manifest
    from storage.artifacts.store import Store

logger = logging.getLogger(__name__)

T = TypeVar("T")

PLACES: Final = {
    "corpus": 1, "nli": 1, "passages": 1, "views": 2, "pairs": 3, "checkpoint": 4, "embeddings": 5,
    "transform": 6, "scores": 7, "predictions": 7, "comparison": 8, "weighing": 8, "proof": 8,
    "report": 9, "evaluation": 9, "sweep": 9, "reproduction": 9,
}  # fmt: skip
_LAST: Final = 9
_ENDS: Final = {  # what each flow makes once, and last
    "bsl-pipeline": "report", "bsl-adapt": "report", "bsl-evaluate": "evaluation", "bsl-compare": "evaluation",
    "bsl-field": "sweep", "bsl-ablation": "sweep", "bsl-reproduce": "reproduction",
}  # fmt: skip
_ONCE: Final = ("ingest", "nli", "make_views")  # what a run of one recipe calls once
_SAID: Final = (*_ONCE, "read_passages", "pair", "train", "embed", "fit_transform", "score", "compare")  # by their kind
_LONGEST: Final = 60  # letters of a part of a key
_MINUTES_OF_SILENCE: Final = 30  # a client asks for two, which few pages are to wait for
_silent_until = 0.0
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
        text = page_text(title_of(manifest, what), self.sections, lineage_of(store, manifest))
        size = plain(f"{manifest.ref}: {_size(manifest)}")
        shown(f"page of {ref}", lambda: create_markdown_artifact(markdown=text, key=key, description=size))
        for name, url, description in self.pictures:
            own, said = f"{key}-{_slug(name)}", plain(description)
            shown(f"picture of {ref}", partial(create_image_artifact, image_url=url, key=own, description=said))


def shown(what: str, act: Callable[[], T]) -> T | None:
    """Show something in the UI. A server that cannot take it ends no work: it is warned of.

    A server that is gone or fails is left alone for a while; one that refuses what it is given is asked again.

    Args:
        what: what is shown, for people.
        act: shows it.

    Returns:
        What `act` gives; None if it is not shown.
    """
    global _silent_until
    if time.monotonic() < _silent_until:
        return None
    try:
        return act()
    except HTTPError as error:
        line = str(error).partition("\n")[0]
        if isinstance(error, HTTPStatusError) and error.response.status_code < 500:
            logger.warning("%s: not in Prefect's UI, because its server refused it; the run continues (%s)", what, line)
            return None
        _silent_until = time.monotonic() + 60 * _MINUTES_OF_SILENCE
        logger.warning(
            "%s: not in Prefect's UI because its server failed; the run continues, and nothing is shown for the next "
            "%d minutes (%s)",
            what,
            _MINUTES_OF_SILENCE,
            line,
        )
        return None


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


def page_text(title: str, sections: list[str], lineage: str) -> str:
    """Return the page of an artifact: its title, what its stage showed, where it comes from.

    Args:
        title: heading, and what the stage does.
        sections: what it showed. One with a heading of its own, such as a report, takes the title's place, and the
            others stand below its first lines.
        lineage: the artifact, its inputs and where the run ends.
    """
    leading = next((section for section in sections if section.startswith("# ")), title)
    first, mark, rest = leading.partition("\n## ")
    others = [section for section in sections if section is not leading]
    return "\n\n".join(filter(None, [first.rstrip(), *others, f"{mark}{rest}".strip(), lineage]))


def in_run() -> bool:
    """Whether Prefect runs this."""
    return FlowRunContext.get() is not None or TaskRunContext.get() is not None


def key_of(manifest: Manifest) -> str:
    """The key of an artifact's page: recipe, place, kind, and which it is where a run may have several of a kind."""
    kind = manifest.kind.partition("/")[0]
    own = "" if _is_alone(manifest) else manifest.key[:6]
    parts = [
        _recipe(),
        str(PLACES.get(kind) or ""),
        _slug(kind),
        _slug(_method(manifest)),
        _slug(_system(manifest)),
        own,
    ]
    return "-".join(filter(None, parts))


def title_of(manifest: Manifest, what: str) -> str:
    """Return a heading such as `# views · tiny`, and the first line of what the stage does."""
    method, system = _method(manifest), _system(manifest)
    said = f"{manifest.kind.replace('/', ' ')}{f', {method}' if method else ''}{f' of {system}' if system else ''}"
    heading = " · ".join(filter(None, [said, _recipe()]))
    first_line = what.strip().partition("\n")[0]
    return f"# {plain(heading)}\n\n{plain(first_line)}"


def lineage_of(store: Store, manifest: Manifest) -> str:
    """Return the artifact and its size, links to its inputs, and where the run's last page will be."""
    lines = [f"`{manifest.ref}` · {plain(_size(manifest))}"]
    inputs = {entry.key: entry for entry in manifest.provenance.inputs.values()}
    if inputs:
        run = manifest.provenance.run
        links = [_link(store, ArtifactRef(kind=entry.kind, key=entry.key), run) for entry in inputs.values()]
        lines.append(f"Made from {' · '.join(links)}")
    if PLACES.get(manifest.kind, _LAST) < _LAST and (last := _last_page()):
        lines.append(f"Leads to [{last}](/artifacts/key/{last})")
    return "\n\n".join(lines)


def _size(manifest: Manifest) -> str:
    tables = [f"{table.rows:,} rows of {name}" for name, table in manifest.tables.items()]
    return " · ".join([*tables, f"{sized(manifest.size)} in {manifest.duration_s:.1f} s"])


def _link(store: Store, ref: ArtifactRef, run: str) -> str:
    """A link to the page of an input, if this run made it; another's may have another name, or none."""
    try:
        manifest = store.manifest(ref)
    except StorageError:
        return f"`{ref}`"
    if not run or manifest.provenance.run != run or "/" in ref.kind:
        return f"`{ref}`"
    key = key_of(manifest)
    return f"[{key}](/artifacts/key/{key}) `{ref}`"


def _last_page() -> str:
    """The key of the page that the run ends with; empty for a flow without one."""
    end = _ENDS.get(str(flow_run.flow_name))
    return f"{_recipe()}-{_LAST}-{end}" if end else ""


def _is_alone(manifest: Manifest) -> bool:
    """Whether a run has but one such artifact."""
    flow = str(flow_run.flow_name)
    return manifest.kind == _ENDS.get(flow) or (flow == "bsl-pipeline" and manifest.provenance.stage in _ONCE)


def _method(manifest: Manifest) -> str:
    """The stage, in words, where the kind does not say it."""
    stage = manifest.provenance.stage
    known = stage in _SAID or PLACES.get(manifest.kind) == _LAST
    return "" if known or stage == manifest.kind else stage.replace("_", " ")


def _system(manifest: Manifest) -> str:
    """Whose figures they are."""
    config = manifest.provenance.config
    if isinstance(model := config.get("model"), str) and manifest.kind in ("scores", "predictions"):
        return model
    if isinstance(names := config.get("names"), list) and manifest.kind == "comparison":
        return str(names[-1])
    return ""


def _recipe() -> str:
    """What this run was told to run, else its flow; in letters that keys may have."""
    parameters = flow_run.parameters or {}
    named = next((str(parameters[name]) for name in _NAMES if parameters.get(name)), None)
    return _slug(named or str(flow_run.flow_name or "").removeprefix("bsl-"))


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST].strip("-")
