"""The tiny runs, and what their pages, cards and exports say of the artifacts: a run, two adaptations, a comparison.

tests/golden pins the text of Markdown pages in these runs; these tests read what is on HTML pages only.
"""

import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.stats import rankdata

from bsl.flows.comparison import compared
from bsl.models.evaluation.sweep import DRAWS
from bsl.storage.artifacts.lineage import lineage
from bsl.storage.artifacts.refs import ComparisonRef, ReportRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import ArtifactMissingError
from bsl.tasks.evaluation.kinds import tables
from bsl.tasks.figures import EvaluationFigures, ResultFigures, TrainingFigures
from bsl.tasks.rendering.blocks import Page
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.reporting import publish
from bsl.tasks.reporting.evaluation import Missing, summarise
from bsl.tasks.reporting.export import additions
from bsl.tasks.reporting.provenance import commit
from bsl.tasks.reporting.sweep.runs import run_names
from tests.golden import tiny_runs
from tests.outline import Outline
from tests.toy_sets import allow_any_rows


class Made:
    """The reports of a run, of adaptations with and without labels, of an encoder; a comparison, an evaluation."""

    def __init__(self, folder):
        site = tiny_runs.context()
        self.store = Store(str(folder / site.store))
        run = tiny_runs.whitened(site)
        self.run = run.report
        self.taught, self.adapted, self.untrained = tiny_runs.adapted(site)
        self.sweep = compared(site, (self.run, self.untrained), "bsl compare A B")
        differences = (ComparisonRef(key=self.inputs(self.run)["comparisons.0"].key),)
        missing, notes = Missing.of({"sts12": "absent"}), ("12 rows trained it.",)
        self.evaluation = summarise(site, run.scores, differences, missing, notes, tables())

    def inputs(self, ref):
        return dict(self.store.manifest(ref).provenance.inputs)

    def text(self, ref, suffix="md"):
        return self.file(ref, f"{ref.kind}.{suffix}").read_text()

    def file(self, ref, name):
        return self.store.fetch(ref) / name

    def table(self, ref, name=None):
        return self.store.scan(ref, name).collect()


@pytest.fixture(scope="module")
def made(tiny_folder):
    """Make the runs, or find those of tests/golden/test_stages.py in the same store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tiny_folder)
        allow_any_rows(patch, "stsb")
        yield Made(tiny_folder)


@pytest.mark.parametrize(("url", "told"), [("memory://bsl", "`bsl artifacts export report/"), ("{}", "`file://{}")])
def test_page_in_the_ui_says_where_its_html_is(tmp_path, monkeypatch, url, told):
    """An object store's files have an address only after the upload."""
    shown = []
    monkeypatch.setattr(publish, "show_page", shown.append)
    store, page = Store(url.format(tmp_path)), Page(title="a run", word="", sentence="", lead=[], parts=[])
    made = SimpleNamespace(store=store, draft=SimpleNamespace(folder=tmp_path), ref=ReportRef(key="a" * 64))
    publish.publish(made, page)
    assert told.format(tmp_path) in markdown(shown[0])


@pytest.mark.parametrize("name", ["run", "untrained", "taught", "adapted", "sweep"])
def test_page_is_well_formed_and_says_how_to_repeat_it(made, name):
    ref = getattr(made, name)
    text, page = made.text(ref, "html"), made.text(ref)
    assert Outline(text).faults == []
    charts = {path.name for path in made.store.fetch(ref).glob("*.svg")}
    assert set(re.findall(r"\]\((.*\.svg)\)", page)) == charts >= {"scores.svg"}
    assert commit()[:40] in text
    assert commit()[:40] not in page
    command = "bsl compare A B" if name == "sweep" else "bsl adapt" if "adapted to" in page else "bsl run tiny"
    assert f"<code>{command}" in text
    figures = made.store.manifest(ref).figures
    if "verdict" in figures:
        assert page.partition("\n\n")[2].startswith(f"**{figures['verdict']}**")


def test_adaptation_is_no_run_to_compare_but_its_encoder_can_be_scored(made):
    advice = rf"not the report of a recipe's run .*: bsl evaluate {made.run} {made.taught} --suite sts"
    with pytest.raises(ArtifactMissingError, match=advice):
        run_names(made.store, [made.run, made.taught])


def test_evaluation_has_findings_draws_and_missing_sets(made):
    page, manifest = made.text(made.evaluation), made.store.manifest(made.evaluation)
    figures, systems = manifest.figures_as(ResultFigures), made.table(made.evaluation, "comparison").row(0, named=True)
    assert figures.draws == 3 * DRAWS > tiny_runs.FEW["resamples"]  # three encoders are compared with the first
    assert f"No significant difference of {systems['model']} from {systems['reference']} on stsb" in page
    assert figures.findings[0] in page
    assert "| sts12 | absent |" in page
    assert "12 rows trained it." in page
    told = manifest.figures_as(EvaluationFigures)
    assert (told.missing, told.notes) == ({"sts12": "absent"}, ["12 rows trained it."])


def test_run_shows_its_stages_and_its_training(made):
    page, inputs = made.text(made.run, "html"), made.inputs(made.run)
    manifests = lineage(made.store, [ref for name, ref in inputs.items() if not name.startswith("folded")])
    assert all(f"{manifest.kind}/{manifest.key[:12]}" in page for manifest in manifests)
    rows = page.partition("Stages: ")[2].partition("</table>")[0]
    assert len(re.findall(">cached</td>", rows)) == len(manifests)
    assert f">corpus {inputs['corpus'].key[:6]}</td>" in rows
    assert f"<dd>0 made, {len(manifests)} cached</dd>" in page  # outside of Prefect, a run has no name
    training = made.store.manifest(inputs["checkpoints.0"]).figures_as(TrainingFigures)
    facts = {
        "steps": "2",
        "selected step": f"{training.best_step}",
        "best dev": f"{100 * training.best_dev_spearman:.2f}",
    }
    assert all(f"<dt>{name}</dt><dd>{value}</dd>" in page for name, value in facts.items())
    seconds = np.array([manifest.duration_s for manifest in manifests])
    shown = re.findall(r">([\d.]+ %)</td>", page.partition("Stages: ")[2])[: len(manifests)]
    assert sorted(shown) == sorted(f"{share:.1f} %" for share in 100 * seconds / seconds.sum())


def test_pairs_of_a_run_are_ordered_by_their_rank_errors(made):
    page, cosines = made.text(made.run, "html"), made.table(made.inputs(made.run)["comparisons.0"], "cosines")
    pairs = pl.read_parquet("mirror/stsb/test.parquet")
    before, after = (
        rows.sort("row")["cosine"].to_numpy()
        for _, rows in cosines.filter(split="test").group_by("model", maintain_order=True)
    )
    gold, *ranks = (100 * (rankdata(values) - 1) / 39 for values in (pairs["score"].to_numpy(), before, after))
    errors = [np.abs(rank - gold) for rank in ranks]
    lengths = [-len(text) for text in pairs["sentence1"]]
    for title, order in (
        ("largest rank errors", zip(-errors[1], lengths, strict=True)),
        ("smallest rank errors", zip(np.round(errors[1]), lengths, strict=True)),
        ("largest improvements by training", errors[1] - errors[0]),
    ):
        first, _ = min(enumerate(order), key=lambda numbered: numbered[1])
        cells = re.findall(r">([^<>]+)</t[hd]>", page.partition(f"stsb test: {title}")[2])[7:14]
        sentence, *_, score = pairs.select("sentence1", "sentence2", "score").row(first)
        assert (cells[0], cells[2]) == (sentence, f"{score:.2f}")
        assert cells[3:5] == [f"{before[first]:.3f}", f"{after[first]:.3f}"]
        assert cells[5:] == [f"{gold[first]:.0f}", f"{ranks[1][first]:.0f}"]


def test_export_adds_the_newest_card_and_classifier_to_a_checkpoint(made):
    exported, classifier = (made.inputs(made.taught)[name] for name in ("adapted", "classifier"))
    with additions(made.store, exported, onnx=False) as folder:
        encoder = folder / "encoder"
        assert (encoder / "README.md").read_text() == made.file(made.taught, "model-card.md").read_text()
        files = sorted(path.name for path in (encoder / "classifier").iterdir())
        assert files
        assert all(
            (encoder / "classifier" / name).read_bytes() == made.file(classifier, name).read_bytes() for name in files
        )
    with additions(made.store, made.inputs(made.run)["folded.1"], onnx=False) as folder:
        card = made.file(made.run, "model-card-folded-1.md").read_text()
        assert (folder / "encoder" / "README.md").read_text() == card
