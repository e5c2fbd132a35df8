"""Arguments of `SentenceEncoder` as sentence-transformers names them: forms of results, vectors in place of texts.

Shapes: n texts, D width.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from bsl.models.runtime.rows import on_cpu

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bsl.models.runtime.progress import OnProgress


def as_vectors(given: object, width: int) -> NDArray[np.float32] | None:
    """Return given vectors as (n, D) float32, a single one as (1, D); None if they are texts.

    Args:
        given: An array, a tensor on any device, a list of vectors or of numbers; or texts.
        width: D of the encoder.

    Raises:
        ValueError: The vectors have another shape than (n, D) or (D,).
    """
    if isinstance(given, str) or not _is_numeric(given):
        return None
    array = np.asarray(on_cpu(given), dtype=np.float32)
    found = array[None] if array.ndim == 1 else array
    if found.ndim != 2 or found.shape[1] != width:
        raise ValueError(f"the vectors have shape {array.shape}, expected (n, {width}). Encode with this encoder.")
    return found


def _is_numeric(given: object) -> bool:
    """Return whether the innermost first element is a number."""
    if (kind := getattr(given, "dtype", None)) is not None:
        return any(name in str(kind) for name in ("float", "int", "Float", "Int"))
    if isinstance(given, list | tuple) and len(given):
        return isinstance(given[0], float | int) or _is_numeric(given[0])
    return False


@contextmanager
def progress_bar(shown: bool | None) -> Iterator[OnProgress | None]:
    """Show the number of encoded texts on a line of the terminal or notebook during the block, if `shown`."""
    if not shown:
        yield None
        return
    from rich.progress import MofNCompleteColumn, Progress  # slow import

    with Progress(*Progress.get_default_columns(), MofNCompleteColumn()) as bar:
        task = bar.add_task("texts", total=None)

        def advance(done: int, total: int, _detail: str) -> None:
            bar.update(task, completed=done, total=total)

        yield advance
