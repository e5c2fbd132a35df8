"""The vocabulary head: loaded from each architecture's own masked language model, or new."""

import pytest
import torch
from transformers import (
    AutoModel,
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    MPNetConfig,
    MPNetForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

from bsl.models.objectives.language_modeling.masked_lm import embeddings_of, vocabulary_head
from bsl.storage.assets.embedded import embedded_path
from tests.tiny_encoder import write_tiny

V, D = 40, 16
USUAL = {"vocab_size": V, "hidden_size": D, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
KINDS = [
    (BertForMaskedLM, BertConfig(**USUAL, hidden_act="relu")),
    (RobertaForMaskedLM, RobertaConfig(**USUAL, pad_token_id=1)),
    (XLMRobertaForMaskedLM, XLMRobertaConfig(**USUAL, pad_token_id=1)),
    (MPNetForMaskedLM, MPNetConfig(**USUAL)),
    (
        ModernBertForMaskedLM,
        ModernBertConfig(**USUAL, pad_token_id=0, bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3),
    ),
    (
        DistilBertForMaskedLM,
        DistilBertConfig(vocab_size=V, dim=D, n_layers=1, n_heads=2, hidden_dim=32),
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
    backbone = AutoModel.from_pretrained(tmp_path).eval()
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


def test_embedded_encoder_loads_its_trained_vocabulary_head():
    backbone = AutoModel.from_pretrained(embedded_path("bert-mini"))
    weights = vocabulary_head(backbone).state_dict()
    assert weights["linear.weight"].shape == (256, 256)
    assert weights["bias"].abs().max() > 0.1  # learnt, not zeros


def test_checkpoint_without_a_head_gets_a_seeded_random_head(tmp_path):
    backbone = AutoModel.from_pretrained(write_tiny(tmp_path))
    torch.manual_seed(3)
    head = vocabulary_head(backbone)
    torch.manual_seed(3)
    again = vocabulary_head(backbone)
    assert not head.bias.any()
    assert head.linear.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert all(torch.equal(a, b) for a, b in zip(head.parameters(), again.parameters(), strict=True))
