"""Split the user's labels into evaluation and training rows, and make training pairs of classes.

No text is both for evaluation (`judge`) and for training (`teach`). Evaluation rows are
- all rows on held-out text: with a held-out sentence, unless several held-out documents have it (`COMMON`), such as a
  greeting or a signature, and the row has other text;
- in `bsl adapt` and `bsl sweep own`, `JUDGING` of the rows on training text and half of those on other text; the rest
  are for training;
- in `bsl adapt --labels-only-judge`, all rows; but only `JUDGING` of those on training text, drawn by ids, if all of
  them would take away more than half of that text.

The sentences of evaluation rows are removed from the training text. A training row may still share a sentence with an
evaluation row, such as a greeting. Otherwise no training row would be left if all texts begin alike.

Texts and sentences that differ only in case, blanks and punctuation are equal here: an encoder gives them almost equal
vectors, so a test row would be known from its copy.

Rows that share a text, such as pairs of many questions with one answer, get the same part. If more than half of the
rows are connected in this way, their texts are divided instead; rows with texts of both parts are dropped. Rows of rare
classes are dropped too. If the user names a column of documents, writers or customers, no value of it is in both parts
(`bsl.models.corpus.label_groups`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import polars as pl

from bsl.models.corpus.label_groups import connected_rows, judged_groups
from bsl.models.corpus.normalize import copy_ids, normalize, sentence_ids, split_sentences
from bsl.models.corpus.passages import ENOUGH, FEW
from bsl.models.errors import EvaluationError, TrainingError
from bsl.models.runtime.partitions import scattered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

Use = Literal["adapt", "judge", "evaluate"]
"""Use of labels: training and evaluation; only evaluation, beside a training text and alone."""
JUDGE, TEACH = "judge", "teach"
"""Part of a labelled row: evaluation or training."""
DOCUMENT: Final = "document"
"""Column of labelled rows: the document, writer or customer of each, if the user named one."""
_NAMES: Final = {JUDGE: "test labels", TEACH: "training labels"}
JUDGING: Final = 0.3  # share of rows drawn for evaluation
COMMON: Final = 3  # held-out documents (or runs) with a sentence that alone makes no text one for evaluation
FEWEST: Final = 20  # minimum number of rows in a part
_OF_A_CLASS: Final = 7  # minimum rows of a class for evaluation: each of the probe's nested folds needs one
PARTNERS: Final = 8  # pairs of each text within its class, and as many with other classes
_PAIR: Final = 2  # minimum rows of a class to form a pair
_CLASSES: Final = 2  # minimum number of classes
_GROUPS: Final = 2  # minimum groups of a part; the bootstrap draws them
_OTHERS: Final[Mapping[Use, float]] = {"adapt": 0.5, "judge": 1.0}
"""Share of evaluation among the rows on other text."""


NEEDS: Final[Mapping[Use, Mapping[str, int]]] = {
    "adapt": {JUDGE: _OF_A_CLASS, TEACH: _PAIR},
    "judge": {JUDGE: _OF_A_CLASS},
    "evaluate": {JUDGE: _OF_A_CLASS},
}
"""Parts of labels by use, each with the minimum rows of a class; all rows of a smaller class are dropped."""
_ROWS: Final[Mapping[Use, int]] = {
    "adapt": 3 * FEWEST,
    "judge": 2 * FEWEST,
    "evaluate": FEWEST,
}
"""Number of rows on other text that is enough for every part."""
OR_LABELS: Final = f"Or give labels, {_ROWS['adapt']} rows or more."
"""What to do if a text alone is too little."""


def parts_of(
    labelled: pl.DataFrame,
    sides: Sequence[str],
    held_out: pl.DataFrame,
    training: pl.Series,
    *,
    use: Use,
    seed: int = 0,
) -> pl.Series:
    """Assign a part to each labelled row, by the rules of this module.

    Args:
        labelled: one row per label; with a column `document`, no document is in both parts (`judged_groups`).
        sides: its text columns.
        held_out: held-out sentences, as of `held_out_sentences`.
        training: ids of training sentences, before those of evaluation rows are removed.
        use: use of the labels.
        seed: seed of the draws.

    Returns:
        Keys of `NEEDS[use]`; null for unused rows.
    """
    texts = pl.concat([_matches(labelled[side], held_out, training) for side in sides])
    # Copies are one text, even if their sentences differ: "Fine. Thanks." has two, "fine. thanks." has one.
    texts = texts.with_columns(pl.col("text").min().over("copy"), pl.col("held_out", "training").any().over("copy"))
    texts = texts.drop("copy")
    of_training, of_others = _share(labelled, sides, training, use), _OTHERS[use]
    rest = None if use == "judge" else TEACH
    if DOCUMENT in labelled.columns:
        judging = judged_groups(texts, labelled[DOCUMENT], of_training, of_others, seed)
        return judging.replace_strict([True, False], [JUDGE, rest], return_dtype=pl.String)
    # Drawing each text with the root of a share draws both texts of a pair with that share.
    one = 1 / len(sides)
    judging = _draw_by_component(
        texts, labelled.height, _drawn(of_training, of_others, seed), _drawn(of_training**one, of_others**one, seed)
    )
    return judging.replace_strict([True, False], [JUDGE, rest], return_dtype=pl.String)


def usable_rows(rows: pl.DataFrame, kind: Literal["pairs", "classes"], use: Use) -> pl.DataFrame:
    """Drop rows without a part and rows of classes too small for a part; check that enough rows are left.

    `rows` has the columns `label` and `part` (of `parts_of`), and perhaps the texts.

    Raises:
        EvaluationError: fewer than two classes are left, a part has too few rows, or all its pairs have one score.
    """
    usable, needs = rows.drop_nulls("part"), NEEDS[use]
    counts = [f"{rows.filter(part=part).height} {_NAMES[part]}" for part in needs]
    if others := rows.height - usable.height:
        counts.append(f"{others} unused, which share texts with both parts or with the training text")
    sides = [name for name in ("text_1", "text_2") if name in rows.columns]
    different = rows.unique(sides).height if sides else rows.height
    repeated = f" of {different} different texts" if different < rows.height else ""
    found = f"labels: {rows.height} rows{repeated} ({', '.join(counts)})"
    or_else = "or remove this set" if use == "evaluate" else f"or, with enough text, remove --labels ({ENOUGH})"
    if use == "adapt" and DOCUMENT in rows.columns and TEACH not in usable["part"]:
        raise EvaluationError(
            f"{found}: each of {rows[DOCUMENT].n_unique()} groups of --document has held-out text, expected groups "
            f"without any for training. Give {FEW} groups or more, so that few are held out, or leave out --document."
        )
    if kind == "classes":
        usable = usable.filter(
            *((pl.col("part") == part).sum().over("label") >= fewest for part, fewest in needs.items())
        )
        if (classes := usable["label"].n_unique()) < _CLASSES:
            minimum = " and ".join(f"{fewest} {_NAMES[part]}" for part, fewest in needs.items())
            raise EvaluationError(
                f"{found}: {classes} of {rows['label'].n_unique()} classes have enough rows, expected at least "
                f"{_CLASSES} classes with {minimum} each.{_selection(use)} Label at least {_ROWS[use] // 2} "
                f"different texts of each class, {or_else}."
            )
    for part in needs:
        used = usable.filter(part=part)
        if DOCUMENT in used.columns and (groups := used[DOCUMENT].n_unique()) < _GROUPS:
            raise EvaluationError(
                f"{found}: {groups} groups among the {_NAMES[part]}, expected at least {_GROUPS}. Give rows of more "
                "groups, or leave out --document."
            )
        if used.height < FEWEST:
            raise EvaluationError(
                f"{found}: {used.height} usable {_NAMES[part]}, expected at least {FEWEST}.{_selection(use)} Label "
                f"at least {_ROWS[use]} rows{'' if use == 'evaluate' else ' on other text'}, {or_else}."
            )
        if kind == "pairs" and used["label"].cast(pl.Float64).n_unique() == 1:
            raise EvaluationError(
                f"{found}: all {_NAMES[part]} have the score {used['label'][0]}, expected different scores. Label more "
                f"pairs, {or_else}."
            )
    return usable


def _selection(use: Use) -> str:
    if use == "evaluate":
        return ""
    share = "" if use == "judge" else f"{_OTHERS[use]:.0%} of "
    return (
        f" Test labels are the rows on held-out text and {share}those on other text; rows that share a text get the "
        "same part."
    )


def held_out_sentences(passages: pl.DataFrame) -> pl.DataFrame:
    """Return the ids `copy` (`copy_ids`) of held-out sentences, and whether several documents have them (`common`).

    Args:
        passages: `text`, `unit` and `part`, as `bsl.models.corpus.passages.hold_out` returns them.
    """
    report = passages.filter(pl.col("part") != "train").select("unit", copy=copy_ids(pl.col("text")))
    return report.group_by("copy").agg(common=pl.col("unit").n_unique() >= COMMON)


def sentences_of(texts: pl.Series) -> pl.Series:
    """Return the unique ids of the sentences of texts, as `copy_ids`."""
    return _sentences(texts)["copy"].unique()


def class_pairs(texts: Sequence[str], classes: NDArray[np.int64]) -> pl.DataFrame:
    """Pair texts within a class, with score 1, and across classes, with score 0 (as SetFit).

    Returns:
        sentence1, sentence2, score; as many pairs with score 1 as with score 0 for each text.

    Raises:
        TrainingError: fewer than two classes have two texts.
    """
    sizes = np.bincount(classes)
    if (sizes > 1).sum() < _CLASSES:
        raise TrainingError(
            f"{len(texts)} labelled texts of {int((sizes > 0).sum())} classes, expected at least two classes with two "
            "texts each. Give more labels."
        )
    generator = np.random.default_rng(0)
    members = [np.flatnonzero(classes == number) for number in range(len(sizes))]
    strangers = [np.flatnonzero(classes != number) for number in range(len(sizes))]
    rows = []
    for place, number in enumerate(classes):
        same_class = members[number][members[number] != place]
        if len(same_class) == 0:
            continue
        rows += [(place, int(other), 1.0) for other in generator.choice(same_class, PARTNERS)]
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
    """Scale scores linearly to [0, 1].

    Raises:
        TrainingError: no scores, or all are equal.
    """
    if scores.is_empty():
        raise TrainingError("no training labels: all labelled pairs are test labels. Label pairs of other text too.")
    low, high = float(scores.min()), float(scores.max())  # type: ignore[arg-type]  # numbers, by the reader
    if low == high:
        raise TrainingError(
            f"all {len(scores)} scores are {low:g}, expected different scores. Check the column of scores."
        )
    return (scores.cast(pl.Float64) - low) / (high - low)


def _share(labelled: pl.DataFrame, sides: Sequence[str], training: pl.Series, use: Use) -> float:
    """Return the evaluation share of rows on training text: all for `judge`, unless that removes most of the text."""
    if use != "judge":
        return JUDGING
    ids = sentences_of(pl.concat([labelled[side].alias("text") for side in sides]))
    return 1.0 if training.is_in(ids.implode()).mean() <= 0.5 else JUDGING  # type: ignore[operator]  # of Booleans


def _matches(texts: pl.Series, held_out: pl.DataFrame, training: pl.Series) -> pl.DataFrame:
    """Return `row`, `text` (its id), `copy`, and whether the text is `held_out`, and has a sentence in `training`.

    A text is held out by one sentence that is not common, or if all its sentences are held out.
    """
    rare = held_out.filter(~pl.col("common"))["copy"]
    is_rare, is_known = (pl.col("copy").is_in(ids.implode()) for ids in (rare, held_out["copy"]))
    matches = (
        _sentences(texts)
        .group_by("row")
        .agg(held_out=is_rare.any() | is_known.all(), training=pl.col("copy").is_in(training.implode()).any())
    )
    ids = {"text": sentence_ids(normalize(pl.col("text"))), "copy": copy_ids(pl.col("text"))}
    return pl.concat([matches.sort("row"), texts.to_frame("text").select(**ids)], how="horizontal")


def _drawn(of_training: float, of_others: float, seed: int) -> pl.Expr:
    """Whether a text is for evaluation: held out, or drawn."""
    number = scattered(pl.col("text"), seed)
    drawn = {share: number < round(share * 2**64) for share in (of_training, of_others)}
    return pl.col("held_out") | (pl.col("training") & drawn[of_training]) | (~pl.col("training") & drawn[of_others])


def _draw_by_component(texts: pl.DataFrame, height: int, together: pl.Expr, alone: pl.Expr) -> pl.Series:
    """Evaluate a condition for each of `height` rows, with one value for all rows connected by shared texts.

    A group of more than half of the rows is divided: each text is evaluated alone, and a row whose texts differ is
    null.

    Args:
        texts: `row`, `text` (its id), `held_out`, `training`: one row per text.
        height: number of rows.
        together: condition for a group.
        alone: condition for a text.
    """
    rows = texts.group_by("row").agg(pl.col("held_out", "training").any(), pl.col("text").first()).sort("row")
    grouped = rows.with_columns(group=connected_rows(height, texts["text"]))
    by_group = grouped.select(
        pl.col("held_out", "training").any().over("group"),
        pl.col("text").min().over("group"),
        large=pl.len().over("group") > height / 2,
    )
    by_row = texts.select("row", one=alone).group_by("row").agg(every=pl.col("one").all(), some=pl.col("one").any())
    agreed = pl.when(pl.col("every") == pl.col("some")).then("every")
    both = by_group.with_columns(together=together, alone=by_row.sort("row").select(agreed).to_series())
    return both.select(pl.when("large").then("alone").otherwise("together")).to_series()


def _sentences(texts: pl.Series) -> pl.DataFrame:
    """Return `row` and `copy`, its id, of every sentence."""
    split = pl.Series("text", [split_sentences(text) or [""] for text in texts], dtype=pl.List(pl.String))
    return split.to_frame().with_row_index("row").explode("text").select("row", copy=copy_ids(pl.col("text")))
