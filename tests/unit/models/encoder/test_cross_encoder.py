"""Cross-encoder: pairs as one text, token types, packed equals padded, training on scores and labels."""

import numpy as np
import polars as pl
import pytest
import torch
from tokenizers import processors
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.cross_encoder import CrossEncoder, joined
from bsl.models.encoder.layouts import Tokens
from bsl.models.encoder.network import Encoder
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import TrainingError
from bsl.models.evaluation.correlation import spearman
from bsl.models.objectives.supervised_config import CrossRegressionConfig, CrossSoftmaxConfig
from bsl.models.training.batches import tokenise_pairs
from bsl.models.training.config import TrainingConfig
from bsl.models.training.loop import train
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, WIDTH, reader, tiny_encoder

CLS, SEP = 2, 3
FRAME = pl.DataFrame({"text_1": ORIGINALS, "text_2": BACK_DE[1:] + BACK_DE[:1]})


@pytest.fixture
def loaded(tmp_path):
    torch.manual_seed(0)
    encoder, tokenizer = tiny_encoder(tmp_path)
    long = Encoder(encoder.backbone, encoder.config.model_copy(update={"max_length": 32}))  # of both sentences together
    return CrossEncoder(long, 1).eval(), tokenise_pairs(reader(tokenizer, 24), FRAME), tokenizer


def bare(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def cut_as_released(one, two, room):
    """Truncate two token lists as UKP's train.py does in `_truncate_seq_pair`."""
    while len(one) + len(two) > room:
        (one if len(one) > len(two) else two).pop()


@pytest.mark.parametrize("separators", [1, 2])
@pytest.mark.parametrize("longest", [5, 10, 13, 14, 19, 24, 32])
def test_pair_is_one_sequence_truncated_in_the_longer_sentence(loaded, separators, longest):
    _, _, tokenizer = loaded
    texts = [*ORIGINALS, "Two dogs.", "A", ""]
    frame = pl.DataFrame([(one, two) for one in texts for two in texts], schema=["text_1", "text_2"], orient="row")
    batch = tokenise_pairs(reader(tokenizer, longest), frame)
    pairs = joined(batch.tokens, batch.view_1, batch.view_2, separators, longest)
    for row, (one, two) in enumerate(frame.rows()):
        first, second = bare(tokenizer, one), bare(tokenizer, two)
        cut_as_released(first, second, longest - 2 - separators)
        found = pairs.ids[pairs.offsets[row] : pairs.offsets[row + 1]].tolist()
        assert found == [CLS, *first, *[SEP] * separators, *second, SEP]


def test_pair_never_exceeds_the_position_embeddings():
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    backbone = BertModel(BertConfig(vocab_size=50, max_position_embeddings=16, **sizes))
    cross = CrossEncoder(Encoder(backbone, EncoderConfig(model="x", max_length=12)), 1)
    tokens = Tokens(np.array([CLS, *range(5, 15), SEP] * 2, dtype=np.int32), np.array([0, 12, 24]), 0)
    assert torch.isfinite(cross.values(tokens, np.array([0]), np.array([1]))).all()


def test_roberta_has_two_separators_and_no_token_types():
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    backbone = RobertaModel(RobertaConfig(vocab_size=40, pad_token_id=1, **sizes), add_pooling_layer=False)
    cross = CrossEncoder(Encoder(backbone, EncoderConfig(model="x")), 1)
    assert cross._separators == 2
    assert cross.inputs(torch.zeros(1, 3), None) == {}


@pytest.mark.parametrize("packs", [True, False])
def test_packed_and_padded_values_match_transformers(loaded, packs):
    """transformers' own model gets the token types written out."""
    cross, batch, tokenizer = loaded
    cross.backbone.embeddings.token_type_embeddings.weight.data.normal_()
    if not packs:
        cross._packs = (None,)
    expected = []
    with torch.no_grad():
        values = cross.values(batch.tokens, batch.view_1, batch.view_2)
        for one, two in FRAME.rows():
            first, second = [CLS, *bare(tokenizer, one), SEP], [*bare(tokenizer, two), SEP]
            types = torch.tensor([[0] * len(first) + [1] * len(second)])
            states = cross.backbone(input_ids=torch.tensor([first + second]), token_type_ids=types)
            expected.append(cross.head(states.last_hidden_state[0, 0]))
    torch.testing.assert_close(values, torch.stack(expected), rtol=0, atol=2e-6)
    scores = cross.pair_scores(batch.tokens, batch.view_1, batch.view_2)
    np.testing.assert_allclose(scores, torch.sigmoid(torch.stack(expected)[:, 0]).numpy(), atol=2e-6)


ONE, TWO = ORIGINALS * 3, BACK_DE + BACK_DE[1:] + BACK_DE[:1] + BACK_FR
GOLD = np.array([1.0] * 4 + [0.0, 0.1, 0.2, 0.3] + [0.9] * 4)
PAIRS = pl.DataFrame({"text_1": ONE, "text_2": TWO, "score": GOLD, "label": [0] * 4 + [2] * 4 + [1] * 4})
DEV = pl.DataFrame({"sentence1": ONE, "sentence2": TWO, "score": GOLD})


def trained(encoder, tokenizer, objective, dev=None, **changes):
    settings = {"precision": "fp32", "lr": 1e-2, "weight_decay": 0.0, "batch_size": 12, "epochs": 60, "eval_every": 15}
    config = TrainingConfig(objective=objective, collapse=None, **settings | changes)
    return train(PAIRS, SentenceEncoder(encoder, tokenizer), config, dev=dev)


@pytest.mark.parametrize("loss", ["bce", "mse"])
def test_training_on_scores_returns_the_best_dev_checkpoint(tmp_path, loss):
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0, layers=1)
    result = trained(encoder, tokenizer, CrossRegressionConfig(loss=loss), DEV)
    batch = tokenise_pairs(reader(tokenizer, 24), PAIRS)
    assert isinstance(result.encoder, CrossEncoder)
    scores = result.encoder.pair_scores(batch.tokens, batch.view_1, batch.view_2)
    assert spearman(scores, GOLD) == pytest.approx(result.best_dev, abs=1e-6)
    assert result.best_dev > max(0.5, result.start_dev)
    assert {"head.weight", "head.bias"} <= set(result.state.tensors["online"])


def test_training_on_labels_reduces_the_loss(tmp_path):
    result = trained(*tiny_encoder(tmp_path, dropout=0.0, layers=1), CrossSoftmaxConfig())
    losses = result.log["loss"].drop_nulls()
    assert losses.tail(5).mean() < 0.2 * losses.head(5).mean()
    assert result.encoder.width == WIDTH


def test_tokenizer_without_special_tokens_is_rejected(tmp_path):
    """Otherwise its first and last word would be taken for the special tokens."""
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    tokenizer.backend_tokenizer.post_processor = processors.Sequence([])
    with pytest.raises(TrainingError, match=r"reads 'a' as \['a'\], expected a special token before and after it"):
        trained(encoder, tokenizer, CrossSoftmaxConfig())
