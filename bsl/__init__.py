"""Public Python API of bsl-pipeline: load, train, adapt and score sentence encoders. All other packages are internal.

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

# Modules are imported on first use: importing the encoder takes a second, the runs several more.
_MODULES: Final = {
    "SentenceEncoder": "bsl.encoder",
    "Store": "storage.artifacts.store",
    "recipe": "bsl.configs",
    "recipes": "bsl.configs",
} | dict.fromkeys(("Result", "adapt", "compare", "embed_corpus", "evaluate", "run"), "bsl.runs")


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'bsl' has no attribute {name!r}. Public names: {', '.join(__all__)}")
    member = getattr(_import_without_gc(_MODULES[name]), name)
    globals()[name] = member
    return member


def _import_without_gc(module: str) -> ModuleType:
    """Import a module with garbage collection off, which saves a sixth of the time of importing torch.

    Imported objects live as long as the process, so the collector ignores them afterwards: a collection over them takes
    0.3 s, and Python runs three when the process ends. If torch was already imported, nothing is frozen: the process
    may have models, which must remain collectable.
    """
    was_enabled, is_first = gc.isenabled(), "torch" not in sys.modules
    gc.disable()
    try:
        return import_module(module)
    finally:
        if is_first:
            gc.freeze()
        if was_enabled:
            gc.enable()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
