"""Points to one table: figures of every kind of set, and a row for what left none."""

import polars as pl
import pytest

from models.evaluation.config import BootstrapConfig
from storage.artifacts.manifest import Provenance
from storage.artifacts.refs import CorpusRef, EmbeddingsRef, PassagesRef, ScoresRef
from storage.artifacts.schemas import SCORES
from tasks.corpus.evaluation_sets import resolve_scored_set
from tasks.evaluation.kinds import KINDS, kind_of
from tasks.evaluation.own_text import HeldOutSet, OwnTextKind
from tasks.evaluation.sts import StsKind
from tasks.reporting.provenance import RunCommand
from tasks.reporting.sweep.compare import compare_systems
from tasks.reporting.sweep.inputs import OwnTextComparison, SweepSettings
from tasks.reporting.sweep.system import SweepSystem
from tasks.stage.run_context import RunContext

MADE = Provenance(stage_version=1, config={})
OTHERS = {"afs": ("pearson", "spearman"), "askubuntu": ("average precision",), "twenty": ("v-measure",)}


def figure(dataset: str, metric: str, value: float, protocol: str, subset: str = "all", *, bare: bool = False):
    ends = {"ci_low": None if bare else value - 0.02, "ci_high": None if bare else value + 0.02}
    place = {"model": "m", "dataset": dataset, "subset": subset, "split": "test", "metric": metric, "n": 9, "seed": 0}
    return {**place, "protocol": protocol, "value": value, **ends, "checkpoint": "", "signature": ""}


def figures(level: float) -> list[dict[str, object]]:
    return [
        figure("afs", "pearson", level, "unsupervised", "mean"),
        figure("afs", "spearman", level + 0.1, "unsupervised", "mean"),
        figure("afs", "spearman", 0.9, "unsupervised", "GC"),
        figure("askubuntu", "average precision", level, "useb"),
        figure("askubuntu", "mrr", 0.9, "useb"),
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
        ref = compare_systems.run(site, {"systems": tuple(systems), "settings": asked, "command": RunCommand()})
        return store.scan(ref).collect(), (store.fetch(ref) / "sweep.md").read_text()

    return call


def test_comparison_table_contains_only_headline_metrics(studied):
    table, page = studied({"one": [0.10, 0.30], "two": [0.40]})
    places = [("afs test", "pearson"), ("afs test", "spearman"), ("askubuntu test", "average precision")]
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
        "spearman", "mean reciprocal rank", "accuracy", "pearson", "average precision", "v-measure",
    }  # fmt: skip


def test_own_text_and_check_sets_use_separate_seeds():
    text = HeldOutSet(passages=PassagesRef(key="1" * 64), trips=None, labels=None, use="field", questions=40, store="")
    check = resolve_scored_set(RunContext(), "embedded:stsb/test")
    own = OwnTextComparison(held_out=text, corpus=CorpusRef(key="2" * 64), checks=(check,), may_forget=0, sources=())
    settings = SweepSettings(title="t", config=BootstrapConfig(resamples=100), own_text=own)
    kinds = [(type(kind_of(name)), wanted, seed) for name, wanted, seed in settings.compared]
    assert kinds == [(OwnTextKind, text, 0), (StsKind, check, 200)]
    assert settings.resamples(50) == 100, "its settings have enough draws for all pairs"
