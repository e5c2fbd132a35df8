"""IS-BERT's supervised rows: each seed's fine-tuning draws convolutions (ft), or they are trained before (ssl + ft)."""

import polars as pl
import pytest
import torch

from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.contrastive_config import ISBERTConfig
from bsl.models.training.config import STSB_CONFIG, TrainingConfig
from bsl.models.training.loop import train
from bsl.models.views.annotated_pairs import graded_pairs
from bsl.storage.artifacts.refs import CheckpointRef
from bsl.tasks.evaluation.config import EncoderOverrides
from bsl.tasks.evaluation.systems import find_encoder_system
from bsl.tasks.stage.run_context import RunContext
from tests.tiny_encoder import write_tiny
from tests.tiny_finetuning import FIRST, GOLD, SECOND

CNN = CNNConfig(kernels=(1, 3), channels=6)
PAIRS = graded_pairs(pl.DataFrame({"sentence1": FIRST, "sentence2": SECOND, "score": GOLD}), 5)
FT = STSB_CONFIG.model_copy(update={"batch_size": 4, "epochs": 2, "lr": 1e-6})  # a rate that hardly changes weights
SSL = TrainingConfig(
    precision="fp32", objective=ISBERTConfig(), batch_size=4, lr=1e-3, bias_correction=False, drop_last=False
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_tiny(tmp_path_factory.mktemp("tiny"))


def convolution(encoder):
    return encoder.token_heads[0].convs[1].weight


def test_fine_tuning_initialises_convolutions_by_seed(folder):
    candidate = find_encoder_system(RunContext(), str(folder), EncoderOverrides(cnn=CNN, max_length=24))
    assert not isinstance(candidate.encoder, CheckpointRef)
    assert candidate.config.cnn == CNN
    encoder = SentenceEncoder.load(candidate.encoder.folder, candidate.config)
    tuned = [train(PAIRS, encoder, FT.model_copy(update={"seed": seed})).encoder for seed in (0, 0, 1)]
    assert [one.width for one in tuned] == [12, 12, 12]
    assert torch.equal(convolution(tuned[0]), convolution(tuned[1]))
    assert (convolution(tuned[0]) - convolution(tuned[2])).abs().max() > 0.01


def test_fine_tuning_starts_from_pretrained_convolutions(folder, tmp_path):
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="tiny", max_length=24, cnn=CNN))
    learnt = train(PAIRS, encoder, SSL).encoder
    encoder.with_network(learnt).save(tmp_path)
    candidate = find_encoder_system(RunContext(), str(tmp_path), EncoderOverrides())
    again = SentenceEncoder.load(tmp_path, candidate.config)
    tuned = [train(PAIRS, again, FT.model_copy(update={"seed": seed})).encoder for seed in (0, 1)]
    for one in tuned:
        torch.testing.assert_close(convolution(one), convolution(learnt), rtol=0, atol=1e-4)
