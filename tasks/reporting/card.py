"""The model card of a trained encoder: what it is, how it was made and measured, whose material is in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from tasks.rendering.escaping import plain
from tasks.rendering.markdown import markdown_table
from tasks.rendering.score_tables import INTERVALS
from tasks.reporting.card_header import front_matter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tasks.reporting.card_header import Header

USAGE: Final = """## Use

```python
from sentence_transformers import SentenceTransformer

encoder = SentenceTransformer("path/to/this/folder")
vectors = encoder.encode(["A man is playing a guitar.", "Someone plays music."])
print(encoder.similarity(vectors[:1], vectors[1:]))
```

With bsl-pipeline installed, which made it:

```sh
bsl search path/to/this/folder sentences.txt "what to look for"
bsl evaluate path/to/this/folder --suite sts
```

Where `sentence-embedding.onnx` lies beside this file, its inputs are the tokenizer's `input_ids` and `attention_mask`,
and its output `sentence_embedding` is pooled already."""


_MEASURED: Final = (
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
        header: what model hubs read.
        title: the run's title.
        what: what became of the encoder after training, such as a transform that it took in; empty if nothing.
        column: whose figures are this encoder's, of the systems side by side.
        base: the transformer that training started from, as the configuration names it.
        pooling: how token vectors become a sentence vector.
        max_length: tokens read of a sentence.
        trainings: each training's objective, how many pairs it learnt from, and what they were.
        settings: setting → value of the last training's objective and optimizer.
        labels: whether pairs were chosen by annotators' labels.
        scored: sets whose scores were learnt.
        dev: set that chose the checkpoint by its Spearman; None if the last step was taken.
        scores: rows of figures with intervals, systems side by side.
        materials: everything that went in.
        citations: works to cite, the objective's first.
        checkpoint: key of the checkpoint artifact.
        verdict: whether training did the encoder good.
    """

    header: Header
    title: str
    what: str
    column: str
    base: str
    pooling: str
    max_length: int
    trainings: Sequence[tuple[str, int, str]]
    settings: Mapping[str, object]
    labels: bool
    scored: Sequence[str]
    dev: str | None
    scores: Sequence[Mapping[str, str]]
    materials: Sequence[Material]
    citations: Sequence[str]
    checkpoint: str
    verdict: str


def model_card(content: CardContent) -> str:
    """The card as Markdown, with the header that model hubs read."""
    sections = [
        front_matter(content.header),
        f"# {plain(content.title)}",
        _sentence(content),
        content.verdict,
        USAGE,
        f"## Figures\n\n{INTERVALS}; this encoder's column is *{plain(content.column)}*. {_MEASURED}\n\n"
        f"{markdown_table(content.scores)}\n\n{_labels(content)}",
        f"## Limits\n\n{_limits(content)}",
        _settings(content),
        f"{LICENCES}\n\n{markdown_table(material_rows(content.materials))}",
        "## Citation\n\n" + "\n".join(f"- {work}" for work in content.citations),
        f"Made by bsl-pipeline, checkpoint `{content.checkpoint}`.",
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


LICENCES: Final = (
    "## Licences\n\nThis encoder is made from the following; their terms hold for what you do with it. A name "
    "without a licence here was not declared: ask its owner."
)


def material_rows(materials: Sequence[Material]) -> list[dict[str, str]]:
    """A row each."""
    return [asdict(material) for material in materials]


def _sentence(content: CardContent) -> str:
    trained = f", trained {_trainings(content)}" if content.trainings else ""
    return (
        f"A sentence encoder: {plain(content.base)}, pooled by {content.pooling}, first {content.max_length} tokens"
        f"{trained}{content.what and f', {content.what}'}. Compare its vectors by cosine."
    )


def _limits(content: CardContent) -> str:
    """What a reader must know who did not make it."""
    languages = ", ".join(content.header.languages)
    lines = [
        f"What comes after a sentence's first {content.max_length} tokens is not read.",
        f"It was made from sentences in these languages: {languages}. No other was tried.",
        "The figures say how it orders pairs of the sets above; text of another kind can turn out otherwise. Measure "
        "it on yours: `bsl evaluate`, `bsl field`.",
        "Cosines order pairs. A threshold from another encoder means nothing here.",
        "Bias that the start or the sentences carry was neither measured nor removed.",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _settings(content: CardContent) -> str:
    rows = [{"setting": name, "value": value} for name, value in content.settings.items()]
    return f"## Training\n\n{markdown_table(rows)}" if rows else ""


def _trainings(content: CardContent) -> str:
    phases = (f"with objective `{name}` on {count:,} {plain(pairs)}" for name, count, pairs in content.trainings)
    return ", then ".join(phases)


def _labels(content: CardContent) -> str:
    if not content.trainings:
        return "No label was used."
    if content.dev:
        chosen = f"chosen by Spearman on {content.dev}, whose scores are labels: figures on it are no test."
    else:
        chosen = "the last step, chosen by no label."
    pairs = "Pairs were chosen by labels of natural language inference. " if content.labels else ""
    pairs += f"Scores of {', '.join(content.scored)}, which are labels, were learnt. " if content.scored else ""
    return f"{pairs}The checkpoint was {chosen}"
