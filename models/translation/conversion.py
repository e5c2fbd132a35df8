"""A model in the transformers format becomes one of CTranslate2: once, whole or not at all, in full precision.

CTranslate2 brings the weights to the precision asked for when it loads them, so one conversion serves all.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from models.errors import TranslatorLoadError
from storage.filesystem.atomic import whole

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import MarianMTModel

logger = logging.getLogger(__name__)


def convert_once(folder: Path, converted: Path) -> None:
    """Make `converted` from the model in `folder`, unless it is there.

    Several processes may do so at once: each converts beside the target, and the first one's stays.

    Args:
        folder: A MarianMT model in the transformers format.
        converted: Folder to make.

    Raises:
        TranslatorLoadError: `folder` holds no model, unsafe weights, or a model that CTranslate2 would run otherwise.
    """
    if converted.is_dir():
        return
    logger.info("converting %s for ctranslate2 into %s", folder, converted)
    with whole(converted, first_stays=True) as unfinished:
        _convert(folder, unfinished)


def positions_of(folder: Path) -> int:
    """Longest sequence that the model has positions for."""
    return int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["max_position_embeddings"])


def _convert(folder: Path, made: Path) -> None:
    # Imported here: the converter imports torch and transformers, which a converted model does without.
    from ctranslate2.converters import TransformersConverter
    from transformers import MarianTokenizer

    from models.translation.weights import load_model

    model = load_model(folder, "fp32", "cpu")
    tokenizer = MarianTokenizer.from_pretrained(folder, local_files_only=True)
    if (fault := _fault(model)) is not None:
        raise TranslatorLoadError(f"{folder}: ctranslate2 cannot run this model: {fault}; set backend: transformers")

    class SafeConverter(TransformersConverter):  # type: ignore[misc]
        """CTranslate2's converter on weights that were loaded without running any code in them."""

        def load_model(self, *_: object, **__: object) -> object:
            return model

        def load_tokenizer(self, *_: object, **__: object) -> object:
            return tokenizer

    SafeConverter(str(folder)).convert(str(made))


def _fault(model: MarianMTModel) -> str | None:
    """Where CTranslate2's idea of Marian, decoding from a zero embedding and one vocabulary, would be wrong."""
    config = model.config
    start, vocabulary = config.decoder_start_token_id, config.vocab_size
    if start != config.pad_token_id or start != vocabulary - 1:
        return f"decoding starts from piece {start}, not from the padding, which is to be the last of {vocabulary}"
    if model.model.decoder.embed_tokens.weight[start].any():
        return "the embedding that decoding starts from is not zero"
    if not config.share_encoder_decoder_embeddings:
        return "source and target have vocabularies of their own"
    return None
