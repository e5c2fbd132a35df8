"""Figures as MTEB writes them: one JSON object a task, in the layout of its `TaskResult` (since 1.11).

Only tasks whose pairs are MTEB's own are written: its SICK-R has 9,927 pairs where the papers have 4,927, and its SMT-
free STS13, yearly sets, STS benchmark and STS 2017 tracks are the same as here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

_LANGUAGES: Final = {
    "ar": "ara-Arab", "de": "deu-Latn", "en": "eng-Latn", "es": "spa-Latn", "fr": "fra-Latn", "it": "ita-Latn",
    "ko": "kor-Hang", "nl": "nld-Latn", "tr": "tur-Latn",
}  # fmt: skip
_TRACK: Final = "sts17-"
_TASKS: Final = {
    "sts12": "STS12", "sts13": "STS13", "sts14": "STS14", "sts15": "STS15", "sts16": "STS16", "stsb": "STSBenchmark",
}  # fmt: skip


def task_results(scores: pl.DataFrame, revisions: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """MTEB task name → its result object, for one system's test figures.

    Args:
        scores: the figures of one system.
        revisions: data set → commit of the set that MTEB reads.
    """
    whole = scores.filter((pl.col("subset") == "all") & (pl.col("protocol") == "all") & (pl.col("split") == "test"))
    results: dict[str, dict[str, Any]] = {}
    for (dataset,), figures in whole.group_by("dataset", maintain_order=True):
        name, track = str(dataset), str(dataset).removeprefix(_TRACK)
        if name not in _TASKS and not name.startswith(_TRACK):
            continue
        task = _TASKS.get(name, "STS17")
        subset, languages = ("default", ["en"]) if name in _TASKS else (track, list(dict.fromkeys(track.split("-"))))
        empty: dict[str, Any] = {
            "dataset_revision": revisions[name],
            "evaluation_time": None,
            "kg_co2_emissions": None,
            "mteb_version": None,  # not computed by MTEB
            "scores": {"test": []},
            "task_name": task,
        }
        results.setdefault(task, empty)["scores"]["test"].append(_entry(figures, subset, languages))
    return results


def _entry(figures: pl.DataFrame, subset: str, languages: list[str]) -> dict[str, Any]:
    value = dict(zip(figures["metric"], figures["value"], strict=True))
    return {
        "hf_subset": subset,
        "languages": [_LANGUAGES[language] for language in languages],
        "main_score": value["spearman"],
        "spearman": value["spearman"],
        "pearson": value["pearson"],
        "cosine_spearman": value["spearman"],
        "cosine_pearson": value["pearson"],
    }
