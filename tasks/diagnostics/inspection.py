"""Whether a model or a source will do: looked at, in seconds, as closely as the place of its bytes allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.artifacts.lookup import find
from storage.errors import SourceError
from storage.hub.datasets import check_table
from storage.sources.model_sources import ResolvedModel
from storage.sources.read import check_columns
from storage.sources.sources import ResolvedSource, SourceSpec, resolve_sources
from storage.sources.word_vectors import find_vectors_file, is_vectors_file
from tasks.embedding.encoders import TAUGHT, described_folder, encoder_folder, find_encoder, resolve_named_model
from tasks.stage.device import device_of
from tasks.translation.translate import try_translator
from tasks.translation.translator import find_translator

if TYPE_CHECKING:
    from pathlib import Path

    from models.encoder.config import EncoderConfig
    from models.translation.config import TranslatorConfig
    from tasks.stage.run_context import RunContext

_SHOWN: Final = 80  # characters of a digest or address
_SENTENCE: Final = "A man is playing a guitar."
_TRANSLATOR: Final = ("vocab.json", "source.spm", "target.spm")


def look_at_encoder(site: RunContext, config: EncoderConfig) -> str:
    """Load an encoder and embed a sentence, if its weights are here; else read what says how it works.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has it.
        EncoderError: it cannot be computed here, or not as configured.
    """
    from models.encoder.sentence_encoder import SentenceEncoder
    from models.encoder.serialization.settings import check_settings, read_saved

    if TAUGHT.fullmatch(config.model):
        return f"{find(site.open_store(), config.model)}, vectors that a teacher made"
    if is_vectors_file(config.model):
        return f"sha256:{find_vectors_file(config.model).digest}"[:_SHOWN]  # the whole is read in the run
    encoder, store = find_encoder(site, config.model, config.revision), site.open_store()
    if isinstance(encoder, ResolvedModel) and not _is_here(encoder):
        check_settings(read_saved(described_folder(store, encoder)), config)
        return f"{encoder.identity[:_SHOWN]}, {_elsewhere(encoder)}; its settings will do"
    width = SentenceEncoder.load(encoder_folder(store, encoder), config).encode([_SENTENCE]).shape[1]
    name = encoder.identity if isinstance(encoder, ResolvedModel) else encoder.path
    return f"{name[:_SHOWN]}, gives vectors of width {width}"


def look_at_model(site: RunContext, name: str, revision: str | None) -> str:
    """Whether a translator or another model is whole.

    Raises:
        SourceError, AssetError: nobody has it, or a file is missing.
    """
    model = resolve_named_model(site, name, revision)
    if not _is_here(model):
        return f"{model.identity[:_SHOWN]}, {_elsewhere(model)}"
    lacking = [part for part in _parts(model.folder) if not any(model.folder.glob(part))]
    if lacking:
        raise SourceError(f"{model.folder} has no {' and no '.join(lacking)}; check that the copy is complete")
    return model.identity[:_SHOWN]


def look_at_translator(site: RunContext, config: TranslatorConfig) -> str:
    """Translate three sentences as a run would, if the translator's weights are here; else say what it would run on.

    Raises:
        SourceError, AssetError: nobody has it.
        TranslationError: this machine cannot run it as configured, or not soundly.
    """
    hop = find_translator(site, config)
    engine = f"{hop.direction} on {hop.config.backend} in {hop.config.precision} on {device_of(site)}"
    if not _is_here(hop.model):
        return f"{engine}; its weights are {_elsewhere(hop.model)}"
    translated = try_translator(site, hop)
    return f"{engine}: translated {len(translated)} sentences, such as {translated[0][:_SHOWN]!r}"


def look_at_source(site: RunContext, spec: SourceSpec) -> str:
    """Whether a source is there and has the columns that are read of it.

    Raises:
        SourceError: it is not, has not, or the Hub does not say.
    """
    return "; ".join(_seen(source) for source in resolve_sources(spec, site.mirror))


def _seen(source: ResolvedSource) -> str:
    if source.hub is not None and not check_table(source.hub):
        return f"{source.digest[:_SHOWN]}, on the Hub; columns are seen when it is fetched"
    return f"{source.digest[:_SHOWN]}, columns {', '.join(check_columns(source))}"


def _is_here(model: ResolvedModel) -> bool:
    found = model.hub or model.mirrored
    return found is None or found.check()


def _elsewhere(model: ResolvedModel) -> str:
    return "on the Hub" if model.hub is not None else "on the mirror"


def _parts(folder: Path) -> tuple[str, ...]:
    """Patterns of the files that a model of its kind is made of."""
    from models.encoder.architecture import architecture_of

    kind = architecture_of(folder) if (folder / "config.json").is_file() else ""
    weights = "model*.safetensors" if any(folder.glob("*.safetensors")) else "pytorch_model*.bin"
    return ("config.json", weights, *(_TRANSLATOR if kind == "marian" else ()))
