"""Configuration of the corpus, separate from its stage so that it can be read without Prefect."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bsl.models.corpus.corpus import CorpusConfig
from bsl.models.corpus.passages import HoldOutConfig
from bsl.storage.filesystem.urls import Public
from bsl.storage.record import NotInKey, Record
from bsl.storage.sources.reading_config import ReadingConfig
from bsl.storage.sources.sources import SourceSpec


class OwnTextConfig(ReadingConfig):
    """Reading of the user's text, and its held-out part."""

    labels: Public | None = None
    """File of scored pairs or of texts with a class: about half of the rows are test labels, the others can be trained
    on (`pairs.scored=own/labels`)."""
    hold_out: HoldOutConfig = HoldOutConfig()
    """Documents held out from training."""


class IngestConfig(Record):
    """Sources and filters of the corpus."""

    # The key contains their content, through `locate_sources`, but not their local paths.
    sources: Annotated[tuple[SourceSpec, ...], NotInKey] = Field(min_length=1)
    """Sources of sentences, in order: a sentence gets the name of the first source that has it."""
    corpus: CorpusConfig = CorpusConfig()
    """Filters for sentences."""
    max_bad_share: float = Field(0.01, ge=0, le=1)
    """Maximum share of unreadable records in a source; above it the run stops and lists some of them."""
    # The keys of the run's stages contain it, because each stage receives what it needs of it.
    own_text: Annotated[OwnTextConfig | None, NotInKey] = None
    """Read the sources as the user's text, as `bsl adapt` does: train on a part, and score on held-out documents and
    test labels in addition to `evaluation.sets`. `corpus` and `max_bad_share` are then unused. None reads the sources
    as a corpus."""
