"""Which encoder, and how its token vectors become one sentence vector."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

Pooling = Literal["mean", "cls", "first-last"]
LONGEST: Final = 8192  # tokens; also what stands for "no limit"


class EncoderConfig(BaseModel):
    """A pretrained transformer, or a static table, with pooling."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = Field(min_length=1)
    """`embedded:<name>`, a Hub id or a local folder; storage resolves it to a folder (paper: bert-base-uncased)."""
    revision: str | None = None
    """Commit of a Hub model; None for embedded models and folders, which are pinned by their bytes."""
    pooling: Pooling = "mean"
    """`mean`: masked average of the last layer, special tokens included (paper §3.2); `cls`: its first token;
    `first-last`: masked average of the first and the last layer's outputs (SimCSE's `avg_first_last`)."""
    normalize: bool = False
    """Scale each sentence vector to length 1; of a sentence-transformers folder, whether it does so in the end."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout rate of the whole transformer while training; None for the model's own (BERT: 0.1)."""
    max_length: int = Field(default=64, ge=4, le=LONGEST)
    """Tokens kept of a sentence, special tokens included (released code: 64)."""
    lower_case: bool = False
    """Lower-case the text before the tokenizer sees it, as a sentence-transformers folder may ask for."""
