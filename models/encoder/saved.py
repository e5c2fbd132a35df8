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

import json
import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from transformers import AutoConfig, AutoTokenizer

from models.encoder.config import LONGEST, USUAL, EncoderConfig
from models.encoder.files import read_json, read_weights
from models.encoder.modules import HEADS, SavedModule
from models.encoder.pooling import AND, FIRST, LAYERS, layer_weights, way_of
from models.encoder.static import static_length
from models.errors import EncoderError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from models.encoder.config import Pooling

logger = logging.getLogger(__name__)

SWITCHES: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean-sqrt",
    "pooling_mode_weightedmean_tokens": "weighted",
    "pooling_mode_lasttoken": "last",
}
"""Setting of releases before 6 → pooling; of several that are on, the vectors stand in this order."""
NAMES: dict[str, str] = {
    "cls": "cls",
    "max": "max",
    "mean": "mean",
    "mean-sqrt": "mean_sqrt_len_tokens",
    "weighted": "weightedmean",
    "last": "lasttoken",
}
"""Pooling → what releases since 6 call it."""
LENGTHS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Where a transformer's longest input and casing stand; old releases name the file after the architecture."""
OTHERWISE = "evaluate it through Python with an object that has encode(list[str])"
# A letter for each module: t for heads of tokens, s for heads of sentences.
LETTERS = {"Transformer": "T", "WeightedLayerPooling": "W", "Pooling": "P", "StaticEmbedding": "S"} | {
    kind: head.level[0] for kind, head in HEADS.items()
}
ORDER = re.compile("(TW?t*P|S)s*")


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
        prompts: Texts to put before a text, by name.
        default_prompt: The name of that which is put there unless another is asked for.
        pools_prompt: Whether a prompt's tokens are pooled.
    """

    backbone: SavedModule
    pooling: str | None = None
    normalize: bool | None = None
    lower_case: bool | None = None
    max_length: int | None = None
    token_heads: tuple[SavedModule, ...] = ()
    sentence_heads: tuple[SavedModule, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    pools_prompt: bool = True


def read_saved(folder: Path) -> SavedEncoder:
    """Look into a model folder.

    Raises:
        EncoderError: Neither a transformers nor a sentence-transformers folder, or one whose modules have no
            equivalent here.
    """
    if not (folder / "modules.json").is_file():
        return SavedEncoder(SavedModule("Transformer", _with_config(folder)))
    modules = _modules(folder)
    texts = read_json(folder / "config_sentence_transformers.json", {})
    prompts = {name: text for name, text in (texts.get("prompts") or {}).items() if text}
    default = texts.get("default_prompt_name") if texts.get("default_prompt_name") in prompts else None
    backbone, *others = modules
    token_heads, sentence_heads = (
        tuple(module for module in others if LETTERS[module.kind] == level) for level in "ts"
    )
    normalize = modules[-1].kind == "Normalize"
    if backbone.kind == "StaticEmbedding":
        length = static_length(backbone.folder)
        return SavedEncoder(backbone, "mean", normalize, False, length, (), sentence_heads, prompts, default)
    _with_config(backbone.folder)
    pools = next(module.folder for module in others if module.kind == "Pooling")
    pooling = _pooling(pools)
    pools_prompt = read_json(pools / "config.json").get("include_prompt", True)
    if others[0].kind == "WeightedLayerPooling":
        pooling = _layers(others[0].folder, pooling)
    named = next((backbone.folder / name for name in LENGTHS if (backbone.folder / name).is_file()), None)
    settings = read_json(named) if named is not None else {}
    lower_case, longest = bool(settings.get("do_lower_case")), settings.get("max_seq_length")
    return SavedEncoder(
        backbone, pooling, normalize, lower_case, longest, token_heads, sentence_heads, prompts, default, pools_prompt
    )


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
        if found is not None and found != asked:
            raise EncoderError(
                f"{saved.backbone.folder}: saved with {name} {found!r}, the configuration asks for {asked!r}; "
                f"set encoder.{name}={json.dumps(found)}"
            )


def _modules(folder: Path) -> list[SavedModule]:
    listed = read_json(folder / "modules.json")
    foreign = [str(module["type"]) for module in listed if not str(module["type"]).startswith("sentence_transformers.")]
    if foreign:
        raise EncoderError(
            f"{folder}: {', '.join(foreign)} is code of its own, which is not run, expected modules of "
            f"sentence-transformers; {OTHERWISE}"
        )
    modules = [SavedModule(str(module["type"]).rpartition(".")[2], folder / module["path"]) for module in listed]
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


def _pooling(folder: Path) -> str:
    settings = read_json(folder / "config.json")
    switches = [switch for switch, on in settings.items() if on is True and "_mode_" in switch]
    named = settings.get("pooling_mode") or switches
    modes = [named] if isinstance(named, str) else list(named)
    known = SWITCHES | {name: pooling for pooling, name in NAMES.items()}
    if unknown := [mode for mode in modes if mode not in known]:
        raise EncoderError(
            f"{folder}: pools by {' + '.join(unknown)}, expected {', '.join(NAMES.values())}; {OTHERWISE}"
        )
    if not modes:
        return "mean"  # as sentence-transformers reads settings in which none is on
    order = list(SWITCHES)
    switched = sorted(modes, key=order.index) if all(mode in SWITCHES for mode in modes) else modes
    return AND.join(known[mode] for mode in switched)


def _layers(folder: Path, pooling: str) -> str:
    settings, weights = read_json(folder / "config.json"), read_weights(folder)["layer_weights"]
    alike = [name for name in LAYERS if way_of(name) == pooling and _same_layers(weights, name)]
    if settings["layer_start"] != FIRST or not alike:
        raise EncoderError(
            f"{folder}: weighs layers from {settings['layer_start']} by {weights.tolist()} for {pooling}, expected "
            f"the layers of {' or '.join(LAYERS)}, from {FIRST}; choose another checkpoint"
        )
    return alike[0]


def _same_layers(weights: torch.Tensor, pooling: str) -> bool:
    """Whether weights are those of a pooling, up to a factor."""
    expected = layer_weights(pooling, len(weights))
    return bool(weights.max() > 0 and torch.equal(weights / weights.max(), expected))


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
