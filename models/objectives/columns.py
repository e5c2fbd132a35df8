"""Columns that training pairs can have besides their two views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import DTypeLike

Column: TypeAlias = Literal["label", "score", "group", "sentence_id"]


@dataclass(frozen=True)
class Stored:
    """How a column is stored and read.

    Attributes:
        dtype: Type in the token cache.
        read_as: Type in a batch.
        on_device: Whether objectives read it on the device alone, so that their steps can be captured.
    """

    dtype: pl.DataType
    read_as: DTypeLike
    on_device: bool = False


COLUMNS: Final[Mapping[Column, Stored]] = {
    "label": Stored(pl.Int8(), np.int64),  # class of the pair
    "score": Stored(pl.Float32(), np.float32, on_device=True),  # gold similarity in [0, 1]; NaN where it is null
    "group": Stored(pl.UInt64(), np.uint64),  # such as the pair's premise
    "sentence_id": Stored(pl.UInt64(), np.uint64, on_device=True),  # selects the teacher's vector
}
TEACHER: Final = "teacher"
"""Name in a batch of the teacher's vectors, which `sentence_id` selects."""
