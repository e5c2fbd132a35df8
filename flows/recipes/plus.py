"""BSL+: BSL with the additions that helped on the same encoder, corpus and steps; and the additions that did not help.

Two additions helped: in-batch negatives (SimCSE) in the loss, and pooling of the first and the last layer. On
`bert-mini`, contrastive training with the same pooling is equally good. The study `plus` has the other additions: a
centred or standardised target (DINO), negatives and a queue from the target (MoCo), the target's ranking of a batch
(RankCSE), a momentum that rises to 1 (BYOL), dropout in the target, and crops or entailed hypotheses as further pairs.
On `bert-mini` they gained nothing, or lost (docs/research-log.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flows.recipes.paper import nli
from flows.recipes.shared import ENTAIL, beside_original, changed
from flows.recipes.tiny import TRAINING, whole_sample
from models.objectives.config import BSLConfig
from models.training.config import PAPER_CONFIG
from models.views.config import CropView
from models.views.pairs import ViewPair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flows.config import PipelineConfig
    from models.training.config import TrainingConfig

_OBJECTIVE: Final = BSLConfig(contrastive_weight=0.3)
_POOLED: Final = {"encoder": {"pooling": "first-last"}}


def nli_plus() -> PipelineConfig:
    """BSL+ on SNLI and MultiNLI, BERT-base: in-batch negatives, first and last layer; no published row.

    The learning rate is from BSL's released code.
    """
    training = changed(PAPER_CONFIG, objective=_OBJECTIVE, lr=1e-4, select="best-or-start")
    return _plus(nli(), "nli-plus: BSL+ on SNLI and MultiNLI", training)


def tiny_plus() -> PipelineConfig:
    """`nli-plus` on a laptop, on all sentences of the embedded NLI sample; minutes."""
    training = changed(TRAINING, objective=_OBJECTIVE)
    return _plus(whole_sample(), "tiny-plus: BSL+ on the embedded NLI sample", training)


def _plus(base: PipelineConfig, title: str, training: TrainingConfig) -> PipelineConfig:
    """Return a recipe with BSL+'s pooling and other training settings."""
    return changed(
        base,
        title=title,
        pairs=changed(base.pairs, drop_identical=True),
        encoder=changed(base.encoder, **_POOLED["encoder"]),
        training=training,
    )


def _with(rewriting: Any, *pairings: ViewPair) -> dict[str, Any]:  # noqa: ANN401 - any rewriting
    """Return changes of `tiny-plus` that add a view, and its pairs, to the round trips."""
    all_pairings = (*tiny_plus().pairs.pairings, *pairings)
    return {
        "augment": {"rewritings": [rewriting.model_dump()]},
        "pairs": {"pairings": [pairing.model_dump() for pairing in all_pairings]},
    }


def _objective(**fields: object) -> dict[str, Any]:
    return {"training": {"objective": fields}}


VARIANTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "BSL+": {},
    "no in-batch negatives": _objective(contrastive_weight=0.0),
    "last layer alone": {"encoder": {"pooling": "mean"}},
    "target centred": _objective(target_norm="center"),
    "target standardised": _objective(target_norm="standardize"),
    "target negatives": _objective(target_contrastive_weight=0.1),
    "target negatives, queue": _objective(target_contrastive_weight=0.1, queue=1024),
    "ranking": _objective(ranking_weight=0.1),
    "ranking by ListMLE": _objective(ranking="listmle", ranking_weight=0.005),
    "ranking by Jensen-Shannon": _objective(ranking="js", ranking_weight=0.1),
    "momentum that rises from 0.99": _objective(momentum=0.99, momentum_schedule="cosine"),
    "dropout in the target": _objective(target_dropout=True),
    "with crops": _with(CropView(), ViewPair(view_1="crop", view_2="crop-2")),
    "with entailed pairs": _with(ENTAIL, *beside_original(*ENTAIL.methods).pairings),
    "BSL, target standardised": {"recipe": "tiny-bsl-normed"},
    "BSL, target standardised, first and last layer": {"recipe": "tiny-bsl-normed", **_POOLED},
    "contrastive": {"recipe": "tiny-contrastive"},
    "contrastive, first and last layer": {"recipe": "tiny-contrastive", **_POOLED},
    "SimCSE": {"recipe": "tiny-simcse"},
}
"""Points of the study `plus`: changes to `tiny-plus`, or other recipes to compare it with."""

PLUS: Final = (nli_plus, tiny_plus)
