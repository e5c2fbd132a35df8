"""Which run a snapshot is of."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from models.objectives.objective import Objective
    from models.training.config import TrainingConfig
    from models.training.evaluator import DevSet
    from models.training.token_file import TokenFile


def run_fingerprint(config: TrainingConfig, objective: Objective, pairs: TokenFile, dev: DevSet | None) -> str:
    """SHA-256 of all that decides a run: settings, first weights, pairs with their tokenizer, dev set."""
    settings = [config.model_dump_json(), objective.online.config.model_dump_json()]
    scored = None if dev is None else [list(dev.texts_1), list(dev.texts_2), [float(score) for score in dev.scores]]
    return fingerprint(objective.online, *settings, pairs.digest, json.dumps(scored))


def fingerprint(network: torch.nn.Module, *parts: str) -> str:
    """SHA-256 of a network's weights and of whatever else decides a run, as 64 hex digits."""
    digest = hashlib.sha256(json.dumps(parts).encode())
    for name, tensor in network.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
