"""Models that a run takes from outside: found before the first stage, named in keys by their bytes."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from models.encoder.config import WordsConfig
from storage.artifacts.lookup import MADE_HERE, find
from storage.artifacts.refs import ENCODER, CheckpointRef
from storage.errors import ArtifactMissingError
from storage.sources.model_sources import ResolvedModel, resolve_model
from storage.sources.word_vectors import VectorsFile, find_vectors_file, is_vectors_file, read_vectors
from tasks.stage.cached import Work, stage

if TYPE_CHECKING:
    from pathlib import Path

    from models.encoder.config import EncoderConfig
    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store
    from tasks.stage.run_context import RunContext

TAUGHT: Final = re.compile(r"embeddings/([0-9a-f]{4,64}|latest)")  # vectors of a corpus, in the place of a teacher


def resolve_encoder(
    site: RunContext, config: EncoderConfig, words: WordsConfig | None = None
) -> tuple[CheckpointRef | ResolvedModel, EncoderConfig]:
    """Find the encoder that training starts from, or that teaches.

    Args:
        site: its store, mirror and cache are looked into.
        config: names it.
        words: how sentences are cut if it is a file of word vectors.

    Returns:
        The encoder, and the configuration with the encoder's identity in the place of its name: a folder's path or an
        unpinned revision must not decide a key.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has it.
    """
    encoder = find_encoder(site, config.model, config.revision, words)
    return encoder, config.model_copy(update={"model": identity_of(encoder), "revision": None})


def find_encoder(
    site: RunContext, name: str, revision: str | None, words: WordsConfig | None = None
) -> CheckpointRef | ResolvedModel:
    """Find an encoder by folder, `embedded:` name, Hub id, or `checkpoint/<key>` or `report/<key>` of the store.

    A file of word vectors is read into the store once.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has it.
    """
    if MADE_HERE.fullmatch(name):
        return _checkpoint(site.open_store(), name)
    if is_vectors_file(name):
        return import_vectors(site, find_vectors_file(name), words or WordsConfig())
    return resolve_named_model(site, name, revision)


def check_there(site: RunContext, name: str) -> None:
    """Refuse the name of an encoder that nobody has, before anything is started for it.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has it.
    """
    if is_vectors_file(name):
        find_vectors_file(name)  # to read it into the store is a stage
    else:
        find_encoder(site, name, None)


def encoder_folder(store: Store, encoder: CheckpointRef | ResolvedModel) -> Path:
    """Where an encoder's files lie, fetched if the store is elsewhere."""
    return store.fetch(encoder) / ENCODER if isinstance(encoder, CheckpointRef) else encoder.folder


def described_folder(store: Store, encoder: CheckpointRef | ResolvedModel) -> Path:
    """As `encoder_folder`, perhaps without the weights: what says how the encoder works."""
    return encoder.described if isinstance(encoder, ResolvedModel) else encoder_folder(store, encoder)


def identity_of(encoder: CheckpointRef | ResolvedModel) -> str:
    """What names an encoder by its content or commit."""
    return encoder.path if isinstance(encoder, CheckpointRef) else encoder.identity


def resolve_named_model(site: RunContext, model: str, revision: str | None) -> ResolvedModel:
    """Find a model by folder, `embedded:` name or Hub id; a mirror may stand in for the Hub."""
    return resolve_model(model, revision, site.mirror, site.local_cache)


def _checkpoint(store: Store, name: str) -> CheckpointRef:
    artifact = find(store, name)
    checkpoint = CheckpointRef(key=artifact.key if artifact.kind == "checkpoint" else _last_trained(store, artifact))
    for ref in (artifact, checkpoint):
        store.used(ref)
    return checkpoint


def _last_trained(store: Store, report: ArtifactRef) -> str:
    """The key of a run's checkpoint; of several trainings in a row, the last."""
    trained = [entry for entry in store.manifest(report).provenance.inputs.values() if entry.kind == "checkpoint"]
    if not trained:
        raise ArtifactMissingError(f"{report} names no checkpoint among its inputs; give checkpoint/<key>")
    return trained[-1].key


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
