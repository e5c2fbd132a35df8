"""Heads before and after pooling: they equal sentence-transformers, learn, and survive save and load exactly."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as theirs
from transformers import AutoModel, AutoTokenizer, RobertaConfig, RobertaModel

from bsl.models.encoder.cnn import CNN
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.heads import ACTIVATIONS, Dense, Dropout, LayerNorm
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.encoder.serialization.modules import HEADS
from bsl.models.errors import EncoderError
from tests.exports import exported
from tests.tiny_encoder import ORIGINALS, WIDTH, tiny_encoder, write_tiny
from tests.tiny_heads import KINDS, TEXTS, ours


def test_every_head_has_a_class_of_the_library_and_is_tried():
    for head in HEADS:
        assert hasattr(theirs, head.saved_as or head.__name__), f"{head.__name__}: the library cannot open it"
    tried = {type(head) for ours_of, *_ in KINDS.values() for heads in ours_of() for head in heads}
    assert {*HEADS} - tried == {LayerNorm, Dropout}  # tried in serialization/test_modules.py


@pytest.mark.parametrize("kind", KINDS)
def test_heads_of_sentence_transformers_are_loaded_and_exported_with_the_same_vectors(tmp_path, kind):
    torch.manual_seed(1)
    before, after = KINDS[kind][1]()
    transformer = theirs.Transformer(str(write_tiny(tmp_path / "bare")))
    pooled = before[-1].get_embedding_dimension() if before else WIDTH
    peer = SentenceTransformer(modules=[transformer, *before, theirs.Pooling(pooled, "mean"), *after], device="cpu")
    peer.save(str(tmp_path / "made"))
    encoder = SentenceEncoder.load(tmp_path / "made")
    assert encoder.width == KINDS[kind][2]
    # One by one: in a batch, the CNN of sentence-transformers takes padding for tokens.
    assert np.abs(encoder.encode(TEXTS) - peer.encode(TEXTS, batch_size=1)).max() <= 1e-5
    exported(encoder, tmp_path / "ours", TEXTS, batch_size=1)


def test_convolutions_are_exported_with_a_pooling_of_two_layers(tmp_path):
    exported(ours(tmp_path / "bare", "CNN", pooling="first-last"), tmp_path / "made", TEXTS, batch_size=1)


@pytest.mark.parametrize("architecture", ["bert", "modernbert"])
@pytest.mark.parametrize("kind", ["CNN, Dense, Normalize", "Dense"])
def test_vector_of_a_text_is_independent_of_its_batch(tmp_path, architecture, kind):
    encoder = ours(tmp_path, kind, architecture)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS), alone, rtol=0, atol=1e-6)
    with torch.inference_mode():
        padded = encoder.network(*token_ids(encoder.tokenizer, TEXTS, 24).padded(np.arange(len(TEXTS))))
    np.testing.assert_allclose(padded.numpy(), alone, rtol=0, atol=1e-6)


def test_bf16_heads_output_unit_vectors_in_full_precision(tmp_path):
    encoder = ours(tmp_path, "Dense twice, Normalize")
    short = encoder.encode(TEXTS, bf16=True)
    assert 0 < np.abs(encoder.encode(TEXTS) - short).max() < 0.05
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["none", "CNN, Dense, Normalize"])
def test_loading_uses_no_random_numbers(tmp_path, kind):
    folder = write_tiny(tmp_path / "bare")
    if kind in KINDS:
        ours(folder, kind).save(folder := tmp_path / "made")
    state = torch.get_rng_state()
    SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=24))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_round_trips_through_settings(activation):
    head = Dense(4, 4, activation=activation)
    assert type(Dense.build(head.settings()).activation) is activation
    again = theirs.Dense(4, 4, activation_function=activation())
    assert again.get_config_dict()["activation_function"] == head.settings()["activation_function"]


def test_head_with_mismatched_input_width_is_rejected(tmp_path):
    bare, _ = tiny_encoder(tmp_path)
    with pytest.raises(EncoderError, match=r"CNN: input vectors of width 32, expected 31"):
        Encoder(bare.backbone, bare.config, [CNN(31, 4)])


def with_pooler(folder, **changes):
    """Load a folder with the checkpoint's own pooler above the first token (SimCSE's `cls`)."""
    return SentenceEncoder.load(folder, EncoderConfig(model="x", pooling="cls-pooler", max_length=24, **changes))


def test_cls_pooler_equals_transformers_pooler_output_also_after_export(tmp_path):
    folder = write_tiny(tmp_path / "in")
    encoder = with_pooler(folder)
    theirs, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        pooled = theirs(**tokenizer(ORIGINALS, padding=True, return_tensors="pt")).pooler_output.numpy()
    np.testing.assert_allclose(encoder.encode(ORIGINALS), pooled, atol=1e-5)
    again = exported(encoder, tmp_path / "out", ORIGINALS)
    asked = with_pooler(tmp_path / "out")
    assert len(again.network.sentence_heads) == len(asked.network.sentence_heads) == 1
    np.testing.assert_array_equal(asked.encode(ORIGINALS), encoder.encode(ORIGINALS))


def test_roberta_loads_with_its_pooler(tmp_path):
    folder = write_tiny(tmp_path)
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = RobertaConfig(vocab_size=64, max_position_embeddings=66, pad_token_id=0, **shape)
    RobertaModel(config).save_pretrained(folder)
    encoder = with_pooler(folder).network
    assert (encoder.width, len(encoder.sentence_heads)) == (32, 1)
