"""An encoder with a folded transform, or with weights in bf16, gives the transformed or rounded vectors."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.encoder.static import StaticTable
from bsl.models.encoder.transformer import ProductWithGelu
from bsl.models.errors import EncoderError
from bsl.models.serving.reduction import fold
from bsl.models.transforms.config import WhiteningConfig
from bsl.storage.assets.embedded import embedded_path
from tests.exports import exported
from tests.tiny_encoder import random_tokens, tiny_encoder

PAD, EMBEDDED = 1, 256
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


@pytest.mark.parametrize(
    ("pooling", "normalize", "kept"),
    # The last layer is normalised, so the vectors vary in one direction less; at length 1, in two less.
    [("mean", False, EMBEDDED - 1), ("mean", True, EMBEDDED - 2), ("first-last", False, 128)],
)
def test_folded_whitening_round_trips_in_sentence_transformers(shallow, tmp_path, pooling, normalize, kept):
    rows = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    texts = rows["premise"].unique(maintain_order=True).head(400).to_list()
    config = EncoderConfig(model="shallow", pooling=pooling, normalize=normalize)
    encoder = SentenceEncoder.load(shallow, config)
    own_ND = torch.tensor(encoder.encode(texts))
    whitening = WhiteningConfig(dimensions=kept).fitted(own_ND)
    np.testing.assert_allclose(np.cov(whitening.whitened(own_ND).numpy().T), np.eye(kept), atol=1e-6)
    folded = encoder.with_network(fold(encoder.network, *whitening.linear()))
    few = texts[:40]
    again = exported(folded, tmp_path / "st", few)
    assert (again.config.pooling, again.config.normalize, again.width) == (pooling, True, kept)
    assert np.abs(whitening.apply(own_ND[:40]).numpy() - again.encode(few)).max() <= 1e-5


def test_fold_leaves_the_encoder_and_random_state_unchanged_and_checks_the_width(tmp_path):
    encoder, _ = tiny_encoder(tmp_path)
    before, state = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}, torch.get_rng_state()
    folded = fold(encoder, torch.eye(32, dtype=torch.float64)[:5], torch.ones(32, dtype=torch.float64))
    assert folded.width == 5
    assert torch.equal(torch.get_rng_state(), state)
    assert encoder.state_dict().keys() == before.keys()
    with pytest.raises(EncoderError, match="Dense: input vectors of width 32, expected 31"):
        fold(encoder, torch.zeros(3, 31).double(), torch.zeros(31).double())


def encoder_of(architecture, settings, **fields):
    torch.manual_seed(0)
    usual = {"vocab_size": 50, "max_position_embeddings": 40, "pad_token_id": PAD, "bos_token_id": 2, "eos_token_id": 3}
    backbone = AutoModel.from_config(CONFIG_MAPPING[architecture](**usual, **SIZES, **settings)).eval()
    return Encoder(backbone, EncoderConfig(model="x", max_length=24, **fields)).eval()


@pytest.mark.parametrize(
    ("architecture", "settings", "fields", "products"),
    [
        ("bert", {}, {}, 2),
        ("modernbert", {}, {}, 0),
        ("mpnet", {}, {}, 2),
        ("bert", {"hidden_act": "relu"}, {"pooling": "first-last"}, 0),
        ("bert", {}, {"normalize": True}, 2),
    ],
)
def test_bf16_vectors_are_close_and_unaffected_by_autocast(architecture, settings, fields, products):
    """Only BERT-style layers with gelu are fused."""
    tokens = random_tokens([5, 9, 2, 9, 14])
    encoder = encoder_of(architecture, settings, **fields)
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
    assert sum(isinstance(module, ProductWithGelu) for module in rounded.modules()) == products
    assert not any(isinstance(module, ProductWithGelu) for module in encoder.modules())


class Rounded(TorchDispatchMode):
    """Count the copies in bf16 of each weight."""

    def __init__(self, weights):
        super().__init__()
        self.names, self.copies = {weight.data_ptr(): name for name, weight in weights}, Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._to_copy.default and (name := self.names.get(args[0].data_ptr())):
            self.copies[name] += 1
        return func(*args, **(kwargs or {}))


def test_bf16_rounds_each_weight_once_however_many_passes():
    tokens, encoder = random_tokens([5, 9, 2, 9, 14, 12]), encoder_of("bert", {})
    with Rounded(encoder.named_parameters()) as rounded:
        encoder.encode(tokens, batch_tokens=14, bf16=True)
    assert {name for name in rounded.copies if "layer.0" in name} == {
        name for name, _ in encoder.named_parameters() if "layer.0" in name and "LayerNorm" not in name
    }
    assert set(rounded.copies.values()) == {1}


@pytest.mark.parametrize("shape", [(7, 32), (3, 5, 32)])
def test_product_with_gelu_equals_linear_then_gelu(shape):
    torch.manual_seed(0)
    linear, x = torch.nn.Linear(32, 48), torch.randn(shape)
    torch.testing.assert_close(ProductWithGelu(linear)(x), torch.nn.functional.gelu(linear(x)), atol=5e-4, rtol=0)


def test_rounding_leaves_the_original_buffers_and_tables_in_full_precision():
    encoder = encoder_of("modernbert", {})
    rounded = encoder.rounded(PAD)
    assert {weight.dtype for weight in rounded.parameters()} == {torch.bfloat16}
    assert {weight.dtype for weight in encoder.parameters()} == {torch.float32}
    kept = dict(encoder.named_buffers())
    assert kept  # frequencies of rotary positions: rounded, distant tokens would be misplaced
    assert all(torch.equal(buffer, kept[name]) for name, buffer in rounded.named_buffers())
    table = Encoder(StaticTable(torch.zeros(5, 3)), EncoderConfig(model="x"))
    assert table.rounded(PAD) is table
