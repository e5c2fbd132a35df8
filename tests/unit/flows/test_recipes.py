"""Every recipe makes the views that its pairings use, names published rows, and can be deployed."""

from pathlib import Path

import pytest

from bsl.flows.cli.terminal.overrides import configured
from bsl.flows.config import override
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.published_rows import ROWS
from bsl.flows.recipes.shared import ENCODERS
from bsl.flows.recipes.untrained import GLOVE
from bsl.flows.sweep.grid import grid
from bsl.models.evaluation.published import rows_of
from bsl.models.translation.filters import FILTERS
from bsl.models.views.config import ORIGINAL, AugmentConfig, SynonymView
from bsl.storage.assets.embedded import EMBEDDED
from bsl.tasks.translation.translator import embedded_pins
from tests.every import every

ROOT = Path(__file__).parents[3]
SMALL = {name for name in RECIPES if name.startswith("tiny")}
WITH_LABELS = {"tiny-entail", "entail", "nli-entail", "sbert", "sbert-released", "sroberta", "sroberta-2022"} | {
    "bsl-sbert-nli",
    "bsl-sroberta-nli",
    "tiny-bsl-sbert",
}
PAPERS = ("BSL, Table ", "IS-BERT, Table ", "SCL, Table ", "SBERT, ")
OF_THE_FIELD = {"simcse", "tiny-simcse"}  # their published row is in none of the three papers


def methods(config: AugmentConfig) -> dict[str, str]:
    """Return view → its language."""
    translated = {view.method: view.lang for view in config.translations}
    return dict.fromkeys(config.methods, "en") | translated


@every(sorted(RECIPES))
def test_pairings_use_augmented_views_in_matching_languages(name: str) -> None:
    config = recipe(name)
    made = methods(config.augment)
    for pairing in config.pairs.pairings:
        assert (made[pairing.view_1], made[pairing.view_2]) == (pairing.lang_1, pairing.lang_2)


@every(sorted(RECIPES))
def test_every_augmented_view_is_used_in_a_pairing(name: str) -> None:
    config = recipe(name)
    used = {view for pairing in config.pairs.pairings for view in (pairing.view_1, pairing.view_2)}
    assert set(methods(config.augment)) - {ORIGINAL} <= used


@every(sorted(RECIPES))
def test_published_systems_of_every_recipe_have_rows(name: str) -> None:
    config = recipe(name)
    rows = [row for system in config.published for row in rows_of(system)]
    assert {row.system for row in rows} == set(config.published)
    papers = all(row.source.startswith(PAPERS) or "quoted from" in row.source for row in rows)
    assert papers or name in OF_THE_FIELD


def test_only_listed_recipes_need_labels() -> None:
    assert {name for name in RECIPES if recipe(name).augment.needs_labels} == WITH_LABELS


def test_only_unpublished_recipes_select_best_or_start() -> None:
    keeping = {name for name in RECIPES if recipe(name).training and recipe(name).training.select == "best-or-start"}
    assert keeping == {
        "tiny", "tiny-entail", "tiny-multilingual", "tiny-multilingual-distil", "tiny-multilingual-sup", "tiny-distil",
        "tiny-plus", "nli-plus", "tiny-bsl-sbert",
    }  # fmt: skip
    assert keeping.isdisjoint(ROWS.values())


@pytest.mark.parametrize("study", ["plus", "tiny-momentum", "tiny-batch"])
def test_study_points_select_best_not_best_or_start(study: str) -> None:
    configs = grid(study, {}, {}).configs
    assert {config.training.select for config in configs if config.training} == {"best"}


@every(sorted({*RECIPES} - SMALL))
def test_recipes_of_published_rows_do_not_filter_views(name: str) -> None:
    assert recipe(name).augment.filters == ()


@every(sorted(name for name in SMALL if recipe(name).augment.translations))
def test_tiny_translated_views_use_default_filters(name: str) -> None:
    assert recipe(name).augment.filters == FILTERS


def test_synonym_recipe_replaces_thirty_percent_with_uninflected_lemmas() -> None:
    assert recipe("synonym").augment.rewritings == (SynonymView(share=0.3, senses=None, inflect=False),)


def test_unknown_published_system_is_rejected_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"Did you mean 'BSL-BERT"):
        override(recipe("tiny"), {"published": ["BSL-BRET"]})


def test_recipe_encoders_are_pinned_unless_embedded_or_glove() -> None:
    named = [
        encoder
        for config in map(recipe, RECIPES)
        for encoder in (config.encoder, *(teacher for phase in config.phases for teacher in phase.teachers))
    ]
    started = {(encoder.model, encoder.revision) for encoder in named}
    pinned = {(encoder.model, encoder.revision) for encoder in ENCODERS.values()}
    yours = {start for start in started if start[0].startswith("embedded:") or start == (GLOVE, None)}
    assert started - yours == pinned


def test_books_limit_applies_only_to_the_books_source() -> None:
    limits = {name: [source.limit for source in recipe(name).ingest.sources] for name in ("books", "books-nli")}
    assert limits == {"books": [5_000_000], "books-nli": [None, None, 5_000_000]}


def test_nli_recipe_accepts_momentum_override_without_collapse_stop() -> None:
    config = configured("nli", ["training.objective.momentum=0.5", "training.collapse=null"])
    assert (config.training.objective.momentum, config.training.collapse) == (0.5, None)
    form = {"training": {"objective": {"momentum": 0.5}, "collapse": None}}
    assert override(recipe("nli"), form) == config


@every(RECIPES)
def test_every_embedded_translator_has_pins(name):
    hops = [hop for view in recipe(name).augment.translations for hop in view.hops]
    embedded = [hop.model_copy(update={"precision": "int8"}) for hop in hops if hop.model.startswith(EMBEDDED)]
    assert [hop.model for hop in embedded if not embedded_pins(hop)] == []
