"""Marian weights from a folder, without ever running what a pickle says."""

from __future__ import annotations

import logging
from pickle import UnpicklingError
from typing import TYPE_CHECKING

import torch
from transformers import MarianMTModel
from transformers.utils import logging as transformers_logging

from models.errors import TranslatorLoadError

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

_DTYPES: dict[str, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def load_model(folder: Path, precision: str, device: str) -> MarianMTModel:
    """The model in evaluation mode on `device`, in precision `fp32`, `bf16` or `fp16`.

    Safetensors are read where the folder has them. A `pytorch_model.bin` (most OPUS-MT models) is read with
    `weights_only`, which admits tensors and refuses any code in the pickle.

    Raises:
        TranslatorLoadError: No weights, weights that carry code, or another architecture.
    """
    has_safetensors = _has_safetensors(folder)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model: MarianMTModel = MarianMTModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=has_safetensors, weights_only=True, dtype=_DTYPES[precision]
        )
    except UnpicklingError as error:
        raise TranslatorLoadError(
            f"{folder}: pytorch_model.bin holds more than tensors and was not run; "
            "expected plain weights: get the model from its publisher again, or convert it to safetensors"
        ) from error
    module: torch.nn.Module = model  # transformers annotates its own `to` and `eval` for another self
    module.to(device)
    module.eval()
    return model


def _has_safetensors(folder: Path) -> bool:
    """Whether to read safetensors (True) or a weights-only `.bin` (False)."""
    if not (folder / "config.json").is_file():
        raise TranslatorLoadError(f"{folder}: no config.json; expected a MarianMT model in the transformers format")
    if any(folder.glob("model*.safetensors")):
        return True
    if any(folder.glob("pytorch_model*.bin")):
        logger.info("%s has no safetensors; reading pytorch_model.bin with weights_only", folder)
        return False
    found = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
    raise TranslatorLoadError(f"{folder}: no weights among {found}; expected model.safetensors or pytorch_model.bin")
