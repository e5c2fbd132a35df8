"""A field: every method proved on what none has seen, one more costs itself alone, one that fails is a row."""

import polars as pl
import pytest

from flows.sweep.field import field
from flows.sweep.method_settings import Budget, FieldSettings
from models.evaluation.config import BootstrapConfig
from storage.artifacts.refs import ArtifactRef
from storage.artifacts.store import Store
from tasks.reporting.sweep.advice import TEXT
from tasks.stage.run_context import RunContext

pytestmark = pytest.mark.usefixtures("without_charts")

SETTINGS = FieldSettings(
    methods=("tfidf", "whitening", "masked-lm", "labels"),
    budget=Budget(steps=2),
    sentences=120,
    questions=40,
    bootstrap=BootstrapConfig(resamples=200),
)
WORDS = ("river", "engine", "garden", "market", "window", "teacher", "winter", "bottle", "camera", "letter")


def ref_of(entry):
    return ArtifactRef(kind=entry.kind, key=entry.key)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Reviews of two classes, each of a text of its own."""
    rows = [
        {"text": f"The {a} beside the {b} was {word} on day {number}.", "label": word}
        for number, (a, b) in enumerate((a, b) for a in WORDS for b in WORDS for _ in range(3))
        for word in [("good", "bad")[number % 2]]
    ]
    path = tmp_path_factory.mktemp("text") / "reviews.csv"
    pl.DataFrame(rows).write_csv(path)
    return str(path)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(str(tmp_path_factory.mktemp("field") / "store"))


@pytest.fixture(scope="module")
def site(store):
    return RunContext(store=store.url, device="cpu", threads=1)


@pytest.fixture(scope="module")
def start(shallow):
    return str(shallow)


@pytest.fixture(scope="module")
def compared(site, text, start):
    return field([text], start, labels=text, settings=SETTINGS, site=site)


def test_field_scores_every_method_on_text_labels_and_stsb(store, compared):
    table = store.scan(compared, "sweep").drop_nulls("mean").collect()
    proofs = table["dataset"].unique(maintain_order=True).to_list()
    assert proofs == [TEXT, "crop", "your labels", "stsb test"]
    names = [
        "original encoder",
        "TF-IDF",
        "masked LM",
        "your labels",
    ]  # so few sentences cannot be whitened, which the page says
    assert table["label"].to_list() == names * len(proofs)
    own = {(row["dataset"], row["label"]): row["mean"] for row in table.iter_rows(named=True)}
    assert own[TEXT, "TF-IDF"] == own["your labels", "TF-IDF"] != own["crop", "TF-IDF"], "labels decide"
    assert own["your labels", "TF-IDF"] > 0.8, "good and bad are words of the text"
    folder = store.fetch(compared)
    assert (folder / "scores.svg").read_text().startswith("<svg ")
    page = (folder / "sweep.md").read_text()
    assert "## All sets" in page
    assert "Use a larger corpus" in page


def test_field_training_corpus_excludes_held_out_sentences(store, compared):
    inputs = store.manifest(compared).provenance.inputs
    learnt = store.scan(ref_of(inputs["own_text.corpus"])).collect()["sentence_id"]
    held = (
        store.scan(ref_of(inputs["own_text.held_out.passages"]))
        .filter(pl.col("part") != "train")
        .collect()["sentence_id"]
    )
    assert len(learnt) > 50
    assert len(held) > 50
    assert not learnt.is_in(held.implode()).any()


def test_added_field_method_trains_only_itself(store, site, text, start, compared):
    before = {ref.key for ref in store.refs("checkpoint")}
    more = SETTINGS.model_copy(update={"methods": (*SETTINGS.methods, "flow", "tsdae"), "teacher": None})
    changed = field([text], start, labels=text, settings=more, site=site)
    assert len({ref.key for ref in store.refs("checkpoint")} - before) == 1
    methods = store.scan(changed, "costs").collect()
    assert methods["label"].to_list()[-2:] == ["TSDAE", "your labels"]
    assert methods.filter(label="TSDAE")["steps"].item() == 2
    first, second = (
        store.scan(ref, "sweep").filter(dataset="crop", label="masked LM").collect() for ref in (compared, changed)
    )
    assert first["mean"].item() == second["mean"].item()


CROPS = SETTINGS.model_copy(update={"methods": ("tfidf", "crops")})


def test_training_on_crops_excludes_crop_questions_from_the_score(store, site, text, start):
    table = store.scan(field([text], start, labels=text, settings=CROPS, site=site), "sweep").collect()
    own = {(row["dataset"], row["label"]): row["mean"] for row in table.iter_rows(named=True)}
    names = table["label"].unique(maintain_order=True).to_list()
    assert names == ["original encoder", "TF-IDF", "crops"]
    assert all(own[TEXT, name] == own["your labels", name] for name in names)
    assert (TEXT, "crop") not in own
    assert ("crop", names[0]) in own


def test_field_skips_crops_without_questions_on_other_views(store, site, text, start):
    found = field([text], start, settings=CROPS, site=site)
    reason = store.manifest(found).figures["faults"]["crops"]
    assert "its only questions are about views that this method trains on" in reason
    table = store.scan(found, "sweep").drop_nulls("mean").collect()
    assert table.filter(dataset=TEXT)["mean"].to_list() == table.filter(dataset="crop")["mean"].to_list()


def test_budget_in_seconds_measures_training_pace_once(store, site, text, start):
    settings = SETTINGS.model_copy(update={"methods": ("masked-lm",), "budget": Budget(seconds=0.5)})
    once = field([text], start, settings=settings, site=site)
    paces = store.refs("pace")
    assert paces
    again = field([text], start, settings=settings, site=site)
    assert once == again
    assert store.refs("pace") == paces
    steps = store.scan(once, "costs").filter(label="masked LM").collect()["steps"].item()
    assert steps >= 1
