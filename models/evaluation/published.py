"""Figures that the paper prints, × 100 and to two decimals, for a report's own to stand beside.

Figures are in the order of their suite, which is the paper's. Dev selection uses STS-B dev, which shares sources with
STS12-16, so "unsupervised" here means: no labels but those of the dev set's ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Rows = dict[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper.

    Attributes:
        title: what it shows.
        suite: which data sets it is about.
        rows: system → figures, None where the paper has none.
        columns: what the figures are, if not one for each of the suite's sets.
    """

    title: str
    suite: str
    rows: Rows
    columns: tuple[str, ...] = ()


TABLE_1: Final[Rows] = {  # BSL (Zhang et al., 2021), Table 1
    "GloVe avg.": (55.14, 70.66, 59.73, 68.25, 63.66, 58.02, 53.76),
    "BERT avg.": (38.78, 57.98, 57.98, 63.15, 61.06, 46.35, 58.40),
    "BERT [CLS]": (20.16, 30.01, 20.09, 36.88, 38.08, 16.50, 42.63),
    "BERT-mlm": (48.86, 64.76, 56.97, 70.86, 64.65, 64.33, 67.76),
    "IS-BERT": (56.77, 69.24, 61.21, 75.23, 70.16, 69.21, 64.25),
    "BERT-flow": (59.54, 64.69, 64.66, 72.92, 71.84, 58.56, 65.44),
    "BSL-BERT": (67.83, 71.40, 66.88, 79.97, 73.97, 73.74, 70.40),
    "BSL-RoBERTa": (68.47, 72.41, 68.48, 78.50, 72.77, 78.77, 69.97),
    "SBERT": (70.97, 76.53, 73.19, 79.09, 74.30, 77.03, 72.91),
    "SRoBERTa": (71.54, 72.49, 70.80, 78.74, 73.69, 77.77, 74.46),
    "BSL-SBERT": (71.48, 81.20, 73.78, 79.08, 79.23, 80.67, 76.95),
    "BSL-SRoBERTa": (75.44, 80.25, 76.14, 81.62, 80.00, 81.90, 77.02),
}

TABLE_3: Final[Rows] = {  # BSL (Zhang et al., 2021), Table 3: multilingual STS 2017
    "mBERT": (54.4, 56.7, 50.9, 16.7, 33.9, 16.0, 21.5, 33.0),
    "XLM-R": (50.7, 51.8, 25.7, 17.4, 21.3, 9.2, 10.9, 16.6),
    "BSL-uns": (76.9, 81.2, 68.3, 71.6, 71.5, 72.7, 69.5, 75.6),
    "XLM-R ← SBERT-nli-stsb": (82.5, 83.5, 79.9, 77.8, 78.9, 74.0, 79.7, 78.5),
    "LaBSE": (79.4, 80.8, 69.1, 74.5, 73.8, 72.0, 65.5, 77.0),
    "BSL-sup": (83.3, 86.1, 79.3, 80.6, 81.2, 78.9, 82.0, 83.5),
}
TABLE_4: Final[Rows] = {  # BSL (Zhang et al., 2021), Table 4: corpora and augmentations
    "BSL-BERT, 5M Book": (64.90, 68.33, 65.18, 77.48, 73.12, 70.55, 68.05),
    "BSL-BERT, 5M Book + NLI": (68.93, 68.23, 66.13, 79.72, 72.54, 74.94, 69.76),
    "BSL-BERT, Synonym": (62.31, 69.73, 63.37, 77.78, 67.94, 70.04, 66.36),
    "BSL-BERT, MLM": (61.47, 69.58, 66.91, 78.86, 69.62, 70.55, 68.78),
    "BSL-BERT, NLI_entail": (65.88, 72.62, 65.67, 78.39, 74.17, 73.42, 70.67),
    "BSL-BERT, Back-translation + NLI_entail": (72.01, 72.62, 70.16, 81.65, 76.03, 77.65, 74.48),
}

TABLE_2: Final[Rows] = {  # BSL (Zhang et al., 2021), Table 2: SentEval
    "Unigram-TFIDF": (73.7, 79.2, 90.3, 82.4, None, 85.0, 73.6),
    "SDAE": (74.6, 78.0, 90.8, 86.9, None, 78.4, 73.7),
    "SkipThought": (76.5, 80.1, 93.6, 87.1, 82.0, 92.2, 73.0),
    "FastSent": (70.8, 78.4, 88.7, 80.6, None, 76.8, 72.2),
    "GloVe avg.": (77.25, 78.30, 91.17, 87.85, 80.18, 83.0, 72.87),
    "BERT avg.": (78.66, 86.25, 94.37, 88.66, 84.40, 92.8, 69.54),
    "BERT [CLS]": (78.68, 84.85, 94.21, 88.23, 84.13, 91.40, 71.13),
    "BERT-mlm": (79.92, 85.78, 94.82, 85.97, 86.00, 92.40, 74.14),
    "IS-BERT": (81.09, 87.18, 94.96, 88.75, 85.96, 88.64, 74.24),
    "BSL-BERT": (81.42, 86.89, 95.20, 89.60, 87.70, 93.00, 74.09),
    "BSL-RoBERTa": (80.92, 90.41, 93.80, 89.96, 91.10, 88.40, 75.07),
    "InferSent": (81.57, 86.54, 92.50, 90.38, 84.18, 88.2, 75.77),
    "USE": (80.09, 85.19, 93.98, 86.70, 86.38, 93.2, 70.14),
    "SBERT": (83.64, 89.43, 94.39, 89.86, 88.96, 89.6, 76.00),
    "BSL-SBERT": (83.34, 89.67, 95.65, 89.97, 88.58, 88.60, 76.93),
    "BSL-SRoBERTa": (83.50, 89.17, 94.57, 89.31, 91.60, 92.40, 77.1),
}
TABLE_10: Final[Rows] = {  # BSL (Zhang et al., 2021), Table 10: AFS, means over the three topics
    "Unigram-TFIDF on AFS": (46.77, 42.95),
    "GloVe avg. on AFS": (32.40, 34.00),
    "BERT avg. on AFS": (35.39, 35.07),
    "BERT-mlm on AFS": (47.04, 45.92),
    "IS-BERT on AFS": (49.14, 45.25),
    "InferSent on AFS": (27.08, 26.63),
    "SBERT on AFS": (16.27, 15.84),
    "BSL-BERT on AFS": (51.56, 50.47),
}

TABLES: Final = (
    PublishedTable("STS, Spearman, protocol `all` (Tables 1 and 4)", "sts", TABLE_1 | TABLE_4),
    PublishedTable("SentEval transfer, accuracy (Table 2)", "senteval", TABLE_2),
    PublishedTable("STS 2017, Spearman (Table 3)", "sts17-bsl", TABLE_3),
    PublishedTable("AFS, mean of three topics (Table 10)", "afs", TABLE_10, columns=("pearson", "spearman")),
)


def published_tables(
    systems: tuple[str, ...], scored: Collection[str], suites: Mapping[str, Collection[str]]
) -> dict[str, list[dict[str, str]]]:
    """Title → a row a system, of every table on one of the scored data sets that has one of the systems.

    Args:
        systems: as the paper's tables name them.
        scored: data sets of which the report has figures.
        suites: the suite of each of `TABLES` → its data sets, in the paper's order.

    Raises:
        ValueError: a system is in no table.
    """
    if unknown := [name for name in systems if not any(name in table.rows for table in TABLES)]:
        known = dict.fromkeys(name for table in TABLES for name in table.rows)
        raise ValueError(f"{', '.join(unknown)}: no published row is called so; there are {', '.join(known)}")
    tables: dict[str, list[dict[str, str]]] = {}
    for table in TABLES:
        columns, rows = table.columns or tuple(suites[table.suite]), [name for name in systems if name in table.rows]
        if rows and set(suites[table.suite]) & set(scored):
            tables[table.title] = [_row(columns, name, table.rows[name]) for name in rows]
    return tables


def _row(columns: tuple[str, ...], system: str, values: tuple[float | None, ...]) -> dict[str, str]:
    figures = ("–" if value is None else f"{value:.2f}" for value in values)
    return {"published system": system, **dict(zip(columns, figures, strict=True))}
