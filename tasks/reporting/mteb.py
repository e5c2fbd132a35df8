"""Figures as MTEB writes them: one JSON object a task, in the layout of its `TaskResult` (since 1.11).

Only sets that declare MTEB's task are written: those whose pairs are MTEB's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

_LANGUAGES: Final = {
    "ar": "ara-Arab", "de": "deu-Latn", "en": "eng-Latn", "es": "spa-Latn", "fr": "fra-Latn", "it": "ita-Latn",
    "ko": "kor-Hang", "nl": "nld-Latn", "tr": "tur-Latn",
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """What MTEB calls a data set.

    Attributes:
        name: of the task.
        subset: `default` for English, or the subset's languages, such as `es-en`.
        revision: commit of the set that MTEB reads.
    """

    name: str
    subset: str
    revision: str


def task_results(scores: pl.DataFrame, tasks: Mapping[str, Task]) -> dict[str, dict[str, Any]]:
    """MTEB task name → its result object, for one system's test figures.

    Args:
        scores: the figures of one system.
        tasks: data set → its task; figures of other sets are left out.
    """
    whole = scores.filter((pl.col("subset") == "all") & (pl.col("protocol") == "all") & (pl.col("split") == "test"))
    results: dict[str, dict[str, Any]] = {}
    for (dataset,), figures in whole.group_by("dataset", maintain_order=True):
        if (task := tasks.get(str(dataset))) is None:
            continue
        empty: dict[str, Any] = {
            "dataset_revision": task.revision,
            "evaluation_time": None,
            "kg_co2_emissions": None,
            "mteb_version": None,  # not computed by MTEB
            "scores": {"test": []},
            "task_name": task.name,
        }
        results.setdefault(task.name, empty)["scores"]["test"].append(_entry(figures, task.subset))
    return results


def _entry(figures: pl.DataFrame, subset: str) -> dict[str, Any]:
    languages = ["en"] if subset == "default" else list(dict.fromkeys(subset.split("-")))
    value = dict(zip(figures["metric"], figures["value"], strict=True))
    signatures = dict(zip(figures["metric"], figures["signature"], strict=True))
    return {
        "hf_subset": subset,
        "languages": [_LANGUAGES[language] for language in languages],
        "main_score": value["spearman"],
        "spearman": value["spearman"],
        "pearson": value["pearson"],
        "cosine_spearman": value["spearman"],
        "cosine_pearson": value["pearson"],
        "signature": signatures["spearman"],
    }
