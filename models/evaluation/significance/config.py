"""How the uncertainty of a figure is drawn: by resampling its pairs."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class BootstrapConfig(BaseModel):
    """How the uncertainty of a figure is drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    resamples: int = Field(1000, ge=100, le=100_000)
    """Draws for each 95 % interval."""
    seed: int = Field(0, ge=0)
    """Of the draws."""
