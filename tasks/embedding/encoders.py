"""Models that a run takes from outside: found before the first stage, named in keys by their bytes."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

from models.encoder.config import EncoderConfig, WordsConfig, architecture_of
from models.errors import EncoderError
from storage.artifacts.lookup import MADE_HERE, find
from storage.artifacts.refs import ENCODER, CheckpointRef
from storage.errors import ArtifactMissingError
from storage.sources.model_sources import ResolvedModel, is_graph, resolve_model, settings_of
from storage.sources.word_vectors import VectorsFile, find_vectors_file, is_vectors_file, read_vectors
from tasks.stage.cached import StageContext, stage

if TYPE_CHECKING:
    from pathlib import Path

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
def import_vectors(work: StageContext, source: VectorsFile, config: WordsConfig) -> None:
    """Read word vectors into a table that processes map into memory, with the tokenizer that cuts sentences for it.

    Raises:
        SourceError: a line of the file is damaged.
        EncoderError: it has no word.
    """
    from models.encoder.static import write_words

    logger.info("reading the word vectors of %s", source.path)
    work.draft.note(write_words(work.draft.folder / ENCODER, read_vectors(source.path), config))


_MODULES = "modules.json"  # what makes a folder one of sentence-transformers
_SAID = ("pooling", "normalize", "lower_case")


def is_bare(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Whether a folder is a transformer alone, which nobody has trained to compare sentences."""
    return not (settings_of(described_folder(site.open_store(), start)) / _MODULES).is_file()


def check_learns(start: CheckpointRef | ResolvedModel) -> None:
    """Refuse to train what cannot be trained, before anything is made for it.

    Raises:
        EncoderError: the start is an ONNX graph.
    """
    if isinstance(start, ResolvedModel) and is_graph(start.described):
        raise EncoderError(
            f"{start.described}: an ONNX graph gives vectors but no gradients, expected weights to train; start from "
            "the folder that it was exported from"
        )


def can_drop(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Whether a start has dropout to be set: a table of tokens or words has none."""
    if _is_only_planned(site, start):
        return False
    if is_bare(site, start):
        return True
    from models.encoder.serialization.load import read_saved  # imports transformers

    return read_saved(described_folder(site.open_store(), start)).backbone.kind == "Transformer"


def with_saved_settings(site: RunContext, start: CheckpointRef | ResolvedModel, config: EncoderConfig) -> EncoderConfig:
    """The configuration with what the start's folder says where nothing else was asked for.

    Raises:
        EncoderError: something else was asked for, or the folder describes an encoder that cannot be computed here.
    """
    if _is_only_planned(site, start):
        return config
    folder = described_folder(site.open_store(), start)
    if is_bare(site, start):
        if (folder / "config.json").is_file():
            architecture_of(folder)  # raises where it has none
        return config
    from models.encoder.serialization.load import check_settings, read_saved  # imports transformers

    saved = read_saved(folder)
    left = {name for name in _SAID if getattr(config, name) == EncoderConfig.model_fields[name].default}
    said = {name: getattr(saved, name) for name in left if getattr(saved, name) is not None}
    changed = {name: value for name, value in said.items() if value != getattr(config, name)}
    if changed:
        logger.info("%s: taken over from the folder: %s", folder, changed)
    settled = config.model_copy(update=changed)
    check_settings(saved, settled)
    return settled


def saved_settings(site: RunContext, encoder: CheckpointRef | ResolvedModel, config: EncoderConfig) -> EncoderConfig:
    """A teacher's configuration as its folder has it; that of a bare transformer as it is given."""
    if _is_only_planned(site, encoder) or is_bare(site, encoder):
        return config
    from models.encoder.serialization.load import saved_config  # imports transformers

    described = saved_config(described_folder(site.open_store(), encoder), config.model) or config
    return described.model_copy(update={"max_length": config.max_length or described.max_length})


def _is_only_planned(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Whether it is a file of word vectors that nobody has read into the store yet."""
    return isinstance(start, CheckpointRef) and site.open_store().defect(start) is not None
