"""Pinned translations of the embedded translators: recorded when they are packed, demanded before they are used.

Recorded is what both backends write at full precision and CTranslate2 writes at int8, so that a pin holds on every CPU.
A sentence on which they differ is left out. Other precisions, which need a GPU, have no pins.
"""

import logging
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import JsonValue

from models.translation.config import Pin, TranslatorConfig
from storage.embedded import EMBEDDED, embedded_manifest, embedded_path

logger = logging.getLogger(__name__)

PINNED = "pinned"
"""Name of the figures that hold the translations."""
BEAMS = (1, 4)
_ENGINES = (("transformers", "fp32"), ("ctranslate2", "fp32"), ("ctranslate2", "int8"))
_PRECISIONS = ("fp32", "int8")


def embedded_pins(config: TranslatorConfig) -> tuple[Pin, ...]:
    """What an embedded translator must reproduce; nothing for other models and what no pin was recorded with."""
    if not config.model.startswith(EMBEDDED) or config.precision not in _PRECISIONS:
        return ()
    recorded = embedded_manifest(config.model.removeprefix(EMBEDDED)).figures.get(PINNED, {})
    found = recorded.get(_search(config)) if isinstance(recorded, dict) else None
    told = found if isinstance(found, dict) else {}
    return tuple(Pin(source=source, translation=str(text)) for source, text in told.items())


def record_pins(name: str, directions: list[TranslatorConfig], root: Path | None = None) -> dict[str, JsonValue]:
    """Translations of plain sentences on which every engine agrees, by direction and beam.

    Args:
        name: An embedded translator.
        directions: What it translates; backend, precision and beam are set here.
        root: Folder of the models, the package's own unless given.
    """
    from models.translation.backends import load_translator
    from models.translation.smoke import PLAIN_SENTENCES

    folder = embedded_path(name, root)
    pins: dict[str, JsonValue] = {}
    with TemporaryDirectory() as scratch:
        for config in (each.model_copy(update={"beam": beam}) for each in directions for beam in BEAMS):
            sentences = PLAIN_SENTENCES[config.source_lang]
            outputs = []
            for backend, precision in _ENGINES:
                engine = config.model_copy(update={"backend": backend, "precision": precision})
                translator = load_translator(folder, engine, "cpu", Path(scratch) / "converted", cores=1)
                outputs.append([each.text for each in translator.translate(sentences)])
            agreed = {text: found[0] for text, *found in zip(sentences, *outputs, strict=True) if len(set(found)) == 1}
            logger.info("%s, %s: %d of %d sentences pinned", name, _search(config), len(agreed), len(sentences))
            pins[_search(config)] = dict(agreed)
    return pins


def _search(config: TranslatorConfig) -> str:
    repeats = f", no repeated {config.no_repeat_ngram}-grams" if config.no_repeat_ngram else ""
    return f"{config.source_lang}-{config.target_lang} beam {config.beam}{repeats}"
