"""Load a translator, and resolve backend and precision `auto` for a device, before keys are computed."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Literal

from bsl.models.errors import TranslationError, load_errors
from bsl.models.translation import gpu

if TYPE_CHECKING:
    from pathlib import Path

    from bsl.models.translation.batching import BatchedTranslator, Engine
    from bsl.models.translation.config import Backend, Precision, Resources, TranslatorConfig

logger = logging.getLogger(__name__)

_AUTO: dict[Backend, dict[Literal["cpu", "gpu"], Precision]] = {
    "ctranslate2": {"cpu": "int8", "gpu": "fp16"},
    "transformers": {"cpu": "fp32", "gpu": "fp16"},
}


def load_translator(
    folder: Path, config: TranslatorConfig, resources: Resources, converted: Path, token_budget: int | None = None
) -> BatchedTranslator:
    """Load the model in `folder` with the backend that `config` resolves to.

    Args:
        folder: A MarianMT model in the transformers format.
        config: Languages, backend, precision, search and limits.
        resources: Device and cores, the device as for `resolve`.
        converted: Folder of the model converted for ctranslate2, created if needed; transformers does not use it.
        token_budget: Largest number of padded source tokens in a batch; None uses the default of backend and device.

    Raises:
        TranslationError: The folder has no model that the backend can run, or unsafe weights; the model lacks the
            target language; the backend does not run on the device with the settings of `config`; or the model does
            not fit into the GPU's memory.
    """
    from bsl.models.translation.batching import BatchedTranslator, Vocabulary

    resolved = resolve(config, resources.device)
    with load_errors(folder, TranslationError):
        vocabulary = Vocabulary(folder, resolved)
        engine: Engine
        if resolved.backend == "transformers":
            from bsl.models.translation.marian import MarianEngine

            engine = MarianEngine(folder, resolved, resources)
        else:
            from bsl.models.translation.ctranslate import CTranslate2Engine

            engine = CTranslate2Engine(folder, resolved, resources, converted, vocabulary)
        return BatchedTranslator(engine, vocabulary, resolved, token_budget or engine.token_budget)


def resolve(config: TranslatorConfig, device: str) -> TranslatorConfig:
    """Return the configuration with backend and precision resolved for `device`; idempotent.

    On a GPU, `auto` is ctranslate2 if a test computation works there; otherwise transformers, with a warning.

    Args:
        config: Backend and precision may be `auto`.
        device: `cpu`, `cuda`, `cuda:1` or another torch device.

    Raises:
        TranslationError: The requested backend does not support the precision on that device.
    """
    backend = config.backend if config.backend != "auto" else _best_backend(config, device)
    precision = _precision(config, backend, device)
    if (fault := _fault(backend, precision, device)) is not None:
        offered = ", ".join(precisions(backend, device)) or "none"
        raise TranslationError(
            f"{backend} does not support {precision} on {device}{fault and f' ({fault})'}; it supports: {offered}. "
            "Change precision, backend or device, or set precision and backend to `auto`."
        )
    return config.model_copy(update={"backend": backend, "precision": precision})


def precisions(backend: Backend, device: str) -> tuple[Precision, ...]:
    """Return the precisions that `backend` supports on `device`; empty if it does not run there.

    On a CPU the list is fixed, because the key of a translation must not depend on the CPU.
    """
    if backend == "transformers":
        return ("fp32", "bf16", "fp16")
    return ("fp32", "int8") if device == "cpu" else gpu.precisions(device)


def _fault(backend: Backend, precision: Precision, device: str) -> str | None:
    """Return why a backend does not compute in a precision, empty if it never does; None if it does."""
    if backend == "transformers" or device == "cpu":
        return None if precision in precisions(backend, device) else ""
    return gpu.fault(device, precision)  # only this precision: each test loads a model


def _best_backend(config: TranslatorConfig, device: str) -> Backend:
    fast: Backend = "ctranslate2"
    fault = _fault(fast, _precision(config, fast, device), device)
    if fault is None:
        return fast
    if device.startswith("cuda"):
        _warn(device, fault)
    return "transformers"


@cache
def _warn(device: str, reason: str) -> None:
    """Warn once per process."""
    logger.warning(
        "ctranslate2 does not work on %s (%s), so the slower backend transformers is used. For ctranslate2, %s.",
        device,
        reason,
        gpu.REMEDY,
    )


def _precision(config: TranslatorConfig, backend: Backend, device: str) -> Precision:
    return config.precision if config.precision != "auto" else _AUTO[backend]["cpu" if device == "cpu" else "gpu"]
