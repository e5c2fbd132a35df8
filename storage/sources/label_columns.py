"""Guess which columns of a table are texts, and which is a class or a score.

A column of many words that has one value for each class, such as `label_text`, describes the class and is no text. If
several columns may be the label, or the text, the user is asked.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from bsl.storage.errors import SourceError
from bsl.storage.readers.columns import known_shape, named, require
from bsl.storage.readers.text_columns import is_prose
from bsl.storage.sources.label_values import class_labels, non_number, scores
from bsl.storage.sources.own_text import TITLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from bsl.storage.sources.label_names import LabelFile

Kind = Literal["pairs", "classes"]
NAME_LABEL: Final = "with `--label-column` (name of a set: `labels:FILE#label=NAME`)"
NAME_TEXT: Final = "with `--text-column` (name of a set: `labels:FILE#text=NAME`)"
_SCORES: Final = (
    "score", "similarity", "rating", "gold", "relatedness_score", "label", "is_duplicate", "duplicate", "is_paraphrase",
    "paraphrase", "quality",
)  # fmt: skip
_CLASSES: Final = ("label", "class", "category", "intent", "topic", "sentiment", "rating", "stars", "target")
_MOST_CLASSES: Final = 100
_SUGGESTED: Final = 3
_INFERENCE: Final = ("entailment", "neutral", "contradiction", "not_entailment", "non-entailment", "not entailment")
_INFERENCE_NUMBERS: Final = ("-1", "0", "1", "2")  # no gold label, entailment, neutral, contradiction
_INFERENCE_NAMES: Final = ("label", "gold", "gold_label")
_INFERENCE_TEXTS: Final = {"premise", "hypothesis"}
_SIDES: Final = ("sentence_1", "sentence_2")  # of docs/own-text.md
_NOT_A_SIDE: Final = (*TITLES, "name", "summary")  # text columns that are never one side of a pair


class LabelColumns(NamedTuple):
    """The columns of labels."""

    kind: Kind
    texts: tuple[str, ...]
    label: str


def label_columns(path: str, table: pl.DataFrame, named_file: LabelFile) -> LabelColumns | None:
    """Return the columns of labels: those that the user named, and a guess at the others; None without labels.

    Args:
        path: The file, for messages.
        table: All columns that can be read, as strings; null for blank cells.
        named_file: The columns that the user named.

    Raises:
        SourceError: A named column is missing, empty or unsuitable, or several columns may be the label or the text.
    """
    require(path, table.columns, [named_file.label] if named_file.label is not None else [], NAME_LABEL)
    require(path, table.columns, named_file.texts, NAME_TEXT)
    filled = table.select(name for name in table.columns if table[name].null_count() < table.height)
    for name in (*named_file.texts, *([named_file.label] if named_file.label is not None else [])):
        if name not in filled.columns:
            raise SourceError(f"{path}: column {name!r} has no values. Name another column.")
    if named_file.label in named_file.texts or len(named_file.texts) > 2:
        raise SourceError(f"{path}: expected one or two text columns, and another one as label. Name other columns.")
    for prose in prose_columns(filled):
        found = _guess(path, filled, prose, named_file)
        if found is not None:
            return found
    return None


def prose_columns(table: pl.DataFrame) -> list[list[str]]:
    """Return possible lists of text columns, the most probable first."""
    prose = [name for name in table.columns if is_prose(table[name].head(200))]
    # Also consider unique values: 300 questions may share 15 answers.
    once = [name for name in table.columns if is_prose(table[name].unique(maintain_order=True).head(200))]
    shape, pair = known_shape(table.columns), [*named(table.columns, _SIDES)]
    known = [*shape.texts] if shape else pair if len(pair) == len(_SIDES) else []
    # Texts with a usual name may be short, and few in one column: five questions with twenty answers each.
    found = [{*names, *known} if {*names} & {*known} else {*names} for names in (prose, once)]
    return [*([name for name in table.columns if name in names] for names in found), known]


def sides(prose: Sequence[str]) -> Sequence[str]:
    """Return the text columns without titles, which are never one side of a pair; all if no other is left."""
    return [name for name in prose if name.lower() not in _NOT_A_SIDE] or prose


def _guess(path: str, table: pl.DataFrame, prose: list[str], given: LabelFile) -> LabelColumns | None:
    labels = [given.label] if given.label is not None else [*named(table.columns, dict.fromkeys((*_CLASSES, *_SCORES)))]
    named_prose = [name for name in prose if name != given.label]
    described = [name for name in named_prose if any(_describes(table, name, label) for label in labels)]
    if len(described) == len(named_prose):
        described = []  # the texts themselves repeat
    every = [name for name in named_prose if name not in described]
    texts = [*given.texts] or sides(every)
    others = [name for name in table.columns if name not in (*every, *texts, *described)]
    is_pair = len(texts) == 2 and (bool(given.texts) or len(every) == 2)
    if is_pair:
        inferences = [name for name in others if _is_inference(table[name], texts, is_named=name == given.label)]
        if (score := _score(path, table, others, given.label, inferences, texts[0])) is not None:
            return LabelColumns("pairs", tuple(texts), score)
        if inferences:
            raise _refused_inference(path, table[inferences[0]])
    if len(texts) == 1 and (label := _class(path, table, others, given.label)) is not None:
        return LabelColumns("classes", tuple(texts), label)
    if len(texts) == 2 and not given.texts and (label := _class(path, table, others, given.label)) is not None:
        pairs = f"name both: {' '.join(texts)}" if _is_scores(table[label]) else "write their scores as numbers"
        raise SourceError(
            f"{path}: {texts[0]!r} and {texts[1]!r} may be the text of the classes in {label!r}. Name one "
            f"{NAME_TEXT}: {texts[0]}. Or for pairs, {pairs}."
        )
    return None


def _score(
    path: str,
    table: pl.DataFrame,
    others: Sequence[str],
    label: str | None,
    inferences: Sequence[str],
    text: str,
) -> str | None:
    if label is None:
        names = [name for name in named(others, _SCORES) if name not in inferences]
        return _only(path, table, [name for name in names if _is_scores(table[name])])
    if label in inferences:
        return None
    if (value := non_number(table[label])) is not None:
        raise SourceError(
            f"{path}: {label!r} contains {value!r}, which is not a number, expected the score of two texts. "
            f"{_as_numbers(table[label], text)}"
        )
    return label


def _as_numbers(values: pl.Series, text: str) -> str:
    """Return how to write values as scores; words may also be classes of the column `text`."""
    if not _is_class(values) or values.str.contains(r"\d").any():
        return "Write scores as numbers with a decimal point and without signs, such as 0.72."
    return (
        f"Write scores as numbers, such as 1 for similar. Or for classes of one text, name it {NAME_TEXT}: {text}; and "
        f"the label {NAME_LABEL}: {values.name}."
    )


def _is_inference(values: pl.Series, texts: Sequence[str], *, is_named: bool) -> bool:
    """Return whether a column is of classes of inference, as in SNLI, whose numbers look like scores.

    Numbers are such classes by the name of their column, and by a 2 or by the names of the texts, unless the user has
    named the column.
    """
    found = {value.lower() for value in class_labels(values).drop_nulls().unique()}
    if len(found & {*_INFERENCE}) > 1:
        return found <= {*_INFERENCE, "-", "-1"}
    if is_named or len(found) < 2 or values.name.lower() not in _INFERENCE_NAMES:
        return False
    return found <= {*_INFERENCE_NUMBERS} and ("2" in found or {name.lower() for name in texts} == _INFERENCE_TEXTS)


def _refused_inference(path: str, values: pl.Series) -> SourceError:
    found = class_labels(values).drop_nulls().unique().sort()
    also = "" if non_number(values) else f" If they are similarities, name them {NAME_LABEL}: {values.name}."
    return SourceError(
        f"{path}: {values.name!r} ({', '.join(found)}) looks like classes of pairs, such as entailment, neutral and "
        f"contradiction, expected similarities. Write numbers in a column `score`, such as 1, 0.5 and 0.{also}"
    )


def _is_scores(values: pl.Series) -> bool:
    return non_number(values) is None and scores(values).drop_nulls().n_unique() > 1


def _class(path: str, table: pl.DataFrame, others: Sequence[str], label: str | None) -> str | None:
    if label is not None:
        count = _count(table[label])
        if not 2 <= count <= table.height // 2:
            raise SourceError(
                f"{path}: {label!r} has {count:,} different values in {table.height:,} rows, expected at least two "
                "classes with several rows each. Name another column."
            )
        return label
    return _only(path, table, [name for name in named(others, _CLASSES) if _is_class(table[name])])


def _count(values: pl.Series) -> int:
    """Return the number of classes."""
    return class_labels(values).drop_nulls().n_unique()


def _is_class(values: pl.Series) -> bool:
    return 2 <= _count(values) <= _MOST_CLASSES


def _only(path: str, table: pl.DataFrame, found: Sequence[str]) -> str | None:
    """Return the only candidate, or the first if all are names of the same classes.

    Raises:
        SourceError: the candidates differ.
    """
    for one, other in combinations(found, 2):
        if not (_describes(table, one, other) and _describes(table, other, one)):
            raise SourceError(
                f"{path}: several columns may be the label: {_counted(table, found)}. Name one {NAME_LABEL}: "
                f"{found[0]}."
            )
    return found[0] if found else None


def _describes(table: pl.DataFrame, name: str, label: str) -> bool:
    """Return whether a column has one value for each value of the label, and labels repeat."""
    if name == label:
        return False
    both = table.select(name, label).drop_nulls()
    classes = both[label].n_unique()
    return 2 <= classes <= both.height / 2 and both.n_unique() == classes


def _counted(table: pl.DataFrame, names: Sequence[str]) -> str:
    return ", ".join(f"`{name}` ({_count(table[name]):,} values)" for name in names)


def remedy(table: pl.DataFrame, texts: Sequence[str], unread: Sequence[str], label: str | None) -> str:
    """Return what to do about a table without labels.

    Args:
        table: The columns that can be read.
        texts: The text columns among them, or those that the user named.
        unread: The other columns.
        label: The label that the user named; None if not named.
    """
    if wrong := [*dict.fromkeys(named(unread, (*_CLASSES, *_SCORES)))] if texts else unread:
        return (
            f"Write {', '.join(map(repr, wrong))} as strings, each text, class or score in a column of its own: the "
            "values are lists, objects or of another type."
        )
    if empty := [name for name in texts if table[name].null_count() == table.height]:
        return f"Column {empty[0]!r} has no texts: write them, or name another column {NAME_TEXT}."
    if not texts or (len(texts) > 2 and label is not None):
        others = [name for name in table.columns if name != label] or table.columns
        words = {name: int(table[name].unique().str.count_matches(r"\p{L}").sum()) for name in others}
        return f"Name the text column {NAME_TEXT}: {max(others, key=words.__getitem__)}."
    names = [*named((name for name in table.columns if name not in texts), _SCORES if len(texts) == 2 else _CLASSES)]
    candidates = [name for name in dict.fromkeys((*names, *table.columns)) if name not in texts]
    found = [name for name in candidates if 2 <= _count(table[name]) <= table.height // 2]
    if len(texts) == 2:
        classes, found = found, [name for name in candidates if _is_scores(table[name])]
        no_numbers = [*(name for name in names if non_number(table[name]) is not None), *classes]
        if no_numbers and not found:
            return _as_numbers(table[no_numbers[0]], texts[0])
    names_unread = ", ".join(map(repr, unread))
    lost = f" {names_unread} cannot be read: the values are lists, objects or of another type." if unread else ""
    if not found:
        return f"{_to_write(next(iter(names), None), len(texts))}{lost}"
    listed = " or ".join(f"`{name}`: {_count(table[name]):,} values" for name in found[:_SUGGESTED])
    titles = [name for name in named(table.columns, _NOT_A_SIDE) if name not in texts and is_prose(table[name])]
    pair = ""
    if len(texts) == 2 and titles:
        pair = f" And name the texts {NAME_TEXT}: {' '.join(texts)}."
    elif len(texts) == 1 and titles and _is_scores(table[found[0]]):
        pair = f" Or for scores of how similar two texts are, also name the texts {NAME_TEXT}: {titles[0]} {texts[0]}."
    return f"Did you mean {listed}? Name the label {NAME_LABEL}: {found[0]}.{pair}{lost}"


def _to_write(label: str | None, texts: int) -> str:
    """Return what to write into a table without usable labels: into the column with a label's name, else a new one."""
    if texts == 2:
        scores = "such as 1 for similar texts and 0 for texts of different rows"
        return f"Write different scores into {label!r}, {scores}." if label else f"Add a column `score`, {scores}."
    if label:
        return f"Write at least two classes, with several rows each, into {label!r}."
    if texts > 2:
        return "Write two texts into each row and add a column `score`, such as 1 for similar texts and 0 for others."
    return "Add a column with the class of each row, such as `label`."


def obstacle(table: pl.DataFrame, prose: Sequence[str]) -> str:
    """Return why a column with a label's name cannot be the label; empty if no column has such a name."""
    texts = sides(prose)
    others = [name for name in table.columns if name not in prose]
    chosen = next(named(others, _SCORES if len(texts) == 2 else _CLASSES), None)
    if chosen is None or len(prose) > 2:
        return ""
    if len(texts) == 2 and (value := non_number(table[chosen])) is not None:
        return f"; {chosen!r} contains {value!r}, which is not a number"
    return f"; {chosen!r} has {_count(table[chosen]):,} different values"


EXPECTED: Final = (
    f"expected two text columns and a number ({', '.join(_SCORES)}), or one text column and 2 to {_MOST_CLASSES} "
    f"classes ({', '.join(_CLASSES)})"
)
"""The columns of labels, for messages."""
