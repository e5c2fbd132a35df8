"""IS-BERT's supervised rows: each seed's fine-tuning draws convolutions (ft), or they are trained before (ssl + ft)."""

import polars as pl
import torch

from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.contrastive_config import ISBERTConfig
from bsl.models.training.config import STSB_CONFIG, TrainingConfig
from bsl.models.training.loop import train
from bsl.models.views.annotated_pairs import graded_pairs
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


def tuned(folder, reading, seeds):
    """Return the convolutions after fine-tuning with each seed."""
    candidate = find_encoder_system(RunContext(), str(folder), reading)
    encoder = SentenceEncoder.load(candidate.encoder.folder, candidate.config)
    made = [train(PAIRS, encoder, FT.model_copy(update={"seed": seed})).encoder for seed in seeds]
    assert [one.width for one in made] == [12] * len(made)
    return [convolution(one) for one in made]


def convolution(encoder):
    return encoder.token_heads[0].convs[1].weight


def test_fine_tuning_draws_convolutions_by_seed_or_starts_from_pretrained_ones(tmp_path):
    bare = write_tiny(tmp_path / "bare")
    first, again, other = tuned(bare, EncoderOverrides(cnn=CNN, max_length=24), (0, 0, 1))
    assert torch.equal(first, again)
    assert (first - other).abs().max() > 0.01
    encoder = SentenceEncoder.load(bare, EncoderConfig(model="tiny", max_length=24, cnn=CNN))
    learnt = train(PAIRS, encoder, SSL).encoder
    encoder.with_network(learnt).save(tmp_path / "learnt")
    for one in tuned(tmp_path / "learnt", EncoderOverrides(), (0, 1)):
        torch.testing.assert_close(one, convolution(learnt), rtol=0, atol=1e-4)
