"""Natural language inference pairs: SNLI and MultiNLI as distributed (JSON lines) or as on the Hub.

Pairs without a gold label ("-" in the original files, −1 on the Hub; 785 in SNLI's training split) are no labelled
pairs and are counted; their sentences are in the corpus, which `read_source` reads without labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from storage.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from storage.readers.read_report import ReadReport
    from storage.readers.shapes import Shape

LABELS: Final = ("entailment", "neutral", "contradiction")  # their places are the Hub's numbers
_UNLABELLED: Final = ("-", "-1", "")
_CODES: Final[dict[str, int]] = {
    **{name: code for code, name in enumerate(LABELS)},
    **{str(code): code for code in range(len(LABELS))},
}


def read_nli(frames: Iterable[pl.DataFrame], shape: Shape, report: ReadReport) -> Iterator[pl.DataFrame]:
    """Labelled pairs as `premise`, `hypothesis`, `label` (Int8), whatever the source calls them.

    Raises:
        SourceError: the shape is not that of labelled pairs, or a label is unknown.
    """
    if shape.label is None or len(shape.texts) != 2:
        raise SourceError(f"{report.name} holds no labelled pairs, only the columns {', '.join(shape.columns.names)}")
    for frame in _labelled(frames, shape.label, report):
        yield frame.select(
            pl.col(shape.texts[0]).alias("premise"),
            pl.col(shape.texts[1]).alias("hypothesis"),
            pl.col(shape.label).alias("label"),
        )


def _labelled(frames: Iterable[pl.DataFrame], label: str, report: ReadReport) -> Iterator[pl.DataFrame]:
    """The same frames without unlabelled rows, the label as Int8: 0 entailment, 1 neutral, 2 contradiction.

    Args:
        frames: with a column `label`, as a name or a number.
        label: the name of that column.
        report: counts what is dropped.

    Raises:
        SourceError: a label is none of those.
    """
    for frame in frames:
        spelled = frame[label].cast(pl.String).str.strip_chars().fill_null("")
        unlabelled = spelled.is_in(_UNLABELLED)
        codes = spelled.replace_strict(_CODES, default=None, return_dtype=pl.Int8)
        unknown = spelled.filter(codes.is_null() & ~unlabelled)
        if len(unknown):
            raise SourceError(
                f"{report.name}: {len(unknown):,} rows have a label such as {unknown[0]!r} in column {label!r}; "
                f"expected {', '.join(LABELS)} or 0, 1, 2, and '-' or -1 for none; name another column or none"
            )
        report.unlabelled += int(unlabelled.sum())
        yield frame.with_columns(codes.alias(label)).filter(~unlabelled)
