"""Labels of the user's own text, and the sentences that they keep out of training."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from bsl.models.corpus.normalize import split_sentences
from bsl.models.corpus.passages import HoldOutConfig, passages
from bsl.models.errors import EmptyCorpusError, EvaluationError
from bsl.models.evaluation.labels import labelled_of
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import CorpusRef, PassagesRef
from bsl.storage.artifacts.schemas import PASSAGES
from bsl.storage.sources.labels import LabelSource, label_source
from bsl.storage.sources.own_text import ReadingConfig
from bsl.tasks.corpus.labels import counts_line, evaluation_counts, labelled_rows
from bsl.tasks.corpus.passages import read_passages, training_corpus
from bsl.tasks.evaluation.own_text import HeldOutSet, check_enough
from bsl.tasks.figures import LabelCounts
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.views.pairs import pair_own_labels

if TYPE_CHECKING:
    from pathlib import Path

    from bsl.models.corpus.labels import Use

TEXTS = [f"The boat of captain number {n} came late again." for n in range(400)]


def _file(tmp_path: Path, texts: list[str]) -> LabelSource:
    rows = pl.DataFrame({"text": texts, "label": [("bad", "good")[n % 2] for n in range(len(texts))]})
    rows.write_csv(tmp_path / "labels.csv")
    return label_source(str(tmp_path / "labels.csv"))


def _parts(texts: list[str], held: int) -> pl.DataFrame:
    """Return documents of one sentence; the first `held` are held out."""
    table = passages(pl.DataFrame({"text": texts}).with_row_index("document").with_columns(
        title=pl.lit(None, pl.String), continues=pl.lit(value=False), source=pl.lit("own"), lang=pl.lit("en")
    ), HoldOutConfig())  # fmt: skip
    number = pl.int_range(pl.len(), dtype=pl.UInt32)
    part = pl.when(number >= held).then(pl.lit("train")).otherwise(pl.lit("report"))
    return table.with_columns(unit=number, part=part)


def _published(site: RunContext, parts: pl.DataFrame) -> PassagesRef:
    ref = PassagesRef(key=f"{1:064x}")
    with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(parts.select(PASSAGES.names()).cast(PASSAGES))
    return ref


def _learnt(site: RunContext, passages: PassagesRef, labels: LabelSource, *, use: Use) -> CorpusRef:
    return training_corpus(site, passages, labels, use=use, seed=0)


@pytest.fixture
def site(tmp_path: Path) -> RunContext:
    return RunContext(store=str(tmp_path / "store"), device="cpu", threads=1)


def test_corpus_excludes_every_sentence_of_labelled_texts(site: RunContext, tmp_path: Path) -> None:
    apart = [f"The room of number {n} was cold and small. Nobody came when {n} rang!" for n in range(60)]
    sentences = [sentence for text in apart for sentence in split_sentences(text)]
    parts = _parts([*TEXTS, *sentences], held=10)
    corpus = _learnt(site, _published(site, parts), _file(tmp_path, apart), use="judge")
    texts = site.open_store().scan(corpus).collect()["text"]
    assert {*texts} == {*TEXTS[10:]}


@pytest.mark.parametrize("use", ["judge", "adapt"])
def test_corpus_excludes_texts_with_test_labels(site: RunContext, tmp_path: Path, *, use: Use) -> None:
    source, passages = _file(tmp_path, TEXTS), _published(site, _parts(TEXTS, held=120))
    texts = {*site.open_store().scan(_learnt(site, passages, source, use=use)).collect()["text"]}
    rows = labelled_rows(site.open_store(), passages, source, use=use)
    judging = {*rows.filter(pl.col("part") != "teach")["text_1"]}
    assert judging == {*TEXTS} - texts
    assert 0.6 < len(texts) / 280 < 0.8


def test_training_and_test_label_pairs_share_no_text(site: RunContext, tmp_path: Path) -> None:
    """A question on the left of one pair and on the right of another puts both pairs in one part."""
    pairs = [(f"What of number {n} here?", f"What of number {n + 1 if n % 4 else n + 500} here?") for n in range(200)]
    path = tmp_path / "pairs.csv"
    pl.DataFrame(pairs, schema=["one", "two"], orient="row").with_columns(score=pl.int_range(pl.len()) % 5).write_csv(
        path
    )
    rows = labelled_rows(
        site.open_store(), _published(site, _parts(TEXTS, 120)), label_source(str(path)), use="adapt", seed=0
    )
    judge, teach = ({*own["text_1"], *own["text_2"]} for own in (rows.filter(part=part) for part in ("judge", "teach")))
    assert judge.isdisjoint(teach)
    assert rows.height == 200


@pytest.mark.parametrize("rows", [12, 24, 48])
def test_few_labels_are_offered_as_test_labels_only_if_that_works(site: RunContext, tmp_path: Path, rows: int) -> None:
    source = _file(tmp_path, [f"Some other text of number {n}." for n in range(rows)])
    passages, store = _published(site, _parts(TEXTS, held=120)), site.open_store()
    with pytest.raises(EvaluationError, match=f"^labels: {rows} rows .*or remove --labels") as refusal:
        labelled_rows(store, passages, source, use="adapt")
    if "--labels-only-judge" in str(refusal.value):
        assert labelled_rows(store, passages, source, use="judge").height == rows
    else:
        with pytest.raises(EvaluationError):
            labelled_rows(store, passages, source, use="judge")


@pytest.mark.parametrize(("use", "needed"), [("judge", "7 test"), ("adapt", "7 test or 2 training")])
def test_counts_of_labels_add_up_and_name_rare_classes(
    site: RunContext, tmp_path: Path, *, use: Use, needed: str
) -> None:
    path = tmp_path / "rare.csv"
    labels = [*["rare"] * 5, "baad", *([None] * 4), *(("bad", "good", "Bad ")[n % 3] for n in range(200))]
    texts = [f"Some other text of number {n}." for n in range(len(labels))]
    pl.DataFrame({"text": texts, "label": labels}).write_csv(path)
    source, passages = label_source(str(path)), _published(site, _parts(TEXTS, held=120))
    rows = labelled_rows(site.open_store(), passages, source, use=use)
    assert labelled_of(rows, "classes").names == ("bad", "good")
    figures = site.open_store().manifest(_learnt(site, passages, source, use=use)).figures_as(LabelCounts)
    line = counts_line(figures, source, use)
    start = "210 rows → 4 without text or label → 6 in classes of fewer than "
    assert line.startswith(f"{start}{needed} rows (`baad` 1: same as `bad`?, `rare` 5) → ")
    counts = [int(number) for number in re.findall(r"(?:^|→ |, )(\d+) (?!training)", line)]
    assert counts[0] == sum(counts[1:])


def test_counts_of_pairs_name_rows_that_contain_training_sentences(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    pl.DataFrame({"one": TEXTS, "two": TEXTS[::-1], "score": range(400)}).write_csv(path)
    figures = LabelCounts(label_rows=400, idle_labels=5, test=395)
    assert counts_line(figures, label_source(str(path)), "judge") == (
        "400 rows → 5 that share texts with both parts or contain a training sentence → 395 test"
    )
    assert evaluation_counts(label_source(str(path))) == "400 rows → 400 test"


def test_labels_covering_all_training_text_raise_an_error(site: RunContext, tmp_path: Path) -> None:
    texts = [*TEXTS[:20], *(f"Another text of number {n} that stands nowhere else." for n in range(60))]
    joined = _file(tmp_path, [" ".join(TEXTS[:20]), *texts])  # one group of rows contains all training text
    with pytest.raises(
        EmptyCorpusError, match=r"all 10 training sentences occur in test labels.* Give text in addition"
    ):
        _learnt(site, _published(site, _parts(TEXTS[:20], held=10)), joined, use="judge")


def test_too_few_documents_or_labelled_rows_raise_an_error(site: RunContext, tmp_path: Path) -> None:
    passages = _published(site, _parts(TEXTS, held=20))
    text = HeldOutSet(passages=passages, labels=None, use="judge", questions=100, store=site.store)
    with pytest.raises(
        EvaluationError, match=r"found documents or runs: 20, different sentences in them: 20\)\..*give labels"
    ):
        check_enough(site, text, None, ("crops",))
    few = _file(tmp_path, TEXTS[:12])
    with pytest.raises(EvaluationError, match=r"12 rows \(12 test labels\): 0 of 2 classes have enough rows"):
        _learnt(site, passages, few, use="judge")
    with pytest.raises(EvaluationError, match=r"12 rows \(12 test labels, 0 training labels\): 0 of 2 classes"):
        _learnt(site, passages, few, use="adapt")


@pytest.mark.parametrize("use", ["judge", "adapt"])
def test_label_row_order_leaves_corpus_and_pairs_unchanged(site: RunContext, tmp_path: Path, *, use: Use) -> None:
    rows = pl.DataFrame({"text": TEXTS, "label": [("bad", "good", "fair")[n % 3] for n in range(len(TEXTS))]})
    made = []
    for name, table in (("in order", rows), ("shuffled", rows.sample(fraction=1, shuffle=True, seed=1))):
        table.write_csv(file := tmp_path / f"{name}.csv")
        labels, texts = label_source(str(file)), ReadingConfig().sources([str(file)])
        passages = read_passages(site, texts, HoldOutConfig())
        corpus = training_corpus(site, passages, labels, use=use, seed=0)
        pairs = (
            pair_own_labels(site, passages, labels, use=use, seed=0, general=None, own=None) if use != "judge" else None
        )
        rows_of = labelled_rows(site.open_store(), passages, labels, use=use)
        frames = [site.open_store().scan(ref).collect().drop("source") for ref in (passages, corpus, pairs) if ref]
        made.append([rows_of, *frames])
    for first, second in zip(*made, strict=True):
        assert_frame_equal(first, second)
