"""Packed sentences without padding give the vectors and gradients of a padded batch."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import transformers
from torch.overrides import TorchFunctionMode
from transformers import AutoModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from bsl.models.encoder import unpadded as module
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.layouts import Tokens, lay_out
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.packing import Packing, packing_of
from bsl.models.encoder.transformer import ENCODER_HALVES
from bsl.models.encoder.unpadded import SHORT, SHORT_IN_TRAINING, packed_attention, run_packed
from tests.tiny_encoder import random_tokens

PAD = 1
PACKED = Packing(0, causal=False, longest=None)
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def network(architecture, **options):
    torch.manual_seed(0)
    sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48} if architecture == "distilbert" else SIZES
    usual = {"vocab_size": 50, "max_position_embeddings": 40, "pad_token_id": PAD, "bos_token_id": 2, "eos_token_id": 3}
    if architecture == "qwen3":
        sizes = {**SIZES, "num_key_value_heads": 2, "head_dim": 8}
    if architecture.endswith("t5"):
        sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    config = CONFIG_MAPPING[architecture](**usual | sizes | options)
    half = ENCODER_HALVES.get(architecture)
    return (getattr(transformers, half)(config) if half else AutoModel.from_config(config)).eval()


@pytest.fixture
def tokens():
    return random_tokens([5, 9, 2, 9, 14, 5, 3])


def encoder_of(architecture, **options):
    return Encoder(network(architecture, **options), EncoderConfig(model="x", max_length=24))


def padded(encoder, tokens, rows):
    return encoder(*tokens.padded(rows))


@pytest.mark.parametrize(
    ("architecture", "first"),
    [
        ("bert", 0),
        ("electra", 0),
        ("distilbert", 0),
        ("modernbert", 0),
        ("roberta", 2),
        ("xlm-roberta", 2),
        ("mpnet", 2),
        ("t5", 0),
        ("mt5", 0),
        ("qwen3", 0),
    ],
)
@pytest.mark.parametrize("by_length", [True, False])
def test_packed_vectors_and_gradients_equal_padded(tokens, architecture, first, by_length):
    encoder, rows = encoder_of(architecture), np.array([4, 0, 2, 3, 3, 6])
    packing = packing_of(encoder.backbone, PAD)
    assert (packing.first, packing.causal) == (first, architecture == "qwen3")
    layout = lay_out(tokens, rows, torch.device("cpu"), by_length=by_length, causal=packing.causal)
    assert (len(layout.groups) == 1) != by_length
    assert layout.bounds.diff().tolist() == tokens.lengths_of(rows)[layout.order].tolist()
    hidden_ND = run_packed(encoder.backbone, layout, first)
    expected = encoder.backbone(**dict(zip(("input_ids", "attention_mask"), tokens.padded(rows), strict=True)))
    for row, vectors_TD in zip(layout.order, layout.padding.pad(hidden_ND), strict=True):
        length = tokens.lengths[rows[row]]
        torch.testing.assert_close(vectors_TD[:length], expected.last_hidden_state[row, :length], rtol=0, atol=2e-6)
    weights = torch.randn(len(rows), 32)
    learning = [p for name, p in encoder.named_parameters() if "pooler" not in name]
    found = torch.autograd.grad((encoder.embed(tokens, rows, 20) * weights).sum(), learning)
    wanted = torch.autograd.grad((padded(encoder, tokens, rows) * weights).sum(), learning)
    for one, other in zip(found, wanted, strict=True):
        # The rounding of a sum depends on its largest terms; processors add in different orders.
        atol = 2e-6 * max(1.0, float(other.abs().max()))
        torch.testing.assert_close(one, other, rtol=1e-4, atol=atol)


@pytest.mark.parametrize(
    ("architecture", "options", "first"),
    [
        ("deberta-v2", {}, None),
        ("umt5", {}, None),
        # Scores are capped, which two short sentences would not show.
        ("gemma2", {"num_key_value_heads": 2, "head_dim": 8}, None),
        # A pass of more tokens than positions is refused.
        ("clip_text_model", {}, None),
        # The last id as padding, as ModernBERT's 50,283.
        ("modernbert", {"vocab_size": 100, "pad_token_id": 99}, 0),
        ("qwen2", {"vocab_size": 100, "pad_token_id": 99, "num_key_value_heads": 2}, 0),
        ("gpt2", {"vocab_size": 100, "pad_token_id": 99}, 0),
    ],
)
def test_vectors_equal_those_of_each_sentence_alone_also_where_packing_is_not_supported(architecture, options, first):
    pad = options.get("pad_token_id", PAD)
    encoder, rows = encoder_of(architecture, **options), np.arange(3)
    tokens = Tokens(np.arange(20, 35, dtype=np.int32), np.array([0, 7, 12, 15]), pad)
    packing = packing_of(encoder.backbone, pad)
    assert (packing and packing.first) == first
    with torch.no_grad():
        alone = torch.cat([padded(encoder, tokens, rows[row : row + 1]) for row in rows])
        for found in (encoder.embed(tokens, rows, 1024), encoder.embed(tokens, rows, 8)):
            torch.testing.assert_close(found, alone, rtol=0, atol=2e-6)


@pytest.mark.parametrize("architecture", ["mpnet", "t5"])
def test_encoders_with_attention_by_distance_are_copied_and_pickled_with_it(tokens, architecture):
    encoder, rows = encoder_of(architecture), np.arange(7)
    with torch.no_grad():
        expected = encoder.embed(tokens, rows, 99)
        for other in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
            torch.testing.assert_close(other.embed(tokens, rows, 99), expected, rtol=0, atol=0)


def test_packing_trial_uses_only_existing_positions():
    """A GPU would raise no exception: its device assertion ends every later call."""
    backbone, asked = network("gpt2", vocab_size=100, pad_token_id=99), []
    backbone.wpe.register_forward_pre_hook(lambda _, inputs: asked.append(int(inputs[0].max())))
    assert packing_of(backbone, 99) == Packing(0, causal=True, longest=None)
    assert max(asked) < 40


def test_only_sentences_longer_than_a_sliding_window_are_padded(tokens):
    encoder = encoder_of("modernbert", local_attention=16)
    assert packing_of(encoder.backbone, PAD) == Packing(0, causal=False, longest=8)
    assert not encoder.supports_packing(PAD)
    masks = []
    encoder.backbone.register_forward_pre_hook(
        lambda _, __, given: masks.append(given.get("attention_mask")), with_kwargs=True
    )
    found = encoder.encode(tokens, batch_tokens=10)  # longest first: 14, 9 and 9 tokens do not fit
    assert [mask is None for mask in masks] == [False, False, False, True, True]
    with torch.no_grad():
        np.testing.assert_allclose(found, padded(encoder, tokens, np.arange(7)), rtol=0, atol=2e-6)


def test_window_that_no_layer_has_pads_no_sentence(tokens):
    """Regression: sentences of more than 64 tokens were padded for the embedded encoders, and TSDAE was refused."""
    encoder = encoder_of("modernbert", local_attention=16, layer_types=["full_attention"] * 2)
    assert packing_of(encoder.backbone, PAD) == Packing(0, causal=False, longest=None)
    with torch.no_grad():
        found = encoder.encode(tokens, batch_tokens=10)
        np.testing.assert_allclose(found, padded(encoder, tokens, np.arange(7)), rtol=0, atol=2e-6)


def test_packing_trial_runs_in_fp32_under_autocast():
    backbone, seen = network("bert"), []
    backbone.encoder.register_forward_hook(lambda *_: seen.append(torch.is_autocast_enabled("cpu")))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert packing_of(backbone, PAD) is not None
    assert set(seen) == {False}


@pytest.mark.parametrize(
    ("architecture", "attention"),
    [(name, attention) for name in ("bert", "modernbert", "roberta", "t5") for attention in ("sdpa", "eager")]
    + [("mpnet", "eager")],
)
def test_packing_trial_leaves_forward_passes_and_saved_files_unchanged(tokens, tmp_path, architecture, attention):
    backbone = network(architecture, attn_implementation=attention).train()
    given = dict(zip(("input_ids", "attention_mask"), tokens.padded(np.arange(7)), strict=True))

    def plain():
        torch.manual_seed(0)
        with torch.no_grad():
            return backbone(**given).last_hidden_state

    def saved(name):
        backbone.save_pretrained(tmp_path / name)
        return {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}

    vectors, files = plain(), saved("before")
    packing_of(backbone, PAD)
    assert backbone.training
    assert torch.equal(plain(), vectors)
    assert saved("after") == files


def test_packed_sentences_around_the_short_limit_equal_padded():
    encoder = encoder_of("bert", max_position_embeddings=SHORT + 9)
    long, rows = random_tokens([SHORT + 1, SHORT, 3, SHORT + 9]), np.arange(4)
    torch.testing.assert_close(encoder.embed(long, rows, 999), padded(encoder, long, rows), rtol=0, atol=2e-6)


class Calls(TorchFunctionMode):
    """Counts the calls of torch's fused attention."""

    count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.count += function is torch.nn.functional.scaled_dot_product_attention
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("dtype", "learns", "tokens", "fused"),
    [
        (torch.float32, True, SHORT, False),
        (torch.float32, True, SHORT + 1, True),
        (torch.bfloat16, True, SHORT_IN_TRAINING, False),
        (torch.bfloat16, True, SHORT_IN_TRAINING + 1, True),
        (torch.bfloat16, False, SHORT + 1, True),
    ],
)
def test_fused_attention_takes_lengths_for_which_it_is_fast(dtype, learns, tokens, fused):
    layout = lay_out(random_tokens([tokens]), np.arange(1), torch.device("cpu"), by_length=True)
    qkv = [torch.randn(1, 2, tokens, 8, dtype=dtype, requires_grad=learns) for _ in range(3)]
    with Calls() as calls:
        packed_attention(qkv, layout, 0.0, None)
    assert calls.count == fused


def test_attention_dropout_applies_only_in_training(tokens):
    rates = {"attention_probs_dropout_prob": 0.5, "hidden_dropout_prob": 0.0}
    encoder, rows = encoder_of("bert", **rates), np.arange(7)

    def vectors(seed):
        torch.manual_seed(seed)
        return encoder.embed(tokens, rows, 99)

    assert torch.equal(vectors(0), vectors(1))
    encoder.train()
    assert torch.equal(vectors(0), vectors(0))
    assert not torch.allclose(vectors(0), vectors(1), atol=1e-3)


def test_mode_survives_two_threads_that_test_one_model():
    """Without a lock, the second would find the mode that the first has set for its test, and restore that one."""
    backbone = network("bert").train()
    first_runs, second_runs, first_ended = threading.Event(), threading.Event(), threading.Event()

    def first():
        packing = packing_of(backbone, PAD)
        first_ended.set()
        return packing

    def second():
        assert first_runs.wait(10)
        return packing_of(backbone, PAD)

    def meet(*_):
        mine, other = (second_runs, first_ended) if first_runs.is_set() else (first_runs, second_runs)
        mine.set()
        other.wait(0.2)  # with the lock, the second does not run before the first has ended

    backbone.register_forward_pre_hook(meet)
    with ThreadPoolExecutor(2) as pool:
        assert [future.result(20) for future in (pool.submit(first), pool.submit(second))] == [PACKED, PACKED]
    assert backbone.training


HEADS, WIDTH = 2, 8


def given(sentences, tokens, *, learns=False):
    """Queries, keys and values (B, H, T, d), as views of concatenated tokens."""
    torch.manual_seed(0)
    rows = (torch.randn(sentences * tokens, HEADS, WIDTH, requires_grad=learns) for _ in range(3))
    return [row.unflatten(0, (sentences, tokens)).transpose(1, 2) for row in rows]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("sentences", "tokens"), [(1, 3), (4, 13), (5, 13), (23, 3), (2, SHORT), (7, SHORT // 2 + 1)])
def test_tiled_attention_equals_attention_of_each_sentence_alone(sentences, tokens, causal):
    qkv = given(sentences, tokens)
    found = module._tiled_attention(qkv, 0.0, None, causal=causal)
    alone = [
        module._plain_attention([x[row : row + 1] for x in qkv], 0.0, None, None, causal=causal)
        for row in range(sentences)
    ]
    torch.testing.assert_close(found, torch.cat(alone), rtol=1e-5, atol=1e-6)


def test_tile_first_used_in_inference_mode_supports_training():
    with torch.inference_mode():
        module._tiled_attention(given(9, 7), 0.0, None, causal=False)
    qkv = given(9, 7, learns=True)
    found = torch.autograd.grad(module._tiled_attention(qkv, 0.0, None, causal=False).square().sum(), qkv)
    wanted = torch.autograd.grad(module._plain_attention(qkv, 0.0, None, None, causal=False).square().sum(), qkv)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
