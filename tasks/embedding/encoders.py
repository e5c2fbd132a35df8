"""Find encoders by name, before the first stage; artifact keys identify them by content."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from models.encoder.config import EncoderConfig, WordsConfig, architecture_of
from models.errors import EncoderError
from storage.artifacts.lookup import find
from storage.artifacts.refs import ENCODER, CheckpointRef
from storage.errors import ArtifactMissingError
from storage.sources.model_sources import ResolvedModel, is_graph, is_made_here, resolve_model, settings_of
from storage.sources.word_vectors import VectorsFile, find_vectors_file, is_vectors_file, read_vectors
from tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from pathlib import Path

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store
    from tasks.stage.run_context import RunContext


TAUGHT: Final = re.compile(r"embeddings/([0-9a-f]{4,64}|latest)")  # stored vectors of a corpus, used as a teacher


def resolve_encoder(
    site: RunContext, config: EncoderConfig, words: WordsConfig | None = None
) -> tuple[CheckpointRef | ResolvedModel, EncoderConfig]:
    """Find the encoder to train, or a teacher.

    Args:
        site: Run context, with the store, mirror and cache to search.
        config: Encoder settings, with its name.
        words: Word tokenization for a file of word vectors.

    Returns:
        The encoder, and the configuration with the encoder's identity in place of its name, since a folder's path or an
        unpinned revision must not be in a key.

    Raises:
        SourceError, AssetError, ArtifactMissingError: The encoder does not exist.
    """
    encoder = find_encoder(site, config.model, config.revision, words)
    return encoder, config.model_copy(update={"model": identity_of(encoder), "revision": None})


def find_encoder(
    site: RunContext, name: str, revision: str | None, words: WordsConfig | None = None
) -> CheckpointRef | ResolvedModel:
    """Find an encoder by folder, `embedded:` name, Hub id, or `checkpoint/<key>` or `report/<key>` of the store.

    A file of word vectors is imported into the store once.

    Raises:
        SourceError, AssetError, ArtifactMissingError: The encoder does not exist.
    """
    if is_made_here(name):
        return _checkpoint(site.open_store(), name)
    if is_vectors_file(name):
        return import_vectors(site, find_vectors_file(name), words or WordsConfig())
    return resolve_named_model(site, name, revision)


def encoder_folder(store: Store, encoder: CheckpointRef | ResolvedModel) -> Path:
    """Return the local folder of an encoder, fetched if the store is remote."""
    return store.fetch(encoder) / ENCODER if isinstance(encoder, CheckpointRef) else encoder.folder


def described_folder(store: Store, encoder: CheckpointRef | ResolvedModel) -> Path:
    """Return the folder with an encoder's settings; unlike `encoder_folder`, perhaps without weights."""
    return encoder.described if isinstance(encoder, ResolvedModel) else encoder_folder(store, encoder)


def identity_of(encoder: CheckpointRef | ResolvedModel) -> str:
    """Return an encoder's identity: by its artifact key, content or commit."""
    return encoder.path if isinstance(encoder, CheckpointRef) else encoder.identity


def resolve_named_model(site: RunContext, model: str, revision: str | None) -> ResolvedModel:
    """Find a model by folder, `embedded:` name or Hub id; a mirror may replace the Hub."""
    return resolve_model(model, revision, site.mirror, site.local_cache)


def _checkpoint(store: Store, name: str) -> CheckpointRef:
    artifact = find(store, name)
    checkpoint = CheckpointRef(key=artifact.key if artifact.kind == "checkpoint" else _last_trained(store, artifact))
    for ref in (artifact, checkpoint):
        store.used(ref)
    return checkpoint


def _last_trained(store: Store, report: ArtifactRef) -> str:
    """Return the key of a run's checkpoint; after several trainings, the last one's."""
    trained = [entry for entry in store.manifest(report).provenance.inputs.values() if entry.kind == "checkpoint"]
    if not trained:
        raise ArtifactMissingError(f"{report}: has no checkpoint among its inputs. Name checkpoint/<key>.")
    return trained[-1].key


logger = logging.getLogger(__name__)


@stage(ref=CheckpointRef, version=1)
def import_vectors(context: StageContext, source: VectorsFile, config: WordsConfig) -> None:
    """Import a file of word vectors as an encoder: a memory-mapped table, and the word tokenizer.

    Raises:
        SourceError: A line of the file is damaged.
        EncoderError: The file has no word.
    """
    from models.encoder.static import write_words

    logger.info("reading the word vectors of %s", source.path)
    context.draft.note(write_words(context.draft.folder / ENCODER, read_vectors(source.path), config))


_MODULES = "modules.json"  # its presence marks a sentence-transformers folder
_SAVED = ("pooling", "normalize", "lower_case")


def is_bare(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Return whether an encoder is a bare transformer, without the settings of a sentence encoder."""
    return not (settings_of(described_folder(site.open_store(), start)) / _MODULES).is_file()


def check_learns(start: CheckpointRef | ResolvedModel) -> None:
    """Check that an encoder can be trained, before any work starts.

    Raises:
        EncoderError: The encoder is an ONNX graph.
    """
    if isinstance(start, ResolvedModel) and is_graph(start.described):
        raise EncoderError(
            f"{start.described}: an ONNX graph has no gradients (expected weights to train). Start from the folder "
            "that it was exported from."
        )


def can_drop(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Return whether an encoder supports dropout; a static table of tokens or words does not."""
    if _is_only_planned(site, start):
        return False
    if is_bare(site, start):
        return True
    from models.encoder.serialization.load import read_saved  # imports transformers

    return read_saved(described_folder(site.open_store(), start)).backbone.kind == "Transformer"


def with_saved_settings(site: RunContext, start: CheckpointRef | ResolvedModel, config: EncoderConfig) -> EncoderConfig:
    """Complete a configuration: fields with default values take the settings of the encoder's folder.

    Raises:
        EncoderError: A setting contradicts the folder, or this project cannot compute the folder's encoder.
    """
    if _is_only_planned(site, start):
        return config
    folder = described_folder(site.open_store(), start)
    if is_bare(site, start):
        if (folder / "config.json").is_file():
            architecture_of(folder)  # raises if the folder names none
        return config
    from models.encoder.serialization.load import check_settings, read_saved  # imports transformers

    saved = read_saved(folder)
    unset = {name for name in _SAVED if getattr(config, name) == EncoderConfig.model_fields[name].default}
    given = {name: getattr(saved, name) for name in unset if getattr(saved, name) is not None}
    changed = {name: value for name, value in given.items() if value != getattr(config, name)}
    if changed:
        logger.info("%s: settings from the folder: %s", folder, changed)
    completed = config.model_copy(update=changed)
    check_settings(saved, completed)
    return completed


def saved_settings(site: RunContext, encoder: CheckpointRef | ResolvedModel, config: EncoderConfig) -> EncoderConfig:
    """Return a teacher's configuration from its folder; for a bare transformer, the given one."""
    if _is_only_planned(site, encoder) or is_bare(site, encoder):
        return config
    from models.encoder.serialization.load import saved_config  # imports transformers

    described = saved_config(described_folder(site.open_store(), encoder), config.model) or config
    return described.model_copy(update={"max_length": config.max_length or described.max_length})


def _is_only_planned(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Return whether an encoder is a file of word vectors that a dry run has not imported into the store."""
    return isinstance(start, CheckpointRef) and site.open_store().defect(start) is not None
