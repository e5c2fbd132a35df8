"""What can go wrong with text.

ModelError
└── TextError
    ├── SentenceIdCollisionError   two different sentences have the same id
    └── EmptyCorpusError           nothing is left of the sources
"""

from __future__ import annotations

from models.errors import ModelError


class TextError(ModelError):
    """Anything `models.corpus` raises on purpose."""


class SentenceIdCollisionError(TextError):
    """Two different sentences have the same 64-bit id."""


class EmptyCorpusError(TextError):
    """Not one sentence is left after normalising and filtering."""
