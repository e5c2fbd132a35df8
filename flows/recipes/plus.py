"""BSL+: BSL with two additions that helped on the same encoder, corpus and steps.

The additions are in-batch negatives (SimCSE) in the loss, and pooling of the first and the last layer. On `bert-mini`,
contrastive training with the same pooling is equally good (docs/research-log.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bsl.flows.recipes.paper import PAPER_TRAINING, nli
from bsl.flows.recipes.shared import with_fields
from bsl.flows.recipes.tiny import TRAINING, whole_sample
from bsl.models.objectives.bsl_config import BSLConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsl.flows.config import PipelineConfig
    from bsl.models.training.config import TrainingConfig

_OBJECTIVE: Final = BSLConfig(contrastive_weight=0.3)
_POOLED: Final = {"encoder": {"pooling": "first-last"}}


def nli_plus() -> PipelineConfig:
    """BSL+ on SNLI and MultiNLI, BERT-base: in-batch negatives, first and last layer; no published row.

    The learning rate is from BSL's released code.
    """
    training = with_fields(PAPER_TRAINING, objective=_OBJECTIVE, lr=1e-4, select="best-or-start")
    return _plus(nli(), "nli-plus: BSL+ on SNLI and MultiNLI", training)


def tiny_plus() -> PipelineConfig:
    """`nli-plus` on a laptop, on all sentences of the embedded NLI sample; minutes."""
    training = with_fields(TRAINING, objective=_OBJECTIVE)
    return _plus(whole_sample(), "tiny-plus: BSL+ on the embedded NLI sample", training)


def _plus(base: PipelineConfig, title: str, training: TrainingConfig) -> PipelineConfig:
    """Return a recipe with BSL+'s pooling and other training settings."""
    return with_fields(
        base,
        title=title,
        pairs=with_fields(base.pairs, drop_identical=True),
        encoder=with_fields(base.encoder, **_POOLED["encoder"]),
        training=training,
    )


VARIANTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "BSL+": {},
    "no in-batch negatives": {"training": {"objective": {"contrastive_weight": 0.0}}},
    "last layer alone": {"encoder": {"pooling": "mean"}},
    "BSL, target standardised": {"recipe": "tiny-bsl-normed"},
    "contrastive": {"recipe": "tiny-contrastive"},
    "contrastive, first and last layer": {"recipe": "tiny-contrastive", **_POOLED},
    "SimCSE": {"recipe": "tiny-simcse"},
}
"""Points of the study `plus`: changes to `tiny-plus`, or other recipes to compare it with."""

PLUS: Final = (nli_plus, tiny_plus)
