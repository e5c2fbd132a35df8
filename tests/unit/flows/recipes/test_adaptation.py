"""`bsl adapt` refuses impossible settings before any work."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("views", ["round-trips", "both"])
@pytest.mark.parametrize("change", [{"lang": "fi"}, {"translators": ""}, {"translated": 0}])
def test_impossible_round_trip_views_are_rejected(views: str, change: dict[str, object]) -> None:
    expected = "translated is 0" if "translated" in change else "no round trip from .* through de or fr or en"
    with pytest.raises(ValueError, match=f"views '{views}': .*{expected}.*or (use )?--views crops"):
        override(AdaptConfig(), {"views": views, **change})


def test_error_suggests_opus_mt_only_for_supported_languages() -> None:
    with pytest.raises(
        ValueError,
        match=r"^views 'both': translators 'embedded' have no round trip from 'ja' .* Use your own translators, or",
    ):
        override(AdaptConfig(), {"views": "both", "lang": "ja"})
    with pytest.raises(ValueError, match=r"Use --translators opus-mt, or --views crops$"):
        override(AdaptConfig(), {"views": "both", "lang": "tr"})


def test_crop_views_are_made_only_if_configured() -> None:
    config = AdaptConfig()
    methods = [config.views_of(names).methods for names in (("dropout",), ("round trips",), ("crops", "round trips"))]
    assert methods == [("original",), ("original",), ("original", "crop", "crop-2")]


def test_dropout_views_pair_originals_with_default_dropout_rate() -> None:
    config = AdaptConfig(lang="fi", views="dropout")
    names = config.view_names
    pairs = config.pairs(names)
    assert ([pairing.source for pairing in pairs.pairings], pairs.drop_identical) == (["original|original"], False)
    bare, own = EncoderConfig(model="m"), EncoderConfig(model="m", dropout=0.2)
    assert [config.training_encoder(reading, names).dropout for reading in (bare, own)] == [0.1, 0.2]
    assert config.training_encoder(bare, ("crops",)) == bare


def test_bare_transformer_trains_with_higher_rate_and_anchor_weight() -> None:
    config = AdaptConfig()
    trained, raw = config.view_training(raw=False), config.view_training(raw=True)
    assert (trained.lr, trained.objective) == (2e-5, ContrastiveConfig())
    assert (raw.lr, raw.objective) == (2e-4, ContrastiveConfig(anchor_weight=3))
    assert raw == trained.model_copy(update={"lr": raw.lr, "objective": raw.objective})
    own = override(config, {"raw_anchor": 1, "training": {"objective": {"name": "contrastive", "temperature": 0.1}}})
    assert own.view_training(raw=True).objective == ContrastiveConfig(temperature=0.1, anchor_weight=1)
    other = override(config, {"training": {"objective": {"name": "simcse"}}})
    assert other.view_training(raw=True).objective == SimCSEConfig()


@pytest.mark.parametrize(("classes", "rows"), [(2, 8), (6, 8), (2, 16)])
def test_few_labels_train_for_twice_the_budget_of_setfit(classes: int, rows: int) -> None:
    """Rate × steps of Tunstall et al., 2022: 20 pairs of either kind a text, 16 pairs a step, 2e-5."""
    texts = [f"text {number}" for number in range(classes * rows)]
    training = AdaptConfig().label_training_for("classes")
    labels = class_pairs(texts, np.arange(classes * rows) % classes).height
    steps = count_steps(labels + round(REHEARSED_PER_PAIR * labels), training)
    assert training.lr * steps == pytest.approx(2 * 2e-5 * len(texts) * 2 * 20 / 16)


def test_many_labels_train_for_sixty_steps() -> None:
    pairs = class_pairs([f"text {number}" for number in range(384)], np.arange(384) % 6)
    assert count_steps(pairs.height, AdaptConfig().label_training_for("classes")) == 60


def test_scored_pairs_train_for_sixty_steps() -> None:
    assert count_steps(100, AdaptConfig().label_training_for("pairs")) == 60


def test_general_and_own_sentences_are_rehearsed_only_with_an_anchor() -> None:
    assert AdaptConfig().rehearsal_set == "embedded:stsb/train"
    assert AdaptConfig().rehearses_text
    assert AdaptConfig(rehearsal="").rehearsal_set == ""
    assert not AdaptConfig(own_rehearsal=False).rehearses_text
    plain = override(AdaptConfig(), {"label_training": {"objective": {"name": "regression", "anchor_weight": 0}}})
    assert plain.rehearsal_set == ""
    assert not plain.rehearses_text


def test_classes_are_anchored_less_than_scored_pairs() -> None:
    config = AdaptConfig()
    weights = [config.label_training_for(kind).objective.anchor_weight for kind in ("pairs", "classes")]
    assert weights == [0.2, 0.05]
    plain = override(config, {"label_training": {"objective": {"name": "regression", "anchor_weight": 0}}})
    assert plain.label_training_for("classes").objective == RegressionConfig()


def test_unavailable_general_set_raises_and_is_looked_up_once(tmp_path: Path, caplog) -> None:
    site = RunContext(store=str(tmp_path / "store"))
    assert [*general_sets(site, ("embedded:stsb/dev",)).sets] == ["embedded:stsb/dev", "embedded:stsb/test"]
    with pytest.raises(SourceError, match=r"afs: not available \(afs: .*no mirror is set.* remove the name in --suite"):
        general_sets(site, ("afs", "embedded:stsb/dev"))
    assert len([line for line in caplog.messages if "afs is not available" in line]) == 1


def test_unavailable_set_of_a_suite_is_reported_as_missing(tmp_path: Path, monkeypatch) -> None:
    offline(monkeypatch)
    (tmp_path / "mirror" / "stsb").mkdir(parents=True)
    shutil.copy(embedded_path("stsb") / "test.parquet", tmp_path / "mirror" / "stsb" / "test.parquet")
    found = general_sets(RunContext(store=str(tmp_path / "store"), mirror=str(tmp_path / "mirror")), ("sts",))
    assert [*found.sets] == ["stsb/test"]
    assert [*found.missing] == [*(f"sts{year}/test" for year in range(12, 17)), "sickr/test"]


@every(["ar", "de", "en", "es", "fr", "it", "nl", "ru", "tr"])
def test_opus_mt_provides_a_round_trip_per_language(lang: str) -> None:
    trip = AdaptConfig(lang=lang, views="round-trips", translators="opus-mt").trip
    assert trip is not None
    assert trip.hops[0].source_lang == trip.lang == lang
