"""The reference backend: MarianMT through transformers, with greedy search of our own and beam search by `generate`.

`transformers` 5 has no translation pipeline; the model and the parts of its tokenizer are called directly.

- Greedy search is our own loop: the encoder once, then one decoder step per piece with a key-value cache. It gives the
  same pieces as `generate` (tested) with less overhead per step. Each sentence has its own cap, so its translation does
  not depend on the lengths of other sentences in the batch.
- Once half of the sentences have ended, they leave the batch, so that one looping sentence does not keep all computing.

Shapes: B sentences, S source pieces, T target pieces, V vocabulary.
"""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    GenerationConfig,
    MarianMTModel,
    NoRepeatNGramLogitsProcessor,
)
from transformers.models.marian.modeling_marian import MarianDecoder

from bsl.models.encoder.layouts import Tokens
from bsl.models.encoder.transformer import quiet_transformers
from bsl.models.errors import TranslationError
from bsl.models.runtime.device import arithmetic
from bsl.models.runtime.torch_settings import torch_threads

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bsl.models.translation.batching import Decoded
    from bsl.models.translation.config import Resources, TranslatorConfig

CPU_TOKEN_BUDGET = 2048  # 6.5 M parameters, greedy, NLI premises: 57, 74, 87, 88, 85 sentences/s at 512, 1,024 … 8,192
GPU_TOKEN_BUDGET = 65_536  # about 4,096 NLI sentences, from which on memory does not limit a decode step (PERF A4)
# transformers 5.24 renames the argument and will remove the old name.
_CACHE: Final = "cache" if "cache" in signature(MarianDecoder.forward).parameters else "past_key_values"
_DTYPES: dict[str, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class MarianEngine:
    """Engine for a Marian model of transformers, which computes one batch at a time, when it is collected.

    Args:
        folder: A MarianMT model in the transformers format: config.json, weights, vocab.json, source.spm, target.spm.
        config: Search and precision, resolved by `loading.resolve`.
        resources: Device, and CPU cores for the whole process.

    Raises:
        TranslationError: The model names no piece to start from.
    """

    ahead = 1

    def __init__(self, folder: Path, config: TranslatorConfig, resources: Resources) -> None:
        self.model = load_model(folder, config.precision, resources.device)
        settings: Any = self.model.config
        if not isinstance(start := settings.decoder_start_token_id, int):
            raise TranslationError(
                f"{folder}/config.json: decoder_start_token_id is {start!r}, expected the number of a piece (Marian: "
                "the padding piece). Check that the copy is complete."
            )
        self.model.generation_config.max_length = None  # each batch has its own cap; generate warns if both are set
        self.token_budget = CPU_TOKEN_BUDGET if resources.device == "cpu" else GPU_TOKEN_BUDGET
        self.forces_end = config.beam > 1 and self.model.generation_config.forced_eos_token_id is not None
        self._pad: int = settings.pad_token_id
        self._config = config
        self._cores = resources.cores

    def submit(self, sources: list[list[int]], caps: list[int]) -> Callable[[], Decoded]:
        """Return a function that translates a batch; see `batching.Engine`."""
        return partial(self._decode, sources, caps)

    def _decode(self, sources: list[list[int]], caps: list[int]) -> Decoded:
        device = self.model.device
        source_BS, mask_BS = (x.to(device) for x in Tokens.of(sources, self._pad).padded())
        caps_B = torch.tensor(caps, device=device)
        beam, ngram = self._config.beam, self._config.no_repeat_ngram
        with torch_threads(self._cores), arithmetic(device, bf16=False):  # products of 16-bit weights stay in 16 bits
            if beam == 1:
                return greedy(self.model, source_BS, mask_BS, caps_B, ngram)
            return beam_search(self.model, source_BS, mask_BS, caps_B, beam, ngram)


def load_model(folder: Path, precision: str, device: str) -> MarianMTModel:
    """Load the model in evaluation mode on `device`, in precision `fp32`, `bf16` or `fp16`.

    Safetensors are preferred. A `pytorch_model.bin` (most OPUS-MT models) is read with `weights_only`, which accepts
    tensors and refuses any code in the pickle.
    """
    with quiet_transformers():
        model: MarianMTModel = MarianMTModel.from_pretrained(
            folder, local_files_only=True, weights_only=True, dtype=_DTYPES[precision]
        )
    module: torch.nn.Module = model  # transformers annotates its own `to` and `eval` for another self
    module.to(device)
    module.eval()
    return model


@torch.inference_mode()
def greedy(
    model: MarianMTModel, source_BS: Tensor, mask_BS: Tensor, caps_B: Tensor, no_repeat_ngram: int = 0
) -> Decoded:
    """Take the most probable piece at each step, until the end mark or the sentence's own cap.

    Args:
        model: A Marian model in evaluation mode.
        source_BS: Source pieces, padded on the right.
        mask_BS: 1 for pieces, 0 for padding.
        caps_B: Largest number of pieces per translation, end mark counted.
        no_repeat_ngram: Length of sequences that may not occur twice; 0 for none.
    """
    config: Any = model.config  # annotated without a padding piece, which every Marian model has
    pad, end = config.pad_token_id, config.eos_token_id
    rows_B = torch.arange(len(source_BS), device=source_BS.device)
    target_BT = torch.full((len(source_BS), int(caps_B.max())), pad, device=source_BS.device)
    score_B = torch.zeros(len(source_BS), device=source_BS.device)
    ended_B = torch.zeros_like(rows_B, dtype=torch.bool)
    piece_B = torch.full_like(rows_B, config.decoder_start_token_id)
    memory_BSD = model.model.encoder(input_ids=source_BS, attention_mask=mask_BS).last_hidden_state
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    forbid = NoRepeatNGramLogitsProcessor(no_repeat_ngram) if no_repeat_ngram else None
    for step in range(target_BT.shape[1]):
        logits_BV = _next_logits(model, piece_B, memory_BSD, mask_BS, cache)
        logits_BV[:, pad] = -torch.inf  # as in `bad_words_ids` of every Marian model
        if forbid is not None:
            logits_BV = forbid(target_BT[rows_B, :step], logits_BV)
        best_B, piece_B = logits_BV.max(dim=-1)
        piece_B = piece_B.masked_fill(ended_B, pad)
        target_BT[rows_B, step] = piece_B
        score_B[rows_B] += (best_B - logits_BV.logsumexp(dim=-1)).masked_fill(ended_B, 0.0)
        ended_B = ended_B | (piece_B == end) | (caps_B[rows_B] <= step + 1)
        live = (~ended_B).nonzero().squeeze(1)
        if len(live) == 0:
            break
        if 2 * len(live) <= len(rows_B):
            rows_B, piece_B, ended_B = rows_B[live], piece_B[live], ended_B[live]
            memory_BSD, mask_BS = memory_BSD[live], mask_BS[live]
            cache.batch_select_indices(live)
    counts_B = target_BT.ne(pad).sum(dim=1).clamp(min=1)
    return list(zip(_trimmed(target_BT, model), (score_B / counts_B).tolist(), strict=True))


def _next_logits(
    model: MarianMTModel, piece_B: Tensor, memory_BSD: Tensor, mask_BS: Tensor, cache: EncoderDecoderCache
) -> Tensor:
    """Return the logits of the next piece in fp32, (B, V)."""
    hidden_B1D = model.model.decoder(
        input_ids=piece_B[:, None],
        encoder_hidden_states=memory_BSD,
        encoder_attention_mask=mask_BS,
        use_cache=True,
        **{_CACHE: cache},
    ).last_hidden_state
    logits_BV: Tensor = model.lm_head(hidden_B1D[:, -1]) + model.final_logits_bias
    return logits_BV.float()


@torch.inference_mode()
def beam_search(
    model: MarianMTModel, source_BS: Tensor, mask_BS: Tensor, caps_B: Tensor, beam: int, no_repeat_ngram: int = 0
) -> Decoded:
    """Search with a beam of the most probable hypotheses (`generate` with length penalty 1).

    Args:
        model: A Marian model in evaluation mode.
        source_BS: Source pieces, padded on the right.
        mask_BS: 1 for pieces, 0 for padding.
        caps_B: Largest number of pieces per translation, end mark counted; the search stops at the largest cap, and
            each row is cut at its own.
        beam: Beam size, at least 2.
        no_repeat_ngram: Length of sequences that may not occur twice; 0 for none.
    """
    transformers: Any = model  # its generate() is annotated for another self
    search: Any = GenerationConfig(  # type: ignore[no-untyped-call]
        num_beams=beam,
        do_sample=False,
        no_repeat_ngram_size=no_repeat_ngram,
        max_new_tokens=int(caps_B.max()),
        pad_token_id=model.config.pad_token_id,
        eos_token_id=model.config.eos_token_id,
        decoder_start_token_id=model.config.decoder_start_token_id,
        bad_words_ids=[[model.config.pad_token_id]],
    )
    target_BT: Tensor = transformers.generate(input_ids=source_BS, attention_mask=mask_BS, generation_config=search)[
        :, 1:
    ]
    return [(row[:cap], None) for row, cap in zip(_trimmed(target_BT, model), caps_B.tolist(), strict=True)]


def _trimmed(target_BT: Tensor, model: MarianMTModel) -> list[list[int]]:
    silent = model.config.pad_token_id, model.config.eos_token_id
    return [[piece for piece in row if piece not in silent] for row in target_BT.tolist()]
