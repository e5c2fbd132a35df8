"""Settings of transform `toy`."""

from typing import Literal

from models.transforms.config import TransformSettings


class ToyTransformConfig(TransformSettings):
    """Vectors less the corpus's mean."""

    name: Literal["toy"] = "toy"
