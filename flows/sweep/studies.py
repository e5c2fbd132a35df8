"""The papers' ablations as grids over recipes, with the published row of each point.

`tiny-…` and `plus` run on a laptop: embedded sentences, translators and encoder, only STS-B.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bsl.flows.recipes.plus import VARIANTS
from bsl.flows.recipes.published_rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Values = tuple[Any, ...]
RECIPE: Final = "recipe"
"""Axis with recipes as values."""
VARIANT: Final = "variant"
"""Axis with a study's named changes as values."""
OWN: Final = "own"
"""Name of the study on the user's text, which `bsl.flows.sweep.own` declares for a text."""


@dataclass(frozen=True)
class Study:
    """A study: a grid over a recipe, with published rows.

    Attributes:
        title: Subject, and the table that printed it.
        recipe: Base recipe; an axis `recipe` overrides it.
        over: Field of the configuration → values; the last axis is the horizontal axis of the plot.
        changes: Other deviations from the recipe.
        row: Values of a point → name of the published row; None if there is no published row.
        suite: Suite of the published table.
        column: Column of that table: a set, or `avg`, which is plotted with the mean of all sets.
        references: Labels of the points that all others are compared with; the first point if empty.
        variants: Value of the axis `variant` → changes; a `recipe` among them overrides the study's recipe.
    """

    title: str
    recipe: str
    over: Mapping[str, Values]
    changes: Mapping[str, Any] = field(default_factory=dict)
    row: Callable[[Values], str | None] | None = None
    suite: str = "sts"
    column: str = "avg"
    references: tuple[str, ...] = ()
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


_AUGMENTATIONS: Final = ("nli", "synonym", "mlm", "entail", "nli-entail")
_CORPORA: Final = ("nli", "books", "books-nli")
_METHODS: Final = {
    "bsl": "BSL-BERT",
    "contrastive": "Contrastive",
    "tiny-bsl-normed": "BSL-BERT",
    "tiny-contrastive": "Contrastive",
}
_SYSTEMS: Final = (
    "bert-avg", "bert-cls", "bert-mlm", "tsdae", "flow", "whitening", "isbert", "simcse", "contrastive", "nli",
    "sbert-nli", "bsl-sbert-nli",
)  # fmt: skip
"""Recipes of the systems; without SCL, which starts from another encoder (`scl-lambda`)."""
_ROWS: Final = {recipe: row for row, recipes in ROWS.items() for recipe in recipes}
_ROWS_OF_SYSTEMS: Final = {**_ROWS, "whitening": "whitening, BERT-base"}  # its own row has no mean of seven sets
_TINY_SYSTEMS: Final = {
    "tiny-avg": "mean, BERT-base",
    "tiny-cls": "[CLS], BERT-base",
    "tiny-mlm": "BERT-mlm",
    "tiny-tsdae": None,
    "tiny-flow": "BERT-flow",
    "tiny-whitening": "whitening, BERT-base",
    "tiny-isbert": "IS-BERT-NLI",
    "tiny-simcse": "SimCSE, BERT-base",
    "tiny-contrastive": "Contrastive, batch 64",
    "tiny-bsl": "BSL-BERT",
    "tiny-bsl-normed": None,
    "tiny": None,
    "tiny-sbert": "SBERT",
    "tiny-scl": None,
    "tiny-bsl-sbert": "BSL-SBERT",
}
_MOMENTA: Final = (0.5, 0.9, 0.99, 0.999, 1)
_SIZES: Final = (16, 32, 64, 128)
_SHARES: Final = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
# Table 6 stops at 0.9; Table 2 has λ 1 under the same settings.
_LAST_SHARE: Final = "allpalln-lambda1.0-SCL"
_FIVE_YEARS: Final = {"evaluation": {"sets": [f"sts{year}/test" for year in range(12, 17)]}}
_SENTEVAL: Final = {"evaluation": {"sets": ["senteval"]}}


def _number(weight: float, positives: int | None, negatives: int | None) -> Mapping[str, Any]:
    return {"training": {"objective": {"weight": weight, "positives": positives, "negatives": negatives}}}


_NUMBERS: Final = {
    "3p3n-lambda0.5-SCL": _number(0.5, 3, 3),
    "3palln-lambda0.5-SCL": _number(0.5, 3, None),
    "allpalln-lambda0.5-SCL": _number(0.5, None, None),
    "3all3n-lambda1.0-SCL": _number(1.0, 3, 3),
    "3palln-lambda1.0-SCL": _number(1.0, 3, None),
    "allpalln-lambda1.0-SCL": _number(1.0, None, None),
}
"""Rows of Table 2 (SCL). `3all3n` is read as `3p3n`, as in the rows of λ 0.5."""
_ONE_PASS: Final = {
    "ingest": {"corpus": {"limit": 2500}},
    "training": {"epochs": 1, "max_steps": None, "eval_every": 50},
}
"""One pass over the same pairs at every batch size, as in Table 7 (BSL)."""


def _momentum(values: Values) -> str:
    return f"BSL-BERT, momentum {values[0]}"


def _batch(values: Values) -> str:
    return f"{_METHODS[values[0]]}, batch {values[1]}"


def _share(values: Values) -> str:
    return f"SCL, λ = {values[0]}" if values[0] < 1 else _LAST_SHARE


STUDIES: Final[Mapping[str, Study]] = {
    "momentum": Study(
        "Momentum (BSL, Table 6)",
        "nli",
        {"training.objective.momentum": _MOMENTA},
        row=_momentum,
        column="stsb",
    ),
    "batch": Study(
        "Batch size, with and without negatives (BSL, Table 7)",
        "nli",
        {"training.objective": ("bsl", "contrastive"), "training.batch_size": _SIZES},
        row=_batch,
    ),
    "corpus": Study("Corpora (BSL, Table 4)", "nli", {"recipe": _CORPORA}, row=lambda at: _ROWS[at[0]]),
    "augmentation": Study(
        "Augmentations (BSL, Table 4)", "nli", {"recipe": _AUGMENTATIONS}, row=lambda at: _ROWS[at[0]]
    ),
    "predictor": Study(
        "Predictor (BSL, section 4 and Table 8)",
        "nli",
        {"training.objective.predictor": ("paper", "released"), "training.objective.k": (4, 8)},
    ),
    "search": Study(
        "Search of learning rate and weight decay (BSL, Table 8)",
        "nli",
        {"training.weight_decay": (0.1, 0.01, 0.001), "training.lr": (1e-4, 2e-4, 5e-4)},
    ),
    "scl-lambda": Study(
        "λ of supervised contrastive learning (SCL, Table 6, which weights a set's parts by their pairs)",
        "scl",
        {"training.objective.weight": _SHARES},
        _FIVE_YEARS,
        _share,
        "sts12-16",
    ),
    "scl-temperature": Study(
        "Temperature of supervised contrastive learning (SCL, Table 7, which weights a set's parts by their pairs)",
        "scl",
        {"training.objective.temperature": (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)},
        {**_FIVE_YEARS, "training": {"objective": {"weight": 0.5}}},  # the published row of T = 1.0 is that of λ = 0.5
        lambda at: f"SCL, T = {at[0]}",
        "sts12-16",
    ),
    "scl-lambda-senteval": Study(
        "λ of supervised contrastive learning on SentEval (SCL, Table 4)",
        "scl",
        {"training.objective.weight": _SHARES},
        _SENTEVAL,
        _share,
        "senteval-8",
    ),
    "scl-temperature-senteval": Study(
        "Temperature of supervised contrastive learning on SentEval (SCL, Table 5)",
        "scl",
        {"training.objective.temperature": (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)},
        {**_SENTEVAL, "training": {"objective": {"weight": 0.5}}},
        lambda at: f"SCL, T = {at[0]}",
        "senteval-8",
    ),
    "scl-numbers": Study(
        "Numbers of positives and negatives of supervised contrastive learning (SCL, Table 2)",
        "scl",
        {"variant": tuple(_NUMBERS)},
        _FIVE_YEARS,
        lambda at: at[0],
        "sts12-16",
        variants=_NUMBERS,
    ),
    "systems": Study(
        "Systems (BSL, Tables 1 and 7; others as quoted)",
        "nli",
        {"recipe": _SYSTEMS},
        row=lambda at: _ROWS_OF_SYSTEMS.get(at[0]),
        references=("bert-avg", "nli"),
    ),
    "tiny-momentum": Study(
        "Momentum on the embedded encoder, target standardised (BERT-base: BSL, Table 6)",
        "tiny-bsl-normed",
        {"training.objective.momentum": _MOMENTA},
        row=_momentum,
        column="stsb",
    ),
    "tiny-batch": Study(
        "Batch size on the embedded encoder, one pass over 2,500 sentences (BERT-base: BSL, Table 7)",
        "tiny-bsl-normed",
        {"recipe": ("tiny-bsl-normed", "tiny-contrastive"), "training.batch_size": _SIZES},
        _ONE_PASS,
        _batch,
    ),
    "tiny-scl-lambda": Study(
        "λ of supervised contrastive learning on the embedded encoder (8-layer BERT: SCL, Table 6)",
        "tiny-scl",
        {"training.objective.weight": _SHARES},
        row=_share,
        suite="sts12-16",
    ),
    "tiny-scl-temperature": Study(
        "Temperature of supervised contrastive learning of cosines on the embedded encoder",
        "tiny-scl",
        {"training.objective.temperature": (0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)},
        {"training": {"objective": {"weight": 0.5}}},
    ),
    "tiny-systems": Study(
        "Systems on the embedded encoder",
        "tiny",
        {"recipe": tuple(_TINY_SYSTEMS)},
        {"ingest": {"corpus": {"limit": None}}},  # only `tiny` limits its sentences
        row=lambda at: _TINY_SYSTEMS[at[0]],
        references=("tiny-avg", "tiny-bsl-normed"),
    ),
    "plus": Study(
        "BSL+ on the embedded encoder, without each of its parts, and other methods",
        "tiny-plus",
        {"variant": tuple(VARIANTS)},
        variants=VARIANTS,
    ),
}
"""Studies by name."""
