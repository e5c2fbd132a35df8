"""A sentence-transformers folder gives the vectors of SentenceTransformer, with its settings or the given ones."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, PreTrainedModel

from bsl.models.encoder.cnn import with_convolutions
from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.prompts import surrounding_ids
from bsl.models.encoder.sentence_encoder import SentenceEncoder, token_ids
from bsl.models.encoder.serialization.folder_settings import read_saved
from bsl.models.errors import EncoderError
from bsl.models.serving.reduction import fold, shortened, tabulate
from tests.folder_config import saved_config
from tests.layouts import LAYOUTS, NAMED, TEXTS, bert, compared, layout, opened, prompted, roberta, vectors_of, write
from tests.tiny_encoder import BACK_DE, ORIGINALS, tiny_encoder, write_tiny
from tests.tiny_heads import rewrite

BERT = "sentence_bert_config.json"


def config(**changes):
    return EncoderConfig(**{"model": "x", "max_length": 24, **changes})


@pytest.fixture
def exported(tmp_path):
    """Return a function that saves a tiny encoder and returns the folder and the encoder's vectors."""

    def save(**changes):
        encoder = SentenceEncoder.load(write_tiny(tmp_path / "bare"), config(**changes))
        encoder.save(tmp_path / "made")
        return tmp_path / "made", encoder.encode(ORIGINALS)

    return save


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_vectors_match_sentence_transformers(name, tmp_path):
    _, read, written = compared(name, tmp_path)
    assert read <= 1e-5
    assert written <= 1e-5
    backbone = SentenceEncoder.load(tmp_path / "out").network.backbone
    if isinstance(backbone, PreTrainedModel):
        kind = type(backbone) if "Encoder" in type(backbone).__name__ else AutoModel
        _, info = kind.from_pretrained(tmp_path / "out", output_loading_info=True)
        assert not info["missing_keys"] | info["unexpected_keys"] | info["mismatched_keys"]


def test_opening_a_saved_bert_prints_nothing_and_its_pooler_is_the_identity(exported, capfd):
    folder, _ = exported()
    capfd.readouterr()
    SentenceTransformer(str(folder), device="cpu")
    width = AutoModel.from_pretrained(folder).config.hidden_size
    printed = "".join(capfd.readouterr())
    assert "MISSING" not in printed
    assert "newly initialized" not in printed
    assert torch.equal(load_file(folder / "model.safetensors")["pooler.dense.weight"], torch.eye(width))


def test_export_that_the_library_saved_again_has_its_vectors(exported):
    folder, _ = exported(pooling="cls", max_length=12, normalize=True, lower_case=True)
    texts = [*ORIGINALS, *BACK_DE, " A Man  is PLAYING a guitar. " * 8]
    peer = SentenceTransformer(str(folder), device="cpu")
    folder = folder.with_name("again")
    peer.save(str(folder))
    found = saved_config(folder, "tiny")
    assert (found.pooling, found.max_length, found.normalize) == ("cls", 12, True)
    assert np.abs(SentenceEncoder.load(folder, found).encode(texts) - peer.encode(texts)).max() < 1e-6


def test_old_and_new_layouts_are_read(exported):
    """Old models have the transformer in a subfolder; version 5 writes a single `pooling_mode`."""
    folder, vectors = exported()
    inner = folder / "0_Transformer"
    inner.mkdir()
    for file in [path for path in folder.iterdir() if path.is_file() and path.name != "modules.json"]:
        file.rename(inner / file.name)
    rewrite(folder / "modules.json", lambda modules: [{**modules[0], "path": "0_Transformer"}, *modules[1:]])
    rewrite(folder / "1_Pooling" / "config.json", lambda _: {"embedding_dimension": 32, "pooling_mode": "mean"})
    assert saved_config(folder, "x").pooling == "mean"
    assert abs(SentenceEncoder.load(folder, config()).encode(ORIGINALS) - vectors).max() == 0


def test_bare_transformer_gets_the_default_settings(tmp_path):
    folder = write_tiny(tmp_path)
    saved = read_saved(folder)
    assert (saved.pooling, saved.normalize, saved.max_length) == (None, None, None)
    assert saved_config(folder, "tiny") == EncoderConfig(model="tiny", max_length=64, prompt="")
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="x"))
    assert len(encoder.tokenizer("man " * 99)["input_ids"]) == 101  # the encoder truncates, not the tokenizer
    assert token_ids(encoder.tokenizer, ["man " * 99], encoder.config.length).lengths.tolist() == [64]


def test_missing_max_length_defaults_to_the_tokenizer_limit(exported):
    folder, _ = exported()
    (folder / BERT).write_text("{}")
    assert saved_config(folder, "tiny").max_length == SentenceTransformer(str(folder)).max_seq_length == 64


@pytest.mark.filterwarnings("ignore")
def test_length_without_a_setting_ends_at_the_positions_as_in_the_library(tmp_path):
    name = "a length beyond rotary positions, which have no table (Llama)"
    folder = write(tmp_path / "model", LAYOUTS[name](tmp_path))
    rewrite(folder / BERT, lambda settings: settings | {"max_seq_length": None})
    theirs = opened(folder).encode(TEXTS, batch_size=1, show_progress_bar=False)
    assert np.abs(SentenceEncoder.load(folder).encode(TEXTS) - theirs).max() <= 1e-5


@pytest.mark.parametrize(
    ("asked", "warning"),
    [
        ({"pooling": "cls"}, "encoder.pooling is cls, but the encoder was saved with mean. Unset it"),
        ({"normalize": True}, "encoder.normalize is True, but the encoder was saved with False. Unset it"),
        ({"max_length": 5}, "saved with a maximal length of 24 tokens, but encoder.max_length is 5. Unset it"),
        ({"max_length": 24}, None),
        ({"max_length": None}, None),
    ],
)
def test_given_setting_wins_over_the_saved_one_with_a_warning(exported, caplog, asked, warning):
    folder, vectors = exported()
    encoder = SentenceEncoder.load(folder, config(**asked))
    (name, value), *_ = asked.items()
    assert getattr(encoder.config, name) == (value or 24)
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    if warning:
        assert warning in "".join(warned)
        assert abs(encoder.encode(ORIGINALS) - vectors).max() > 0.01
    else:
        assert not warned


def test_settings_that_are_not_given_are_those_of_the_folder(exported, caplog):
    """Regression: `load(folder, max_length=24)` raised an error for a folder with a module Normalize."""
    folder, vectors = exported(normalize=True, pooling="cls")
    encoder = SentenceEncoder.load(folder, config())
    assert (encoder.config.pooling, encoder.config.normalize) == ("cls", True)
    assert abs(encoder.encode(ORIGINALS) - vectors).max() < 1e-6
    plain = SentenceEncoder.load(folder, config(normalize=False)).encode(ORIGINALS)
    assert abs(plain / np.linalg.norm(plain, axis=1, keepdims=True) - vectors).max() < 1e-6
    assert abs(plain - vectors).max() > 0.01
    assert caplog.text.count("saved with") == 1


def test_excess_saved_max_length_is_reduced_and_logged_once(tmp_path, caplog):
    for name, length in (("silent", None), ("named", 514)):
        files = layout(roberta(), length=length)
        files["tokenizer_config.json"] = files["tokenizer_config.json"].replace(b'"model_max_length": 512,', b"")
        folder = write(tmp_path / name, files)
        assert SentenceEncoder.load(folder, saved_config(folder, "x")).config.max_length == 512
    assert [message for message in caplog.messages if "saved with a maximal" in message] == [
        f"{tmp_path / 'named'}: saved with a maximal length of 514 tokens; its transformer accepts only 512"
    ]


def test_normalize_is_true_only_without_truncated_dimensions(tmp_path):
    for kept, normalized in ((8, False), (32, True)):
        folder = write(tmp_path / str(kept), layout(bert(), "Normalize", dims=kept))
        assert saved_config(folder, "x").normalize is normalized


def test_configured_dropout_replaces_the_saved_dropout(tmp_path):
    folder = write_tiny(tmp_path, "modernbert")
    assert not SentenceEncoder.load(folder, config()).network.has_dropout
    assert SentenceEncoder.load(folder, config(dropout=0.2)).network.has_dropout
    assert not SentenceEncoder.load(write_tiny(tmp_path / "bert"), config(dropout=0.0)).network.has_dropout


@pytest.mark.parametrize(("pooling", "reduced"), [("second-to-last", "mean"), ("second-to-last-cls", "cls")])
def test_second_to_last_pooling_equals_removing_the_last_layer(tmp_path, pooling, reduced):
    found = SentenceEncoder(*tiny_encoder(tmp_path, pooling=pooling))
    expected = SentenceEncoder(*tiny_encoder(tmp_path, pooling=reduced))
    layers = expected.network.backbone.encoder
    layers.layer = layers.layer[:-1]
    assert abs(found.encode(ORIGINALS) - expected.encode(ORIGINALS)).max() < 1e-6


@pytest.mark.parametrize(
    ("asked", "how"), [("query", {"prompt_name": "query"}), ("A: ", {"prompt": "A: "}), ("", {"prompt": ""})]
)
@pytest.mark.parametrize("pools", [True, False])
def test_prompt_is_selected_by_name_or_text(tmp_path, asked, how, pools):
    folder = write(tmp_path, prompted("sts", include_prompt=pools))
    found = SentenceEncoder.load(folder, config(max_length=96, prompt=asked)).encode(TEXTS)
    assert np.abs(found - vectors_of(opened(folder), **how)).max() <= 1e-5


def test_default_prompt_is_logged_and_rejected_if_it_fills_the_length(tmp_path, caplog):
    """With no room, no token of a text would be pooled and the vector would be NaN."""
    folder = write(tmp_path, prompted("sts", include_prompt=False))
    with caplog.at_level("INFO"):
        encoder = SentenceEncoder.load(folder, config(max_length=96))
    assert "every text gets the prompt " + repr(NAMED["sts"]) in caplog.text
    taken = len(surrounding_ids(encoder.tokenizer, encoder.prompt)[0])
    with pytest.raises(EncoderError, match=f"prompt has {taken} tokens, .* maximal length of {taken} tokens leaves no"):
        SentenceEncoder.load(folder, config(max_length=taken))
    assert np.isfinite(SentenceEncoder.load(folder, config(max_length=taken + 1)).encode(TEXTS)).all()


def test_prompt_stays_excluded_from_pooling_with_added_heads(tmp_path):
    """Regression: whitening, dimension reduction and convolutions pooled the prompt again."""
    folder = write(tmp_path, prompted("sts", include_prompt=False))
    encoder = SentenceEncoder.load(folder, config(max_length=96))
    vectors, width = encoder.encode(TEXTS), encoder.width
    same = fold(encoder.network, torch.eye(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64))
    for network, dims in ((same, width), (shortened(encoder.network, np.eye(width), 8), 8)):
        expected = vectors[:, :dims] / np.linalg.norm(vectors[:, :dims], axis=1, keepdims=True)
        np.testing.assert_allclose(encoder.with_network(network).encode(TEXTS), expected, atol=1e-5)
    encoder.network.config = encoder.config.model_copy(update={"cnn": CNNConfig(channels=4)})
    assert with_convolutions(encoder.network).prompt_tokens_skipped == encoder.network.prompt_tokens_skipped > 0


@pytest.mark.parametrize("prompt", ["", "query: ", "passage"])
@pytest.mark.parametrize("model", [bert, roberta])
def test_static_distillation_accepts_an_encoder_with_any_prompt(tmp_path, model, prompt):
    """A byte-level tokenizer writes a word after a space differently from a word at the beginning."""
    encoder = SentenceEncoder.load(write(tmp_path, layout(model())), config(max_length=32, prompt=prompt))
    before, after = surrounding_ids(encoder.tokenizer, encoder.prompt)
    assert [*before, *after] == encoder.tokenizer(prompt)["input_ids"]
    assert len(after) == 1
    assert tabulate(encoder, TEXTS, encoder.encode(TEXTS), 4).encode(TEXTS).shape == (len(TEXTS), 4)


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_static_table_truncates_at_its_side_also_after_export(tmp_path, side):
    folder = write(tmp_path / "in", LAYOUTS["static table (static-retrieval-mrl)"](tmp_path))
    rule = {"direction": side, "max_length": 5, "strategy": "LongestFirst", "stride": 0}
    rewrite(folder / "0_StaticEmbedding/tokenizer.json", lambda core: core | {"truncation": rule})
    encoder, expected = SentenceEncoder.load(folder), vectors_of(opened(folder))
    encoder.save(tmp_path / "out")
    for vectors in (
        encoder.encode(TEXTS),
        SentenceEncoder.load(tmp_path / "out").encode(TEXTS),
        vectors_of(opened(tmp_path / "out")),
    ):
        assert np.abs(vectors - expected).max() <= 1e-5
