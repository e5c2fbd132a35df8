"""Masked language modelling: the restated loss, the masks, the fused cross-entropy, and the published heads."""

import numpy as np
import pytest
import torch
import transformers as hf
from torch.nn import functional

from bsl.models.errors import EncoderError
from bsl.models.objectives.language_modeling import masked_lm as module
from bsl.models.objectives.language_modeling.config import MaskedLMConfig
from bsl.models.objectives.language_modeling.masked_lm import (
    Masking,
    embeddings_of,
    linear_cross_entropy,
    vocabulary_head,
)
from tests.equal_losses import assert_equal_losses
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, pairs_of, tiny_encoder, write_tiny

TEXTS = ORIGINALS + BACK_DE + BACK_FR


@pytest.fixture(params=["bert", "modernbert"])
def setting(request, tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path, request.param, dropout=0.0)
    torch.manual_seed(1)
    objective = MaskedLMConfig(share=0.4).build(encoder, tokenizer).double()
    return objective, pairs_of(tokenizer, TEXTS, TEXTS[::-1])


def restated(objective, hidden):
    """Return the mean −log p of the masked tokens of the first views, by a padded pass and a full softmax."""
    shown, chosen, truth = hidden
    total, count = 0.0, 0
    table = objective.online.backbone.get_input_embeddings().weight
    for row in range(len(shown)):
        some = slice(int(shown.offsets[row]), int(shown.offsets[row + 1]))
        ids, asked = torch.from_numpy(shown.ids[some]).long()[None], torch.from_numpy(chosen[some])
        states = objective.online.backbone(input_ids=ids).last_hidden_state[0, asked]
        scores = objective.head.norm(functional.gelu(objective.head.linear(states))) @ table.T + objective.head.bias
        labels = torch.from_numpy(truth[some]).long()[asked]
        total, count = total + functional.cross_entropy(scores, labels, reduction="sum"), count + len(labels)
    return total / count


def test_loss_and_gradients_equal_the_restated_formula(setting):
    objective, batch = setting

    def hidden(seed, rows):
        np.random.seed(seed)  # noqa: NPY002  the run's generator
        return objective._hidden(rows)

    first_views = hidden(5, batch)
    expected = restated(objective, first_views)
    np.random.seed(5)  # noqa: NPY002
    # ModernBERT rotates positions in fp32.
    assert_equal_losses(objective(batch), expected, objective.learning_parameters(), 2e-6, 1e-6)
    other = type(batch)(batch.tokens, batch.view_1, batch.view_1)
    same, changed = hidden(5, other)[0].ids.tolist(), hidden(2, batch)[0].ids.tolist()
    assert first_views[0].ids.tolist() == same != changed


MASK, SIZE = 4, 1000
MASKING = Masking(MASK, np.arange(5), SIZE)


def test_chosen_tokens_are_80_percent_masked_10_percent_random():
    ids = np.random.default_rng(1).integers(5, SIZE, 200_000)
    seen, chosen = MASKING.mask_tokens(ids, 0.15, np.random.default_rng(2))
    assert np.array_equal(chosen, MASKING.mask_tokens(ids, 0.15, np.random.default_rng(2))[1])
    assert chosen.mean() == pytest.approx(0.15, abs=0.003)
    assert np.array_equal(seen[~chosen], ids[~chosen])
    hidden, same = (seen[chosen] == MASK), (seen[chosen] == ids[chosen])
    assert hidden.mean() == pytest.approx(0.8, abs=0.01)
    assert same.mean() == pytest.approx(0.1, abs=0.01)
    other = seen[chosen][~hidden & ~same]
    assert other.min() >= 5
    assert len(np.unique(other)) > SIZE / 2


def test_masking_skips_special_tokens_and_selects_another_token():
    ids = np.array([2, 77, 3, 2, 3, 0])
    for seed in range(50):
        seen, chosen = MASKING.mask_tokens(ids, 0.01, np.random.default_rng(seed))
        assert chosen.tolist() == [False, True, False, False, False, False]
        assert np.array_equal(np.delete(seen, 1), np.delete(ids, 1))
    assert not MASKING.mask_tokens(np.array([2, 3]), 0.5, np.random.default_rng(0))[1].any()


def test_tokenizer_without_a_mask_token_is_refused(tmp_path):
    folder = write_tiny(tmp_path)
    known = Masking.of(hf.AutoTokenizer.from_pretrained(folder))
    assert (known.mask_id, known.special.tolist()) == (4, [0, 1, 2, 3, 4])
    bare = hf.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token="[PAD]")
    with pytest.raises(EncoderError, match="has no mask token"):
        Masking.of(bare)


def drawn(rows, dtype=torch.float64):
    generator, shapes = torch.Generator().manual_seed(0), ((rows, 8), (20, 8), (20,))
    states, weight, bias = (torch.randn(*s, generator=generator, dtype=dtype, requires_grad=True) for s in shapes)
    return states, weight, bias, torch.randint(0, 20, (rows,), generator=generator)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("elements", [module.ELEMENTS, 20 * 256])  # all rows in one block; two full blocks and a rest
def test_fused_loss_and_gradients_equal_torch_cross_entropy(monkeypatch, smoothing, elements):
    monkeypatch.setattr(module, "ELEMENTS", elements)
    states, weight, bias, labels = drawn(600)
    plain = torch.nn.functional.cross_entropy(states @ weight.T + bias, labels, label_smoothing=smoothing)
    fused = linear_cross_entropy(states, weight, labels, smoothing, bias)
    assert fused.item() == pytest.approx(plain.item(), abs=1e-12)
    wanted, found = (torch.autograd.grad(3 * loss, [states, weight, bias]) for loss in (plain, fused))
    for gradient, ours in zip(wanted, found, strict=True):
        torch.testing.assert_close(ours, gradient, rtol=1e-10, atol=1e-14)


def test_empty_batch_has_zero_loss_and_zero_gradients():
    states, weight, bias, labels = drawn(0)
    loss = linear_cross_entropy(states, weight, labels, bias_V=bias)
    assert loss.item() == 0
    assert all(not gradient.any() for gradient in torch.autograd.grad(loss, [states, weight, bias]))


def test_autocast_loss_is_fp32_and_near_the_exact_loss():
    states, weight, bias, labels = drawn(200, torch.float32)
    exact = linear_cross_entropy(states, weight, labels, bias_V=bias)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        short = linear_cross_entropy(states, weight, labels, bias_V=bias)
    assert short.dtype == torch.float32
    assert 0 < abs(short.item() - exact.item()) < 0.02


V, D = 40, 16
USUAL = {"vocab_size": V, "hidden_size": D, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
TOKENS = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
KINDS = [
    (hf.BertForMaskedLM, hf.BertConfig(**USUAL, hidden_act="relu")),
    (hf.RobertaForMaskedLM, hf.RobertaConfig(**USUAL, pad_token_id=1)),
    (hf.XLMRobertaForMaskedLM, hf.XLMRobertaConfig(**USUAL, pad_token_id=1)),
    (hf.MPNetForMaskedLM, hf.MPNetConfig(**USUAL)),
    (hf.ModernBertForMaskedLM, hf.ModernBertConfig(**USUAL, **TOKENS)),
    (
        hf.DistilBertForMaskedLM,
        hf.DistilBertConfig(vocab_size=V, dim=D, n_layers=1, n_heads=2, hidden_dim=32),
    ),
]


@pytest.mark.parametrize(("kind", "config"), KINDS, ids=lambda value: getattr(value, "model_type", ""))
def test_vocabulary_head_gives_the_logits_of_the_published_model(kind, config, tmp_path):
    torch.manual_seed(0)
    whole = kind(config).eval()
    with torch.no_grad():
        for p in whole.parameters():
            p.add_(0.3 * torch.randn_like(p))  # away from zero biases and unit norms
    whole.save_pretrained(tmp_path)
    backbone = hf.AutoModel.from_pretrained(tmp_path).eval()
    head = vocabulary_head(backbone)
    ids = torch.arange(5, 15)[None]
    with torch.no_grad():
        states = backbone(input_ids=ids).last_hidden_state[0]
        scores = head(states) @ embeddings_of(backbone).T + head.bias
        torch.testing.assert_close(scores, whole(input_ids=ids).logits[0], rtol=1e-5, atol=1e-5)
        loss = head.loss(states, embeddings_of(backbone), ids[0])
        expected = torch.nn.functional.cross_entropy(whole(input_ids=ids).logits[0], ids[0], reduction="sum")
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert head.bias.requires_grad
    assert not any(p is q for p in head.parameters() for q in backbone.parameters())


def test_checkpoint_without_a_head_gets_a_seeded_random_head(tmp_path):
    backbone, heads = hf.AutoModel.from_pretrained(write_tiny(tmp_path)), []
    for _ in range(2):
        torch.manual_seed(3)
        heads.append(vocabulary_head(backbone))
    assert not heads[0].bias.any()
    assert heads[0].linear.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert all(torch.equal(a, b) for a, b in zip(heads[0].parameters(), heads[1].parameters(), strict=True))
