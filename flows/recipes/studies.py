"""The papers' ablations as grids over recipes, each with the row that was printed at its points."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Values = tuple[Any, ...]

_UNSTOPPED: Final = {"training": {"collapse": None}}  # a table needs the figure of what collapsed too


@dataclass(frozen=True)
class Study:
    """A grid.

    Attributes:
        title: what it shows and which table printed it.
        recipe: what the grid changes; an axis called `recipe` takes its place.
        over: field of the configuration → its values; the last axis is the plot's horizontal one.
        changes: other deviations from the recipe.
        row: from a point's values to the published row's name; None where none is printed.
        column: the cell of that row.
    """

    title: str
    recipe: str
    over: Mapping[str, Values]
    changes: Mapping[str, Any] = field(default_factory=dict)
    row: Callable[[Values], str] | None = None
    column: str = "avg"


_AUGMENTATIONS: Final = {
    "nli": "BSL-BERT",
    "synonym": "BSL-BERT, Synonym",
    "mlm": "BSL-BERT, MLM",
    "entail": "BSL-BERT, NLI_entail",
    "nli-entail": "BSL-BERT, Back-translation + NLI_entail",
}
_CORPORA: Final = {"nli": "BSL-BERT", "books": "BSL-BERT, 5M Book", "books-nli": "BSL-BERT, 5M Book + NLI"}
_METHODS: Final = {"bsl": "BSL-BERT", "contrastive": "Contrastive"}

STUDIES: Final[Mapping[str, Study]] = {
    "momentum": Study(
        "Momentum (BSL, Table 6)",
        "nli",
        {"training.objective.momentum": (0.5, 0.9, 0.99, 0.999, 1)},
        _UNSTOPPED,
        lambda values: f"BSL-BERT, momentum {values[0]}",
        "stsb",
    ),
    "batch": Study(
        "Batch size, with and without negatives (BSL, Table 7)",
        "nli",
        {"training.objective": tuple(_METHODS), "training.batch_size": (16, 32, 64, 128)},
        _UNSTOPPED,
        lambda values: f"{_METHODS[values[0]]}, batch {values[1]}",
    ),
    "corpus": Study(
        "Corpora (BSL, Table 4)", "nli", {"recipe": tuple(_CORPORA)}, row=lambda values: _CORPORA[values[0]]
    ),
    "augmentation": Study(
        "Augmentations (BSL, Table 4)",
        "nli",
        {"recipe": tuple(_AUGMENTATIONS)},
        row=lambda values: _AUGMENTATIONS[values[0]],
    ),
    "predictor": Study(
        "Predictor (BSL, section 4 and Table 8)",
        "nli",
        {"training.objective.predictor": ("paper", "released"), "training.objective.k": (4, 8)},
        _UNSTOPPED,
    ),
    "search": Study(
        "Search of learning rate and weight decay (BSL, Table 8)",
        "nli",
        {"training.weight_decay": (0.1, 0.01, 0.001), "training.lr": (1e-4, 2e-4, 5e-4)},
        _UNSTOPPED,
    ),
}
"""The deployments of `bsl-ablation`, by name."""


def study(name: str) -> Study:
    """A declared grid.

    Raises:
        ValueError: none is called so; the names and the nearest are given.
    """
    if name not in STUDIES:
        nearest = difflib.get_close_matches(name, STUDIES, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise ValueError(f"no study is called {name!r}; there are {', '.join(STUDIES)}.{hint}")
    return STUDIES[name]
