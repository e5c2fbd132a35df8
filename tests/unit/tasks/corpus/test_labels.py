"""Labels of the user's own text: no sentence that is evaluated is trained on."""

import re

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from bsl.models.corpus.normalize import split_sentences
from bsl.models.corpus.passages import HoldOutConfig, passages
from bsl.models.errors import EmptyCorpusError, EvaluationError
from bsl.models.evaluation.labels import labelled_of
from bsl.storage.artifacts.refs import PassagesRef
from bsl.storage.sources.labels import label_source
from bsl.storage.sources.own_text import text_sources
from bsl.storage.sources.reading_config import ReadingConfig
from bsl.tasks.corpus.labels import counts_line, evaluation_counts, labelled_rows
from bsl.tasks.corpus.passages import lengths_line, read_passages, training_corpus
from bsl.tasks.evaluation.own_text import HeldOutSet, check_enough, most_frequent_share
from bsl.tasks.figures import LabelCounts, PassagesFigures
from bsl.tasks.views.pairs import pair_own_labels
from tests.corpora import publish

TEXTS = [f"The boat of captain number {n} came late again." for n in range(400)]
OTHERS = [f"Some other text of number {n}." for n in range(210)]


def _file(tmp_path, texts, labels=None):
    given = labels or [("bad", "good")[n % 2] for n in range(len(texts))]
    pl.DataFrame({"text": texts, "label": given}).write_csv(tmp_path / "labels.csv")
    return label_source(str(tmp_path / "labels.csv"))


def _pairs(tmp_path, pairs):
    table = pl.DataFrame(pairs, schema=["one", "two"], orient="row")
    table.with_columns(score=pl.int_range(pl.len()) % 5).write_csv(tmp_path / "pairs.csv")
    return label_source(str(tmp_path / "pairs.csv"))


class Text:
    """Published documents of one sentence; the first `held` are held out."""

    def __init__(self, site, texts, held):
        self.site, self.store, self.ref = site, site.open_store(), PassagesRef(key=f"{len(texts) + held:064x}")
        rows = pl.DataFrame({"text": texts}).with_row_index("document").with_columns(
            title=pl.lit(None, pl.String), continues=pl.lit(value=False), source=pl.lit("own"), lang=pl.lit("en")
        )  # fmt: skip
        number = pl.int_range(pl.len(), dtype=pl.UInt32)
        part = pl.when(number >= held).then(pl.lit("train")).otherwise(pl.lit("report"))
        table = passages(rows, HoldOutConfig()).with_columns(unit=number, part=part)
        publish(self.store, self.ref, table)

    def rows(self, labels, use):
        return labelled_rows(self.store, self.ref, labels, use=use)

    def corpus(self, labels, use):
        return training_corpus(self.site, self.ref, labels, use=use, seed=0)

    def learnt(self, labels, use):
        return {*self.store.scan(self.corpus(labels, use)).collect()["text"]}


@pytest.fixture
def text(site):
    return Text(site, TEXTS, held=120)


def test_corpus_excludes_every_sentence_of_labelled_texts(site, tmp_path):
    apart = [f"The room of number {n} was cold and small. Nobody came when {n} rang!" for n in range(60)]
    sentences = [sentence for text in apart for sentence in split_sentences(text)]
    text = Text(site, [*TEXTS, *sentences], held=10)
    assert text.learnt(_file(tmp_path, apart), "judge") == {*TEXTS[10:]}


@pytest.mark.parametrize("use", ["judge", "adapt"])
def test_corpus_excludes_texts_with_test_labels(text, tmp_path, use):
    labels = _file(tmp_path, TEXTS)
    learnt, rows = text.learnt(labels, use), text.rows(labels, use)
    assert {*rows.filter(pl.col("part") != "teach")["text_1"]} == {*TEXTS} - learnt
    assert 0.6 < len(learnt) / 280 < 0.8


@pytest.mark.parametrize("rows", [12, 24, 48])
def test_few_labels_are_offered_as_test_labels_only_if_that_works(text, tmp_path, rows):
    labels = _file(tmp_path, OTHERS[:rows])
    with pytest.raises(EvaluationError, match=f"^labels: {rows} rows .*enough text, remove --labels") as refusal:
        text.rows(labels, "adapt")
    if "--labels-only-judge" in str(refusal.value):
        assert text.rows(labels, "judge").height == rows
    else:
        with pytest.raises(EvaluationError):
            text.rows(labels, "judge")


@pytest.mark.parametrize(("use", "needed"), [("judge", "7 test"), ("adapt", "7 test or 2 training")])
def test_counts_of_labels_add_up_and_rare_classes_are_named_and_not_taught(text, tmp_path, use, needed):
    classes = [*["rare"] * 5, "baad", *([None] * 4), *(("bad", "good", "Bad ")[n % 3] for n in range(200))]
    labels = _file(tmp_path, OTHERS, classes)
    assert labelled_of(text.rows(labels, use), "classes").names == ("bad", "good")
    figures = text.store.manifest(text.corpus(labels, use)).figures_as(LabelCounts)
    assert figures.rare_classes == {"baad": 1, "rare": 5}
    line = counts_line(figures, labels, use)
    start = "210 rows → 4 without text or label → 6 in classes of fewer than "
    assert line.startswith(f"{start}{needed} rows (`baad` 1: same as `bad`?, `rare` 5) → ")
    counts = [int(number) for number in re.findall(r"(?:^|→ |, )(\d+) (?!training)", line)]
    assert counts[0] == sum(counts[1:])
    if use == "adapt":
        taught = pair_own_labels(text.site, text.ref, labels, use=use, seed=0, general=None, own=None)
        assert not text.store.scan(taught).collect()["text_1"].is_in(OTHERS[:10]).any()


def test_unreadable_records_of_labels_are_counted_and_the_first_is_named(tmp_path):
    """Regression: up to 1 % of the rows were dropped without a word: 300 rows → 299 rows → 299 test."""
    rows = [f"{text},{('bad', 'good')[n % 2]}\n" for n, text in enumerate(TEXTS[:300])]
    rows[150] = "Two commas, here,bad\n"
    (tmp_path / "labels.csv").write_text("".join(["text,label\n", *rows]))
    labels = label_source(str(tmp_path / "labels.csv"))
    assert "; 1 unreadable, the first labels.csv, line 152: 3 fields, expected 2" in labels.summary
    assert evaluation_counts(labels) == "300 rows → 1 unreadable → 299 test"


def test_most_frequent_share_is_that_of_the_test_labels(text, tmp_path):
    """Regression: it was 0, so that a classifier no better than the most frequent class was praised."""
    labels = _file(tmp_path, OTHERS, [("bad", "good", "good", "good")[n % 4] for n in range(210)])
    held_out = HeldOutSet(passages=text.ref, labels=labels, use="adapt", questions=9, store=text.site.store)
    test = text.rows(labels, "adapt").filter(part="judge")
    assert most_frequent_share({"your text": held_out}) == (test["label"] == "good").mean() > 0.6


def test_sentences_of_other_lengths_are_counted(site, tmp_path):
    (tmp_path / "own.txt").write_text("".join(f"{text}\nNumber {n}.\n" for n, text in enumerate(TEXTS)))
    config = HoldOutConfig(max_chars=900)
    passages = read_passages(site, text_sources(ReadingConfig(), [str(tmp_path / "own.txt")]), config)
    line = lengths_line(site.open_store().manifest(passages).figures_as(PassagesFigures), config)
    assert line.startswith("text: 400 sentences; 400 sentences shorter than 20 and 0 longer than 900 characters")


def test_unreadable_records_of_text_are_counted_and_the_first_is_named(site, tmp_path):
    """Regression: up to 1 % of the records were dropped without a word."""
    (tmp_path / "own.csv").write_text("".join(["text\n", *(f"{text}\n" for text in TEXTS), "Two fields, here\n"]))
    sources = text_sources(ReadingConfig(), [str(tmp_path / "own.csv")])
    passages = read_passages(site, sources, HoldOutConfig())
    line = lengths_line(site.open_store().manifest(passages).figures_as(PassagesFigures), HoldOutConfig())
    assert line == "text: 400 sentences; 1 unreadable, the first own.csv, line 402: 2 fields, expected 1"


def test_counts_of_pairs_name_rows_that_contain_training_sentences(tmp_path):
    labels = _pairs(tmp_path, list(zip(TEXTS, TEXTS[::-1], strict=True)))
    figures = LabelCounts(label_rows=400, idle_labels=5, test=395)
    assert counts_line(figures, labels, "judge") == (
        "400 rows → 5 that share texts with both parts or contain a training sentence → 395 test"
    )
    assert evaluation_counts(labels) == "400 rows → 400 test"


def test_too_little_text_or_too_few_labels_raise_an_error(site, tmp_path):
    text = Text(site, TEXTS, held=20)
    held_out = HeldOutSet(passages=text.ref, labels=None, use="judge", questions=100, store=site.store)
    with pytest.raises(EvaluationError, match=r"runs: 20, different sentences in them: 20\)\..*give labels"):
        check_enough(site, held_out, None, ("crops",))
    with pytest.raises(EvaluationError, match=r"12 rows \(12 test labels\): 0 of 2 classes have enough rows"):
        text.corpus(_file(tmp_path, TEXTS[:12]), "judge")
    more = [f"Another text of number {n} that stands nowhere else." for n in range(60)]
    joined = _file(tmp_path, [" ".join(TEXTS[:20]), *TEXTS[:20], *more])  # one group of rows has all training text
    with pytest.raises(EmptyCorpusError, match=r"all 10 training sentences occur in test labels.* Give text in add"):
        Text(site, TEXTS[:20], held=10).learnt(joined, "judge")


@pytest.mark.parametrize("use", ["judge", "adapt"])
def test_label_row_order_leaves_corpus_and_pairs_unchanged(site, tmp_path, use):
    rows = pl.DataFrame({"text": TEXTS, "label": [("bad", "good", "fair")[n % 3] for n in range(len(TEXTS))]})
    made, store = [], site.open_store()
    for name, table in (("in order", rows), ("shuffled", rows.sample(fraction=1, shuffle=True, seed=1))):
        table.write_csv(file := tmp_path / f"{name}.csv")
        labels, own = label_source(str(file)), text_sources(ReadingConfig(), [str(file)])
        refs = [read_passages(site, own, HoldOutConfig())]
        made.append([labelled_rows(store, refs[0], labels, use=use)])
        refs.append(training_corpus(site, refs[0], labels, use=use, seed=0))
        if use == "adapt":
            refs.append(pair_own_labels(site, refs[0], labels, use=use, seed=0, general=None, own=None))
        made[-1] += [store.scan(ref).collect().drop("source") for ref in refs]
    for first, second in zip(*made, strict=True):
        assert_frame_equal(first, second)
