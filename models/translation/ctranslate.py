"""The fast backend: CTranslate2, on a model converted once from the transformers format.

Design choices
- We make the batches. CTranslate2 has one length limit per call, so a batch gets the cap of its longest sentence. Each
  row is then cut at its own cap.
- The default is one thread per batch and as many batches as cores: 1.1 to 1.3 times the speed of all cores on one batch
  (PERF A). The result of a batch does not depend on the number of cores.
- Pieces are passed by name, through the vocabulary that all backends share.
- A model is converted once, atomically and in full precision. CTranslate2 converts the weights to the requested
  precision when it loads them, so one conversion serves all precisions.
"""

from __future__ import annotations

import logging
import weakref
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import ctranslate2

from bsl.models.errors import TranslationError
from bsl.models.translation.gpu import REMEDY, compute_type, gpus, is_of_the_gpu
from bsl.storage.filesystem.atomic import atomic_write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from transformers import MarianMTModel

    from bsl.models.translation.batching import Decoded, Vocabulary
    from bsl.models.translation.config import Resources, TranslatorConfig

CPU_GREEDY_TOKEN_BUDGET = 1024
CPU_BEAM_TOKEN_BUDGET = 512  # a beam multiplies the rows of a batch, so half the sentences fill the core as well
GPU_TOKEN_BUDGET = 16_384
GPU_REPLICAS = 4  # batches that a GPU computes at once; measured in BENCHMARKS.md


class CTranslate2Engine:
    """CTranslate2 engine, which computes several batches at once, each on its own thread or GPU.

    Args:
        folder: A MarianMT model in the transformers format.
        config: Search and precision, resolved by `loading.resolve`.
        resources: Device and cores.
        converted: Folder of the converted model, created if it does not exist; another model needs another folder.
        vocabulary: The model's vocabulary.

    Raises:
        TranslationError: CTranslate2 cannot run the model, does not run on the device, or the model does not fit into
            the GPU's memory.
    """

    def __init__(
        self, folder: Path, config: TranslatorConfig, resources: Resources, converted: Path, vocabulary: Vocabulary
    ) -> None:
        convert_once(folder, converted)
        device, kind, threads = resources.device, resources.device.partition(":")[0], resources.threads
        replicas = GPU_REPLICAS if kind == "cuda" else max(1, resources.cores // threads)
        try:
            self._translator = ctranslate2.Translator(
                str(converted),
                device=kind,
                device_index=gpus(device) if kind == "cuda" else 0,
                compute_type=compute_type(config.precision, kind),
                inter_threads=resources.replicas or replicas,
                intra_threads=threads,
            )
        except RuntimeError as error:
            if is_of_the_gpu(error):
                raise _failure(device, error) from error
            raise
        self._vocabulary, self._config = vocabulary, config
        self.ahead = 4 * self._translator.num_translators  # with 2, a core is idle up to 5 % of the time
        self.token_budget = _budget(kind, config.beam)
        self.forces_end = False
        self._submitted: deque[list[ctranslate2.AsyncTranslationResult]] = deque(maxlen=self.ahead)
        # Also when the process ends: a batch that is still computed after Ctrl-C would crash it.
        weakref.finalize(self, _await, self._submitted)

    def submit(self, sources: list[list[int]], caps: list[int]) -> Callable[[], Decoded]:
        """Start to translate a batch; see `batching.Engine`."""
        pending = self._translator.translate_batch(
            [self._vocabulary.names(source) for source in sources],
            asynchronous=True,
            beam_size=self._config.beam,
            no_repeat_ngram_size=self._config.no_repeat_ngram,
            max_input_length=0,  # the vocabulary has truncated long sentences
            max_decoding_length=max(caps),
            return_scores=self._config.beam > 1,  # without scores, greedy search skips the softmax
        )

        self._submitted.append(pending)

        def collect() -> Decoded:
            results = [batch.result() for batch in pending]
            rows = [self._vocabulary.numbers(result.hypotheses[0]) for result in results]
            # The score is for the whole hypothesis, so a cut one has no valid score.
            scores = [
                result.scores[0] if result.scores and len(row) <= cap else None
                for row, result, cap in zip(rows, results, caps, strict=True)
            ]
            return [(row[:cap], score) for row, cap, score in zip(rows, caps, scores, strict=True)]

        return collect


def _await(submitted: Iterable[list[ctranslate2.AsyncTranslationResult]]) -> None:
    for result in (result for batch in submitted for result in batch):
        with suppress(RuntimeError):  # `collect` raises it
            result.result()


def _failure(device: str, error: RuntimeError) -> TranslationError:
    if "out of memory" in str(error):
        return TranslationError(
            f"{device}: not enough memory for the translator ({error}). Free memory on the device, or use another "
            "device."
        )
    return TranslationError(
        f"ctranslate2 does not work on {device}: {error}. Set augment.backend=transformers, or {REMEDY}."
    )


def _budget(kind: str, beam: int) -> int:
    if kind != "cpu":
        return GPU_TOKEN_BUDGET
    return CPU_GREEDY_TOKEN_BUDGET if beam == 1 else CPU_BEAM_TOKEN_BUDGET


logger = logging.getLogger(__name__)


def convert_once(folder: Path, converted: Path) -> None:
    """Convert the model in `folder` into `converted`, unless that exists.

    Several processes may convert at once: each uses a temporary folder, and the first result is used.

    Raises:
        TranslationError: `folder` has no model, unsafe weights, or a model that CTranslate2 would run differently.
    """
    if converted.is_dir():
        return
    logger.info("converting %s for ctranslate2 to %s", folder, converted)
    with atomic_write(converted, keep_existing=True) as unfinished:
        _convert(folder, unfinished)


def _convert(folder: Path, converted: Path) -> None:
    # Imported here: the converter imports torch and transformers, which a converted model does not need.
    from ctranslate2.converters import TransformersConverter
    from transformers import MarianTokenizer

    from bsl.models.translation.marian import load_model

    model = load_model(folder, "fp32", "cpu")
    tokenizer = MarianTokenizer.from_pretrained(folder, local_files_only=True)
    if (fault := _fault(model)) is not None:
        raise TranslationError(f"{folder}: ctranslate2 cannot run this model: {fault}. Set backend: transformers.")

    class SafeConverter(TransformersConverter):  # type: ignore[misc]
        """CTranslate2's converter, with weights loaded without running any code from them."""

        def load_model(self, *_: object, **__: object) -> object:
            return model

        def load_tokenizer(self, *_: object, **__: object) -> object:
            return tokenizer

    SafeConverter(str(folder)).convert(str(converted))


def _fault(model: MarianMTModel) -> str | None:
    """Return why CTranslate2 would run a model wrongly: it assumes a zero start embedding and one vocabulary."""
    config = model.config
    start, vocabulary = config.decoder_start_token_id, config.vocab_size
    if start != config.pad_token_id or start != vocabulary - 1:
        return f"decoding starts from piece {start}, expected the padding piece, which must be the last of {vocabulary}"
    if model.model.decoder.embed_tokens.weight[start].any():
        return "the embedding of the start piece is not zero"
    if not config.share_encoder_decoder_embeddings:
        return "source and target have different vocabularies"
    return None
