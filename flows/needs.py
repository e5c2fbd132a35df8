"""What a run reads from outside the package, as a mirror takes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from storage.assets.catalog import EMBEDDED
from storage.datasets.registry import DATASETS
from storage.sources.mirror import MODEL
from storage.sources.word_vectors import is_vectors_file
from tasks.embedding.encoders import MADE_HERE, TAUGHT
from tasks.evaluation.kinds import frozen_names

if TYPE_CHECKING:
    from flows.config import PipelineConfig
    from storage.sources.sources import SourceSpec


def needed(config: PipelineConfig) -> tuple[str | SourceSpec, ...]:
    """Models at their pins, sources, and the data sets that trainings and the evaluation read, each once.

    Files of one's own (`own_files`) and what is embedded are not among them; data sets that no Hub has are.

    Raises:
        UnknownSuiteError: as a run of it would.
    """
    models = [f"{MODEL}{name}@{revision}" if revision else f"{MODEL}{name}" for name, revision in config.models()
              if of_the_hub(name)]  # fmt: skip
    sources = [
        spec for spec in config.ingest.sources if spec.path is None and not f"{spec.dataset}".startswith(EMBEDDED)
    ]
    dev = [config.evaluation.dev] if config.phases and config.evaluation.dev else []
    words = [*frozen_names(config.evaluation.sets), *config.scored, *dev]
    sets = [name for name in (word.partition("/")[0] for word in words) if name in DATASETS]
    return tuple(dict.fromkeys([*models, *sources, *sets]))


def of_the_hub(model: str) -> bool:
    """Whether a model's name is a repository's: no embedded asset, no file, folder or artifact."""
    if model.startswith((EMBEDDED, ".", "/", "~")) or is_vectors_file(model):
        return False
    return not (MADE_HERE.fullmatch(model) or TAUGHT.fullmatch(model) or Path(model).exists())
