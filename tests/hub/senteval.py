"""SentEval's files as packed by SimCSE's authors: the papers' number of rows, sentences of the package's sample.

MRPC and SST-5 are published as the Hub has them: GLUE's tables, SetFit's JSON lines.
"""

import io
import json
import tarfile

import polars as pl

from bsl.storage.datasets.declaration import SENTEVAL
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.readers.benchmarks.senteval import TRANSFER_SETS
from tests.hub.repositories import parquet, sentences

_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
_FINE = {"ABBR": "exp", "DESC": "manner", "ENTY": "animal", "HUM": "ind", "LOC": "city", "NUM": "count"}


def publish_senteval(hub, names=TRANSFER_SETS):
    """Add the archive and the Wikipedia corpus of the same repository; add MRPC and SST-5 in their own repositories."""
    publish_mrpc(hub)
    publish_sst5(hub)
    wiki = "\n".join(sentences()[:80]).encode()
    files = {SENTEVAL.file: packed(files_of(names)), "wiki1m_for_simcse.txt": wiki}
    hub.add("datasets", SENTEVAL.hub_id, files, SENTEVAL.revision)


def publish_mrpc(hub):
    """Add GLUE's tables of MRPC: a tenth of the training is its validation; `idx` is the row in SentEval's file."""
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


def publish_sst5(hub):
    """Add SetFit's JSON lines of SST-5; `dev.jsonl` is the split that `datasets` calls `validation`."""
    declared, words = DATASETS["sst5"], ("very negative", "negative", "neutral", "positive", "very positive")
    files = {"README.md": b""}
    for path, text in files_of(["sst5"]).items():
        rows = [line.split(" ", 1) for line in text.splitlines() if path.startswith("SST/fine/")]
        lines = [json.dumps({"text": text, "label": int(n), "label_text": words[int(n)]}) + "\n" for n, text in rows]
        files |= {f"{path.rpartition('-')[2]}.jsonl": "".join(lines).encode()} if lines else {}
    hub.add("datasets", str(declared.hub_id), files, declared.revision)


def mrpc_rows(split):
    """Return a split of MRPC in the order of SentEval's file, with GLUE's column names."""
    numbers = range(DATASETS["mrpc"].rows[split])
    sides = {f"sentence{side}": [_sentence(row + side - 1) for row in numbers] for side in (1, 2)}
    return pl.DataFrame({**sides, "label": [row % 2 for row in numbers], "idx": numbers})


def packed(files, mode="w", root="./"):
    """Return a tar file like that of `tar cf senteval.tar .`; None instead of a text makes a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, text in files.items():
            entry, content = tarfile.TarInfo(f"{root}{name}"), (text or "").encode()
            entry.size, entry.type = len(content), tarfile.DIRTYPE if text is None else tarfile.REGTYPE
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def files_of(names):
    """Return texts by path in the archive, of transfer sets and of SICK's test."""
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


def sick():
    """Return SICK's test with the columns of its distribution."""
    rows = [
        f"{row + 1}\t{_sentence(row)}\t{_sentence(7 * row + 1)}\t{1 + row % 41 / 10:.1f}\tNEUTRAL"
        for row in range(DATASETS["sickr"].rows["test"])
    ]
    return "\n".join(["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment", *rows]) + "\n"


def _line(name, row, label):
    """Return a row in the format of the set's files."""
    text = _sentence(row)
    return {
        "sst2": f"{text}\t{label}",
        "sst5": f"{label} {text}",
        "trec": f"{label}:{_FINE.get(label, '')} {text}",
        "mrpc": f"{label}\t{row}\t{row + 1}\t{text}\t{_sentence(row + 1)}",
    }.get(name, text)


def _sentence(number):
    """Return a sentence of the sample plus a number, so that few are equal; without tabs and quotes."""
    texts = sentences()
    return f"{texts[number % len(texts)]} {number // len(texts)}".replace("\t", " ").replace('"', "")
