"""The model card of an encoder that was adapted to somebody's text, or of the start that was kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.report.adaptation import exported, proof_rows, spelled
from models.report.card import LICENCES, USAGE, Material, material_rows
from models.report.card_header import Header, front_matter
from models.report.escaping import plain
from models.report.page import markdown_table
from tasks.reporting.model_card import UNDECLARED, hub_id, model_material

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.report.adaptation import AdaptationContent
    from storage.artifacts.refs import CheckpointRef
    from storage.sources.own_text import TextSource


def adapted_card(
    content: AdaptationContent, adapted: CheckpointRef, sources: Sequence[TextSource], translators: Sequence[str]
) -> str:
    """The card as Markdown.

    Args:
        content: what the adaptation's page says.
        adapted: the encoder.
        sources: the files that it learnt from.
        translators: models of the round trips that it learnt from.
    """
    better = content.verdict.word == "BETTER"
    materials = [model_material("encoder at the start", content.encoder)]
    if better:
        materials += [Material("sentences", source.name, UNDECLARED) for source in sources]
        if "round trips" in content.views:
            materials += [model_material("translation of views", model) for model in translators]
    header = Header(
        name=f"{content.encoder} adapted",
        base=hub_id(content.encoder),
        datasets=[],
        languages=sorted({source.lang for source in sources}) if better else [],
        licences=[material.licence for material in materials],
        figures=[],
    )
    what = (
        f"It learnt that {spelled(content.views)} of a sentence belong together; {content.share:g} of the trained "
        "weights, the rest from the start."
        if better
        else "Training did not make it better on that text, so this is the start, byte for byte."
    )
    sections = [
        front_matter(header),
        f"# {plain(content.encoder)}, {'adapted' if better else 'kept'}",
        f"A sentence encoder: {exported(content.verdict)}. {what} Compare its vectors by cosine.",
        content.verdict.sentence,
        USAGE,
        "## Figures\n\nOf the start and of the adapted encoder, × 100, on documents that were held out and chose "
        f"nothing; 95 % intervals.\n\n{markdown_table(proof_rows(content.proof))}",
        "## Limits\n\nThe figures are of the text named below and say nothing of text of another kind. Bias that the "
        "start or that text carries was neither measured nor removed.",
        f"{LICENCES}\n\n{markdown_table(material_rows(materials))}",
        f"Made by bsl-pipeline, checkpoint `{adapted.key}`.",
    ]
    return "\n\n".join(sections) + "\n"
