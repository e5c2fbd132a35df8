"""Which engine runs a model, at which precision: `auto` becomes a fact before anything is keyed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from models.translation.errors import TranslatorLoadError

if TYPE_CHECKING:
    from models.translation.config import Backend, Precision, TranslatorConfig

_AUTO: dict[Backend, dict[Literal["cpu", "gpu"], Precision]] = {
    "ctranslate2": {"cpu": "int8", "gpu": "fp16"},
    "transformers": {"cpu": "fp32", "gpu": "fp16"},
}


def resolve(config: TranslatorConfig, device: str) -> TranslatorConfig:
    """The configuration with backend and precision as they will be used on `device`; idempotent.

    Args:
        config: May say `auto` for either.
        device: `cpu`, `cuda`, `cuda:1` or another torch device.

    Raises:
        TranslatorLoadError: The backend asked for does not compute at that precision on that device.
    """
    backend = config.backend if config.backend != "auto" else _best_backend(config, device)
    precision = _precision(config, backend, device)
    if precision not in (offered := precisions(backend, device)):
        raise TranslatorLoadError(
            f"{backend} does not compute in {precision} on {device}; it offers {', '.join(offered) or 'nothing'}: "
            "change precision, backend or device, or leave them `auto`"
        )
    return config.model_copy(update={"backend": backend, "precision": precision})


def check_shortlist(settled: TranslatorConfig, device: str) -> None:
    """Refuse a shorter output vocabulary where the engine cannot be held to it.

    Raises:
        TranslatorLoadError: the configuration did not resolve to ctranslate2.
    """
    if settled.backend != "ctranslate2":
        raise TranslatorLoadError(
            f"a shortlist of output pieces needs ctranslate2, and {settled.model} runs on {settled.backend} in "
            f"{settled.precision} on {device}; set augment.shortlist to null, or take backend and precision `auto` on "
            "a CPU or an NVIDIA GPU"
        )


def precisions(backend: Backend, device: str) -> tuple[Precision, ...]:
    """What `backend` can compute in on `device`; empty if it does not run there.

    On a CPU a declared list: the key of a translation must not depend on which CPU it is.
    """
    if backend == "transformers":
        return ("fp32", "bf16", "fp16")
    if device == "cpu":
        return ("fp32", "int8")
    # Imported here, as the loaders are: the engine that is not chosen is not paid for.
    from models.translation import ctranslate

    return ctranslate.gpu_precisions(device)


def _best_backend(config: TranslatorConfig, device: str) -> Backend:
    fast: Backend = "ctranslate2"
    return fast if _precision(config, fast, device) in precisions(fast, device) else "transformers"


def _precision(config: TranslatorConfig, backend: Backend, device: str) -> Precision:
    return config.precision if config.precision != "auto" else _AUTO[backend]["cpu" if device == "cpu" else "gpu"]
