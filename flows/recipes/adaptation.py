"""Settings of `bsl adapt` and their defaults: a short training, and the evaluation that decides whether it helped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from bsl.flows.own_options import DEFAULT_ENCODER, AdaptOptions
from bsl.flows.recipes.shared import ALONE, ANCHOR, CROPS, LABEL_REGRESSION, PIVOTS, trips_of, with_fields
from bsl.models.corpus.passages import HoldOutConfig
from bsl.models.encoder.config import EncoderConfig
from bsl.models.evaluation.config import EvaluationConfig
from bsl.models.evaluation.proof import AdaptationEvaluationConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.translation.config import CATALOGS, OPUS_MT
from bsl.models.views.config import AugmentConfig, CropView, TranslatedView
from bsl.models.views.pairs import REHEARSAL, PairConfig, ViewPair
from bsl.storage.filesystem.urls import Public
from bsl.storage.record import AddedAs

if TYPE_CHECKING:
    from bsl.models.corpus.labels import Use

STSB: Final = "embedded:stsb/test"
"""The general set on which every adaptation is scored."""
DROPOUT: Final = 0.1  # BERT's rate; the embedded encoders have none

# Few and small steps, because a good encoder forgets quickly. With labels, a hundred steps cost twice as much and gain
# no more (docs/research-log.md).
GENTLE: Final = TrainingConfig(
    objective=ContrastiveConfig(),
    lr=2e-5,
    max_steps=50,
    epochs=1000,
    batch_size=64,
    select="last",
    collapse=None,
    eval_every=50,
)

# Regression of a pair's cosine on 1 within a class and 0 between classes, or on the given score. Pairs of classes are
# used for two epochs, so few labels need few steps. Learning rate × steps is at most twice that of SetFit (20 positive
# and 20 negative pairs per text, 16 per step, 2e-5) since vectors are held, with four fifths of its pairs. Scored pairs
# gain from several epochs. A third of a batch is general sentences that keep their vectors (docs/research-log.md).
LABELLED: Final = with_fields(
    GENTLE,
    objective=LABEL_REGRESSION,
    lr=1e-4,
    batch_size=48,
    drop_last=False,
    max_steps=60,
    eval_every=60,
)
LABELS: Final = "labels"  # stands for the views if training uses labels
_VIEW_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "auto": ("crops",),
    "crops": ("crops",),
    "round-trips": ("round trips",),
    "both": ("crops", "round trips"),
    "dropout": ("dropout",),
}


class AdaptConfig(AdaptOptions):
    """Settings for adapting an encoder to the user's text."""

    encoder: EncoderConfig = EncoderConfig(model=DEFAULT_ENCODER)
    """Pooling and length of a bare transformer; a sentence-transformers folder has its own settings."""
    hold_out: HoldOutConfig = HoldOutConfig()
    """Documents held out from training."""
    pivots: tuple[str, ...] = PIVOTS
    """Pivot languages of round trips; the first language with translators in both directions is used."""
    translated: int = Field(1500, ge=0)
    """Maximum number of training sentences to translate."""
    training: TrainingConfig = GENTLE
    """Objective, optimizer and schedule."""
    label_training: TrainingConfig = LABELLED
    """Objective, optimizer and schedule of training on labels, which replace the views."""
    rehearsal: Public = REHEARSAL
    """Scored set whose sentences keep their vectors during training on labels, if `label_training.objective` has an
    `anchor_weight`; "" for none."""
    own_rehearsal: bool = True
    """Whether sentences of the training text keep their vectors too, so that search in the text does not get worse
    (docs/research-log.md)."""
    class_epochs: int = Field(2, ge=1, le=1000)
    """Epochs over the pairs of classes, instead of `label_training.epochs`, so that few labels need few steps."""
    class_anchor: float = Field(0.05, gt=0, le=100)
    """Anchor weight of training on classes, instead of `label_training.objective.anchor_weight` if that is above 0: few
    labels of classes teach less if their vectors are held strongly (docs/research-log.md)."""
    class_width: Annotated[int, AddedAs(384)] = Field(384, ge=1)
    """Width of transformer for which `label_training.lr` is the learning rate of training on classes; a wider one gets
    lr × this / its width, as Adam's rate is to fall with the width (Yang et al., 2021, "Tensor Programs V"). At the
    rate of small encoders, wide ones learn less from few rows (docs/research-log.md)."""
    raw_lr: float = Field(2e-4, gt=0, le=1)
    """Peak learning rate of a bare transformer, instead of `training.lr`. It cannot compare sentences yet, so it has
    more to learn and less to forget."""
    table_lr: Annotated[float, AddedAs(3e-3)] = Field(3e-3, gt=0, le=1)
    """Peak learning rate of a static table, instead of `training.lr` and `label_training.lr`: at the rate of a
    transformer, which changes with every token, the rows of a table stay as they are (docs/research-log.md)."""
    raw_anchor: float = Field(ANCHOR, ge=0, le=100)
    """Anchor weight of a bare transformer, instead of `training.objective.anchor_weight`, if the objective is
    `contrastive`: how strongly training preserves the similarities of the original encoder."""
    proof: AdaptationEvaluationConfig = AdaptationEvaluationConfig()
    """Evaluation of the adapted encoder on held-out text."""
    evaluation: EvaluationConfig = EvaluationConfig(sets=(STSB,), dev="embedded:stsb/dev")
    """General sets on which the encoder may not get worse; STS-B is always one of them. After training on labels, `dev`
    selects the share of the trained weights."""

    @model_validator(mode="after")
    def _can_be_translated(self) -> Self:
        if self.views in ("round-trips", "both") and (self.trip is None or self.translated == 0):
            if self.translated == 0:
                raise ValueError(f"views {self.views!r}: translated is 0. Set it to 1 or more, or use --views crops")
            has_opus = bool(trips_of(self.lang, OPUS_MT, self.pivots))
            named = self.translators if isinstance(self.translators, str) else ", ".join(self.translators)
            raise ValueError(
                f"views {self.views!r}: translators {named!r} have no round trip from {self.lang!r} through "
                f"{' or '.join(self.pivots)}. Use {'--translators opus-mt' if has_opus else 'your own translators'}, "
                "or --views crops"
            )
        return self

    @property
    def trip(self) -> TranslatedView | None:
        """The round trip from the language of the text; None if no translators cover it."""
        known = CATALOGS.get(self.translators, {}) if isinstance(self.translators, str) else self.translators
        return next(iter(trips_of(self.lang, known, self.pivots)), None)

    def use_of(self, *, labels: bool, only_judge: bool) -> Use:
        """Return the use of labels: training and the verdict (`adapt`), or the verdict only (`judge`).

        Raises:
            ValueError: `only_judge` without labels, `accept` with labels, or labels for training together with a
                choice of views.
        """
        if self.accept and labels:
            raise ValueError("--accept: conflicts with --labels, because labels decide the verdict. Remove one of them")
        if only_judge and not labels:
            raise ValueError("--labels-only-judge: expected --labels FILE. Add it, or remove --labels-only-judge")
        if labels and not only_judge and self.views != "auto":
            raise ValueError(
                f"--views {self.views}: conflicts with --labels, because training on labels uses no views. Remove "
                "--views, or add --labels-only-judge to train on views"
            )
        return "adapt" if labels and not only_judge else "judge"

    @property
    def view_names(self) -> tuple[str, ...]:
        """Names of the views to train on."""
        return _VIEW_NAMES[self.views]

    @property
    def augment(self) -> AugmentConfig:
        """The views of the training corpus other than round trips: the sentences, and crops if chosen."""
        return AugmentConfig(rewritings=(CropView(),) if "crops" in self.view_names else ())

    def view_training(self, *, raw: bool = False, table: bool = False) -> TrainingConfig:
        """Return the settings of training on views, for a bare transformer (`raw`), a table or another encoder.

        Raises:
            ValueError: The learning rate is changed in a field that does not apply.
        """
        if table:
            return self._at_rate("training", "table_lr", "a static table")
        if not raw:
            return self.training
        objective = self.training.objective.with_anchor(self.raw_anchor)
        return with_fields(self._at_rate("training", "raw_lr", "a bare transformer"), objective=objective)

    @property
    def rehearsal_set(self) -> str:
        """Name of the scored set whose sentences keep their vectors; empty if the objective cannot preserve them."""
        return self.rehearsal if self.label_training.objective.nullable else ""

    @property
    def rehearses_text(self) -> bool:
        """Whether training on labels preserves vectors of the user's text."""
        return self.own_rehearsal and bool(self.label_training.objective.nullable)

    def label_training_for(
        self, kind: Literal["pairs", "classes"], width: int | None = None, *, table: bool = False
    ) -> TrainingConfig:
        """Return the settings of training on scored pairs, or on pairs made from classes.

        Args:
            kind: Kind of labels.
            width: Width of the transformer; None for a static table.
            table: Whether the encoder is a static table.

        Raises:
            ValueError: As `view_training`.
        """
        training = self.label_training
        if table:
            training = self._at_rate("label_training", "table_lr", "a static table")
        if kind == "pairs":
            return training
        if width is not None and width > self.class_width:
            training = with_fields(training, lr=training.lr * self.class_width / width)
        if training.objective.nullable:
            training = with_fields(training, objective=training.objective.with_anchor(self.class_anchor))
        return with_fields(training, epochs=self.class_epochs)

    def _at_rate(self, section: Literal["training", "label_training"], field: str, kind: str) -> TrainingConfig:
        training: TrainingConfig = getattr(self, section)
        if training.lr != type(self).model_fields[section].default.lr:
            raise ValueError(
                f"{section}.lr: no effect (found {training.lr:g}), because {kind} trains at the rate {field}. "
                f"Set {field} instead"
            )
        return with_fields(training, lr=getattr(self, field))

    def training_encoder(self, reading: EncoderConfig) -> EncoderConfig:
        """Return the encoder settings for training; views by dropout get the rate `DROPOUT` unless a rate is set."""
        if self.views != "dropout" or reading.dropout is not None:
            return reading
        return with_fields(reading, dropout=DROPOUT)

    @property
    def pairs(self) -> PairConfig:
        """The training pairs of the chosen views."""
        trip, names = self.trip, self.view_names
        if "dropout" in names:
            return ALONE
        pairings = [CROPS] if "crops" in names else []
        if trip is not None and "round trips" in names:
            sides = {"lang_1": self.lang, "lang_2": self.lang}
            pairings.append(ViewPair(view_1="original", view_2=trip.method, **sides))
        return PairConfig(pairings=tuple(pairings), drop_identical=True)
