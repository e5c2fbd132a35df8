"""Save an encoder as a sentence-transformers folder.

sentence-transformers reads the files since release 2.3 (a static table: since 3.2); the library is not needed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from transformers import PreTrainedModel

from models.encoder.config import read_json
from models.encoder.heads import AFTER_FIRST, FIRST_LAYER, LAYERS, PLUS, layer_weights, token_pooling
from models.encoder.serialization.modules import NAMES, SWITCHES, name_of, write_head
from models.encoder.serialization.word_embeddings import (
    KIND,
    WEIGHTS,
    ByWeights,
    write_word_embeddings,
    write_word_weights,
)
from models.encoder.static import StaticTable, WhitespaceTokenizer, save_static_tokenizer
from models.encoder.transformer import quiet_transformers, write_json, write_weights
from models.errors import EncoderError

_LATER = frozenset({"weighted", "last"})  # unknown to older releases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from models.encoder.heads import Head
    from models.encoder.network import Encoder
    from models.encoder.static import Tokenizer

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
    modules = [*to_pooling, *(_head(head) for head in encoder.sentence_heads if not isinstance(head, ByWeights))]
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
        listed = dict(zip(words.words, weights_V.tolist(), strict=False))
        # Every row needs a name, and some tables have more rows than words.
        names = [*words.words, *(f"[row {row}]" for row in range(len(words.words), words.pad_token_id))]
        weights = [(WEIGHTS, lambda folder: write_word_weights(weights_V[:-1], names, listed, folder))]
    return [
        (KIND, lambda folder: write_word_embeddings(table, words, encoder.config.length, folder)),
        *weights,
        *(_head(head) for head in encoder.token_heads),
        ("Pooling", lambda folder: write_json(folder / "config.json", _pooling(encoder))),
    ]


def _transformer(encoder: Encoder, transformer: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[Module]:
    """Return the modules of a transformer up to pooling: layer weights, token heads and token weights between."""
    layers, after_first = encoder.config.pooling in LAYERS, encoder.config.pooling == AFTER_FIRST

    def write(folder: Path) -> None:
        with quiet_transformers():
            transformer.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_json(
            folder / "sentence_bert_config.json",
            {"max_seq_length": encoder.config.length, "do_lower_case": encoder.config.lower_case},
        )
        if layers:  # the transformer must output all hidden states
            settings = read_json(folder / "config.json")
            write_json(folder / "config.json", settings | {"output_hidden_states": True})

    return [
        ("Transformer", write),
        *([("WeightedLayerPooling", lambda folder: _write_layers(encoder, folder))] if layers else []),
        *(_head(head) for head in encoder.token_heads),
        *([("WordWeights", lambda folder: _write_word_weights(tokenizer, folder))] if after_first else []),
        ("Pooling", lambda folder: write_json(folder / "config.json", _pooling(encoder))),
    ]


def _head(head: Head) -> Module:
    return name_of(head), lambda folder: write_head(head, folder)


def _pooling(encoder: Encoder) -> dict[str, object]:
    # For mean-after-first, the WordWeights module before pooling has given the first token weight 0.
    names = ["mean" if part == AFTER_FIRST else token_pooling(part) for part in encoder.config.pooling.split(PLUS)]
    keys = {key: name in names for key, name in SWITCHES.items() if name in names or name not in _LATER}
    by_switches = names == [name for name in SWITCHES.values() if name in names]
    # Switches have a fixed order; any other order needs a list of names, which releases before 6 do not read.
    settings = keys if by_switches else {"pooling_mode": [NAMES[name] for name in names]}
    unpooled = {"include_prompt": False} if encoder.skipped else {}
    return {"word_embedding_dimension": encoder.token_width, **settings, **unpooled}


def _write_layers(encoder: Encoder, folder: Path) -> None:
    """Write the layers to average, as a weight for each layer: 1, 0, …, 0, 1 for `first-last`."""
    config = encoder.backbone.config
    layers, width = int(config.num_hidden_layers), int(config.hidden_size)
    write_json(
        folder / "config.json",
        {"word_embedding_dimension": width, "layer_start": FIRST_LAYER, "num_hidden_layers": layers},
    )
    write_weights(folder, {"layer_weights": layer_weights(encoder.config.pooling, layers)})


def _write_word_weights(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write token weights for sentence-transformers' weighted mean: 0 for the first token, [CLS], and 1 for others."""
    first = tokenizer.cls_token_id
    if first is None:
        raise EncoderError(
            f"encoder.pooling=mean-after-first: the tokenizer {type(tokenizer).__name__} adds no token before a text "
            "that could be skipped. Set encoder.pooling=mean."
        )
    weights_V = torch.ones(len(tokenizer))
    weights_V[first] = 0.0
    vocabulary = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    write_word_weights(weights_V, vocabulary, {str(tokenizer.cls_token): 0.0}, folder)
