"""Figures that papers print, for the report to stand beside: Spearman × 100.

Sets in the paper's order: STS12 … STS16, STS-B, SICK-R. Dev selection uses STS-B dev, which shares sources with
STS12-16, so "unsupervised" here means: no labels but those of the dev set's ranking.
"""

from typing import Final

Rows = dict[str, tuple[float, ...]]

SETS: Final = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")

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

TRACKS: Final = tuple(
    f"sts17-{pair}" for pair in ("en-en", "es-es", "ar-ar", "en-ar", "en-de", "en-tr", "es-en", "fr-en")
)
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


def published_rows(systems: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """System → data set → figure, in the paper's order."""
    english = TABLE_1 | TABLE_4
    return {
        name: dict(
            zip(SETS, english[name], strict=True) if name in english else zip(TRACKS, TABLE_3[name], strict=True)
        )
        for name in systems
    }
