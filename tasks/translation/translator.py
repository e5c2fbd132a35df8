"""Find a translator, with the identity that decides its translations, and its pinned translations.

The embedded translators have pinned translations, which are checked before they are used. A pin is valid on every CPU
in fp32 and int8: all engines agreed on it when the translator was packed. Other precisions, which need a GPU, have no
pins.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

from pydantic import JsonValue

from bsl.models.translation.config import TRANSLATION_VERSION, Pin, TranslatorConfig
from bsl.models.translation.loading import resolve
from bsl.storage.artifacts.keys import fingerprint
from bsl.storage.assets.catalog import embedded_manifest
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.record import NotInKey, Record
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.embedding.encoders import resolve_named_model
from bsl.tasks.stage.device import device_of

if TYPE_CHECKING:
    from bsl.tasks.stage.run_context import RunContext


PINNED = "pinned"
"""Name of the pinned translations in the manifest's figures."""
_PRECISIONS = ("fp32", "int8")


def embedded_pins(config: TranslatorConfig) -> tuple[Pin, ...]:
    """Return the pinned translations of an embedded translator; empty for other models and settings without pins."""
    if not config.model.startswith(EMBEDDED) or config.precision not in _PRECISIONS:
        return ()
    recorded = embedded_manifest(config.model.removeprefix(EMBEDDED)).figures.get(PINNED, {})
    found = recorded.get(search_name(config)) if isinstance(recorded, dict) else None
    pins = found if isinstance(found, dict) else {}
    return tuple(Pin(source=source, translation=str(text)) for source, text in pins.items())


def search_name(config: TranslatorConfig) -> str:
    """Return the name of a translator's pinned translations: its direction and beam."""
    repeats = f", no repeated {config.no_repeat_ngram}-grams" if config.no_repeat_ngram else ""
    return f"{config.source_lang}-{config.target_lang} beam {config.beam}{repeats}"


class ResolvedTranslator(Record):
    """A translator, found and identified, ready to be loaded."""

    identity: dict[str, JsonValue]
    """Everything that decides its translations: the model's content, the engine with its version, and all settings."""
    config: Annotated[TranslatorConfig, NotInKey]
    """Settings, with backend and precision chosen for this machine. The identity has the model's content in place of
    its name."""
    model: Annotated[ResolvedModel, NotInKey]
    """The model, whose weights are fetched for the first shard."""

    @property
    def fingerprint(self) -> str:
        """Name of the translator's memory."""
        return fingerprint(self.identity)[:16]

    @property
    def direction(self) -> str:
        """The language pair for display, such as `en→de`."""
        return f"{self.config.source_lang}→{self.config.target_lang}"


def find_translator(site: RunContext, config: TranslatorConfig) -> ResolvedTranslator:
    """Find a translator's model and fingerprint it.

    Raises:
        SourceError, AssetError: The model is not available.
        TranslationError: This machine cannot run the translator as configured.
    """
    model = resolve_named_model(site, config.model, config.revision)
    resolved = resolve(config, device_of(site))
    identity: dict[str, JsonValue] = {
        **resolved.model_dump(mode="json", exclude={"model", "revision", "pinned"}),
        "model": model.identity,
        "backend_version": version(resolved.backend),
        "translation_version": TRANSLATION_VERSION,
    }
    pinned = config.pinned or embedded_pins(resolved)
    return ResolvedTranslator(identity=identity, config=resolved.model_copy(update={"pinned": pinned}), model=model)
