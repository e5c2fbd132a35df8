"""Find a translator, with the identity that decides its translations; record and read pinned translations.

The embedded translators have pinned translations: recorded when they are packed, and checked before they are used.

A pin is a translation on which all engines agree: both backends in fp32, and CTranslate2 in int8 with the CPU's newest
instructions and with AVX2 (2013), whose sums saturate. So a pin is valid on every CPU. Sentences with differing
translations have no pin. Other precisions, which need a GPU, have no pins.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

from pydantic import JsonValue

from models.translation.config import TRANSLATION_VERSION, Pin, TranslatorConfig
from models.translation.loading import resolve
from storage.artifacts.keys import fingerprint
from storage.assets.catalog import embedded_manifest
from storage.assets.embedded import EMBEDDED, embedded_path
from storage.record import NotInKey, Record
from storage.sources.model_sources import ResolvedModel
from tasks.embedding.encoders import resolve_named_model
from tasks.stage.device import device_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tasks.stage.run_context import RunContext


logger = logging.getLogger(__name__)

PINNED = "pinned"
"""Name of the pinned translations in the manifest's figures."""
BEAMS = (1, 2, 4)
_INT8 = {"backend": "ctranslate2", "precision": "int8"}
_ENGINES: Sequence[tuple[Mapping[str, str], Sequence[Mapping[str, str]]]] = (
    ({}, ({"backend": "transformers", "precision": "fp32"}, {"backend": "ctranslate2", "precision": "fp32"}, _INT8)),
    ({"DNNL_MAX_CPU_ISA": "AVX2"}, (_INT8,)),
)
"""Environment variables, which oneDNN reads once per process, and changes of the configuration to run with them."""
_PRECISIONS = ("fp32", "int8")


def embedded_pins(config: TranslatorConfig) -> tuple[Pin, ...]:
    """Return the pinned translations of an embedded translator; empty for other models and settings without pins."""
    if not config.model.startswith(EMBEDDED) or config.precision not in _PRECISIONS:
        return ()
    recorded = embedded_manifest(config.model.removeprefix(EMBEDDED)).figures.get(PINNED, {})
    found = recorded.get(_search(config)) if isinstance(recorded, dict) else None
    pins = found if isinstance(found, dict) else {}
    return tuple(Pin(source=source, translation=str(text)) for source, text in pins.items())


def record_pins(name: str, directions: list[TranslatorConfig], root: Path) -> dict[str, JsonValue]:
    """Translate plain sentences; return the translations on which every engine agrees, by direction and beam."""
    from models.translation.smoke_test import PLAIN_SENTENCES

    configs = [direction.model_copy(update={"beam": beam}) for direction in directions for beam in BEAMS]
    outputs: list[list[str]] = []
    with TemporaryDirectory() as scratch:
        for environment, changes in _ENGINES if configs else ():
            changed = [config.model_copy(update=change) for change in changes for config in configs]
            outputs += _in_a_process(environment, embedded_path(name, root), changed, Path(scratch) / "converted")
    pins: dict[str, JsonValue] = {}
    for number, config in enumerate(configs):
        found = outputs[number :: len(configs)]
        sentences = PLAIN_SENTENCES[config.source_lang]
        rows = zip(sentences, *found, strict=True)
        agreed = {text: translations[0] for text, *translations in rows if len(set(translations)) == 1}
        logger.info("%s, %s: %d of %d sentences pinned", name, _search(config), len(agreed), len(sentences))
        pins[_search(config)] = dict(agreed)
    return pins


def _in_a_process(
    environment: Mapping[str, str], folder: Path, configs: list[TranslatorConfig], converted: Path
) -> list[list[str]]:
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_set_environment, initargs=(environment,)) as pool:
        return pool.submit(_translations, folder, configs, converted).result()


def _set_environment(environment: Mapping[str, str]) -> None:
    os.environ.update(environment)


def _translations(folder: Path, configs: list[TranslatorConfig], converted: Path) -> list[list[str]]:
    from models.translation.config import Resources
    from models.translation.loading import load_translator
    from models.translation.smoke_test import PLAIN_SENTENCES

    translators = (load_translator(folder, config, Resources("cpu", cores=1), converted) for config in configs)
    return [
        [translation.text for translation in translator.translate(PLAIN_SENTENCES[config.source_lang])]
        for config, translator in zip(configs, translators, strict=True)
    ]


def _search(config: TranslatorConfig) -> str:
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
        TranslatorLoadError: This machine cannot run the translator as configured.
    """
    return _hop(resolve_named_model(site, config.model, config.revision), config, device_of(site))


def _hop(model: ResolvedModel, config: TranslatorConfig, device: str) -> ResolvedTranslator:
    resolved = resolve(config, device)
    engine = version(resolved.backend)
    identity: dict[str, JsonValue] = {
        **resolved.model_dump(mode="json", exclude={"model", "revision", "pinned"}),
        "model": model.identity,
        "backend_version": engine,
        "translation_version": TRANSLATION_VERSION,
    }
    pinned = config.pinned or embedded_pins(resolved)
    return ResolvedTranslator(identity=identity, config=resolved.model_copy(update={"pinned": pinned}), model=model)
