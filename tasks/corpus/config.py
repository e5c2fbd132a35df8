"""What becomes the corpus: apart from the stage, so that a configuration is read without Prefect."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from models.corpus.corpus import CorpusConfig
from storage.artifacts.keys import NotInKey
from storage.sources.sources import SourceSpec


class IngestConfig(BaseModel):
    """What becomes the corpus."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    # Their content is in the key, through `locate_sources`; where they lie on this machine is not.
    sources: Annotated[tuple[SourceSpec, ...], NotInKey] = Field(min_length=1)
    """Where sentences come from, in this order: the first source that has a sentence gives it its name."""
    corpus: CorpusConfig = CorpusConfig()
    """Which sentences are kept."""
    max_bad_share: float = Field(0.01, ge=0, le=1)
    """Share of a source's records that may be unreadable; above it the run stops and names them."""
