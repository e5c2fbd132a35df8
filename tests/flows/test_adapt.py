"""`bsl adapt` reads own files and exports the adapted encoder if it is BETTER, else the original encoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import bsl
from bsl import SentenceEncoder
from bsl.flows.adaptation import adapt, general_sets, run_adapt
from bsl.flows.cli.main import main
from bsl.flows.config import override
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EvaluationError
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.views.pairs import PairConfig
from bsl.storage.artifacts.refs import ENCODER, CheckpointRef, CorpusRef, PairsRef, PassagesRef, ProofRef
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.errors import SourceError
from bsl.storage.sources.labels import label_source
from bsl.storage.sources.own_text import ReadingConfig
from bsl.tasks.adaptation import choose_encoder, choose_share, evaluate_adaptation, merge
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.corpus.labels import labelled_rows
from bsl.tasks.corpus.passages import read_passages
from bsl.tasks.embedding.embed import embed
from bsl.tasks.embedding.encoders import resolve
from bsl.tasks.evaluation.own_text import HeldOutSet
from bsl.tasks.stage.cached import StageContext, stage
from bsl.tasks.stage.progress import planning
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.training.train import train

if TYPE_CHECKING:
    from bsl.storage.artifacts.refs import ArtifactRef

pytestmark = pytest.mark.usefixtures("without_charts")

SMALL = {
    "translators": "",
    "training": {"max_steps": 3, "batch_size": 8},
    "proof": {"questions": 60, "shares": [0.5, 1.0]},
    "hold_out": {"limit": 200, "report": 200},
    "evaluation": {"sets": ["stsb/test"], "dev": None, "bootstrap": {"resamples": 200}},
}


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    """Write NLI hypotheses, with their premises as titles, to a CSV and a JSONL file."""
    folder = tmp_path_factory.mktemp("own")
    nli = pl.read_parquet(embedded_path("nli-sample") / "train.parquet").unique("premise", maintain_order=True)
    rows = nli.head(700).select(title="premise", body="hypothesis", label=pl.int_range(pl.len()) % 3)
    rows.head(400).write_csv(folder / "first.csv")
    rows.tail(300).write_ndjson(folder / "second.jsonl")
    return folder


@pytest.fixture(scope="module")
def start(shallow) -> str:
    return str(shallow)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> RunContext:
    mirror = tmp_path_factory.mktemp("mirror")
    (mirror / "stsb").mkdir()
    for split in ("dev", "test"):
        pl.read_parquet(embedded_path("stsb") / f"{split}.parquet").write_parquet(mirror / "stsb" / f"{split}.parquet")
    return RunContext(
        store=str(tmp_path_factory.mktemp("adapt") / "store"), mirror=str(mirror), device="cpu", threads=1
    )


def made_of(site: RunContext, ref: ArtifactRef, name: str) -> str:
    return site.open_store().manifest(ref).provenance.inputs[name].key


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_adapt_exports_the_adapted_encoder_only_if_better(own, site, start, capsys) -> None:
    ref = adapt([str(own)], start, None, SMALL, site)
    store = site.open_store()
    figures = store.manifest(ref).figures
    proof = store.scan(ProofRef(key=made_of(site, ref, "proof"))).collect()
    assert {*proof["evidence"]} >= {"title", "crop", "stsb test"}
    assert proof.filter(evidence="crop")["role"].to_list() == ["reported"]
    assert proof.filter(evidence="title")["role"].to_list() == ["reported"]
    exported = store.fetch(CheckpointRef(key=made_of(site, ref, "adapted"))) / ENCODER
    unchanged = files(exported) == files(Path(start))
    assert unchanged is (figures["verdict"] != "BETTER")
    page = (store.fetch(ref) / "report.md").read_text()
    assert str(figures["reason"]) in page
    assert "second: second.jsonl" in page
    assert f"bsl adapt {own} --encoder {start} --config settings.json" in (store.fetch(ref) / "report.html").read_text()

    capsys.readouterr()
    assert main(["artifacts", "show", ref.path, "--store", site.store]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(str(figures["findings"][0])[:60])
    assert shown.index("What the adapted encoder is better for") < shown.index("All figures") < shown.index('"kind"')

    before = {str(found) for found in store.refs()}
    assert adapt([str(own)], start, None, SMALL, site) == ref
    assert {str(found) for found in store.refs()} == before

    runtime = site.model_dump(exclude_unset=True)
    scripted = bsl.adapt([own], start, changes=SMALL, **runtime)  # cache hits, made by the flow
    assert scripted.ref == ref
    assert scripted.page.name == "report.html"
    assert scripted.encoder.encode(["A dog."]).tolist() == SentenceEncoder.load(exported).encode(["A dog."]).tolist()


def test_unlabelled_text_file_is_order_independent_and_not_proved(own, site, start, tmp_path) -> None:
    lines = pl.read_csv(own / "first.csv")["body"].unique(maintain_order=True)
    read = []
    for name, texts in (("sorted", lines.sort()), ("shuffled", lines.shuffle(seed=5))):
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
        (source,) = ReadingConfig().sources([str(tmp_path / f"{name}.txt")])
        passages = read_passages(site, (source.model_copy(update={"name": "list"}),), AdaptConfig().hold_out)
        read.append(site.open_store().scan(passages).collect())
    assert read[0].equals(read[1])
    ref = adapt([str(tmp_path / "shuffled.txt")], start, None, SMALL, site)
    figures = site.open_store().manifest(ref).figures
    assert figures["verdict"] == "NOT PROVED"
    assert "label about 800 rows (half are for the test)" in str(figures["advice"])
    assert "better on labels in 24 of 60 cases, the same in 32 and worse in 4" in str(figures["advice"])
    proof = site.open_store().scan(ProofRef(key=made_of(site, ref, "proof"))).collect()
    assert "neighbour" not in proof["evidence"].to_list()
    assert "decides" not in proof["role"].to_list()
    adapted = CheckpointRef(key=made_of(site, ref, "adapted"))
    assert site.open_store().manifest(adapted).figures["adapted"] is False
    page = (site.open_store().fetch(ref) / "report.md").read_text()
    assert "Exported: the original encoder, unchanged." in page
    assert "Weights of the adapted encoder: 25 % from the trained encoder" in page

    assert "to-label.csv, beside this page, has" in page
    to_label = pl.read_csv(site.open_store().fetch(ref) / "to-label.csv")
    assert {*to_label["text"]} == {*lines.filter(lines.str.len_chars() >= 20)}
    assert to_label["label"].null_count() == to_label.height

    taken = adapt([str(tmp_path / "shuffled.txt")], start, None, SMALL | {"accept": True}, site)
    exported = site.open_store().fetch(CheckpointRef(key=made_of(site, taken, "adapted"))) / ENCODER
    assert files(exported) != files(Path(start))
    page = (site.open_store().fetch(taken) / "report.md").read_text()
    assert "NOT PROVED" in page
    assert "Exported: the adapted encoder without proof, by --accept." in page
    with pytest.raises(ValueError, match="--accept: conflicts with --labels"):
        adapt([str(own / "first.csv")], start, str(own / "first.csv"), {"accept": True}, site)


def test_general_sets_always_include_the_stsb_test_split(site) -> None:
    assert [*general_sets(site, ("stsb/test",)).sets] == ["stsb/test"]
    assert [*general_sets(site, ("stsb/dev",)).sets] == ["stsb/dev", "embedded:stsb/test"]


def test_encoder_argument_overrides_encoder_in_the_config(own, site) -> None:
    with pytest.raises(SourceError, match="nowhere: no such folder"):
        adapt([str(own)], config={"encoder": {"model": "./nowhere"}}, site=site)
    with pytest.raises(SourceError, match="elsewhere: no such folder"):
        adapt([str(own)], "./elsewhere", config={"encoder": {"model": "./nowhere"}}, site=site)


@pytest.mark.slow
def test_labels_only_judge_excludes_labelled_texts_from_training(own, site, start) -> None:
    labels = own / "labels.tsv"
    rows = pl.concat([pl.read_csv(own / "first.csv"), pl.read_ndjson(own / "second.jsonl")])
    rows.filter(pl.col("body").str.len_chars() > 20).select("body", "label").head(120).write_csv(labels, separator="\t")
    ref = adapt([str(own / "first.csv")], start, str(labels), SMALL, site, labels_only_judge=True)
    store = site.open_store()
    proof = store.scan(ProofRef(key=made_of(site, ref, "proof"))).collect()
    assert proof.filter(role="decides")["evidence"].to_list() == ["your labels"]
    passages = store.scan(PassagesRef(key=made_of(site, ref, "passages"))).collect()
    learnt = store.scan(CorpusRef(key=made_of(site, ref, "corpus"))).collect()
    labelled = {*pl.read_csv(labels, separator="\t")["body"]}
    assert labelled.isdisjoint(learnt["text"])
    assert labelled & {*passages.filter(part="train")["text"]}


def test_labels_split_into_disjoint_training_and_test_rows(own, site, start, tmp_path) -> None:
    """200 labelled rows are the only text."""
    rows, path = pl.read_csv(own / "first.csv").select("body", "label").head(200), tmp_path / "rows.csv"
    rows.with_columns(label=pl.col("label") % 2).write_csv(path)
    ref = adapt([str(path)], start, str(path), SMALL | {"label_training": {"max_steps": 3}}, site)
    store = site.open_store()
    proof = store.scan(ProofRef(key=made_of(site, ref, "proof"))).collect()
    assert proof.filter(role="decides")["evidence"].to_list() == ["your labels"]
    pairs = store.scan(PairsRef(key=made_of(site, ref, "pairs"))).collect()
    passages = PassagesRef(key=made_of(site, ref, "passages"))
    labelled = labelled_rows(store, passages, label_source(str(path)), use="adapt").filter(part="judge")
    judging = {*labelled["text_1"]}
    scored, general = (pairs.filter(pl.col("score").is_null() == absent) for absent in (False, True))
    learnt = {*scored["text_1"], *scored["text_2"]}
    assert 2 * general.height == scored.height
    stsb = pl.read_parquet(embedded_path("stsb") / "train.parquet")
    of_set, own_text = (general.filter((pl.col("source") == "own text") == is_own) for is_own in (False, True))
    assert of_set.height == own_text.height
    assert {*of_set["text_1"]} <= {*stsb["sentence1"]}
    training_text = " ".join(learnt)
    assert all(text in training_text for text in (*own_text["text_1"], *own_text["text_2"]))  # sentences and halves
    assert learnt.isdisjoint(judging)
    assert learnt | judging <= {*rows["body"]}
    assert store.manifest(ref).figures["rows"] == {
        "training sentences": 0,
        "training labels": len(learnt),
        "test labels": labelled.height,
        "held-out sentences": store.scan(passages).filter(pl.col("part") == "report").select(pl.len()).collect().item(),
    }
    assert len(learnt) > 60
    assert len(judging) > 60
    uses = {row["use"]: row for row in store.manifest(ref).figures["uses"]}
    assert {name: row["role"] for name, row in uses.items()} == {
        "classify": "decides", "group": "reported", "search": "reported",
    }  # fmt: skip
    assert store.manifest(ref).figures["used_for"] == "classify"
    assert set(store.scan(ProofRef(key=made_of(site, ref, "proof")), "samples").collect()["kind"]) <= {
        "neighbour",
        "class",
    }
    page = (store.fetch(ref) / "report.md").read_text()
    assert page.startswith(f"# {Path(start).name} adapted to rows.csv\n")
    assert f"| training labels | {len(learnt)} |" in page
    assert page.count("training sentences") == 1


def test_views_conflict_with_labels() -> None:
    with pytest.raises(ValueError, match="--views crops: conflicts with --labels"):
        AdaptConfig(views="crops").use_of(labels=True, only_judge=False)
    with pytest.raises(ValueError, match="--labels-only-judge: expected --labels FILE"):
        AdaptConfig().use_of(labels=False, only_judge=True)
    assert AdaptConfig(views="crops").use_of(labels=True, only_judge=True) == "judge"


@stage(ref=PairsRef, version=1)
def mismatched(context: StageContext, passages: PassagesRef) -> None:
    """Pair each sentence with an unrelated one."""
    texts = context.store.scan(passages).filter(pl.col("part") == "train").collect()["text"]
    numbers = pl.int_range(len(texts), dtype=pl.UInt64, eager=True)
    frame = pl.DataFrame({"pair_id": numbers, "sentence_id": numbers, "text_1": texts, "text_2": texts.shuffle(seed=1)})
    nothing = {"label": pl.Int8, "score": pl.Float32, "group": pl.UInt64}
    context.draft.write(
        frame.with_columns(lang_1=pl.lit("en"), lang_2=pl.lit("en"), source=pl.lit("mismatched")).with_columns(
            **{name: pl.lit(None, dtype) for name, dtype in nothing.items()}
        )
    )


def test_harmful_adaptation_is_worse_and_exports_the_original_encoder(
    own, site, start, tmp_path, monkeypatch, caplog
) -> None:
    config = override(AdaptConfig(), SMALL, {"proof": {"share": 1}})
    found = resolve(site, EncoderConfig(model=start))
    original, reading = found.encoder, found.config
    passages = read_passages(site, ReadingConfig().sources([str(own)]), config.hold_out)
    harm = TrainingConfig(
        precision="fp32",
        objective=ContrastiveConfig(),
        lr=3e-3,
        max_steps=12,
        batch_size=16,
        select="last",
        collapse=None,
    )
    trained = train(site, mismatched(site, passages), original, None, reading, harm)
    rows = pl.concat([pl.read_csv(own / "first.csv"), pl.read_ndjson(own / "second.jsonl")])
    of_another = pl.int_range(pl.len()) % 2 == 1
    pairs = rows.select(
        sentence_1="body",
        sentence_2=pl.when(of_another).then(pl.col("title").shift(7, fill_value="Nobody is here.")).otherwise("title"),
        score=pl.when(of_another).then(0).otherwise(1),
    )
    pairs.write_csv(tmp_path / "pairs.csv")
    held_out = HeldOutSet(
        passages=passages,
        labels=label_source(str(tmp_path / "pairs.csv")),
        use="judge",
        questions=config.proof.questions,
        store=site.store,
    )
    weighing = choose_share(site, original, trained, None, (config.proof.share,), 0.5, reading)
    merged = merge(site, original, trained, weighing, reading)
    vectors = tuple(embed(site, encoder, (held_out,), reading, "fp32") for encoder in (original, merged))
    sets = {f"own:{held_out.dataset}": held_out}
    proof = evaluate_adaptation(
        site, vectors, merged, sets, (), config.evaluation.bootstrap, 0.5, "similarity", ("crops",)
    )
    adapted = choose_encoder(site, original, merged, proof)
    store = site.open_store()
    assert store.manifest(proof).figures["verdict"] == "WORSE"
    assert files(store.fetch(adapted) / ENCODER) == files(Path(start))
    assert store.manifest(weighing).figures["share"] == 1.0
    monkeypatch.setattr("bsl.tasks.adaptation._spearman", lambda *_: 0.5)  # nothing is lost: the first share is enough
    with caplog.at_level("INFO", logger="bsl.tasks.stage.ui"):
        dev = resolve_scored_set(site, "embedded:stsb/dev")
        choose_share(site, original, trained, dev, (0.5, 1.0), 0.5, reading)
    assert "choosing the share, shares: 2 of 2" in caplog.text


def test_adapt_command_rejects_unknown_setting_and_missing_file(own, site, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"training": {"max_stps": 3}}))
    assert main(["adapt", str(own), "--config", str(wrong), "--store", site.store]) == 2
    assert "max_stps" in capsys.readouterr().err
    assert main(["adapt", str(tmp_path / "nothing.txt"), "--store", site.store]) == 1
    assert "nothing.txt" in capsys.readouterr().err


def test_adapt_config_views_determine_the_pairings() -> None:
    config = AdaptConfig()
    assert config.view_names == ("crops",)
    assert AdaptConfig(views="both").view_names == ("crops", "round trips")
    assert AdaptConfig(lang="de").trip.method == "bt-en"
    pairs = config.pairs(("crops", "round trips"))
    assert isinstance(pairs, PairConfig)
    assert [pairing.source for pairing in pairs.pairings] == ["crop|crop-2", "original|bt-de"]


def test_search_is_refused_if_all_questions_resemble_the_training(own, site, start, tmp_path) -> None:
    """A list of independent sentences has questions about their halves only, and crops train on halves."""
    lines = pl.read_csv(own / "first.csv")["body"].unique(maintain_order=True)
    (tmp_path / "list.txt").write_text("".join(f"{text}\n" for text in lines))
    with pytest.raises(EvaluationError, match=r"--for search: the only questions .* --views round-trips"):
        adapt([str(tmp_path / "list.txt")], start, None, SMALL | {"used_for": "search"}, site)


@pytest.mark.parametrize("views", ["crops", "round-trips"])
def test_adapt_plans_translation_only_for_round_trip_views(own, site, start, views) -> None:
    with planning() as steps:
        run_adapt([str(own)], start, None, AdaptConfig(views=views), site)
    assert ("corpus_sample" in {step.stage for step in steps}) is (views == "round-trips")
