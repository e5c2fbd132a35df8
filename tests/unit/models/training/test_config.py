"""Training settings as artifact keys contain them: a changed field would recompute all checkpoints."""

from bsl.models.training.config import TrainingConfig
from bsl.storage.artifacts.keys import fingerprint
from tests.tiny_training import OBJECTIVE_CONFIGS

PINS = {
    "bsl": "abaaed629bb80810",
    "contrastive": "0fd7546877766c50",
    "simcse": "cc6d814442cd2d00",
    "regression": "08c4a83b612ca22b",
    "masked-lm": "8db159aa006e0fe5",
    "tsdae": "8164dd140c42bebe",
    "isbert": "d4ed7ed4cfbdcf08",
    "softmax": "8774f83edc6bea0c",
    "scl": "92d9c73702881547",
    "cross-regression": "ba35935430a0d954",
    "cross-softmax": "0466d1afc4e09681",
    "distil": "22d6043c4ec7f358",
}


def test_default_config_in_keys_matches_its_pinned_hash():
    """A new objective adds its line."""
    found = {name: fingerprint(TrainingConfig(objective=kind()))[:16] for name, kind in OBJECTIVE_CONFIGS.items()}
    assert found == PINS
