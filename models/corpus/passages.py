"""Texts with their order kept: the sentences of documents, and which documents are held out.

A corpus is a set, so it cannot say which sentence stands beside which. What is proved about an encoder on somebody's
own text needs that: a sentence's neighbour, its title, and a document that training has not seen.

Design choices
- Documents are held out whole. A long one, and each where there are few, is cut into runs of consecutive sentences that
  stand for documents: one novel among letters would fill a part, or leave it empty.
- What is asked of one document is drawn together (`unit`). Where a part holds few documents shorter runs are drawn
  instead: draws of one document are all alike, and would call any noise a difference.
- A sentence that stands in a held-out document too is learnt by nobody: it leaves the part `train`.
- Which documents are held out follows from their numbers and a seed; a sample takes runs, so that neighbours stay.
- What a document is, the records say. The first that applies: a column names it (a record without a name stands alone);
  a heading begins it, as in wikis and Markdown; lines in order are their file's; a record of a table stands alone,
  and so does a line of a list. Records that stand alone are numbered by their text: the order of a list is no evidence,
  and another order of the same lines gives the same parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from models.corpus.normalize import normalize, sentence_ids, split_sentences
from models.errors import EmptyCorpusError
from models.runtime.seeded_order import scattered

Part = Literal["train", "choose", "report"]

PASSAGES: Final = pl.Schema(
    {
        "document": pl.UInt32,
        "position": pl.UInt32,
        "sentence_id": pl.UInt64,
        "text": pl.String,
        "title": pl.String,
        "source": pl.String,
        "lang": pl.String,
    }
)
"""A sentence of a document; neighbours have positions that follow each other."""

RUN: Final = 64  # sentences that stand for a document where there are few, or where it is long
FEW: Final = 20  # documents
DRAWN: Final = 16  # sentences that are drawn together where documents are not; `RUN` is a multiple
FEWEST_UNITS: Final = 10  # documents of a part, below which runs of them are drawn, and below which nothing is asked


_CHARACTER: Final = r"[\p{Han}\p{Hiragana}\p{Katakana}]"
_A_CHARACTER: Final = 3  # letters of an alphabet that say as much


class HoldOutConfig(BaseModel):
    """What training does not see, and how much is taken in all."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    share: float = Field(0.3, gt=0, lt=0.9)
    """Share of the sentences that is held out, in whole documents: half chooses, half is reported."""
    choose: int = Field(2000, ge=100)
    """Most sentences of the half that chooses, of which every merger is asked."""
    report: int = Field(10_000, ge=100)
    """Most sentences of the half that is reported: among so many is searched."""
    limit: int = Field(40_000, ge=100)
    """Most sentences that are learnt; of more, runs are drawn."""
    min_chars: int = Field(20, ge=1)
    """Shortest sentence kept, in characters; one of Chinese or Japanese, which says about as much as three letters of
    an alphabet, counts three."""
    max_chars: int = Field(1000, ge=1)
    """Longest sentence kept, in characters."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Decides which documents are held out and which runs are drawn."""


@dataclass
class LeftOut:
    """How many sentences were too short or too long."""

    short: int = 0
    long: int = 0


def passages(records: pl.DataFrame, config: HoldOutConfig, left_out: LeftOut | None = None) -> pl.DataFrame:
    """Records to their sentences, as `PASSAGES`.

    Args:
        records: `document` (UInt32), `title` (null where there is none), `text`, `continues` (whether a record goes on
            where the one before it in its document ended), `source`, `lang`, in reading order.
        config: lengths that are kept.
        left_out: what is of another length is added here.
    """
    kept = records.filter(pl.col("text").str.len_chars() > 0)
    split = kept.with_columns(
        text=pl.Series([split_sentences(text) for text in kept["text"]], dtype=pl.List(pl.String)),
        title=normalize(pl.col("title")).replace("", None),
        # A gap before each record that does not continue the one before: its first sentence is nobody's neighbour.
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
    return sentences.filter(~short & ~long).select(pl.col(name).cast(dtype) for name, dtype in PASSAGES.items())


def hold_out(sentences: pl.DataFrame, config: HoldOutConfig, left_out: LeftOut | None = None) -> pl.DataFrame:
    """The sentences with their `unit` and `part`; what no part has room for is left out.

    Args:
        sentences: `PASSAGES`, documents numbered over all sources.
        config: shares and bounds.
        left_out: what was too short or too long, for messages.

    Returns:
        `PASSAGES`, `unit` (UInt32: what is drawn together, a document or a run of one, numbered from 0 in each part)
        and `part`: `train`, `choose` or `report`.

    Raises:
        EmptyCorpusError: a part is left without sentences.
    """
    named = _parted(sentences, config)
    drawn = pl.concat([_drawn(named, part, most, config.seed) for part, most in _bounds(config)])
    held = drawn.filter(pl.col("part") != "train")
    left = drawn.filter((pl.col("part") != "train") | ~pl.col("sentence_id").is_in(held["sentence_id"].implode()))
    for part, _ in _bounds(config):
        if left.filter(part=part).is_empty():
            raise EmptyCorpusError(
                f"{sentences.height:,} sentences of {sentences['document'].n_unique():,} documents leave none for the "
                f"part {part!r}, expected some in each; a sentence that is held out is learnt nowhere, even where it "
                f"stands again. Give more text: {FEW} documents of one length, or "
                f"{math.ceil(2 * RUN / config.share):,} sentences that differ, are always enough"
                f"{_told(left_out, config)}"
            )
    return _with_units(left).select(*PASSAGES.names(), "unit", "part").sort("document", "position")


def whole(sentences: pl.DataFrame, config: HoldOutConfig) -> pl.DataFrame:
    """Return sentences of a text that nothing is trained on, with their `unit`; of a long text, runs of it.

    Args:
        sentences: `PASSAGES`, documents numbered over all sources.
        config: how many are taken (`report`), and the seed.

    Raises:
        EmptyCorpusError: there is no sentence.
    """
    if sentences.is_empty():
        raise EmptyCorpusError(f"0 sentences of {config.min_chars} to {config.max_chars:,} characters; give more text")
    named = _runs(sentences, sentences.height / 4).with_columns(part=pl.lit("report"))
    return _with_units(_drawn(named, "report", config.report, config.seed)).select(*PASSAGES.names(), "unit")


def _told(left_out: LeftOut | None, config: HoldOutConfig) -> str:
    if left_out is None or left_out.short + left_out.long == 0:
        return ""
    return (
        f"; {left_out.short:,} shorter than {config.min_chars} and {left_out.long:,} longer than {config.max_chars:,} "
        "characters were left out (hold_out.min_chars, hold_out.max_chars)"
    )


def _parted(sentences: pl.DataFrame, config: HoldOutConfig) -> pl.DataFrame:
    """Sentences with their `run`, whether their document is `cut` into runs, and their `part`."""
    runs = _runs(sentences, config.share / 8 * sentences.height)  # a quarter of a held-out part
    wholes = runs.with_columns(whole=pl.when("cut").then("run").otherwise(pl.col("document").cast(pl.UInt64)))
    sizes = wholes.group_by("cut", "whole").len().sort(scattered(pl.col("whole"), config.seed), "whole", "cut")
    reach = (pl.col("len").cum_sum() - pl.col("len") / 2) / sentences.height
    parts = sizes.select(
        "cut",
        "whole",
        part=pl.when(reach < config.share / 2)
        .then(pl.lit("choose"))
        .when(reach < config.share)
        .then(pl.lit("report"))
        .otherwise(pl.lit("train")),
    )
    return wholes.join(parts, on=["cut", "whole"], maintain_order="left")


def _runs(sentences: pl.DataFrame, longest: float) -> pl.DataFrame:
    """Return sentences with their `run`, and whether their document is `cut` into runs: it is long, or one of few."""
    few = sentences["document"].n_unique() < FEW
    document = pl.col("document").cast(pl.UInt64)
    return sentences.with_columns(
        run=document * 2**32 + pl.col("position") // RUN, cut=(pl.len().over("document") > longest) | pl.lit(few)
    )


def _with_units(parts: pl.DataFrame) -> pl.DataFrame:
    """What is drawn together in each part: its documents, but runs of those that are cut, and of all where few are."""
    document, place = pl.col("document").cast(pl.UInt64) * 2**32, pl.col("position") // DRAWN
    units = parts.with_columns(unit=document + pl.when("cut").then(place).otherwise(0))
    few = pl.col("unit").n_unique().over("part") < FEWEST_UNITS
    numbered = units.with_columns(unit=pl.when(few).then(document + place).otherwise("unit"))
    return numbered.with_columns((pl.col("unit").rank("dense").over("part") - 1).cast(pl.UInt32))


def _bounds(config: HoldOutConfig) -> tuple[tuple[Part, int], ...]:
    return ("train", config.limit), ("choose", config.choose), ("report", config.report)


def _drawn(named: pl.DataFrame, part: Part, most: int, seed: int) -> pl.DataFrame:
    """The runs of a part, drawn until there are enough sentences."""
    own = named.filter(part=part)
    sizes = own.group_by("run").len().sort(scattered(pl.col("run"), seed), "run")
    enough = sizes.filter(pl.col("len").cum_sum() - pl.col("len") < most)
    return own.join(enough.select("run"), on="run", how="semi", maintain_order="left")


_TITLE: Final = r"^\s*(?:#|=)\s+([^#=].*?)[\s#=]*$"
_HEADING: Final = r"^\s*(?:#{1,6}\s.*|(?:=\s*)+[^=].*=\s*)$"
_ARE_USUAL: Final = 2  # lines like titles: a file with so many has titles


def documents(records: pl.DataFrame, *, lines: bool, first: int) -> pl.DataFrame:
    """Records of one file with the number of each one's document.

    Args:
        records: `text`, `title`, `document` (strings, null where there is none), `record` (its number), in order.
        lines: whether the records are lines of prose, whose order means something.
        first: number of the first document.

    Returns:
        `document` (UInt32), `title`, `text`, `continues`; headings are gone.
    """
    records = records.with_columns(pl.col("document").str.strip_chars().replace("", None))  # CSV has no null
    title = pl.col("text").str.extract(_TITLE)
    again = (pl.col("record") == pl.col("record").shift(1)).fill_null(value=False)  # another column of the same record
    if records["document"].is_not_null().any():
        # A record that names none stands alone: what else is unnamed has nothing to do with it.
        own = pl.concat_str(pl.lit("r"), pl.col("record").cast(pl.String))
        named = pl.coalesce(pl.lit("d") + pl.col("document"), own).rank("dense") - 1
        goes_on = pl.col("document").is_not_null() | again
        return _numbered(records, named, first, title=pl.col("title"), continues=goes_on).sort(
            "document", maintain_order=True
        )
    if int(records.select(title.is_not_null().sum()).item()) >= _ARE_USUAL:
        begun = title.is_not_null().cum_sum()
        titled = records.with_columns(title=pl.coalesce(title.forward_fill(), pl.col("title")))
        kept = _numbered(titled, begun, first, title=pl.col("title"), continues=True)
        return kept.filter(~pl.col("text").str.contains(_HEADING))
    if lines:
        return _numbered(records, pl.lit(0), first, title=pl.col("title"), continues=True)
    alone = pl.col("text").first().over("record").rank("dense") - 1
    return _numbered(records, alone, first, title=pl.col("title"), continues=again).sort(
        "document", maintain_order=True
    )


def _numbered(
    records: pl.DataFrame, number: pl.Expr, first: int, *, title: pl.Expr, continues: bool | pl.Expr
) -> pl.DataFrame:
    return records.select(
        document=(number + first).cast(pl.UInt32),
        title=title,
        text=pl.col("text"),
        continues=continues if isinstance(continues, pl.Expr) else pl.lit(continues),
    )
