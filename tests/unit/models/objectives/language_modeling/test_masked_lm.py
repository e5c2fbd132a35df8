"""Masked language modelling: the restated loss, its inputs, and training on real sentences."""

import numpy as np
import pytest
import torch

from bsl.models.objectives.language_modeling.config import MaskedLMConfig
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, pairs_of, tiny_encoder

TEXTS = ORIGINALS + BACK_DE + BACK_FR


@pytest.fixture(params=["bert", "modernbert"])
def setting(request, tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path, request.param, dropout=0.0)
    torch.manual_seed(1)
    objective = MaskedLMConfig(share=0.4).build(encoder, tokenizer).double()
    return objective, pairs_of(tokenizer, TEXTS, TEXTS[::-1])


def restated(objective, batch, seed):
    """Return the mean −log p of the masked tokens of the first views, by a padded pass and a full softmax."""
    np.random.seed(seed)  # noqa: NPY002  the run's generator
    shown, chosen, truth = objective._hidden(batch)
    total, count = 0.0, 0
    table = objective.online.backbone.get_input_embeddings().weight
    for row in range(len(shown)):
        some = slice(int(shown.offsets[row]), int(shown.offsets[row + 1]))
        ids = torch.from_numpy(shown.ids[some]).long()[None]
        states = objective.online.backbone(input_ids=ids).last_hidden_state[0]
        for state, asked, token in zip(states, chosen[some], truth[some], strict=True):
            if asked:
                inner = objective.head.norm(torch.nn.functional.gelu(objective.head.linear(state)))
                scores = torch.stack([inner @ row for row in table]) + objective.head.bias
                total, count = total - torch.log(scores.exp()[int(token)] / scores.exp().sum()), count + 1
    return total / count


def test_loss_and_gradients_equal_the_restated_formula(setting):
    objective, batch = setting
    expected = restated(objective, batch, 5)
    np.random.seed(5)  # noqa: NPY002
    loss = objective(batch)
    assert loss.item() == pytest.approx(expected.item(), abs=2e-6)  # ModernBERT rotates positions in fp32
    learning = objective.learning_parameters()
    wanted, found = (torch.autograd.grad(value, learning, allow_unused=True) for value in (expected, loss))
    assert sum(gradient is not None for gradient in wanted) > 15
    for gradient, ours in zip(wanted, found, strict=True):
        assert (gradient is None) == (ours is None)
        if gradient is not None:
            torch.testing.assert_close(ours, gradient, rtol=1e-4, atol=1e-6)


def test_masks_depend_on_seed_and_not_on_view_2(setting):
    objective, batch = setting

    def hidden(seed, rows):
        np.random.seed(seed)  # noqa: NPY002  the run's generator
        return objective._hidden(rows)[0].ids.tolist()

    other = type(batch)(batch.tokens, batch.view_1, batch.view_1)
    assert hidden(1, batch) == hidden(1, other) != hidden(2, batch)
