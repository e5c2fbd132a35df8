"""Heads before and after pooling: they equal sentence-transformers, learn, and survive save and load exactly."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as theirs

from bsl.models.encoder.cnn import CNN
from bsl.models.encoder.heads import ACTIVATIONS, TOKENS, Dense, LayerNorm, Normalize
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.encoder.serialization.folder_settings import read_saved
from bsl.models.encoder.serialization.modules import read_head
from bsl.models.errors import EncoderError
from tests.exports import exported
from tests.tiny_encoder import WIDTH, tiny_encoder, write_tiny
from tests.tiny_heads import KINDS, ROWS, TEXTS, ours, rewrite


@pytest.mark.parametrize("kind", KINDS)
def test_loaded_folder_matches_sentence_transformers_vectors(tmp_path, kind):
    torch.manual_seed(1)
    before, after = KINDS[kind][1]()
    transformer = theirs.Transformer(str(write_tiny(tmp_path / "bare")))
    pooled = before[-1].get_embedding_dimension() if before else WIDTH
    peer = SentenceTransformer(modules=[transformer, *before, theirs.Pooling(pooled, "mean"), *after], device="cpu")
    peer.save(str(tmp_path / "made"))
    encoder = SentenceEncoder.load(tmp_path / "made")
    assert encoder.width == KINDS[kind][2]
    assert np.abs(encoder.encode(TEXTS) - peer.encode(TEXTS, batch_size=1)).max() <= 1e-5


POOLINGS = ("mean", "cls", "first-last")
# Heads on sentence vectors do not see the pooling: one each; heads on token vectors come before it.
POOLED = [
    (kind, pooling)
    for place, kind in enumerate(KINDS)
    for pooling in (POOLINGS if KINDS[kind][0]()[0] else (POOLINGS[place % 3],))
]


@pytest.mark.parametrize(("kind", "pooling"), POOLED)
def test_export_of_heads_round_trips_and_matches_sentence_transformers(tmp_path, kind, pooling):
    encoder = ours(tmp_path / "bare", kind, pooling=pooling)
    assert encoder.encode(TEXTS).shape == (len(TEXTS), KINDS[kind][2])
    # One by one: in a batch, the CNN of sentence-transformers takes padding for tokens.
    exported(encoder, tmp_path / "made", TEXTS, batch_size=1)


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
@pytest.mark.parametrize("kind", ["CNN, Dense, Normalize", "Dense"])
def test_vector_of_a_text_is_independent_of_its_batch(tmp_path, architecture, kind):
    encoder = ours(tmp_path, kind, architecture)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS), alone, rtol=0, atol=1e-6)
    tokens = token_ids(encoder.tokenizer, TEXTS, 24)
    with torch.inference_mode():
        padded = encoder.network(*tokens.padded(np.arange(len(TEXTS))))
    np.testing.assert_allclose(padded.numpy(), alone, rtol=0, atol=1e-6)


def test_heads_receive_gradients(tmp_path):
    encoder = ours(tmp_path, "CNN, Dense, Normalize")
    tokens = token_ids(encoder.tokenizer, TEXTS, 24)
    (encoder.network.embed(tokens, ROWS, 30)[:, 0]).sum().backward()
    heads = {name: p for name, p in encoder.network.named_parameters() if "heads" in name}
    assert set(heads) == {
        *(f"token_heads.0.convs.0.{name}" for name in ("weight", "bias")),
        *(f"sentence_heads.0.linear.{name}" for name in ("weight", "bias")),
    }
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in heads.values())


def test_bf16_heads_output_unit_vectors_in_full_precision(tmp_path):
    encoder = ours(tmp_path, "Dense twice, Normalize")
    exact = encoder.encode(TEXTS)
    short = encoder.encode(TEXTS, bf16=True)
    assert 0 < np.abs(exact - short).max() < 0.05
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1, rtol=0, atol=1e-6)


def test_bare_transformer_has_no_heads_and_uses_no_randomness(tmp_path):
    folder = write_tiny(tmp_path)
    config = tiny_encoder(folder)[0].config
    state = torch.get_rng_state()
    encoder = SentenceEncoder.load(folder, config).network
    assert torch.equal(torch.get_rng_state(), state)
    assert all(name.startswith("backbone.") for name in encoder.state_dict())
    assert len(encoder.token_heads) == len(encoder.sentence_heads) == 0


def test_heads_are_read_without_random_numbers(tmp_path):
    ours(tmp_path / "bare", "CNN, Dense, Normalize").save(tmp_path / "made")
    saved = read_saved(tmp_path / "made")
    state = torch.get_rng_state()
    heads = [read_head(module) for module in (*saved.token_heads, *saved.sentence_heads)]
    assert [type(head) for head in heads] == [CNN, Dense, Normalize]
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_round_trips_through_settings(tmp_path, activation):
    head = Dense(4, 4, activation=activation)
    assert type(Dense.build(head.settings()).activation) is activation
    again = theirs.Dense(4, 4, activation_function=activation())
    assert again.get_config_dict()["activation_function"] == head.settings()["activation_function"]


def test_old_folders_with_pickled_weights_are_read(tmp_path):
    encoder = ours(tmp_path / "bare", "Dense")
    vectors = encoder.encode(TEXTS)
    encoder.save(tmp_path / "made")
    dense = tmp_path / "made" / "2_Dense"
    torch.save(load_file(dense / "model.safetensors"), dense / "pytorch_model.bin")
    (dense / "model.safetensors").unlink()
    np.testing.assert_array_equal(SentenceEncoder.load(tmp_path / "made").encode(TEXTS), vectors)


def test_pickle_with_other_objects_than_tensors_is_rejected(tmp_path):
    ours(tmp_path / "bare", "Dense").save(tmp_path / "made")
    dense = tmp_path / "made" / "2_Dense"
    (dense / "model.safetensors").unlink()
    torch.save({"linear.weight": Fraction(1)}, dense / "pytorch_model.bin")
    with pytest.raises(
        EncoderError, match="its pickled weights contain more than tensors, and code in files is never run"
    ):
        SentenceEncoder.load(tmp_path / "made")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config.json", {"activation_function": "torch.nn.modules.activation.PReLU"}, "activation 'torch.*PReLU', exp"),
        ("config.json", {"activation_function": "os.Tanh"}, "activation 'os.Tanh', expected one of torch.nn's"),
        (
            "config.json",
            {"module_input_name": "token_embeddings"},
            "Dense reads or writes .*token_embeddings, expected sentence",
        ),
        ("config.json", {"out_features": 13}, "weights and config.json do not match"),
    ],
)
def test_unsupported_or_mismatched_dense_config_is_rejected(tmp_path, file, change, message):
    ours(tmp_path / "bare", "Dense").save(tmp_path / "made")
    rewrite(tmp_path / "made" / "2_Dense" / file, lambda settings: settings | change)
    with pytest.raises(EncoderError, match=f"2_Dense: .*{message}"):
        SentenceEncoder.load(tmp_path / "made")


def test_layer_norm_on_token_vectors_is_rejected(tmp_path):
    bare, tokenizer = tiny_encoder(tmp_path)
    SentenceEncoder(Encoder(bare.backbone, bare.config, [], [LayerNorm(WIDTH)]), tokenizer).save(tmp_path / "made")
    rewrite(tmp_path / "made" / "2_LayerNorm" / "config.json", lambda own: own | {"module_input_name": TOKENS})
    with pytest.raises(EncoderError, match=r"LayerNorm reads or writes .*token_embeddings, expected sentence"):
        SentenceEncoder.load(tmp_path / "made")


def test_head_with_mismatched_input_width_is_rejected(tmp_path):
    bare, _ = tiny_encoder(tmp_path)
    with pytest.raises(EncoderError, match=r"Dense: input vectors of width 32, expected 5"):
        Encoder(bare.backbone, bare.config, [], [Dense(5, 4)])
    with pytest.raises(EncoderError, match=r"CNN: input vectors of width 32, expected 31"):
        Encoder(bare.backbone, bare.config, [CNN(31, 4)])


def test_damaged_or_missing_head_files_raise_encoder_error(tmp_path):
    ours(tmp_path / "bare", "Dense").save(tmp_path / "made")
    dense = tmp_path / "made" / "2_Dense"
    save_file({"linear.weight": torch.zeros(12, WIDTH)}, dense / "model.safetensors")
    with pytest.raises(EncoderError, match=r"(?s)do not match .*linear\.bias"):
        SentenceEncoder.load(tmp_path / "made")
    (dense / "model.safetensors").write_bytes(b"{")
    with pytest.raises(EncoderError, match="cannot read the weights"):
        SentenceEncoder.load(tmp_path / "made")
    (dense / "model.safetensors").unlink()
    with pytest.raises(EncoderError, match=r"no weights, expected model.safetensors or pytorch_model.bin"):
        SentenceEncoder.load(tmp_path / "made")
    (dense / "config.json").unlink()
    with pytest.raises(EncoderError, match=r"config\.json lacks 'in_features'"):
        SentenceEncoder.load(tmp_path / "made")


def test_normalize_false_removes_the_saved_normalize_layer(tmp_path):
    encoder = ours(tmp_path / "bare", "CNN, Dense, Normalize")
    encoder.save(tmp_path / "made")
    plain = SentenceEncoder.load(tmp_path / "made", encoder.config.model_copy(update={"normalize": False}))
    vectors = plain.encode(TEXTS)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(unit, encoder.encode(TEXTS), atol=1e-6)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() > 0.01
