"""The table of methods: every point resolves, budgets are read, rates fit what training starts from."""

import pytest
from sentence_transformers import SentenceTransformer

from flows.cli.field import Trial
from flows.cli.main import main
from flows.cli.terminal.options import Reading, Settings
from flows.recipes.adaptation import AdaptConfig
from flows.recipes.shared import ALONE, trips_of
from flows.recipes.tiny import whole_sample
from flows.sweep.field import field, requested
from flows.sweep.method_runs import _executed, inapplicable, start_encoder_of
from flows.sweep.method_settings import Budget, FieldSettings, augmentation, budget_of, pairing
from flows.sweep.methods import METHODS, NAMES, START, methods_of
from models.evaluation.config import BootstrapConfig
from models.transforms.config import FlowConfig, WhiteningConfig
from models.translation.config import MINI
from models.views.config import AugmentConfig
from storage.artifacts.manifest import Provenance
from storage.artifacts.refs import TransformRef
from storage.errors import StorageError
from tasks.stage.run_context import RunContext
from tests.every import every
from tests.tiny_encoder import write_tiny

SETTINGS = FieldSettings()
BY_NAME = {method.name: method for method in METHODS}
TRAINED = [method for method in METHODS if method.objective is not None]


@every(TRAINED)
def test_configured_method_uses_step_budget_rate_and_last_step(method):
    for start in ("small", "raw", "trained"):
        config = method.configured(start, 123, seed=7)
        assert (config.max_steps, config.select, config.seed) == (123, "last", 7)
        assert config.lr == getattr(method.rates, start)
        assert config.collapse is None, "a field shows what collapsed"
        own = getattr(method.objective, "anchor_weight", 0)
        expected = method.anchor if start != "trained" and method.anchor else own
        assert getattr(config.objective, "anchor_weight", 0) == expected
    assert method.rates.trained <= method.rates.raw * 2 <= method.rates.small * 2


def test_crops_method_trains_with_the_settings_of_adapt():
    settings = AdaptConfig()
    for start, raw in (("raw", True), ("trained", False)):
        config, adapting = BY_NAME["crops"].configured(start, 100), settings.view_training(raw=raw)
        assert (config.objective, config.lr, config.batch_size) == (
            adapting.objective,
            adapting.lr,
            adapting.batch_size,
        )


@every([m for m in TRAINED if m.views != "labels"])
def test_method_pairings_use_only_its_own_views(method):
    for lang in ("en", "de"):
        settings = FieldSettings(lang=lang)
        made = {"original", *augmentation(method.views, settings).methods}
        pairings = pairing(method.views, settings).pairings
        assert {name for pair in pairings for name in (pair.view_1, pair.view_2)} <= made
        assert {spoken for pair in pairings for spoken in (pair.lang_1, pair.lang_2)} == {lang}


def test_english_pairings_match_tiny_recipe():
    assert augmentation("round trips", SETTINGS) == AugmentConfig(translations=trips_of("en", MINI))
    assert pairing("round trips", SETTINGS) == whole_sample().pairs
    assert pairing("sentence", SETTINGS) == ALONE


def test_translators_setting_changes_the_augmentation():
    opus = FieldSettings(translators="opus-mt")
    assert augmentation("round trips", SETTINGS) != augmentation("round trips", opus)


@pytest.mark.parametrize(
    ("lang", "ways"),
    [("en", ["en-de-en", "en-fr-en"]), ("de", ["de-en-de"]), ("fr", ["fr-en-fr"]), ("fi", [])],
)
def test_field_round_trips_match_the_text_language(lang, ways):
    trips = FieldSettings(lang=lang).trips
    assert ["-".join([trip.hops[0].source_lang, *(hop.target_lang for hop in trip.hops)]) for trip in trips] == ways


def test_inapplicable_methods_are_found_before_the_run(tmp_path):
    site = RunContext(store=str(tmp_path / "store"), device="cpu")
    bert, mini = (start_encoder_of(site, f"embedded:{name}") for name in ("bert-mini", "mini-sentence"))
    assert inapplicable(METHODS, bert, SETTINGS) == {}
    (reason,) = inapplicable(METHODS, mini, SETTINGS).items()
    assert reason[0] == "isbert"
    assert f"mini-sentence has {', '.join(mini.heads)} after pooling" in reason[1]
    reasons = inapplicable(METHODS, bert, FieldSettings(lang="fi"))
    assert list(reasons) == [method.name for method in METHODS if method.views == "round trips"]
    assert "translators 'embedded' have no round trip from 'fi'" in reasons["bsl"]


def test_isbert_is_inapplicable_to_truncated_encoder(tmp_path):
    """Its sentence vectors are narrower than its token vectors."""
    folder = tmp_path / "nested"
    write_tiny(folder)
    SentenceTransformer(str(folder), device="cpu", truncate_dim=8).save(str(tmp_path / "saved"))
    found = start_encoder_of(RunContext(store=str(tmp_path / "store"), device="cpu"), str(tmp_path / "saved"))
    assert "has truncate_dim after pooling" in inapplicable(METHODS, found, SETTINGS)["isbert"]


def test_set_of_a_bootstrap_field_leaves_other_fields_unchanged():
    settings = Trial(seeds=3, settings=Settings(settings=("bootstrap.seed=1",))).configured(Reading())
    assert (settings.seeds, settings.bootstrap) == (3, BootstrapConfig(resamples=10_000, seed=1))


@pytest.mark.parametrize(
    ("given", "setting", "budget"),
    [
        ("2m", "budget.steps=100", Budget(steps=100)),
        ("300steps", "budget.seconds=60", Budget(seconds=60)),
        ("300steps", "budget.seconds=null", Budget(steps=300)),
        ("300steps", "held_out=300", Budget(steps=300)),
    ],
)
def test_set_budget_field_replaces_the_budget_option(given, setting, budget):
    assert Trial(budget=given, settings=Settings(settings=(setting,))).configured(Reading()).budget == budget


def test_set_of_budget_steps_and_seconds_is_rejected():
    both = Settings(settings=("budget.steps=100", "budget.seconds=60"))
    with pytest.raises(ValueError, match=r"seconds 60\.0 and steps 100: expected exactly one"):
        Trial(settings=both).configured(Reading())


def test_field_sources_use_language_and_columns_from_settings(tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text("text,body,who\nEs regnet seit Tagen.,Der Zug kam viel zu spät.,a\n")
    settings = FieldSettings(lang="de", columns=("body",), document="who")
    (source,) = settings.sources([str(path)], None)
    assert (source.lang, source.texts, source.document) == ("de", ("body",), "who")


def test_field_with_missing_teacher_raises_before_publishing_artifacts(tmp_path):
    site = RunContext(store=str(tmp_path / "store"), device="cpu")
    path = tmp_path / "x.txt"
    path.write_text("It has rained for days.\n")
    with pytest.raises(StorageError, match="professor"):
        field.fn([str(path)], settings=FieldSettings(teacher="embedded:professor"), site=site)
    assert list(site.open_store().refs()) == []


def test_steps_come_from_manifest_and_early_end_is_noted(tmp_path):
    site, ref = RunContext(store=str(tmp_path / "store")), TransformRef(key=f"{3:064x}")
    with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
        (draft.folder / "transform.json").write_text("{}")
        draft.note({"steps": 12_000})
    assert _executed(site, ref, BY_NAME["flow"], 12_000) == (12_000, ())
    note = "flow: ended after 12,000 of 40,000 steps, the limit of 1,000 epochs."
    assert _executed(site, ref, BY_NAME["flow"], 40_000) == (12_000, (note,))


def test_fitted_transforms_use_half_width_or_step_budget():
    assert BY_NAME["whitening"].fitted(256, 9) == WhiteningConfig(dimensions=128)
    fitted = BY_NAME["flow"].fitted(256, 9, seed=3)
    assert (fitted.max_steps, fitted.seed) == (9, 3)
    assert fitted.epochs > FlowConfig().epochs
    assert [method.name for method in METHODS if method.transform and method.steps] == ["flow"]


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("90s", Budget(seconds=90)),
        ("10m", Budget(seconds=600)),
        ("1.5h", Budget(seconds=5400)),
        ("200steps", Budget(steps=200)),
    ],
)
def test_budget_of_parses_seconds_minutes_hours_and_steps(text, budget):
    assert budget_of(text) == budget


@pytest.mark.parametrize("text", ["10", "ten minutes", "1.5steps", "-3s", ""])
def test_budget_of_rejects_invalid_text(text):
    with pytest.raises(ValueError, match="expected seconds, minutes, hours or steps"):
        budget_of(text)


def test_budget_rejects_both_seconds_and_steps():
    with pytest.raises(ValueError, match="expected exactly one of them"):
        Budget(seconds=3, steps=3)


def test_methods_of_lists_original_encoder_first_in_table_order():
    assert [method.name for method in methods_of(["simcse", "tfidf"])] == [START, "tfidf", "simcse"]
    assert [method.name for method in methods_of(None)] == list(NAMES)


def test_unknown_field_method_error_suggests_the_nearest_name(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.txt").write_text("A cat sleeps.\n")
    assert main(["field", "x.txt", "--methods", "simcs"]) == 2
    assert "Did you mean 'simcse'" in capsys.readouterr().err


def test_labels_method_requires_a_labels_file():
    assert "labels" not in [method.name for method in requested(FieldSettings(), None)]
    with pytest.raises(ValueError, match="method 'labels' needs a file of labels"):
        requested(FieldSettings(methods=("labels",)), None)
