"""Greedy and beam-search decoding of a Marian model.

Shapes: B sentences, S source pieces, T target pieces, V vocabulary.

- Greedy search is our own loop: the encoder once, then one decoder step per piece with a key-value cache. It gives the
  same pieces as `generate` (tested) with less overhead per step. Each sentence has its own cap, so its translation does
  not depend on the lengths of other sentences in the batch.
- Once half of the sentences have ended, they leave the batch, so that one looping sentence does not keep all computing.
- Beam search uses `generate`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    GenerationConfig,
    MarianMTModel,
    NoRepeatNGramLogitsProcessor,
)

from models.translation.batching import Decoded


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
    return Decoded(_trimmed(target_BT, model), (score_B / counts_B).tolist())


def _next_logits(
    model: MarianMTModel, piece_B: Tensor, memory_BSD: Tensor, mask_BS: Tensor, cache: EncoderDecoderCache
) -> Tensor:
    """Return the logits of the next piece in fp32, (B, V)."""
    hidden_B1D = model.model.decoder(
        input_ids=piece_B[:, None],
        encoder_hidden_states=memory_BSD,
        encoder_attention_mask=mask_BS,
        past_key_values=cache,
        use_cache=True,
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
    pieces = [row[:cap] for row, cap in zip(_trimmed(target_BT, model), caps_B.tolist(), strict=True)]
    return Decoded(pieces, [None] * len(pieces))


def _trimmed(target_BT: Tensor, model: MarianMTModel) -> list[list[int]]:
    silent = model.config.pad_token_id, model.config.eos_token_id
    return [[piece for piece in row if piece not in silent] for row in target_BT.tolist()]
