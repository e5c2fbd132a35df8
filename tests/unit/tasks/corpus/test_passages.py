"""No sentence that is evaluated is trained on."""

import polars as pl
import pytest

from bsl.models.corpus.normalize import sentence_ids
from bsl.models.corpus.passages import HoldOutConfig
from bsl.models.errors import EmptyCorpusError, EvaluationError
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import PassagesRef
from bsl.storage.artifacts.schemas import PASSAGES
from bsl.storage.sources.labels import label_source
from bsl.storage.sources.own_text import ReadingConfig
from bsl.tasks.corpus.passages import read_passages, training_corpus
from bsl.tasks.views.pairs import pair_own_labels

SENTENCES = [f"The boat of captain {number} was late again." for number in range(60)]


@pytest.fixture
def passages(site):
    """Return sixty documents of one sentence; every third is held out."""
    ref = PassagesRef(key=f"{5:064x}")
    rows = pl.DataFrame({"text": SENTENCES}).with_row_index("document")
    own = {"sentence_id": sentence_ids(pl.col("text")), "source": pl.lit("boats"), "lang": pl.lit("en")}
    part = pl.when(pl.col("document") % 3 == 0).then(pl.lit("report")).otherwise(pl.lit("train"))
    others = {name: pl.lit(None if dtype == pl.String else 0) for name, dtype in PASSAGES.items() if name != "text"}
    table = rows.with_columns(**{**others, "document": pl.col("document"), **own, "part": part})
    with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(table.select(PASSAGES.names()).cast(PASSAGES))
    return ref


def labelled(tmp_path, labels):
    path = tmp_path / "labels.csv"
    pl.DataFrame({"text": SENTENCES[: len(labels)], "label": labels}).write_csv(path)
    return label_source(str(path))


def test_training_corpus_excludes_test_labels_and_counts_rare_classes(site, passages, tmp_path):
    labels = labelled(tmp_path, ["late", "early"] * 30)
    corpus = training_corpus(site, passages=passages, labels=labels, use="adapt", seed=0)
    figures = site.open_store().manifest(corpus).figures
    assert figures == {
        "sentences": 27, "held_out": 20, "label_rows": 60, "rare_classes": {}, "similar_classes": {}, "idle_labels": 0,
        "labels teach": 27, "labels judge": 33,
    }  # fmt: skip

    labels = labelled(tmp_path, ["rare" if row in (1, 2, 4) else ("late", "early")[row % 2] for row in range(60)])
    corpus = training_corpus(site, passages=passages, labels=labels, use="adapt", seed=0)
    assert site.open_store().manifest(corpus).figures["rare_classes"] == {"rare": 3}
    taught = pair_own_labels(site, passages=passages, labels=labels, use="adapt", seed=0, general=None, own=None)
    texts = site.open_store().scan(taught).collect()["text_1"]
    assert not texts.is_in([SENTENCES[row] for row in (1, 2, 4)]).any()


def test_training_corpus_stage_raises_on_too_few_labels(site, passages, tmp_path):
    labels = labelled(tmp_path, ["late", "early"] * 4)
    with pytest.raises(EvaluationError, match=r"8 rows \(4 test labels"):
        training_corpus(site, passages=passages, labels=labels, use="adapt", seed=0)


def test_empty_text_column_is_named_with_the_option_to_choose_another(site, tmp_path):
    path = tmp_path / "boats.csv"
    pl.DataFrame({"text": SENTENCES, "notes": [None] * 60}).write_csv(path)
    sources = ReadingConfig(columns=("notes",)).sources([str(path)], None)
    with pytest.raises(EmptyCorpusError, match=r"'notes' of boats\. Name the columns with text \(--columns\)"):
        read_passages(site, sources=sources, config=HoldOutConfig())
