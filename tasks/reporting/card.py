"""Model cards: a header for the Hub, a page of blocks, and the licences of the models and datasets behind an encoder.

huggingface_hub writes the header, in the Hub's fields and formats.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl
from yaml import YAMLError

from bsl.models.evaluation.signature import PRINTED
from bsl.models.evaluation.uses import GROUPING, RECIPROCAL_RANK
from bsl.storage.assets.catalog import embedded_manifest
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.datasets.registry import DATASETS, MODEL_LICENCES
from bsl.storage.record import Record
from bsl.tasks.rendering.blocks import Code, Part, Prose, Table
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.stage.progress import warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from huggingface_hub import EvalResult

    from bsl.storage.artifacts.refs import CheckpointRef
    from bsl.tasks.rendering.blocks import Page

CARD: Final = "model-card.md"
README: Final = "README.md"
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}|multilingual")
UNDECLARED: Final = "not declared here"
OWN: Final = "your own data"
"""Licence of the user's files, which does not decide that of the header."""
_PYTHON: Final = """from sentence_transformers import SentenceTransformer

encoder = SentenceTransformer("path/to/this/folder")
vectors = encoder.encode(["A man is playing a guitar.", "Someone plays music."])
print(encoder.similarity(vectors[:1], vectors[1:]))"""
_SEARCH: Final = 'bsl search path/to/this/folder sentences.txt "what to look for"'
_EVALUATE: Final = "bsl evaluate path/to/this/folder --suite sts"
_GRAPH: Final = (
    "If the folder contains the graph sentence-embedding.onnx: its inputs are input_ids and attention_mask of the "
    "tokenizer; its output sentence_embedding is already pooled."
)
_LICENCES: Final = (
    "This encoder is made from the materials below; their terms apply to its use. If a licence is `not declared here`, "
    "ask the owner of the material. `your own data` is the files that the encoder was adapted to."
)
_HUB_LICENCES: Final = {
    "Apache-2.0": "apache-2.0",
    "CC BY 4.0": "cc-by-4.0",
    "CC BY-NC 4.0": "cc-by-nc-4.0",
    "CC BY-NC-SA 3.0": "cc-by-nc-sa-3.0",
    "CC BY-SA 4.0": "cc-by-sa-4.0",
    "MIT": "mit",
}  # declared licence → its id on the Hub
_SEVERAL: Final = {"license": "other", "license_name": "see-its-list-of-licences", "license_link": README}
_FROZEN: Final = ("text-classification", "Classification of frozen vectors")
TASKS: Final = {
    "spearman": ("semantic-similarity", "Semantic Similarity", "spearman_cosine"),
    "pearson": ("semantic-similarity", "Semantic Similarity", "pearson_cosine"),
    "accuracy": (*_FROZEN, "accuracy"),
    GROUPING: (*_FROZEN, "accuracy"),
    "f1": (*_FROZEN, "f1"),
    RECIPROCAL_RANK: ("information-retrieval", "Information Retrieval", "cosine_mrr"),
}
"""Metric → task, its title and the metric's name on the Hub."""
_LICENCE_ID: Final = re.compile(r"[a-z][a-z0-9.-]*\d[a-z0-9.-]*|mit|openrail|gemma|unlicense|wtfpl")  # on the Hub
_DIGITS: Final = 4
_HUB_ID: Final = re.compile(r"(?!checkpoint/|report/|embeddings/)\w[\w.-]*/[\w.-]+")
_ARTIFACT: Final = re.compile(r"(checkpoint|report|embeddings)/[^/]+")


class Material(NamedTuple):
    """A model or dataset used to make an encoder: its role, name and licence."""

    role: str
    name: str
    licence: str


def use_section(*, search: bool = True) -> Part:
    """Return the section on how to open the encoder; `search`: whether an example searches with it."""
    commands = [_SEARCH, _EVALUATE] if search else [_EVALUATE]
    shell = Code("\n".join(commands), "sh")
    return Part("Use", [Code(_PYTHON, "python"), Prose("With bsl-pipeline installed:"), shell, Prose(_GRAPH)])


def card(
    page: Page,
    materials: Sequence[Material],
    base: str | None,
    checkpoint: CheckpointRef | None = None,
    *,
    languages: Sequence[str] = (),
    datasets: Sequence[str] = (),
    results: Sequence[EvalResult] = (),
    tags: Sequence[str] = (),
) -> str:
    """Return a card as Markdown, with a header for the Hub.

    The page's title is the encoder's name; `base` and `datasets` are Hub ids, `languages` ISO 639 codes; `results` are
    of `results_of`. An encoder that is not in a store has no checkpoint.
    """
    from huggingface_hub import ModelCardData  # slow import, needed only to write a card

    fields: dict[str, Any] = {
        "language": [*languages] or None,
        **_licence_fields({material.licence for material in materials}),
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", *tags],
        "datasets": [*datasets] or None,
    }
    if base:
        fields |= {"base_model": base, "base_model_relation": "finetune"}
    if results:
        fields |= {"model_name": page.title, "eval_results": [*results]}
    table = Table.of("Materials", [material._asdict() for material in materials])
    complete = replace(page, parts=[*page.parts, Part("Licences", [Prose(_LICENCES), table])])
    origin = f"\nMade by bsl-pipeline, checkpoint `{checkpoint.key}`.\n" if checkpoint else ""
    return f"---\n{ModelCardData(**fields).to_yaml()}\n---\n\n{markdown(complete)}{origin}"


def results_of(scores: pl.DataFrame, system: str, dev: str | None = None) -> list[EvalResult]:
    """Return a system's printed figures under Hub dataset ids, except those on `dev`, which selected the encoder.

    A figure whose metric is not one of `TASKS` is on the card's page only.
    """
    rows = scores.filter(PRINTED).filter(pl.col("metric").is_in(list(TASKS)), model=system).iter_rows(named=True)
    dev = (dev or "").removeprefix(EMBEDDED)
    return [_result(row) for row in rows if f"{row['dataset']}/{row['split']}" != dev and math.isfinite(row["value"])]


def _result(row: dict[str, Any]) -> EvalResult:
    from huggingface_hub import EvalResult

    known = DATASETS.get(row["dataset"])
    task, task_name, metric = TASKS[row["metric"]]
    low, high, interval = row["ci_low"], row["ci_high"], ""
    if low is not None and high is not None:
        interval = f", 95 % interval {low:.{_DIGITS}f} to {high:.{_DIGITS}f}"
    return EvalResult(
        task_type=task,
        task_name=task_name,
        dataset_type=(known and known.hub_id) or row["dataset"],
        dataset_name=f"{row['dataset']} {row['split']}",
        dataset_config=known.hub_config if known else None,
        dataset_split=row["split"],
        dataset_revision=known.revision if known else None,
        metric_type=metric,
        metric_value=round(row["value"], _DIGITS),
        metric_name=f"{row['metric']}, {row['protocol']}{interval}",
    )


def _licence_fields(names: set[str]) -> dict[str, str]:
    """Return the licence that all materials but the user's files share, else a reference to the card's list."""
    known = {_HUB_LICENCES.get(name, name if _LICENCE_ID.fullmatch(name) else "") for name in names - {OWN}}
    return {"license": known.pop()} if len(known) == 1 and all(known) else dict(_SEVERAL)


def hub_id(model: str) -> str | None:
    """Return a model's id on the Hub; None for an embedded model, an artifact or a folder."""
    return model if _HUB_ID.fullmatch(model) and not Path(model).exists() else None


def model_name(model: str) -> str:
    """Return a model's name for a card, which is published: of a path only the last part, else the whole name."""
    if model.startswith(EMBEDDED) or _ARTIFACT.fullmatch(model) or hub_id(model):
        return model
    return model.rstrip("/").rpartition("/")[2] or model


def data_set(scored: str) -> str:
    """Return the dataset of a scored set, without its split."""
    return scored.rpartition("/")[0] or scored


def data_licence(dataset: str | None) -> str:
    """Return the licence of an embedded or declared dataset."""
    if dataset and dataset.startswith(EMBEDDED):
        return embedded_manifest(dataset.removeprefix(EMBEDDED)).licence
    return DATASETS[dataset].licence if dataset in DATASETS else UNDECLARED


def model_material(role: str, model: str, declared: str | None = None) -> Material:
    """Return a model as material, with its licence if known; `declared` is that of its own card."""
    if model.startswith(EMBEDDED):
        return Material(role, model, embedded_manifest(model.removeprefix(EMBEDDED)).licence)
    return Material(role, model_name(model), declared or MODEL_LICENCES.get(model, UNDECLARED))


class BaseCard(Record):
    """The header of a card, as far as cards of encoders made from it repeat it."""

    licence: str | None = None
    """Id of a licence on the Hub, such as `apache-2.0`, or the name of another; None if the card states none."""
    languages: tuple[str, ...] = ()
    """ISO 639 codes, or `multilingual`."""
    base: str | None = None
    """Hub id of the model that the encoder was made from."""


NO_CARD: Final = BaseCard()


def base_card(folder: Path) -> BaseCard:
    """Read the card in an encoder's folder; an empty record if there is none, or if its header cannot be read."""
    if not (folder / README).is_file():
        return NO_CARD
    from huggingface_hub.repocard import metadata_load  # slow import

    try:
        header = metadata_load(folder / README)
    except (ValueError, OSError, YAMLError) as error:
        warn("%s: its header cannot be read (%.100s). The new card repeats nothing of it.", folder / README, error)
        return NO_CARD
    header = header if isinstance(header, dict) else {}
    licence = next(iter(_strings(header.get("license"))), None)
    if licence in ("other", "unknown"):
        licence = next(iter(_strings(header.get("license_name"))), None)
    languages = tuple(code for code in _strings(header.get("language")) if _LANGUAGE.fullmatch(code))
    return BaseCard(licence=licence, languages=languages, base=next(iter(_strings(header.get("base_model"))), None))


def _strings(value: object) -> list[str]:
    """Return one string or a list of strings as a list; YAML reads the code `no` as false."""
    values = value if isinstance(value, list) else [value]
    return ["no" if one is False else one for one in values if isinstance(one, str) or one is False]
