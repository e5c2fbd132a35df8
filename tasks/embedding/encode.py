"""Texts to vectors part by part, so that a killed call makes one part twice at most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import polars as pl

from models.errors import NoEmbeddingError
from storage.filesystem.atomic import whole
from storage.filesystem.os_errors import writing
from tasks.embedding.encoders import encoder_folder
from tasks.stage.device import device_of, limit_threads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from models.encoder.config import EncoderConfig
    from models.encoder.sentence_encoder import SentenceEncoder
    from models.runtime.precision import Computed
    from models.runtime.progress import OnProgress
    from storage.artifacts.refs import CheckpointRef
    from storage.sources.model_sources import ResolvedModel
    from tasks.stage.run_context import RunContext

CPU_PART: Final = 2_048  # sentences; half a minute of a BERT on two cores
GPU_PART: Final = 65_536


@dataclass(frozen=True)
class ResumableEncoding:
    """An encoder, which is loaded when the first text comes.

    Attributes:
        site: store and device.
        encoder: where its files are.
        config: how it is read.
        precision: of its arithmetic.
    """

    site: RunContext
    encoder: CheckpointRef | ResolvedModel
    config: EncoderConfig
    precision: Computed

    def __call__(self, texts: list[str], on_progress: OnProgress | None = None) -> NDArray[np.float32]:
        """Vectors (n, D) of n texts; progress begins when the network is loaded.

        Raises:
            NoEmbeddingError: a text has none.
        """
        encoder = self._loaded
        if on_progress is not None:
            on_progress(0, len(texts), "")
        bf16 = self.precision == "bf16"
        return encoder.encode(texts, device=device_of(self.site), bf16=bf16, on_progress=on_progress)

    @property
    def part(self) -> int:
        """Sentences of a part on this device."""
        return CPU_PART if device_of(self.site) == "cpu" else GPU_PART

    def parts(
        self, frames: Iterable[pl.DataFrame], total: int, kept: Path | None, advance: OnProgress
    ) -> Iterator[pl.DataFrame]:
        """Frames with a column `embedding`, each made or found in a folder.

        Args:
            frames: with a column `text`; on another call with the same folder the same ones are found.
            total: sentences in all frames.
            kept: the folder, a file a frame, in their order; None keeps none.
            advance: called as (sentences done, in all, detail).

        Raises:
            NoEmbeddingError: a text has none; it is numbered among those of all frames.
        """
        done = 0
        for number, frame in enumerate(frames):
            file = None if kept is None else kept / f"{number:06}.parquet"
            table = None if file is None else _found(file, frame)
            if table is None:
                table = self._part(frame, done, total, advance)
                if file is not None:
                    with writing(file), whole(file) as unfinished:
                        table.write_parquet(unfinished, compression="uncompressed")  # a GPU waits meanwhile
            done += frame.height
            yield table

    def _part(self, frame: pl.DataFrame, before: int, total: int, advance: OnProgress) -> pl.DataFrame:
        def on_progress(done: int, _total: int, detail: str) -> None:
            advance(before + done, total, detail)

        try:
            return frame.with_columns(embedding=pl.Series(self(frame["text"].to_list(), on_progress)))
        except NoEmbeddingError as error:
            raise NoEmbeddingError(before + error.number, error.reason) from error

    @cached_property
    def _loaded(self) -> SentenceEncoder:
        from models.encoder.sentence_encoder import SentenceEncoder

        limit_threads(self.site)
        return SentenceEncoder.load(encoder_folder(self.site.open_store(), self.encoder), self.config)


def _found(file: Path, frame: pl.DataFrame) -> pl.DataFrame | None:
    """What an earlier call left of a frame; None if that was cut otherwise, on another device or of other texts."""
    try:
        table = pl.read_parquet(file, glob=False)
    except FileNotFoundError:
        return None
    return table if table.drop("embedding").equals(frame) else None
