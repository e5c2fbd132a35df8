"""What an encoder's folder says about itself: a plain transformers folder, or one of sentence-transformers.

modules.json                    the modules in order: transformer or static table, heads and pooling (see ORDER)
<transformer>/config.json       at the root, or in a folder of its own in old models
<pooling>/config.json           pooling mode, in the spelling of sentence-transformers 2 to 5 or of 6
<head>/…                        see modules.py
sentence_bert_config.json       longest input and casing, beside the transformer

Scores of an encoder are those of its vectors, so nothing is guessed: a part that is not computed here (another pooling,
another module, a prompt) is refused, not left out.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from transformers import AutoConfig, AutoTokenizer

from models.damage import damage_named
from models.encoder.config import LONGEST, USUAL, EncoderConfig
from models.encoder.files import WORD_WEIGHTS, read_json, read_weights
from models.encoder.modules import HEADS, SavedModule, listed_module
from models.encoder.pooling import CLS, FIRST, LAYERS, POOLER, layer_weights
from models.encoder.static import static_settings
from models.errors import EncoderError

if TYPE_CHECKING:
    from models.encoder.config import Pooling, WordsConfig

logger = logging.getLogger(__name__)

MODES: dict[str, Pooling] = {
    "mean": "mean",
    "cls": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
}
OTHERWISE = "evaluate it through Python with an object that has encode(list[str])"
# A letter for each module: t for heads of tokens, s for heads of sentences.
LETTERS = {
    "Transformer": "T",
    "WeightedLayerPooling": "L",
    "WordWeights": "W",
    "Pooling": "P",
    "StaticEmbedding": "S",
} | {kind: head.level[0] for kind, head in HEADS.items()}
ORDER = re.compile("(T(L?t*|t*W)P|S)s*")


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
    """

    backbone: SavedModule
    pooling: Pooling | None = None
    normalize: bool | None = None
    lower_case: bool | None = None
    max_length: int | None = None
    token_heads: tuple[SavedModule, ...] = ()
    sentence_heads: tuple[SavedModule, ...] = ()
    words: WordsConfig | None = None


def read_saved(folder: Path) -> SavedEncoder:
    """Look into a model folder.

    Raises:
        EncoderError: Neither a transformers nor a sentence-transformers folder, a damaged one, or one whose modules
            have no equivalent here.
    """
    with damage_named(folder, EncoderError):
        return _read(folder)


def _read(folder: Path) -> SavedEncoder:
    if not (folder / "modules.json").is_file():
        return SavedEncoder(SavedModule("Transformer", _with_config(folder)))
    modules = _modules(folder)
    _refuse_prompt(folder / "config_sentence_transformers.json")
    backbone, *others = modules
    token_heads, sentence_heads = (
        tuple(module for module in others if LETTERS[module.kind] == level) for level in "ts"
    )
    normalize = modules[-1].kind == "Normalize"
    if backbone.kind == "StaticEmbedding":
        length, words = static_settings(backbone.folder)
        return SavedEncoder(backbone, "mean", normalize, False, length, sentence_heads=sentence_heads, words=words)
    _with_config(backbone.folder)
    pooling = _pooling(next(module.folder for module in others if module.kind == "Pooling"))
    if others[0].kind == "WeightedLayerPooling":
        pooling = _layers(others[0].folder, pooling)
    weights = [module.folder for module in others if module.kind == "WordWeights"]
    if weights:
        pooling = _after_first(weights[0], backbone.folder, pooling)
    settings = read_json(backbone.folder / "sentence_bert_config.json", {})
    lower_case, length = bool(settings.get("do_lower_case")), settings.get("max_seq_length")
    return SavedEncoder(backbone, pooling, normalize, lower_case, length, token_heads, sentence_heads)


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
    """The configuration with the length that holds: as configured, else the folder's own, else a bare transformer's."""
    own = None if saved.pooling is None else _own_length(saved)
    if own is not None and config.max_length not in (None, own):
        logger.warning(
            "%s: made for %d tokens, the configuration asks for %d; leave encoder.max_length unset to take its own",
            saved.backbone.folder,
            own,
            config.max_length,
        )
    return config.model_copy(update={"max_length": config.max_length or own or USUAL})


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
    listed = read_json(folder / "modules.json")
    if any(Path(module["path"]).is_absolute() or ".." in Path(module["path"]).parts for module in listed):
        raise EncoderError(f"{folder}: modules.json names folders outside it; take the model from who made it")
    modules = [listed_module(entry, folder) for entry in listed]
    if not ORDER.fullmatch("".join(LETTERS.get(module.kind, "?") for module in modules)):
        levels = {
            level: " | ".join(kind for kind, head in HEADS.items() if head.level == level)
            for level in ("token", "sentence")
        }
        raise EncoderError(
            f"{folder}: made of {' → '.join(module.kind for module in modules)}, expected Transformer "
            f"(→ WeightedLayerPooling) (→ {levels['token']} …) → Pooling (→ {levels['sentence']} …), or "
            f"StaticEmbedding (→ {levels['sentence']} …); use the transformer's own folder and choose "
            f"encoder.pooling, or {OTHERWISE}"
        )
    return modules


def _pooling(folder: Path) -> Pooling:
    settings = read_json(folder / "config.json")
    modes = settings.get("pooling_mode") or [name for name, on in settings.items() if on is True and "_mode_" in name]
    chosen = [modes] if isinstance(modes, str) else list(modes)
    if len(chosen) != 1 or chosen[0] not in MODES:
        raise EncoderError(
            f"{folder}: pools by {' + '.join(chosen) or 'nothing'}, expected mean or cls alone; {OTHERWISE}"
        )
    return MODES[chosen[0]]


def _layers(folder: Path, pooling: Pooling) -> Pooling:
    settings, weights = read_json(folder / "config.json"), read_weights(folder)["layer_weights"]
    alike = [name for name in LAYERS if (name in CLS) == (pooling in CLS) and _same_layers(weights, name)]
    if settings["layer_start"] != FIRST or not alike:
        raise EncoderError(
            f"{folder}: weighs layers from {settings['layer_start']} by {weights.tolist()} for {pooling}, expected "
            f"the layers of {' or '.join(LAYERS)}, from {FIRST}; choose another checkpoint"
        )
    return alike[0]


def _after_first(folder: Path, transformer: Path, pooling: Pooling) -> Pooling:
    """The average without the first token, written as weight 0 of that token and 1 of all others."""
    weights = read_weights(folder)[WORD_WEIGHTS][:, 0]
    tokenizer = AutoTokenizer.from_pretrained(str(transformer), local_files_only=True)
    expected = torch.ones(len(weights))
    expected[tokenizer.cls_token_id or 0] = 0.0
    if pooling != "mean" or not torch.equal(weights.float(), expected):
        raise EncoderError(
            f"{folder}: weighs {int((weights != 1).sum())} of {len(weights)} tokens otherwise than by 1 for pooling "
            f"{pooling}, expected the first token of a text alone, by 0, for mean; {OTHERWISE}"
        )
    return "mean-after-first"


def _same_layers(weights: torch.Tensor, pooling: Pooling) -> bool:
    """Whether weights are those of a pooling, up to a factor."""
    expected = layer_weights(pooling, len(weights))
    return bool(weights.max() > 0 and torch.equal(weights / weights.max(), expected))


def _refuse_prompt(path: Path) -> None:
    settings = read_json(path, {})
    name = settings.get("default_prompt_name")
    if name and settings.get("prompts", {}).get(name):
        raise EncoderError(
            f"{path}: puts the prompt {settings['prompts'][name]!r} before every text, which is not done here; "
            f"{OTHERWISE}"
        )


def _own_length(saved: SavedEncoder) -> int:
    """The longest input of a sentence-transformers folder, which may leave it to its tokenizer to say."""
    return min(saved.max_length or _own_limit(saved.backbone.folder), LONGEST)


def _own_limit(transformer: Path) -> int:
    tokenizer = AutoTokenizer.from_pretrained(str(transformer), local_files_only=True)
    config = AutoConfig.from_pretrained(str(transformer), local_files_only=True)
    positions = int(getattr(config, "max_position_embeddings", -1))
    return min(int(tokenizer.model_max_length), positions if positions > 0 else LONGEST)


def _with_config(folder: Path) -> Path:
    if not (folder / "config.json").is_file():
        raise EncoderError(
            f"{folder}: no config.json, expected a transformers model folder; give the folder that holds it"
        )
    return folder
