"""TSDAE: the restated loss, sentence-transformers' own loss, and a refusal."""

import numpy as np
import pytest
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import TrainingError
from bsl.models.objectives.language_modeling.config import TSDAEConfig
from tests.equal_losses import assert_equal_losses
from tests.tiny_encoder import BACK_DE, ORIGINALS, pairs_of, write_tiny

DAMAGED = ["man guitar", "dogs snow.", "children long", "A red bus."]
PAIRS = DAMAGED + DAMAGED[::-1], ORIGINALS + BACK_DE[::-1]


@pytest.fixture(params=["bert", "roberta", "modernbert"])
def setting(request, tmp_path):
    folder = write_tiny(tmp_path, request.param, dropout=0.0)
    encoder = SentenceEncoder.load(folder, EncoderConfig(model=str(folder), pooling="cls", max_length=24))
    torch.manual_seed(1)
    return TSDAEConfig().build(encoder.network, encoder.tokenizer), pairs_of(encoder.tokenizer, *PAIRS)


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

    folder = write_tiny(tmp_path / "start", architecture, dropout=0.0)
    encoder = SentenceEncoder.load(folder, EncoderConfig(model=str(folder), pooling="cls", max_length=24))
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
