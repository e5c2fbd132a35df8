"""The translation memory: what a translator has translated once is never translated again.

Design choices
- One memory per translator: its fingerprint covers everything that can change a translation, and names a kind of
  artifact, `translations/<fingerprint>`.
- A memory is a set of ordinary artifacts (parts) that only grows. Each is published whole or not at all, so a killed
  run leaves what it finished, and two workers need no lock: they can only publish the same sentence twice.
- Of a sentence's duplicates the first by part name wins, so every reader of the same parts sees the same memory.
- A damaged part is left out with a warning; its sentences count as missing and are translated again.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING

from storage.artifacts.keys import canonical
from storage.errors import ArtifactMissingError, CorruptArtifactError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import polars as pl

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store

logger = logging.getLogger(__name__)


def translator_fingerprint(identity: Mapping[str, object]) -> str:
    """The name of a translator's memory: 16 hex digits of the sha256 of all that decides its translations.

    Args:
        identity: model digest, backend and its version, precision, search, languages, limits; as `canonical` takes it.
    """
    text = json.dumps(canonical(identity), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class TranslationMemory:
    """What one translator has translated so far.

    Args:
        store: where the parts lie.
        fingerprint: of the translator, as `translator_fingerprint` gives it.
    """

    def __init__(self, store: Store, fingerprint: str) -> None:
        self.kind = f"translations/{fingerprint}"
        self._store = store

    def parts(self) -> list[ArtifactRef]:
        """The parts by name, whole or not."""
        return self._store.refs(self.kind)

    def whole_parts(self, seen: Collection[str] = ()) -> Iterator[tuple[ArtifactRef, pl.LazyFrame]]:
        """The parts by name with their rows, but those whose keys are given and those that are damaged.

        A sentence that was translated twice is there twice.
        """
        for part in self.parts():
            if part.key in seen:
                continue
            try:
                yield part, self._store.scan(part)
            except (ArtifactMissingError, CorruptArtifactError) as error:
                logger.warning("%s is left out of the translation memory: %s", part, error)
