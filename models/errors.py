"""Errors of `models/`.

ModelError
├── EncoderError               weights, tokenizer or texts cannot give embeddings
│   └── NoEmbeddingError       a text has no embedding
├── TrainingError              a training run cannot start or continue
│   ├── NonFiniteLossError     a loss or gradient norm is NaN or infinite
│   ├── InterruptedRunError    training was asked to stop; with a work folder, the next call resumes
│   └── ResumeError            the saved state is of another run or an unknown format
│       └── DamagedSnapshotError   a file of the saved state is missing or damaged
├── EvaluationError            no score can be computed from the vectors or gold scores
├── SentenceIdCollisionError   two different sentences of a corpus have the same id
├── EmptyCorpusError           no sentence of the sources is left
└── TranslationError           a translator cannot be loaded, does not fit the device, or its output is bad
    └── TranslationStoppedError    the run was asked to stop between two shards

A message states what was found, what was expected and what to do next.
"""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from bsl.storage.filesystem.os_errors import first_line, not_written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_PANICS: Final = "pyo3_runtime"  # module of Rust panics, whose PanicException is not a subclass of Exception
_SHOWN = 8  # rows of a batch to list in a message


class ModelError(Exception):
    """Base of all errors of `models/`; can be pickled between processes, with its attributes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class EncoderError(ModelError):
    """An encoder, its tokenizer or its input texts cannot give embeddings."""


class NoEmbeddingError(EncoderError):
    """A text has no embedding.

    Attributes:
        number: Index of the text among the given ones, from 0, so that the caller can name its origin.
        reason: Problem and remedy, as the rest of a sentence that starts with the text's name.
    """

    def __init__(self, number: int, reason: str) -> None:
        self.number = number
        self.reason = reason
        super().__init__(f"text {number} {reason}")


class TrainingError(ModelError):
    """A training run cannot start or continue."""


class NonFiniteLossError(TrainingError):
    """A loss or gradient norm is NaN or infinite.

    Attributes:
        step: Optimizer step at which it appeared (1-based).
        rows: Rows of the pairs frame that formed the batch.
        saved_in: Parquet file with these rows; None if they were not saved.
    """

    def __init__(
        self, step: int, quantity: str, value: float, rows: Sequence[int], saved_in: str | None, remedy: str
    ) -> None:
        self.step = step
        self.rows = tuple(rows)
        self.saved_in = saved_in
        saved = f"saved in {saved_in}" if saved_in else "not saved, because there is no work folder"
        super().__init__(
            f"{quantity} is {value} at step {step}, expected a finite number (batch: rows {_short(self.rows)} of the "
            f"pairs, {saved}). {remedy}."
        )


class InterruptedRunError(TrainingError):
    """Training was asked to stop; its state is saved if it has a work folder.

    Attributes:
        step: The last finished optimizer step; the next call resumes after it.
    """

    def __init__(self, step: int, total: int, saved_in: str | None) -> None:
        self.step = step
        state = (
            f"Its state is saved in {saved_in}. Run again to resume."
            if saved_in
            else "Its state is not saved, because there is no work folder."
        )
        super().__init__(f"training stopped on request after step {step} of {total}. {state}")


class ResumeError(TrainingError):
    """A saved training state cannot be resumed: it is of another run, or of an unknown format."""


class DamagedSnapshotError(ResumeError):
    """A file of a saved training state is missing or damaged."""


class EvaluationError(ModelError):
    """A score cannot be computed from the vectors or gold scores."""


class SentenceIdCollisionError(ModelError):
    """Two different sentences have the same 64-bit id."""


class EmptyCorpusError(ModelError):
    """No sentence is left after normalising and filtering."""


class TranslationError(ModelError):
    """A translator cannot be loaded or run, does not fit the device, or its output for plain sentences is bad."""


class TranslationStoppedError(TranslationError):
    """The run was asked to stop; finished translations are saved, and a rerun resumes."""


@contextmanager
def load_errors(folder: Path, kind: type[ModelError]) -> Iterator[None]:
    """Convert all errors of reading a model's folder into one error that names the folder.

    Errors of this package and out-of-memory errors are not converted, because their cause is not the folder.

    Args:
        folder: Folder that the block reads; the block must do nothing else.
        kind: Class of the error to raise.

    Raises:
        ModelError: An error of class `kind`.
    """
    import torch  # imported here, because this module is also used without torch

    try:
        yield
    except (ModelError, MemoryError, torch.OutOfMemoryError):
        raise
    except pickle.UnpicklingError as error:
        # torch's own message explains how to run the code in the file, which would be unsafe.
        raise kind(
            f"{folder}: its pickled weights contain more than tensors, and code in files is never run. Ask its authors "
            "for safetensors."
        ) from error
    except BaseException as error:
        if not isinstance(error, Exception):
            if not is_panic(error):
                raise
        elif not_written(error):  # the disk of a converted model is full; reading causes no such error
            raise
        remedy = "Check that the copy is complete, and that its files are of the same model."
        if isinstance(error, ImportError):
            remedy = "Install the package that it needs."
        raise kind(f"{folder}: cannot be loaded ({first_line(error):.300}). {remedy}") from error


def is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic of code in Rust, which is not an `Exception`."""
    return type(error).__module__ == _PANICS


def _rebuild(kind: type[ModelError], args: tuple[object, ...], state: dict[str, object]) -> ModelError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def _short(rows: tuple[int, ...]) -> str:
    listed = ", ".join(str(row) for row in rows[:_SHOWN])
    return f"[{listed}, … {len(rows)} rows]" if len(rows) > _SHOWN else f"[{listed}]"
