"""Public Python API of bsl-pipeline: load, train, adapt and score sentence encoders. All other packages are internal.

Shapes: n texts, D width of a vector.

Example:
    >>> from bsl import SentenceEncoder
    >>> encoder = SentenceEncoder.load("embedded:mini-sentence")
    >>> encoder.encode(["A dog runs.", "A dog is running."]).shape
    (2, 384)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bsl.classifier import Classifier
    from bsl.configs import recipe, recipes
    from bsl.encoder import SentenceEncoder
    from bsl.results import Result
    from bsl.runs import adapt, compare, embed_corpus, evaluate, run
    from bsl.storage.artifacts.store import Store

__all__ = [
    "Classifier",
    "Result",
    "SentenceEncoder",
    "Store",
    "adapt",
    "compare",
    "embed_corpus",
    "evaluate",
    "recipe",
    "recipes",
    "run",
]

# Modules are imported on first use: importing the encoder takes a second, the runs several more.
_MODULES: Final = {
    "Classifier": "bsl.classifier",
    "SentenceEncoder": "bsl.encoder",
    "Store": "bsl.storage.artifacts.store",
    "Result": "bsl.results",
    "recipe": "bsl.configs",
    "recipes": "bsl.configs",
} | dict.fromkeys(("adapt", "compare", "embed_corpus", "evaluate", "run"), "bsl.runs")


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'bsl' has no attribute {name!r}. Public names: {', '.join(__all__)}")
    from bsl.imports import importing

    with importing():
        member = getattr(import_module(_MODULES[name]), name)
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
