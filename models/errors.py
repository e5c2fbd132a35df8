"""What can go wrong while computing.

ModelError
├── EncoderError               weights, tokenizer or texts that cannot give embeddings
│   └── NoEmbeddingError       one text has none
├── TrainingError              a training run that cannot start or go on
│   ├── NonFiniteLossError     a loss or gradient is NaN or infinite
│   ├── InterruptedRunError    asked to stop; the state is saved, the next call resumes
│   └── ResumeError            the saved state is of another run or an unknown format
│       └── DamagedSnapshotError   a file of the saved state is missing or not what was written
└── EvaluationError            vectors or gold scores from which no figure can be computed

Every message says what was found, what was expected and what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            f"its state is saved in {saved_in}; run again to go on"
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


def _rebuild(kind: type[ModelError], args: tuple[object, ...], state: dict[str, object]) -> ModelError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def _short(rows: tuple[int, ...]) -> str:
    listed = ", ".join(str(row) for row in rows[:_SHOWN])
    return f"[{listed}, … {len(rows)} in all]" if len(rows) > _SHOWN else f"[{listed}]"
