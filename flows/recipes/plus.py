"""BSL+: BSL with what others have found to help, on the same encoder, corpus and steps; and each part left out.

A standardised or centred target (DINO), in-batch negatives (SimCSE), a queue of target vectors as further negatives
(MoCo), the target's ranking of a batch's sentences (RankCSE), a momentum that rises to 1 (BYOL), and crops and entailed
hypotheses beside round trips. Dropout in the target and the first layer pooled with the last are points of the study
`plus` and not of the recipes: on `bert-mini` the former was worse with both seeds (FIDELITY.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flows.recipes.paper import nli
from flows.recipes.shared import ENTAIL, beside_original
from flows.recipes.tiny import TRAINING, whole_sample
from models.augmentation.rewritings import CropView
from models.objectives.two_branch_config import BSLConfig
from models.pairs import ViewPair
from models.training.config import paper_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flows.config import PipelineConfig
    from models.training.config import TrainingConfig

_CROPS: Final = CropView()
_ENTAILED: Final = beside_original(*ENTAIL.methods).pairings
_CROPPED: Final = (ViewPair(view_1="crop", view_2="crop-2"),)
_OBJECTIVE: Final = BSLConfig(
    target_norm="center",
    momentum_schedule="cosine",
    contrastive_weight=0.1,
    target_contrastive_weight=0.1,
    queue=16_384,
    ranking_weight=0.1,
)


def nli_plus() -> PipelineConfig:
    """BSL+ on SNLI and MultiNLI, BERT-base: round trips, entailed hypotheses and crops; of no printed row.

    The learning rate is that of BSL's released code; labels serve the entailed pairs alone.
    """
    training = paper_config().model_copy(update={"objective": _OBJECTIVE, "lr": 1e-4})
    return _plus(nli(), "nli-plus: BSL+ on SNLI and MultiNLI", training)


def tiny_plus() -> PipelineConfig:
    """`nli-plus` on a laptop: as `tiny`, with what BSL+ adds; embedded sentences, translators and encoder, minutes."""
    # Of a hundred steps the target of momentum 0.999 would see little, and a longer queue would not fill.
    small = _OBJECTIVE.model_copy(update={"momentum": 0.99, "queue": 1024})
    return _plus(
        whole_sample(), "tiny-plus: BSL+ on the embedded NLI sample", TRAINING.model_copy(update={"objective": small})
    )


def _plus(base: PipelineConfig, title: str, training: TrainingConfig) -> PipelineConfig:
    """A recipe's round trips with the other views beside them, and another training."""
    pairings = (*base.pairs.pairings, *_ENTAILED, *_CROPPED)
    return base.model_copy(
        update={
            "title": title,
            "augment": base.augment.model_copy(update={"rewritings": (ENTAIL, _CROPS)}),
            "pairs": base.pairs.model_copy(update={"pairings": pairings, "drop_identical": True}),
            "training": training,
            "published": ("BSL-BERT, Back-translation + NLI_entail", "BERT avg.", "BSL-BERT"),
        }
    )


def _without(*views: str) -> dict[str, Any]:
    """Changes of `tiny-plus` that leave out every view whose name begins so."""
    config = tiny_plus()
    return {
        "augment": {
            name: [view for view in config.augment.model_dump()[name] if not _named(view).startswith(views)]
            for name in ("translations", "rewritings")
        },
        "pairs": {
            "pairings": [pair.model_dump() for pair in config.pairs.pairings if not pair.view_2.startswith(views)]
        },
    }


def _named(view: Mapping[str, Any]) -> str:
    return str(view.get("method") or view["name"])


def _objective(**fields: object) -> dict[str, Any]:
    return {"training": {"objective": fields}}


VARIANTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "BSL+": {},
    "target as it is": _objective(target_norm="none"),
    "target standardised": _objective(target_norm="standardize"),
    "no in-batch negatives": _objective(contrastive_weight=0.0),
    "no target negatives": _objective(target_contrastive_weight=0.0, queue=0),
    "no queue": _objective(queue=0),
    "no ranking": _objective(ranking_weight=0.0),
    "ranking by ListMLE": _objective(ranking="listmle", ranking_weight=0.005),
    "ranking by Jensen-Shannon": _objective(ranking="js"),
    "constant momentum": _objective(momentum_schedule="constant"),
    "no crops": _without("crop"),
    "no entailed pairs": _without("entail"),
    "no round trips": _without("bt-"),
    "dropout in the target": _objective(target_dropout=True),
    "first and last layer": {"encoder": {"pooling": "first-last"}},
    "BSL, target standardised": {"recipe": "tiny-bsl-normed"},
    "BSL + in-batch negatives": {"recipe": "tiny", "ingest": {"corpus": {"limit": None}}},
    "contrastive": {"recipe": "tiny-contrastive"},
    "SimCSE": {"recipe": "tiny-simcse"},
}
"""Points of the study `plus`: what is changed in `tiny-plus`, or the recipe that stands beside it."""

PLUS: Final[tuple[Callable[[], PipelineConfig], ...]] = (nli_plus, tiny_plus)
