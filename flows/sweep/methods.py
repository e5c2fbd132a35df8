"""Methods that `bsl field` compares: training objectives, transforms and baselines, with their settings.

A small encoder is trained with the settings of the `tiny-*` recipes, a larger encoder with those of the papers. A
sentence encoder is trained at a low learning rate, because the papers' rates make it worse (docs/research-log.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from flows.recipes.shared import ANCHOR, LABEL_REGRESSION
from models.encoder.config import CNNConfig
from models.objectives.config import (
    BarlowConfig,
    BSLConfig,
    ContrastiveConfig,
    DistilConfig,
    ISBERTConfig,
    MaskedLMConfig,
    SimCSEConfig,
    TSDAEConfig,
    VICRegConfig,
)
from models.training.config import TrainingConfig
from models.transforms.config import FlowConfig, WhiteningConfig
from storage.filesystem.spelling import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from models.objectives.config import AnyObjective
    from models.runtime.precision import Precision
    from models.transforms.config import AnyTransform

Views = Literal["sentence", "deleted", "round trips", "crops", "labels"]
Start = Literal["small", "raw", "trained"]
"""Kind of original encoder: a masked language model up to width `SMALL`, a wider masked language model, or a sentence
encoder."""
SMALL: Final = 384
START: Final = "mean"
"""Baseline of all other methods: the original encoder."""
WORDS: Final = "tfidf"
LABELS: Final = "labels"
MAX_EPOCHS: Final = 1000  # unless the text is very small, the budget of steps ends training earlier
PROBED: Final = {"round trips": "round trip", "crops": "crop"}
"""Views → the question about held-out text made in the same way; reported only if a method trains on the views."""


@dataclass(frozen=True)
class Rates:
    """Peak learning rates by kind of original encoder."""

    small: float
    raw: float
    trained: float = 2e-5


@dataclass(frozen=True)
class Method:
    """A method of `bsl field`.

    Attributes:
        name: Name in `--methods`.
        title: Name on pages.
        views: Views to pair; None without pairs.
        objective: Training objective; None if the method trains no encoder.
        rates: Learning rates.
        training: Other training settings.
        encoder: Encoder settings for training.
        transform: Transform fitted on the encoder's vectors of the text, instead of training.
        anchor: Anchor weight, which keeps a masked language model close to the original; unused for sentence encoders.
    """

    name: str
    title: str
    views: Views | None = None
    objective: AnyObjective | None = None
    rates: Rates = Rates(3e-4, 3e-5)
    training: Mapping[str, Any] = field(default_factory=dict)
    encoder: Mapping[str, Any] = field(default_factory=dict)
    transform: AnyTransform | None = None
    anchor: float = 0.0

    @property
    def steps(self) -> bool:
        """Whether the method trains in steps, which the budget limits."""
        return self.objective is not None or isinstance(self.transform, FlowConfig)

    def configured(self, start: Start, steps: int, seed: int = 0, precision: Precision = "auto") -> TrainingConfig:
        """Return the training settings for a kind of encoder and a number of steps; the last step is the checkpoint.

        A dev set would select on other text, and favour the methods that depend most on selection.
        """
        assert self.objective is not None  # called only for methods that train
        settings = {"batch_size": 64, **self.training}
        anchored = {"anchor_weight": self.anchor} if self.anchor and start != "trained" else {}
        return TrainingConfig(
            objective=self.objective.model_copy(update=anchored),
            lr=getattr(self.rates, start),
            max_steps=steps,
            epochs=MAX_EPOCHS,
            precision=precision,
            select="last",
            collapse=None,
            seed=seed,
            **settings,
        )

    def fitted(self, width: int, steps: int, seed: int = 0) -> AnyTransform:
        """Return the transform for vectors of a width: whitening halves the width, a flow trains for `steps` steps."""
        assert self.transform is not None  # called only for methods that fit
        if isinstance(self.transform, WhiteningConfig):
            return self.transform.model_copy(update={"dimensions": max(1, width // 2)})
        if not self.steps:
            return self.transform
        return self.transform.model_copy(update={"max_steps": steps, "epochs": MAX_EPOCHS, "seed": seed})


_TWO_BRANCHES: Final = Rates(1e-3, 1e-4)
_DROPS: Final = {"dropout": 0.1}
_PLAIN: Final = {"weight_decay": 0.0, "warmup": 0.0}

METHODS: Final = (
    Method(START, "original encoder"),
    Method(WORDS, "TF-IDF"),
    Method("whitening", "whitening", transform=WhiteningConfig()),
    Method("flow", "flow", transform=FlowConfig()),
    Method("masked-lm", "masked LM", "sentence", MaskedLMConfig(), Rates(1e-4, 5e-5)),
    Method("tsdae", "TSDAE", "deleted", TSDAEConfig(), training={**_PLAIN, "decay": "constant"}),
    Method(
        "isbert",
        "IS-BERT",
        "sentence",
        ISBERTConfig(),
        Rates(2e-6, 2e-6, 2e-6),
        {"eps": 1e-7, "bias_correction": False},
        {"cnn": CNNConfig(relu=False)},
    ),
    Method("simcse", "SimCSE", "sentence", SimCSEConfig(), training={**_PLAIN, "eps": 1e-8}, encoder=_DROPS),
    Method("contrastive", "contrastive", "round trips", ContrastiveConfig(), _TWO_BRANCHES, encoder=_DROPS),
    Method("vicreg", "VICReg", "round trips", VICRegConfig(target_norm="standardize"), _TWO_BRANCHES, encoder=_DROPS),
    Method(
        "barlow", "Barlow Twins", "round trips", BarlowConfig(target_norm="standardize"), _TWO_BRANCHES, encoder=_DROPS
    ),
    Method("bsl", "BSL", "round trips", BSLConfig(target_norm="standardize"), _TWO_BRANCHES, encoder=_DROPS),
    Method(
        "bsl-negatives",
        "BSL + in-batch negatives",
        "round trips",
        BSLConfig(contrastive_weight=0.1),
        _TWO_BRANCHES,
        encoder=_DROPS,
    ),
    Method("crops", "crops", "crops", ContrastiveConfig(), Rates(2e-4, 2e-4), anchor=ANCHOR),
    Method(
        "distil",
        "distillation",
        "sentence",
        DistilConfig(vectors_weight=5.0, distance="cosine", views="first"),
        Rates(1e-3, 1e-4, 1e-4),
        {"batch_size": 128},
    ),
    Method(LABELS, "your labels", "labels", LABEL_REGRESSION, Rates(3e-4, 2e-5), {"batch_size": 48}),
)
"""Methods in the order of the pages; the original encoder is first."""
NAMES: Final = tuple(method.name for method in METHODS)


def methods_of(names: Iterable[str] | None) -> tuple[Method, ...]:
    """Return methods by name, always with the original encoder first; all methods for None.

    Raises:
        ValueError: A name is unknown; the message lists all names and suggests the closest.
    """
    requested = {START, *(NAMES if names is None else names)}
    if unknown := sorted(requested - set(NAMES)):
        raise ValueError(f"unknown method {unknown[0]!r}.{did_you_mean(unknown[0], NAMES)} Methods: {', '.join(NAMES)}")
    return tuple(method for method in METHODS if method.name in requested)
