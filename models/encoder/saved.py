"""What an encoder's folder says about itself: a plain transformers folder, or one of sentence-transformers.

modules.json                    the modules in order: transformer or static table, heads and pooling (see ORDER)
<transformer>/config.json       at the root, or in a folder of its own in old models
<pooling>/config.json           pooling modes, in the spelling of sentence-transformers 2 to 5 or of 6
<head>/…                        see modules.py
sentence_bert_config.json       longest input and casing, beside the transformer; old ones name other architectures
config_sentence_transformers.json  prompts and which of them is put before every text

Scores of an encoder are those of its vectors, so nothing is guessed: a part that is not computed here (another pooling,
another module) is refused, not left out.
"""

from __future__ import annotations

import functools
import json
import logging
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import AutoTokenizer

from models.damage import damage_named
from models.encoder.architecture import architecture_of
from models.encoder.config import LONGEST, USUAL, EncoderConfig
from models.encoder.files import read_json
from models.encoder.graph import SUFFIX, find_graph, folder_of
from models.encoder.modules import HEADS, SavedModule, listed_module
from models.encoder.pooling import POOLER
from models.encoder.route import followed
from models.encoder.saved_pooling import OTHERWISE, after_first, over_layers, read_pooling
from models.encoder.static import static_settings
from models.encoder.transformer import most_of_folder
from models.encoder.truncation import read_kept
from models.encoder.word_embeddings import longest_input
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from models.encoder.config import WordsConfig

logger = logging.getLogger(__name__)

LENGTHS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Where a transformer's longest input and casing stand; old releases name the file after the architecture."""
ADAPTER = "adapter_config.json"
# A letter for each module: t for heads of tokens, s for heads of sentences.
LETTERS = {
    "Transformer": "T",
    "WeightedLayerPooling": "L",
    "WordWeights": "W",
    "Pooling": "P",
    "StaticEmbedding": "S",
    "WordEmbeddings": "E",
} | {kind: head.level[0] for kind, head in HEADS.items()}
ORDER = re.compile("(T(L?t*|t*W)P|E(t*|W)P|S)s*")
NOT_HERE = {
    "BoW": "gives a dimension for each word of its vocabulary; score TF-IDF instead",
    "LSTM": "reads tokens one after the other, both ways; train a CNN in its place",
    "CLIPModel": "embeds pictures too; give an encoder of texts",
    "SpladePooling": "gives a dimension for each word of its vocabulary (a sparse encoder); give a dense one",
    "SparseStaticEmbedding": "gives a dimension for each word of its vocabulary (a sparse encoder); give a dense one",
    "SparseAutoEncoder": "makes vectors sparse; give the dense encoder that it was trained on",
    "MultiVectorMask": "keeps a vector for each token (late interaction); give an encoder with one for a sentence",
}
"""Modules of sentence-transformers that are not computed here, and what to do instead."""


@dataclass(frozen=True)
class SavedEncoder:
    """An encoder's folder.

    Attributes:
        backbone: The module that gives token vectors, in the folder that it is loaded from.
        pooling: How its token vectors are pooled; None if the folder does not say.
        normalize: Whether the vectors are scaled to length 1; None if the folder does not say.
        lower_case: Whether text is lower-cased before the tokenizer sees it; None if the folder does not say.
        max_length: Longest input in tokens; None if the folder does not say.
        token_heads: What follows before pooling.
        sentence_heads: What follows after pooling.
        words: How sentences are cut, of a table of word vectors.
        word_weights: Where the weights of a table's words are.
        prompts: Texts to put before a text, by name.
        default_prompt: Name of the one that is used unless another is asked for.
        pools_prompt: Whether a prompt's tokens are pooled.
        graph: What stands in the place of the transformer's weights.
        kept: The first dimensions of its vectors, which are kept alone; None for all.
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
    kept: int | None = None


def read_saved(folder: Path) -> SavedEncoder:
    """Look into a model folder, or into that of an ONNX graph which is named itself.

    Raises:
        EncoderError: Neither a transformers nor a sentence-transformers folder, a damaged one, or one whose modules
            have no equivalent here.
    """
    with damage_named(folder, EncoderError):
        if folder.suffix == SUFFIX:
            return replace(_read(folder_of(folder)), graph=folder)
        saved = _read(folder)
        graph = find_graph(saved.backbone.folder) if saved.backbone.kind == "Transformer" else None
        return replace(saved, graph=graph)


def _read(folder: Path) -> SavedEncoder:
    if not (folder / "modules.json").is_file():
        return SavedEncoder(SavedModule("Transformer", _with_config(folder)))
    modules = _modules(folder)
    texts = read_json(folder / "config_sentence_transformers.json", {})
    prompts = {name: text for name, text in (texts.get("prompts") or {}).items() if text}
    default = texts.get("default_prompt_name") if texts.get("default_prompt_name") in prompts else None
    kept = read_kept(folder, modules)
    backbone, *others = modules
    token_heads, sentence_heads = (tuple(head for head in others if LETTERS[head.kind] == level) for level in "ts")
    saved = SavedEncoder(
        backbone,
        normalize=modules[-1].kind == "Normalize" and kept is None,  # what is left of a vector is not scaled again
        token_heads=token_heads,
        sentence_heads=sentence_heads,
        prompts=prompts,
        default_prompt=default,
        kept=kept,
    )
    if backbone.kind == "StaticEmbedding":
        length, words = static_settings(backbone.folder)
        return replace(saved, pooling="mean", lower_case=False, max_length=length, words=words)
    return _pooled(saved, {module.kind: module.folder for module in others})


def _pooled(saved: SavedEncoder, places: Mapping[str, Path]) -> SavedEncoder:
    """With what the folders of its modules, by their kinds, say of pooling, length and casing."""
    start, weights = saved.backbone.folder, places.get("WordWeights")
    pooling = read_pooling(places["Pooling"])
    saved = replace(saved, pools_prompt=read_json(places["Pooling"] / "config.json").get("include_prompt", True))
    if saved.backbone.kind == "WordEmbeddings":
        if weights is not None and pooling != "mean":
            raise EncoderError(f"{weights}: weighs words for pooling {pooling}, expected mean; {OTHERWISE}")
        length = longest_input(start)
        return replace(saved, pooling=pooling, lower_case=False, max_length=length, word_weights=weights)
    _with_config(start)
    if "WeightedLayerPooling" in places:
        pooling = over_layers(places["WeightedLayerPooling"], pooling)
    if weights is not None:
        pooling = after_first(weights, start, pooling)
    named = next((start / name for name in LENGTHS if (start / name).is_file()), None)
    settings = read_json(named) if named is not None else {}
    lower_case, longest = bool(settings.get("do_lower_case")), settings.get("max_seq_length")
    return replace(saved, pooling=pooling, lower_case=lower_case, max_length=longest)


def saved_config(folder: Path, model: str) -> EncoderConfig | None:
    """The encoder that `SentenceTransformer(folder)` would be; None if the folder is a bare transformer.

    Args:
        folder: Local folder of the model.
        model: What the configuration calls it.

    Raises:
        EncoderError: As `read_saved`.
    """
    saved = read_saved(folder)
    if saved.pooling is None:
        return None
    with damage_named(folder, EncoderError):
        return EncoderConfig(
            model=model,
            pooling=saved.pooling,
            normalize=bool(saved.normalize),
            lower_case=bool(saved.lower_case),
            max_length=_own_length(saved),
        )


def settled(saved: SavedEncoder, config: EncoderConfig) -> EncoderConfig:
    """The configuration with the length and the prompt that hold: as configured, else the folder's own.

    A bare transformer's length is the usual one; a prompt that is no name of the folder's is a text.
    """
    own = None if saved.pooling is None else _own_length(saved)
    if own is not None and config.max_length not in (None, own):
        logger.warning(
            "%s: made for %d tokens, the configuration asks for %d; leave encoder.max_length unset to take its own",
            saved.backbone.folder,
            own,
            config.max_length,
        )
    prompt = saved.prompts.get(saved.default_prompt or "", "") if config.prompt is None else config.prompt
    prompt = saved.prompts.get(prompt, prompt)
    if prompt:
        logger.info("%s: %r is put before every text", saved.backbone.folder, prompt)
    return config.model_copy(update={"max_length": config.max_length or own or USUAL, "prompt": prompt})


def check_settings(saved: SavedEncoder, config: EncoderConfig) -> None:
    """Compare what a folder says with what is configured.

    Raises:
        EncoderError: The vectors would not be those that the folder was trained to give.
    """
    for name in ("pooling", "normalize", "lower_case"):
        found, asked = getattr(saved, name), getattr(config, name)
        if found is not None and found != asked and not (asked == POOLER and _has_pooler(saved)):
            raise EncoderError(
                f"{saved.backbone.folder}: saved with {name} {found!r}, the configuration asks for {asked!r}; "
                f"set encoder.{name}={json.dumps(found)}"
            )


def _has_pooler(saved: SavedEncoder) -> bool:
    """Whether what was saved is the first token behind a dense layer, as `cls-pooler` leaves it."""
    return saved.pooling == "cls" and [head.kind for head in saved.sentence_heads][:1] == ["Dense"]


def _modules(folder: Path) -> list[SavedModule]:
    listed = list(followed(read_json(folder / "modules.json"), folder))
    if any(Path(module["path"]).is_absolute() or ".." in Path(module["path"]).parts for module in listed):
        raise EncoderError(f"{folder}: modules.json names folders outside it; take the model from who made it")
    foreign = [str(module["type"]) for module in listed if not str(module["type"]).startswith("sentence_transformers.")]
    if foreign:
        raise EncoderError(
            f"{folder}: {', '.join(foreign)} is code of its own, which is not run, expected modules of "
            f"sentence-transformers; {OTHERWISE}"
        )
    modules = [listed_module(entry, folder) for entry in listed]
    if reasons := [f"{module.kind} {NOT_HERE[module.kind]}" for module in modules if module.kind in NOT_HERE]:
        raise EncoderError(f"{folder}: its module {'; '.join(reasons)}, or {OTHERWISE}")
    if not ORDER.fullmatch("".join(LETTERS.get(module.kind, "?") for module in modules)):
        levels = {
            level: " | ".join(kind for kind, head in HEADS.items() if head.level == level)
            for level in ("token", "sentence")
        }
        raise EncoderError(
            f"{folder}: made of {' → '.join(module.kind for module in modules)}, expected Transformer "
            f"(→ WeightedLayerPooling) (→ {levels['token']} …) → Pooling (→ {levels['sentence']} …), or "
            f"WordEmbeddings (→ WordWeights) → Pooling, or StaticEmbedding, each (→ {levels['sentence']} …); use the "
            f"transformer's own folder and choose encoder.pooling, or {OTHERWISE}"
        )
    return modules


def _own_length(saved: SavedEncoder) -> int:
    """The longest input of a sentence-transformers folder, which may leave it to its tokenizer to say.

    What is longer than its transformer's table of positions is cut there: sentence-transformers fails at such a text.
    """
    folder = saved.backbone.folder
    length = min(saved.max_length or _own_limit(folder), LONGEST)
    most = most_of_folder(folder, length) if saved.backbone.kind == "Transformer" else None
    if most is not None and length > most:
        if saved.max_length is not None:
            _say_cut(folder, saved.max_length, most)
        return most
    return length


@functools.cache  # once, however often a folder is looked into
def _say_cut(folder: Path, length: int, most: int) -> None:
    logger.warning("%s: made for %d tokens, its transformer takes %d, which are kept", folder, length, most)


def _own_limit(transformer: Path) -> int:
    tokenizer = AutoTokenizer.from_pretrained(str(transformer), local_files_only=True)
    return int(tokenizer.model_max_length)


def _with_config(folder: Path) -> Path:
    if (folder / ADAPTER).is_file():
        raise EncoderError(
            f"{folder}: {ADAPTER} says that an adapter ({read_json(folder / ADAPTER).get('peft_type')}) changes its "
            "weights, which is not computed, expected the weights themselves; merge it (peft: merge_and_unload) and "
            "save the encoder again"
        )
    if not (folder / "config.json").is_file():
        raise EncoderError(
            f"{folder}: no config.json, expected a transformers model folder; give the folder that holds it"
        )
    architecture_of(folder)  # raises, before a run makes anything, where there is none
    return folder
