"""How good a small translator is: against references, and after a round trip against what went out.

BLEU and chrF are sacreBLEU's with its default settings (13a tokenisation; chrF2), from 0 to 100.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import sacrebleu

from models.pretraining.corpora import fingerprint
from models.translation.filters import loops

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_REPEATS = 3


def translation_quality(translations: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Corpus BLEU and chrF of translations with one reference each."""
    return {
        "bleu": round(sacrebleu.corpus_bleu(list(translations), [list(references)]).score, 2),
        "chrf": round(sacrebleu.corpus_chrf(list(translations), [list(references)]).score, 2),
    }


def round_trip_quality(originals: Sequence[str], returned: Sequence[str]) -> dict[str, float]:
    """What is left of sentences that went to another language and back.

    Args:
        originals: Sentences that were translated.
        returned: What came back.

    Returns:
        `chrf` against the originals; `copies`, the share in [0, 1] that came back the same but for case, spaces and
        punctuation; `loops`, the number that repeat a phrase more than three times in a row.
    """
    same = sum(fingerprint(a) == fingerprint(b) for a, b in zip(originals, returned, strict=True))
    frame = pl.DataFrame({"text": list(returned)}, schema={"text": pl.String})
    return {
        "chrf": round(sacrebleu.corpus_chrf(list(returned), [list(originals)]).score, 2),
        "copies": round(same / max(1, len(originals)), 4),
        "loops": int(frame.select(loops(pl.col("text"), MAX_REPEATS).fill_null(False).sum()).item()),
    }
