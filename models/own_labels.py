"""Somebody's own labels: what of them may be learnt, what proves, and the pairs that they become.

A label proves something only where no method has seen its text. Labels of held-out text prove, labels of text that is
learnt teach; of labels of other text, a share that is drawn by their ids proves. Rows that share a text, such as many
questions with one answer, prove or teach together; where most rows hang together like that, their texts are divided,
and rows with texts on both sides are left out.

`bsl adapt` never trains on labels: there, each labelled text judges if no sentence of it is learnt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from models.errors import EvaluationError, TrainingError
from models.shuffle import scattered
from models.text.normalize import normalize, sentence_ids
from models.text.segment import split_sentences

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from numpy.typing import NDArray

PROVING: Final = 0.3  # share of labels on other text that prove
FEWEST_PROVING: Final = 20  # rows
FOLDS: Final = 5  # of the probe that learns classes: each of them wants a teaching row of every class
PARTNERS: Final = 4  # of its own class, and as many of others, for each text
_CLASSES: Final = 2  # fewer tell nothing apart


def proves(
    labelled: pl.DataFrame, sides: Sequence[str], held: pl.Series, learnt: pl.Series, *, share: float, seed: int = 0
) -> pl.Series:
    """Which labelled rows prove: those with a held-out sentence, and a share of those whose text is another.

    Rows that share a text, also by way of other rows, are one group, which proves or teaches as a whole. One of more
    than half of the rows is divided: its texts prove or teach one by one, and a row with texts of both does neither.

    Args:
        labelled: a row a label.
        sides: its columns of text.
        held: ids of the sentences that are held out.
        learnt: ids of the sentences that are learnt.
        share: of the rows with neither that prove too.
        seed: decides which of them.

    Returns:
        Booleans; null where a row neither proves nor teaches.
    """
    texts = pl.concat([_met(labelled[side], held, learnt) for side in sides])
    rows = texts.group_by("row").agg(pl.col("held", "learnt").any(), pl.col("text").first()).sort("row")
    grouped = rows.with_columns(group=_groups(labelled.height, texts["text"]))
    whole = grouped.select(
        pl.col("held", "learnt").any().over("group"),
        pl.col("text").min().over("group"),
        large=pl.len().over("group") > labelled.height / 2,
    )
    # Both texts of a pair prove where its own share of the pairs does.
    apart = texts.select("row", one=_drawn(share ** (1 / len(sides)), seed)).group_by("row").agg(
        every=pl.col("one").all(), some=pl.col("one").any()
    )  # fmt: skip
    alone = pl.when(pl.col("every") == pl.col("some")).then("every")
    both = whole.with_columns(together=_drawn(share, seed), alone=apart.sort("row").select(alone).to_series())
    return both.select(pl.when("large").then("alone").otherwise("together").alias("proves")).to_series()


def provable(rows: pl.DataFrame, kind: Literal["pairs", "classes"]) -> pl.DataFrame:
    """The rows from which something can be proved: no class that fewer than `FOLDS` rows teach, no row that is null.

    Args:
        rows: `label`, and `proves` as the function of that name says.
        kind: what the labels are.

    Raises:
        EvaluationError: fewer than two classes are left, fewer than `FEWEST_PROVING` rows prove, or all those that do
            have one score.
    """
    taught = (~pl.col("proves")).sum().over("label") >= FOLDS
    kept = rows.filter(taught) if kind == "classes" else rows.drop_nulls("proves")
    proving = kept.filter("proves")
    found = f"{rows.height} labelled rows, of which {rows['proves'].sum()} prove and {(~rows['proves']).sum()} teach"
    if between := rows["proves"].null_count():
        found += f" (and {between} do neither, for they have a text of both)"
    classes = kept["label"].n_unique()
    if kind == "classes" and classes < _CLASSES:
        raise EvaluationError(
            f"{found}: {classes} of {rows['label'].n_unique()} classes have {FOLDS} rows that teach, expected "
            f"{_CLASSES} or more; a row proves where it speaks of held-out text, and about {PROVING:.0%} of rows on "
            "other text do: label more rows of each class, or leave --labels out"
        )
    if proving.height < FEWEST_PROVING:
        raise EvaluationError(
            f"{found}: {proving.height} prove something of what can be learnt, expected at least {FEWEST_PROVING}; a "
            f"row proves where it speaks of held-out text, and about {PROVING:.0%} of rows on other text do, those "
            f"that share a text together: label {round(FEWEST_PROVING / PROVING)} rows on other text or more, or leave "
            "--labels out"
        )
    if kind == "pairs" and proving["label"].cast(pl.Float64).n_unique() == 1:
        raise EvaluationError(
            f"{found}: all that prove have the score {proving['label'][0]}, expected several; label more pairs, or "
            "leave --labels out"
        )
    return kept


def unlearnt(labelled: pl.DataFrame, sides: Sequence[str], learnt: pl.Series, *, seed: int = 0) -> pl.Series:
    """Ids of labelled sentences that nobody may learn, so that their rows can judge.

    Those of all labelled texts; where these are most of what is learnt, of a share `PROVING` of them.

    Args:
        labelled: a row a label.
        sides: its columns of text.
        learnt: ids of the sentences that would be learnt.
        seed: decides which texts.
    """
    texts = pl.concat([labelled[side].alias("text") for side in sides]).unique()
    ids = sentences_of(texts)
    if learnt.is_in(ids.implode()).mean() <= 0.5:  # type: ignore[operator]  # of Booleans
        return ids
    drawn = scattered(sentence_ids(normalize(pl.col("text"))), seed) < round(PROVING * 2**64)
    return sentences_of(texts.to_frame().filter(drawn)["text"])


def judges(labelled: pl.DataFrame, sides: Sequence[str], learnt: pl.Series) -> pl.Series:
    """Which labelled rows hold no sentence that is learnt.

    Args:
        labelled: a row a label.
        sides: its columns of text.
        learnt: ids of the sentences that are learnt.
    """
    rows = pl.concat([_sentences(labelled[side]) for side in sides])
    met = rows.group_by("row").agg(pl.col("sentence_id").is_in(learnt.implode()).any()).sort("row")
    return ~met["sentence_id"]


def sentences_of(texts: pl.Series) -> pl.Series:
    """Ids of the sentences of texts, as those of a corpus."""
    return _sentences(texts)["sentence_id"].unique()


def class_pairs(texts: Sequence[str], classes: NDArray[np.int64]) -> pl.DataFrame:
    """Texts beside others of their class, with score 1, and of other classes, with score 0 (as SetFit's pairs).

    Args:
        texts: N of them.
        classes: number of each one's class, (N,).

    Returns:
        sentence1, sentence2, score; as many of either score for each text.

    Raises:
        TrainingError: there are fewer than two classes with two texts each.
    """
    sizes = np.bincount(classes)
    if (sizes > 1).sum() < _CLASSES:
        raise TrainingError(
            f"{len(texts)} labelled texts of {int((sizes > 0).sum())} classes, expected two classes with two texts "
            "each or more; give more labels, or leave the method `labels` out"
        )
    generator = np.random.default_rng(0)
    members = [np.flatnonzero(classes == number) for number in range(len(sizes))]
    strangers = [np.flatnonzero(classes != number) for number in range(len(sizes))]
    rows = []
    for place, number in enumerate(classes):
        own = members[number][members[number] != place]
        if len(own) == 0:
            continue
        rows += [(place, int(other), 1.0) for other in generator.choice(own, PARTNERS)]
        rows += [(place, int(other), 0.0) for other in generator.choice(strangers[number], PARTNERS)]
    first, second, scores = zip(*rows, strict=True)
    return pl.DataFrame(
        {
            "sentence1": [texts[place] for place in first],
            "sentence2": [texts[place] for place in second],
            "score": scores,
        }
    )


def shares(scores: pl.Series) -> pl.Series:
    """Scores as shares of the way from the lowest to the highest.

    Raises:
        TrainingError: there are none, or all of them are equal.
    """
    if scores.is_empty():
        raise TrainingError("no labelled pair teaches, for all prove; label pairs of other text too")
    low, high = float(scores.min()), float(scores.max())  # type: ignore[arg-type]  # numbers, by the reader
    if low == high:
        raise TrainingError(f"all {len(scores)} scores are {low:g}, expected several; correct the column of scores")
    return (scores.cast(pl.Float64) - low) / (high - low)


def _met(texts: pl.Series, held: pl.Series, learnt: pl.Series) -> pl.DataFrame:
    """`row`, `text` (its id), `held` and `learnt`: whether a sentence of it is."""
    known = {"held": held, "learnt": learnt}
    met = _sentences(texts).group_by("row").agg(
        pl.col("sentence_id").is_in(ids.implode()).any().alias(name) for name, ids in known.items()
    )  # fmt: skip
    named = texts.to_frame("text").select(sentence_ids(normalize(pl.col("text"))).alias("text"))
    return pl.concat([met.sort("row"), named], how="horizontal")


def _drawn(share: float, seed: int) -> pl.Expr:
    """Whether a text proves: if it is held out, or is not learnt and drawn."""
    return pl.col("held") | (~pl.col("learnt") & (scattered(pl.col("text"), seed) < round(share * 2**64)))


def _groups(rows: int, texts: pl.Series) -> pl.Series:
    """The number of each row's group, the connected rows of the graph whose edges are shared texts.

    Args:
        rows: how many.
        texts: ids of the texts of all rows, side by side.
    """
    numbers = texts.rank("dense").to_numpy().astype(np.int64) - 1
    places = np.tile(np.arange(rows), len(texts) // max(1, rows))
    nodes = rows + int(numbers.max(initial=-1)) + 1
    graph = coo_array((np.ones(len(places), dtype=np.int8), (places, rows + numbers)), shape=(nodes, nodes))
    _, groups = connected_components(graph, directed=False)
    return pl.Series("group", groups[:rows])


def _sentences(texts: pl.Series) -> pl.DataFrame:
    """`row` and `sentence_id` of every sentence."""
    split = pl.Series("text", [split_sentences(text) or [""] for text in texts], dtype=pl.List(pl.String))
    return (
        split.to_frame()
        .with_row_index("row")
        .explode("text")
        .select("row", sentence_id=sentence_ids(normalize(pl.col("text"))))
    )
