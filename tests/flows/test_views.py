"""Stages make views and pairs: from a file of NLI rows, and with a translator whose output can be predicted."""

import json
import shutil

import nltk.data
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from bsl.flows.config import override
from bsl.flows.pipeline import run
from bsl.flows.recipes import recipe
from bsl.flows.recipes.shared import beside_original
from bsl.models.errors import TranslationError
from bsl.models.translation.config import TranslatorConfig
from bsl.models.translation.filters import LengthFilter, LoopFilter, OverlapFilter
from bsl.models.views.config import (
    AugmentConfig,
    EntailView,
    GivenView,
    MaskedView,
    SynonymView,
    TranslatedView,
    round_trip,
)
from bsl.models.views.pairs import PairConfig, ViewPair
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ArtifactRef, CorpusRef, PairsRef, ViewsRef
from bsl.storage.errors import SourceError
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.corpus.config import IngestConfig
from bsl.tasks.corpus.ingest import ingest, locate_sources
from bsl.tasks.corpus.ingest import nli as label_pairs
from bsl.tasks.stage.cached import StageContext
from bsl.tasks.stage.progress import planning
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.views import methods
from bsl.tasks.views.augment import augment
from bsl.tasks.views.methods import column_view
from bsl.tasks.views.pairs import pair
from tests.corpora import publish_corpus
from tests.tiny_marian import SENTENCES, build_tiny_marian
from tests.tiny_wordnet import write_tiny_wordnet

PREMISES = ["A big cat ran over the sofa.", "Children ate a cake in the garden.", "He took a picture of the river."]
ROWS = [
    *(
        {"premise": premise, "hypothesis": f"{what} {number}.", "label": label}
        for number, premise in enumerate(PREMISES)
        for label, what in enumerate(("This follows from", "This may be with", "This is not so with"))
    ),
    {"premise": PREMISES[0], "hypothesis": "An animal moved.", "label": 0},
    {"premise": PREMISES[0], "hypothesis": "Nobody agreed on this.", "label": -1},
]
ALL = AugmentConfig(
    rewritings=(SynonymView(), MaskedView(model="embedded:bert-mini", revision=None), EntailView(hypotheses=2))
)
PAIRS = PairConfig(pairings=tuple(ViewPair(view_1="original", view_2=view) for view in ("synonym", "mlm", "entail")))
CORPUS = [*SENTENCES[:60:2], "...", "OK?!"]
ROUND_TRIPS = PairConfig(pairings=(ViewPair(view_1="original", view_2="bt-nb"),), drop_identical=True)


def prepared(
    site: RunContext, config: IngestConfig, views: AugmentConfig, pairing: PairConfig
) -> tuple[CorpusRef, ArtifactRef, ViewsRef, PairsRef]:
    sources = locate_sources(site, config)
    corpus = ingest(site, sources, config)
    nli = label_pairs(site, sources, corpus, config)
    made = augment(site, corpus, views, nli)
    return corpus, nli, made, pair(site, made, pairing)


@pytest.fixture
def site(new_site, tmp_path):
    return new_site().model_copy(update={"cache": str(tmp_path / "cache")})


@pytest.fixture(autouse=True)
def _tiny_wordnet(tmp_path, monkeypatch):
    write_tiny_wordnet(tmp_path / "nltk" / "corpora" / "wordnet")
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "nltk")])


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "nli.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return IngestConfig(sources=(SourceSpec(path=str(path)),))


def test_augment_makes_and_counts_every_configured_view(site, rows):
    corpus, nli, views, pairs = prepared(site, rows, ALL, PAIRS)
    store = site.open_store()
    sentences = store.scan(corpus).collect().height
    assert store.manifest(nli).figures["statistics"] == {"read": 10, "outside": 0, "duplicates": 0, "kept": 10}
    assert store.manifest(nli).figures["unlabelled"] == {"nli: unlabelled": 1}
    table = store.scan(views).collect()
    expected = {"original": sentences, "synonym": sentences, "mlm": sentences, "entail": 3, "entail-2": 1}
    assert dict(table["method"].value_counts().rows()) == expected
    outcomes = pl.DataFrame(store.manifest(views).figures["outcomes"]).group_by("method").agg(pl.col("n").sum())
    assert dict(outcomes.rows()) == {method: rows for method, rows in expected.items() if method != "original"}
    (made,) = (m for m in map(store.manifest, store.refs("views")) if m.provenance.stage == "synonym")
    # The tiny WordNet covers words of the premises only; 5 words are replaced of the 23 that the share (30%) asks for.
    assert made.figures == {"words": 73, "replaced": 5, "shortfall": 18}
    assert store.scan(pairs).collect().height == 2 * sentences + 3


def test_call_before_views_of_models_comes_before_them_and_not_if_they_are_cached(site, rows):
    class RefusedError(Exception):
        pass

    def refuse():
        raise RefusedError

    sources = locate_sources(site, rows)
    corpus = ingest(site, sources, rows)
    masked = ALL.model_copy(update={"rewritings": ALL.rewritings[1:2]})
    with pytest.raises(RefusedError):
        augment(site, corpus, masked, before_models=refuse)
    assert site.open_store().refs("views") == []
    made = augment(site, corpus, masked)
    assert augment(site, corpus, masked, before_models=refuse) == made


def test_added_view_method_reuses_others_and_filter_counts_drops(site, rows):
    first = ALL.model_copy(update={"rewritings": tuple(view for view in ALL.rewritings if view.name != "mlm")})
    short = PairConfig(pairings=PAIRS.pairings[:1])
    prepared(site, rows, first, short)
    before = {ref.key for ref in site.open_store().refs("views")}
    strict = ALL.model_copy(update={"filters": (*ALL.filters, OverlapFilter(most=0.99))})
    _, _, views, _ = prepared(site, rows, strict, short)
    assert before < {ref.key for ref in site.open_store().refs("views")}
    store = site.open_store()
    assert len(store.refs("views")) == len(before) + 2  # of masked_lm, and of all methods together
    rows_of = {(r["method"], r["outcome"]): r["n"] for r in store.manifest(views).figures["outcomes"]}
    assert rows_of["synonym", "too_close"] >= 9  # the tiny WordNet covers no word of the hypotheses
    kept = store.scan(views).filter(pl.col("method") == "synonym").collect().height
    assert kept == rows_of["synonym", "kept"]


def test_entail_view_without_labelled_pairs_raises_source_error(site, tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("A sentence.\nAnother one.\n")
    config = IngestConfig(sources=(SourceSpec(path=str(path)),))
    with pytest.raises(SourceError, match=r"none of the sources plain has labelled pairs \(expected columns premise"):
        run(recipe("tiny-entail").model_copy(update={"ingest": config}), site)
    assert not site.open_store().refs()  # before the corpus is made


def test_dry_run_does_not_fetch_tables_of_the_hub_for_their_columns(site):
    """Regression: the checks before the corpus fetched them, also in a run of which all artifacts are cached."""
    source = {"dataset": "nobody/nli", "revision": "0" * 40}
    changes = {"ingest": {"sources": [source]}, "augment": {"given": [{"column": "other"}]}}
    config = override(recipe("tiny-entail"), changes)
    with planning() as plan:
        run(config, site)
    assert "ingest" in [step.stage for step in plan]


def paired(site: RunContext, ingesting: IngestConfig, view: GivenView) -> PairsRef:
    sources = locate_sources(site, ingesting)
    corpus = ingest(site, sources, ingesting)
    given = column_view(site, sources, corpus, view, ingesting.max_bad_share)
    views = augment(site, corpus, AugmentConfig(given=(view,), filters=()), None, (given,))
    return pair(site, views, beside_original("paraphrase"))


def test_given_view_column_pairs_sentences_with_their_first_view(site, tmp_path):
    path = tmp_path / "own.csv"
    lines = ["sentence,other", "A dog  runs.,A dog is running.", "A cat sleeps.,The cat is asleep."]
    path.write_text("\n".join([*lines, "A dog runs.,Another view of the same.", "Nobody is here.,"]))
    beside = SourceSpec(path=str(path), columns=("other",), lang="de")  # the column itself, as sentences
    ingesting = IngestConfig(sources=(SourceSpec(path=str(path)), beside))
    pairs = paired(site, ingesting, GivenView(method="paraphrase", column="other"))
    assert set(site.open_store().scan(pairs).select("text_1", "text_2").collect().rows()) == {
        ("A dog runs.", "A dog is running."),
        ("A cat sleeps.", "The cat is asleep."),
    }
    store = site.open_store()
    (rows,) = [found.figures["rows"] for found in map(store.manifest, store.refs("views")) if "rows" in found.figures]
    assert rows == {"read": 4, "empty": 1, "outside": 0, "repeated": 1}
    given = AugmentConfig(given=(GivenView(column="othr"),), filters=())
    base = recipe("tiny")
    changed = base.model_copy(update={"ingest": ingesting, "augment": given, "pairs": beside_original("given")})
    with pytest.raises(SourceError, match=r"'othr' .* \(found 'sentence', 'other'\)\. Did you mean 'other'\?"):
        run(changed, RunContext(store=str(tmp_path / "nothing")))
    assert not (tmp_path / "nothing" / "corpus").exists()  # refused before the first stage


TEN = [f"Sentence {number}." for number in range(10)]


def test_interrupted_rewriting_resumes_after_the_last_slice(site, monkeypatch):
    monkeypatch.setattr(methods, "SLICE_ROWS", 4)
    store, corpus = site.open_store(), publish_corpus(site, TEN)
    calls: list[int] = []

    def shout(texts, _, fail_at=0):
        calls.append(len(texts))
        if len(calls) == fail_at:
            raise KeyboardInterrupt
        return [text.upper() for text in texts]

    def run(key, fail_at=0):
        ref = ViewsRef(key=key * 64)
        with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
            work = StageContext(site, store, draft)
            methods.rewrite_corpus(work, corpus, "mlm", "en", 0, lambda texts, seeds: shout(texts, seeds, fail_at))
        return store.scan(ref).collect()

    undisturbed = run("a")
    assert calls == [4, 4, 2]
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        run("b", fail_at=2)
    calls.clear()
    assert_frame_equal(run("b"), undisturbed)
    assert calls == [4, 2]


def test_rewriting_survives_scratch_deletion_by_another_run(site, monkeypatch):
    monkeypatch.setattr(methods, "SLICE_ROWS", 4)
    store, corpus, ref = site.open_store(), publish_corpus(site, TEN), ViewsRef(key="a" * 64)

    def dropped_meanwhile(texts, _):
        store.drop_scratch(ref)
        return [text.upper() for text in texts]

    with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
        methods.rewrite_corpus(StageContext(site, store, draft), corpus, "mlm", "en", 0, dropped_meanwhile)
    assert store.manifest(ref).rows == 10


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
    views, pairs = views_and_pairs(site, corpus, through(models), ROUND_TRIPS)
    store = site.open_store()
    table = store.scan(views).collect()
    methods = dict(table["method"].value_counts().rows())
    counted = {row["outcome"]: row["n"] for row in store.manifest(views).figures["outcomes"]}
    assert methods["original"] == sum(counted.values()) == len(CORPUS)
    assert methods["bt-nb"] == sum(n for outcome, n in counted.items() if outcome.startswith("kept"))
    assert counted["kept: copy of the source"] >= 1  # "..." has nothing to translate
    assert any(outcome.startswith("hop") for outcome in counted)
    assert store.scan(pairs).collect().height == methods["bt-nb"] - counted["kept: copy of the source"]


def test_translators_of_a_language_without_sentences_are_refused(site, models):
    with pytest.raises(TranslationError, match=r"view bt-nb: no sentence of the corpus is in sv \(found en\)"):
        augment(site, publish_corpus(site, CORPUS), through(models))
    assert not site.open_store().refs("translations")


def test_views_key_depends_on_the_search_and_not_on_the_path_of_the_model(site, corpus, models, tmp_path):
    elsewhere = shutil.copytree(models[0], tmp_path / "out"), shutil.copytree(models[1], tmp_path / "back")
    first, again, beam = (
        views_and_pairs(site, corpus, config, ROUND_TRIPS)[0]
        for config in (through(models), through(elsewhere), through(models, beam=2))
    )
    assert first == again != beam
    assert len({part.kind for part in site.open_store().refs() if part.kind.startswith("translations/")}) == 4


def test_translator_that_fails_its_smoke_test_stops_the_run(site, corpus, models):
    hop = TranslatorConfig(model=str(models[0]), source_lang="en", target_lang="de")
    english = publish_corpus(site, CORPUS[:-1])
    config = AugmentConfig(translations=(TranslatedView(method="mt-de", hops=(hop,)),))
    with pytest.raises(TranslationError, match=r"en→de translator .* fails its smoke test: 3 of 3"):
        views_and_pairs(site, english, config, ROUND_TRIPS)
    assert [ref.kind for ref in site.open_store().refs()] == ["corpus", "corpus"]


@pytest.mark.parametrize(
    "view",
    [
        {"translations": {"0": {"hops": {"0": {"model": "/no/such/model"}}}}},
        {"rewritings": [{"name": "mlm", "model": "/no/such/model"}]},
    ],
)
def test_missing_model_of_a_view_is_refused_before_the_first_stage(tmp_path, view):
    site = RunContext(store=str(tmp_path / "store"), device="cpu")
    with pytest.raises(SourceError, match="/no/such/model: no such folder"):
        run(override(recipe("tiny"), {"augment": view}), site)
    assert site.open_store().refs() == []
