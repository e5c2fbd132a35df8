"""Encoder configuration (model, pooling, lengths), and the architecture of a model folder.

The architecture is `model_type` of config.json; where that is missing, the other fields decide. transformers would
instead pick an architecture whose name is part of the path. A run checks this before it starts, so importing this
module imports neither torch nor transformers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, field_validator

from bsl.models.encoder.pooling import POOLINGS, PoolingName
from bsl.models.errors import EncoderError
from bsl.storage.filesystem.urls import Named
from bsl.storage.record import Record

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

LONGEST: Final = 8192  # tokens; also the value for "no limit"
ZERO_TOKEN: Final = "[nothing]"  # token of the zero vector, a word table's last row; not matched in texts
DEFAULT_LENGTH: Final = 64  # default maximal length of a bare transformer in tokens, as in the released scripts


class WordsConfig(Record):
    """Split sentences into words, for an encoder that is a file of word vectors such as GloVe."""

    split: Literal["treebank", "punctuation", "whitespace"] = "treebank"
    """Tokenization of sentences, for word vectors. `treebank`: as the corpora of GloVe were split (`do n't`, `U.S.`,
    `1,000`, `well-known`); `punctuation`: runs of letters and digits, and each mark alone; `whitespace`: at blanks
    only, for tokenised text such as SentEval's."""
    case: Literal["file", "kept", "lower"] = "file"
    """Case of words, for word vectors. `lower` looks words up in lower case, `kept` unchanged; `file` is `lower` if the
    file has no capital letters, else `kept`."""
    marks: bool = True
    """Whether punctuation marks count as words; if not, `whitespace` strips them from both ends of a word."""

    @property
    def spelled(self) -> str:
        """The setting as signatures spell it."""
        return self.split if self.marks else f"{self.split} without marks"


class CNNConfig(Record):
    """Convolutions between transformer and pooling (IS-BERT, section 3.2)."""

    kernels: tuple[int, ...] = Field(default=(1, 3, 5), min_length=1)
    """Kernel size of each convolution in tokens, odd (IS-BERT: 1, 3, 5; on AFS 3, 5, 7)."""
    channels: int = Field(default=256, ge=1, le=4096)
    """Output features of each convolution; the outputs are concatenated (IS-BERT: 256)."""
    relu: bool = True
    """Whether ReLU follows, as in the paper (equation 1); the released code has none."""

    @field_validator("kernels")
    @classmethod
    def _are_odd(cls, kernels: tuple[int, ...]) -> tuple[int, ...]:
        if any(kernel < 1 or kernel % 2 == 0 for kernel in kernels):
            raise ValueError(f"kernels {list(kernels)}, expected odd sizes, which give one vector per token")
        return kernels


class EncoderConfig(Record):
    """A pretrained transformer, or a static table, with pooling.

    A sentence-transformers folder provides the fields that nobody set (`model_fields_set`); given fields win.
    """

    model: Named
    """`embedded:<name>`, a Hub id, a local folder or an ONNX graph in one, `checkpoint/<key>` or `report/<key>` of the
    store, or a file of word vectors; storage resolves it to a folder (paper: bert-base-uncased)."""
    revision: str | None = None
    """Commit of a Hub model; None for embedded models and folders, which are pinned by digests of their files."""
    pooling: PoolingName = "mean"
    """`mean`: masked average of the last layer, special tokens included (paper §3.2); `cls`: the last layer's first
    token (SimCSE's `cls_before_pooler`); `cls-pooler`: `cls` after the checkpoint's own dense layer and tanh (SimCSE's
    `cls`); `first-last`: masked average of the first and the last layer's outputs (SimCSE's `avg_first_last`);
    `second-to-last` and `second-to-last-cls`: `mean` and `cls` of the layer before the last (bert-as-service, the
    source of SBERT's rows "BERT avg." and "[CLS]", which the paper quotes); `mean-after-first`: `mean` without the
    first token, [CLS] (SCL); `max`: maximum of each dimension; `last`: the last token; `weighted`: average with weight
    t for token t; `mean-sqrt`: the sum divided by the square root of the length. Several, such as `cls+mean`, are
    concatenated."""
    normalize: bool = False
    """Scale each sentence vector to length 1; for a sentence-transformers folder, whether its last module does so."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout rate of the whole transformer while training; None for the model's own (BERT: 0.1)."""
    max_length: int | None = Field(default=None, ge=4, le=LONGEST)
    """Maximal length in tokens, special tokens included; longer sentences are truncated. None: 64 for a bare
    transformer, as in the released scripts; for a sentence-transformers folder its own limit, since the released
    supervised script does not apply its 64."""
    lower_case: bool = False
    """Lower-case text before tokenisation, as some sentence-transformers folders require."""
    cnn: CNNConfig | None = None
    """Convolutions that training adds to a transformer without any, initialised from `training.seed`; scores of the
    untrained encoder are without them. Convolutions of the folder are used as saved."""
    prompt: str | None = None
    """Prompt before every text: the name of one of the folder's prompts, or the text itself; None is the folder's
    default prompt, "" no prompt."""

    @property
    def short_name(self) -> str:
        """The model's name in tables: the last two parts of its id or path."""
        return "/".join(self.model.rstrip("/").split("/")[-2:])

    @property
    def length(self) -> int:
        """Maximal length in tokens; loading has set `max_length` to the folder's own limit where it was None."""
        return self.max_length or DEFAULT_LENGTH


class EncoderOverrides(Record):
    """Encoder settings by the user; they override a sentence-transformers folder and complete a bare transformer."""

    pooling: PoolingName | None = Field(
        None,
        description=f"Pooling of token vectors: {', '.join(POOLINGS)}, or several, such as cls+mean, which are "
        "concatenated; by default the folder's, or mean for a bare transformer.",
    )
    max_length: int | None = Field(None, ge=4, le=LONGEST)
    """Maximum tokens of a sentence; by default the folder's, or 64 for a bare transformer."""
    revision: str | None = None
    """Commit of a Hub model."""
    words: WordsConfig = WordsConfig()
    """Word tokenization for a file of word vectors."""
    cnn: CNNConfig | None = None
    """Convolutions that fine-tuning adds to a transformer without any, such as IS-BERT's; frozen evaluations do not use
    them."""
    prompt: str | None = None
    """Prefix of every text: the name of a prompt in the folder, or a text, '' for none; by default the folder's."""


# Google's small BERTs (google/bert_uncased_L-8_H-512_A-8) are published without `model_type`.
_BERT: Final = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers", "type_vocab_size")


def architecture_of(folder: Path) -> str:
    """Return the architecture of a transformers folder; loading checks its weights against the architecture.

    Raises:
        EncoderError: config.json cannot be read, or names no architecture and lacks the fields of BERT.
    """
    settings = read_json(folder / "config.json")
    if kind := settings.get("model_type"):
        return str(kind)
    if (folder / "vocab.txt").is_file() and all(name in settings for name in _BERT):
        return "bert"
    raise EncoderError(
        f"{folder}/config.json: no model_type, and not the fields and vocab.txt of BERT. Add the architecture, such as "
        '"model_type": "bert".'
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
    if _lacks_type(folder):
        settings = CONFIG_MAPPING[kind].from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    else:
        settings = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    return settings


def read_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Return a transformers folder's tokenizer.

    Raises:
        EncoderError: as `architecture_of`; or a vocabulary of byte-pair encoding has no merges.
        OSError, ValueError, KeyError: transformers cannot read it.
    """
    from transformers import AutoTokenizer

    settings = read_settings(folder) if _lacks_type(folder) else None
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            str(folder), config=settings, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:
        present = {name: (folder / name).is_file() for name in ("tokenizer.json", "vocab.json", "merges.txt")}
        if present == {"tokenizer.json": False, "vocab.json": True, "merges.txt": False}:
            raise EncoderError(
                f"{folder}: vocab.json has no merges.txt beside it, and there is no tokenizer.json. Copy the missing "
                "file of this model into the folder."
            ) from error
        raise
    return tokenizer


def read_json(path: Path, default: Any = None) -> Any:  # noqa: ANN401 - any JSON
    """Return the content of a JSON file, or `default`, if given, where the file does not exist.

    Raises:
        EncoderError: The file cannot be read as JSON.
    """
    if default is not None and not path.is_file():
        return default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EncoderError(f"{path}: cannot be read as JSON ({error}). Check that the copy is complete.") from error


def _lacks_type(folder: Path) -> bool:
    return not read_json(folder / "config.json").get("model_type")
