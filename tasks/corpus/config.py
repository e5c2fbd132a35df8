"""Configuration of the corpus, separate from its stage so that it can be read without Prefect."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from models.corpus.corpus import CorpusConfig
from storage.record import NotInKey, Record
from storage.sources.sources import SourceSpec


class IngestConfig(Record):
    """Sources and filters of the corpus."""

    # The key contains their content, through `locate_sources`, but not their local paths.
    sources: Annotated[tuple[SourceSpec, ...], NotInKey] = Field(min_length=1)
    """Sources of sentences, in order: a sentence gets the name of the first source that has it."""
    corpus: CorpusConfig = CorpusConfig()
    """Filters for sentences."""
    max_bad_share: float = Field(0.01, ge=0, le=1)
    """Maximum share of unreadable records in a source; above it the run stops and lists some of them."""
