"""A classifier in a store, made by the stages of `bsl adapt` without training an encoder."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from bsl.models.corpus.passages import HoldOutConfig
from bsl.models.encoder.config import EncoderConfig
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ENCODER, CheckpointRef, ClassifierRef, EmbeddingsRef, ReportRef
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.filesystem.names import MANIFEST
from bsl.storage.sources.labels import label_source
from bsl.storage.sources.own_text import text_sources
from bsl.storage.sources.reading_config import ReadingConfig
from bsl.tasks.corpus.passages import read_passages
from bsl.tasks.embedding.embed import embed
from bsl.tasks.evaluation.own_text import HeldOutSet
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.training.classifier import train_classifier
from tests.corpora import publish

if TYPE_CHECKING:
    from pathlib import Path

    from bsl.models.corpus.labels import Use

TOPICS = {
    "delivery": "My {thing} number {n} was sent by post and came {n} days late.",
    "refund": "I paid {n} dollars too much for the {thing}, please return the money.",
    "account": "The password for my {thing} login does not work since day {n}.",
}
THINGS = ("lamp", "book", "chair", "phone", "bag")


class Classified(NamedTuple):
    site: RunContext
    path: Path
    held_out: HeldOutSet
    vectors: EmbeddingsRef
    exported: CheckpointRef
    classifier: ClassifierRef
    report: ReportRef


def texts_of(first: int, count: int) -> pl.DataFrame:
    rows = [
        (n, text.format(thing=THINGS[n % len(THINGS)], n=n), topic)
        for n in range(first, first + count)
        for topic, text in [list(TOPICS.items())[n % len(TOPICS)]]
    ]
    return pl.DataFrame(rows, schema=["id", "body", "queue"], orient="row")


def classified(folder: Path, use: Use = "adapt", *, adapted: bool = True) -> Classified:
    site, path = RunContext(store=str(folder / "store"), device="cpu", threads=1), folder / "tickets.csv"
    rows = texts_of(0, 120)
    wrong = pl.when(pl.col("id") % 20 == 0).then(pl.lit("refund")).otherwise("queue")
    rows.with_columns(queue=wrong).write_csv(path)
    (folder / "text.txt").write_text("".join(f"Some line of number {n} about the weather.\n" for n in range(120)))
    passages = read_passages(site, text_sources(ReadingConfig(), [str(folder / "text.txt")]), HoldOutConfig())
    labels = label_source(f"{path}#label=queue&text=body")
    held_out = HeldOutSet(passages=passages, labels=labels, use=use, questions=20, store=site.store)
    exported = _exported(site, adapted=adapted)
    vectors = embed(site, exported, (held_out,), EncoderConfig(model="embedded:mini-sentence"), "fp32")
    classifier = train_classifier(site, (vectors, vectors), exported, held_out)
    return Classified(site, path, held_out, vectors, exported, classifier, _report(site, classifier))


def _exported(site: RunContext, *, adapted: bool) -> CheckpointRef:
    ref = CheckpointRef(key=f"{1:064x}")
    with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
        ignored = shutil.ignore_patterns(MANIFEST)
        shutil.copytree(embedded_path("mini-sentence"), draft.folder / ENCODER, ignore=ignored)
        draft.note({"adapted": adapted})
    return ref


def _report(site: RunContext, classifier: ClassifierRef) -> ReportRef:
    return publish(site.open_store(), ReportRef(key="2" * 64), inputs={"classifier": classifier}, page="A report.")
