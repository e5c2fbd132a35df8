"""Settings of recipes as artifact keys contain them: a change would orphan every artifact of users."""

from bsl.flows.recipes import recipe
from bsl.storage.artifacts.keys import fingerprint
from tests.every import every

SECTIONS = ("ingest", "augment", "pairs", "encoder", "training")
PINS = {
    "nli": "36ebbdd055f44792",
    "tiny-distil": "6592560aa341ad32",
}


@every(PINS.items())
def test_recipe_settings_in_keys_match_their_pinned_hash(name: str, pinned: str) -> None:
    config = recipe(name)
    found = fingerprint([getattr(config, section) for section in SECTIONS])[:16]
    assert found == pinned, f"keys of {name} are {found}; name the change in CHANGELOG, then pin it"
