"""Which errors are faults of one run, so that the other runs of a sweep continue."""

from __future__ import annotations

from typing import Final

from bsl.models.errors import InterruptedRunError, ModelError, TranslationStoppedError
from bsl.tasks.stage.cluster import ClusterError
from bsl.tasks.stage.pool import PoolError

_END_SWEEP: Final = (InterruptedRunError, TranslationStoppedError, PoolError, ClusterError)


def is_fault(error: BaseException) -> bool:
    """Return whether an error is a fault of the run, such as a diverged training; other errors end the sweep."""
    return isinstance(error, ModelError) and not isinstance(error, _END_SWEEP)
