"""Stages make views and pairs of a corpus, with a translator whose output can be predicted word by word."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prefect import flow

from bsl.models.errors import TrainingError, TranslationError
from bsl.models.translation.config import TranslatorConfig
from bsl.models.translation.filters import LengthFilter, LoopFilter
from bsl.models.views.config import AugmentConfig, TranslatedView, round_trip
from bsl.models.views.pairs import PairConfig, ViewPair
from bsl.storage.artifacts.refs import CorpusRef, PairsRef, ViewsRef
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.views.augment import augment
from bsl.tasks.views.pairs import pair
from tests.corpora import publish_corpus
from tests.tiny_marian import SENTENCES, build_tiny_marian

ROOT = Path(__file__).parents[2]
CORPUS = [*SENTENCES[:60:2], "...", "OK?!"]
PAIRS = PairConfig(pairings=(ViewPair(view_1="original", view_2="bt-nb"),), drop_identical=True)


@flow
def views_and_pairs(
    site: RunContext, corpus: CorpusRef, config: AugmentConfig, pairing: PairConfig
) -> tuple[ViewsRef, PairsRef]:
    views = augment(site, corpus, config)
    return views, pair(site, views, pairing)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return build_tiny_marian(folder / "out", seed=1), build_tiny_marian(folder / "back", seed=2)


@pytest.fixture
def site(tmp_path):
    return RunContext(store=str(tmp_path / "store"), cache=str(tmp_path / "cache"), device="cpu", threads=1)


@pytest.fixture
def corpus(site):
    return publish_corpus(site, CORPUS, "sv")


def through(models, **settings):
    """Round trip of languages without a smoke test, with lenient filters: random weights do loop."""
    out, back = (
        TranslatorConfig.model_validate({"model": str(folder), "source_lang": one, "target_lang": two} | settings)
        for folder, one, two in zip(models, ("sv", "nb"), ("nb", "sv"), strict=True)
    )
    return AugmentConfig(
        translations=(round_trip(out, back),),
        filters=(LengthFilter(ratio=50), LoopFilter(repeats=7)),
    )


def test_augment_counts_an_outcome_for_every_sentence(site, corpus, models):
    views, pairs = views_and_pairs(site, corpus, through(models), PAIRS)
    store = site.open_store()
    table = store.scan(views).collect()
    methods = dict(table["method"].value_counts().rows())
    counted = {row["outcome"]: row["n"] for row in store.manifest(views).figures["outcomes"]}
    assert methods["original"] == sum(counted.values()) == len(CORPUS)
    assert methods["bt-nb"] == sum(n for outcome, n in counted.items() if outcome.startswith("kept"))
    assert counted["kept: copy of the source"] >= 1  # "..." has nothing to translate
    assert any(outcome.startswith("hop") for outcome in counted)
    assert store.scan(pairs).collect().height == methods["bt-nb"] - counted["kept: copy of the source"]


def test_augment_rerun_translates_only_new_sentences(site, corpus, models):
    views_and_pairs(site, corpus, through(models), PAIRS)
    grown, _ = views_and_pairs(site, publish_corpus(site, [*CORPUS, "A new sentence."], "sv"), through(models), PAIRS)
    there, back = site.open_store().manifest(grown).figures["hops"]
    assert there["sentences"] == 1
    assert back["sentences"] <= 1


def test_views_key_depends_on_the_search_and_not_on_the_path_of_the_model(site, corpus, models, tmp_path):
    elsewhere = shutil.copytree(models[0], tmp_path / "out"), shutil.copytree(models[1], tmp_path / "back")
    first, again, beam = (
        views_and_pairs(site, corpus, config, PAIRS)[0]
        for config in (through(models), through(elsewhere), through(models, beam=2))
    )
    assert first == again != beam
    assert len({part.kind for part in site.open_store().refs() if part.kind.startswith("translations/")}) == 4


def test_translator_that_fails_its_smoke_test_stops_the_run(site, corpus, models):
    hop = TranslatorConfig(model=str(models[0]), source_lang="en", target_lang="de")
    english = publish_corpus(site, CORPUS[:-1])
    config = AugmentConfig(translations=(TranslatedView(method="mt-de", hops=(hop,)),))
    with pytest.raises(TranslationError, match=r"en→de translator .* fails its smoke test: 3 of 3"):
        views_and_pairs(site, english, config, PAIRS)
    assert [ref.kind for ref in site.open_store().refs()] == ["corpus", "corpus"]


def test_pairing_with_missing_view_raises_missing_view_error(site, corpus):
    with pytest.raises(TrainingError, match=r"original\|bt-nb gives no pairs: 32 sentences have only the first view"):
        views_and_pairs(site, corpus, AugmentConfig(), PAIRS)


def test_importing_view_stages_imports_no_torch_or_transformers():
    script = (
        "import sys; from bsl.tasks.views import augment, pairs; print({'torch', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("set()\n", "")
