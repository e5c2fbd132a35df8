"""What a recipe reads of a person's own files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.sources.word_vectors import is_vectors_file

if TYPE_CHECKING:
    from flows.config import PipelineConfig


def own_files(config: PipelineConfig) -> tuple[str, ...]:
    """Files of sentences, lexicons, word vectors and folders of models, none of which a mirror brings, each once."""
    paths = [f"folder {source.path!r}" for source in config.ingest.sources if source.path is not None]
    lexicons = [view.lexicon[1] for view in config.augment.rewritings if view.lexicon]
    models = [name for name, _ in config.models() if name.startswith((".", "/", "~")) or is_vectors_file(name)]
    return tuple(dict.fromkeys([*paths, *lexicons, *models]))
