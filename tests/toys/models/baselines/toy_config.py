"""Settings of transform `toy`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class ToyTransformConfig(BaseModel):
    """Vectors less the corpus's mean."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Literal["toy"] = "toy"
