"""Translation memory: stored translations, so that no translator translates a sentence twice.

Design choices
- One memory per translator: a growing set of artifacts (parts) of the kind `translations/<fingerprint>`. All that can
  change a translation changes the fingerprint.
- Each part is published atomically, so the finished parts of a killed run remain. Workers need no lock: in the worst
  case a sentence is published twice. The first part by name then wins, so all readers of the same parts agree.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from storage.errors import ArtifactMissingError, CorruptArtifactError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import polars as pl

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store

logger = logging.getLogger(__name__)


def whole_parts(
    store: Store, fingerprint: str, seen: Collection[str] = ()
) -> Iterator[tuple[ArtifactRef, pl.LazyFrame]]:
    """Yield the intact parts of a translator's memory by name with their rows, except those whose keys are in `seen`.

    A damaged part is skipped with a warning, so that its sentences are translated again.
    """
    for part in store.refs(f"translations/{fingerprint}"):
        if part.key in seen:
            continue
        try:
            yield part, store.scan(part)
        except (ArtifactMissingError, CorruptArtifactError) as error:
            logger.warning("%s is excluded from the translation memory: %s", part, error)
