"""Which architecture of transformers a model folder has: by `model_type`, or by its other fields where it names none.

transformers itself would then take the architecture whose name is part of the path, whatever the folder holds. This
module imports neither torch nor transformers before it reads settings: a run asks it before it starts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from models.errors import EncoderError

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

# Google's small BERTs (google/bert_uncased_L-8_H-512_A-8) are published without `model_type`.
_BERT: Final = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "type_vocab_size")


def architecture_of(folder: Path) -> str:
    """Return the architecture of a transformers folder; its weights are compared with it where they are loaded.

    Raises:
        EncoderError: config.json cannot be read, or names no architecture and has not the fields of BERT.
    """
    described = _described(folder)
    if kind := described.get("model_type"):
        return str(kind)
    if (folder / "vocab.txt").is_file() and all(name in described for name in _BERT):
        return "bert"
    raise EncoderError(
        f"{folder}/config.json: no model_type, and not the fields and vocab.txt of BERT; add its architecture, such as "
        '"model_type": "bert"'
    )


def read_settings(folder: Path) -> PreTrainedConfig:
    """Return a transformers folder's configuration.

    Raises:
        EncoderError: as `architecture_of`.
        OSError, ValueError, KeyError: transformers cannot read it.
    """
    from transformers import CONFIG_MAPPING, AutoConfig

    settings: PreTrainedConfig
    kind = architecture_of(folder)
    if _names_none(folder):
        settings = CONFIG_MAPPING[kind].from_pretrained(str(folder), local_files_only=True)
    else:
        settings = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    return settings


def read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Return a transformers folder's tokenizer.

    Raises:
        EncoderError: as `architecture_of`.
        OSError, ValueError, KeyError: transformers cannot read it.
    """
    from transformers import AutoTokenizer

    settings = read_settings(folder) if _names_none(folder) else None
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
        str(folder), config=settings, local_files_only=True
    )
    return tokenizer


def _names_none(folder: Path) -> bool:
    return not _described(folder).get("model_type")


def _described(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        described: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"{path}: not readable as JSON ({error}); check that the copy is complete") from error
    return described
