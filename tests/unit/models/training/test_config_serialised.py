"""Training settings as written into artifact keys: a changed field would recompute all checkpoints."""

import hashlib

from models.objectives.config import OBJECTIVE_CONFIGS
from models.training.config import TrainingConfig
from tests.every import every

PINS = {
    "bsl": "8234cbfa92bab1b2",
    "contrastive": "bf69bdefe8890c8e",
    "simcse": "d2cb0f3831639138",
    "vicreg": "cbb627f9fa51372c",
    "barlow": "b5c9c77a0f0e4717",
    "regression": "ff5e781940c81966",
    "masked-lm": "42f6155a16bd26df",
    "tsdae": "5507e7e66ab17725",
    "isbert": "e049fe9f17a3b9f3",
    "softmax": "72f33e4cdd959c06",
    "scl": "b0af006a35dba8ec",
    "cross-regression": "5dd9c744e99e5b80",
    "cross-softmax": "9c0f102d379fc0f3",
    "distil": "9417c7d7abb19eed",
}


@every(OBJECTIVE_CONFIGS)
def test_default_config_json_matches_its_pinned_hash(name):
    written = TrainingConfig(objective=OBJECTIVE_CONFIGS[name]()).model_dump_json()
    assert hashlib.sha256(written.encode()).hexdigest()[:16] == PINS[name]
