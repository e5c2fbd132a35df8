"""Every layout of sentence-transformers without remote code gives the library's own vectors."""

import json
import re

import numpy as np
import pytest
import torch

from bsl.models.encoder.cnn import with_convolutions
from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.encoder.serialization.load import surrounding_ids
from bsl.models.errors import EncoderError
from bsl.models.serving.reduction import fold, shortened, tabulate
from tests.folder_config import saved_config
from tests.layouts import (
    LAYOUTS,
    NAMED,
    TEXTS,
    bert,
    compared,
    layout,
    modules,
    opened,
    prompted,
    roberta,
    vectors_of,
    write,
)


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_vectors_match_sentence_transformers(name, tmp_path):
    _, read, exported = compared(name, tmp_path)
    assert read <= 1e-5
    assert exported <= 1e-5


@pytest.mark.parametrize(
    ("asked", "how"), [("query", {"prompt_name": "query"}), ("A: ", {"prompt": "A: "}), ("", {"prompt": ""})]
)
@pytest.mark.parametrize("pools", [True, False])
def test_prompt_is_selected_by_name_or_text(tmp_path, asked, how, pools):
    folder = write(tmp_path, prompted("sts", include_prompt=pools))
    config = EncoderConfig(model="x", max_length=96, prompt=asked)
    assert np.abs(SentenceEncoder.load(folder, config).encode(TEXTS) - vectors_of(opened(folder), **how)).max() <= 1e-5


def test_prompt_that_fills_max_length_is_rejected(tmp_path):
    """With no room, no token of a text would be pooled and the vector would be NaN."""
    folder = write(tmp_path, prompted("sts", include_prompt=False))
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=96))
    taken = len(surrounding_ids(encoder.tokenizer, encoder.prompt)[0])
    told = f"its prompt has {taken} tokens, which are not pooled; the maximal length of {taken} tokens leaves none"
    with pytest.raises(EncoderError, match=told):
        SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=taken))
    roomy = SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=taken + 1))
    assert np.isfinite(roomy.encode(TEXTS)).all()


def test_prompt_stays_excluded_from_pooling_with_added_heads(tmp_path):
    """Regression: whitening, dimension reduction and convolutions pooled the prompt again."""
    folder = write(tmp_path, prompted("sts", include_prompt=False))
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=96))
    vectors, width = encoder.encode(TEXTS), encoder.width
    same = fold(encoder.network, torch.eye(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64))
    np.testing.assert_allclose(encoder.with_network(same).encode(TEXTS), unit(vectors), atol=1e-5)
    few = shortened(encoder.network, np.eye(width), 8)
    np.testing.assert_allclose(encoder.with_network(few).encode(TEXTS), unit(vectors[:, :8]), atol=1e-5)
    encoder.network.config = encoder.config.model_copy(update={"cnn": CNNConfig(channels=4)})
    assert with_convolutions(encoder.network).prompt_tokens_skipped == encoder.network.prompt_tokens_skipped > 0


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("prompt", ["", "query: ", "passage"])
@pytest.mark.parametrize("model", [bert, roberta])
def test_static_distillation_accepts_an_encoder_with_any_prompt(tmp_path, model, prompt):
    """A byte-level tokenizer writes a word after a space differently from a word at the beginning."""
    folder = write(tmp_path, layout(model()))
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=32, prompt=prompt))
    before, after = surrounding_ids(encoder.tokenizer, encoder.prompt)
    whole = encoder.tokenizer(prompt)["input_ids"]
    assert [*before, *after] == whole
    assert len(after) == 1
    table = tabulate(encoder, TEXTS, encoder.encode(TEXTS), 4)
    assert table.encode(TEXTS).shape == (len(TEXTS), 4)


def test_load_logs_the_default_prompt(tmp_path, caplog):
    folder = write(tmp_path, prompted("sts"))
    with caplog.at_level("INFO"):
        SentenceEncoder.load(folder, EncoderConfig(model="x"))
    assert "every text gets the prompt " + repr(NAMED["sts"]) in caplog.text


def test_remote_code_is_refused_with_the_reason(tmp_path):
    files = layout(bert())
    files["modules.json"] = [
        {"idx": 0, "name": "0", "path": "", "type": "custom_st.Transformer"},
        *files["modules.json"][1:],
    ]
    folder = write(tmp_path, files)
    with pytest.raises(EncoderError, match=r"custom_st\.Transformer is custom code, which is never run"):
        saved_config(folder, "x")


@pytest.mark.parametrize(
    ("kinds", "reason"),
    [
        (("MLMTransformer", "SpladePooling"), "unsupported module: SpladePooling has one dimension per word"),
        (("Transformer", "Pooling", "SparseAutoEncoder"), "SparseAutoEncoder makes vectors sparse"),
        (
            ("Transformer", "Dense", "MultiVectorMask", "Normalize"),
            "MultiVectorMask has one vector per token",
        ),
    ],
)
def test_sparse_and_multivector_encoders_are_rejected_with_reason(tmp_path, kinds, reason):
    folder = write(tmp_path, {**layout(bert()), "modules.json": modules(*kinds)})
    with pytest.raises(EncoderError, match=reason):
        saved_config(folder, "x")


def test_folder_with_a_lora_adapter_is_rejected(tmp_path):
    """sentence-transformers applies the adapter, so the weights without it give other vectors."""
    folder = write(tmp_path, {**layout(bert()), "adapter_config.json": {"peft_type": "LORA"}})
    with pytest.raises(EncoderError, match=r"an adapter \(LORA\), which is not supported\. Merge it"):
        saved_config(folder, "x")


def test_excess_max_length_is_capped_if_saved_else_rejected(tmp_path, caplog):
    folder = write(tmp_path, layout(roberta(), length=514))
    config = saved_config(folder, "x")
    assert config.max_length == 512
    assert "saved with a maximal length of 514 tokens; its transformer accepts only 512" in caplog.text
    with pytest.raises(EncoderError, match=r"the model accepts at most 512 tokens, but encoder\.max_length is 514"):
        SentenceEncoder.load(folder, config.model_copy(update={"max_length": 514}))


def test_reduction_of_a_saved_max_length_is_logged_once(tmp_path, caplog):
    for name, length in (("silent", None), ("named", 514)):
        files = layout(roberta(), length=length)
        files["tokenizer_config.json"] = files["tokenizer_config.json"].replace(b'"model_max_length": 512,', b"")
        folder = write(tmp_path / name, files)
        config = saved_config(folder, "x")
        SentenceEncoder.load(folder, config)
    said = [message.partition(": ") for message in caplog.messages if "saved with a maximal" in message]
    assert [(place, text) for place, _, text in said] == [
        (str(tmp_path / "named"), "saved with a maximal length of 514 tokens; its transformer accepts only 512")
    ]


@pytest.mark.parametrize("kept", [0, -4, "8", 8.0, True])
def test_invalid_truncate_dim_is_rejected(tmp_path, kept):
    files = {**layout(bert()), "config_sentence_transformers.json": {"truncate_dim": kept}}
    with pytest.raises(EncoderError, match=re.escape(f"truncate_dim is {kept!r}, expected an integer of at least 1")):
        saved_config(write(tmp_path, files), "x")


def test_normalize_is_true_only_without_truncated_dimensions(tmp_path):
    for kept, normalized in ((8, False), (32, True)):
        files = {**layout(bert(), "Normalize"), "config_sentence_transformers.json": {"truncate_dim": kept}}
        config = saved_config(write(tmp_path / str(kept), files), "x")
        assert config.normalize is normalized


def test_custom_architecture_code_is_rejected_with_the_reason(tmp_path):
    folder = write(tmp_path, layout(bert()))
    described = {"model_type": "custom_bert", "auto_map": {"AutoModel": "modeling.NomicBert"}}
    (folder / "config.json").write_text(json.dumps(described))
    with pytest.raises(
        EncoderError, match=r"the architecture custom_bert is custom code \(AutoModel\), which is never run"
    ):
        SentenceEncoder.load(folder, EncoderConfig(model="x", max_length=32))
