"""What a sentence-transformers folder says about itself: pooling, length, casing, normalisation.

Scores of an encoder are those of its vectors, so nothing here is guessed: a part that this project does not compute
(another pooling, a dense layer, a prompt) is refused, not left out. Both spellings of the files are read, those of
sentence-transformers 2 to 5 and those of 6.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from transformers import AutoConfig, AutoTokenizer

from models.encoder.config import EncoderConfig, Pooling
from models.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path

_POOLINGS: Final[dict[str, Pooling]] = {"mean": "mean", "cls": "cls"}
_FLAGS: Final = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
_LONGEST: Final = 8192  # what EncoderConfig allows; tokenizers without a limit say 10^30


def described_config(folder: Path, model: str) -> EncoderConfig | None:
    """The encoder that `SentenceTransformer(folder)` would be; None if the folder is a bare transformer.

    Args:
        folder: Local folder of the model.
        model: What the configuration calls it.

    Raises:
        EncoderError: The folder has a part that is not computed here; the message names it.
    """
    if not (folder / "modules.json").is_file():
        return None
    modules = {entry["type"].rpartition(".")[2]: folder / entry["path"] for entry in _json(folder / "modules.json")}
    extra = sorted(set(modules) - {"Transformer", "Pooling", "Normalize"})
    if extra or not {"Transformer", "Pooling"} <= set(modules):
        raise EncoderError(
            f"{folder}: modules.json lists {', '.join(modules)}, expected a Transformer, a Pooling and perhaps a "
            "Normalize; evaluate it through Python with an object that has encode(list[str])"
        )
    if modules["Transformer"] != folder:
        raise EncoderError(f"{folder}: its transformer lies in {modules['Transformer'].name}/, expected it at the top")
    _refuse_prompt(folder)
    transformer = _json(folder / "sentence_bert_config.json")
    return EncoderConfig(
        model=model,
        pooling=_pooling(modules["Pooling"]),
        max_length=min(transformer.get("max_seq_length") or _own_limit(folder), _LONGEST),
        normalize="Normalize" in modules,
        lower_case=bool(transformer.get("do_lower_case")),
    )


def _pooling(folder: Path) -> Pooling:
    config = _json(folder / "config.json")
    named = config.get("pooling_mode") or [
        _FLAGS.get(name, name) for name, on in config.items() if name.startswith("pooling_mode_") and on
    ]
    modes = [named] if isinstance(named, str) else list(named)
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise EncoderError(
            f"{folder}: pooling {' + '.join(modes) or 'unnamed'}, expected one of {', '.join(_POOLINGS)}; evaluate it "
            "through Python with an object that has encode(list[str])"
        )
    return _POOLINGS[modes[0]]


def _refuse_prompt(folder: Path) -> None:
    config = _json(folder / "config_sentence_transformers.json")
    name = config.get("default_prompt_name")
    if name and config.get("prompts", {}).get(name):
        raise EncoderError(
            f"{folder}: puts the prompt {config['prompts'][name]!r} before every text, which is not done here; "
            "evaluate it through Python with an object that has encode(list[str])"
        )


def _own_limit(folder: Path) -> int:
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    positions = getattr(AutoConfig.from_pretrained(str(folder), local_files_only=True), "max_position_embeddings", -1)
    return min(int(tokenizer.model_max_length), int(positions) if positions > 0 else _LONGEST)


def _json(path: Path) -> Any:  # noqa: ANN401 - files of another library
    if not path.is_file():
        return {}
    try:
        return cast("Any", json.loads(path.read_bytes()))
    except ValueError as error:
        raise EncoderError(f"{path} is not JSON ({error}); copy the model again") from error
