"""Sentences through a translator that may write fewer pieces: which it may is counted on a sample of them.

Design choices
- The sample is the sentences of the smallest ids. It is translated with all pieces, into the memory of the translator
  as it is, where every run finds it; the rest goes into the memory of the translator with these pieces alone.
- One number, the largest id of the sample, says which of the two memories a sentence is looked up in: the rest is never
  taken from the whole translator's, whatever other runs left there.
- At fp32 neither other runs nor shards, batches or their order change a byte. At int8, what a CPU takes unless told, a
  near-tie falls by its batch, with a shortlist or without: a sample that other runs translated in other batches may
  differ in a word, then its pieces may, and these translate the rest anew. Names say which: the shortlist's key holds
  the sample's translations, the second memory's its pieces. Views' keys, known before either, hold the settings alone.
- Pieces are those that spell the sample's translations: a memory holds text. A translator that spells otherwise now and
  then loses nothing by it (BENCHMARKS.md).
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict, JsonValue

from models.partitions import scratch_folder
from storage.keys import NotInKey
from storage.memory import TranslationMemory
from storage.refs import ShortlistRef
from storage.schemas import SHORTLIST
from tasks.hop import Hop
from tasks.recall import Recall
from tasks.stage.cached import Work, stage
from tasks.stage.show import show_table
from tasks.translate import translate_missing

if TYPE_CHECKING:
    from models.partitions import Ranges

logger = logging.getLogger(__name__)

SHOWN_ROWS = 20
COUNTED_ROWS = 10_000


class Sample(BaseModel):
    """Sentences with their translations."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    digest: str
    """sha256 over ids and translations, in order."""
    table: Annotated[Path, NotInKey]
    """Parquet file: sentence_id, text (the translation), sorted by id."""


@stage(ref=ShortlistRef, version=1)
def shortlist(work: Work, hop: Hop, sample: Sample, pieces: int) -> None:
    """Count the pieces that spell a translator's translations of a sample, and keep the most frequent."""
    # Imported here: it imports transformers.
    from models.translation.shortlist import most_frequent
    from models.translation.vocabulary import Vocabulary

    vocabulary = Vocabulary(hop.model.folder, hop.config.target_token, hop.config.max_source_tokens)
    translations = pl.read_parquet(sample.table)["text"]
    parts = (
        translations[start : start + COUNTED_ROWS].to_list() for start in range(0, len(translations), COUNTED_ROWS)
    )
    kept, found = most_frequent(vocabulary, parts, pieces)
    table = pl.DataFrame(kept, schema=SHORTLIST, orient="row")
    work.draft.write(table)
    work.draft.note({"hop": hop.direction, "sentences": len(translations), "pieces": len(kept), "found": found})
    heading = f"{hop.direction}: {len(kept):,} of {found:,} pieces that spell {len(translations):,} translations"
    show_table("shortlist", table.head(SHOWN_ROWS).to_dicts(), heading)


def translated(
    work: Work, hop: Hop, sentences: Ranges, scratch: Path, bits: int, count: int, following: int
) -> tuple[Ranges, list[dict[str, JsonValue]]]:
    """Translate what no memory holds yet, and give all translations by ranges.

    Args:
        work: The stage that does it.
        hop: The translator, with or without a shortlist to be found.
        sentences: sentence_id and text, each sentence once, by ranges.
        scratch: An empty folder, for as long as the translations are read.
        bits: How many ranges, as `models.partitions` says.
        count: How many sentences there are, roughly.
        following: Hops of about as many sentences that the same stage makes afterwards.

    Returns:
        sentence_id and text (the translation) by ranges, among them perhaps sentences that were not asked for; and what
        each translator took.
    """
    if hop.shortlist is None:
        table, took = _recalled(work, hop, sentences, scratch, bits, count, following)
        return (lambda number: table[number].lazy()), [took]
    bound = last_of_sample(sentences, 1 << bits, hop.shortlist.sample)
    whole = hop.whole
    if bound is None:
        logger.info("%s: no more sentences than the sample of %d, so no shortlist", hop.direction, hop.shortlist.sample)
        return translated(work, whole, sentences, scratch, bits, count, following)
    in_sample = pl.col("sentence_id") <= pl.lit(bound, dtype=pl.UInt64)

    def sampled(number: int) -> pl.LazyFrame:
        return sentences(number).filter(in_sample)

    size = hop.shortlist.sample
    first, took_first = _recalled(work, whole, sampled, scratch_folder(scratch, "sample"), bits, size, None)
    sample = _sample(sampled, first, scratch / "sample.parquet")
    listed_by = shortlist if work.site.runner == "threads" else shortlist.have  # as shards are
    held = whole.held_to(listed_by(work.site, whole, sample, hop.shortlist.pieces), work.store)
    rest, took = _recalled(
        work,
        held,
        lambda number: sentences(number).filter(~in_sample),
        scratch_folder(scratch, "rest"),
        bits,
        count,
        following,
    )

    def both(number: int) -> pl.LazyFrame:
        return pl.concat([first[number].lazy().filter(in_sample), rest[number].lazy().filter(~in_sample)])

    return both, [took_first, took]


def _recalled(
    work: Work, hop: Hop, sentences: Ranges, scratch: Path, bits: int, count: int, following: int | None
) -> tuple[Recall, dict[str, JsonValue]]:
    recall = Recall(TranslationMemory(work.store, hop.fingerprint), scratch, bits, count)
    return recall, translate_missing(work.site, hop, sentences, recall, following=following)


def last_of_sample(sentences: Ranges, ranges: int, sample: int) -> int | None:
    """The largest id among the `sample` smallest; None where there are no more sentences than these."""
    seen, bound = 0, None
    for number in range(ranges):
        ids = sentences(number).select("sentence_id").collect().to_series().sort()
        if seen < sample <= seen + len(ids):
            bound = int(ids[sample - seen - 1])
        seen += len(ids)
        if seen > sample:
            return bound
    return None


def _sample(sentences: Ranges, translations: Recall, table: Path) -> Sample:
    parts = (
        sentences(number).select("sentence_id").join(translations[number].lazy(), on="sentence_id").collect()
        for number in range(len(translations))
    )
    rows = pl.concat(parts).sort("sentence_id")
    rows.write_parquet(table)
    digest = hashlib.sha256(rows["sentence_id"].to_numpy().astype("<u8").tobytes())
    for text in rows["text"]:
        digest.update(f"{len(text)} {text}".encode())
    return Sample(digest=digest.hexdigest(), table=table)
