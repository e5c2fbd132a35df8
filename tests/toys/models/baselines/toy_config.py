"""Settings of transform `toy`."""

from typing import Literal

from models.baselines.settings import TransformSettings


class ToyTransformConfig(TransformSettings):
    """Vectors less the corpus's mean."""

    name: Literal["toy"] = "toy"
