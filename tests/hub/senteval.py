"""SentEval's files as SimCSE's authors packed them: as many rows as the papers count, sentences of the sample."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import polars as pl

from storage.datasets.declaration import SENTEVAL
from storage.datasets.registry import DATASETS
from storage.readers.benchmarks.senteval import TRANSFER_SETS
from tests.hub.repositories import parquet, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.hub.server import StandInHub

_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
_FINE = {"ABBR": "exp", "DESC": "manner", "ENTY": "animal", "HUM": "ind", "LOC": "city", "NUM": "count"}


SENTEVAL_COMMIT = SENTEVAL.revision.ljust(40, "0")


def publish_senteval(hub: StandInHub, names: Iterable[str] = TRANSFER_SETS) -> None:
    """The archive, and the corpus of Wikipedia that lies beside it; MRPC by GLUE's tables."""
    publish_mrpc(hub)
    wiki = "\n".join(sentences()[:80]).encode()
    files = {SENTEVAL.file: packed(files_of(names)), "wiki1m_for_simcse.txt": wiki}
    hub.add("datasets", SENTEVAL.hub_id, files, SENTEVAL_COMMIT)


def publish_mrpc(hub: StandInHub) -> None:
    """GLUE's tables of MRPC: every tenth row of its training is set aside, all have their place in SentEval's file."""
    rows = {split: mrpc_rows(split) for split in DATASETS["mrpc"].rows}
    aside = pl.col("idx") % 10 == 9
    tables = {
        "train": rows["train"].filter(~aside).reverse(),
        "validation": rows["train"].filter(aside),
        "test": rows["test"],
    }
    files = {f"mrpc/{split}-00000-of-00001.parquet": parquet(table) for split, table in tables.items()}
    files |= {f"cola/{split}-00000-of-00001.parquet": parquet(rows["test"].head(1)) for split in tables}
    card = {"configs": [{"config_name": name, "data_files": [
        {"split": split, "path": f"{name}/{split}-*"} for split in tables
    ]} for name in ("cola", "mrpc")]}  # fmt: skip
    declared = DATASETS["mrpc"]
    hub.add("datasets", str(declared.hub_id), {"README.md": b"", **files}, declared.revision, card=card)


def mrpc_rows(split: str) -> pl.DataFrame:
    """The rows of a split of MRPC in the order of SentEval's file, as GLUE names their columns."""
    numbers = range(DATASETS["mrpc"].rows[split])
    sides = {f"sentence{side}": [_sentence(row + side - 1) for row in numbers] for side in (1, 2)}
    return pl.DataFrame({**sides, "label": [row % 2 for row in numbers], "idx": numbers})


def packed(files: Mapping[str, str]) -> bytes:
    """A tar file, as `tar cf senteval.tar .` makes it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            entry, content = tarfile.TarInfo(f"./{name}"), text.encode()
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def files_of(names: Iterable[str]) -> dict[str, str]:
    """Path in the archive → text, of transfer sets and of SICK's test."""
    files = {"SICK/SICK_test_annotated.txt": sick()}
    for name in names:
        declared = TRANSFER_SETS[name]
        for split, parts in declared.files.items():
            rows, shares = DATASETS[name].rows[split], len(parts)
            for number, (path, label) in enumerate(parts):
                lines = [
                    _line(name, row, label or declared.classes[row % len(declared.classes)])
                    for row in range(number, rows, shares)
                ]
                files[path] = "\n".join([_HEADER, *lines] if declared.header else lines) + "\n"
    return files


def sick() -> str:
    """SICK's test, by the columns of its distribution."""
    rows = [
        f"{row + 1}\t{_sentence(row)}\t{_sentence(7 * row + 1)}\t{1 + row % 41 / 10:.1f}\tNEUTRAL"
        for row in range(DATASETS["sickr"].rows["test"])
    ]
    return "\n".join(["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment", *rows]) + "\n"


def _line(name: str, row: int, label: str) -> str:
    """A row as the set's files spell it."""
    text = _sentence(row)
    return {
        "sst2": f"{text}\t{label}",
        "sst5": f"{label} {text}",
        "trec": f"{label}:{_FINE.get(label, '')} {text}",
        "mrpc": f"{label}\t{row}\t{row + 1}\t{text}\t{_sentence(row + 1)}",
    }.get(name, text)


def _sentence(number: int) -> str:
    """One of the sample with a word more, so that few are alike; no tab, no quote."""
    texts = sentences()
    return f"{texts[number % len(texts)]} {number // len(texts)}".replace("\t", " ").replace('"', "")
