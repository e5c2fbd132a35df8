"""Every recipe makes the views that its pairings use, names published rows, and can be deployed."""

from pathlib import Path

import pytest

from bsl.flows.config import override
from bsl.flows.recipes import RECIPES, recipe
from bsl.flows.recipes.published_rows import ROWS
from bsl.flows.recipes.shared import ENCODERS
from bsl.flows.recipes.untrained import GLOVE
from bsl.models.evaluation.published import rows_of
from bsl.models.translation.filters import FILTERS
from bsl.models.views.config import ORIGINAL, AugmentConfig, SynonymView
from bsl.storage.artifacts.keys import fingerprint
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
def test_views_of_pairings_are_made_and_published_systems_have_rows(name: str) -> None:
    config = recipe(name)
    made, pairings = methods(config.augment), config.pairs.pairings
    for pairing in pairings:
        assert (made[pairing.view_1], made[pairing.view_2]) == (pairing.lang_1, pairing.lang_2)
    assert {*made} - {ORIGINAL} <= {view for pairing in pairings for view in (pairing.view_1, pairing.view_2)}
    rows = [row for system in config.published for row in rows_of(system)]
    assert {row.system for row in rows} == set(config.published)
    papers = all(row.source.startswith(PAPERS) or "quoted from" in row.source for row in rows)
    assert papers or name in OF_THE_FIELD
    hops = [hop for view in config.augment.translations for hop in view.hops]
    embedded = [hop.model_copy(update={"precision": "int8"}) for hop in hops if hop.model.startswith(EMBEDDED)]
    assert [hop.model for hop in embedded if not embedded_pins(hop)] == []
    if name not in SMALL:
        assert config.augment.filters == ()
    elif config.augment.translations:
        assert config.augment.filters == FILTERS


def test_only_listed_recipes_need_labels_or_keep_the_original_encoder() -> None:
    configs = {name: recipe(name) for name in RECIPES}
    assert {name for name, config in configs.items() if config.augment.needs_labels} == WITH_LABELS
    trained = {name: config.training for name, config in configs.items() if config.training}
    keeping = {name for name, training in trained.items() if training.select == "best-or-start"}
    assert keeping == {
        "tiny", "tiny-entail", "tiny-multilingual", "tiny-multilingual-distil", "tiny-multilingual-sup", "tiny-distil",
        "tiny-plus", "nli-plus", "tiny-bsl-sbert",
    }  # fmt: skip
    assert keeping.isdisjoint(name for names in ROWS.values() for name in names)
    assert configs["synonym"].augment.rewritings == (SynonymView(share=0.3, senses=None, inflect=False),)
    limits = {name: [source.limit for source in configs[name].ingest.sources] for name in ("books", "books-nli")}
    assert limits == {"books": [5_000_000], "books-nli": [None, None, 5_000_000]}


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


PINS = {"nli": "36ebbdd055f44792", "tiny-distil": "6592560aa341ad32"}


@every(PINS.items())
def test_recipe_settings_in_keys_match_their_pinned_hash(name: str, pinned: str) -> None:
    """A change would orphan every artifact of users."""
    sections = ("ingest", "augment", "pairs", "encoder", "training")
    found = fingerprint([getattr(recipe(name), section) for section in sections])[:16]
    assert found == pinned, f"keys of {name} are {found}; name the change in CHANGELOG, then pin it"
