"""Somebody's own labels: what of them judges, what teaches, and the pairs that they become.

One rule for `bsl adapt` and `bsl field`. A label judges something only where nothing has learnt its text:
- what speaks of held-out text judges;
- in `bsl field`, `JUDGING` of those on other text judge, drawn by ids, and the rest teach;
- in `bsl adapt`, `JUDGING` of those on learnt text and half of those on other text judge, and the rest teach;
- in `bsl adapt --labels-only-judge`, all others judge, too; but of those on learnt text only `JUDGING`, drawn alike,
  where all of it would be most of what is learnt.

No text that judges is learnt, and its sentences leave the text that all methods learn; a row that teaches may share a
sentence with it, such as a greeting, for where texts open alike no row would be left to teach. Rows that share a text,
as pairs of many questions with one answer do, stay together, also in the two halves of which one chooses and one is
reported; where most rows hang together so, their texts are divided, and rows with texts of both are left out, as rows
of rare classes are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from models.corpus.normalize import normalize, sentence_ids, split_sentences
from models.errors import EvaluationError, TrainingError
from models.runtime.seeded_order import scattered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

Use = Literal["field", "adapt", "judge"]
"""What labels are for: some teach and the rest judge; the same with the rest in halves; all judge, in halves."""
JUDGE, TEACH, CHOOSE, REPORT = "judge", "teach", "choose", "report"
"""What becomes of a labelled row."""
JUDGING: Final = 0.3  # share of the rows that are drawn
FEWEST: Final = 20  # rows of a part that judges
FOLDS: Final = 5  # of the probe that learns classes: each of them wants a teaching row of every class
_OF_A_CLASS: Final = 7  # rows of a half, so that each of the probe's folds within folds holds one
PARTNERS: Final = 8  # of its own class, and as many of others, for each text
_PAIR: Final = 2  # rows of a class, one to stand beside the other
_CLASSES: Final = 2  # fewer tell nothing apart
_OTHERS: Final[Mapping[Use, float]] = {"field": JUDGING, "adapt": 0.5, "judge": 1.0}
"""Share of the rows on other text that judge."""


@dataclass(frozen=True)
class Need:
    """What a part of the labels must have.

    Attributes:
        rows: so many.
        of_a_class: rows of each class; of a class with fewer all rows are left out.
    """

    rows: int
    of_a_class: int


_HALVES: Final[Mapping[str, Need]] = {CHOOSE: Need(FEWEST, _OF_A_CLASS), REPORT: Need(FEWEST, _OF_A_CLASS)}
NEEDS: Final[Mapping[Use, Mapping[str, Need]]] = {
    "field": {JUDGE: Need(FEWEST, 0), TEACH: Need(0, FOLDS)},
    "adapt": {**_HALVES, TEACH: Need(FEWEST, _PAIR)},
    "judge": _HALVES,
}
"""Parts of labels, by what labels are for."""
_OR_ELSE: Final[Mapping[Use, str]] = {
    "field": "or leave --labels out",
    "adapt": "or give --labels-only-judge",
    "judge": "or leave --labels out",
}
_ROWS: Final[Mapping[Use, int]] = {"field": round(FEWEST / JUDGING), "adapt": 5 * FEWEST, "judge": 3 * FEWEST}
"""Rows on other text of which each part gets enough."""


def parts_of(
    labelled: pl.DataFrame, sides: Sequence[str], held: pl.Series, learnt: pl.Series, *, use: Use, seed: int = 0
) -> pl.Series:
    """What becomes of each labelled row, by the rule above.

    Args:
        labelled: a row a label.
        sides: its columns of text.
        held: ids of the sentences that are held out.
        learnt: ids of the sentences that are learnt, but for those of rows that judge.
        use: what the labels are for.
        seed: decides what is drawn.

    Returns:
        Keys of `NEEDS[use]`; null of rows that do nothing.
    """
    texts = pl.concat([_met(labelled[side], held, learnt) for side in sides])
    of_learnt, of_others = _share(labelled, sides, learnt, use), _OTHERS[use]
    # Both texts of a pair judge where its own share of the pairs does.
    one = 1 / len(sides)
    judging = _together(
        texts, labelled.height, _drawn(of_learnt, of_others, seed), _drawn(of_learnt**one, of_others**one, seed)
    )
    named = judging.replace_strict([True, False], [JUDGE, TEACH], return_dtype=pl.String)
    return named if use == "field" else _halved(named, labelled, sides, (held, learnt), use, seed)


def enough(rows: pl.DataFrame, kind: Literal["pairs", "classes"], use: Use) -> pl.DataFrame:
    """The rows that do something: of no class that a part has too few rows of, none whose part is null.

    Args:
        rows: `label`, and `part` as `parts_of` says.
        kind: what the labels are.
        use: what the labels are for.

    Raises:
        EvaluationError: fewer than two classes are left, a part has too few rows, or all that judge have one score.
    """
    kept, needs = rows.drop_nulls("part"), NEEDS[use]
    counts = [f"{rows.filter(part=part).height} {part}" for part in needs]
    found = f"{rows.height} labelled rows, of which {' and '.join(counts)}"
    if others := rows.height - kept.height:
        found += f" (and {others} do nothing: they share texts with both, or their text is learnt)"
    if kind == "classes":
        kept = kept.filter(*((pl.col("part") == part).sum().over("label") >= needs[part].of_a_class for part in needs))
        if (classes := kept["label"].n_unique()) < _CLASSES:
            wanted = " and ".join(f"{need.of_a_class} that {part}" for part, need in needs.items() if need.of_a_class)
            raise EvaluationError(
                f"{found}: {classes} of {rows['label'].n_unique()} classes have rows enough, expected {_CLASSES} or "
                f"more with {wanted}; {_who_judges(use)}: label {_ROWS[use] // 2} rows "
                f"of each class or more, {_OR_ELSE[use]}"
            )
    for part, need in needs.items():
        own = kept.filter(part=part)
        if own.height < need.rows:
            raise EvaluationError(
                f"{found}: {own.height} that {part} can be used, expected at least {need.rows}; {_who_judges(use)}: "
                f"label {_ROWS[use]} rows on other text or more, {_OR_ELSE[use]}"
            )
        if kind == "pairs" and need.rows and own["label"].cast(pl.Float64).n_unique() == 1:
            raise EvaluationError(
                f"{found}: all that {part} have the score {own['label'][0]}, expected several; label more pairs, "
                f"{_OR_ELSE[use]}"
            )
    return kept


def _who_judges(use: Use) -> str:
    share = "" if use == "judge" else f"{_OTHERS[use]:.0%} of "
    halves = "" if use == "field" else ", half of which choose"
    return f"rows of held-out text judge and those of {share}other text{halves}, rows that share a text together"


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


def _share(labelled: pl.DataFrame, sides: Sequence[str], learnt: pl.Series, use: Use) -> float:
    """How many of the rows of learnt text judge; where none teaches all, unless that is most of what is learnt."""
    if use != "judge":
        return 0.0 if use == "field" else JUDGING
    ids = sentences_of(pl.concat([labelled[side].alias("text") for side in sides]))
    return 1.0 if learnt.is_in(ids.implode()).mean() <= 0.5 else JUDGING  # type: ignore[operator]  # of Booleans


def _halved(
    parts: pl.Series,
    labelled: pl.DataFrame,
    sides: Sequence[str],
    known: tuple[pl.Series, pl.Series],
    use: Use,
    seed: int,
) -> pl.Series:
    """Parts whose judging rows choose or are reported; those that would teach are null where labels only judge."""
    judges = (parts == JUDGE).fill_null(value=False)
    chosen = pl.concat([_met(labelled.filter(judges)[side], *known) for side in sides])
    half = scattered(pl.col("text"), seed) % 2 == 0
    halves = _together(chosen, int(judges.sum()), half, half)
    named = halves.replace_strict([True, False], [CHOOSE, REPORT], return_dtype=pl.String)
    rest = parts if use == "adapt" else pl.Series([None] * labelled.height, dtype=pl.String)
    return rest.scatter(judges.arg_true(), named)


def _met(texts: pl.Series, held: pl.Series, learnt: pl.Series) -> pl.DataFrame:
    """`row`, `text` (its id), `held` and `learnt`: whether a sentence of it is."""
    known = {"held": held, "learnt": learnt}
    met = _sentences(texts).group_by("row").agg(
        pl.col("sentence_id").is_in(ids.implode()).any().alias(name) for name, ids in known.items()
    )  # fmt: skip
    named = texts.to_frame("text").select(sentence_ids(normalize(pl.col("text"))).alias("text"))
    return pl.concat([met.sort("row"), named], how="horizontal")


def _drawn(of_learnt: float, of_others: float, seed: int) -> pl.Expr:
    """Whether a text judges: if it is held out, or is drawn."""
    number = scattered(pl.col("text"), seed)
    drawn = {share: number < round(share * 2**64) for share in (of_learnt, of_others)}
    return pl.col("held") | (pl.col("learnt") & drawn[of_learnt]) | (~pl.col("learnt") & drawn[of_others])


def _together(texts: pl.DataFrame, height: int, together: pl.Expr, alone: pl.Expr) -> pl.Series:
    """A claim about each of `height` rows, the same for all that share a text, also over other rows.

    A group of more than half of the rows is divided: of its texts each has a claim of its own, and a row with texts of
    both has none (null).

    Args:
        texts: `row`, `text` (its id), `held`, `learnt`: a row a text.
        height: how many rows there are.
        together: the claim about a group.
        alone: the claim about a text.
    """
    rows = texts.group_by("row").agg(pl.col("held", "learnt").any(), pl.col("text").first()).sort("row")
    grouped = rows.with_columns(group=_groups(height, texts["text"]))
    whole = grouped.select(
        pl.col("held", "learnt").any().over("group"),
        pl.col("text").min().over("group"),
        large=pl.len().over("group") > height / 2,
    )
    apart = texts.select("row", one=alone).group_by("row").agg(every=pl.col("one").all(), some=pl.col("one").any())
    own = pl.when(pl.col("every") == pl.col("some")).then("every")
    both = whole.with_columns(together=together, alone=apart.sort("row").select(own).to_series())
    return both.select(pl.when("large").then("alone").otherwise("together")).to_series()


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
