"""Run every stage on a few sentences, outside of Prefect: small runs, and calls of the stages that they lack."""

import json
import shutil
from pathlib import Path

import polars as pl
from safetensors.numpy import load_file, save_file

from bsl.flows.adaptation import run_adapt
from bsl.flows.comparison import compared
from bsl.flows.config import override
from bsl.flows.pipeline import run
from bsl.flows.recipes import recipe
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.models.encoder.config import EncoderConfig, WordsConfig
from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.training.config import AFS_CONFIG, STSB_CONFIG
from bsl.models.transforms.config import WhiteningConfig
from bsl.models.translation.config import MINI
from bsl.models.views.config import DeletedView, SynonymView
from bsl.storage.artifacts.refs import ArtifactRef, CorpusRef
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.readers.benchmarks.afs import TOPICS
from bsl.storage.sources.model_sources import resolve_model
from bsl.storage.sources.word_vectors import ResolvedWordNet, find_vectors_file
from bsl.tasks.corpus.evaluation_sets import resolve_scored_set
from bsl.tasks.embedding.embed import embed, embed_tfidf
from bsl.tasks.embedding.encoders import import_vectors
from bsl.tasks.embedding.python_encoders import embed_corpus
from bsl.tasks.embedding.shards import embed_shard
from bsl.tasks.embedding.transforms import fit_on_sets
from bsl.tasks.evaluation.afs import find_afs_set
from bsl.tasks.evaluation.finetuning.afs import predict_afs, score_afs_predictions
from bsl.tasks.evaluation.finetuning.finetune import FineTuning
from bsl.tasks.evaluation.finetuning.sts import score_supervised, summarise_seeds
from bsl.tasks.evaluation.kinds import tables
from bsl.tasks.reporting.evaluation import Missing, summarise
from bsl.tasks.reporting.reproduction import RowComparison, reproduce
from bsl.tasks.stage.progress import listening
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.stage.shards import write_shards
from bsl.tasks.views.methods import deleted, synonym
from tests.tiny_wordnet import write_tiny_wordnet

ENCODER, OWN = "first-layer", "own.csv"
FEW = {"resamples": 100}
EQUAL = {"precision": "fp32"}  # of translations: int8's roundings depend on the processor
STEPS = {"precision": "fp32", "batch_size": 8, "max_steps": 2, "eval_every": 2, "collapse": None}
SCORES = {"precision": "fp32", "bootstrap": FEW, "dev": "stsb/dev", "probe": {"folds": 3, "max_epoch": 8}}


def context():
    """Return the context of the runs: relative paths, which are equal on all machines."""
    return RunContext(store="store", mirror="mirror", cache="cache", device="cpu")


def prepare(folder):
    """Write the sets and the encoder that the runs read, and return the folder."""
    write_sets(folder / "mirror", folder / OWN)
    write_first_layer(folder / ENCODER)
    return folder


def made():
    """Run every stage in the working directory, a prepared folder."""
    site = context()
    calls: dict[ArtifactRef, str] = {}

    def note(event, value):
        if event == "ends":
            calls.setdefault(value.ref, value.stage)

    with listening(note):
        runs = [distilled(site), whitened(site)]
        compared(site, (runs[0].report, runs[1].report), "bsl compare")
        reproduced(site, runs)
        adapted(site)
        _single_calls(site, runs[0])
        _finetuned(site)
    return site, [(stage, ref) for ref, stage in calls.items()]


def write_sets(mirror, own):
    """Write 40 pairs of STS-B, AFS's three files, SentEval's files of MR, and 60 labelled sentences."""
    for name in ("stsb", "afs", "MR"):
        (mirror / name).mkdir(parents=True)
    pairs = pl.read_parquet(embedded_path("stsb") / "test.parquet").head(40)
    for split in ("train", "dev", "test"):
        pairs.write_parquet(mirror / "stsb" / f"{split}.parquet")
    texts = pairs.select("score", "sentence1", "sentence2").head(12).rows()
    for topic in TOPICS:
        rows = [[score, *"abcdefgh", *both] for score, *both in texts]
        pl.DataFrame(4 * rows, orient="row").write_csv(mirror / "afs" / f"ArgPairs_{topic}.csv")
    for polarity, word in (("pos", "fine"), ("neg", "dull")):
        lines = "".join(f"A {word} film, number {number}.\n" for number in range(20))
        (mirror / "MR" / f"rt-polarity.{polarity}").write_text(lines)
    films = [(f"A fine film, number {number}.", "film") for number in range(30)]  # far from the others: no near ties
    rest = [(text, "other") for text in pairs["sentence1"].unique(maintain_order=True).head(30)]
    pl.DataFrame(films + rest, schema=["text", "label"], orient="row").write_csv(own)


def write_first_layer(folder):
    """Write the embedded BERT with the first of its four layers, byte for byte the same on every machine."""
    folder.mkdir()
    whole = embedded_path("bert-mini")
    weights = load_file(whole / "model.safetensors")
    save_file(
        {name: x for name, x in weights.items() if ".layers." not in name or ".layers.0." in name},
        folder / "model.safetensors",
    )
    config = json.loads((whole / "config.json").read_text())
    config |= {"num_hidden_layers": 1, "layer_types": config["layer_types"][:1]}
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(whole / name, folder)


def nli_rows():
    """Return 24 rows of the embedded NLI sample with a column of labels, and one of given views."""
    rows = pl.read_parquet(embedded_path("nli-sample") / "train.parquet").unique("premise", maintain_order=True)
    # Rounding, which depends on the processor, decides between two translations of the boxers.
    rows = rows.filter(~pl.col("premise").str.contains("boxer")).head(24)
    return rows.select("premise", "hypothesis", label=pl.int_range(pl.len()) % 3)


def write_rows(name, rows):
    """Write rows as JSON lines; return the path."""
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows.to_dicts()))
    return name


def distilled(site):
    """Train on labels, on scores, and on translated and other views with two teachers; score on all kinds of sets."""
    base = recipe("tiny")
    ingest = {"sources": [{"path": write_rows("nli.jsonl", nli_rows())}]}
    vectors = embed_corpus(_lengths, override(base, {"ingest": ingest}).ingest, site)
    train = {**base.training.model_dump(), **STEPS}
    pairings = [{"view_1": "original", "view_2": view} for view in ("bt-de", "entail", "mlm", "crop")]
    changes = {
        "ingest": ingest,
        "augment": {
            "translations": base.augment.translations[:1],
            **EQUAL,
            "rewritings": [
                {"name": "entail"},
                {"name": "crop"},
                {"name": "mlm", "model": ENCODER, "revision": None},
            ],
        },
        "earlier": [
            {"pairs": {"labelled": True}, "training": {**train, "objective": {"name": "softmax"}}},
            {"pairs": {"scored": "stsb/train"}, "training": {**train, "objective": {"name": "regression"}}},
        ],
        "pairs": {"pairings": pairings, "subsample_words": None},
        "encoder": {"model": ENCODER},
        "teacher": {"model": ENCODER},
        "more_teachers": [{"model": vectors.path}],
        "training": {**train, "objective": {"name": "distil"}},
        "evaluation": {**SCORES, "sets": ["stsb/dev", "stsb/test", "afs", "mr", f"labels:{OWN}"]},
    }
    return run(override(base, changes), site, "bsl run tiny")


def whitened(site):
    """Train on given views, then fold a whitening into the encoder."""
    base = recipe("tiny")
    changes = {
        "ingest": {"sources": [{"path": write_rows("given.jsonl", nli_rows()), "columns": ["premise"]}]},
        "augment": {"translations": [], "given": [{"method": "given", "column": "hypothesis"}]},
        "pairs": {"pairings": [{"view_1": "original", "view_2": "given"}], "subsample_words": None},
        "encoder": {"model": ENCODER},
        # Steps too small to matter: whitening divides by small variances, which enlarges differences of rounding.
        "training": {**STEPS, "lr": 1e-8},
        "transform": {"name": "whitening", "dimensions": 8},
        "evaluation": {**SCORES, "sets": ["stsb/dev", "stsb/test"]},
    }
    return run(override(base, changes), site, "bsl run tiny")


def _lengths(texts):
    return [[float(len(text)), text.count("a"), 1.0] for text in texts]


def adapted(site):
    """Adapt on labels of classes; then, without labels, on crops and round trips; score the encoder on own text."""
    rows = pl.read_parquet(embedded_path("nli-sample") / "train.parquet").unique("premise", maintain_order=True)
    own = rows.head(240).select(title="premise", body="hypothesis")
    text = write_rows("own.jsonl", own)
    halves = pl.Series(120 * ["Good", "Bad"])
    labels = write_rows("classes.jsonl", own.select(text=halves + ": " + own["body"], label=halves))
    hold_out = {"limit": 200, "report": 200}
    changes = {
        "training": STEPS,
        "label_training": STEPS,
        "proof": {"questions": 30, "shares": [0.5, 1.0]},
        "hold_out": hold_out,
        "rehearsal": "stsb/train",
        "translators": {pair: {**MINI[pair].model_dump(), **EQUAL} for pair in ("en-de", "de-en")},
        "translated": 6,
        "evaluation": {**SCORES, "sets": ["stsb/test"]},
    }
    taught = run_adapt([text], ENCODER, labels, override(AdaptConfig(), changes), site, "bsl adapt")
    crops = run_adapt([text], ENCODER, None, override(AdaptConfig(), changes, {"views": "both"}), site, "bsl adapt")
    scored = {
        "ingest": {"sources": [{"path": text}], "own_text": {"labels": labels, "hold_out": hold_out}},
        "encoder": {"model": ENCODER},
        "evaluation": {**SCORES, "sets": ["stsb/test"], "dev": None},
    }
    return taught, crops, run(override(recipe("tiny-avg"), scored), site, "bsl run tiny-avg").report


def _single_calls(site, trained):
    """Call the stages that read resources of the machine, or large inputs."""
    store, encoder = site.open_store(), resolve_model(ENCODER)
    manifest = store.manifest(trained.report)
    corpus = next(CorpusRef(key=entry.key) for entry in manifest.provenance.inputs.values() if entry.kind == "corpus")
    deleted(site, corpus, "3.9", DeletedView())  # the tokenizer's version is a name in the key
    wordnet = ResolvedWordNet(folder=write_tiny_wordnet(Path("wordnet")), identity="tiny")
    synonym(site, corpus, wordnet, "0.2", SynonymView())
    words = Path("words.4d.txt")
    words.write_text("".join(f"{word} {number} 1 0 -{number}.5\n" for number, word in enumerate(("a", "man", "dog"))))
    import_vectors(site, find_vectors_file(str(words)), WordsConfig())
    sentences = store.scan(corpus).sort("sentence_id").head(8).select("sentence_id", "text").collect()
    (shard,) = write_shards([sentences], Path())
    embed_shard(site, encoder, shard, EncoderConfig(model=encoder.identity), "fp32")
    embed_tfidf(site, corpus, corpus)
    sets, network = (resolve_scored_set(site, "stsb/test"),), EncoderConfig(model=encoder.identity)
    fit_on_sets(site, embed(site, encoder, sets, network, "fp32"), sets, WhiteningConfig(dimensions=8))
    summarise(site, trained.scores, (), Missing.of({"sts12": "absent"}), (), tables())


def _finetuned(site):
    """Fine-tune on folds of AFS and on STS-B."""
    encoder, network = resolve_model(ENCODER), EncoderConfig(model="bert-mini", max_length=24)
    bootstrap = BootstrapConfig(**FEW)
    short = {"max_steps": 2, "epochs": 1, "precision": "fp32", "batch_size": 8, "eval_every": 2}
    afs = FineTuning(encoder=encoder, network=network, config=AFS_CONFIG.model_copy(update=short))
    arguments = find_afs_set(site)
    folds = tuple(predict_afs(site, afs, arguments, "cross-topic", fold, 0) for fold in range(3))
    score_afs_predictions(site, folds, "cross-topic", "tiny", "", bootstrap)
    stsb = FineTuning(encoder=encoder, network=network, config=STSB_CONFIG.model_copy(update=short))
    train, dev, test = (resolve_scored_set(site, f"stsb/{split}") for split in ("train", "dev", "test"))
    seeds = [score_supervised(site, stsb, "tiny", "", (train, dev, test), seed, bootstrap) for seed in range(2)]
    summarise_seeds(site, tuple(seeds))


def reproduced(site, runs):
    comparison = RowComparison(
        row="BSL-BERT",
        cells=("stsb/test",),
        system=runs[0].system.label,
        deviations=("another encoder",),
        records={},
        margin=1.0,
        draws=True,
    )
    reproduce(site, (runs[0].report,), comparison)
