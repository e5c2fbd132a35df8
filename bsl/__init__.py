"""Public Python API of bsl-pipeline: load, train, adapt and score sentence encoders. Other packages are internal.

Shapes: n texts, D width of a vector.

Example:
    >>> from bsl import SentenceEncoder
    >>> encoder = SentenceEncoder.load("embedded:mini-sentence")
    >>> encoder.encode(["A dog runs.", "A dog is running."]).shape
    (2, 384)
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import ModuleType

    from bsl.configs import recipe, recipes
    from bsl.encoder import SentenceEncoder
    from bsl.runs import Result, adapt, compare, embed_corpus, evaluate, run
    from storage.artifacts.store import Store

__all__ = [
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

# Imported on first use of a name: importing the encoder takes a second, the runs several more.
_MODULES: Final = {
    "SentenceEncoder": "bsl.encoder",
    "Store": "storage.artifacts.store",
    "recipe": "bsl.configs",
    "recipes": "bsl.configs",
} | dict.fromkeys(("Result", "adapt", "compare", "embed_corpus", "evaluate", "run"), "bsl.runs")


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'bsl' has no attribute {name!r}; it has {', '.join(__all__)}")
    found = getattr(_imported(_MODULES[name]), name)
    globals()[name] = found
    return found


def _imported(module: str) -> ModuleType:
    """Import a module without searching for garbage, which takes a sixth of the time of importing torch.

    Imported objects live as long as the process, so the collector ignores them afterwards: a search through them takes
    0.3 s, and three of these happen when the process ends. A process that has imported torch may have models, which
    must remain collectable.
    """
    collects, fresh = gc.isenabled(), "torch" not in sys.modules
    gc.disable()
    try:
        return import_module(module)
    finally:
        if fresh:
            gc.freeze()
        if collects:
            gc.enable()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
