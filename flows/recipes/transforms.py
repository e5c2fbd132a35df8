"""Recipes of post-hoc transforms (BERT-flow, whitening), fitted on vectors of the corpus or of the test sets."""

from __future__ import annotations

from typing import Final

from bsl.flows.config import PipelineConfig
from bsl.flows.recipes.shared import ALONE, EMBEDDED_STSB, ENCODERS, NLI, NO_VIEWS, SAMPLE, as_printed, with_fields
from bsl.models.encoder.config import EncoderConfig
from bsl.models.transforms.config import FlowConfig, WhiteningConfig


def flow() -> PipelineConfig:
    """BERT-flow (Table 1): a Glow on BERT-base's first-last average, fitted on SNLI and MultiNLI.

    Settings are from the authors' code. The first layer is the first transformer layer. The authors' code averages the
    last two layers for BERT-large-NLI; UKPLab's port averages the embeddings and the last layer: set
    `encoder.pooling`.
    """
    return PipelineConfig(
        title="flow: BERT-flow fitted on SNLI and MultiNLI",
        ingest=NLI,
        augment=NO_VIEWS,
        pairs=ALONE,
        encoder=with_fields(ENCODERS["bert-base-uncased"], pooling="first-last"),
        training=None,
        evaluation=as_printed("stsb/dev", "sts"),
        transform=FlowConfig(),
        published=("BERT-flow", "BERT-flow, BERT-base", "BERT avg."),
    )


def flow_target() -> PipelineConfig:
    """BERT-flow fitted on the sentences of each target set, all splits, without labels; otherwise as `flow`."""
    return with_fields(
        flow(),
        transform_on="targets",
        title="flow-target: BERT-flow fitted on the target sets",
        published=("BERT-flow (target), BERT-base", "BERT-flow"),
    )


def flow_sbert() -> PipelineConfig:
    """BERT-flow on SBERT (Table 1): as `flow`, on the last layer's mean of the published SBERT, softmax on NLI."""
    return with_fields(
        flow(),
        title="flow-sbert: BERT-flow on SBERT, fitted on SNLI and MultiNLI",
        encoder=ENCODERS["bert-base-nli-mean-tokens"],
        published=("BERT-flow on SBERT", "SBERT"),
    )


def whitening() -> PipelineConfig:
    """BERT-whitening-256: BERT-base's first-last average, whitened on SNLI and MultiNLI; exported as an encoder."""
    return with_fields(
        flow(),
        title="whitening: BERT-whitening fitted on SNLI and MultiNLI",
        transform=WhiteningConfig(dimensions=256),
        published=(
            "whitening-256 (NLI), BERT-base",
            "whitening (NLI), BERT-base",
            "whitening, BERT-base",
            "BERT-flow",
        ),
    )


def whitening_target() -> PipelineConfig:
    """BERT-whitening-256 on the sentences of each target set, all splits, without labels; otherwise as `whitening`."""
    return with_fields(
        whitening(),
        transform_on="targets",
        title="whitening-target: BERT-whitening fitted on the target sets",
        published=("whitening-256 (target), BERT-base", "whitening (target), BERT-base"),
    )


def tiny_flow() -> PipelineConfig:
    """`flow` on a laptop: embedded NLI sample and encoder, five epochs; two minutes."""
    return with_fields(
        flow(),
        title="tiny-flow: a flow fitted on the embedded NLI sample",
        ingest=SAMPLE,
        encoder=EncoderConfig(model="embedded:bert-mini", pooling="first-last"),
        evaluation=EMBEDDED_STSB,
        transform=FlowConfig(epochs=5),
    )


def tiny_flow_target() -> PipelineConfig:
    """`flow-target` on a laptop: a flow fitted on the sentences of the embedded STS-B; two minutes."""
    title = "tiny-flow-target: a flow fitted on the embedded STS-B"
    return with_fields(tiny_flow(), transform_on="targets", title=title, published=flow_target().published)


def tiny_whitening() -> PipelineConfig:
    """`whitening` on a laptop: embedded NLI sample and encoder; a minute."""
    return with_fields(
        tiny_flow(),
        title="tiny-whitening: whitening fitted on the embedded NLI sample",
        # The encoder's last layer is normalised, so its 256-dimensional vectors have rank 255.
        transform=WhiteningConfig(dimensions=255),
        published=whitening().published,
    )


def tiny_whitening_target() -> PipelineConfig:
    """`whitening-target` on a laptop: whitening fitted on the embedded STS-B; a minute."""
    title = "tiny-whitening-target: whitening fitted on the embedded STS-B"
    return with_fields(tiny_whitening(), transform_on="targets", title=title, published=whitening_target().published)


POSTHOC: Final = (
    flow, flow_target, flow_sbert, whitening, whitening_target,
    tiny_flow, tiny_flow_target, tiny_whitening, tiny_whitening_target,
)  # fmt: skip
