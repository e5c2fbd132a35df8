"""What can go wrong while computing.

ModelError
├── EncoderError               weights, tokenizer or texts that cannot give embeddings
│   └── NoEmbeddingError       one text has none
├── TrainingError              a training run that cannot start or go on
│   ├── NonFiniteLossError     a loss or gradient is NaN or infinite
│   ├── InterruptedRunError    asked to stop; the state is saved, the next call resumes
│   └── ResumeError            the saved state is of another run or an unknown format
│       └── DamagedSnapshotError   a file of the saved state is missing or not what was written
├── EvaluationError            vectors or gold scores from which no figure can be computed
├── TextError                  text from which no corpus can be made
│   ├── SentenceIdCollisionError   two different sentences have the same id
│   └── EmptyCorpusError           nothing is left of the sources
└── TranslationError           a sentence that cannot be translated
    ├── TranslatorLoadError        the folder holds no model that this backend can run, or the backend does not run
    ├── DeviceMemoryError          the model or one sentence alone does not fit the device
    ├── TranslationStoppedError    the run was told to stop between two shards
    └── SmokeTestError             the translator runs, but what it writes is not language

Every message says what was found, what was expected and what to do next.
"""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_PANICS: Final = "pyo3_runtime"  # of Rust parts of libraries; its PanicException is no Exception
_SHOWN = 8  # rows of a batch that a message lists


class ModelError(Exception):
    """Base of all errors of `models/`; survives pickling between processes, attributes included."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class EncoderError(ModelError):
    """An encoder, its tokenizer or its input texts cannot give embeddings."""


class NoEmbeddingError(EncoderError):
    """A text has no embedding.

    Attributes:
        number: Which of the given texts, from 0, for whoever knows where it comes from.
        reason: What is wrong with it and what to do; goes on after the text's name.
    """

    def __init__(self, number: int, reason: str) -> None:
        self.number = number
        self.reason = reason
        super().__init__(f"text {number} {reason}")


class TrainingError(ModelError):
    """A training run cannot start or go on."""


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
        where = f"saved in {saved_in}" if saved_in else "not saved, since no work folder was given"
        super().__init__(
            f"{quantity} is {value} at step {step}, expected a finite number; the batch was rows "
            f"{_short(self.rows)} of the pairs, {where}; {remedy}"
        )


class InterruptedRunError(TrainingError):
    """Training was asked to stop; its state is saved.

    Attributes:
        step: The last finished optimizer step, from which the next call goes on.
    """

    def __init__(self, step: int, total: int, saved_in: str | None) -> None:
        self.step = step
        kept = (
            f"its state is saved in {saved_in}; run again to resume"
            if saved_in
            else "no work folder was given, so nothing is saved"
        )
        super().__init__(f"training was asked to stop after step {step} of {total}; {kept}")


class ResumeError(TrainingError):
    """A saved training state cannot be resumed by this run: it is another's, or of an unknown format."""


class DamagedSnapshotError(ResumeError):
    """A file of a saved training state is missing or does not hold what was written."""


class EvaluationError(ModelError):
    """Vectors or gold scores from which the figure asked for cannot be computed."""


class TextError(ModelError):
    """Text from which no corpus can be made."""


class SentenceIdCollisionError(TextError):
    """Two different sentences have the same 64-bit id."""


class EmptyCorpusError(TextError):
    """Not one sentence is left after normalising and filtering."""


class TranslationError(ModelError):
    """Base of everything that can go wrong between a sentence and its translation."""


class TranslatorLoadError(TranslationError):
    """The folder does not hold a model that this backend can run, or the backend does not run on the device."""


class DeviceMemoryError(TranslationError):
    """The model, or a batch of one sentence, does not fit the device: nothing is left to halve."""


class SmokeTestError(TranslationError):
    """The translator runs, but its output for a handful of plain sentences is empty, looping or not what was pinned."""


class TranslationStoppedError(TranslationError):
    """The run was told to stop; what was translated is kept, and a rerun goes on."""


@contextmanager
def load_errors(folder: Path, kind: type[ModelError]) -> Iterator[None]:
    """Turn whatever reading a model's folder raises into one error that names the folder.

    Errors of this package pass, and so does a machine that is too small: neither says anything of the folder.

    Args:
        folder: What is read inside the block, and nothing else may be done there.
        kind: The error to raise.

    Raises:
        ModelError: Of that kind.
    """
    import torch  # errors are imported where no tensor is

    try:
        yield
    except (ModelError, MemoryError, torch.OutOfMemoryError):
        raise
    except pickle.UnpicklingError as error:
        # torch's message goes on to say how to run what is in the file; that is not for us.
        raise kind(
            f"{folder}: its pickled weights hold more than tensors and were not run; ask its authors for safetensors"
        ) from error
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__module__ != _PANICS:
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise kind(
            f"{folder}: cannot be loaded ({reason:.300}); check that the copy is complete and that its files belong "
            "together"
        ) from error


def _rebuild(kind: type[ModelError], args: tuple[object, ...], state: dict[str, object]) -> ModelError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def _short(rows: tuple[int, ...]) -> str:
    listed = ", ".join(str(row) for row in rows[:_SHOWN])
    return f"[{listed}, … {len(rows)} in all]" if len(rows) > _SHOWN else f"[{listed}]"
