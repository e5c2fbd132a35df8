"""Tokens masked and written anew by a masked language model, inside the sentence's own text.

Design choices
- Masked spans are cut out of the text and filled in place: what is not masked keeps its case and spaces, whatever the
  tokenizer would make of them.
- A piece that begins a word gives way to one that does, and one inside a word to one inside: words neither grow
  together nor fall apart. Deviation: the paper does not say.
- A generator seeded per sentence chooses the tokens and draws the pieces. What else is in a batch moves logits by
  rounding only.

Shapes: B sentences, T tokens, N masked tokens of a batch, V pieces, K pieces drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerBase

from models.errors import ModelError
from models.runtime.device import arithmetic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from models.views.config import MaskedView

_SPACE_MARKS: Final = ("Ġ", "▁")  # how byte-level BPE and SentencePiece begin a word
_CONTINUATION: Final = "##"  # how WordPiece goes on with one
_MAX_TOKENS: Final = 512


class MaskedLMError(ModelError):
    """The model cannot fill masks."""


@dataclass(frozen=True)
class Plan:
    """What will be masked in one sentence.

    Attributes:
        ids: its tokens, special ones included.
        places: positions of the masked ones, ascending.
        spans: where each stands in the text, as (start, end) in characters.
        draws: a number in [0, 1) for each.
    """

    ids: list[int]
    places: list[int]
    spans: list[tuple[int, int]]
    draws: list[float]


class MaskedLM:
    """A masked language model with the tables that refilling needs.

    Attributes:
        pieces: text of each piece, marks removed.
        inside_V: whether a piece goes on with a word.
        allowed_2V: pieces that may be written at the beginning of a word (row 0) and inside one (row 1).

    Raises:
        MaskedLMError: The folder's tokenizer has no mask, or its weights no head that guesses what was masked.
    """

    def __init__(self, folder: Path, device: str) -> None:
        self.tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        if self.tokenizer.mask_token_id is None or not self.tokenizer.is_fast:
            raise MaskedLMError(f"{folder} has no fast tokenizer with a mask token; expected a masked language model")
        network, told = AutoModelForMaskedLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, dtype=torch.float32, output_loading_info=True
        )
        _check_whole(folder, told["missing_keys"])
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
        """What the model makes of the masked tokens of a batch, (N, V)."""
        pad, mask = self.tokenizer.pad_token_id, self.tokenizer.mask_token_id
        length = max(len(plan.ids) for plan in plans)
        ids_BT = torch.tensor([plan.ids + [pad] * (length - len(plan.ids)) for plan in plans])
        seen_BT = torch.tensor([[1] * len(plan.ids) + [0] * (length - len(plan.ids)) for plan in plans])
        rows = [row for row, plan in enumerate(plans) for _ in plan.places]
        columns = [place for plan in plans for place in plan.places]
        ids_BT[rows, columns] = mask
        # Only masked tokens reach the matrix of all pieces: it costs as much as half of the network.
        only = self.network.get_output_embeddings().register_forward_pre_hook(
            lambda _, inputs: (inputs[0].view(len(plans), length, -1)[rows, columns],)
        )
        try:
            with arithmetic(torch.device(self.device), bf16=False):
                found_NV: Tensor = self.network(ids_BT.to(self.device), attention_mask=seen_BT.to(self.device)).logits
        finally:
            only.remove()
        return found_NV


def _check_whole(folder: Path, missing: Collection[str]) -> None:
    """Refuse weights that the folder lacks: transformers draws them at random, and a head of noise writes noise."""
    if missing:
        raise MaskedLMError(
            f"{folder} lacks {len(missing)} weights of a masked language model (first: {min(missing)}), expected them "
            "all; take the checkpoint as it was pre-trained, with its head, not an encoder made from it"
        )


def refill(
    texts: Sequence[str], seeds: Sequence[int], model: MaskedLM, view: MaskedView, batch_tokens: int
) -> list[str]:
    """Each text with a share of its tokens written anew; one without tokens stays as it is.

    Args:
        texts: Sentences; of long ones the first 512 tokens are looked at.
        seeds: A number of each sentence's own, which alone decides what is masked and drawn.
        model: The masked language model.
        view: Share of tokens, and how many pieces are drawn from.
        batch_tokens: Most tokens computed at once, padding included.
    """
    plans = _plans(texts, seeds, model, view.share)
    filled = list(texts)
    for batch in _batches(plans, batch_tokens):
        chosen = [plans[number] for number in batch]
        pieces = iter(_drawn(model, chosen, view.top_k))
        for number, plan in zip(batch, chosen, strict=True):
            filled[number] = _written(texts[number], plan, [model.pieces[next(pieces)] for _ in plan.places], model)
    return filled


def _plans(texts: Sequence[str], seeds: Sequence[int], model: MaskedLM, share: float) -> list[Plan]:
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
    # A character that takes several tokens cannot be replaced in part: such tokens share their span.
    shared = {span for span, following in pairwise(bare) if span == following}
    open_places = [
        place
        for place, (start, end) in enumerate(bare)
        if not special[place] and start < end and (start, end) not in shared
    ]
    # Only Random.random() is promised to give the same numbers in every version of Python.
    drawn = sorted((random.random(), place) for place in open_places)
    places = sorted(place for _, place in drawn[: max(1, int(share * len(open_places) + 0.5))])
    return Plan(ids, places, [bare[place] for place in places], [random.random() for _ in places])


def _batches(plans: Sequence[Plan], batch_tokens: int) -> Iterator[list[int]]:
    """Numbers of the plans that mask anything, like lengths together, in batches of bounded size."""
    order = sorted((len(plan.ids), number) for number, plan in enumerate(plans) if plan.places)
    batch: list[int] = []
    for length, number in order:
        if batch and length * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _drawn(model: MaskedLM, plans: Sequence[Plan], top_k: int) -> list[int]:
    """The piece for each masked token of a batch, drawn by its probability among the `top_k` best of its kind."""
    was_N = torch.tensor([plan.ids[place] for plan in plans for place in plan.places], device=model.device)
    draw_N1 = torch.tensor([[draw] for plan in plans for draw in plan.draws], device=model.device)
    allowed_NV = model.allowed_2V[model.inside_V[was_N].long()]
    logits_NV = model.logits(plans).masked_fill(~allowed_NV, float("-inf"))
    best_NK, piece_NK = logits_NV.topk(min(top_k, logits_NV.shape[1]))
    passed_NK = best_NK.softmax(dim=1).cumsum(dim=1)
    choice_N1 = (passed_NK < draw_N1 * passed_NK[:, -1:]).sum(dim=1, keepdim=True).clamp(max=passed_NK.shape[1] - 1)
    chosen: list[int] = piece_NK.gather(1, choice_N1).squeeze(1).tolist()
    return chosen


def _written(text: str, plan: Plan, pieces: Sequence[str], model: MaskedLM) -> str:
    for (start, end), piece in reversed(list(zip(plan.spans, pieces, strict=True))):
        cased = piece[0].upper() + piece[1:] if model.is_uncased and text[start].isupper() else piece
        text = text[:start] + cased + text[end:]
    return text
