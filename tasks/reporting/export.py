"""Export artifacts: scores as MTEB results, Markdown or LaTeX; a checkpoint with its card and ONNX graph."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bsl.storage.artifacts.garbage_collection import readable_manifests
from bsl.storage.artifacts.refs import ENCODER, ClassifierRef
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import ArtifactMissingError, StoreWriteError
from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.model_folder import CLASSIFIER, CLASSIFIER_SETTINGS
from bsl.storage.filesystem.os_errors import explain_full_disk
from bsl.tasks.evaluation.kinds import tables
from bsl.tasks.rendering.escaping import code, plain
from bsl.tasks.rendering.markdown import markdown_table
from bsl.tasks.rendering.paper_tables import as_latex, paper_tables
from bsl.tasks.rendering.score_tables import INTERVALS, score_rows, signature_rows
from bsl.tasks.reporting.card import CARD
from bsl.tasks.reporting.model_card import folded_card

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import polars as pl

    from bsl.storage.artifacts.manifest import Manifest
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store

GRAPH = "sentence-embedding.onnx"
_NAME_BYTES: Final = 200  # file systems allow 255; `atomic_write` and other tools add to names
_TRAINED, _FOLDED = "checkpoints.", "folded."  # inputs of a report, numbered
_LANGUAGES: Final = {
    "ar": "ara-Arab", "de": "deu-Latn", "en": "eng-Latn", "es": "spa-Latn", "fr": "fra-Latn", "it": "ita-Latn",
    "ko": "kor-Hang", "nl": "nld-Latn", "tr": "tur-Latn",
}  # fmt: skip


def export_figures(store: Store, ref: ArtifactRef, target: Path, form: str) -> Path:
    """Write the figures of an artifact with scores: scores, an evaluation or a report; completely or not at all.

    The form is a key of `FORMS`; the target is a new folder for `mteb`, a new text file for the others.

    Raises:
        StoreWriteError: the target exists, or its name is that of an archive.
        ArtifactMissingError: the artifact has no figures, or none that the format can have.
    """
    if target.suffix == ".zip":
        raise StoreWriteError(f"{target}: --as {form} writes no archive. Remove .zip from the name.")
    if target.exists():
        raise StoreWriteError(f"{target}: already exists. Name a new file or folder.")
    manifest = store.manifest(ref)
    if "scores" not in manifest.tables:
        raise ArtifactMissingError(
            f"{ref}: has no table of scores for --as {form} (expected an evaluation, scores, or the report of a run). "
            "Without --as the artifact is copied whole, of a report also the page as Markdown."
        )
    scores, found = store.scan(ref, "scores").collect(), manifest.figures.get("notes")
    notes = [str(note) for note in found] if isinstance(found, list) else []
    with explain_full_disk(target), atomic_write(target) as path:
        FORMS[form](scores, notes, path)
    return target


def _mteb(scores: pl.DataFrame, _notes: Sequence[str], target: Path) -> None:
    """Write `<system>/<task>.json`, as in a folder of MTEB results.

    Raises:
        ArtifactMissingError: no set is a task of MTEB.
    """
    systems = {str(model): task_results(figures) for (model,), figures in scores.group_by("model", maintain_order=True)}
    if not any(systems.values()):
        names = ", ".join(scores["dataset"].unique(maintain_order=True))
        raise ArtifactMissingError(f"--as mteb: no set is a task of MTEB (found {names}). Use --as markdown or latex.")
    for model, name in folder_names(systems).items():
        folder = target / name
        folder.mkdir(parents=True)
        for task, result in systems[model].items():
            (folder / f"{task}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def folder_names(systems: Iterable[str]) -> dict[str, str]:
    """Return system → name of its folder, as MTEB forms it; with a digest if it is too long or another's too.

    Names are compared as file systems do that ignore case and the form of accents.
    """
    plain = {system: (system.strip(".") or "system").replace("/", "__").replace("\0", "_") for system in systems}
    count = Counter(_on_any_disk(name) for name in plain.values())
    return {
        system: name
        if count[_on_any_disk(name)] == 1 and len(name.encode()) <= _NAME_BYTES
        else f"{_cut(name)}-{hashlib.sha256(system.encode()).hexdigest()[:12]}"
        for system, name in plain.items()
    }


def _on_any_disk(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _cut(name: str) -> str:
    return name.encode()[: _NAME_BYTES - 13].decode(errors="ignore")


def _markdown(scores: pl.DataFrame, notes: Sequence[str], target: Path) -> None:
    parts = []
    for title, rows, signatures in _tables(scores):
        listed = "\n".join(f"- {code(signature)}" for signature in signatures)
        parts.append(f"## {plain(title)}\n\n{markdown_table(rows)}\n\n{listed}\n")
    target.write_text("\n".join([*parts, *(f"{plain(note)}\n" for note in notes)]), encoding="utf-8")


def _latex(scores: pl.DataFrame, notes: Sequence[str], target: Path) -> None:
    parts = [as_latex(title, rows, [*signatures, *notes]) for title, rows, signatures in _tables(scores)]
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _tables(scores: pl.DataFrame) -> Iterator[tuple[str, list[dict[str, str]], list[str]]]:
    """Yield title, rows and signatures of the papers' tables, then of all figures, as `bsl evaluate` prints them."""
    yield from paper_tables(scores, tables())
    yield INTERVALS, score_rows(scores), [": ".join(row.values()) for row in signature_rows(scores)]


FORMS: Final[dict[str, Callable[[pl.DataFrame, Sequence[str], Path], None]]] = {
    "mteb": _mteb, "markdown": _markdown, "latex": _latex,
}  # fmt: skip
"""Form → a function that writes scores, and notes about them, to a path."""


@contextlib.contextmanager
def additions(store: Store, ref: ArtifactRef, *, onnx: bool) -> Iterator[Path | None]:
    """Yield a temporary folder of files to add to a checkpoint's copy: card, classifier, ONNX graph; else None.

    Raises:
        ArtifactMissingError: `onnx` for an artifact that is not a checkpoint.
        EncoderError: the encoder cannot be exported as a graph, or the packages for it are not installed.
    """
    if ref.kind != "checkpoint":
        if onnx:
            raise ArtifactMissingError(f"{ref}: --onnx needs a checkpoint (found {ref.kind}). Name checkpoint/<key>.")
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="bsl-export-") as name:
        folder = Path(name)
        (folder / ENCODER).mkdir()
        if (card := newest_card(store, ref)) is not None:
            shutil.copyfile(card, folder / ENCODER / "README.md")
        copy_classifier(store, ref, folder / ENCODER)
        if onnx:
            from bsl.models.encoder.sentence_encoder import SentenceEncoder
            from bsl.models.serving.onnx_export import export_onnx

            export_onnx(SentenceEncoder.load(store.fetch(ref) / ENCODER).network, folder / ENCODER / GRAPH)
        yield folder


def copy_classifier(store: Store, checkpoint: ArtifactRef, folder: Path) -> None:
    """Copy the newest classifier on a checkpoint's vectors, if there is one, to an encoder's folder."""
    from bsl.models.serving.classifier import WEIGHTS  # torch

    if (ref := classifier_on(store, checkpoint)) is not None:
        (folder / CLASSIFIER).mkdir()
        for name in (CLASSIFIER_SETTINGS, WEIGHTS):
            shutil.copyfile(store.fetch(ref) / name, folder / CLASSIFIER / name)


def classifier_on(store: Store, checkpoint: ArtifactRef) -> ClassifierRef | None:
    """Return the newest intact classifier on the vectors of a checkpoint; None without one."""
    found = _newest(store, "classifier", lambda one: one.provenance.inputs["exported"].key == checkpoint.key)
    return ClassifierRef(key=found.key) if found else None


def newest_card(store: Store, ref: ArtifactRef) -> Path | None:
    """Return the model card in the newest intact report on a checkpoint; None without one."""
    found = _newest(store, "report", lambda one: _cards(one).get(ref.key) in one.files)
    return store.fetch(found.ref) / _cards(found)[ref.key] if found else None


def _newest(store: Store, kind: str, matches: Callable[[Manifest], bool]) -> Manifest | None:
    """Return the newest intact artifact of a kind that matches; an input made again with other content is a defect."""
    made = sorted(filter(matches, readable_manifests(store, kind)), key=lambda one: one.created_at, reverse=True)
    return next((manifest for manifest in made if store.defect(manifest.ref) is None), None)


def _cards(manifest: Manifest) -> dict[str, str]:
    """Return key → card file of a report's encoders: the last trained, the adapted, those with a folded transform."""
    inputs = manifest.provenance.inputs
    trained = sorted(
        (name for name in inputs if name.startswith(_TRAINED)), key=lambda name: int(name[len(_TRAINED) :])
    )
    cards = {inputs[name].key: CARD for name in (*trained[-1:], *({"adapted"} & set(inputs)))}
    numbers = (name[len(_FOLDED) :] for name in inputs if name.startswith(_FOLDED))
    return cards | {inputs[f"{_FOLDED}{number}"].key: folded_card(int(number)) for number in numbers}


def task_results(scores: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Return MTEB task name → its result object, in the layout of MTEB's `TaskResult` (since 1.11), for one system.

    Only datasets that declare an MTEB task are included, because their pairs are those of MTEB.
    """
    undivided = scores.filter(subset="all", protocol="all", split="test")
    results: dict[str, dict[str, Any]] = {}
    for (dataset,), figures in undivided.group_by("dataset", maintain_order=True):
        declared = DATASETS.get(str(dataset))
        if declared is None or not declared.mteb:
            continue
        empty: dict[str, Any] = {
            "dataset_revision": declared.revision or "",
            "evaluation_time": None,
            "kg_co2_emissions": None,
            "mteb_version": None,  # not computed by MTEB
            "scores": {"test": []},
            "task_name": declared.mteb,
        }
        results.setdefault(declared.mteb, empty)["scores"]["test"].append(_entry(figures, declared.mteb_subset))
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
