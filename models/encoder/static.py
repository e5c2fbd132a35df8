"""A table of token vectors in place of a transformer: a token's vector is the same in every sentence.

Folder, as sentence-transformers' StaticEmbedding writes and reads it:

model.safetensors               `embedding.weight`; or, from model2vec, `embeddings`, with a row's number (`mapping`)
                                and a factor (`weights`) for each token where there are such
tokenizer.json                  its truncation, if any, is the longest input; of a table of words (words.py) it says how
                                sentences are cut, and has a token for sentences without any known word

Shapes: V tokens of the vocabulary, B sentences, T tokens, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import BaseModelOutput

from models.encoder.config import LONGEST
from models.encoder.files import read_json, read_weights
from models.encoder.words import KEY, NOTHING, TOKENIZER, read_words
from models.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from models.encoder.config import EncoderConfig, WordsConfig

KEY_MODEL2VEC = "embeddings"


class StaticConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """Width and vocabulary of a table."""

    model_type = "static-table"


class StaticTable(PreTrainedModel):  # type: ignore[no-untyped-call]
    """Token ids to token vectors by look-up; called as a transformer is, so that an encoder need not know.

    Attributes:
        weights: A factor for each row, which also becomes the last dimension of its vector; None for none.
    """

    config_class = StaticConfig
    weights: torch.Tensor | None

    def __init__(self, weight_VD: torch.Tensor, nothing: int | None = None) -> None:
        """A table, of which row `nothing`, if there is one, stays as it is."""
        size, width = weight_VD.shape
        config = StaticConfig()
        config.hidden_size, config.vocab_size = width, size
        super().__init__(config)
        self.embedding = nn.Embedding(size, width, padding_idx=nothing, _weight=weight_VD)
        self.register_buffer("weights", None)

    def weigh(self, weights_V: torch.Tensor) -> None:
        """Multiply each row by a weight, which becomes the last dimension of its token vectors."""
        self.weights = weights_V
        self.config.hidden_size += 1

    def forward(self, input_ids: torch.Tensor, **_: object) -> BaseModelOutput:
        """Token vectors (B, T, D) of ids (B, T) as the last layer of a transformer that has no other."""
        x_BTD = self.embedding(input_ids)
        if self.weights is not None:
            weight_BT1 = self.weights[input_ids].unsqueeze(-1)
            x_BTD = torch.cat([x_BTD * weight_BT1, weight_BT1], dim=-1)
        return BaseModelOutput(last_hidden_state=x_BTD)


def static_tokenizer(core: Tokenizer) -> PreTrainedTokenizerFast:
    """A table's tokenizer: its tokenisation of a text without special tokens, which a mean would count as words."""
    core = Tokenizer.from_str(core.to_str())
    core.post_processor = None  # adds special tokens
    core.no_padding()
    core.no_truncation()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core)  # type: ignore[no-untyped-call]
    # Any token pads, for padding is left out of the mean; set afterwards, it is not looked for in texts.
    tokenizer.pad_token = core.id_to_token(0) if core.token_to_id(NOTHING) is None else NOTHING
    return tokenizer


def static_settings(folder: Path) -> tuple[int, WordsConfig | None]:
    """The longest input of a saved table in tokens, and how it cuts sentences if it is one of words."""
    settings = read_json(folder / TOKENIZER)
    truncation = settings.get("truncation")
    return int(truncation["max_length"]) if truncation else LONGEST, read_words(settings)


def refuse_dropout(folder: Path, config: EncoderConfig) -> None:
    """Refuse a dropout rate, for a table has no dropout.

    Raises:
        EncoderError: The configuration asks for some.
    """
    if config.dropout is not None:
        raise EncoderError(
            f"{folder}: a static table has no dropout, encoder.dropout asks for {config.dropout}; leave it unset"
        )


def load_static(folder: Path, config: EncoderConfig) -> tuple[StaticTable, PreTrainedTokenizerBase]:
    """Load a table in fp32 and its tokenizer.

    Raises:
        EncoderError: A file is missing or damaged, the vocabulary is larger than the table, or dropout is asked for.
    """
    refuse_dropout(folder, config)
    read_json(folder / TOKENIZER)  # says what is wrong with the file, which the tokenizer's reader does not
    tokenizer = static_tokenizer(Tokenizer.from_file(str(folder / TOKENIZER)))
    weight_VD = _table(folder)
    last = max(tokenizer.get_vocab().values())
    if last >= len(weight_VD):
        raise EncoderError(
            f"{folder}: a table of {len(weight_VD)} rows and a tokenizer with ids up to {last}, expected a row for "
            "each; check that they belong together"
        )
    return StaticTable(weight_VD, tokenizer.get_vocab().get(NOTHING)), tokenizer


def save_static_tokenizer(tokenizer: PreTrainedTokenizerBase, max_length: int, folder: Path) -> None:
    """Write the tokenizer with the longest input, which has no other place in such a folder."""
    core = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    if max_length < LONGEST:
        core.enable_truncation(max_length)
    core.save(str(folder / TOKENIZER))


def _table(folder: Path) -> torch.Tensor:
    weights = read_weights(folder)
    if KEY in weights:
        return weights[KEY].float()
    if KEY_MODEL2VEC not in weights:
        raise EncoderError(
            f"{folder}: holds {', '.join(sorted(weights))}, expected {KEY} or {KEY_MODEL2VEC}; give the folder of a "
            "static table"
        )
    table_RD = weights[KEY_MODEL2VEC].float()
    weight_VD = table_RD[weights["mapping"].long()] if "mapping" in weights else table_RD
    return weight_VD * weights["weights"].float()[:, None] if "weights" in weights else weight_VD
