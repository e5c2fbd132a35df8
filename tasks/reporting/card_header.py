"""The header that model hubs read of a model card: what the encoder is made from, its licence, and its figures.

huggingface_hub writes it, so what it says is in the fields and forms that the Hub knows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

HUB_LICENCES: Final = {
    "Apache-2.0": "apache-2.0",
    "CC BY 4.0": "cc-by-4.0",
    "CC BY-NC 4.0": "cc-by-nc-4.0",
    "CC BY-NC-SA 3.0": "cc-by-nc-sa-3.0",
    "CC BY-SA 4.0": "cc-by-sa-4.0",
    "MIT": "mit",
}
"""Licence as it is declared here → as the Hub calls it."""
_SEVERAL: Final = {"license": "other", "license_name": "see-its-list-of-licences", "license_link": "README.md"}
_TASKS: Final = {
    "spearman": ("semantic-similarity", "Semantic Similarity", "spearman_cosine"),
    "pearson": ("semantic-similarity", "Semantic Similarity", "pearson_cosine"),
    "accuracy": ("text-classification", "Classification of frozen vectors", "accuracy"),
}
_OTHERWISE: Final = ("sentence-similarity", "Sentence Similarity")
_DIGITS: Final = 4


@dataclass(frozen=True)
class Measured:
    """A figure of the encoder, as a fraction.

    Attributes:
        dataset: the set as it is called here.
        hub_id: where the Hub has it; the name here where it has not.
        config: the Hub's configuration; None for the only one.
        revision: the Hub's commit; None where none is known.
        split: of the set.
        metric: such as `spearman`.
        protocol: such as `all`.
        value: the figure.
        low: lower end of its 95 % interval; None without one.
        high: upper end.
    """

    dataset: str
    hub_id: str
    config: str | None
    revision: str | None
    split: str
    metric: str
    protocol: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Header:
    """What the header is made of.

    Attributes:
        name: what the encoder is called.
        base: Hub id of what training started from; None where that is not on the Hub.
        datasets: Hub ids of what it learnt from.
        languages: ISO 639 codes of its sentences.
        licences: of all that went in, as they are declared.
        figures: measured on sets that chose nothing.
        tags: beside those of every sentence encoder.
    """

    name: str
    base: str | None
    datasets: Sequence[str]
    languages: Sequence[str]
    licences: Sequence[str]
    figures: Sequence[Measured]
    tags: Sequence[str] = ()


def front_matter(header: Header) -> str:
    """The header with its fences, as YAML."""
    from huggingface_hub import ModelCardData  # takes its time, and only a stage that writes needs it

    fields: dict[str, Any] = {
        "language": [*header.languages] or None,
        **licence_fields(header.licences),
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", *header.tags],
        "datasets": [*header.datasets] or None,
    }
    if header.base:
        fields |= {"base_model": header.base, "base_model_relation": "finetune"}
    results = [_result(figure) for figure in header.figures if math.isfinite(figure.value)]
    if results:
        fields |= {"model_name": header.name, "eval_results": results}
    return f"---\n{ModelCardData(**fields).to_yaml()}\n---"


def licence_fields(licences: Sequence[str]) -> dict[str, str]:
    """One licence where all that went in has that one, else where to read of them."""
    names = set(licences)
    if len(names) == 1 and (name := HUB_LICENCES.get(names.pop())):
        return {"license": name}
    return dict(_SEVERAL)


def _result(figure: Measured) -> Any:  # noqa: ANN401 - huggingface_hub's EvalResult, which is imported late
    from huggingface_hub import EvalResult

    task, task_name, metric = _TASKS.get(figure.metric, (*_OTHERWISE, figure.metric))
    interval = ""
    if figure.low is not None and figure.high is not None:
        interval = f", 95 % interval {figure.low:.{_DIGITS}f} to {figure.high:.{_DIGITS}f}"
    return EvalResult(
        task_type=task,
        task_name=task_name,
        dataset_type=figure.hub_id,
        dataset_name=f"{figure.dataset} {figure.split}",
        dataset_config=figure.config,
        dataset_split=figure.split,
        dataset_revision=figure.revision,
        metric_type=metric,
        metric_value=round(figure.value, _DIGITS),
        metric_name=f"{figure.metric}, {figure.protocol}{interval}",
    )
