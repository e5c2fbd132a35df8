"""Split a user's text into sentences in document order, and hold out documents for evaluation.

A corpus is a set of sentences without order. The evaluation on a user's text needs the order: for a sentence's
neighbour, its title, and documents that training has not seen.

Design choices
- Whole documents are held out. A long document, or every one if there are few, is cut into runs of consecutive
  sentences, which are then treated as documents. Otherwise one novel among letters would fill a part or leave it empty.
- The bootstrap draws all questions of a document as one `unit`. If a part has few documents, the units are shorter
  runs: all draws of a single document are equal, so any noise would look like a difference.
- A sentence that also occurs in a held-out document, perhaps with other case, blanks or punctuation, is removed from
  the part `train`.
- Document numbers and a seed decide which documents are held out; sampling takes runs, so that neighbours are adjacent.
- The first rule that applies defines a document. A column names it (a record without a name is a document). A heading
  begins it, as in wikis and Markdown. All lines of a file of prose are one document. A record of a table, or a line of
  a list, is a document. Such single records are numbered by their text: the order of a list has no meaning, so another
  order of the same lines gives the same parts. Records that share a text are one document, such as questions with one
  answer: labelled rows that share a text are in one part.
- A document that an earlier file has too is left out, such as those of a copy of the file or of an export that repeats
  the last one. Otherwise one copy would often be held out, and the training text would lose the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import polars as pl
from pydantic import Field

from bsl.models.corpus.label_groups import connected_rows
from bsl.models.corpus.normalize import copy_ids, has_text, letters, normalize, sentence_ids, split_sentences
from bsl.models.errors import EmptyCorpusError
from bsl.models.runtime.partitions import scattered
from bsl.storage.artifacts.schemas import DOCUMENT_SENTENCES
from bsl.storage.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

Part = Literal["train", "report"]

RUN: Final = 64  # sentences of a run that replaces a document if there are few documents or it is long
FEW: Final = 20  # documents; with fewer, every document is cut into runs
DRAWN: Final = 16  # sentences of a run that is one unit instead of a document; `RUN` is a multiple
FEWEST_UNITS: Final = 10  # units of a part: with fewer documents, runs are units; with fewer units, no questions
ENOUGH: Final = "100 documents, or 2,000 sentences in fewer documents, are usually enough"
"""Text that gives questions."""


_TITLES: Final = "For short texts, such as titles, lower it: --set hold_out.min_chars={}. Otherwise: "
_CHARACTER: Final = r"[\p{Han}\p{Hiragana}\p{Katakana}]"
_A_CHARACTER: Final = 3  # letters of an alphabet with as much information as one such character


class HoldOutConfig(Record):
    """Held-out share of a text, and limits on sentences and their length."""

    share: float = Field(0.3, gt=0, lt=0.9)
    """Share of the sentences to hold out as the part `report`, in whole documents."""
    report: int = Field(10_000, ge=100)
    """Maximal number of sentences of the part `report`, the pool of its retrieval questions."""
    limit: int = Field(40_000, ge=100)
    """Maximal number of training sentences; runs are sampled from more."""
    min_chars: int = Field(20, ge=1)
    """Shortest sentence in characters; a Chinese or Japanese character counts as three, since it has about as much
    information as three letters of an alphabet."""
    max_chars: int = Field(1000, ge=1)
    """Longest sentence in characters."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of the held-out documents and the sampled runs."""


@dataclass
class LeftOut:
    """Number of sentences that were dropped: too short, too long, and of documents that an earlier file has too.

    `unreadable` is the number of records that cannot be read, `first_unreadable` the file, line and fault of the first.
    """

    short: int = 0
    long: int = 0
    copied: int = 0
    unreadable: int = 0
    first_unreadable: str = ""

    @property
    def unreadable_summary(self) -> str:
        """Clause on the unreadable records."""
        return f"{self.unreadable:,} unreadable, the first {self.first_unreadable}"

    def summary(self, config: HoldOutConfig) -> str:
        """Return clauses on the dropped sentences and the settings that drop them; empty if there are none."""
        clauses = [self.unreadable_summary] if self.unreadable else []
        if self.short + self.long:
            clauses.append(
                f"{self.short:,} sentences shorter than {config.min_chars} and {self.long:,} longer than "
                f"{config.max_chars:,} characters were excluded (hold_out.min_chars, hold_out.max_chars)"
            )
        if self.copied:
            clauses.append(f"{self.copied:,} sentences of documents that an earlier file has too were excluded")
        return "; ".join(clauses)


def passages(records: pl.DataFrame, config: HoldOutConfig, left_out: LeftOut | None = None) -> pl.DataFrame:
    """Split records into sentences, as `DOCUMENT_SENTENCES`.

    Args:
        records: `document` (UInt32), `title` (may be null), `text`, `continues` (whether a record directly continues
            the record before it), `source`, `lang`, in reading order.
        config: Minimal and maximal length.
        left_out: Counts of sentences of other lengths are added here.
    """
    texts = records.filter(pl.col("text").str.len_chars() > 0)
    split = texts.with_columns(
        text=pl.Series([split_sentences(text) for text in texts["text"]], dtype=pl.List(pl.String)),
        title=normalize(pl.col("title")).replace("", None),
        # A gap in positions before each record that does not continue the one before, so that they are no neighbours.
        gap=(~pl.col("continues")).cum_sum(),
    )
    sentences = (
        split.explode("text")
        .with_columns(normalize(pl.col("text")), place=pl.int_range(pl.len()) + pl.col("gap"))
        .with_columns(position=(pl.col("place") - pl.col("place").min().over("document")).cast(pl.UInt32))
        .with_columns(sentence_id=sentence_ids(pl.col("text")))
    )
    chars = pl.col("text").str.len_chars()
    short = chars + (_A_CHARACTER - 1) * pl.col("text").str.count_matches(_CHARACTER) < config.min_chars
    long = chars > config.max_chars
    if left_out is not None:
        lost = sentences.select(short=(short & (chars > 0)).sum(), long=long.sum()).row(0, named=True)
        left_out.short, left_out.long = left_out.short + lost["short"], left_out.long + lost["long"]
    return sentences.filter(~short & ~long).select(
        pl.col(name).cast(dtype) for name, dtype in DOCUMENT_SENTENCES.items()
    )


def without_copies(files: Sequence[pl.DataFrame], left_out: LeftOut) -> pl.DataFrame:
    """Join the sentences of files, without documents with the title and sentences of a document of an earlier file.

    Args:
        files: `DOCUMENT_SENTENCES` of each file, documents numbered over all files.
        left_out: The sentences of these documents are counted here.
    """
    numbered = pl.concat([sentences.with_columns(file=pl.lit(number)) for number, sentences in enumerate(files)])
    titled = pl.concat_str(pl.col("title").fill_null(""), "text", separator=" ")
    own_copies = pl.col("copy").unique().sort().cast(pl.String).implode().list.join(" ")
    documents = numbered.with_columns(copy=copy_ids(titled)).group_by("file", "document").agg(copies=own_copies)
    copied = documents.filter(pl.col("file") > pl.col("file").min().over("copies"))
    remaining = numbered.filter(~pl.col("document").is_in(copied["document"].implode()))
    left_out.copied += numbered.height - remaining.height
    return remaining.drop("file")


def hold_out(sentences: pl.DataFrame, config: HoldOutConfig, left_out: LeftOut | None = None) -> pl.DataFrame:
    """Split sentences into the parts `train` and `report`, within the limits of each part.

    Args:
        sentences: `DOCUMENT_SENTENCES`, documents numbered over all sources.
        config: Shares and limits.
        left_out: Counts of sentences dropped before, for messages.

    Returns:
        `DOCUMENT_SENTENCES`, `unit` (UInt32: bootstrap unit, a document or a run of one, numbered from 0 in each part)
        and `part`.

    Raises:
        EmptyCorpusError: A part has no sentences.
    """
    parted = _parted(sentences, config).with_columns(copy=copy_ids(pl.col("text")))
    drawn = pl.concat([_drawn(parted, part, most, config.seed) for part, most in _bounds(config)])
    held_out = drawn.filter(pl.col("part") != "train")
    remaining = drawn.filter((pl.col("part") != "train") | ~pl.col("copy").is_in(held_out["copy"].implode()))
    lost = f"; {summary}" if left_out and (summary := left_out.summary(config)) else ""
    titles = _TITLES.format(config.min_chars // 2 or 1) if left_out and left_out.short > sentences.height else ""
    for part, _ in _bounds(config):
        if remaining.filter(part=part).is_empty():
            raise EmptyCorpusError(
                f"too little text: sentences of {config.min_chars} to {config.max_chars:,} characters: "
                f"{sentences.height:,}, documents: {sentences['document'].n_unique():,}; none is left for the part "
                f"{part!r}, because held-out sentences are not used for training{lost}. "
                f"{titles}Give more text: {FEW} documents of equal length, or {math.ceil(2 * RUN / config.share):,} "
                "different sentences, are always enough."
            )
    return _with_units(remaining).select(*DOCUMENT_SENTENCES.names(), "unit", "part").sort("document", "position")


def undivided(sentences: pl.DataFrame, config: HoldOutConfig) -> pl.DataFrame:
    """Return sentences with their `unit` from a text that is for evaluation only; from a long text, sampled runs.

    Args:
        sentences: `DOCUMENT_SENTENCES`, documents numbered over all sources.
        config: Maximal number of sentences (`report`), and the seed.

    Raises:
        EmptyCorpusError: There is no sentence.
    """
    if sentences.is_empty():
        raise EmptyCorpusError(
            f"no sentences of {config.min_chars} to {config.max_chars:,} characters. Give more text."
        )
    named = _runs(sentences, sentences.height / 4).with_columns(part=pl.lit("report"))
    return _with_units(_drawn(named, "report", config.report, config.seed)).select(*DOCUMENT_SENTENCES.names(), "unit")


def _parted(sentences: pl.DataFrame, config: HoldOutConfig) -> pl.DataFrame:
    """Add `run`, `cut` (whether the document is cut into runs) and `part`."""
    runs = _runs(sentences, config.share / 4 * sentences.height)  # a quarter of the held-out part
    units = runs.with_columns(whole=pl.when("cut").then("run").otherwise(pl.col("document").cast(pl.UInt64)))
    sizes = units.group_by("cut", "whole").len().sort(scattered(pl.col("whole"), config.seed), "whole", "cut")
    reach = (pl.col("len").cum_sum() - pl.col("len") / 2) / sentences.height
    parts = sizes.select(
        "cut",
        "whole",
        part=pl.when(reach < config.share).then(pl.lit("report")).otherwise(pl.lit("train")),
    )
    return units.join(parts, on=["cut", "whole"], maintain_order="left")


def _runs(sentences: pl.DataFrame, longest: float) -> pl.DataFrame:
    """Add `run`, and `cut`: whether the document is cut into runs, since it is long or there are few."""
    few = sentences["document"].n_unique() < FEW
    document = pl.col("document").cast(pl.UInt64)
    return sentences.with_columns(
        run=document * 2**32 + pl.col("position") // RUN, cut=(pl.len().over("document") > longest) | pl.lit(few)
    )


def _with_units(parts: pl.DataFrame) -> pl.DataFrame:
    """Add the bootstrap `unit`: a document; a run if the document is cut or if the part has few units."""
    document, run = pl.col("document").cast(pl.UInt64) * 2**32, pl.col("position") // DRAWN
    units = parts.with_columns(unit=document + pl.when("cut").then(run).otherwise(0))
    few = pl.col("unit").n_unique().over("part") < FEWEST_UNITS
    numbered = units.with_columns(unit=pl.when(few).then(document + run).otherwise("unit"))
    return numbered.with_columns((pl.col("unit").rank("dense").over("part") - 1).cast(pl.UInt32))


def _bounds(config: HoldOutConfig) -> tuple[tuple[Part, int], ...]:
    return ("train", config.limit), ("report", config.report)


def _drawn(named: pl.DataFrame, part: Part, most: int, seed: int) -> pl.DataFrame:
    """Sample runs of a part until there are enough sentences."""
    rows = named.filter(part=part)
    sizes = rows.group_by("run").len().sort(scattered(pl.col("run"), seed), "run")
    enough = sizes.filter(pl.col("len").cum_sum() - pl.col("len") < most)
    return rows.join(enough.select("run"), on="run", how="semi", maintain_order="left")


_TITLE: Final = r"^\s*(?:#|=)\s+([^#=].*?)[\s#=]*$"
_HEADING: Final = r"^\s*(?:#{1,6}\s.*|(?:=\s*)+[^=].*=\s*)$"
_ARE_USUAL: Final = 2  # minimal number of title-like lines of a file with titles


def documents(records: pl.DataFrame, *, lines: bool, first: int) -> pl.DataFrame:
    """Number the documents of one file's records.

    Args:
        records: `text`, `title`, `document` (strings, may be null), `record` (its number), in order.
        lines: Whether the records are lines of prose, so that their order has a meaning.
        first: Number of the first document.

    Returns:
        `document` (UInt32), `title`, `text`, `continues`; headings that separate documents are removed.
    """
    records = records.with_columns(pl.col("document").str.strip_chars().replace("", None))  # CSV has no null
    title = pl.col("text").str.extract(_TITLE)
    again = (pl.col("record") == pl.col("record").shift(1)).fill_null(value=False)  # another column of the same record
    if records["document"].is_not_null().any():
        # A record without a name is a separate document, since unnamed records need not belong together.
        record_id = pl.concat_str(pl.lit("r"), pl.col("record").cast(pl.String))
        named = pl.coalesce(pl.lit("d") + pl.col("document"), record_id).rank("dense") - 1
        goes_on = pl.col("document").is_not_null() | again
        return _numbered(records, named, first, goes_on).sort("document", maintain_order=True)
    if int(records.select(title.is_not_null().sum()).item()) >= _ARE_USUAL:
        begun = title.is_not_null().cum_sum()
        titled = records.with_columns(title=pl.coalesce(title.forward_fill(), pl.col("title")))
        texts = _numbered(titled, begun, first, pl.lit(value=True))
        return texts.filter(~pl.col("text").str.contains(_HEADING))
    if lines:
        return _numbered(records, pl.lit(0), first, pl.lit(value=True))
    by_text = records.with_columns(first=pl.col("text").first().over("record")).sort("first", maintain_order=True)
    together = pl.col("first").min().over(_sharing(by_text)).rank("dense") - 1
    return _numbered(by_text, together, first, again).sort("document", maintain_order=True)


def _sharing(records: pl.DataFrame) -> pl.Series:
    """Return the group of each row: records that share a text, directly or through others; copies of a text are equal.

    If that joins most rows, only records with the same first text are a group.
    """
    text = pl.when(has_text(pl.col("text"))).then(letters(pl.col("text"))).otherwise(pl.format("\0{}", pl.row_index()))
    nodes = records.select(text=text, record=pl.format("\0record {}", "record"))
    groups = connected_rows(records.height, pl.concat([nodes["text"], nodes["record"].alias("text")]))
    if records.height and int(groups.value_counts()["count"].max()) > records.height / 2:  # type: ignore[arg-type]
        return records.select(copy_ids(pl.col("first"))).to_series()
    return groups


def _numbered(records: pl.DataFrame, number: pl.Expr, first: int, continues: pl.Expr) -> pl.DataFrame:
    return records.select(document=(number + first).cast(pl.UInt32), title="title", text="text", continues=continues)
