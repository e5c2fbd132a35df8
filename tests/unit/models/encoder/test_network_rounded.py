"""An encoder with weights in bf16 gives the vectors of the original, up to rounding."""

import numpy as np
import pytest
import torch
from transformers import AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.static import StaticTable
from bsl.models.encoder.transformer import ProductWithGelu
from bsl.models.encoder.unpadded import Tokens
from tests.tiny_encoder import random_tokens

PAD, WIDTH = 1, 32
SIZES = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def encoder_of(architecture: str, **settings) -> Encoder:
    torch.manual_seed(0)
    usual = {"vocab_size": 50, "max_position_embeddings": 40, "pad_token_id": PAD, "bos_token_id": 2, "eos_token_id": 3}
    backbone = AutoModel.from_config(CONFIG_MAPPING[architecture](**usual, **SIZES)).eval()
    return Encoder(backbone, EncoderConfig(model="x", max_length=24, **settings)).eval()


@pytest.fixture
def tokens() -> Tokens:
    return random_tokens([5, 9, 2, 9, 14])


@pytest.mark.parametrize(
    ("architecture", "settings"),
    [
        ("bert", {}),
        ("modernbert", {}),
        ("mpnet", {}),
        ("bert", {"pooling": "first-last"}),
        ("bert", {"normalize": True}),
    ],
)
def test_bf16_vectors_are_close_and_unaffected_by_autocast(tokens, architecture, settings):
    encoder = encoder_of(architecture, **settings)
    rounded = encoder.rounded(PAD)
    with torch.no_grad():
        wanted = encoder.embed(tokens, np.arange(5), 64)
        found = rounded.embed(tokens, np.arange(5), 64)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(rounded.embed(tokens, np.arange(5), 64), found)
    assert found.dtype == torch.float32
    assert not torch.equal(found, wanted)
    assert torch.cosine_similarity(found, wanted).min() > 0.999
    assert rounded.supports_packing(PAD) == encoder.supports_packing(PAD)


@pytest.mark.parametrize(
    ("architecture", "settings", "products"),
    [("bert", {}, 2), ("mpnet", {}, 2), ("bert", {"hidden_act": "relu"}, 0), ("modernbert", {}, 0)],
)
def test_gelu_is_fused_only_in_bert_style_gelu_layers(architecture, settings, products):
    torch.manual_seed(0)
    config = CONFIG_MAPPING[architecture](vocab_size=50, max_position_embeddings=40, pad_token_id=PAD, **SIZES)
    config.update(settings)
    encoder = Encoder(AutoModel.from_config(config).eval(), EncoderConfig(model="x", max_length=24))
    assert sum(isinstance(module, ProductWithGelu) for module in encoder.rounded(PAD).modules()) == products
    assert not any(isinstance(module, ProductWithGelu) for module in encoder.modules())


@pytest.mark.parametrize("shape", [(7, 32), (3, 5, 32)])
def test_product_with_gelu_equals_linear_then_gelu(shape):
    torch.manual_seed(0)
    linear = torch.nn.Linear(32, 48)
    x = torch.randn(shape)
    torch.testing.assert_close(ProductWithGelu(linear)(x), torch.nn.functional.gelu(linear(x)), atol=5e-4, rtol=0)


def test_rounding_leaves_the_original_and_buffers_in_full_precision():
    encoder = encoder_of("modernbert")
    rounded = encoder.rounded(PAD)
    assert {weight.dtype for weight in rounded.parameters()} == {torch.bfloat16}
    assert {weight.dtype for weight in encoder.parameters()} == {torch.float32}
    kept = dict(encoder.named_buffers())
    assert kept  # frequencies of rotary positions: rounded, distant tokens would be misplaced
    for name, buffer in rounded.named_buffers():
        assert torch.equal(buffer, kept[name])


def test_static_table_is_not_rounded():
    encoder = Encoder(StaticTable(torch.zeros(5, 3)), EncoderConfig(model="x"))
    assert encoder.rounded(PAD) is encoder
