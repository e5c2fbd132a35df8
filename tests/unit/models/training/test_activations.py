"""Activations computed again in the backward pass: when, and with the same gradients."""

import numpy as np
import pytest
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig
from bsl.models.objectives.language_modeling.config import MaskedLMConfig, TSDAEConfig
from bsl.models.runtime.random_state import seeded
from bsl.models.training.activations import compute_again_if_large, kept_bytes
from bsl.models.training.token_cache import open_token_cache
from tests.tiny_encoder import write_tiny
from tests.tiny_training import PAIRS


def loaded(folder, architecture="bert", **changes):
    write_tiny(folder, architecture)
    return SentenceEncoder.load(folder, EncoderConfig(model=str(folder), max_length=24, **changes))


@pytest.mark.parametrize("architecture", ["bert", "modernbert", "roberta"])
@pytest.mark.parametrize("settings", [BSLConfig(momentum=0.9), ContrastiveConfig(), MaskedLMConfig()])
def test_gradients_are_the_same_bits_and_memory_is_freed(tmp_path, architecture, settings):
    encoder = loaded(tmp_path / "encoder", architecture, dropout=0.1)
    data = open_token_cache(tmp_path / "data", PAIRS.lazy(), encoder, settings.needs)
    batch, found = data.take(np.arange(8)), []
    for memory in (1 << 50, 1):
        torch.manual_seed(0)
        objective = settings.build(encoder.network, encoder.own_tokenizer).train()
        assert compute_again_if_large(objective, data, 8, memory) == (memory == 1)
        kept = []
        with (
            seeded(1),
            torch.autograd.graph.saved_tensors_hooks(lambda x, kept=kept: kept.append(x.nbytes) or x, lambda x: x),
        ):
            loss = objective(batch)
        gradients = torch.autograd.grad(loss, objective.learning_parameters(), allow_unused=True)
        found.append((loss.item(), [None if g is None else g.numpy().tobytes() for g in gradients], sum(kept)))
    (loss, gradients, bytes_kept), (again, same, fewer) = found
    assert (again, same) == (loss, gradients)
    assert fewer < 0.7 * bytes_kept


def test_estimate_grows_with_tokens_layers_and_width_of_learning_transformers(tmp_path):
    encoder = loaded(tmp_path)
    size = encoder.network.transformer.config
    objective = BSLConfig(momentum=0.9).build(encoder.network, encoder.own_tokenizer)
    assert kept_bytes(objective, 100) == 180 * 100 * size.num_hidden_layers * size.hidden_size
    objective.requires_grad_(False)
    assert kept_bytes(objective, 100) == 0


def test_objective_that_changes_layers_keeps_its_activations(tmp_path):
    encoder = loaded(tmp_path / "encoder")
    data = open_token_cache(tmp_path / "data", PAIRS.lazy(), encoder)
    assert not compute_again_if_large(TSDAEConfig().build(encoder.network, encoder.own_tokenizer), data, 8, 1)
