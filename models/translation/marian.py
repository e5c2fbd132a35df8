"""The reference translator: MarianMT through transformers, in sorted token-budget batches.

``transformers`` 5 has no translation pipeline; the model and the parts of its tokenizer are called directly.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from sacremoses import MosesPunctNormalizer
from torch import Tensor
from transformers import MarianMTModel

from models.translation.batches import longest_first, run_in_batches
from models.translation.config import TranslatorConfig
from models.translation.decode import Decoded, Marks, beam_search, greedy
from models.translation.errors import TranslatorLoadError
from models.translation.translator import OnProgress, Translation, is_translatable
from models.translation.vocabulary import Vocabulary
from models.translation.weights import load_model

CPU_TOKEN_BUDGET = 2048  # 6.5 M parameters, greedy, NLI premises: 57, 74, 87, 88, 85 sentences/s at 512, 1,024 … 8,192
GPU_TOKEN_BUDGET = 65_536  # about 4,096 NLI sentences: where a decode step stops being bound by memory (PERF A4)


def load_translator(
    folder: Path,
    config: TranslatorConfig,
    device: str = "cpu",
    threads: int | None = None,
    token_budget: int | None = None,
) -> "MarianTranslator":
    """Load the model in ``folder`` and make it ready to translate.

    Args:
        folder: A MarianMT model in the transformers format: config.json, weights, vocab.json, source.spm, target.spm.
        config: Languages, precision, search and limits.
        device: ``cpu``, ``cuda`` or ``cuda:1``.
        threads: CPU threads for the whole process; None leaves them as they are.
        token_budget: Most padded source tokens in a batch; None takes what suits the device.

    Raises:
        TranslatorLoadError: The folder holds no such model, unsafe weights, or not the target language asked for.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    model = load_model(folder, config.precision, device)
    positions: int = model.config.max_position_embeddings
    vocabulary = Vocabulary(folder, config.target_token, min(config.max_source_tokens, positions))
    return MarianTranslator(model, vocabulary, config, token_budget or _budget(device))


class MarianTranslator:
    """A loaded Marian model in one direction."""

    def __init__(
        self, model: MarianMTModel, vocabulary: Vocabulary, config: TranslatorConfig, token_budget: int
    ) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self._marks = Marks(_start(model), vocabulary.pad, vocabulary.eos)
        self._config = config
        self._token_budget = token_budget
        self._normalizer = MosesPunctNormalizer(config.source_lang) if config.normalize_punctuation else None

    def translate(self, texts: Sequence[str], on_progress: OnProgress | None = None) -> list[Translation]:
        """Translate every text, in the order given; what has neither letter nor digit comes back as it is.

        The result depends on ``texts``, the configuration and the token budget alone.

        Args:
            texts: Sentences in the source language.
            on_progress: Told after each batch: sentences done, sentences in all, target tokens so far.

        Raises:
            DeviceMemoryError: One sentence alone does not fit the device.
        """
        result = [Translation(text, 0, 0.0) for text in texts]
        wanted = [position for position, text in enumerate(texts) if is_translatable(text)]
        sources = self._vocabulary.encode([self._prepared(texts[position]) for position in wanted])
        order = longest_first([len(source) for source in sources])
        done, tokens = len(texts) - len(wanted), 0

        def run(start: int, end: int) -> None:
            nonlocal done, tokens
            rows = order[start:end]
            translations = self._translate_batch([sources[row] for row in rows])
            for row, translation in zip(rows, translations, strict=True):
                result[wanted[row]] = translation
            done, tokens = done + len(rows), tokens + sum(translation.n_tokens for translation in translations)
            if on_progress is not None:
                on_progress(done, len(texts), f"{tokens:,} target tokens")

        run_in_batches([len(sources[row]) for row in order], self._token_budget, run)
        return result

    def _prepared(self, text: str) -> str:
        return text if self._normalizer is None else self._normalizer.normalize(text)

    def _translate_batch(self, sources: list[list[int]]) -> list[Translation]:
        decoded = self._decode(sources)
        texts = self._vocabulary.decode(decoded.pieces)
        return [
            Translation(text, len(pieces), score)
            for text, pieces, score in zip(texts, decoded.pieces, decoded.scores, strict=True)
        ]

    def _decode(self, sources: list[list[int]]) -> Decoded:
        device, positions = self._model.device, self._model.config.max_position_embeddings
        source_BS = _padded(sources, self._vocabulary.pad).to(device)
        mask_BS = _padded([[1] * len(source) for source in sources], 0).to(device)
        caps = [min(positions - 1, self._config.new_tokens_cap(len(source))) for source in sources]
        caps_B = torch.tensor(caps, device=device)
        if self._config.beam == 1:
            return greedy(self._model, self._marks, source_BS, mask_BS, caps_B)
        return beam_search(self._model, self._marks, source_BS, mask_BS, caps_B, self._config.beam)


def _start(model: MarianMTModel) -> int:
    start = model.config.decoder_start_token_id
    if not isinstance(start, int):
        raise TranslatorLoadError(
            f"config.json says decoder_start_token_id {start!r}; expected the number of the piece that decoding starts "
            "from (Marian: the padding piece)"
        )
    return start


def _padded(rows: list[list[int]], fill: int) -> Tensor:
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def _budget(device: str) -> int:
    return CPU_TOKEN_BUDGET if device == "cpu" else GPU_TOKEN_BUDGET
