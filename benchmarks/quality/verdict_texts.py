"""Write the labelled texts of `bench_verdict.py`, 1,000 rows each, from a mirror of public data sets.

    python -m benchmarks.quality.verdict_texts MIRROR FOLDER

Classes: questions (TREC), films (MR), reviews (CR), subjectivity (SUBJ), phrases (MPQA), sentiment (SST-2), genres
(XNLI's premises), novels (50 sentences of each of 20), instructions (of 20 sources). Pairs with scores: pictures
(Multi30k: two captions of one image, or of two), captions, headlines, glosses, forums, news, tweets and students (STS12
to STS16), and paraphrases (MRPC). A text without 1,000 rows is written whole.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import polars as pl

from bsl.models.corpus.normalize import split_sentences

ROWS = 1000
SEED = 0
LETTERS = range(20, 300)  # of a sentence of a novel
CLASSES = {
    "questions": ("trec/train", "text", "coarse_label"),
    "films": ("mr/all", "text", "label"),
    "reviews": ("cr/all", "text", "label"),
    "subjectivity": ("subj/all", "text", "label"),
    "phrases": ("mpqa/all", "text", "label"),
    "sentiment": ("sst2/train", "text", "label"),
    "genres": ("xnli_en/dev", "premise", "genre"),
}
"""Text → its file in the mirror, its columns of text and class."""
STS = {
    "captions": {"sts14": ["images"], "sts15": ["images"]},
    "headlines": {f"sts{year}": ["headlines"] for year in (13, 14, 15, 16)},
    "glosses": {"sts12": ["surprise.OnWN"], "sts13": ["OnWN"], "sts14": ["OnWN"]},
    "forums": {
        "sts14": ["deft-forum"],
        "sts15": ["answers-forums", "belief"],
        "sts16": ["answer-answer", "question-question"],
    },
    "news": {"sts12": ["MSRpar", "surprise.SMTnews"], "sts14": ["deft-news"]},
    "tweets": {"sts14": ["tweet-news"]},
    "students": {"sts15": ["answers-students"]},
}
"""Text → subsets of STS by year."""


def main() -> int:
    """Write all texts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mirror", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    mirror: Path = arguments.mirror
    texts = {name: _classes(mirror, *where) for name, where in CLASSES.items()}
    texts |= {name: _sts(mirror, subsets) for name, subsets in STS.items()}
    texts["novels"] = _novels(_table(mirror, "novels/docs"))
    texts["instructions"] = _instructions(_table(mirror, "ni_text/all"))
    texts["pictures"] = _pictures(_table(mirror, "multi30k_task2/val"))
    texts["paraphrases"] = _pairs(_table(mirror, "mrpc/train").rename({"label": "score"}))
    for name, table in texts.items():
        drawn = table.sample(min(ROWS, table.height), shuffle=True, seed=SEED)
        drawn.write_parquet(arguments.folder / f"{name}.parquet")
        print(f"{name}: {drawn.height} rows")
    return 0


def _table(mirror: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(mirror / f"{name}.parquet")


def _classes(mirror: Path, name: str, text: str, label: str) -> pl.DataFrame:
    table = _table(mirror, name).select(text=pl.col(text), label=pl.col(label).cast(pl.String))
    return table.unique("text", keep="first", maintain_order=True)


def _pairs(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(text="sentence1", text_2="sentence2", score=pl.col("score").cast(pl.Float64))


def _sts(mirror: Path, subsets: dict[str, list[str]]) -> pl.DataFrame:
    years = (_table(mirror, f"{year}/test").filter(pl.col("subset").is_in(own)) for year, own in subsets.items())
    return _pairs(pl.concat(years))


def _novels(documents: pl.DataFrame) -> pl.DataFrame:
    """Draw 50 sentences of each of 20 novels."""
    drawn = documents.sample(20, seed=SEED)
    rows = pl.DataFrame(
        [(sentence, doc) for doc, text in drawn.select("doc", "text").rows() for sentence in split_sentences(text)],
        schema={"text": pl.String, "label": pl.String},
        orient="row",
    )
    sentences = rows.filter(pl.col("text").str.len_chars().is_between(LETTERS.start, LETTERS.stop)).unique("text")
    return _each(sentences, 50)


def _instructions(table: pl.DataFrame) -> pl.DataFrame:
    """Draw 50 texts of each of 20 sources."""
    rows = table.select("text", label="source").unique("text").sort("label", "text")
    large = rows.filter(pl.len().over("label") >= 200)
    sources = large["label"].unique().sort().sample(20, seed=SEED)
    return _each(large.filter(pl.col("label").is_in(sources.implode())), 50)


def _each(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    """Draw `number` rows of each class."""
    shuffled = rows.sort("label", "text").sample(fraction=1, shuffle=True, seed=SEED)
    return shuffled.group_by("label", maintain_order=True).head(number).select("text", "label")


def _pictures(captions: pl.DataFrame) -> pl.DataFrame:
    """Pair each English caption with another of its image, score 1, or with the next image's, score 0."""
    english = captions.filter(lang="en").sort("image_row", "annotator").group_by("image_row", maintain_order=True)
    first, second = (english.agg(pl.col("text").get(place)).sort("image_row")["text"] for place in (0, 1))
    own, other = first.len() // 2, first.len() - first.len() // 2
    scores = pl.Series([1.0] * own + [0.0] * other)
    partner = pl.concat([second[:own], second[own:].shift(-1).fill_null(second[0])])
    return pl.DataFrame({"text": first, "text_2": partner, "score": scores})


if __name__ == "__main__":
    sys.exit(main())
