"""TSDAE: the restated loss; the encoder's layers as a decoder equal restatements and transformers' own decoders."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers as hf
from torch.nn import functional

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.packing import packing_of
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.errors import TrainingError
from bsl.models.objectives.language_modeling import tsdae as module
from bsl.models.objectives.language_modeling.config import TSDAEConfig
from bsl.models.objectives.language_modeling.tsdae import TSDAE, Decoder
from tests.equal_losses import assert_equal_losses
from tests.tiny_encoder import BACK_DE, ORIGINALS, WIDTH, pairs_of, tiny_encoder

SIZE = {"vocab_size": 60, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4}
USUAL = {**SIZE, "intermediate_size": 48, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
PUBLISHED = [
    (hf.BertModel, hf.BertLMHeadModel, hf.BertConfig(**USUAL), "bert"),
    (hf.RobertaModel, hf.RobertaForCausalLM, hf.RobertaConfig(**USUAL, pad_token_id=0), "roberta"),
    (hf.XLMRobertaModel, hf.XLMRobertaForCausalLM, hf.XLMRobertaConfig(**USUAL, pad_token_id=0), "roberta"),
]
PARTS = {"value": "self.value", "output": "output.dense", "norm": "output.LayerNorm"}


@pytest.fixture
def tokens(tmp_path):
    return token_ids(tiny_encoder(tmp_path)[1], [*BACK_DE, BACK_DE[0]], 24)  # several of equal length


def outputs(backbone, decoder, tokens, vectors):
    """Return our states in the order of the tokens, (N, D)."""
    states, places = decoder(backbone, tokens, vectors, packing_of(backbone, 0).first)
    return states[torch.from_numpy(places).argsort()]


@pytest.mark.parametrize(("kind", "published", "config", "base"), PUBLISHED, ids=lambda v: getattr(v, "__name__", ""))
def test_bert_and_roberta_decoders_equal_transformers(kind, published, config, base, tokens):
    """With copied weights, states are equal, and so are the gradients of all shared weights."""
    torch.manual_seed(0)
    backbone = kind(config, add_pooling_layer=False).double()
    decoder = Decoder(backbone, WIDTH).double()
    settings = type(config).from_dict(config.to_dict() | {"is_decoder": True, "add_cross_attention": True})
    theirs = getattr(published(settings).double(), base)
    theirs.load_state_dict(backbone.state_dict(), strict=False)
    for layer, attention in zip(theirs.encoder.layer, decoder.attentions, strict=True):
        for ours, path in PARTS.items():
            layer.crossattention.get_submodule(path).load_state_dict(getattr(attention, ours).state_dict())
    vectors = torch.randn(len(tokens), WIDTH, dtype=torch.float64, requires_grad=True)
    ids, mask = tokens.padded(torch.arange(len(tokens)).numpy())
    padded = theirs(input_ids=ids, attention_mask=mask, encoder_hidden_states=vectors[:, None]).last_hidden_state
    expected = padded[mask.bool()]
    found = outputs(backbone, decoder, tokens, vectors)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    assert (found - outputs(backbone, decoder, tokens, vectors.detach() + 1)).abs().max() > 1e-2
    slope, by_vector = torch.randn_like(found), []
    for states in (found, expected):
        (states * slope).sum().backward()
        by_vector.append(vectors.grad)
        vectors.grad = None
    torch.testing.assert_close(*by_vector)
    for name, p in backbone.named_parameters():
        torch.testing.assert_close(p.grad, theirs.get_parameter(name).grad, rtol=1e-7, atol=1e-9)
    for layer, attention in zip(theirs.encoder.layer, decoder.attentions, strict=True):
        grads = {name: p.grad for name, p in layer.crossattention.named_parameters()}
        # We leave out queries and keys of attention to a single vector: their gradient is zero.
        idle = [grad for name, grad in grads.items() if ".query." in name or ".key." in name]
        assert max(grad.abs().max() for grad in idle) < 1e-12
        for ours, path in PARTS.items():
            for name, p in getattr(attention, ours).named_parameters():
                torch.testing.assert_close(p.grad, grads[f"{path}.{name}"], rtol=1e-7, atol=1e-9)


def restated_modernbert(backbone, decoder, ids, vector):
    """Return the states of ModernBERT's layers with causal self-attention and the vector's projections, restated."""
    x = backbone.embeddings(input_ids=ids[None])
    count, positions = len(ids), torch.arange(len(ids))[None]
    heads, width = backbone.config.num_attention_heads, x.shape[-1] // backbone.config.num_attention_heads

    def rotate(y, cos, sin):
        one, two = y.chunk(2, -1)
        turned = y.float() * cos[0] + torch.cat([-two, one], -1).float() * sin[0]
        return turned.to(y.dtype)  # transformers rotates in fp32 for every dtype of the weights

    for layer, attention in zip(backbone.layers, decoder.attentions, strict=True):
        q, k, v = layer.attn.Wqkv(layer.attn_norm(x))[0].view(count, 3, heads, width).permute(1, 2, 0, 3)
        rotation = backbone.rotary_emb(x, positions, layer.attention_type)
        scores = rotate(q, *rotation) @ rotate(k, *rotation).transpose(1, 2) / width**0.5
        scores = scores + torch.full((count, count), -torch.inf, dtype=scores.dtype).triu(1)
        read = (scores.softmax(-1) @ v).transpose(0, 1).reshape(1, count, -1)
        x = x + layer.attn.Wo(read)
        x = x + vector @ attention.value.weight.T @ attention.output.weight.T
        inner, gate = layer.mlp.Wi(layer.mlp_norm(x)).chunk(2, -1)
        x = x + layer.mlp.Wo(functional.gelu(inner) * gate)
    return backbone.final_norm(x)[0]


def test_modernbert_decoder_equals_the_restated_layers(tokens):
    torch.manual_seed(0)
    special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
    backbone = hf.ModernBertModel(hf.ModernBertConfig(**SIZE, intermediate_size=48, **special)).double()
    decoder = Decoder(backbone, 16).double()  # vectors of another width, as after a Dense layer
    vectors = torch.randn(len(tokens), 16, dtype=torch.float64, requires_grad=True)
    ids = torch.from_numpy(tokens.ids).long().split(np.diff(tokens.offsets).tolist())
    rows = zip(ids, vectors, strict=True)
    expected = torch.cat([restated_modernbert(backbone, decoder, row, vector) for row, vector in rows])
    found = outputs(backbone, decoder, tokens, vectors)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    slope, learning = torch.randn_like(found), [vectors, *backbone.parameters(), *decoder.parameters()]
    assert_equal_losses((found * slope).sum(), (expected * slope).sum(), learning, 1e-4, 1e-5)


def test_padded_decoder_equals_the_decoder_by_length(tokens, monkeypatch):
    """On a GPU, all sentences attend at once."""
    torch.manual_seed(0)
    backbone = hf.BertModel(hf.BertConfig(**USUAL), add_pooling_layer=False)
    decoder, vectors, lay_out = Decoder(backbone, WIDTH).eval(), torch.randn(len(tokens), WIDTH), module.lay_out
    found = []
    for by_length in (True, False):
        monkeypatch.setattr(module, "lay_out", lambda *a, by=by_length, **k: lay_out(*a, **{**k, "by_length": by}))
        found.append(outputs(backbone, decoder, tokens, vectors))
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


def test_cross_attention_dropout_drops_whole_heads_per_token(tokens):
    config = hf.BertConfig(**{**USUAL, "attention_probs_dropout_prob": 0.5})
    decoder = Decoder(hf.BertModel(config, add_pooling_layer=False), WIDTH)
    attention, count = decoder.attentions[0], 4000
    with torch.no_grad():
        attention.output.weight.copy_(torch.eye(WIDTH))
        attention.norm = torch.nn.Identity()
        vectors = torch.randn(1, WIDTH)
        read = attention(torch.zeros(1, count, WIDTH), vectors, torch.zeros(count, dtype=torch.long))[0]
        value = attention.value(vectors)[0]
    heads = (read / value).unflatten(1, (4, -1))
    assert set(heads.unique().round(decimals=3).tolist()) == {0.0, 2.0}
    assert (heads.amax(-1) == heads.amin(-1)).float().mean() > 0.999
    assert heads.mean().item() == pytest.approx(1, abs=0.05)


def test_unsupported_decoder_architecture_error_names_it():
    bare = hf.DistilBertModel(hf.DistilBertConfig(vocab_size=60, dim=WIDTH, n_layers=1, n_heads=2, hidden_dim=32))
    message = "architecture distilbert cannot be used as a decoder, expected one of bert, roberta, .*, modernbert"
    with pytest.raises(TrainingError, match=message):
        Decoder(bare, WIDTH)


def test_electra_decoder_accepts_embeddings_of_a_different_width(tokens):
    backbone = hf.ElectraModel(hf.ElectraConfig(**USUAL, embedding_size=16)).eval()
    encoder = Encoder(backbone, EncoderConfig(model="electra", max_length=24))
    found = outputs(backbone, Decoder(backbone, encoder.width).eval(), tokens, torch.randn(len(tokens), WIDTH))
    assert found.shape == (len(tokens.ids), WIDTH)


def test_attention_window_shorter_than_the_input_is_refused():
    config = hf.ModernBertConfig(
        **SIZE, intermediate_size=48, local_attention=16, pad_token_id=0, max_position_embeddings=64
    )
    objective = TSDAE(Encoder(hf.ModernBertModel(config), EncoderConfig(model="mb", max_length=24)), TSDAEConfig())
    with pytest.raises(TrainingError, match=r"cannot run 24 tokens without padding.*Lower encoder\.max_length"):
        objective.on_tokenizer(SimpleNamespace(pad_token_id=0))


DAMAGED = ["man guitar", "dogs snow.", "children long", "A red bus."]
PAIRS = DAMAGED + DAMAGED[::-1], ORIGINALS + BACK_DE[::-1]


@pytest.fixture(params=["bert", "roberta", "modernbert"])
def setting(request, tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path, request.param, pooling="cls", dropout=0.0)
    torch.manual_seed(1)
    return TSDAEConfig().build(encoder, tokenizer), pairs_of(tokenizer, *PAIRS)


def test_loss_is_mean_negative_log_likelihood_of_next_tokens(setting):
    """Computed sentence by sentence and prefix by prefix, so no later token can be seen."""
    objective, batch = setting
    objective.double().eval()
    backbone, total, count = objective.online.backbone, 0.0, 0
    table = backbone.get_input_embeddings().weight
    for row in range(len(batch)):
        damaged, whole = (batch.tokens.take(view[row : row + 1]) for view in (batch.view_1, batch.view_2))
        (vector,) = objective.online(*damaged.padded(np.arange(1)))
        for end in range(1, len(whole.ids)):
            prefix = type(whole)(whole.ids[:end], np.array([0, end]), 0)
            states, _ = objective.decoder(backbone, prefix, vector[None], objective._first)
            scores = objective.head(states[-1:]) @ table.T + objective.head.bias
            total, count = total - scores.log_softmax(-1)[0, int(whole.ids[end])], count + 1
    # ModernBERT rotates positions in fp32.
    assert_equal_losses(objective(batch), total / count, objective.learning_parameters(), 2e-6, 1e-6)


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_loss_equals_the_sentence_transformers_loss(architecture, tmp_path):
    """Compare with their loss on the same weights, where transformers has a decoder."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss

    encoder = SentenceEncoder(*tiny_encoder(tmp_path / "start", architecture, pooling="cls", dropout=0.0))
    objective = TSDAEConfig().build(encoder.network, encoder.tokenizer).eval()
    encoder.save(tmp_path / "st")
    model = SentenceTransformer(str(tmp_path / "st"), device="cpu")
    peer = DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True).eval()
    head = peer.decoder.cls.predictions if architecture == "bert" else peer.decoder.lm_head
    inner = head.transform if architecture == "bert" else head
    norm = inner.LayerNorm if architecture == "bert" else inner.layer_norm
    objective.head.linear.load_state_dict(inner.dense.state_dict())
    objective.head.norm.load_state_dict(norm.state_dict())
    layers = peer.decoder.base_model.encoder.layer
    for layer, attention in zip(layers, objective.decoder.attentions, strict=True):
        attention.value.load_state_dict(layer.crossattention.self.value.state_dict())
        attention.output.load_state_dict(layer.crossattention.output.dense.state_dict())
        attention.norm.load_state_dict(layer.crossattention.output.LayerNorm.state_dict())
    with torch.no_grad():
        ours = objective(pairs_of(encoder.tokenizer, *PAIRS))
        theirs = peer([model.preprocess(texts) for texts in PAIRS], None)
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-5)


def test_sentences_without_special_tokens_are_refused(setting):
    objective, batch = setting
    bare = type(batch.tokens)(np.array([7, 8], dtype=np.int32), np.array([0, 1, 2]), 0)
    with pytest.raises(TrainingError, match=r"only one token, expected at least \[CLS\] and \[SEP\]"):
        objective(type(batch)(bare, np.array([0, 1]), np.array([1, 0])))
