"""`bsl adapt` reads own files and exports the adapted encoder if it is BETTER, else the original encoder."""

import json
from pathlib import Path

import polars as pl
import pytest

import bsl
from bsl import SentenceEncoder
from bsl.flows.adaptation import adapt, run_adapt
from bsl.flows.cli.main import main
from bsl.flows.config import override
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EvaluationError, TrainingError
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import ENCODER, CheckpointRef, CorpusRef, PairsRef, PassagesRef, ProofRef
from bsl.storage.artifacts.schemas import PROOF
from bsl.storage.artifacts.store import Store
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.errors import SourceError
from bsl.storage.sources.labels import label_source
from bsl.storage.sources.own_text import text_sources
from bsl.storage.sources.reading_config import ReadingConfig
from bsl.tasks.adaptation import choose_encoder, choose_share
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.corpus.labels import labelled_rows
from bsl.tasks.corpus.passages import read_passages
from bsl.tasks.embedding.encoders import resolve
from bsl.tasks.stage.progress import planning

pytestmark = pytest.mark.usefixtures("without_charts")

SMALL = {
    "translators": "",
    "training": {"max_steps": 3, "batch_size": 8},
    "proof": {"questions": 60, "shares": [0.5, 1.0]},
    "hold_out": {"limit": 200, "report": 200},
    "evaluation": {"sets": ["stsb/test"], "dev": None, "bootstrap": {"resamples": 200}},
}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Write NLI hypotheses, with their premises as titles, to a CSV and a JSONL file."""
    folder = tmp_path_factory.mktemp("own")
    nli = pl.read_parquet(embedded_path("nli-sample") / "train.parquet").unique("premise", maintain_order=True)
    rows = nli.head(700).select(title="premise", body="hypothesis", label=pl.int_range(pl.len()) % 3)
    rows.head(400).write_csv(folder / "first.csv")
    rows.tail(300).write_ndjson(folder / "second.jsonl")
    return folder


@pytest.fixture(scope="module")
def lines(own):
    return pl.read_csv(own / "first.csv")["body"].unique(maintain_order=True)


@pytest.fixture(scope="module")
def start(shallow):
    return str(shallow)


@pytest.fixture(scope="module")
def site(few_stsb_rows):
    return few_stsb_rows


@pytest.fixture(scope="module")
def made(store):
    return lambda ref, name, kind: kind(key=store.manifest(ref).provenance.inputs[name].key)


def adapted(texts, start, labels, changes, site, **options):
    """Adapt outside of Prefect, whose server's work would take as long."""
    return run_adapt(texts, start, labels, override(AdaptConfig(), changes), site, **options)


@pytest.fixture(scope="module")
def by_titles(own, site, start):
    """Adapt without labels, to texts with titles."""
    return adapt([str(own)], start, None, SMALL, site)


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_lines(path, texts):
    path.write_text("".join(f"{text}\n" for text in texts))
    return str(path)


def test_adapt_exports_the_adapted_encoder_only_if_better(own, site, store, start, made, by_titles):
    figures = store.manifest(by_titles).figures
    proof = store.scan(made(by_titles, "proof", ProofRef)).collect()
    roles = dict(proof.select("evidence", "role").rows())
    assert roles.keys() >= {"title", "crop", "stsb test"}
    assert roles["crop"] == roles["title"] == "reported"
    exported = store.fetch(made(by_titles, "adapted", CheckpointRef)) / ENCODER
    assert (files(exported) == files(Path(start))) is (figures["verdict"] != "BETTER")
    page = (store.fetch(by_titles) / "report.html").read_text()
    assert f"bsl adapt {own} --encoder {start} --config settings.json" in page
    before = {str(found) for found in store.refs()}
    scripted = bsl.adapt([own], start, changes=SMALL, **site.model_dump(exclude_unset=True))  # cache hits
    assert {str(found) for found in store.refs()} == before
    assert scripted.ref == by_titles
    assert scripted.encoder.encode(["A dog."]).tolist() == SentenceEncoder.load(exported).encode(["A dog."]).tolist()


def test_unlabelled_text_file_is_order_independent_and_not_proved(lines, own, site, store, start, made, tmp_path):
    read = []
    for name, texts in (("sorted", lines.sort()), ("shuffled", lines.shuffle(seed=5))):
        (source,) = text_sources(ReadingConfig(), [write_lines(tmp_path / f"{name}.txt", texts)])
        passages = read_passages(site, (source.model_copy(update={"name": "list"}),), AdaptConfig().hold_out)
        read.append(store.scan(passages).collect())
    assert read[0].equals(read[1])
    text = str(tmp_path / "shuffled.txt")
    ref = adapted([text], start, None, SMALL, site)
    figures = store.manifest(ref).figures
    assert figures["verdict"] == "NOT PROVED"
    proof = store.scan(made(ref, "proof", ProofRef)).collect()
    assert "neighbour" not in proof["evidence"].to_list()
    assert "decides" not in proof["role"].to_list()
    assert store.manifest(made(ref, "adapted", CheckpointRef)).figures["adapted"] is False
    to_label = pl.read_csv(store.fetch(ref) / "to-label.csv")
    assert f"label all {to_label.height} texts (half are for the test)" in str(figures["advice"])
    assert {*to_label["text"]} == {*lines.filter(lines.str.len_chars() >= 20)}
    assert to_label["label"].null_count() == to_label.height
    taken = adapted([text], start, None, SMALL | {"accept": True}, site)
    assert files(store.fetch(made(taken, "adapted", CheckpointRef)) / ENCODER) != files(Path(start))
    assert "NOT PROVED" in (store.fetch(taken) / "report.md").read_text()
    with pytest.raises(ValueError, match="--accept: conflicts with --labels"):
        adapted([text], start, str(own / "first.csv"), {"accept": True}, site)


def test_largest_share_that_forgets_little_is_chosen(site, store, start, made, by_titles):
    found, dev = resolve(site, EncoderConfig(model=start)), resolve_scored_set(site, "stsb/dev")
    merged = made(made(by_titles, "proof", ProofRef), "adapted", CheckpointRef)
    trained = made(merged, "trained", CheckpointRef)
    for most, share, tried in ((100, 1.0, [0.0, 1.0]), (-100, 0.5, [0.0, 1.0, 0.5])):
        weighing = choose_share(site, found.encoder, trained, dev, (0.5, 1.0), most, found.config)
        assert store.manifest(weighing).figures["share"] == share
        assert store.scan(weighing).collect()["share"].to_list() == tried


def test_worse_encoder_is_not_exported_even_if_accepted(site, store, start, made, by_titles):
    original, proof = resolve(site, EncoderConfig(model=start)).encoder, made(by_titles, "proof", ProofRef)
    worse = ProofRef(key="0" * 64)
    with store.draft(worse, Provenance(stage_version=1, config={})) as draft:
        draft.write(pl.DataFrame(schema=PROOF))
        draft.note(store.manifest(proof).figures | {"verdict": "WORSE"})
    adapted = choose_encoder(site, original, made(proof, "adapted", CheckpointRef), worse, accept=True)
    assert files(store.fetch(adapted) / ENCODER) == files(Path(start))


def test_encoder_argument_overrides_encoder_in_the_config(own, site):
    for given in ("nowhere", "elsewhere"):
        argument = "./elsewhere" if given == "elsewhere" else None
        with pytest.raises(SourceError, match=f"{given}: no such folder"):
            adapt([str(own)], argument, config={"encoder": {"model": "./nowhere"}}, site=site)


@pytest.mark.slow
def test_labels_only_judge_excludes_labelled_texts_from_training(own, site, store, start, made):
    labels = own / "labels.tsv"
    rows = pl.concat([pl.read_csv(own / "first.csv"), pl.read_ndjson(own / "second.jsonl")])
    rows.filter(pl.col("body").str.len_chars() > 20).select("body", "label").head(120).write_csv(labels, separator="\t")
    ref = adapted([str(own / "first.csv")], start, str(labels), SMALL, site, labels_only_judge=True)
    proof = store.scan(made(ref, "proof", ProofRef)).collect()
    assert proof.filter(role="decides")["evidence"].to_list() == ["your labels"]
    passages = store.scan(made(ref, "passages", PassagesRef)).collect()
    learnt = store.scan(made(ref, "corpus", CorpusRef)).collect()
    labelled = {*pl.read_csv(labels, separator="\t")["body"]}
    assert labelled.isdisjoint(learnt["text"])
    assert labelled & {*passages.filter(part="train")["text"]}


def test_labels_split_into_disjoint_training_and_test_rows(own, site, store, start, made, tmp_path):
    """200 labelled rows are the only text."""
    rows, path = pl.read_csv(own / "first.csv").select("body", "label").head(200), tmp_path / "rows.csv"
    rows.with_columns(label=pl.col("label") % 2).write_csv(path)
    ref = adapted([str(path)], start, str(path), SMALL | {"label_training": {"max_steps": 3}}, site)
    proof = store.scan(made(ref, "proof", ProofRef)).collect()
    assert proof.filter(role="decides")["evidence"].to_list() == ["your labels"]
    passages = made(ref, "passages", PassagesRef)
    judging = labelled_rows(store, passages, label_source(str(path)), use="adapt").filter(part="judge")["text_1"]
    pairs = store.scan(made(ref, "pairs", PairsRef)).collect()
    scored, general = (pairs.filter(pl.col("score").is_null() == absent) for absent in (False, True))
    learnt = {*scored["text_1"], *scored["text_2"]}
    assert learnt.isdisjoint(judging)
    assert learnt | {*judging} <= {*rows["body"]}
    assert min(len(learnt), len(judging)) > 60
    of_set, own_text = (general.filter((pl.col("source") == "own text") == is_own) for is_own in (False, True))
    assert 2 * of_set.height == 2 * own_text.height == general.height == scored.height / 2
    assert {*of_set["text_1"]} <= {*pl.read_parquet(embedded_path("stsb") / "train.parquet")["sentence1"]}
    training_text = " ".join(learnt)
    assert all(text in training_text for text in (*own_text["text_1"], *own_text["text_2"]))  # sentences and halves
    figures = store.manifest(ref).figures
    assert figures["rows"] == {
        "training sentences": len({*store.scan(made(ref, "corpus", CorpusRef)).collect()["text"]}),
        "training labels": len(learnt),
        "test labels": len(judging),
        "held-out sentences": store.scan(passages).filter(part="report").collect().height,
    }
    roles = {row["use"]: row["role"] for row in figures["uses"]}
    assert roles == {"classify": "decides", "group": "reported", "search": "reported"}
    assert figures["used_for"] == "classify"


def test_adapt_command_rejects_unknown_setting_and_missing_file(own, site, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("wrong.json").write_text(json.dumps({"training": {"max_stps": 3}}))
    for words, code, said in (([str(own), "--config", "wrong.json"], 2, "max_stps"), (["none.txt"], 1, "none.txt")):
        assert main(["adapt", *words, "--store", site.store]) == code
        assert said in capsys.readouterr().err


def test_adapt_options_that_conflict_are_refused():
    with pytest.raises(ValueError, match="--views crops: conflicts with --labels"):
        AdaptConfig(views="crops").use_of(labels=True, only_judge=False)
    with pytest.raises(ValueError, match="--labels-only-judge: expected --labels FILE"):
        AdaptConfig().use_of(labels=False, only_judge=True)
    assert AdaptConfig(views="crops").use_of(labels=True, only_judge=True) == "judge"


def test_adapt_config_views_determine_the_pairings():
    assert AdaptConfig().view_names == ("crops",)
    assert AdaptConfig(views="both").view_names == ("crops", "round trips")
    assert AdaptConfig(lang="de").trip.method == "bt-en"
    assert [pairing.source for pairing in AdaptConfig(views="both").pairs.pairings] == ["crop|crop-2", "original|bt-de"]


def test_search_is_refused_if_all_questions_resemble_the_training(lines, site, start, tmp_path):
    """A list of independent sentences has questions about their halves only, and crops train on halves."""
    text = write_lines(tmp_path / "list.txt", lines)
    with pytest.raises(EvaluationError, match=r"--for search: the only questions .* --views round-trips"):
        adapted([text], start, None, SMALL | {"used_for": "search"}, site)


def test_objective_that_cannot_train_the_encoder_is_refused_before_translation(own, site, start, tmp_path):
    store = Store(str(tmp_path / "store"))
    changes = SMALL | {"views": "round-trips", "translators": "embedded", "training": {"objective": {"dims": [10_000]}}}
    with pytest.raises(TrainingError, match=r"dims contains \[10000\], expected numbers below the encoder's width"):
        adapted([str(own)], start, None, changes, site.model_copy(update={"store": store.url}))
    assert {ref.kind for ref in store.refs()} == {"passages", "corpus", "views"}  # views that need no translation


@pytest.mark.parametrize("views", ["crops", "round-trips"])
def test_adapt_plans_translation_only_for_round_trip_views(own, site, start, views):
    with planning() as steps:
        run_adapt([str(own)], start, None, AdaptConfig(views=views), site)
    assert ("corpus_sample" in {step.stage for step in steps}) is (views == "round-trips")
