"""Which sets an encoder is scored on, and how uncertainty is drawn."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Precision = Literal["fp32", "bf16"]


class BootstrapConfig(BaseModel):
    """How the uncertainty of a figure is drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    resamples: int = Field(1000, ge=100, le=100_000)
    """Draws for each 95 % interval."""
    seed: int = Field(0, ge=0)
    """Of the draws."""


class EvaluationConfig(BaseModel):
    """The evaluation of one encoder without supervision: cosine of its embeddings against gold scores."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    sets: tuple[str, ...] = Field(("stsb/dev", "stsb/test"), min_length=1)
    """Data sets as `<name>/<split>`, in the order of the tables."""
    dev: str | None = "stsb/dev"
    """Set whose Spearman selects the best step of training; None keeps the last step."""
    precision: Precision = "fp32"
    """Arithmetic of the encoder when it embeds the sets; bf16 is faster and moves scores by hundredths of a point."""
    bootstrap: BootstrapConfig = BootstrapConfig()
    """How the 95 % interval of each figure is drawn."""
