"""A translator by whichever engine its configuration resolves to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.errors import TranslatorLoadError, load_errors
from models.translation.backends import resolve

if TYPE_CHECKING:
    from pathlib import Path

    from models.translation.batched import BatchedTranslator
    from models.translation.config import TranslatorConfig


def load_translator(
    folder: Path,
    config: TranslatorConfig,
    device: str,
    converted: Path,
    cores: int,
    token_budget: int | None = None,
    *,
    replicas: int | None = None,
    threads: int = 1,
) -> BatchedTranslator:
    """Load the model in `folder` with the backend that `config` resolves to.

    Args:
        folder: A MarianMT model in the transformers format.
        config: Languages, backend, precision, search and limits.
        device: As for `resolve`.
        converted: Where the form that ctranslate2 reads lies or is to be put; transformers does without.
        cores: CPU cores to use.
        token_budget: Most padded source tokens in a batch; None takes what suits backend and device.
        replicas: As for `ctranslate.load_translator`; transformers has one, of all cores.
        threads: Likewise.

    Raises:
        TranslatorLoadError: The model cannot be loaded, or not as `config` asks.
    """
    settled = resolve(config, device)
    with load_errors(folder, TranslatorLoadError):
        if settled.backend == "transformers":
            from models.translation import marian

            return marian.load_translator(folder, settled, device, cores, token_budget)
        from models.translation import ctranslate

        return ctranslate.load_translator(
            folder, settled, device, converted, cores, token_budget, replicas=replicas, threads=threads
        )
