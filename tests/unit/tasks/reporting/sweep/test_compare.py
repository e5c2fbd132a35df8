"""Points to one table: figures of every kind of set, and a row for what left none."""

import polars as pl
import pytest

from bsl.models.evaluation.config import BootstrapConfig
from bsl.models.evaluation.sweep import MEAN
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.refs import CorpusRef, EmbeddingsRef, PassagesRef, ScoresRef
from bsl.storage.artifacts.schemas import SCORES
from bsl.tasks.evaluation.kinds import KINDS
from bsl.tasks.reporting.publish import RunCommand
from bsl.tasks.reporting.sweep.compare import compare_systems
from bsl.tasks.reporting.sweep.inputs import OwnTextComparison, SweepSettings
from bsl.tasks.reporting.sweep.system import SweepSystem
from bsl.tasks.stage.run_context import RunContext

MADE = Provenance(stage_version=1, config={})
OTHERS = {"afs": ("pearson", "spearman"), "toy": ("average precision",), "twenty": ("v-measure",)}


def figure(dataset: str, metric: str, value: float, protocol: str, subset: str = "all", *, bare: bool = False):
    ends = {"ci_low": None if bare else value - 0.02, "ci_high": None if bare else value + 0.02}
    place = {"model": "m", "dataset": dataset, "subset": subset, "split": "test", "metric": metric, "n": 9, "seed": 0}
    return {**place, "protocol": protocol, "value": value, **ends, "checkpoint": "", "signature": ""}


def figures(level: float) -> list[dict[str, object]]:
    return [
        figure("afs", "pearson", level, "unsupervised", "mean"),
        figure("afs", "spearman", level + 0.1, "unsupervised", "mean"),
        figure("afs", "spearman", 0.9, "unsupervised", "GC"),
        figure("toy", "average precision", level, "ranked"),
        figure("toy", "mrr", 0.9, "ranked"),
        figure("twenty", "v-measure", level, "mteb", bare=True),
        figure("stsb", "pearson", 0.9, "all"),
    ]


@pytest.fixture
def studied(tmp_path):
    """From points and the levels of their seeds to table and page."""
    site = RunContext(store=str(tmp_path / "store"))
    store = site.open_store()

    def call(levels: dict[str, list[float]], faults: dict[str, tuple[str, ...]] | None = None):
        systems = []
        for name, own in levels.items():
            keys = [f"{level:.2f}"[2:] * 32 for level in own]
            vectors = tuple(EmbeddingsRef(key=key) for key in keys)
            scores = tuple(ScoresRef(key=key) for key in keys)
            for level, one, scored in zip(own, vectors, scores, strict=True):
                with store.draft(one, MADE) as draft:
                    row = pl.DataFrame({"sentence_id": [0], "embedding": [[1.0]]})
                    draft.write(row.cast({"sentence_id": pl.UInt64, "embedding": pl.Array(pl.Float32, 1)}))
                with store.draft(scored, MADE) as draft:
                    draft.write(pl.DataFrame(figures(level), schema=SCORES))
            why = (faults or {}).get(name, ())
            systems.append(SweepSystem(label=name, embeddings=vectors, scores=scores, faults=why))
        asked = SweepSettings(title="t", others=OTHERS, config=BootstrapConfig(resamples=100))
        ref = compare_systems(site, systems=tuple(systems), settings=asked, command=RunCommand())
        return store.scan(ref).collect(), (store.fetch(ref) / "sweep.md").read_text()

    return call


def test_comparison_table_contains_only_headline_metrics(studied):
    table, page = studied({"one": [0.10, 0.30], "two": [0.40]})
    places = [("afs test", "pearson"), ("afs test", "spearman"), ("toy test", "average precision")]
    assert table.select("dataset", "metric").unique(maintain_order=True).rows() == [
        *places,
        ("twenty test", "v-measure"),
    ]
    assert table.filter(label="one", metric="spearman")["mean"].to_list() == [pytest.approx(0.3)]
    assert "## twenty test (v-measure, mteb)" in page


def test_interval_combines_seed_and_bootstrap_spread_or_is_null(studied):
    table, _ = studied({"one": [0.10, 0.30], "two": [0.40]})
    rows = {(row["label"], row["metric"]): row for row in table.iter_rows(named=True)}
    drawn, bare = rows["one", "average precision"], rows["one", "v-measure"]
    student = 12.706 * bare["sd"] / 2**0.5  # two seeds, 95 %
    assert bare["ci_high"] - bare["mean"] == pytest.approx(student, rel=1e-3)
    assert drawn["ci_high"] - drawn["mean"] == pytest.approx((student**2 + 0.02**2) ** 0.5, rel=1e-3)
    alone = rows["two", "average precision"]
    assert (alone["ci_low"], alone["ci_high"], alone["sd"]) == (pytest.approx(0.38), pytest.approx(0.42), None)
    assert (rows["two", "v-measure"]["ci_low"], rows["two", "v-measure"]["seeds"]) == (None, 1)


def test_system_without_scores_has_empty_row_and_error(studied):
    why = "seed 0: the loss is nan"
    table, page = studied({"one": [], "two": [0.40]}, {"one": (why,)})
    assert table.filter(label="one").select("mean", "seeds").unique().rows() == [(None, 0)]
    assert f"\none: {why}\n" in page
    assert "| one | " + " | ".join(["–"] * 4) + " |" in page


def test_every_kind_without_fine_tuning_has_a_headline_metric():
    assert {kind.headline[0] for kind in KINDS if not kind.fine_tunes} == {
        "spearman", "mean reciprocal rank", "accuracy", "pearson",
    }  # fmt: skip


def test_only_the_named_figures_decide_on_own_text():
    passages, corpus = PassagesRef(key="1" * 64), CorpusRef(key="2" * 64)
    deciding = ("your text neighbour", "your text title")
    own = OwnTextComparison(
        passages=passages,
        corpus=corpus,
        sources=(),
        labels=None,
        deciding=deciding,
        checks=(),
        may_forget=0,
        reports={},
    )
    settings = SweepSettings(title="t", config=BootstrapConfig(resamples=100), own_text=own)
    assert [settings.decides(name) for name in (*deciding, "your text crop", "stsb test")] == [True, True, False, False]
    assert own.figure == MEAN
    assert own.model_copy(update={"deciding": ("your labels",)}).figure == "your labels"
