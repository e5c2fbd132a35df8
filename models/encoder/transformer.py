"""A pretrained transformer as a sentence encoder: load it from a folder, run it over texts.

Design:
- the folder is local; finding it (Hub, mirror, package) is storage's work
- a weight that the folder does not hold is an error, because a newly initialised layer scores like noise
- the pooler head that some architectures add is removed: mean and cls pooling do not use it
- rows are sorted by length and pass without padding where the architecture allows it (packed.py), else padded in small
  batches; the caller sees its own order

Shapes: B sentences, T tokens, D width.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tokenizers import normalizers
from torch import nn
from torch.nn import functional
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as hf_logging

from models.encoder.arithmetic import arithmetic
from models.encoder.packed import first_position, lay_out, run_packed
from models.encoder.pooling import pool, token_vectors
from models.encoder.saved import check_settings, read_saved
from models.encoder.sharing import gather_shares, own_share
from models.encoder.tokens import Tokens, budget_batches, tokenise
from models.errors import EncoderError, NoEmbeddingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from transformers import PreTrainedConfig

    from models.encoder.config import EncoderConfig

logger = logging.getLogger(__name__)

ENCODE_TOKENS = 1024  # padded tokens a forward pass; measured best on CPU (1,024 before 4,096)
# What transformers' architectures call the dropout inside their layers; heads' own are not here.
DROPOUTS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "attention_dropout",
    "embedding_dropout",
    "mlp_dropout",
    "dropout",
)
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
    def drops(self) -> bool:
        """Whether a forward pass in training mode is random."""
        return any(isinstance(module, nn.Dropout) and module.p > 0 for module in self.modules())

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def forward(self, ids_BT: torch.Tensor, mask_BT: torch.Tensor) -> torch.Tensor:
        """Sentence vectors (B, D) of padded token ids; mask is 1 for real tokens."""
        pooling = self.config.pooling
        output = self.backbone(
            input_ids=ids_BT, attention_mask=mask_BT, output_hidden_states=pooling == "first-last", return_dict=True
        )
        return self._scaled(pool(token_vectors(output, pooling), mask_BT, pooling))

    def embed_rows(self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int) -> torch.Tensor:
        """Sentence vectors (len(rows), D) of some rows, in the order of `rows`, differentiable.

        The rows pass the network end to end without padding where the architecture allows it, else in length-sorted
        batches of `batch_tokens` padded tokens; up to rounding both equal one padded pass over all of them. Where
        several processes train together, each embeds its share.
        """
        return gather_shares(self.embed(tokens, own_share(rows), batch_tokens))

    def embed(self, tokens: Tokens, rows: NDArray[np.int64], batch_tokens: int) -> torch.Tensor:
        """As `embed_rows`, all rows by this process."""
        first = self._first_position(tokens.pad_id)
        if first is not None:
            layout = lay_out(tokens, rows, self.device, by_length=self.device.type == "cpu")
            hidden_ND, padding = run_packed(self.backbone, layout, first), layout.padding
            vectors_BD = self._scaled(pool(padding.pad(hidden_ND), padding.real.long(), self.config.pooling))
            return _in_order(vectors_BD, layout.order)
        parts = list(budget_batches(tokens.lengths_of(rows), batch_tokens))
        vectors_BD = torch.cat([self(*self._move(tokens.padded(rows[part]))) for part in parts])
        return _in_order(vectors_BD, np.concatenate(parts))

    def _scaled(self, vectors_BD: torch.Tensor) -> torch.Tensor:
        return functional.normalize(vectors_BD, dim=-1) if self.config.normalize else vectors_BD

    def _first_position(self, pad_id: int) -> int | None:
        if self.config.pooling == "first-last":
            return None  # a packed pass hands out the last layer alone
        if self._packs is None:
            self._packs = (first_position(self.backbone, pad_id, self.config.max_length),)
        return self._packs[0]

    def _move(self, pair: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return pair[0].to(self.device), pair[1].to(self.device)


def load_encoder(folder: Path, config: EncoderConfig) -> tuple[Encoder, PreTrainedTokenizerBase]:
    """Load a transformer and its tokenizer from a local folder, in fp32 and evaluation mode.

    Raises:
        EncoderError: The folder is not a model, lacks weights, takes fewer tokens than `max_length`, or is a
            sentence-transformers model that pools otherwise.
    """
    saved = read_saved(folder)
    check_settings(saved, config)
    folder = saved.transformer
    try:
        backbone, info = _read_backbone(folder, config)
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
    if config.lower_case:
        _lower_case(tokenizer)
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
        NoEmbeddingError: A text gives no token, or its vector is not finite.
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
    with _evaluating(encoder), torch.inference_mode(), arithmetic(encoder.device, bf16=bf16):
        for number, rows in enumerate(budget_batches(tokens.lengths, batch_tokens), start=1):
            vectors[rows] = encoder.embed(tokens, rows, batch_tokens).cpu().numpy()
            done += len(rows)
            if on_progress is not None and (number % REPORT_EVERY == 0 or done == len(tokens)):
                on_progress(done, len(tokens), f"longest row {int(tokens.lengths[rows].max())} tokens")
    _check_finite(vectors)
    return vectors


@contextlib.contextmanager
def _evaluating(encoder: Encoder) -> Iterator[None]:
    was_training = encoder.training
    encoder.eval()
    try:
        yield
    finally:
        encoder.train(was_training)


def _read_backbone(folder: Path, config: EncoderConfig) -> tuple[PreTrainedModel, dict[str, Any]]:
    verbosity = hf_logging.get_verbosity()
    hf_logging.set_verbosity(
        logging.ERROR
    )  # it warns of heads that are left out; what is missing is checked by the caller
    settings = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    settings.output_hidden_states = False  # asked for in each call, where pooling needs them
    if config.dropout is not None:
        _set_dropout(settings, config.dropout, folder)
    try:
        backbone, info = AutoModel.from_pretrained(
            str(folder), config=settings, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    finally:
        hf_logging.set_verbosity(verbosity)
    return backbone, info


def _set_dropout(settings: PreTrainedConfig, rate: float, folder: Path) -> None:
    known = [name for name in DROPOUTS if hasattr(settings, name)]
    if not known:
        raise EncoderError(
            f"{folder}: a {settings.model_type} configuration has none of {', '.join(DROPOUTS)}; "
            "set its dropout in config.json and leave encoder.dropout unset"
        )
    for name in known:
        setattr(settings, name, rate)


def _check_length(backbone: PreTrainedModel, config: EncoderConfig, folder: Path) -> None:
    positions = getattr(backbone.config, "max_position_embeddings", None)
    # RoBERTa and its kin give the padding id a position, and tokens those behind it: of 514 they use 512.
    table = getattr(getattr(backbone, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    unused = 0 if padding is None else padding + 1
    if positions is not None and config.max_length > positions - unused:
        raise EncoderError(
            f"{folder}: the model takes {positions - unused} tokens, max_length asks for {config.max_length}; lower "
            "max_length"
        )


def _lower_case(tokenizer: PreTrainedTokenizerBase) -> None:
    core = tokenizer.backend_tokenizer
    steps = [normalizers.Lowercase(), *([core.normalizer] if core.normalizer is not None else [])]
    core.normalizer = normalizers.Sequence(steps)


def _in_order(vectors_BD: torch.Tensor, order: NDArray[np.int64]) -> torch.Tensor:
    """Undo a reordering: row i of the result is the one that `order` says was row i."""
    back = np.argsort(order, kind="stable")
    return vectors_BD.index_select(0, torch.from_numpy(back).to(vectors_BD.device))


def _check_finite(vectors: NDArray[np.float32]) -> None:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise NoEmbeddingError(
            int(bad[0]),
            f"has an embedding that is not finite ({len(bad)} of {len(vectors)} texts); the weights are broken, or "
            "bf16 overflowed: look at the training log, or encode in fp32",
        )
