"""The model card of a trained encoder: what it is, how it was made and measured, whose material is in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from models.report.page import INTERVALS, markdown_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_USAGE = """## Use

``python
from sentence_transformers import SentenceTransformer

encoder = SentenceTransformer("path/to/this/folder")
vectors = encoder.encode(["A man is playing a guitar.", "Someone plays music."])
print(encoder.similarity(vectors[:1], vectors[1:]))
``

Where `sentence-embedding.onnx` lies beside this file, its inputs are the tokenizer's `input_ids` and `attention_mask`,
and its output `sentence_embedding` is pooled already."""


_MEASURED = (
    "STS and AFS: correlation of the cosine of two sentences with people's judgement, over all pairs (`all`) "
    "or as the mean of AFS's topics (`unsupervised`). Transfer: accuracy of a linear classifier on frozen vectors."
)


@dataclass(frozen=True)
class Material:
    """Something that went into an encoder: what it was for, its name, its licence."""

    what: str
    name: str
    licence: str


@dataclass(frozen=True)
class CardContent:
    """What a model card is made of.

    Attributes:
        title: the run's title.
        base: the transformer that training started from, as the configuration names it.
        pooling: how token vectors become a sentence vector.
        max_length: tokens read of a sentence.
        trainings: each training's objective, and the pairs that it learnt from.
        settings: setting → value of the last training's objective and optimizer.
        views: methods of the views that were made.
        labels: whether views were chosen by annotators' labels.
        dev: set that chose the checkpoint by its Spearman; None if the last step was taken.
        scores: rows of figures with intervals, systems side by side.
        materials: everything that went in.
        citations: works to cite, the objective's first.
        checkpoint: key of the checkpoint artifact.
        verdict: whether training did the encoder good.
    """

    title: str
    base: str
    pooling: str
    max_length: int
    trainings: Sequence[tuple[str, int]]
    settings: Mapping[str, object]
    views: Sequence[str]
    labels: bool
    dev: str | None
    scores: Sequence[Mapping[str, str]]
    materials: Sequence[Material]
    citations: Sequence[str]
    checkpoint: str
    verdict: str


def model_card(content: CardContent) -> str:
    """The card as Markdown, with the header that model hubs read."""
    sections = [
        "---\nlibrary_name: sentence-transformers\npipeline_tag: sentence-similarity\n"
        "tags:\n- sentence-transformers\n- sentence-similarity\n- feature-extraction\n---",
        f"# {content.title}",
        f"A sentence encoder: {content.base}, pooled by {content.pooling}, first {content.max_length} tokens, trained "
        f"{_trainings(content)} ({', '.join(content.views)}). Compare its vectors by cosine.",
        content.verdict,
        _USAGE,
        f"## Figures\n\n{INTERVALS}. {_MEASURED}\n\n{markdown_table(content.scores)}\n\n{_labels(content)}",
        "## Training\n\n"
        + markdown_table([{"setting": name, "value": value} for name, value in content.settings.items()]),
        "## Licences\n\nThis encoder is made from the following; their terms hold for what you do with it. A name "
        "without a licence here was not declared: ask its owner.\n\n"
        + markdown_table([asdict(material) for material in content.materials]),
        "## Citation\n\n" + "\n".join(f"- {work}" for work in content.citations),
        f"Made by bsl-pipeline, checkpoint `{content.checkpoint}`.",
    ]
    return "\n\n".join(sections) + "\n"


def _trainings(content: CardContent) -> str:
    phases = (f"with objective `{objective}` on {pairs:,} pairs of views" for objective, pairs in content.trainings)
    return ", then ".join(phases)


def _labels(content: CardContent) -> str:
    if content.dev:
        chosen = f"chosen by Spearman on {content.dev}, whose scores are labels: figures on it are no test."
    else:
        chosen = "the last step, chosen by no label."
    pairs = "Pairs were chosen by labels of natural language inference. " if content.labels else ""
    return f"{pairs}The checkpoint was {chosen}"
