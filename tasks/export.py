"""Figures of the store in the forms that others read: MTEB's result files, Markdown and LaTeX tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import polars as pl

from models.report.mteb import task_results
from models.report.page import markdown_table
from models.report.tables import as_latex, paper_tables
from storage.declarations import DATASETS
from storage.errors import StoreWriteError
from storage.refs import ArtifactRef
from storage.store import Store


def export_figures(store: Store, ref: ArtifactRef, target: Path, form: str) -> Path:
    """Write the figures of an artifact that has some: scores, an evaluation or a report.

    Args:
        store: where it is.
        ref: the artifact.
        target: a new folder for `mteb`, a new file for the others.
        form: a key of `FORMS`.

    Raises:
        StoreWriteError: the target is there already; nothing is overwritten.
        ArtifactMissingError: the artifact has no figures.
    """
    if target.exists():
        raise StoreWriteError(f"{target} exists already; name a new file or folder")
    scores = store.scan(ref, "scores").collect()
    target.parent.mkdir(parents=True, exist_ok=True)
    FORMS[form](scores, target)
    return target


def _mteb(scores: pl.DataFrame, target: Path) -> None:
    """`<system>/<task>.json`, as in a folder of MTEB results."""
    revisions = {name: declared.revision or "" for name, declared in DATASETS.items()}
    for (model,), figures in scores.group_by("model", maintain_order=True):
        folder = target / str(model).replace("/", "__")
        folder.mkdir(parents=True)
        for task, result in task_results(figures, revisions).items():
            (folder / f"{task}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def _markdown(scores: pl.DataFrame, target: Path) -> None:
    parts = [f"## {title}\n\n{markdown_table(rows)}\n" for title, rows in paper_tables(scores)]
    target.write_text("\n".join(parts), encoding="utf-8")


def _latex(scores: pl.DataFrame, target: Path) -> None:
    parts = [as_latex(title, rows) for title, rows in paper_tables(scores)]
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


FORMS: Final[dict[str, Callable[[pl.DataFrame, Path], None]]] = {"mteb": _mteb, "markdown": _markdown, "latex": _latex}
