"""A pretrained transformer as a sentence encoder: load it from a folder, run it over texts.

Design:
- the folder is local; finding it (Hub, mirror, package) is storage's work
- a weight that the folder does not hold is an error, because a newly initialised layer scores like noise
- the pooler head that some architectures add is removed: mean and cls pooling do not use it
- rows are sorted by length and padded in small batches; the caller sees its own order

Shapes: B sentences, T tokens, D width.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as hf_logging

from models.encoder.packed import first_position, lay_out, run_packed
from models.encoder.pooling import pool
from models.encoder.sharing import gather_shares, own_share
from models.encoder.tokens import Tokens, budget_batches, tokenise
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from models.encoder.config import EncoderConfig

logger = logging.getLogger(__name__)

ENCODE_TOKENS = 1024  # padded tokens a forward pass; measured best on CPU (1,024 before 4,096)
REPORT_EVERY = 50  # forward passes between two progress reports


class Encoder(nn.Module):
    """Transformer + pooling: token ids to sentence vectors."""

    def __init__(self, backbone: PreTrainedModel, config: EncoderConfig) -> None:
        super().__init__()
        self.backbone = backbone
        self.config = config
        self._packs: tuple[int | None] | None = None  # first_position, once known

    @property
    def width(self) -> int:
        """D, the width of a sentence vector."""
        return int(self.backbone.config.hidden_size)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def forward(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
        """Sentence vectors (B, D) of padded token ids; mask is 1 for real tokens."""
        hidden_BTD = self.backbone(input_ids=ids_BT, attention_mask=mask_BT).last_hidden_state
        return pool(hidden_BTD, mask_BT, self.config.pooling)

    def embed_rows(self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int) -> torch.Tensor:
        """Sentence vectors (len(rows), D) of some rows, in the order of `rows`, differentiable.

        The rows pass the network end to end without padding where the architecture allows it, else in length-sorted
        batches of `batch_tokens` padded tokens; up to rounding both equal one padded pass over all of them. Where
        several processes train together, each embeds its share.
        """
        return gather_shares(self._embed(tokens, own_share(rows), batch_tokens))

    def _embed(self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int) -> torch.Tensor:
        first = self._first_position(tokens.pad_id)
        if first is not None:
            layout = lay_out(tokens, rows, self.device, by_length=self.device.type == "cpu")
            hidden_ND, padding = run_packed(self.backbone, layout, first), layout.padding
            vectors_BD = pool(padding.pad(hidden_ND), padding.real.long(), self.config.pooling)
            return _in_order(vectors_BD, layout.order)
        parts = list(budget_batches(tokens.lengths_of(rows), batch_tokens))
        vectors_BD = torch.cat([self(*self._move(tokens.padded(rows[part]))) for part in parts])
        return _in_order(vectors_BD, np.concatenate(parts))

    def _first_position(self, pad_id: int) -> int | None:
        if self._packs is None:
            self._packs = (first_position(self.backbone, pad_id, self.config.max_length),)
        return self._packs[0]

    def _move(self, pair: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return pair[0].to(self.device), pair[1].to(self.device)


def load_encoder(folder: Path, config: EncoderConfig) -> tuple[Encoder, PreTrainedTokenizerBase]:
    """Load a transformer and its tokenizer from a local folder, in fp32 and evaluation mode.

    Raises:
        EncoderError: The folder is not a model, lacks weights, or allows fewer positions than `max_length`.
    """
    if not (folder / "config.json").is_file():
        raise EncoderError(
            f"{folder}: no config.json, expected a transformers model folder; give the folder that holds it"
        )
    try:
        backbone, info = _read_backbone(folder)
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise EncoderError(
            f"{folder}: transformers cannot load it ({error}); check that the copy is complete"
        ) from error
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing or info["mismatched_keys"]:
        raise EncoderError(
            f"{folder}: {len(missing)} weights are missing (first: {missing[:3]}) and "
            f"{len(info['mismatched_keys'])} have another shape, expected a complete encoder; "
            "newly initialised layers are refused: use a folder whose weights belong to its config.json"
        )
    _check_length(backbone, config, folder)
    if getattr(backbone, "pooler", None) is not None:
        setattr(backbone, "pooler", None)  # noqa: B010  a module slot that mypy knows as a module only
    return Encoder(backbone, config).eval(), tokenizer


def encode(
    encoder: Encoder,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    *,
    batch_tokens: int = ENCODE_TOKENS,
    device: str | torch.device | None = None,
    bf16: bool = False,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> NDArray[np.float32]:
    """Embed texts: (n, D) float32, row i belongs to text i.

    Args:
        encoder: Put into evaluation mode and onto `device` for the call; its mode is restored.
        tokenizer: The encoder's own.
        texts: Any number of texts; repeated texts are embedded as often as they occur.
        batch_tokens: Padded tokens a forward pass.
        device: Where to compute; None for where the encoder is.
        bf16: Forward arithmetic in bf16 (about twice as fast or more, drifts in the third digit).
        on_progress: Called as (sentences done, sentences in all, detail).

    Raises:
        EncoderError: A text gives no token, or a vector is not finite (the message names the text's number).
    """
    tokens = tokenise(tokenizer, texts, encoder.config.max_length)
    return encode_tokens(encoder, tokens, batch_tokens=batch_tokens, device=device, bf16=bf16, on_progress=on_progress)


def encode_tokens(
    encoder: Encoder,
    tokens: Tokens,
    *,
    batch_tokens: int = ENCODE_TOKENS,
    device: str | torch.device | None = None,
    bf16: bool = False,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> NDArray[np.float32]:
    """As `encode`, for texts that are tokens already."""
    vectors = np.zeros((len(tokens), encoder.width), dtype=np.float32)
    done = 0
    if device is not None:
        encoder.to(device)
    with _evaluating(encoder), torch.inference_mode(), autocast(encoder.device, bf16):
        for number, rows in enumerate(budget_batches(tokens.lengths, batch_tokens), start=1):
            ids_BT, mask_BT = tokens.padded(rows)
            vectors[rows] = encoder(ids_BT.to(encoder.device), mask_BT.to(encoder.device)).cpu().numpy()
            done += len(rows)
            if on_progress is not None and (number % REPORT_EVERY == 0 or done == len(tokens)):
                on_progress(done, len(tokens), f"longest row {int(tokens.lengths[rows].max())} tokens")
    _check_finite(vectors)
    return vectors


def autocast(device: torch.device, bf16: bool) -> contextlib.AbstractContextManager[Any]:
    """Bf16 autocast where asked for, else nothing."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if bf16 else contextlib.nullcontext()


@contextlib.contextmanager
def _evaluating(encoder: Encoder) -> Iterator[None]:
    was_training = encoder.training
    encoder.eval()
    try:
        yield
    finally:
        encoder.train(was_training)


def _read_backbone(folder: Path) -> tuple[PreTrainedModel, dict[str, Any]]:
    verbosity = hf_logging.get_verbosity()
    hf_logging.set_verbosity(
        logging.ERROR
    )  # it warns of heads that are left out; what is missing is checked by the caller
    try:
        backbone, info = AutoModel.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, dtype=torch.float32, output_loading_info=True
        )
    finally:
        hf_logging.set_verbosity(verbosity)
    return backbone, info


def _check_length(backbone: PreTrainedModel, config: EncoderConfig, folder: Path) -> None:
    positions = getattr(backbone.config, "max_position_embeddings", None)
    if positions is not None and config.max_length > int(positions):
        raise EncoderError(
            f"{folder}: the model has {positions} positions, max_length asks for {config.max_length}; lower max_length"
        )


def _in_order(vectors_BD: torch.Tensor, order: NDArray[np.int64]) -> torch.Tensor:
    """Undo a reordering: row i of the result is the one that `order` says was row i."""
    back = np.argsort(order, kind="stable")
    return vectors_BD.index_select(0, torch.from_numpy(back).to(vectors_BD.device))


def _check_finite(vectors: NDArray[np.float32]) -> None:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise EncoderError(
            f"the embedding of text {bad[0]} is not finite ({len(bad)} of {len(vectors)} texts); the weights "
            "are broken, or bf16 overflowed: look at the training log, or encode in fp32"
        )
