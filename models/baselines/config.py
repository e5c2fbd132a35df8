"""Settings of every post-hoc transform; `name` says which one a section is for."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from models.choices import named


class WhiteningConfig(BaseModel):
    """Whitening (Su et al., 2021, "BERT-whitening"): a corpus's vectors get mean 0, variance 1 and no covariance."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Literal["whitening"] = "whitening"
    dimensions: int | None = Field(default=None, ge=1)
    """Directions of largest variance that are kept (published: 256 and 384 of 768); all of them unless given."""


AnyTransform = WhiteningConfig
"""The union of all of them."""
TransformConfig = Annotated[AnyTransform, Field(discriminator="name"), BeforeValidator(named)]
