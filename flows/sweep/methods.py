"""The methods that `bsl field` holds against each other: a table of points, from a name to what is trained or fitted.

Settings are those of the `tiny-*` recipes for an encoder as small as theirs, of the papers for a larger one, and gentle
ones for an encoder that is good already, which the papers' rates unlearn (docs/research-log.md).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from flows.recipes.shared import ANCHOR
from models.encoder.config import CNNConfig
from models.objectives.config import (
    BarlowConfig,
    BSLConfig,
    ContrastiveConfig,
    DistilConfig,
    ISBERTConfig,
    MaskedLMConfig,
    RegressionConfig,
    SimCSEConfig,
    TSDAEConfig,
    VICRegConfig,
)
from models.training.config import TrainingConfig
from models.transforms.config import FlowConfig, WhiteningConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from models.objectives.config import AnyObjective
    from models.runtime.precision import Precision
    from models.transforms.config import AnyTransform

Views = Literal["sentence", "deleted", "round trips", "crops", "labels"]
Start = Literal["small", "raw", "trained"]
"""What training starts from: a masked language model no wider than `SMALL`, a larger one, or a sentence encoder."""
SMALL: Final = 384
START: Final = "mean"
"""The encoder as it is, which every other method is compared with."""
WORDS: Final = "tfidf"
LABELS: Final = "labels"
FOREVER: Final = 1000  # epochs; the budget ends training before
PROBED: Final = {"round trips": "round trip", "crops": "crop"}
"""Views → the question about held-out text that is made as they are: where a method learns them, it decides nothing."""


@dataclass(frozen=True)
class Rates:
    """Peak learning rates by what training starts from."""

    small: float
    raw: float
    trained: float = 2e-5


@dataclass(frozen=True)
class Method:
    """A point of the table.

    Attributes:
        name: what `--methods` calls it.
        title: what pages call it.
        views: what its pairs are made of; None if it learns from no pairs.
        objective: what it minimises; None if it trains no encoder.
        rates: its learning rates.
        training: its other settings of training.
        encoder: settings of the encoder while it learns.
        transform: what is fitted on the encoder's vectors of the text instead.
        taught: whether a teacher's vectors are learnt from.
        headless: whether it starts only from encoders without modules after pooling.
        anchor: how firmly it holds a masked language model to its start; an encoder of sentences is free.
    """

    name: str
    title: str
    views: Views | None = None
    objective: AnyObjective | None = None
    rates: Rates = Rates(3e-4, 3e-5)
    training: Mapping[str, Any] = field(default_factory=dict)
    encoder: Mapping[str, Any] = field(default_factory=dict)
    transform: AnyTransform | None = None
    taught: bool = False
    headless: bool = False
    anchor: float = 0.0

    @property
    def steps(self) -> bool:
        """Whether it takes steps, of which a budget is."""
        return self.objective is not None or isinstance(self.transform, FlowConfig)

    def configured(self, start: Start, steps: int, seed: int = 0, precision: Precision = "auto") -> TrainingConfig:
        """Its training from a kind of start, with so many steps; the last one is kept and nothing stops it.

        A dev set would choose by another text than the one at hand, and help those most that need it most.
        """
        assert self.objective is not None  # asked of methods that train
        settings = {"batch_size": 64, **self.training}
        held = {"anchor_weight": self.anchor} if self.anchor and start != "trained" else {}
        return TrainingConfig(
            objective=self.objective.model_copy(update=held),
            lr=getattr(self.rates, start),
            max_steps=steps,
            epochs=FOREVER,
            precision=precision,
            select="last",
            collapse=None,
            seed=seed,
            **settings,
        )

    def fitted(self, width: int, steps: int, seed: int = 0) -> AnyTransform:
        """Its transform of vectors of a width: whitening keeps half of it, a flow takes so many steps."""
        assert self.transform is not None  # asked of methods that fit
        if isinstance(self.transform, WhiteningConfig):
            return self.transform.model_copy(update={"dimensions": max(1, width // 2)})
        if not self.steps:
            return self.transform
        return self.transform.model_copy(update={"max_steps": steps, "epochs": FOREVER, "seed": seed})


_TWO_BRANCHES: Final = Rates(1e-3, 1e-4)
_DROPS: Final = {"dropout": 0.1}
_PLAIN: Final = {"weight_decay": 0.0, "warmup": 0.0}

METHODS: Final = (
    Method(START, "as it is"),
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
        headless=True,
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
        taught=True,
    ),
    Method(LABELS, "your labels", "labels", RegressionConfig(), Rates(3e-4, 2e-5), {"batch_size": 32}),
)
"""In the order of the pages; the first is the start."""
NAMES: Final = tuple(method.name for method in METHODS)


def methods_of(names: Iterable[str] | None) -> tuple[Method, ...]:
    """The methods of some names, the start always first; all of them unless names are given.

    Raises:
        ValueError: a name is of no method; the names and the nearest are given.
    """
    asked = {START, *(NAMES if names is None else names)}
    if unknown := sorted(asked - set(NAMES)):
        nearest = difflib.get_close_matches(unknown[0], NAMES, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"no method is called {unknown[0]!r}; there are {', '.join(NAMES)}.{hint}")
    return tuple(method for method in METHODS if method.name in asked)
