"""What an encoder's folder says about itself: a plain transformers folder, or one of sentence-transformers.

modules.json                    the modules in order: transformer, perhaps layer weights, pooling, perhaps unit length
<transformer>/config.json       at the root, or in a folder of its own in old models
<pooling>/config.json           pooling mode, in the spelling of sentence-transformers 2 to 5 or of 6
sentence_bert_config.json       longest input and casing, beside the transformer

Scores of an encoder are those of its vectors, so nothing is guessed: a part that is not computed here (another pooling,
a dense layer, a prompt) is refused, not left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from safetensors.torch import load_file
from transformers import AutoConfig, AutoTokenizer

from models.encoder.config import EncoderConfig
from models.encoder.pooling import FIRST
from models.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from models.encoder.config import Pooling

MODES: dict[str, Pooling] = {
    "mean": "mean",
    "cls": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
}
LONGEST = 8192  # what EncoderConfig allows; tokenizers without a limit say 10^30
OTHERWISE = "evaluate it through Python with an object that has encode(list[str])"
ORDERS = (
    ("Transformer", "Pooling"),
    ("Transformer", "Pooling", "Normalize"),
    ("Transformer", "WeightedLayerPooling", "Pooling"),
    ("Transformer", "WeightedLayerPooling", "Pooling", "Normalize"),
)


@dataclass(frozen=True)
class SavedEncoder:
    """An encoder's folder.

    Attributes:
        transformer: The folder that transformers loads.
        pooling: How its token vectors are pooled; None if the folder does not say.
        normalize: Whether the vectors are scaled to length 1; None if the folder does not say.
        lower_case: Whether text is lower-cased before the tokenizer sees it; None if the folder does not say.
        max_length: Longest input in tokens; None if the folder does not say.
    """

    transformer: Path
    pooling: Pooling | None = None
    normalize: bool | None = None
    lower_case: bool | None = None
    max_length: int | None = None


def read_saved(folder: Path) -> SavedEncoder:
    """Look into a model folder.

    Raises:
        EncoderError: Neither a transformers nor a sentence-transformers folder, or one whose modules have no
            equivalent here.
    """
    if not (folder / "modules.json").is_file():
        return SavedEncoder(_with_config(folder))
    modules = _json(folder / "modules.json")
    kinds = tuple(str(module["type"]).rpartition(".")[2] for module in modules)
    if kinds not in ORDERS:
        raise EncoderError(
            f"{folder}: made of {' → '.join(kinds)}, expected Transformer → Pooling (→ Normalize); "
            f"use the transformer's own folder and choose encoder.pooling, or {OTHERWISE}"
        )
    _refuse_prompt(folder / "config_sentence_transformers.json")
    places = {kind: folder / module["path"] for kind, module in zip(kinds, modules, strict=True)}
    transformer = _with_config(places["Transformer"])
    pooling = _pooling(places["Pooling"])
    if "WeightedLayerPooling" in places:
        pooling = _layers(places["WeightedLayerPooling"], pooling)
    settings = _json(transformer / "sentence_bert_config.json", {})
    lower_case = bool(settings.get("do_lower_case"))
    return SavedEncoder(transformer, pooling, "Normalize" in places, lower_case, settings.get("max_seq_length"))


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
        max_length=min(saved.max_length or _own_limit(saved.transformer), LONGEST),
    )


def check_settings(saved: SavedEncoder, config: EncoderConfig) -> None:
    """Compare what a folder says with what is configured.

    Raises:
        EncoderError: The vectors would not be those that the folder was trained to give.
    """
    for name in ("pooling", "normalize", "lower_case"):
        found, asked = getattr(saved, name), getattr(config, name)
        if found is not None and found != asked:
            raise EncoderError(
                f"{saved.transformer}: saved with {name} {found!r}, the configuration asks for {asked!r}; "
                f"set encoder.{name}={json.dumps(found)}"
            )


def _pooling(folder: Path) -> Pooling:
    settings = _json(folder / "config.json")
    modes = settings.get("pooling_mode") or [name for name, on in settings.items() if on is True and "_mode_" in name]
    chosen = [modes] if isinstance(modes, str) else list(modes)
    if len(chosen) != 1 or chosen[0] not in MODES:
        raise EncoderError(
            f"{folder}: pools by {' + '.join(chosen) or 'nothing'}, expected mean or cls alone; {OTHERWISE}"
        )
    return MODES[chosen[0]]


def _layers(folder: Path, pooling: Pooling) -> Pooling:
    settings, weights = _json(folder / "config.json"), load_file(folder / "model.safetensors")["layer_weights"]
    if settings["layer_start"] != FIRST or pooling != "mean" or not _first_and_last(weights):
        raise EncoderError(
            f"{folder}: weighs layers from {settings['layer_start']} by {weights.tolist()} for {pooling}, expected "
            f"the first and last layer alone for mean (first-last); choose another checkpoint"
        )
    return "first-last"


def _first_and_last(weights: torch.Tensor) -> bool:
    inner = weights[1:-1]
    return bool(weights[0] == weights[-1] != 0 and (inner == 0).all())


def _refuse_prompt(path: Path) -> None:
    settings = _json(path, {})
    name = settings.get("default_prompt_name")
    if name and settings.get("prompts", {}).get(name):
        raise EncoderError(
            f"{path}: puts the prompt {settings['prompts'][name]!r} before every text, which is not done here; "
            f"{OTHERWISE}"
        )


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


def _json(path: Path, absent: Any = None) -> Any:  # noqa: ANN401 - whatever the file holds
    if absent is not None and not path.is_file():
        return absent
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"{path}: not readable as JSON ({error}); check that the copy is complete") from error
