"""Masked language modelling: the restated loss, its inputs, and training on real sentences."""

import numpy as np
import polars as pl
import pytest
import torch

from models.encoder.config import EncoderConfig
from models.encoder.sentence_encoder import SentenceEncoder
from models.objectives.config import MaskedLMConfig
from models.objectives.registry import build_objective
from models.training.batches import tokenise_pairs
from models.training.config import TrainingConfig
from models.training.distributed import agree_on_gradients
from models.training.loop import train
from storage.assets.embedded import embedded_path
from tests.fake_processes import as_process
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, pair_of, reader, tiny_encoder

TEXTS = ORIGINALS + BACK_DE + BACK_FR


@pytest.fixture(params=["bert", "modernbert"])
def setting(request, tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path, request.param, dropout=0.0)
    torch.manual_seed(1)
    objective = build_objective(encoder, MaskedLMConfig(share=0.4), tokenizer).double()
    frame = pl.DataFrame({"text_1": TEXTS, "text_2": TEXTS[::-1]})
    return objective, tokenise_pairs(reader(tokenizer, 24), frame)


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


def test_loss_and_gradients_are_those_of_the_formula(setting):
    objective, batch = setting
    expected = restated(objective, batch, 5)
    np.random.seed(5)  # noqa: NPY002
    loss = objective(batch, 64)
    assert loss.item() == pytest.approx(expected.item(), abs=2e-6)  # ModernBERT rotates positions in fp32
    learning = objective.learning_parameters()
    wanted, found = (torch.autograd.grad(value, learning, allow_unused=True) for value in (expected, loss))
    assert sum(gradient is not None for gradient in wanted) > 15
    for gradient, ours in zip(wanted, found, strict=True):
        assert (gradient is None) == (ours is None)
        if gradient is not None:
            torch.testing.assert_close(ours, gradient, rtol=1e-4, atol=1e-6)


def test_masks_come_from_the_runs_generator_and_second_views_are_not_read(setting):
    objective, batch = setting

    def hidden(seed, rows):
        np.random.seed(seed)  # noqa: NPY002  the run's generator
        return objective._hidden(rows)[0].ids.tolist()

    other = type(batch)(batch.tokens, batch.view_1, batch.view_1)
    assert hidden(1, batch) == hidden(1, other) != hidden(2, batch)


def test_processes_add_their_shares_to_the_gradient_of_one(setting):
    objective, batch = setting

    def gradients():
        objective.zero_grad()
        np.random.seed(3)  # noqa: NPY002
        loss = objective(batch, 64)
        loss.backward()
        # The fake group communicates nothing, so each process has its own gradients.
        agree_on_gradients(objective, objective.learning_parameters())
        return [p.grad.clone() if p.grad is not None else None for p in objective.learning_parameters()]

    whole, shares = gradients(), []
    for rank in range(3):
        with as_process(rank, of=3):
            shares.append(gradients())
    for expected, *parts in zip(whole, *shares, strict=True):
        if expected is not None:
            torch.testing.assert_close(sum(parts), expected, rtol=1e-6, atol=1e-9)


def test_real_sentences_the_embedded_head_and_the_export(tmp_path):
    """Train 20 steps on the embedded encoder: its head is reused and saved, and sentence-transformers agrees."""
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    rows = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    texts = rows["premise"].unique(maintain_order=True).head(160)
    pairs = pl.DataFrame({"text_1": texts, "text_2": texts})
    encoder, tokenizer = pair_of(
        SentenceEncoder.load(embedded_path("bert-mini"), EncoderConfig(model="embedded:bert-mini"))
    )
    config = TrainingConfig(
        precision="fp32",
        objective=MaskedLMConfig(),
        lr=3e-4,
        batch_size=8,
        epochs=1,
        eval_every=20,
        select="last",
        collapse=None,
    )
    result = train(pairs, SentenceEncoder(encoder, tokenizer), config)
    losses = result.log["loss"].drop_nulls()
    assert (result.steps, len(losses)) == (20, 20)
    assert losses.head(3).mean() < 4  # a new head would start at ln 8192 = 9.0
    assert set(result.state.tensors) == {"online", "head", "optimizer", "rng", "best"}
    SentenceEncoder(result.encoder, tokenizer).save(tmp_path)
    theirs = SentenceTransformer(str(tmp_path), device="cpu").encode(texts.to_list()[:32])
    assert np.abs(theirs - SentenceEncoder(result.encoder, tokenizer).encode(texts.to_list()[:32])).max() <= 1e-5
    assert np.abs(theirs - SentenceEncoder(encoder, tokenizer).encode(texts.to_list()[:32])).max() > 1e-3
