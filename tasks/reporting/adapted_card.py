"""The model card of an encoder adapted to the user's text, or of the unchanged original."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tasks.rendering.blocks import Page, Part, Prose, Table
from tasks.rendering.evidence import proof_rows
from tasks.reporting.card import UNDECLARED, USE, Header, Material, card, hub_id, model_material

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from models.evaluation.verdict import Verdict
    from storage.artifacts.refs import CheckpointRef
    from storage.sources.own_text import TextSource

_TAUGHT: Final = {"dropout": "two readings under dropout"}
_MEASURED: Final = (
    "The start and the adapted encoder, × 100, on documents that were held out and chose nothing; 95 % intervals"
)
_LIMITS: Final = (
    "The figures are of the text named below and say nothing of text of another kind. Bias that the start or that text "
    "carries was neither measured nor removed."
)


@dataclass(frozen=True)
class Adapted:
    """An adapted encoder, or the unchanged original.

    Attributes:
        encoder: the user's name for the original encoder.
        verdict: word, reason and advice.
        proof: the table `proof`.
        share: share of the trained weights in the merged encoder.
        views: names of the training views, or `labels`.
    """

    encoder: str
    verdict: Verdict
    proof: pl.DataFrame
    share: float
    views: Sequence[str]


def exported(verdict: Verdict) -> str:
    """Return a phrase for the exported encoder."""
    return "the adapted encoder" if verdict.word == "BETTER" else "the start, unchanged"


def spelled(views: Sequence[str]) -> str:
    """Return the goal of training as a clause."""
    if "labels" in views:
        return "texts are as alike as their labels say"
    return f"{' and '.join(_TAUGHT.get(view, view) for view in views)} of a sentence belong together"


def adapted_card(
    adapted: Adapted, checkpoint: CheckpointRef, sources: Sequence[TextSource], translators: Sequence[str]
) -> str:
    """Return the card as Markdown.

    Args:
        adapted: the encoder, its figures and its verdict.
        checkpoint: its artifact.
        sources: files of the training text.
        translators: models of the round trips used for training.
    """
    better = adapted.verdict.word == "BETTER"
    materials = [model_material("encoder at the start", adapted.encoder)]
    if better:
        materials += [Material("sentences", source.name, UNDECLARED) for source in sources]
        if "round trips" in adapted.views:
            materials += [model_material("translation of views", model) for model in translators]
    what = (
        f"It learnt that {spelled(adapted.views)}; {adapted.share:g} of the trained weights, the rest from the start."
        if better
        else "Training did not make it better on that text, so this is the start, byte for byte."
    )
    page = Page(
        title=f"{adapted.encoder}, {'adapted' if better else 'kept'}",
        word=adapted.verdict.word,
        sentence=adapted.verdict.found,
        lead=[Prose(f"A sentence encoder: {exported(adapted.verdict)}. {what} Compare its vectors by cosine.")],
        parts=[
            USE,
            Part("Figures", [Table.of(_MEASURED, proof_rows(adapted.proof))]),
            Part("Limits", [Prose(_LIMITS)]),
        ],
    )
    languages = sorted({source.lang for source in sources}) if better else []
    return card(page, materials, Header(hub_id(adapted.encoder), languages=languages), checkpoint.key)
