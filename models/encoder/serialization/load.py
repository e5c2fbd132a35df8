"""Load an encoder from a local folder of transformers or sentence-transformers.

modules.json                    the modules in order: backbone, heads and pooling (see modules.py)
<transformer>/config.json       at the root, or in a subfolder in old models
<pooling>/config.json           pooling modes, as written by sentence-transformers 2 to 5 or by 6
<head>/…                        settings and weights of a head
sentence_bert_config.json       maximal length and casing, next to config.json; also with other architectures' names
config_sentence_transformers.json  prompts, the default prompt, `truncate_dim`

An unsupported module or pooling is an error: ignoring it would change the vectors, and so the scores.
"""

from __future__ import annotations

import functools
import json
import logging
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import torch

from models.encoder.config import DEFAULT_LENGTH, LONGEST, EncoderConfig, architecture_of, read_json, read_tokenizer
from models.encoder.heads import PLUS, POOLER, dense_of
from models.encoder.network import Encoder
from models.encoder.serialization.modules import (
    SENTENCE_HEADS,
    THROUGH_PYTHON,
    TOKEN_HEADS,
    SavedModule,
    after_first,
    over_layers,
    read_head,
    read_modules,
    read_pooling,
)
from models.errors import EncoderError, load_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from models.encoder.config import WordsConfig
    from models.encoder.heads import Head, TokenHead
    from models.encoder.network import Backbone
    from models.encoder.static import Tokenizer

logger = logging.getLogger(__name__)

LENGTHS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Files with a transformer's maximal length and casing; old releases name the file after the architecture."""
ADAPTER: Final = "adapter_config.json"
GRAPH_SUFFIX: Final = ".onnx"
GRAPH_FOLDER: Final = "onnx"  # folder of graphs
DEFAULT_GRAPH: Final = "model.onnx"
_WEIGHTS: Final = ("*.safetensors", "pytorch_model*.bin")
PROMPTS: Final = "config_sentence_transformers.json"


@dataclass(frozen=True)
class SavedEncoder:
    """Modules and settings read from an encoder's folder.

    Attributes:
        backbone: The module that outputs token vectors, and its folder.
        pooling: Pooling of the token vectors; None if the folder does not set it.
        normalize: Whether the vectors are scaled to length 1; None if the folder does not set it.
        lower_case: Whether text is lower-cased before tokenisation; None if the folder does not set it.
        max_length: Maximal length in tokens; None if the folder does not set it.
        token_heads: Heads before pooling.
        sentence_heads: Heads after pooling.
        words: Word splitting of a word table; None for other backbones.
        word_weights: Folder of the weights of a table's words.
        prompts: Prompts by name.
        default_prompt: Name of the prompt that is used by default.
        pools_prompt: Whether a prompt's tokens are pooled.
        graph: ONNX graph that replaces the transformer's weights.
        truncate_dim: Number of leading dimensions to which vectors are truncated; None for all.
    """

    backbone: SavedModule
    pooling: str | None = None
    normalize: bool | None = None
    lower_case: bool | None = None
    max_length: int | None = None
    token_heads: tuple[SavedModule, ...] = ()
    sentence_heads: tuple[SavedModule, ...] = ()
    words: WordsConfig | None = None
    word_weights: Path | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    pools_prompt: bool = True
    graph: Path | None = None
    truncate_dim: int | None = None


def load_network(folder: Path, config: EncoderConfig | None) -> tuple[Encoder, Tokenizer, Mapping[str, str]]:
    """Load a network, its tokenizer and its prompts, in fp32 and evaluation mode.

    The path of an ONNX graph, or a folder with a graph and no weights, gives an encoder that cannot be trained. Where
    the configuration sets no maximal length or prompt, the folder's own is used.

    Raises:
        EncoderError: The folder is not a model or is damaged. It lacks weights (also a pooler, if the pooling needs
            one) or has weights that are not finite. It has fewer embeddings than its tokenizer has ids, or accepts
            fewer tokens than `max_length`. A prompt that is not pooled leaves no room for text. The folder's pooling or
            convolutions differ from the configuration, or one of its modules is not supported.
    """
    with load_errors(folder, EncoderError):
        saved = read_saved(folder)
        config = config or saved_config(folder, folder.name, saved) or EncoderConfig(model=folder.name)
        network, tokenizer = _load(folder, saved, config)
    # By numpy: on busy cores, torch's threads wait for each other at each tensor, 400 times as long as they compute.
    broken = [name for name, weight in network.named_parameters() if not np.isfinite(weight.detach().numpy()).all()]
    if broken:
        raise EncoderError(
            f"{folder}: {len(broken)} weights are not finite (first: {broken[0]}): its training diverged, or the copy "
            "is damaged. Use an earlier checkpoint, or copy the folder again."
        )
    return network, tokenizer, saved.prompts


def _load(folder: Path, saved: SavedEncoder, config: EncoderConfig) -> tuple[Encoder, Tokenizer]:
    check_settings(saved, config)
    config = completed(saved, config)
    if saved.pooling is not None:
        config = config.model_copy(update={"pooling": saved.pooling})  # a saved pooler is a head
    backbone, tokenizer, first_head = _backbone(saved, config)
    token_heads = cast("list[TokenHead]", [read_head(head) for head in saved.token_heads])  # TOKEN_HEADS only
    sentence_heads = [*first_head, *(read_head(head) for head in saved.sentence_heads)]
    if config.pooling == POOLER:
        from models.encoder.transformer import take_pooler

        sentence_heads.insert(0, take_pooler(backbone, folder))
        config = config.model_copy(update={"pooling": "cls"})
    network = Encoder(backbone, config, token_heads, sentence_heads).eval()
    if saved.truncate_dim is not None and saved.truncate_dim < network.width:
        first = dense_of(torch.eye(saved.truncate_dim, network.width), torch.zeros(saved.truncate_dim))
        network = network.with_heads(config, token_heads, [*sentence_heads, first])
    if token_heads:
        from models.encoder.cnn import check_convolutions

        check_convolutions(network)
    if config.prompt and not saved.pools_prompt:
        network.skipped = len(surrounding_ids(tokenizer, config.prompt)[0])
        if network.skipped >= network.config.length:
            raise EncoderError(
                f"{folder}: its prompt has {network.skipped} tokens, which are not pooled; the maximal length of "
                f"{network.config.length} tokens leaves none for the text. Raise encoder.max_length, or give a shorter "
                "encoder.prompt."
            )
    return network, tokenizer


def _backbone(saved: SavedEncoder, config: EncoderConfig) -> tuple[Backbone, Tokenizer, list[Head]]:
    """Load the backbone, its tokenizer, and the head of a weighted word table; imports only the module it needs."""
    folder = saved.backbone.folder
    if saved.graph is not None:
        from models.encoder.onnx import load_graph

        return *load_graph(saved.graph, folder, config), []
    if saved.backbone.kind == "StaticEmbedding":
        from models.encoder.static import load_static

        return *load_static(folder, config), []
    if saved.backbone.kind == "WordEmbeddings":
        from models.encoder.serialization.word_embeddings import load_word_embeddings

        return load_word_embeddings(folder, saved.word_weights, config)
    from models.encoder.transformer import load_transformer

    return *load_transformer(folder, config), []


def surrounding_ids(tokenizer: Tokenizer, prompt: str) -> tuple[list[int], list[int]]:
    """Return the ids before a text (special tokens and the prompt's) and the special tokens' ids after it."""
    prompt_ids, text_ids = (
        list(tokenizer(text, return_attention_mask=False)["input_ids"]) for text in (prompt, f"{prompt}the")
    )
    special = {*tokenizer.all_special_ids} - {tokenizer.unk_token_id}
    after = list(takewhile(special.__contains__, reversed(text_ids)))[::-1]
    return prompt_ids[: len(prompt_ids) - len(after)], after


def read_saved(folder: Path) -> SavedEncoder:
    """Read the modules and settings of a model folder, or of the folder of an ONNX graph, without weights.

    Raises:
        EncoderError: The folder is neither of transformers nor of sentence-transformers, is damaged, or has a module
            that is not supported.
    """
    with load_errors(folder, EncoderError):
        if folder.suffix == GRAPH_SUFFIX:
            return replace(_read(folder_of(folder)), graph=folder)
        saved = _read(folder)
        graph = find_graph(saved.backbone.folder) if saved.backbone.kind == "Transformer" else None
        return replace(saved, graph=graph)


def folder_of(graph: Path) -> Path:
    """Return the model's folder of a graph, which is in it or in its subfolder `onnx`."""
    return graph.parent.parent if graph.parent.name == GRAPH_FOLDER else graph.parent


def find_graph(folder: Path) -> Path | None:
    """Find the ONNX graph of a folder without weights; None if it has weights, or neither.

    Raises:
        EncoderError: There are several graphs, and none is named model.onnx.
    """
    if any(path.is_file() for pattern in _WEIGHTS for path in folder.glob(pattern)):
        return None
    graphs = sorted([*folder.glob(f"*{GRAPH_SUFFIX}"), *(folder / GRAPH_FOLDER).glob(f"*{GRAPH_SUFFIX}")])
    default = [path for path in (folder / DEFAULT_GRAPH, folder / GRAPH_FOLDER / DEFAULT_GRAPH) if path in graphs]
    if len(graphs) > 1 and not default:
        names = ", ".join(path.relative_to(folder).as_posix() for path in graphs)
        raise EncoderError(
            f"{folder}: no weights, and several ONNX graphs ({names}), expected one graph, or "
            f"{GRAPH_FOLDER}/{DEFAULT_GRAPH}. Give the path of one graph, such as {graphs[0]}."
        )
    return next(iter(default or graphs), None)


def _read(folder: Path) -> SavedEncoder:
    if not (folder / "modules.json").is_file():
        return SavedEncoder(SavedModule("Transformer", _with_config(folder)))
    modules = read_modules(folder)
    texts = read_json(folder / PROMPTS, {})
    prompts = {name: text for name, text in (texts.get("prompts") or {}).items() if text}
    default = texts.get("default_prompt_name") if texts.get("default_prompt_name") in prompts else None
    truncate_dim = _truncation(folder, texts.get("truncate_dim"), modules)
    backbone, *others = modules
    token_heads, sentence_heads = (
        tuple(module for module in others if module.kind in kinds) for kinds in (TOKEN_HEADS, SENTENCE_HEADS)
    )
    saved = SavedEncoder(
        backbone,
        normalize=modules[-1].kind == "Normalize" and truncate_dim is None,  # truncated vectors are not scaled again
        token_heads=token_heads,
        sentence_heads=sentence_heads,
        prompts=prompts,
        default_prompt=default,
        truncate_dim=truncate_dim,
    )
    if backbone.kind == "StaticEmbedding":
        from models.encoder.static import static_settings

        length, words = static_settings(backbone.folder)
        return replace(saved, pooling="mean", lower_case=False, max_length=length, words=words)
    return _pooled(saved, {module.kind: module.folder for module in others})


def _pooled(saved: SavedEncoder, folders: Mapping[str, Path]) -> SavedEncoder:
    """Add pooling, maximal length and casing, read from the folders of the modules (kind → folder)."""
    backbone, weights = saved.backbone.folder, folders.get("WordWeights")
    pooling = read_pooling(folders["Pooling"])
    saved = replace(saved, pools_prompt=read_json(folders["Pooling"] / "config.json").get("include_prompt", True))
    if saved.backbone.kind == "WordEmbeddings":
        from models.encoder.serialization.word_embeddings import longest_input

        if weights is not None and (pooling != "mean" or saved.token_heads):
            raise EncoderError(
                f"{weights}: word weights with {len(saved.token_heads)} heads on token vectors and pooling {pooling}, "
                f"expected no such heads and pooling mean. {THROUGH_PYTHON}."
            )
        length = longest_input(backbone)
        return replace(saved, pooling=pooling, lower_case=False, max_length=length, word_weights=weights)
    _with_config(backbone)
    if "WeightedLayerPooling" in folders:
        pooling = over_layers(folders["WeightedLayerPooling"], pooling)
    if weights is not None:
        pooling = after_first(weights, backbone, pooling)
    path = next((backbone / name for name in LENGTHS if (backbone / name).is_file()), None)
    settings = read_json(path) if path is not None else {}
    lower_case, longest = bool(settings.get("do_lower_case")), settings.get("max_seq_length")
    return replace(saved, pooling=pooling, lower_case=lower_case, max_length=longest)


def saved_config(folder: Path, model: str, saved: SavedEncoder | None = None) -> EncoderConfig | None:
    """Return the configuration of `SentenceTransformer(folder)`; None if the folder is a bare transformer.

    Args:
        folder: Local folder of the model.
        model: Name for the field `model`.
        saved: Result of `read_saved`, if the folder has been read.

    Raises:
        EncoderError: As `read_saved`.
    """
    saved = saved or read_saved(folder)
    if saved.pooling is None:
        return None
    with load_errors(folder, EncoderError):
        return EncoderConfig(
            model=model,
            pooling=saved.pooling,
            normalize=bool(saved.normalize),
            lower_case=bool(saved.lower_case),
            max_length=_own_length(saved),
        )


def completed(saved: SavedEncoder, config: EncoderConfig) -> EncoderConfig:
    """Fill in maximal length and prompt: the configured ones, else the folder's own.

    The length of a bare transformer is `DEFAULT_LENGTH`. A prompt is the name of a prompt of the folder, or a text.
    """
    saved_length = None if saved.pooling is None else _own_length(saved)
    if saved_length is not None and config.max_length not in (None, saved_length):
        logger.warning(
            "%s: saved with a maximal length of %d tokens, but encoder.max_length is %d. Unset it to use the saved "
            "length.",
            saved.backbone.folder,
            saved_length,
            config.max_length,
        )
    prompt = saved.prompts.get(saved.default_prompt or "", "") if config.prompt is None else config.prompt
    prompt = saved.prompts.get(prompt, prompt)
    if prompt:
        logger.info("%s: every text gets the prompt %r", saved.backbone.folder, prompt)
    return config.model_copy(
        update={"max_length": config.max_length or saved_length or DEFAULT_LENGTH, "prompt": prompt}
    )


def check_settings(saved: SavedEncoder, config: EncoderConfig) -> None:
    """Check that the configuration agrees with a folder's settings.

    Raises:
        EncoderError: They differ, so the vectors would not be those that the model was trained for.
    """
    # An encoder of `cls-pooler` is saved as pooling `cls` with a dense layer after it.
    has_pooler = saved.pooling == "cls" and [head.kind for head in saved.sentence_heads][:1] == ["Dense"]
    for name in ("pooling", "normalize", "lower_case"):
        found, configured = getattr(saved, name), getattr(config, name)
        if found is not None and found != configured and not (configured == POOLER and has_pooler):
            raise EncoderError(
                f"{saved.backbone.folder}: encoder.{name} is {configured!r}, but the encoder was saved with {found!r}. "
                f"Set encoder.{name}={json.dumps(found)}."
            )


def _own_length(saved: SavedEncoder) -> int:
    """Return the maximal length of a sentence-transformers folder; if it sets none, that of its tokenizer.

    It is limited to the transformer's position table; sentence-transformers fails for longer texts.
    """
    folder = saved.backbone.folder
    length = min(saved.max_length or int(read_tokenizer(folder).model_max_length), LONGEST)
    most = None
    if saved.backbone.kind == "Transformer":
        from models.encoder.transformer import position_limit_of

        most = position_limit_of(folder, length)
    if most is not None and length > most:
        if saved.max_length is not None:
            _warn_of_limit(folder, saved.max_length, most)
        return most
    return length


@functools.cache  # one warning, however often a folder is read
def _warn_of_limit(folder: Path, length: int, most: int) -> None:
    logger.warning(
        "%s: saved with a maximal length of %d tokens; its transformer accepts only %d", folder, length, most
    )


def _with_config(folder: Path) -> Path:
    if (folder / ADAPTER).is_file():
        raise EncoderError(
            f"{folder}: {ADAPTER} describes an adapter ({read_json(folder / ADAPTER).get('peft_type')}), which is not "
            "supported. Merge it into the weights (peft: merge_and_unload) and save the encoder again."
        )
    if not (folder / "config.json").is_file():
        raise EncoderError(
            f"{folder}: no config.json, expected a transformers model folder. Give the folder that contains it."
        )
    architecture_of(folder)  # raises an error early, before a run writes anything
    return folder


def _truncation(folder: Path, value: object, modules: Sequence[SavedModule]) -> int | None:
    """Check `truncate_dim`; return None if it truncates nothing."""
    if value is None:
        return None
    if type(value) is not int or value < 1:
        raise EncoderError(
            f"{folder}: truncate_dim is {value!r}, expected an integer of at least 1. Correct it in {PROMPTS}."
        )
    width = _width(modules)
    return None if width is not None and value >= width else value


def _width(modules: Sequence[SavedModule]) -> int | None:
    """Return the output width from the modules' settings; None if no module states it, as for a static table."""
    for module in reversed(modules):
        if module.kind == "Dense":
            return int(read_json(module.folder / "config.json")["out_features"])
        if module.kind == "Pooling":
            settings = read_json(module.folder / "config.json")
            width = settings.get("embedding_dimension", settings.get("word_embedding_dimension"))
            return None if width is None else int(width) * len(read_pooling(module.folder).split(PLUS))
    return None
