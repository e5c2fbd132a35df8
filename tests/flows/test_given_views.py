"""Two columns of text become view `original` and a named view, and the two views become pairs."""

import pytest
from prefect import flow

from bsl.flows.recipes.shared import beside_original
from bsl.models.views.config import AugmentConfig, GivenView
from bsl.storage.artifacts.refs import PairsRef
from bsl.storage.errors import SourceError
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.corpus.config import IngestConfig
from bsl.tasks.corpus.ingest import ingest, locate_sources
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.views.augment import augment
from bsl.tasks.views.methods import column_view
from bsl.tasks.views.pairs import pair

ROWS = [
    ("A dog  runs.", "A dog is running."),
    ("A cat sleeps.", "The cat is asleep."),
    ("A dog runs.", "Another view of the same."),
    ("Nobody is here.", ""),
]


@flow
def paired(site: RunContext, ingesting: IngestConfig, augmenting: AugmentConfig) -> PairsRef:
    sources = locate_sources(site, ingesting)
    corpus = ingest(site, sources, ingesting)
    given = tuple(column_view(site, sources, corpus, view, ingesting.max_bad_share) for view in augmenting.given)
    return pair(site, augment(site, corpus, augmenting, None, given), beside_original("paraphrase"))


@pytest.fixture
def ingesting(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("sentence,other\n" + "".join(f"{one},{two}\n" for one, two in ROWS))
    return IngestConfig(sources=(SourceSpec(path=str(path)),))


def test_given_view_column_pairs_sentences_with_their_first_view(tmp_path, ingesting):
    site = RunContext(store=str(tmp_path / "store"), device="cpu", threads=1)
    view = GivenView(method="paraphrase", column="other")
    pairs = paired(site, ingesting, AugmentConfig(given=(view,), filters=()))
    assert set(site.open_store().scan(pairs).collect().select("text_1", "text_2").rows()) == {
        ("A dog runs.", "A dog is running."),
        ("A cat sleeps.", "The cat is asleep."),
    }


def test_missing_view_column_raises_source_error(tmp_path, ingesting):
    site = RunContext(store=str(tmp_path / "store"), device="cpu", threads=1)
    with pytest.raises(SourceError, match=r"augment\.given: none of the sources own has a column 'view'"):
        paired(site, ingesting, AugmentConfig(given=(GivenView(method="paraphrase"),), filters=()))
