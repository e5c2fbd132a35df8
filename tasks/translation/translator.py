"""A translator that was found: what decides its translations, and how another process finds the same one."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, JsonValue

from models.translation.config import TRANSLATION_VERSION, TranslatorConfig
from models.translation.loading import resolve
from storage.artifacts.keys import NotInKey
from storage.artifacts.translation_memory import translator_fingerprint
from storage.sources.model_sources import ResolvedModel
from tasks.embedding.encoders import resolve_named_model
from tasks.stage.device import device_of
from tasks.translation.pinned_translations import embedded_pins

if TYPE_CHECKING:
    from tasks.stage.run_context import RunContext


class ResolvedTranslator(BaseModel):
    """One translator that was found, ready to be loaded."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    identity: dict[str, JsonValue]
    """All that decides its translations: the model's content, the engine with its version, and every setting."""
    config: Annotated[TranslatorConfig, NotInKey]
    """The settings with backend and precision as they are on this machine; in the identity, the model's content stands
    for its name."""
    model: Annotated[ResolvedModel, NotInKey]
    """Its weights, which are fetched when a shard first needs them."""

    @property
    def fingerprint(self) -> str:
        """Name of the translator's memory."""
        return translator_fingerprint(self.identity)

    @property
    def direction(self) -> str:
        """For people: `en→de`."""
        return f"{self.config.source_lang}→{self.config.target_lang}"


def find_translator(site: RunContext, config: TranslatorConfig) -> ResolvedTranslator:
    """Find a translator's model and fingerprint it.

    Args:
        site: Mirror and device.
        config: The translator.

    Raises:
        SourceError, AssetError: the model is nowhere to be had.
        TranslatorLoadError: this machine cannot run it as configured.
    """
    return _hop(resolve_named_model(site, config.model, config.revision), config, device_of(site))


def _hop(model: ResolvedModel, config: TranslatorConfig, device: str) -> ResolvedTranslator:
    settled = resolve(config, device)
    engine = version(settled.backend)
    identity: dict[str, JsonValue] = {
        **settled.model_dump(mode="json", exclude={"model", "revision", "pinned"}),
        "model": model.identity,
        "backend_version": engine,
        "translation_version": TRANSLATION_VERSION,
    }
    pinned = config.pinned or embedded_pins(settled)
    return ResolvedTranslator(identity=identity, config=settled.model_copy(update={"pinned": pinned}), model=model)
