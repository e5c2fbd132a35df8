"""Objectives are checked against the encoder before a training."""

import re

import pytest

import bsl
from bsl.flows.config import override
from bsl.flows.recipes import recipe
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import TrainingError
from bsl.tasks.embedding.encoders import resolve
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.training.train import check_objectives


def test_refused_objective_names_the_folder_of_the_encoder(tmp_path):
    """Regression: the error named the digest of the folder's content."""
    folder = str(tmp_path / "mine")
    bsl.SentenceEncoder.load("embedded:mini-sentence").save(folder)
    site = RunContext(store=str(tmp_path / "store"))
    found = resolve(site, EncoderConfig(model=folder))
    training = override(recipe("tiny"), {"training": {"objective": {"name": "isbert"}}}).training
    with pytest.raises(TrainingError, match=f"isbert: {re.escape(folder)} has .* modules after pooling"):
        check_objectives(site, found.encoder, found.config, [training])
