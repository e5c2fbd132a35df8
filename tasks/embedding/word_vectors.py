"""A file of word vectors to an encoder in the store, once for all runs."""

from __future__ import annotations

import logging

from models.encoder.config import WordsConfig
from storage.artifacts.refs import ENCODER, CheckpointRef
from storage.sources.word_vectors import VectorsFile, read_vectors
from tasks.stage.cached import Work, stage

logger = logging.getLogger(__name__)


@stage(ref=CheckpointRef, version=1)
def import_vectors(work: Work, source: VectorsFile, config: WordsConfig) -> None:
    """Read word vectors into a table that processes map into memory, with the tokenizer that cuts sentences for it.

    Raises:
        SourceError: a line of the file is damaged.
        EncoderError: it has no word.
    """
    from models.encoder.static import write_words

    logger.info("reading the word vectors of %s", source.path)
    work.draft.note(write_words(work.draft.folder / ENCODER, read_vectors(source.path), config))
