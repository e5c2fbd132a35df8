"""Encode texts in parts that are saved, so that a killed call repeats at most one part."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import polars as pl

from bsl.models.corpus.normalize import has_text
from bsl.models.encoder.texts import OTHER_ENCODER, is_foreign
from bsl.models.errors import NoEmbeddingError
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.os_errors import writing
from bsl.tasks.embedding.encoders import encoder_folder, load_encoder
from bsl.tasks.stage.device import computing, device_of, precision_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.models.encoder.serialization.folder_settings import SavedEncoder
    from bsl.models.runtime.precision import Precision
    from bsl.models.runtime.progress import OnProgress
    from bsl.storage.artifacts.refs import CheckpointRef
    from bsl.storage.sources.model_sources import ResolvedModel
    from bsl.tasks.stage.run_context import RunContext

CPU_PART: Final = 2_048  # sentences; half a minute with a BERT on two cores
GPU_PART: Final = 65_536
_SPECIAL: Final = 4  # special tokens and the mark of a text's beginning: tokens without a byte of the text
_SAMPLE: Final = 1_000


@dataclass(frozen=True)
class ResumableEncoding:
    """An encoder that is loaded on first use and saves vectors in parts."""

    site: RunContext
    encoder: CheckpointRef | ResolvedModel
    config: EncoderConfig
    precision: Precision

    def __call__(self, texts: list[str], on_progress: OnProgress | None = None) -> NDArray[np.float32]:
        """Return vectors (n, D) of n texts; progress starts when the network is loaded.

        Raises:
            NoEmbeddingError: A text has no embedding.
        """
        with computing(self.site):
            encoder = self._loaded
            if on_progress is not None:
                on_progress(0, len(texts), "")
            bf16 = precision_of(self.site, self.precision) == "bf16"
            return encoder.encode(texts, device=device_of(self.site), bf16=bf16, on_progress=on_progress)

    @property
    def part(self) -> int:
        """Number of sentences in a part on this device."""
        return CPU_PART if device_of(self.site) == "cpu" else GPU_PART

    def parts(
        self, frames: Iterable[pl.DataFrame], total: int, folder: Path | None, advance: OnProgress
    ) -> Iterator[pl.DataFrame]:
        """Yield frames with a column `embedding`, each computed or read from a folder of an earlier call.

        A row without text has a null embedding.

        Args:
            frames: Frames with a column `text`; a later call with the same folder finds equal frames.
            total: Number of rows with text in all frames.
            folder: The folder, with one file per frame, in order; None to save nothing.
            advance: Called as (sentences done, total, detail).

        Raises:
            NoEmbeddingError: A text has no embedding; its number counts the rows of all frames.
        """
        rows = done = 0
        for number, frame in enumerate(frames):
            file = None if folder is None else folder / f"{number:06}.parquet"
            table = None if file is None else _found(file, frame)
            if table is None:
                table = self._part(frame, rows, _after(done, total, advance))
                if file is not None:
                    with writing(file), atomic_write(file) as unfinished:
                        table.write_parquet(unfinished, compression="uncompressed")  # fast, since the GPU waits
            rows += frame.height
            done += frame.height - table["embedding"].null_count()
            yield table

    def _part(self, frame: pl.DataFrame, before: int, on_progress: OnProgress) -> pl.DataFrame:
        """Return a frame with its vectors; `before` is the number of rows in the frames before it."""
        known = frame.select(has_text(pl.col("text"))).to_series()
        places = known.arg_true()
        try:
            vectors = pl.Series(self(frame["text"].gather(places).to_list(), on_progress))
        except NoEmbeddingError as error:
            raise NoEmbeddingError(before + int(places[error.number]), error.reason) from error
        if len(places) == frame.height:
            return frame.with_columns(embedding=vectors)
        order = pl.select(pl.when(known).then(known.cum_sum() - 1)).to_series()
        return frame.with_columns(embedding=vectors.gather(order))

    def notes(self, frames: Iterable[pl.DataFrame]) -> list[str]:
        """Return sentences about texts of frames with more tokens than the encoder reads, and about unknown ones.

        Rows without text do not count; of unknown texts, only the first are counted.
        """
        config = self._completed[1]
        limit, texts, cut = config.length, 0, 0
        # A token has a byte of the text or prompt at least; those of GPT-2's kind have parts of a character.
        fitting = limit - _SPECIAL - len((config.prompt or "").encode())
        first: list[str] = []
        for rows in frames:
            frame = rows.filter(has_text(pl.col("text")))
            first += frame["text"].head(_SAMPLE - len(first)).to_list()
            texts += frame.height
            long = frame.filter(pl.col("text").str.len_bytes() > fitting)["text"]
            cut += self._cut(long.to_list()) if len(long) else 0
        notes = self._unknown(first)
        if cut:
            notes.append(
                f"{cut:,} of {texts:,} texts are longer than {limit} tokens; their ends are ignored. "
                "Split them into passages, for example one paragraph a line."
            )
        return notes

    def about_prompt(self, texts: str) -> list[str]:
        """Return a sentence on the prompt of `texts`; nothing if they get none and the encoder has none."""
        saved, config = self._completed
        known = f"prompts named {', '.join(saved.prompts)}" if saved.prompts else "no named prompts"
        if not config.prompt:
            return [f"{texts} get no prompt; the encoder has {known}"] if saved.prompts else []
        sentence = f"{texts} get the prompt {config.prompt!r}"
        if config.prompt.isidentifier() and config.prompt not in saved.prompts.values():  # perhaps a misspelt name
            sentence += f"; the encoder has {known}"
        return [sentence]

    @cached_property
    def _completed(self) -> tuple[SavedEncoder, EncoderConfig]:
        from bsl.models.encoder.serialization.folder_settings import completed, read_saved  # imports transformers

        saved = read_saved(encoder_folder(self.site.open_store(), self.encoder))
        return saved, completed(saved, self.config)

    def _unknown(self, texts: list[str]) -> list[str]:
        foreign = list(filter(is_foreign, texts))
        if 2 * len(foreign) <= len(texts):  # the encoder is not loaded for them
            return []
        unknown = int(self._loaded.are_unknown(self._loaded.tokenize(foreign)).sum())
        if 2 * unknown <= len(texts):
            return []
        return [
            f"{unknown:,} of the first {len(texts):,} texts consist mostly of words that the encoder's tokenizer "
            f"does not know, so that their vectors are nearly equal. {OTHER_ENCODER}"
        ]

    def _cut(self, texts: list[str]) -> int:
        """Return how many texts the encoder truncates."""
        from bsl.models.encoder.sentence_encoder import token_ids

        limit = self._loaded.config.length
        lengths = token_ids(self._loaded.tokenizer, texts, limit + 1, self._loaded.prompt).lengths
        return int((lengths > limit).sum())

    @cached_property
    def _loaded(self) -> SentenceEncoder:
        return load_encoder(self.site.open_store(), self.encoder, self.config)


def _after(before: int, total: int, advance: OnProgress) -> OnProgress:
    """Return the progress of a part, after the sentences of the parts before it."""
    return lambda done, _total, detail: advance(before + done, total, detail)


def _found(file: Path, frame: pl.DataFrame) -> pl.DataFrame | None:
    """Return the saved vectors of a frame; None if the file is missing or has other texts (another device's parts)."""
    try:
        table = pl.read_parquet(file, glob=False)
    except FileNotFoundError:
        return None
    return table if table.drop("embedding").equals(frame) else None
