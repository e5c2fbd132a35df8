"""Replace random tokens of a sentence by predictions of a masked language model.

Design choices
- Masked spans are replaced in the text itself, so all other text keeps its case and spaces, even if the tokenizer
  would normalise them.
- A word-initial piece is replaced by a word-initial one, a continuation by a continuation, so words neither merge nor
  split. Deviation: the paper does not specify this.
- A generator seeded per sentence chooses the tokens and draws the pieces. Other sentences of the batch change logits by
  rounding only.

Shapes: B sentences, T tokens, N masked tokens of a batch, V pieces, K pieces drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerBase

from bsl.models.encoder.layouts import Tokens, budget_batches
from bsl.models.errors import EncoderError
from bsl.models.runtime.device import arithmetic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bsl.models.views.config import MaskedView

_SPACE_MARKS: Final = ("Ġ", "▁")  # start of a word in byte-level BPE and SentencePiece
_CONTINUATION: Final = "##"  # continuation of a word in WordPiece
_MAX_TOKENS: Final = 512


@dataclass(frozen=True)
class Plan:
    """Tokens to mask in one sentence.

    Attributes:
        ids: Token ids of the sentence, special ones included.
        positions: Positions of the masked tokens, ascending.
        spans: (start, end) of each masked token in the text, in characters.
        draws: A random number in [0, 1) for each masked token.
    """

    ids: list[int]
    positions: list[int]
    spans: list[tuple[int, int]]
    draws: list[float]


class RefillModel:
    """A masked language model with the tables that refilling needs.

    Attributes:
        pieces: Text of each piece, without marks.
        inside_V: Whether a piece continues a word.
        allowed_2V: Pieces allowed at the start of a word (row 0) and inside a word (row 1).

    Raises:
        EncoderError: The folder's tokenizer has no mask token, or its weights no masked-LM head.
    """

    def __init__(self, folder: Path, device: str) -> None:
        self.tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        if self.tokenizer.mask_token_id is None or not self.tokenizer.is_fast:
            raise EncoderError(
                f"{folder}: no fast tokenizer with a mask token, expected a masked language model. Choose another "
                "model."
            )
        network, info = AutoModelForMaskedLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, dtype=torch.float32, output_loading_info=True
        )
        if missing := info["missing_keys"]:  # transformers would initialise them at random
            raise EncoderError(
                f"{folder}: {len(missing)} weights of a masked language model are missing (first: {min(missing)}). Use "
                "the pre-trained checkpoint with its masked-LM head, not an encoder made from it."
            )
        self.network: Any = network.to(device).eval()
        width = self.network.get_output_embeddings().out_features
        names = [
            str(name) for name in self.tokenizer.convert_ids_to_tokens(list(range(min(len(self.tokenizer), width))))
        ]
        marks = [mark for mark in _SPACE_MARKS if any(name.startswith(mark) for name in names)]
        self.pieces = [self._text(name) for name in names]
        inside = [not name.startswith(marks[0]) if marks else name.startswith(_CONTINUATION) for name in names]
        special = set(self.tokenizer.all_special_ids)
        fit = [
            number not in special and bool(text) and "\ufffd" not in text and not text.startswith("[unused")
            for number, text in enumerate(self.pieces)
        ]
        rest = [False] * (width - len(names))  # rows of the matrix that no piece uses
        fit_V, self.inside_V = (torch.tensor([*flags, *rest], device=device) for flags in (fit, inside))
        self.allowed_2V = torch.stack([fit_V & ~self.inside_V, fit_V & self.inside_V])
        self.is_uncased = self.tokenizer("A").input_ids == self.tokenizer("a").input_ids
        self.device = device

    def _text(self, name: str) -> str:
        return self.tokenizer.convert_tokens_to_string([name]).removeprefix(_CONTINUATION).strip()

    @torch.inference_mode()
    def logits(self, plans: Sequence[Plan]) -> Tensor:
        """Return the logits (N, V) of the masked tokens of a batch."""
        pad, mask = self.tokenizer.pad_token_id, self.tokenizer.mask_token_id
        ids_BT, seen_BT = Tokens.of([plan.ids for plan in plans], pad).padded()
        rows = [row for row, plan in enumerate(plans) for _ in plan.positions]
        columns = [position for plan in plans for position in plan.positions]
        ids_BT[rows, columns] = mask
        # Only masked tokens reach the output layer, which costs as much as half of the network.
        only = self.network.get_output_embeddings().register_forward_pre_hook(
            lambda _, inputs: (inputs[0].view(*ids_BT.shape, -1)[rows, columns],)
        )
        try:
            with arithmetic(torch.device(self.device), bf16=False):
                found_NV: Tensor = self.network(ids_BT.to(self.device), attention_mask=seen_BT.to(self.device)).logits
        finally:
            only.remove()
        return found_NV


def refill(
    texts: Sequence[str], seeds: Sequence[int], model: RefillModel, view: MaskedView, batch_tokens: int
) -> list[str]:
    """Replace a share of each text's tokens by predictions of a model; a text without tokens is unchanged.

    Args:
        texts: Sentences; only the first 512 tokens of a sentence are used.
        seeds: Seed of each sentence, which alone decides the masked tokens and the draws.
        model: The masked language model.
        view: Settings with the share of tokens, and the number of pieces to draw from.
        batch_tokens: Largest number of tokens computed at once, padding included.
    """
    plans = _plans(texts, seeds, model, view.share)
    numbers = [number for number, plan in enumerate(plans) if plan.positions]
    filled = list(texts)
    for batch in budget_batches(np.array([len(plans[number].ids) for number in numbers]), batch_tokens):
        masked = [numbers[row] for row in batch]
        pieces = iter(_drawn(model, [plans[number] for number in masked], view.top_k))
        for number in masked:
            plan = plans[number]
            filled[number] = _written(texts[number], plan, [model.pieces[next(pieces)] for _ in plan.positions], model)
    return filled


def _plans(texts: Sequence[str], seeds: Sequence[int], model: RefillModel, share: float) -> list[Plan]:
    longest = min(model.tokenizer.model_max_length, _MAX_TOKENS)
    found: Any = model.tokenizer(
        list(texts), truncation=True, max_length=longest, return_offsets_mapping=True, return_special_tokens_mask=True
    )
    rows = zip(texts, seeds, found.input_ids, found.offset_mapping, found.special_tokens_mask, strict=True)
    return [_plan(text, Random(seed), ids, spans, special, share) for text, seed, ids, spans, special in rows]


def _plan(
    text: str, random: Random, ids: list[int], spans: list[tuple[int, int]], special: list[int], share: float
) -> Plan:
    bare = [(end - len(text[start:end].lstrip()), end) for start, end in spans]
    # Tokens that share their span are parts of one character, which cannot be replaced in part.
    shared = {span for span, following in pairwise(bare) if span == following}
    eligible = [
        position
        for position, (start, end) in enumerate(bare)
        if not special[position] and start < end and (start, end) not in shared
    ]
    # Python guarantees the same numbers in every version for Random.random() only.
    drawn = sorted((random.random(), position) for position in eligible)
    positions = sorted(position for _, position in drawn[: max(1, int(share * len(eligible) + 0.5))])
    return Plan(ids, positions, [bare[position] for position in positions], [random.random() for _ in positions])


def _drawn(model: RefillModel, plans: Sequence[Plan], top_k: int) -> list[int]:
    """Draw the piece for each masked token of a batch, by probability among the `top_k` best allowed pieces."""
    was_N = torch.tensor([plan.ids[position] for plan in plans for position in plan.positions], device=model.device)
    draw_N1 = torch.tensor([[draw] for plan in plans for draw in plan.draws], device=model.device)
    allowed_NV = model.allowed_2V[model.inside_V[was_N].long()]
    logits_NV = model.logits(plans).masked_fill(~allowed_NV, float("-inf"))
    best_NK, piece_NK = logits_NV.topk(min(top_k, logits_NV.shape[1]))
    passed_NK = best_NK.softmax(dim=1).cumsum(dim=1)
    choice_N1 = (passed_NK < draw_N1 * passed_NK[:, -1:]).sum(dim=1, keepdim=True).clamp(max=passed_NK.shape[1] - 1)
    chosen: list[int] = piece_NK.gather(1, choice_N1).squeeze(1).tolist()
    return chosen


def _written(text: str, plan: Plan, pieces: Sequence[str], model: RefillModel) -> str:
    for (start, end), piece in reversed(list(zip(plan.spans, pieces, strict=True))):
        cased = piece[0].upper() + piece[1:] if model.is_uncased and text[start].isupper() else piece
        text = text[:start] + cased + text[end:]
    return text
