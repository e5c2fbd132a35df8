"""What every backend shares: text to pieces, sorted batches, pieces to text, progress, order.

An engine sees numbers only. So all backends cut a corpus into the same batches by the same vocabulary, give each
sentence the same cap, and pass the same sentences through.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from sacremoses import MosesPunctNormalizer

from models.translation.batches import longest_first, run_in_batches
from models.translation.translator import Decoded, Translation, is_translatable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from models.runtime.progress import OnProgress
    from models.translation.config import TranslatorConfig
    from models.translation.vocabulary import Vocabulary


class Engine(Protocol):
    """Source pieces in, target pieces out."""

    positions: int
    """Longest sequence that the model has positions for."""

    ahead: int
    """Batches worth submitting before the first one is collected."""

    def submit(self, sources: list[list[int]], caps: list[int]) -> Callable[[], Decoded]:
        """Begin to translate a batch.

        Args:
            sources: Source pieces per sentence, end mark included, from the longest to the shortest.
            caps: Most pieces per translation, end mark counted.

        Returns:
            Waits for the batch and gives it; raises where it did not fit the memory.
        """
        ...


class BatchedTranslator:
    """A loaded model in one direction, whichever engine runs it."""

    def __init__(self, engine: Engine, vocabulary: Vocabulary, config: TranslatorConfig, token_budget: int) -> None:
        self.engine = engine
        self.vocabulary = vocabulary
        self._config = config
        self._token_budget = token_budget
        self._normalizer = MosesPunctNormalizer(config.source_lang) if config.normalize_punctuation else None

    def translate(self, texts: Sequence[str], on_progress: OnProgress | None = None) -> list[Translation]:
        """Translate every text, in the order given; what has neither letter nor digit comes back as it is.

        The result depends on `texts`, the configuration and the token budget alone.

        Args:
            texts: Sentences in the source language.
            on_progress: Told after each batch: sentences done, sentences in all, target tokens with their rate.

        Raises:
            DeviceMemoryError: One sentence alone does not fit the device.
        """
        result = [Translation(text, 0, 0.0) for text in texts]
        wanted = [position for position, text in enumerate(texts) if is_translatable(text)]
        sources = self.vocabulary.encode([self._prepared(texts[position]) for position in wanted])
        order = longest_first([len(source) for source in sources])
        done, tokens, started = len(texts) - len(wanted), 0, time.monotonic()

        def submit(start: int, end: int) -> Callable[[], None]:
            rows = order[start:end]
            batch = [sources[row] for row in rows]
            decode = self.engine.submit(batch, [self.cap(len(source)) for source in batch])

            def collect() -> None:
                nonlocal done, tokens
                for row, translation in zip(rows, self._translations(decode()), strict=True):
                    result[wanted[row]] = translation
                    tokens += translation.n_tokens
                done += len(rows)
                if on_progress is not None:
                    rate = tokens / max(1e-9, time.monotonic() - started)
                    on_progress(done, len(texts), f"{tokens:,} target tokens, {rate:,.0f}/s")

            return collect

        run_in_batches([len(sources[row]) for row in order], self._token_budget, submit, self.engine.ahead)
        return result

    def cap(self, source_tokens: int) -> int:
        """Most pieces of a translation, end mark counted: by the source's length, and as the model has positions."""
        return min(self.engine.positions - 1, self._config.new_tokens_cap(source_tokens))

    def _prepared(self, text: str) -> str:
        return text if self._normalizer is None else self._normalizer.normalize(text)

    def _translations(self, decoded: Decoded) -> list[Translation]:
        texts = self.vocabulary.decode(decoded.pieces)
        return [
            Translation(text, len(pieces), score)
            for text, pieces, score in zip(texts, decoded.pieces, decoded.scores, strict=True)
        ]
