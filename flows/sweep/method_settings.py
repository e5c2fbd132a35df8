"""What `bsl field` is told: which methods, for how long, on which text, and what their pairs are made of then."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from flows.recipes.adaptation import ReadingConfig
from flows.recipes.shared import CROPS, NO_VIEWS, trips_of
from flows.recipes.tiny import whole_sample
from flows.sweep.methods import NAMES
from models.corpus.passages import HoldOutConfig
from models.evaluation.config import BootstrapConfig
from models.runtime.precision import Precision
from models.translation.config import CATALOGS
from models.translation.filters import UNFILTERED
from models.views.config import ORIGINAL, AugmentConfig, CropView, DeletedView
from models.views.pairs import PairConfig, ViewPair
from storage.record import Record

if TYPE_CHECKING:
    from flows.sweep.methods import Views
    from models.views.config import TranslatedView

    MethodName = str
else:
    MethodName = Literal[NAMES]  # so that the UI's form offers them


class Budget(Record):
    """What each method may take."""

    seconds: float | None = Field(None, gt=0)
    """Of training steps; the pace of each method is measured once (`tasks/training/step_timing.py`)."""
    steps: int | None = Field(None, ge=1)
    """Optimizer steps, whatever they take."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.seconds is None) == (self.steps is None):
            raise ValueError(f"budget of seconds {self.seconds} and steps {self.steps}: expected one of them")
        return self

    @property
    def spelled(self) -> str:
        """For people."""
        return f"{self.steps:,} steps" if self.seconds is None else f"{self.seconds:g} s"


class FieldSettings(ReadingConfig):
    """What is tried on a text, for how long, and how it is judged."""

    methods: tuple[MethodName, ...] | None = None
    """Names of `METHODS`; all unless given. The encoder as it is is always there."""
    budget: Budget = Budget(seconds=120)
    """Of each method."""
    seeds: int = Field(1, ge=1, le=100)
    """Runs of each method that draws."""
    sentences: int = Field(20_000, ge=100)
    """Most sentences that are learnt; of more, runs of neighbours are drawn."""
    held: int = Field(1_000, ge=100)
    """Most sentences of each of the two held-out parts."""
    questions: int = Field(1_000, ge=30)
    """Most questions of a probe."""
    translators: Literal["embedded", "opus-mt"] = "embedded"
    """Of the round trips."""
    teacher: str | None = None
    """Encoder that teaches in distillation; by default the one that starts where it is better than
    `embedded:mini-sentence` on STS-B's dev set, else that."""
    may_forget: float = Field(0.005, ge=0, le=2)
    """By how much a method's figure on STS-B may fall before it is not to be chosen, sure or not."""
    precision: Precision = "auto"
    """Of training and of encoding. `auto`: bf16 where the device computes in it natively, else fp32."""
    bootstrap: BootstrapConfig = BootstrapConfig(resamples=10_000)
    """Draws; all pairs of many methods need many."""

    @property
    def trips(self) -> tuple[TranslatedView, ...]:
        """The round trips for the language; none where no translator knows a way."""
        return trips_of(self.lang, CATALOGS[self.translators])

    @property
    def hold_out(self) -> HoldOutConfig:
        """What is held out."""
        return HoldOutConfig(limit=self.sentences, choose=self.held, report=self.held)


def budget_of(text: str) -> Budget:
    """`90s`, `10m`, `1.5h` or `200steps`.

    Raises:
        ValueError: it has another form.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h|steps)", text)
    if match is None or (match[2] == "steps" and "." in match[1]):
        raise ValueError(f"a budget of {text!r}; expected seconds, minutes, hours or steps: 90s, 10m, 1.5h, 200steps")
    if match[2] == "steps":
        return Budget(steps=int(match[1]))
    return Budget(seconds=float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]])


def augmentation(views: Views, settings: FieldSettings) -> AugmentConfig:
    """The views that a method's pairs are made of, without labels."""
    if views == "round trips":
        return AugmentConfig(translations=settings.trips)
    if views == "deleted":
        return AugmentConfig(rewritings=(DeletedView(),), filters=UNFILTERED)
    if views == "crops":
        return AugmentConfig(rewritings=(CropView(),))
    return NO_VIEWS


def pairing(views: Views, settings: FieldSettings) -> PairConfig:
    """How a method's views are paired: round trips as by `tiny`, for embedded translators lose much of a sentence."""
    spoken = {"lang_1": settings.lang, "lang_2": settings.lang}
    if views == "crops":
        return PairConfig(pairings=(CROPS.model_copy(update=spoken),), drop_identical=True)
    sides = [("deleted" if views == "deleted" else ORIGINAL, ORIGINAL)]
    if views == "round trips":
        methods = [trip.method for trip in settings.trips]
        sides = [*itertools.combinations(methods, 2), *((ORIGINAL, method) for method in methods)]
    base = whole_sample().pairs if views == "round trips" else PairConfig()
    pairings = tuple(ViewPair(view_1=one, view_2=two, **spoken) for one, two in sides)
    return base.model_copy(update={"pairings": pairings})
