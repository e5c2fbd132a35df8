"""Systems become one table, with a row for those without figures; the advice is only as sure as the figures."""

import polars as pl
import pytest

from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.sweep import MEAN, Choice
from bsl.storage.artifacts.refs import CorpusRef, EmbeddingsRef, PassagesRef, ScoresRef
from bsl.storage.artifacts.schemas import SCORES, SWEEP
from bsl.tasks.reporting.provenance import RunCommand
from bsl.tasks.reporting.sweep.compare import advice, compare_systems, forgetting_notes
from bsl.tasks.reporting.sweep.inputs import OwnTextComparison, SweepSettings
from bsl.tasks.reporting.sweep.system import SweepSystem
from tests.corpora import publish

OTHERS = {"afs": ("pearson", "spearman"), "toy": ("average precision",), "twenty": ("v-measure",)}


def figures(level):
    rows = [
        ("afs", "pearson", level, "unsupervised", "mean"), ("afs", "spearman", level + 0.1, "unsupervised", "mean"),
        ("afs", "spearman", 0.9, "unsupervised", "GC"), ("toy", "average precision", level, "ranked", "all"),
        ("toy", "mrr", 0.9, "ranked", "all"), ("twenty", "v-measure", level, "mteb", "all"),
        ("stsb", "pearson", 0.9, "all", "all"),
    ]  # fmt: skip
    table = pl.DataFrame(rows, schema=["dataset", "metric", "value", "protocol", "subset"], orient="row")
    drawn = pl.col("dataset") != "twenty"
    ends = {
        "ci_low": pl.when(drawn).then(pl.col("value") - 0.02),
        "ci_high": pl.when(drawn).then(pl.col("value") + 0.02),
    }
    named = {"model": pl.lit("m"), "split": pl.lit("test"), "checkpoint": pl.lit(""), "signature": pl.lit("")}
    return table.with_columns(**ends, **named, n=9, seed=0).select(SCORES.names()).cast(SCORES)


@pytest.fixture
def studied(site):
    """Return table and page of two systems: `one` with two seeds or none, `two` with one seed."""

    def call(levels, faults=()):
        store, systems = site.open_store(), []
        for name, own in {"one": levels, "two": [0.40]}.items():
            keys = [f"{level:.2f}"[2:] * 32 for level in own]
            for key, level in zip(keys, own, strict=True):
                row = pl.DataFrame({"sentence_id": [0], "embedding": [[1.0]]})
                vectors = row.cast({"sentence_id": pl.UInt64, "embedding": pl.Array(pl.Float32, 1)})
                publish(store, EmbeddingsRef(key=key), vectors)
                publish(store, ScoresRef(key=key), figures(level))
            refs = {"embeddings": tuple(EmbeddingsRef(key=key) for key in keys)}
            refs |= {"scores": tuple(ScoresRef(key=key) for key in keys)}
            systems.append(SweepSystem(label=name, faults=faults if name == "one" else (), **refs))
        asked = SweepSettings(title="t", others=OTHERS, config=BootstrapConfig(resamples=100))
        ref = compare_systems(site, systems=tuple(systems), settings=asked, command=RunCommand())
        return store.scan(ref).collect(), (store.fetch(ref) / "sweep.md").read_text()

    return call


def test_table_has_headline_metrics_and_intervals_over_seeds_and_draws(studied):
    table, page = studied([0.10, 0.30])
    assert table.select("dataset", "metric").unique(maintain_order=True).rows() == [
        ("afs test", "pearson"), ("afs test", "spearman"), ("toy test", "average precision"),
        ("twenty test", "v-measure"),
    ]  # fmt: skip
    assert "## twenty test (v-measure, mteb)" in page
    rows = {(row["label"], row["metric"]): row for row in table.iter_rows(named=True)}
    assert rows["one", "spearman"]["mean"] == pytest.approx(0.3)
    drawn, bare = rows["one", "average precision"], rows["one", "v-measure"]
    student = 12.706 * bare["sd"] / 2**0.5  # two seeds, 95 %
    assert bare["ci_high"] - bare["mean"] == pytest.approx(student, rel=1e-3)
    assert drawn["ci_high"] - drawn["mean"] == pytest.approx((student**2 + 0.02**2) ** 0.5, rel=1e-3)
    alone = rows["two", "average precision"]
    assert (alone["ci_low"], alone["ci_high"], alone["sd"]) == (pytest.approx(0.38), pytest.approx(0.42), None)
    assert (rows["two", "v-measure"]["ci_low"], rows["two", "v-measure"]["seeds"]) == (None, 1)


def test_system_without_scores_has_empty_row_and_error(studied):
    table, page = studied([], ("seed 0: the loss is nan",))
    assert table.filter(label="one").select("mean", "seeds").unique().rows() == [(None, 0)]
    assert "\none: seed 0: the loss is nan\n" in page
    assert "| one | " + " | ".join(["–"] * 4) + " |" in page


def test_only_the_named_figures_decide_on_own_text():
    deciding = ("your text neighbour", "your text title")
    own = OwnTextComparison(
        passages=PassagesRef(key="1" * 64), corpus=CorpusRef(key="2" * 64), sources=(), labels=None, deciding=deciding,
        checks=(), may_forget=0, reports={},
    )  # fmt: skip
    settings = SweepSettings(title="t", config=BootstrapConfig(resamples=100), own_text=own)
    assert [settings.decides(name) for name in (*deciding, "your text crop", "stsb test")] == [True, True, False, False]
    assert own.figure == MEAN
    assert own.model_copy(update={"deciding": ("your labels",)}).figure == "your labels"


def row(label, mean, gap=None, p=None, verdict=None):
    gaps = {} if gap is None else {"difference": gap, "difference_low": gap - 0.01, "difference_high": gap + 0.01}
    return {"label": label, "mean": mean, "seeds": 1, "p_value": p, "verdict": verdict, **gaps}


START, FAILED = row("original encoder", 0.40), row("TSDAE", None)
ADVICE = {
    "above": (
        [START, row("BSL", 0.45, 0.05, 0.001, "above"), FAILED],
        "Use BSL: 45.00 compared with 40.00, +5.00 [+4.00, +6.00], p 0.001 on your text.",
    ),
    "above, chosen from several": (
        [START, row("BSL", 0.45, 0.05, 0.001, "above"), row("crops", 0.41, 0.01, 0.3, "no")],
        "Use BSL: 45.00 compared with 40.00, +5.00 [+4.00, +6.00], p 0.001 on your text. It was chosen from 2 points "
        "by this figure: expect a smaller gain on new rows.",
    ),
    "same": (
        [START, row("BSL", 0.405, 0.005, 0.3, "no")],
        "Keep the original encoder: no point is significantly above it on your text (highest: BSL, 40.50 compared with "
        "40.00, +0.50 [-0.50, +1.50], p 0.300).",
    ),
    "below": (
        [START, row("BSL", 0.35, -0.05, 0.001, "below")],
        "Keep the original encoder: no point that may be chosen is higher than its 40.00 on your text.",
    ),
    "alone": ([START, FAILED], "Keep the original encoder: no other point has figures."),
}


@pytest.mark.parametrize(("rows", "sentence"), ADVICE.values(), ids=ADVICE)
def test_advice_is_as_sure_as_the_figures(rows, sentence):
    best = max((row for row in rows if row["mean"]), key=lambda row: row["mean"])["label"]
    assert advice(pl.DataFrame(rows, schema=SWEEP), Choice(best, {}), "your text") == sentence


def test_forgetting_points_are_named_with_their_loss():
    (note,) = forgetting_notes(Choice("BSL", {"SimCSE": -0.181}), 0.005)
    assert note.startswith("SimCSE loses 18.1 points on a general set, more than the allowed 0.5")
