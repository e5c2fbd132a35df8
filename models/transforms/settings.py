"""What the settings of every post-hoc transform say."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class TransformSettings(BaseModel):
    """Settings of a post-hoc transform.

    Attributes:
        folds: Whether the transform is a matrix, which an encoder can take in (`Transform.linear`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    folds: ClassVar[bool] = False
