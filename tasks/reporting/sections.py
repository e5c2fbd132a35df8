"""What several pages share: names in titles; sections on the user's text, samples, use of an encoder, settings."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.views.config import ORIGINAL
from bsl.models.views.views import view_examples
from bsl.storage.assets.embedded import EMBEDDED
from bsl.tasks.corpus.passages import columns_table
from bsl.tasks.evaluation.samples import CLASS, NEIGHBOUR
from bsl.tasks.rendering.blocks import Code, Facts, Folded, Part, Prose, Table
from bsl.tasks.rendering.numbers import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from bsl.storage.artifacts.refs import PassagesRef, ViewsRef
    from bsl.storage.artifacts.store import Store
    from bsl.storage.sources.own_text import TextSource

_SAMPLES: Final = 5  # rows of each table of samples
_SHORTEST: Final = 12  # minimum letters of a view in a table of samples
_DRAWN: Final = (
    "Held-out texts, drawn at random from those that changed. The verdict follows from the figures, not from samples."
)
_OPENS: Final = 'SentenceTransformer("my-encoder") also opens the exported folder.'
_ARTIFACT: Final = re.compile(r"(report|checkpoint|embeddings)/([0-9a-f]{8})[0-9a-f]*")
_PARTS: Final = {"train": "{} not held out", "report": "held-out {}"}


def text_part(
    store: Store, passages: PassagesRef, views: Mapping[str, ViewsRef], sources: tuple[TextSource, ...], labels: str
) -> Part:
    """Return the section on the user's text: its columns, counts of held-out sentences, samples.

    `views` maps titles to views of some sentences; `labels` is a sentence on the labels, empty without labels.
    """
    counts = {_label(name): shown(value) for name, value in store.manifest(passages).figures.items()}
    rows = store.scan(passages).filter(pl.col("part") == "report").sort("sentence_id").head(_SAMPLES).collect()
    samples = rows.select("text", *(["title"] if rows["title"].count() else []), "source").to_dicts()
    return Part(
        "Your text",
        [
            Facts(counts),
            *([columns_table(sources)] if sources else []),
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


def use_part(checkpoint: str, worse: Collection[str] = ()) -> Part:
    """Return the commands that use an encoder, without those for uses for which it is worse than the original one."""
    commands = [
        f"bsl {command}"
        for use, command in (
            ("search", f'search {checkpoint} sentences.txt "dogs in winter"'),
            ("similarity", f"pairs {checkpoint} sentences.txt --above 0.9"),
            ("", f"embed {checkpoint} sentences.txt vectors.parquet"),
            ("", f"export {checkpoint} my-encoder"),
        )
        if use not in worse
    ]
    return Part("Use the encoder", [Code("\n".join(commands)), Prose(_OPENS, note=True)])


def settings_part(settings: str, *, html_only: bool = False) -> Part:
    """Return the complete settings, as JSON text."""
    return Part("Settings", [Folded("All settings", [Code(settings)])], html_only=html_only)


def sample_part(samples: pl.DataFrame) -> Part:
    """Return the section; `samples` is the table of that name, in random order."""
    tables = [*_neighbours(samples), *_classes(samples)]
    return Part("Samples", [*tables, Prose(_DRAWN, note=True)] if tables else [])


def _neighbours(samples: pl.DataFrame) -> Iterator[Table]:
    found = samples.filter(kind=NEIGHBOUR)
    if found.is_empty():
        return
    answers = [] if found["label"].null_count() == found.height else [pl.col("label").alias("correct answer")]
    rows = found.select("text", nearest_before="before", nearest_after="after").with_columns(found.select(answers))
    title = f"Nearest text before and after: {_some(found)} whose nearest text changed"
    yield Table.of(title, rows.head(_SAMPLES).to_dicts())


def _classes(samples: pl.DataFrame) -> Iterator[Table]:
    changed = samples.filter(kind=CLASS)
    for name, side in (("right", "after"), ("wrong", "before")):
        found = changed.filter(pl.col("label") == pl.col(side))
        if found.height:
            rows = found.select("text", "before", "after", true_class="label").head(_SAMPLES)
            yield Table.of(f"Class of a linear classifier, now {name}: {_some(found)}", rows.to_dicts())


def _some(found: pl.DataFrame) -> str:
    return f"{min(_SAMPLES, found.height)} of {found.height:,} texts"


def encoder_name(encoder: str) -> str:
    """Return the name of an encoder: the last part of a path or Hub id, without `embedded:`; a short artifact name."""
    if found := _ARTIFACT.fullmatch(encoder):
        return f"{found[1]}/{found[2]}"
    name = encoder.removeprefix(EMBEDDED)
    return name if name.startswith(("report/", "checkpoint/")) else name.rstrip("/").rsplit("/", 1)[-1] or encoder


def system_names(labels: Iterable[str]) -> dict[str, str]:
    """Return label → name of each system; labels with the same name stay as they are."""
    names = {label: encoder_name(label) for label in labels}
    counts = Counter(names.values())
    return {label: name if counts[name] == 1 else label for label, name in names.items()}


def text_name(sources: Sequence[TextSource]) -> str:
    """Return the name of the only file of a text, else that of its first source and the number of others."""
    if not sources:
        return "your text"
    first, *others = sources
    name = first.files[0].rsplit("/", 1)[-1] if len(first.files) == 1 else first.name
    return f"{name} and {len(others)} more" if others else name
