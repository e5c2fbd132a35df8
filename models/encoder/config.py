"""Which encoder, and how its token vectors become one sentence vector."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Pooling = Literal[
    "mean", "cls", "cls-pooler", "first-last", "second-to-last", "second-to-last-cls", "mean-after-first",
    "max", "last", "weighted", "mean-sqrt",
]  # fmt: skip
_PLAIN: Final = "(mean|cls|max|last|weighted|mean-sqrt)"
Joined = Annotated[str, Field(pattern=rf"^{_PLAIN}(\+{_PLAIN})+$")]
LONGEST: Final = 8192  # tokens; also what stands for "no limit"
USUAL: Final = 64  # tokens of a bare transformer's input, as the released scripts have it


class WordsConfig(BaseModel):
    """How sentences are cut where the encoder is a file of word vectors, such as GloVe's."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    split: Literal["treebank", "punctuation", "whitespace"] = "treebank"
    """`treebank`: as the corpora of GloVe were cut, `do n't`, `U.S.`, `1,000`, `well-known`; `punctuation`: letters and
    digits, and each mark alone; `whitespace`: at blanks only, for text that is tokenised already (SentEval's)."""
    case: Literal["file", "kept", "lower"] = "file"
    """`lower` looks words up in lower case, `kept` as they stand; `file` is `lower` for a file without a capital."""
    marks: bool = True
    """Whether punctuation marks count as words; if not, `whitespace` drops those around a word."""

    @property
    def spelled(self) -> str:
        """As signatures have it."""
        return self.split if self.marks else f"{self.split} without marks"


class CNNConfig(BaseModel):
    """Convolutions between transformer and pooling (IS-BERT, section 3.2)."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kernels: tuple[int, ...] = Field(default=(1, 3, 5), min_length=1)
    """Tokens that each convolution sees, odd numbers (IS-BERT: 1, 3, 5; on AFS 3, 5, 7)."""
    channels: int = Field(default=256, ge=1, le=4096)
    """Features of each convolution; a vector has those of all (IS-BERT: 256)."""
    relu: bool = True
    """Whether ReLU follows, as in the paper (equation 1); the released code leaves it out."""

    @field_validator("kernels")
    @classmethod
    def _are_odd(cls, kernels: tuple[int, ...]) -> tuple[int, ...]:
        if any(kernel < 1 or kernel % 2 == 0 for kernel in kernels):
            raise ValueError(f"kernels of {list(kernels)} tokens; expected odd numbers, which leave a vector a token")
        return kernels


class EncoderConfig(BaseModel):
    """A pretrained transformer, or a static table, with pooling."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = Field(min_length=1)
    """`embedded:<name>`, a Hub id, a local folder or an ONNX graph in one, `checkpoint/<key>` or `report/<key>` of the
    store, or a file of word vectors; storage resolves it to a folder (paper: bert-base-uncased)."""
    revision: str | None = None
    """Commit of a Hub model; None for embedded models and folders, which are pinned by their bytes."""
    pooling: Pooling | Joined = "mean"
    """`mean`: masked average of the last layer, special tokens included (paper §3.2); `cls`: its first token
    (SimCSE's `cls_before_pooler`); `cls-pooler`: that behind the checkpoint's own dense layer and tanh (its `cls`);
    `first-last`: masked average of the first and the last layer's outputs (SimCSE's `avg_first_last`);
    `second-to-last` and `second-to-last-cls`: as `mean` and `cls`, of the layer before the last (bert-as-service, from
    which SBERT's rows "BERT avg." and "[CLS]" come, which the paper quotes); `mean-after-first`: as `mean` without the
    first token, [CLS] (SCL); `max`: the largest of each dimension; `last`: the last token; `weighted`: an average in
    which token t counts t times; `mean-sqrt`: the sum by the root of the length. Several, such as `cls+mean`, stand
    side by side."""
    normalize: bool = False
    """Scale each sentence vector to length 1; of a sentence-transformers folder, whether it does so in the end."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout rate of the whole transformer while training; None for the model's own (BERT: 0.1)."""
    max_length: int | None = Field(default=None, ge=4, le=LONGEST)
    """Tokens kept of a sentence, special tokens included. None is a sentence-transformers folder's own limit, for the
    released supervised script never passes its 64 on, and 64 for a bare transformer, as the other scripts."""
    lower_case: bool = False
    """Lower-case the text before the tokenizer sees it, as a sentence-transformers folder may ask for."""
    cnn: CNNConfig | None = None
    """Convolutions that training puts above a transformer without any, their first weights drawn by
    `training.seed`; untrained, the encoder is scored as it lies there. Those that a folder has are kept."""
    prompt: str | None = None
    """Put before every text: one of the folder's prompts by its name, or the text itself; None is the folder's own
    default prompt, "" none."""

    @property
    def short_name(self) -> str:
        """What tables call the model: a machine's path has no place there."""
        return "/".join(self.model.rstrip("/").split("/")[-2:])

    @property
    def length(self) -> int:
        """Tokens kept of a sentence; of an encoder that was loaded, its folder's own limit is in `max_length`."""
        return self.max_length or USUAL
