"""Every recipe makes the views that its pairings use, names published rows, and can be deployed."""

from pathlib import Path

import pytest

from flows.cli.terminal.overrides import configured
from flows.config import override
from flows.recipes import RECIPES, recipe
from flows.recipes.published_rows import ROWS
from flows.recipes.shared import ENCODERS
from flows.recipes.untrained import GLOVE
from flows.sweep.grid import grid
from models.evaluation.published import rows_of
from models.translation.filters import UNFILTERED, FilterConfig
from models.views.config import ORIGINAL, AugmentConfig, SynonymView
from storage.assets.embedded import EMBEDDED
from tasks.translation.translator import embedded_pins
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
def test_pairings_name_views_that_are_made_in_their_languages(name: str) -> None:
    config = recipe(name)
    made = methods(config.augment)
    for pairing in config.pairs.pairings:
        assert (made[pairing.view_1], made[pairing.view_2]) == (pairing.lang_1, pairing.lang_2)


@every(sorted(RECIPES))
def test_no_view_is_made_for_nothing(name: str) -> None:
    config = recipe(name)
    used = {view for pairing in config.pairs.pairings for view in (pairing.view_1, pairing.view_2)}
    assert set(methods(config.augment)) - {ORIGINAL} <= used


@every(sorted(RECIPES))
def test_published_rows_exist(name: str) -> None:
    config = recipe(name)
    rows = [row for system in config.published for row in rows_of(system)]
    assert {row.system for row in rows} == set(config.published)
    papers = all(row.source.startswith(PAPERS) or "quoted from" in row.source for row in rows)
    assert papers or name in OF_THE_FIELD


def test_only_recipes_with_labels_in_their_sources_ask_for_them() -> None:
    assert {name for name in RECIPES if recipe(name).augment.needs_labels} == WITH_LABELS


def test_only_recipes_of_no_printed_row_and_of_no_published_method_keep_a_start_that_is_better() -> None:
    keeping = {name for name in RECIPES if recipe(name).training and recipe(name).training.select == "best-or-start"}
    assert keeping == {
        "tiny", "tiny-entail", "tiny-multilingual", "tiny-multilingual-distil", "tiny-multilingual-sup", "tiny-distil",
        "tiny-plus", "nli-plus", "tiny-bsl-sbert",
    }  # fmt: skip
    assert keeping.isdisjoint(ROWS.values())


@pytest.mark.parametrize("study", ["plus", "tiny-momentum", "tiny-batch"])
def test_a_study_shows_what_a_point_made_of_the_start_even_where_that_is_worse(study: str) -> None:
    configs = grid(study, {}, {}).configs
    assert {config.training.select for config in configs if config.training} == {"best"}


@every(sorted({*RECIPES} - SMALL))
def test_recipes_of_published_rows_keep_every_view(name: str) -> None:
    assert recipe(name).augment.filters == UNFILTERED


@every(sorted(name for name in SMALL if recipe(name).augment.translations))
def test_small_translators_are_filtered(name: str) -> None:
    assert recipe(name).augment.filters == FilterConfig()


def test_the_synonyms_of_table_4_are_three_words_in_ten_as_bare_lemmas() -> None:
    assert recipe("synonym").augment.rewritings == (SynonymView(share=0.3, senses=None, inflect=False),)


def test_a_system_that_nobody_published_is_refused_before_the_run() -> None:
    with pytest.raises(ValueError, match=r"Did you mean 'BSL-BERT"):
        override(recipe("tiny"), {"published": ["BSL-BRET"]})


def test_encoders_of_recipes_are_pinned_or_say_why_not() -> None:
    named = [
        encoder
        for config in map(recipe, RECIPES)
        for encoder in (config.encoder, *(teacher for phase in config.phases for teacher in phase.teachers))
    ]
    started = {(encoder.model, encoder.revision) for encoder in named}
    pinned = {(encoder.model, encoder.revision) for encoder in ENCODERS.values()}
    yours = {start for start in started if start[0].startswith("embedded:") or start == (GLOVE, None)}
    assert started - yours == pinned


def test_five_million_sentences_of_books_are_the_limit_of_that_source_alone() -> None:
    limits = {name: [source.limit for source in recipe(name).ingest.sources] for name in ("books", "books-nli")}
    assert limits == {"books": [5_000_000], "books-nli": [None, None, 5_000_000]}


def test_table_6_runs_to_its_figure_at_any_momentum() -> None:
    config = configured("nli", ["training.objective.momentum=0.5", "training.collapse=null"])
    assert (config.training.objective.momentum, config.training.collapse) == (0.5, None)
    form = {"training": {"objective": {"momentum": 0.5}, "collapse": None}}
    assert override(recipe("nli"), form) == config


@every(RECIPES)
def test_every_embedded_translator_is_held_to_pins(name):
    hops = [hop for view in recipe(name).augment.translations for hop in view.hops]
    embedded = [hop.model_copy(update={"precision": "int8"}) for hop in hops if hop.model.startswith(EMBEDDED)]
    assert [hop.model for hop in embedded if not embedded_pins(hop)] == []
