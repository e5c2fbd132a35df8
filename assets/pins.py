"""Record pinned translations of an embedded translator: `bsl.tasks.translation.translator` checks them before use.

A pin is a translation on which all engines agree: both backends in fp32, and CTranslate2 in int8 with the CPU's newest
instructions and with AVX2 (2013), whose sums saturate. So a pin is valid on every CPU. Sentences with differing
translations have no pin.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bsl.storage.assets.embedded import embedded_path
from bsl.tasks.translation.translator import search_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import JsonValue

    from bsl.models.translation.config import TranslatorConfig

logger = logging.getLogger(__name__)

BEAMS = (1, 2, 4)
_INT8 = {"backend": "ctranslate2", "precision": "int8"}
_ENGINES: Sequence[tuple[Mapping[str, str], Sequence[Mapping[str, str]]]] = (
    ({}, ({"backend": "transformers", "precision": "fp32"}, {"backend": "ctranslate2", "precision": "fp32"}, _INT8)),
    ({"DNNL_MAX_CPU_ISA": "AVX2"}, (_INT8,)),
)
"""Environment variables, which oneDNN reads once per process, and changes of the configuration to run with them."""


def record_pins(name: str, directions: list[TranslatorConfig], root: Path) -> dict[str, JsonValue]:
    """Translate plain sentences; return the translations on which every engine agrees, by direction and beam."""
    from bsl.models.translation.smoke_test import PLAIN_SENTENCES

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
        logger.info("%s, %s: %d of %d sentences pinned", name, search_name(config), len(agreed), len(sentences))
        pins[search_name(config)] = dict(agreed)
    return pins


def _in_a_process(
    environment: Mapping[str, str], folder: Path, configs: list[TranslatorConfig], converted: Path
) -> list[list[str]]:
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_set_environment, initargs=(environment,)) as pool:
        return pool.submit(_translations, folder, configs, converted).result()


def _set_environment(environment: Mapping[str, str]) -> None:
    os.environ.update(environment)


def _translations(folder: Path, configs: list[TranslatorConfig], converted: Path) -> list[list[str]]:
    from bsl.models.translation.config import Resources
    from bsl.models.translation.loading import load_translator
    from bsl.models.translation.smoke_test import PLAIN_SENTENCES

    translators = (load_translator(folder, config, Resources("cpu", cores=1), converted) for config in configs)
    return [
        [translation.text for translation in translator.translate(PLAIN_SENTENCES[config.source_lang])]
        for config, translator in zip(configs, translators, strict=True)
    ]
