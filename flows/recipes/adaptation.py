"""What `bsl adapt` does unless told otherwise: settings that cannot wreck an encoder, and their proof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from flows.recipes.shared import ALONE, ANCHOR, CROPS, PIVOTS, trips_of
from models.corpus.passages import HoldOutConfig
from models.encoder.config import EncoderConfig
from models.evaluation.config import EvaluationConfig
from models.evaluation.proof import AdaptationEvaluationConfig
from models.objectives.config import ContrastiveConfig, RegressionConfig
from models.training.config import TrainingConfig
from models.translation.config import CATALOGS, OPUS_MT, TranslatorConfig
from models.views.config import AugmentConfig, CropView, TranslatedView
from models.views.pairs import PairConfig, ViewPair
from storage.sources.own_text import sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models.corpus.labels import Use
    from storage.sources.own_text import TextSource

DEFAULT_ENCODER: Final = "embedded:mini-sentence"
STSB: Final = "embedded:stsb/test"
"""The general set that is always asked of."""
DROPOUT: Final = 0.1  # BERT's own rate; the embedded encoders have none

# Small steps, and few of them: what a good encoder knows is soon lost. A hundred gain no more on labels, at twice the
# cost (docs/research-log.md).
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


# Cosines of pairs learn to be 1 within a class and 0 between classes, or the given score. Pairs of classes are read
# once, so that few labels take few steps: rate × steps is SetFit's (20 pairs of either kind a text, 16 a step, 2e-5),
# by two fifths of its pairs. Scored pairs gained by being read again (docs/research-log.md).
LABELLED: Final = GENTLE.model_copy(
    update={
        "objective": RegressionConfig(),
        "lr": 1e-4,
        "batch_size": 32,
        "drop_last": False,
        "max_steps": 60,
        "eval_every": 60,
    }
)
LABELS: Final = "labels"  # as a name of what is learnt
_TAUGHT: Final[dict[str, tuple[str, ...]]] = {
    "auto": ("crops",),
    "crops": ("crops",),
    "round trips": ("round trips",),
    "both": ("crops", "round trips"),
    "dropout": ("dropout",),
}


class ReadingConfig(BaseModel):
    """What the columns of own files hold, where the guess is to be overruled, and the language that they are in."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    columns: tuple[str, ...] = ()
    """Columns that hold text, where the guess is to be overruled."""
    title: str | None = None
    """Column that holds a title, where the guess is to be overruled; "" where none does."""
    document: str | None = None
    """Column whose equal values make a document; such as a source, where whole sources are to be held out; "" where
    none does."""
    lang: str = Field("en", pattern=r"^[a-z]{2,3}$")
    """ISO 639 code of the text."""

    def sources(self, texts: Sequence[str], mirror: str | None) -> tuple[TextSource, ...]:
        """The files, and what is read of them.

        Raises:
            SourceError: one of them is nowhere to be had, or no column of it holds text.
        """
        return sources(
            texts,
            mirror=mirror,
            lang=self.lang,
            columns=self.columns,
            title=self.title,
            document=self.document,
        )


class AdaptConfig(ReadingConfig):
    """How an encoder is adapted to somebody's text."""

    encoder: EncoderConfig = EncoderConfig(model=DEFAULT_ENCODER)
    """How a bare transformer is read; what a sentence-transformers folder says of itself holds."""
    hold_out: HoldOutConfig = HoldOutConfig()
    """What training does not see."""
    views: Literal["auto", "crops", "round trips", "both", "dropout"] = "auto"
    """What is learnt to belong together, unless labels teach: crops (`auto`), round trips, both, or a sentence beside
    itself, read twice under dropout (as SimCSE). Round trips by the embedded translators made a good encoder worse."""
    translators: str | dict[str, TranslatorConfig] = "embedded"
    """`embedded`, `opus-mt`, or a table by direction, such as `en-de`; "" for none."""
    pivots: tuple[str, ...] = PIVOTS
    """Languages through which a round trip may go; the first that the translators know both ways."""
    translated: int = Field(1500, ge=0)
    """Most sentences to learn from that are translated."""
    training: TrainingConfig = GENTLE
    """Objective, optimizer and schedule."""
    label_training: TrainingConfig = LABELLED
    """The same where labels teach, which they do in the place of views."""
    class_epochs: int = Field(1, ge=1, le=1000)
    """Passes over the pairs of classes, instead of `label_training.epochs`: few labels are to take few steps."""
    raw_lr: float = Field(2e-4, gt=0, le=1)
    """Peak learning rate, instead of `training.lr`, of a bare transformer: it has not learnt to compare sentences yet,
    so there is more to learn and less to forget."""
    raw_anchor: float = Field(ANCHOR, ge=0, le=100)
    """How firmly a bare transformer is held to its start, instead of `training.objective.anchor_weight`, where the
    objective is `contrastive`."""
    proof: AdaptationEvaluationConfig = AdaptationEvaluationConfig()
    """What is asked of the adapted encoder."""
    evaluation: EvaluationConfig = EvaluationConfig(sets=(STSB,), dev="embedded:stsb/dev")
    """General sets, each of which it may not forget, STS-B always among them; `dev` helps to choose."""

    @field_validator("translators")
    @classmethod
    def _are_known(cls, named: str | dict[str, TranslatorConfig]) -> str | dict[str, TranslatorConfig]:
        if isinstance(named, str) and named and named not in CATALOGS:
            raise ValueError(f"no table of translators is called {named!r}; there are {', '.join(CATALOGS)}")
        return named

    @model_validator(mode="after")
    def _can_be_translated(self) -> Self:
        if self.views in ("round trips", "both") and (self.trip is None or self.translated == 0):
            others = (
                "other translators (opus-mt)" if trips_of(self.lang, OPUS_MT, self.pivots) else "translators of yours"
            )
            raise ValueError(
                f"views {self.views!r} of text in {self.lang!r}, {self.translated} sentences by the translators "
                f"{self.translators if isinstance(self.translators, str) else [*self.translators]!r}: expected a way "
                f"through one of {', '.join(self.pivots)} and back; give {others}, or views 'crops'"
            )
        return self

    @property
    def trip(self) -> TranslatedView | None:
        """The round trip for the language; None where no translator knows the way."""
        known = CATALOGS.get(self.translators, {}) if isinstance(self.translators, str) else self.translators
        return next(iter(trips_of(self.lang, known, self.pivots)), None)

    def use_of(self, *, labels: bool, only_judge: bool) -> Use:
        """What labels are for.

        Args:
            labels: whether there are any.
            only_judge: whether they are kept from training.

        Raises:
            ValueError: they are kept from training and there are none, or teach where views are asked for.
        """
        if only_judge and not labels:
            raise ValueError("--labels-only-judge without --labels; give a file of labels, or leave it out")
        if labels and not only_judge and self.views != "auto":
            raise ValueError(
                f"views {self.views!r} with labels that teach, which they do in the place of views; leave --views out, "
                "or give --labels-only-judge"
            )
        return "adapt" if labels and not only_judge else "judge"

    @property
    def taught(self) -> tuple[str, ...]:
        """Names of the views that are learnt."""
        return _TAUGHT[self.views]

    def views_of(self, taught: tuple[str, ...]) -> AugmentConfig:
        """Views of the corpus that is learnt, beside its round trips: its sentences, and crops if these are learnt."""
        return AugmentConfig(rewritings=(CropView(),) if "crops" in taught else ())

    def trained(self, *, raw: bool) -> TrainingConfig:
        """The training of a start that is a bare transformer, or a sentence encoder already."""
        if not raw:
            return self.training
        objective = self.training.objective
        if isinstance(objective, ContrastiveConfig):
            objective = objective.model_copy(update={"anchor_weight": self.raw_anchor})
        return self.training.model_copy(update={"lr": self.raw_lr, "objective": objective})

    def taught_by(self, kind: Literal["pairs", "classes"]) -> TrainingConfig:
        """The training of scored pairs, or of the pairs that classes become."""
        if kind == "pairs":
            return self.label_training
        return self.label_training.model_copy(update={"epochs": self.class_epochs})

    def learning(self, reading: EncoderConfig, taught: tuple[str, ...]) -> EncoderConfig:
        """The encoder while it learns: with dropout where that makes the views, unless a rate was given."""
        if "dropout" not in taught or reading.dropout is not None:
            return reading
        return reading.model_copy(update={"dropout": DROPOUT})

    def pairs(self, taught: tuple[str, ...]) -> PairConfig:
        """The pairs of the views that are learnt."""
        trip = self.trip
        if "dropout" in taught:
            return ALONE
        pairings = [CROPS] if "crops" in taught else []
        if trip is not None and "round trips" in taught:
            sides = {"lang_1": self.lang, "lang_2": self.lang}
            pairings.append(ViewPair(view_1="original", view_2=trip.method, **sides))
        return PairConfig(pairings=tuple(pairings), drop_identical=True)
