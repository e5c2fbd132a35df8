"""Sections that several pages share: the user's text, commands that use an encoder, how to reproduce the page."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final

import polars as pl

from models.views.config import ORIGINAL
from models.views.views import view_examples
from storage.artifacts.manifest import installed_versions
from tasks.rendering.blocks import Code, Facts, Folded, Part, Prose, Table
from tasks.rendering.numbers import shown
from tasks.reporting.provenance import RunCommand, commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from storage.artifacts.refs import PassagesRef, ViewsRef
    from storage.artifacts.store import Store
    from storage.sources.own_text import TextSource

_SAMPLES: Final = 5  # rows of each table of samples
_SHORTEST: Final = 12  # minimum letters of a view in a table of samples
_PARTS: Final = {"train": "{} not held out", "report": "held-out {}"}


def text_part(
    store: Store, passages: PassagesRef, views: Mapping[str, ViewsRef], sources: Sequence[TextSource], labels: str
) -> Part:
    """Return the section on the user's text: its columns, counts of held-out sentences, samples.

    Args:
        store: store of the artifacts.
        passages: the text, with its held-out parts.
        views: title → views of some of its sentences.
        sources: files of the text.
        labels: a sentence on the labels; empty without labels.
    """
    counts = {_label(name): shown(value) for name, value in store.manifest(passages).figures.items()}
    rows = store.scan(passages).filter(pl.col("part") == "report").sort("sentence_id").head(_SAMPLES).collect()
    samples = rows.select("text", *(["title"] if rows["title"].count() else []), "source").to_dicts()
    return Part(
        "Your text",
        [
            Facts(counts),
            *([Table.of("Columns", [source.summary for source in sources])] if sources else []),
            *([Prose(labels)] if labels else []),
            Table.of("Held-out sentences", samples),
            *_view_samples(store, passages, views),
        ],
    )


def _label(name: str) -> str:
    """Return `report sentences` as `held-out sentences`; not all other sentences are used for training."""
    part, _, unit = name.partition(" ")
    return _PARTS.get(part, name).format(unit)


def _view_samples(store: Store, passages: PassagesRef, views: Mapping[str, ViewsRef]) -> Iterator[Table]:
    columns = ("sentence_id", "method", "text")
    texts = store.scan(passages).select("sentence_id", pl.lit(ORIGINAL).alias("method"), "text").unique("sentence_id")
    for title, ref in views.items():
        views_made = store.scan(ref).select(columns).filter(pl.col("method") != ORIGINAL)
        both = pl.concat([texts.join(views_made, on="sentence_id", how="semi").select(columns), views_made])
        if rows := view_examples([both], _SAMPLES, _SHORTEST).to_dicts():
            yield Table.of(title, rows)


def use_part(checkpoint: str) -> Part:
    """Return the commands that use `checkpoint/<key prefix>`; an empty section for an empty text."""
    if not checkpoint:
        return Part("Use the encoder")
    commands = (
        f'bsl search {checkpoint} sentences.txt "dogs in winter"',
        f"bsl pairs {checkpoint} sentences.txt --above 0.9",
        f"bsl embed {checkpoint} sentences.txt vectors.parquet",
    )
    folder = f"Its folder in the store, {checkpoint}…/encoder, also opens with SentenceTransformer(path)."
    return Part("Use the encoder", [Code("\n".join(commands)), Prose(folder, note=True)])


def settings_part(settings: str, *, html_only: bool = False) -> Part:
    """Return the complete settings, as JSON text."""
    return Part("Settings", [Folded("All settings", [Code(settings)])], html_only=html_only)


def reproduce_part(repeat: RunCommand, seeds: Mapping[str, str] | None = None) -> Part:
    """Return how to reproduce the page: command, commit, versions, and the seed of each field."""
    command = [Code(repeat.command)] if repeat.command else []
    return Part("Reproduce", [*command, Facts(environment()), *([Facts(seeds)] if seeds else [])], html_only=True)


def environment() -> dict[str, str]:
    """Return the commit, the operating system and the package versions."""
    return {"commit": commit(), "system": platform.platform(terse=True), **installed_versions()}
