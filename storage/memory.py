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

import polars as pl

from storage.errors import ArtifactMissingError, CorruptArtifactError
from storage.keys import canonical
from storage.schemas import TRANSLATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from storage.refs import ArtifactRef
    from storage.store import Store

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

    def translations(self) -> pl.LazyFrame:
        """Every translation, by part name; a sentence that was translated twice is there twice."""
        return pl.concat([pl.LazyFrame(schema=TRANSLATIONS), *self._whole_parts()])

    def missing(self, sentences: pl.LazyFrame) -> pl.LazyFrame:
        """The sentences that this translator has not translated.

        Args:
            sentences: sentence_id and any other columns.
        """
        return sentences.join(self.translations().select("sentence_id"), on="sentence_id", how="anti")

    def lookup(self, sentences: pl.LazyFrame) -> pl.LazyFrame:
        """The translations of those sentences that have one, one row each, columns as in `storage.schemas`.

        Args:
            sentences: sentence_id and any other columns, which are dropped.
        """
        wanted = sentences.select("sentence_id")
        found = self.translations().join(wanted, on="sentence_id", how="semi", maintain_order="left")
        return found.unique("sentence_id", keep="first", maintain_order=True)

    def _whole_parts(self) -> Iterator[pl.LazyFrame]:
        for part in self.parts():
            try:
                yield self._store.scan(part)
            except (ArtifactMissingError, CorruptArtifactError) as error:
                logger.warning("%s is left out of the translation memory: %s", part, error)
