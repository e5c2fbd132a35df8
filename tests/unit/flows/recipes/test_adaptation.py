"""`bsl adapt` refuses impossible settings before any work."""

import re
import shutil

import numpy as np
import pytest

from bsl.flows.adaptation import general_sets
from bsl.flows.config import override
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.models.corpus.labels import class_pairs
from bsl.models.encoder.config import EncoderConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from bsl.models.objectives.supervised_config import RegressionConfig
from bsl.models.training.batches import count_steps
from bsl.models.views.annotated_pairs import REHEARSED_PER_PAIR
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.errors import SourceError
from bsl.tasks.stage.run_context import RunContext
from tests.every import every
from tests.hub.client import offline

NO_TRIP = "translators 'embedded' have no round trip from '{}' through de or fr or en. Use "


@every(
    [
        ({"translated": 0}, "translated is 0. Set it to 1 or more, or use --views crops"),
        ({"translators": ""}, "translators '' have no round trip from 'en'"),
        ({"lang": "fi"}, NO_TRIP.format("fi")),
        ({"lang": "ja"}, NO_TRIP.format("ja") + "your own translators, or --views crops"),
        ({"lang": "tr"}, NO_TRIP.format("tr") + "--translators opus-mt, or --views crops"),
    ]
)
def test_impossible_round_trip_views_are_rejected(change, expected):
    for views in ("round-trips", "both"):
        with pytest.raises(ValueError, match=re.escape(f"views {views!r}: {expected}")):
            override(AdaptConfig(), {"views": views, **change})


def test_crops_are_made_and_dropout_is_set_only_if_chosen():
    config = AdaptConfig(lang="fi", views="dropout")
    methods = [AdaptConfig(views=views).augment.methods for views in ("dropout", "round-trips", "both")]
    assert methods == [("original",), ("original",), ("original", "crop", "crop-2")]
    assert ([pairing.source for pairing in config.pairs.pairings], config.pairs.drop_identical) == (
        ["original|original"],
        False,
    )
    bare, own = EncoderConfig(model="m"), EncoderConfig(model="m", dropout=0.2)
    assert [config.training_encoder(reading).dropout for reading in (bare, own)] == [0.1, 0.2]
    assert AdaptConfig(views="crops").training_encoder(bare) == bare


def test_bare_transformer_trains_with_higher_rate_and_anchor_weight():
    config = AdaptConfig()
    trained, raw = config.view_training(raw=False), config.view_training(raw=True)
    assert (trained.lr, trained.objective) == (2e-5, ContrastiveConfig())
    assert (raw.lr, raw.objective) == (2e-4, ContrastiveConfig(anchor_weight=3))
    assert raw == trained.model_copy(update={"lr": raw.lr, "objective": raw.objective})
    own = override(config, {"raw_anchor": 1, "training": {"objective": {"name": "contrastive", "temperature": 0.1}}})
    assert own.view_training(raw=True).objective == ContrastiveConfig(temperature=0.1, anchor_weight=1)
    other = override(config, {"training": {"objective": {"name": "simcse"}}})
    assert other.view_training(raw=True).objective == SimCSEConfig()


def test_static_table_trains_at_its_own_rate():
    """Regression: at the rate of transformers, labels changed no figure of a table."""
    config = AdaptConfig(table_lr=0.01)
    views = config.view_training(table=True)
    assert views == config.training.model_copy(update={"lr": 0.01})
    for kind in ("pairs", "classes"):
        training = config.label_training_for(kind, table=True)
        assert training == config.label_training_for(kind).model_copy(update={"lr": 0.01})


@every(
    [
        ("training", lambda config: config.view_training(raw=True), "a bare transformer trains at the rate raw_lr"),
        ("training", lambda config: config.view_training(table=True), "a static table trains at the rate table_lr"),
        ("label_training", lambda config: config.label_training_for("pairs", table=True), "at the rate table_lr"),
    ]
)
def test_rate_that_does_not_apply_is_refused(section, settings, message):
    """Regression: `--set training.lr` was ignored for a bare transformer."""
    changed = override(AdaptConfig(), {section: {"lr": 0.1}})
    with pytest.raises(
        ValueError, match=rf"^{section}.lr: no effect \(found 0.1\).*{message}. Set (raw|table)_lr instead"
    ):
        settings(changed)


@pytest.mark.parametrize(("classes", "rows"), [(2, 8), (6, 8), (2, 16)])
def test_few_labels_train_for_twice_the_budget_of_setfit(classes, rows):
    """Rate × steps of Tunstall et al., 2022: 20 pairs of either kind a text, 16 pairs a step, 2e-5."""
    texts = [f"text {number}" for number in range(classes * rows)]
    training = AdaptConfig().label_training_for("classes")
    labels = class_pairs(texts, np.arange(classes * rows) % classes).height
    steps = count_steps(labels + round(REHEARSED_PER_PAIR * labels), training)
    assert training.lr * steps == pytest.approx(2 * 2e-5 * len(texts) * 2 * 20 / 16)


@pytest.mark.parametrize(("width", "lr"), [(None, 1e-4), (128, 1e-4), (384, 1e-4), (768, 5e-5)])
def test_classes_teach_a_wide_transformer_at_a_lower_rate(width, lr):
    config = AdaptConfig()
    assert config.label_training_for("classes", width).lr == pytest.approx(lr)
    assert config.label_training_for("pairs", width) == config.label_training


def test_many_labels_and_scored_pairs_train_for_sixty_steps():
    pairs = class_pairs([f"text {number}" for number in range(384)], np.arange(384) % 6)
    assert count_steps(pairs.height, AdaptConfig().label_training_for("classes")) == 60
    assert count_steps(100, AdaptConfig().label_training_for("pairs")) == 60


def test_sentences_are_rehearsed_and_classes_anchored_only_with_an_anchor():
    config = AdaptConfig()
    weights = [config.label_training_for(kind).objective.anchor_weight for kind in ("pairs", "classes")]
    assert weights == [0.2, 0.05]
    assert (config.rehearsal_set, config.rehearses_text) == ("embedded:stsb/train", True)
    assert AdaptConfig(rehearsal="").rehearsal_set == ""
    assert not AdaptConfig(own_rehearsal=False).rehearses_text
    plain = override(config, {"label_training": {"objective": {"name": "regression", "anchor_weight": 0}}})
    assert (plain.rehearsal_set, plain.rehearses_text) == ("", False)
    assert plain.label_training_for("classes").objective == RegressionConfig(each_text_once=True)


def test_unavailable_general_set_raises_and_is_looked_up_once(tmp_path, caplog):
    site = RunContext(store=str(tmp_path / "store"))
    assert [*general_sets(site, ("embedded:stsb/dev",)).sets] == ["embedded:stsb/dev", "embedded:stsb/test"]
    with pytest.raises(SourceError, match=r"afs: not available \(afs: .*no mirror is set.* remove the name in --suite"):
        general_sets(site, ("afs", "embedded:stsb/dev"))
    assert len([line for line in caplog.messages if "afs is not available" in line]) == 1


def test_set_named_twice_is_available_as_its_copy(tmp_path, monkeypatch):
    """Regression: a KeyError, since one copy is enough."""
    offline(monkeypatch)
    mirrored = RunContext(store=str(tmp_path / "store"), mirror=str(embedded_path("stsb").parent))
    both = ("stsb/test", "embedded:stsb/test")
    assert [*general_sets(mirrored, both).sets] == ["stsb/test"]
    assert [*general_sets(mirrored, both[::-1]).sets] == ["embedded:stsb/test"]


def test_unavailable_set_of_a_suite_is_reported_as_missing(tmp_path, monkeypatch):
    offline(monkeypatch)
    (tmp_path / "mirror" / "stsb").mkdir(parents=True)
    shutil.copy(embedded_path("stsb") / "test.parquet", tmp_path / "mirror" / "stsb" / "test.parquet")
    found = general_sets(RunContext(store=str(tmp_path / "store"), mirror=str(tmp_path / "mirror")), ("sts",))
    assert [*found.sets] == ["stsb/test"]
    assert [*found.missing] == [*(f"sts{year}/test" for year in range(12, 17)), "sickr/test"]


@every(["ar", "de", "en", "es", "fr", "it", "nl", "ru", "tr"])
def test_opus_mt_provides_a_round_trip_per_language(lang):
    trip = AdaptConfig(lang=lang, views="round-trips", translators="opus-mt").trip
    assert trip is not None
    assert trip.hops[0].source_lang == trip.lang == lang
