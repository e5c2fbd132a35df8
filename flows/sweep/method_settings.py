"""Settings of `bsl field`: methods, budget and text, and the views and pairs of each method."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

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
from storage.sources.own_text import ReadingConfig

if TYPE_CHECKING:
    from flows.sweep.methods import Views
    from models.views.config import TranslatedView

    MethodName = str
else:
    MethodName = Literal[NAMES]  # Prefect's run form lists these names


class Budget(Record):
    """Training budget of each method."""

    seconds: float | None = Field(None, gt=0)
    """Seconds of training steps; the pace of each method is measured once (`tasks/training/step_timing.py`)."""
    steps: int | None = Field(None, ge=1)
    """Optimizer steps, regardless of their time."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.seconds is None) == (self.steps is None):
            raise ValueError(f"seconds {self.seconds} and steps {self.steps}: expected exactly one of them")
        return self

    @property
    def spelled(self) -> str:
        """The budget as text."""
        return f"{self.steps:,} steps" if self.seconds is None else f"{self.seconds:g} s"


class FieldSettings(ReadingConfig):
    """Methods to try on a text, their budget, and their evaluation."""

    methods: tuple[MethodName, ...] | None = None
    """Names of `METHODS`; all by default. The original encoder is always included."""
    budget: Budget = Budget(seconds=120)
    """Training budget of each method."""
    seeds: int = Field(1, ge=1, le=100)
    """Number of runs of each method that depends on the seed."""
    sentences: int = Field(20_000, ge=100)
    """Maximum number of training sentences; a longer text is sampled in runs of neighbouring sentences."""
    held_out: int = Field(2_000, ge=100)
    """Maximum number of held-out sentences."""
    questions: int = Field(1_000, ge=30)
    """Maximum number of questions of each kind."""
    translators: Literal["embedded", "opus-mt"] = "embedded"
    """Translators of the round trips."""
    teacher: str | None = None
    """Teacher of distillation; by default the original encoder if it is better than `embedded:mini-sentence` on STS-B's
    dev set, else `embedded:mini-sentence`."""
    may_forget: float = Field(0.005, ge=0, le=2)
    """Maximum drop of a method on STS-B, significant or not; a method with a larger drop is not recommended."""
    precision: Precision = "auto"
    """Precision of training and encoding. `auto`: bf16 if the device is faster in it, else fp32."""
    bootstrap: BootstrapConfig = BootstrapConfig(resamples=10_000)
    """Bootstrap settings; a comparison of all pairs of methods needs many draws."""

    @property
    def trips(self) -> tuple[TranslatedView, ...]:
        """The round trips from the language of the text; empty if no translators cover it."""
        return trips_of(self.lang, CATALOGS[self.translators])

    @property
    def hold_out(self) -> HoldOutConfig:
        """Limits of the training part and the held-out part."""
        return HoldOutConfig(limit=self.sentences, report=self.held_out)


def budget_of(text: str) -> Budget:
    """Parse `90s`, `10m`, `1.5h` or `200steps`.

    Raises:
        ValueError: The text has another form.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h|steps)", text)
    if match is None or (match[2] == "steps" and "." in match[1]):
        raise ValueError(
            f"budget {text!r}: expected seconds, minutes, hours or steps, for example 90s, 10m or 200steps"
        )
    if match[2] == "steps":
        return Budget(steps=int(match[1]))
    return Budget(seconds=float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]])


def augmentation(views: Views, settings: FieldSettings) -> AugmentConfig:
    """Return the views for the pairs of a method that trains without labels."""
    if views == "round trips":
        return AugmentConfig(translations=settings.trips)
    if views == "deleted":
        return AugmentConfig(rewritings=(DeletedView(),), filters=UNFILTERED)
    if views == "crops":
        return AugmentConfig(rewritings=(CropView(),))
    return NO_VIEWS


def pairing(views: Views, settings: FieldSettings) -> PairConfig:
    """Return the pairing of a method's views; round trips are paired as in `tiny`, because they lose much meaning."""
    langs = {"lang_1": settings.lang, "lang_2": settings.lang}
    if views == "crops":
        return PairConfig(pairings=(CROPS.model_copy(update=langs),), drop_identical=True)
    sides = [("deleted" if views == "deleted" else ORIGINAL, ORIGINAL)]
    if views == "round trips":
        methods = [trip.method for trip in settings.trips]
        sides = [*itertools.combinations(methods, 2), *((ORIGINAL, method) for method in methods)]
    base = whole_sample().pairs if views == "round trips" else PairConfig()
    pairings = tuple(ViewPair(view_1=one, view_2=two, **langs) for one, two in sides)
    return base.model_copy(update={"pairings": pairings})
