"""Read the settings of an encoder's folder: its modules, pooling, lengths, prompts and truncation; no weights.

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
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from bsl.models.encoder.config import (
    DEFAULT_LENGTH,
    LONGEST,
    architecture_of,
    read_json,
    read_settings,
    read_tokenizer,
)
from bsl.models.encoder.heads import SENTENCES, TOKENS, Dense, Normalize
from bsl.models.encoder.pooling import TOKEN_WEIGHTS, pooling_of
from bsl.models.encoder.prompts import ROLES
from bsl.models.encoder.serialization.modules import (
    THROUGH_PYTHON,
    SavedModule,
    check_files,
    read_modules,
    roles_not_loaded,
)
from bsl.models.encoder.serialization.pooling_modules import read_modes, read_pooling, stated_width
from bsl.models.encoder.serialization.settings import LENGTHS, PROMPTS, ROOT, check_table
from bsl.models.errors import EncoderError, load_errors
from bsl.storage.filesystem.model_folder import (
    DEFAULT_GRAPH,
    GRAPH,
    GRAPH_FOLDER,
    graphs_of,
    has_weights,
    settings_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bsl.models.encoder.config import EncoderConfig, WordsConfig
    from bsl.models.encoder.prompts import Role

logger = logging.getLogger(__name__)

ADAPTER: Final = "adapter_config.json"
_SAVED: Final = ("pooling", "normalize", "lower_case")  # fields that a folder of sentence-transformers sets
_MODEL2VEC: Final = "model2vec"
_DEQUANTISED: Final = ("fp8", "mxfp4")  # transformers reads these into fp32 on a CPU


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
        token_width: Width of the token vectors to pool, as the folder states it; None if it does not.
        roles_not_loaded: Roles whose texts have other modules, which are not loaded.
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
    token_width: int | None = None
    roles_not_loaded: tuple[Role, ...] = ()


def read_saved(folder: Path) -> SavedEncoder:
    """Read the modules and settings of a model folder, or of the folder of an ONNX graph; of weights, heads only.

    Raises:
        EncoderError: The folder is neither of transformers nor of sentence-transformers, is damaged, or has a module
            that is not supported.
    """
    with load_errors(folder, EncoderError):
        if folder.suffix == GRAPH:
            return replace(_read(settings_of(folder)), graph=folder)
        saved = _read(folder)
        graph = find_graph(saved.backbone.folder) if saved.backbone.kind == "Transformer" else None
        return replace(saved, graph=graph)


def find_graph(folder: Path) -> Path | None:
    """Find the ONNX graph of a folder without weights; None if it has weights, or neither.

    Raises:
        EncoderError: There are several graphs, and none is named model.onnx.
    """
    if has_weights(folder):
        return None
    graphs = graphs_of(folder)
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
        _refuse_model2vec(folder)
        return SavedEncoder(SavedModule("Transformer", _with_config(folder)))
    modules = read_modules(folder)
    texts = read_json(folder / PROMPTS, {})
    check_table(folder / PROMPTS, texts, ROOT)
    check_files(modules)
    prompts, default = _prompts(folder, texts)
    truncate_dim = _truncation(folder, texts.get("truncate_dim"), modules)
    backbone, *others = modules
    token_heads, sentence_heads = (
        tuple(module for module in others if module.head and module.head.vectors == vectors)
        for vectors in (TOKENS, SENTENCES)
    )
    saved = SavedEncoder(
        backbone,
        normalize=modules[-1].head is Normalize and truncate_dim is None,  # truncated vectors are not scaled again
        token_heads=token_heads,
        sentence_heads=sentence_heads,
        prompts=prompts,
        default_prompt=default,
        truncate_dim=truncate_dim,
        roles_not_loaded=roles_not_loaded(folder),
    )
    if backbone.kind == "StaticEmbedding":
        from bsl.models.encoder.static import static_settings

        length, words = static_settings(backbone.folder)
        return replace(saved, pooling="mean", lower_case=False, max_length=length, words=words)
    return _pooled(saved, {module.kind: module.folder for module in others})


def _refuse_model2vec(folder: Path) -> None:
    settings = read_json(folder / "config.json", {})
    if isinstance(settings, dict) and _MODEL2VEC in (
        settings.get("model_type"),
        *(settings.get("architectures") or ()),
    ):
        listed = '[{"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"}]'
        raise EncoderError(
            f"{folder}: a model2vec model without modules.json, expected the folder of a release since 0.4. Write "
            f"modules.json with {listed}; add the module Normalize if config.json sets normalize."
        )


def _prompts(folder: Path, texts: Mapping[str, object]) -> tuple[dict[str, str], str | None]:
    """Return the prompts by name without empty ones, and the name of the default prompt if that is not empty."""
    listed, default = texts.get("prompts") or {}, texts.get("default_prompt_name")
    valid = isinstance(listed, dict) and all(isinstance(text, str | None) for text in listed.values())
    if not valid or not isinstance(listed, dict):
        raise EncoderError(
            f"{folder / PROMPTS}: prompts is {listed!s:.80}, expected an object of names and texts. Correct it."
        )
    if default is not None and default not in {*listed, *ROLES}:
        raise EncoderError(
            f"{folder / PROMPTS}: default_prompt_name is {default!r}, expected one of the prompts "
            f"({', '.join(listed) or 'there are none'}). Correct it, or set it to null."
        )
    prompts = {str(name): text for name, text in listed.items() if text}
    return prompts, str(default) if default in prompts else None


def _pooled(saved: SavedEncoder, folders: Mapping[str, Path]) -> SavedEncoder:
    """Add pooling, maximal length and casing, read from the folders of the modules (kind → folder)."""
    backbone, pooling_folder = saved.backbone.folder, folders["Pooling"]
    pools_prompt = bool(read_json(pooling_folder / "config.json").get("include_prompt", True))
    saved = replace(saved, pools_prompt=pools_prompt, token_width=stated_width(pooling_folder))
    if saved.backbone.kind == "WordEmbeddings":
        from bsl.models.encoder.serialization.word_embeddings import longest_input

        pooling, weights = read_modes(pooling_folder).name, folders.get(TOKEN_WEIGHTS)
        if weights is not None and (pooling != "mean" or saved.token_heads):
            raise EncoderError(
                f"{weights}: word weights with {len(saved.token_heads)} heads on token vectors and pooling {pooling}, "
                f"expected no such heads and pooling mean. {THROUGH_PYTHON}."
            )
        length = longest_input(backbone)
        return replace(saved, pooling=pooling, lower_case=False, max_length=length, word_weights=weights)
    _with_config(backbone)
    pooling, own = read_pooling(folders, backbone).name, transformer_settings(backbone)
    return replace(
        saved, pooling=pooling, lower_case=bool(own.get("do_lower_case")), max_length=own.get("max_seq_length")
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


def resolved(saved: SavedEncoder, config: EncoderConfig) -> EncoderConfig:
    """Return a configuration in which the folder provides pooling, scaling and casing, except for the given fields.

    Given fields win, with a warning if the folder says something else.
    """
    changes: dict[str, object] = {}
    for name in _SAVED:
        found, configured = getattr(saved, name), getattr(config, name)
        if found is None or found == configured:
            continue
        if name not in config.model_fields_set or (name == "pooling" and _has_pooler(saved, configured)):
            changes[name] = found
            continue
        logger.warning(
            "%s: encoder.%s is %s, but the encoder was saved with %s. Unset it to use the saved value.",
            *(saved.backbone.folder, name, configured, found),
        )
    return config.model_copy(update=changes)


def _has_pooler(saved: SavedEncoder, name: str) -> bool:
    """Return whether a pooling by a transformer's pooler is saved as a dense layer after pooling."""
    configured, heads = pooling_of(name), saved.sentence_heads
    assert saved.pooling is not None
    same_modes = configured.modes == pooling_of(saved.pooling).modes
    return configured.uses_pooler and same_modes and len(heads) > 0 and heads[0].head is Dense


def _own_length(saved: SavedEncoder) -> int:
    """Return the maximal length of a sentence-transformers folder; if it sets none, that of its tokenizer.

    It is limited to the transformer's position table; sentence-transformers fails for longer texts.
    """
    folder = saved.backbone.folder
    length = min(saved.max_length or _tokenizer_length(saved), LONGEST)
    most = None
    if saved.backbone.kind == "Transformer":
        from bsl.models.encoder.transformer import position_limit_of

        most = position_limit_of(folder, length)
    if most is not None and length > most:
        if saved.max_length is not None:
            _warn_of_limit(folder, saved.max_length, most)
        return most
    return length


def _tokenizer_length(saved: SavedEncoder) -> int:
    """Return the maximal length of a folder that sets none, as sentence-transformers finds it."""
    length = int(read_tokenizer(saved.backbone.folder).model_max_length)
    positions = getattr(read_settings(saved.backbone.folder), "max_position_embeddings", None)
    return min(length, positions) if isinstance(positions, int) and positions > 0 else length


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
    quantised = read_json(folder / "config.json").get("quantization_config")
    if quantised is not None and (method := dict(quantised).get("quant_method")) not in _DEQUANTISED:
        raise EncoderError(
            f"{folder}: config.json has a quantization_config ({method}), which is not supported, expected weights in "
            "fp32, fp16 or bf16. Use the model that it was made from; `bsl export --int8` makes a small form."
        )
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
        if module.head is Dense:
            return int(read_json(module.folder / Dense.settings_file)["out_features"])
        if module.kind == "Pooling":
            width = stated_width(module.folder)
            return None if width is None else int(width) * len(read_modes(module.folder).modes)
    return None


def transformer_settings(folder: Path) -> Mapping[str, Any]:
    """Return the content of the first of `LENGTHS` that has any, as the library does; empty if there is none.

    Raises:
        EncoderError: The maximal length is not a whole number of at least 1.
    """
    for name in LENGTHS:
        settings: Mapping[str, Any] = read_json(folder / name, {})
        if settings:
            length = settings.get("max_seq_length")
            if length is not None and (type(length) is not int or length < 1):
                raise EncoderError(
                    f"{folder / name}: max_seq_length is {length!r}, expected a whole number of at least 1, or null. "
                    "Correct it."
                )
            return settings
    return {}
