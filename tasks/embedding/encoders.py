"""Find encoders by name, before the first stage; artifact keys identify them by content."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final

from bsl.models.encoder.config import EncoderConfig, WordsConfig, architecture_of, read_settings
from bsl.models.encoder.prompts import check_role, role_prompt
from bsl.models.errors import EncoderError
from bsl.storage.artifacts.lookup import find
from bsl.storage.artifacts.refs import ENCODER, CheckpointRef
from bsl.storage.errors import ArtifactMissingError
from bsl.storage.filesystem.model_folder import is_graph, settings_of
from bsl.storage.record import Record
from bsl.storage.sources.model_sources import ResolvedModel, is_made_here, resolve_model
from bsl.storage.sources.word_vectors import VectorsFile, find_vectors_file, is_vectors_file, read_vectors
from bsl.tasks.figures import ReportFigures
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.progress import announce

if TYPE_CHECKING:
    from pathlib import Path

    from bsl.models.encoder.prompts import Role
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.stage.run_context import RunContext

STORED_VECTORS: Final = re.compile(r"embeddings/([0-9a-f]{4,64}|latest)")
"""Name of a corpus's stored vectors, which may be a teacher."""


class ResolvedEncoder(Record):
    """An encoder that was found, with the settings to load it."""

    encoder: CheckpointRef | ResolvedModel
    config: EncoderConfig
    """Settings, with the encoder's identity in place of its name: a folder's path and an unpinned revision must not be
    in a key. Loading completes `max_length` and `prompt` where they are None."""

    @property
    def checkpoint(self) -> str:
        """Key of the checkpoint, or the identity of another encoder."""
        return self.encoder.key if isinstance(self.encoder, CheckpointRef) else self.encoder.identity


def resolve(site: RunContext, given: EncoderConfig, words: WordsConfig | None = None) -> ResolvedEncoder:
    """Find an encoder and complete its settings: fields that nobody set take those of the encoder's folder.

    `words` is the word tokenization for a file of word vectors.

    Raises:
        SourceError, AssetError, ArtifactMissingError: The encoder does not exist.
        EncoderError: This project cannot compute the folder's encoder.
    """
    encoder = find_encoder(site, given.model, given.revision, words)
    identity = encoder.path if isinstance(encoder, CheckpointRef) else encoder.identity
    config = given.model_copy(update={"model": identity, "revision": None})
    return ResolvedEncoder(encoder=encoder, config=_with_folder_settings(site, encoder, config))


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


def for_role(site: RunContext, found: ResolvedEncoder, role: Role) -> EncoderConfig:
    """Return an encoder's settings for queries or for documents: with the prompt that its folder has for them.

    Raises:
        EncoderError: The folder has other modules for them (a Router), which are not loaded.
    """
    if is_bare(site, found.encoder):
        return found.config
    from bsl.models.encoder.serialization.folder_settings import read_saved  # imports transformers

    folder = described_folder(site.open_store(), found.encoder)
    saved = read_saved(folder)
    check_role(str(folder), saved.roles_not_loaded, role)
    prompt = role_prompt(saved.prompts, role)
    if prompt is None or prompt == saved.prompts.get(saved.default_prompt or "", ""):  # keys stay those of the default
        return found.config
    return found.config.model_copy(update={"prompt": prompt})


def encoder_folder(store: Store, encoder: CheckpointRef | ResolvedModel) -> Path:
    """Return the local folder of an encoder, fetched if the store is remote."""
    return store.fetch(encoder) / ENCODER if isinstance(encoder, CheckpointRef) else encoder.folder


def load_encoder(store: Store, encoder: CheckpointRef | ResolvedModel, config: EncoderConfig) -> SentenceEncoder:
    """Load an encoder; imports torch and transformers, which a run with all stages cached does not need."""
    from bsl.models.encoder.sentence_encoder import SentenceEncoder

    return SentenceEncoder.load(encoder_folder(store, encoder), config)


def described_folder(store: Store, encoder: CheckpointRef | ResolvedModel) -> Path:
    """Return the folder with an encoder's settings; unlike `encoder_folder`, perhaps without weights."""
    return encoder.described if isinstance(encoder, ResolvedModel) else encoder_folder(store, encoder)


def resolve_named_model(site: RunContext, model: str, revision: str | None) -> ResolvedModel:
    """Find a model by folder, `embedded:` name or Hub id; a mirror may replace the Hub."""
    return resolve_model(model, revision, site.mirror, site.local_cache)


def _checkpoint(store: Store, name: str) -> CheckpointRef:
    artifact = find(store, name)
    if artifact.kind == "report":
        announce(_described(store, artifact))
    checkpoint = CheckpointRef(key=artifact.key if artifact.kind == "checkpoint" else _last_trained(store, artifact))
    try:
        store.manifest(checkpoint)
    except ArtifactMissingError:
        page = f"{store.address}/{artifact.path}/{artifact.kind}.html"
        raise ArtifactMissingError(
            f"{artifact}: its encoder {checkpoint} is no longer in {store.address}. Make it again with the command in "
            f"section Reproduce of {page}, or name another encoder."
        ) from None
    for ref in (artifact, checkpoint):
        store.used(ref)
    return checkpoint


def _described(store: Store, report: ArtifactRef) -> str:
    """Return which encoder a report stands for: `report/ddd3817e68e0, NOT PROVED: the original encoder`."""
    manifest = store.manifest(report)
    figures, transform = manifest.figures_as(ReportFigures), _transform_apart(manifest)
    exported = "" if figures.adapted is None else f": the {'adapted' if figures.adapted else 'original'} encoder"
    before = f", before its transform {transform}, which no encoder contains" if transform else ""
    return f"encoder: {report}, {figures.verdict or 'without verdict'}{exported}{before}"


def _last_trained(store: Store, report: ArtifactRef) -> str:
    """Return the key of a run's checkpoint; after several trainings, the last one's."""
    manifest = store.manifest(report)
    trained = [entry for entry in manifest.provenance.inputs.values() if entry.kind == "checkpoint"]
    if not trained:
        model = _settings_of_run(manifest)["encoder"]["model"]
        transform = _transform_apart(manifest)
        reason = (
            f"trained no encoder, and no encoder contains its transform {transform}" if transform else "trained none"
        )
        raise ArtifactMissingError(
            f"{report}: expected the encoder of a run, but this run {reason}. Name {model} itself."
        )
    return trained[-1].key


def _transform_apart(manifest: Manifest) -> str:
    """Return the transform of a run that is no part of its encoder, such as `flow`; empty without one."""
    transform = _settings_of_run(manifest).get("transform")
    is_folded = any(name.startswith("folded.") for name in manifest.provenance.inputs)
    return "" if transform is None or is_folded else str(transform["name"])


def _settings_of_run(manifest: Manifest) -> dict[str, Any]:
    """Return the settings of a report's run; empty for other reports."""
    settings = manifest.provenance.config.get("settings")
    return settings if isinstance(settings, dict) else {}


logger = logging.getLogger(__name__)


@stage(ref=CheckpointRef, version=1)
def import_vectors(context: StageContext, source: VectorsFile, config: WordsConfig) -> None:
    """Import a file of word vectors as an encoder: a memory-mapped table, and the word tokenizer.

    Raises:
        SourceError: A line of the file is damaged.
        EncoderError: The file has no word.
    """
    from bsl.models.encoder.static import write_words

    logger.info("reading the word vectors of %s", source.path)
    context.draft.note(write_words(context.draft.folder / ENCODER, read_vectors(source.path), config))


_MODULES = "modules.json"  # its presence marks a sentence-transformers folder


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


def is_table(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Return whether an encoder is a static table of tokens or words, not a transformer."""
    if _is_only_planned(site, start) or is_bare(site, start):
        return False
    from bsl.models.encoder.serialization.folder_settings import read_saved  # imports transformers

    return read_saved(described_folder(site.open_store(), start)).backbone.kind != "Transformer"


def token_width_of(site: RunContext, start: CheckpointRef | ResolvedModel) -> int | None:
    """Return the width of a transformer's token vectors; None for a static table of tokens or words."""
    if _is_only_planned(site, start):
        return None
    folder = described_folder(site.open_store(), start)
    if not is_bare(site, start):
        from bsl.models.encoder.serialization.folder_settings import read_saved  # imports transformers

        backbone = read_saved(folder).backbone
        if backbone.kind != "Transformer":
            return None
        folder = backbone.folder
    return int(read_settings(folder).hidden_size)


def _with_folder_settings(
    site: RunContext, start: CheckpointRef | ResolvedModel, config: EncoderConfig
) -> EncoderConfig:
    if _is_only_planned(site, start):
        return config
    folder = described_folder(site.open_store(), start)
    if is_bare(site, start):
        if (folder / "config.json").is_file():
            architecture_of(folder)  # raises if the folder names none
        return config
    from bsl.models.encoder.serialization.folder_settings import read_saved, resolved  # imports transformers

    completed = resolved(read_saved(folder), config)
    if changed := {name: value for name, value in completed if value != getattr(config, name)}:
        logger.info("%s: settings from the folder: %s", folder, changed)
    return completed


def _is_only_planned(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Return whether an encoder is a file of word vectors that a dry run has not imported into the store."""
    return isinstance(start, CheckpointRef) and site.open_store().defect(start) is not None
