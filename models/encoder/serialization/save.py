"""Save an encoder as a sentence-transformers folder.

sentence-transformers reads the files since release 2.3 (a static table: since 3.2); the library is not needed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformers import PreTrainedModel

from bsl.models.encoder.config import read_json
from bsl.models.encoder.pooling import LAYER_WEIGHTS, TOKEN_WEIGHTS
from bsl.models.encoder.serialization.modules import name_of, write_head
from bsl.models.encoder.serialization.pooling_modules import (
    write_first_skipped,
    write_layer_weights,
    write_pooling,
    write_word_weights,
)
from bsl.models.encoder.serialization.word_embeddings import KIND, DivideByMeanWeight, write_word_embeddings
from bsl.models.encoder.static import StaticTable, WhitespaceTokenizer, save_static_tokenizer
from bsl.models.encoder.transformer import quiet_transformers, unused_pooler
from bsl.models.encoder.weights import write_json, write_weights
from bsl.models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from bsl.models.encoder.heads import Head
    from bsl.models.encoder.network import Encoder
    from bsl.models.encoder.static import Tokenizer

    Module = tuple[str, Callable[[Path], None]]  # class name in sentence-transformers, function that writes the module


def write_modules(encoder: Encoder, tokenizer: Tokenizer, folder: Path) -> None:
    """Write weights, tokenizer, heads, pooling and maximal length into `folder`, which is created if needed.

    Raises:
        EncoderError: The backbone is an ONNX graph, or a static table with token heads or a pooling other than mean.
    """
    folder.mkdir(parents=True, exist_ok=True)
    backbone = encoder.backbone
    if isinstance(tokenizer, WhitespaceTokenizer):
        assert isinstance(backbone, StaticTable)
        to_pooling = _words(encoder, backbone, tokenizer)
    elif isinstance(backbone, StaticTable):
        to_pooling = [_table(encoder, backbone, tokenizer)]
    elif isinstance(backbone, PreTrainedModel):
        to_pooling = _transformer(encoder, backbone, tokenizer)
    else:
        raise EncoderError(
            f"{encoder.config.model}: an ONNX graph has no weights to write, expected a transformer. Export the folder "
            "that the graph was exported from."
        )
    modules = [
        *to_pooling,
        *(_head(head) for head in encoder.sentence_heads if not isinstance(head, DivideByMeanWeight)),
    ]
    paths = [f"{number}_{kind}" if number else "" for number, (kind, _) in enumerate(modules)]
    for (_, write), path in zip(modules, paths, strict=True):
        (folder / path).mkdir(exist_ok=True)
        write(folder / path)
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, ((kind, _), path) in enumerate(zip(modules, paths, strict=True))
    ]
    write_json(folder / "modules.json", listed)


def _table(encoder: Encoder, table: StaticTable, tokenizer: PreTrainedTokenizerBase) -> Module:
    """Return the module of a table; in sentence-transformers this module also computes the mean."""
    if encoder.config.pooling != "mean" or encoder.token_heads:
        heads = ", ".join(name_of(head) for head in encoder.token_heads) or "no"
        raise EncoderError(
            f"{encoder.config.model}: a static table with pooling {encoder.config.pooling} and {heads} heads on its "
            "token vectors, expected pooling mean and no such heads, because sentence-transformers supports only "
            "these. Export the encoder as ONNX."
        )

    def write(folder: Path) -> None:
        write_weights(folder, table.state_dict())
        save_static_tokenizer(tokenizer, encoder.config.length, folder)

    return "StaticEmbedding", write


def _words(encoder: Encoder, table: StaticTable, words: WhitespaceTokenizer) -> list[Module]:
    """Return the modules of a word table: the table, its words' weights, token heads, and pooling."""
    weights_V = table.weights
    weights: list[Module] = []
    if weights_V is not None:
        # Every row needs a name, and some tables have more rows than words.
        names = [*words.words, *(f"[row {row}]" for row in range(len(words.words), words.pad_token_id))]
        listed = dict(zip(names, weights_V.tolist(), strict=False))
        weights = [(TOKEN_WEIGHTS, lambda folder: write_word_weights(weights_V[:-1], names, listed, folder))]
    return [
        (KIND, lambda folder: write_word_embeddings(table, words, encoder.config.length, folder)),
        *weights,
        *(_head(head) for head in encoder.token_heads),
        ("Pooling", lambda folder: write_pooling(encoder, folder)),
    ]


def _transformer(encoder: Encoder, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[Module]:
    """Return the modules of a transformer up to pooling: layer weights, token heads and token weights between."""
    module = encoder.pooling.module

    def write(folder: Path) -> None:
        with quiet_transformers():
            transformer.save_pretrained(folder, state_dict=transformer.state_dict() | unused_pooler(transformer))
        tokenizer.save_pretrained(folder)
        write_json(
            folder / "sentence_bert_config.json",
            {"max_seq_length": encoder.config.length, "do_lower_case": encoder.config.lower_case},
        )
        if encoder.pooling.reads_all_layers:  # the transformer must output all hidden states
            settings = read_json(folder / "config.json")
            write_json(folder / "config.json", settings | {"output_hidden_states": True})

    return [
        ("Transformer", write),
        *([(LAYER_WEIGHTS, lambda folder: write_layer_weights(encoder, folder))] if module == LAYER_WEIGHTS else []),
        *(_head(head) for head in encoder.token_heads),
        *([(TOKEN_WEIGHTS, lambda folder: write_first_skipped(tokenizer, folder))] if module == TOKEN_WEIGHTS else []),
        ("Pooling", lambda folder: write_pooling(encoder, folder)),
    ]


def _head(head: Head) -> Module:
    return name_of(head), lambda folder: write_head(head, folder)
