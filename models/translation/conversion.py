"""A model in the transformers format becomes one of CTranslate2: once, whole or not at all, in full precision.

CTranslate2 brings the weights to the precision asked for when it loads them, so one conversion serves all.

A model that may write some pieces only has no other rows in the decoder's tables. So a step costs less, and what a
sentence becomes does not hang on its neighbours, as it would with CTranslate2's `vmap`, which takes a union a batch.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from models.files import written_whole
from models.translation.errors import TranslatorLoadError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ctranslate2.specs import TransformerSpec
    from transformers import MarianMTModel

logger = logging.getLogger(__name__)


def convert_once(folder: Path, converted: Path, pieces: Sequence[str] | None = None) -> None:
    """Make `converted` from the model in `folder`, unless it is there.

    Several processes may do so at once: each converts beside the target, and the first one's stays.

    Args:
        folder: A MarianMT model in the transformers format.
        converted: Folder to make; must be another one for other pieces.
        pieces: All that the model may write beside the end mark and the unknown piece; None for its whole vocabulary.

    Raises:
        TranslatorLoadError: `folder` holds no model, unsafe weights, or a model that CTranslate2 would run otherwise;
            or a piece is not in its vocabulary.
    """
    if converted.is_dir():
        return
    logger.info("converting %s for ctranslate2 into %s", folder, converted)
    with written_whole(converted) as unfinished:
        _convert(folder, unfinished, pieces)


def positions_of(folder: Path) -> int:
    """Longest sequence that the model has positions for."""
    return int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["max_position_embeddings"])


def _convert(folder: Path, made: Path, pieces: Sequence[str] | None) -> None:
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

        def _load(self) -> TransformerSpec:
            spec = super()._load()
            if pieces is not None:
                _restrict(spec, {*pieces, tokenizer.eos_token, tokenizer.unk_token}, folder)
            return spec

    SafeConverter(str(folder)).convert(str(made))


def _restrict(spec: TransformerSpec, pieces: set[str], folder: Path) -> None:
    """Leave the decoder the rows of these pieces, in their order, by which equal logits are told apart."""
    [vocabulary] = spec._vocabularies["target"]
    if foreign := sorted(pieces.difference(vocabulary)):
        raise TranslatorLoadError(
            f"{folder}: {len(foreign)} pieces of the shortlist are not in the model's vocabulary, such as "
            f"{foreign[0]!r}; expected a shortlist of this model's own translations"
        )
    kept = [number for number, piece in enumerate(vocabulary) if piece in pieces]
    decoder = spec.decoder
    decoder.embeddings.weight = decoder.embeddings.weight[kept]
    decoder.projection.weight = decoder.projection.weight[kept]
    if decoder.projection.has_bias():
        decoder.projection.bias = decoder.projection.bias[kept]
    spec._vocabularies["target"] = [[vocabulary[number] for number in kept]]


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
