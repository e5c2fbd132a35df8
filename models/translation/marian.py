"""The reference backend: MarianMT through transformers.

`transformers` 5 has no translation pipeline; the model and the parts of its tokenizer are called directly.
"""

from __future__ import annotations

import logging
from functools import partial
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import torch
from transformers import MarianMTModel
from transformers.utils import logging as transformers_logging

from models.encoder.unpadded import Tokens
from models.errors import TranslatorLoadError
from models.runtime.device import arithmetic
from models.translation.batching import BatchedTranslator
from models.translation.decoding import beam_search, greedy
from models.translation.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from models.translation.batching import Decoded
    from models.translation.config import TranslatorConfig

CPU_TOKEN_BUDGET = 2048  # 6.5 M parameters, greedy, NLI premises: 57, 74, 87, 88, 85 sentences/s at 512, 1,024 … 8,192
GPU_TOKEN_BUDGET = 65_536  # about 4,096 NLI sentences, from which on memory does not limit a decode step (PERF A4)
_DTYPES: dict[str, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def load_translator(
    folder: Path,
    config: TranslatorConfig,
    device: str = "cpu",
    threads: int | None = None,
    token_budget: int | None = None,
) -> BatchedTranslator:
    """Load the model in `folder` as a translator.

    Args:
        folder: A MarianMT model in the transformers format: config.json, weights, vocab.json, source.spm, target.spm.
        config: Languages, search and limits; with a precision resolved by `loading.resolve`.
        device: `cpu`, `cuda` or `cuda:1`.
        threads: CPU threads for the whole process; None does not change them.
        token_budget: Largest number of padded source tokens in a batch; None uses the device's default.

    Raises:
        TranslatorLoadError: The folder has no such model, or unsafe weights, or the model lacks the target language.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    model = load_model(folder, config.precision, device)
    if not isinstance(start := model.config.decoder_start_token_id, int):
        raise TranslatorLoadError(
            f"{folder}/config.json: decoder_start_token_id is {start!r}, expected the number of a piece (Marian: the "
            "padding piece). Check that the copy is complete."
        )
    model.generation_config.max_length = None  # each batch has its own cap; generate warns if both are set
    positions: int = model.config.max_position_embeddings
    vocabulary = Vocabulary(folder, config.target_token, min(config.max_source_tokens, positions))
    budget = token_budget or (CPU_TOKEN_BUDGET if device == "cpu" else GPU_TOKEN_BUDGET)
    return BatchedTranslator(MarianEngine(model, config), vocabulary, config, budget)


class MarianEngine:
    """Engine for a Marian model of transformers, which computes one batch at a time, when it is collected."""

    ahead = 1

    def __init__(self, model: MarianMTModel, config: TranslatorConfig) -> None:
        self.model = model
        settings: Any = model.config
        self.positions: int = settings.max_position_embeddings
        self._pad: int = settings.pad_token_id
        self._config = config

    def submit(self, sources: list[list[int]], caps: list[int]) -> Callable[[], Decoded]:
        """Return a function that translates a batch; see `batching.Engine`."""
        return partial(self._decode, sources, caps)

    def _decode(self, sources: list[list[int]], caps: list[int]) -> Decoded:
        device = self.model.device
        source_BS, mask_BS = (x.to(device) for x in Tokens.of(sources, self._pad).padded())
        caps_B = torch.tensor(caps, device=device)
        beam, ngram = self._config.beam, self._config.no_repeat_ngram
        with arithmetic(device, bf16=False):  # products of 16-bit weights stay in 16 bits
            if beam == 1:
                return greedy(self.model, source_BS, mask_BS, caps_B, ngram)
            return beam_search(self.model, source_BS, mask_BS, caps_B, beam, ngram)


logger = logging.getLogger(__name__)


def load_model(folder: Path, precision: str, device: str) -> MarianMTModel:
    """Load the model in evaluation mode on `device`, in precision `fp32`, `bf16` or `fp16`.

    Safetensors are preferred. A `pytorch_model.bin` (most OPUS-MT models) is read with `weights_only`, which accepts
    tensors and refuses any code in the pickle.

    Raises:
        TranslatorLoadError: The folder has no configuration or weights, or the weights contain code.
    """
    has_safetensors = _has_safetensors(folder)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model: MarianMTModel = MarianMTModel.from_pretrained(
            folder, local_files_only=True, use_safetensors=has_safetensors, weights_only=True, dtype=_DTYPES[precision]
        )
    except UnpicklingError as error:
        raise TranslatorLoadError(
            f"{folder}: pytorch_model.bin contains more than tensors, and code in files is never run. Get the model "
            "from its publisher again, or convert it to safetensors."
        ) from error
    module: torch.nn.Module = model  # transformers annotates its own `to` and `eval` for another self
    module.to(device)
    module.eval()
    return model


def _has_safetensors(folder: Path) -> bool:
    """Return whether to read safetensors (True) or a weights-only `.bin` (False)."""
    if not (folder / "config.json").is_file():
        raise TranslatorLoadError(
            f"{folder}: no config.json, expected a MarianMT model in the transformers format. Check the path."
        )
    if any(folder.glob("model*.safetensors")):
        return True
    if any(folder.glob("pytorch_model*.bin")):
        logger.info("%s: no safetensors, reading pytorch_model.bin with weights_only", folder)
        return False
    found = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
    raise TranslatorLoadError(
        f"{folder}: no weights (found {found}, expected model.safetensors or pytorch_model.bin). Check that the copy "
        "is complete."
    )
