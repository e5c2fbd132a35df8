"""Errors of translation.

ModelError
└── TranslationError
    ├── TranslatorLoadError      the folder does not hold a model that this backend can run, or the backend does not run
    ├── DeviceMemoryError        the model or one sentence alone does not fit the device
    ├── TranslationStoppedError  the run was told to stop between two shards
    └── SmokeTestError           the translator runs, but what it writes is not language
"""

from __future__ import annotations

from models.errors import ModelError


class TranslationError(ModelError):
    """Base of everything that can go wrong between a sentence and its translation."""


class TranslatorLoadError(TranslationError):
    """The folder does not hold a model that this backend can run, or the backend does not run on the device."""


class DeviceMemoryError(TranslationError):
    """The model, or a batch of one sentence, does not fit the device: nothing is left to halve."""


class SmokeTestError(TranslationError):
    """The translator runs, but its output for a handful of plain sentences is empty, looping or not what was pinned."""


class TranslationStoppedError(TranslationError):
    """The run was told to stop; what was translated is kept, and a rerun goes on."""
