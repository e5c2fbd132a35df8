"""No setting of a folder that changes vectors is ignored: it is applied, or refused with its file and name."""

import json
import re

import numpy as np
import pytest

from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from tests.layouts import LAYOUTS, TEXTS, bert, layout, opened, vectors_of, write

PLAIN = {"method": "forward", "method_output_name": "last_hidden_state"}
BERT, ROOT = "sentence_bert_config.json", "config_sentence_transformers.json"
REFUSED = [
    (BERT, "processing_kwargs", {"text": {"max_length": 4}}, "processing_kwargs.text.max_length"),
    (BERT, "processing_kwargs", {"text": {"add_special_tokens": False}}, "processing_kwargs.text.add_special_tokens"),
    (BERT, "processing_kwargs", {"common": {"max_length": 4}}, "processing_kwargs.common"),
    (BERT, "tokenizer_args", {"model_max_length": 4}, "tokenizer_args.model_max_length"),
    (BERT, "processor_kwargs", {"truncation_side": "left"}, "processor_kwargs.truncation_side"),
    (BERT, "config_args", {"hidden_act": "relu"}, "config_args.hidden_act"),
    (BERT, "model_args", {"ignore_mismatched_sizes": True}, "model_args.ignore_mismatched_sizes"),
    (BERT, "modality_config", {"text": PLAIN, "message": {**PLAIN, "format": "flat"}}, "modality_config.message"),
    (BERT, "modality_config", {"text": {**PLAIN, "method": "encode"}}, "modality_config.text.method"),
    (BERT, "transformer_task", "fill-mask", "transformer_task"),
    (BERT, "tokenizer_name_or_path", "elsewhere", "tokenizer_name_or_path"),
    (BERT, "query_expansion", {"strategy": "fixed", "length": 8}, "query_expansion"),
    (BERT, "surprise", 1, "surprise"),
    (ROOT, "model_type", "SparseEncoder", "model_type"),
    (ROOT, "surprise", 1, "surprise"),
    ("1_Pooling/config.json", "surprise", 1, "surprise"),
]
HARMLESS = [
    (BERT, "processing_kwargs", {"text": {"padding": True, "truncation": True}, "image": {"size": 4}}),
    (BERT, "modality_config", {"text": PLAIN, "image": PLAIN}),
    (BERT, "model_args", {"attn_implementation": "eager", "torch_dtype": "float32"}),
    (BERT, "tokenizer_args", {"use_fast": True}),
    (BERT, "unpad_inputs", False),
    (ROOT, "similarity_fn_name", "dot"),
    (ROOT, "model_type", "SentenceTransformer"),
]


def changed(folder, file, key, value):
    path = folder / file
    settings = json.loads(path.read_text()) if path.is_file() else {}
    more = {"module_output_name": "token_embeddings"} if key == "modality_config" else {}
    path.write_text(json.dumps({**settings, key: value, **more}))
    return folder


@pytest.mark.parametrize(("file", "key", "value", "name"), REFUSED)
def test_setting_that_changes_vectors_is_refused_with_file_and_name(tmp_path, file, key, value, name):
    folder = changed(write(tmp_path, layout(bert())), file, key, value)
    with pytest.raises(EncoderError, match=re.escape(f"{folder / file}: the setting {name} is ")):
        SentenceEncoder.load(folder)


@pytest.mark.parametrize(("file", "key", "value"), HARMLESS)
@pytest.mark.filterwarnings("ignore")
def test_setting_that_changes_no_vector_is_accepted(tmp_path, file, key, value):
    folder = write(tmp_path, layout(bert()))
    expected = SentenceEncoder.load(folder).encode(TEXTS)
    changed(folder, file, key, value)
    assert np.array_equal(SentenceEncoder.load(folder).encode(TEXTS), expected)
    assert np.abs(vectors_of(opened(folder)) - expected).max() <= 1e-5


@pytest.mark.parametrize(
    ("file", "key", "value", "told"),
    [
        (BERT, "max_seq_length", "32", "max_seq_length is '32', expected a whole number of at least 1, or null"),
        (BERT, "max_seq_length", 0, "max_seq_length is 0, expected a whole number"),
        (ROOT, "default_prompt_name", "nowhere", "default_prompt_name is 'nowhere', expected one of the prompts"),
        (ROOT, "prompts", {"query": 3}, "prompts is {'query': 3}, expected an object of names and texts"),
        ("1_Pooling/config.json", "word_embedding_dimension", 16, "embedding_dimension is 16, .* have width 32"),
        ("1_Pooling/config.json", "pooling_mode", [], "pooling_mode is empty"),
        ("tokenizer_config.json", "padding_side", "left", "padding_side .* is left, which moves the positions"),
    ],
)
def test_invalid_value_is_refused_with_its_name(tmp_path, file, key, value, told):
    with pytest.raises(EncoderError, match=told):
        SentenceEncoder.load(changed(write(tmp_path, layout(bert())), file, key, value))


@pytest.mark.parametrize("side", ["Left", "Right"])
def test_static_table_truncates_at_its_side_also_after_export(tmp_path, side):
    folder = write(tmp_path / "in", LAYOUTS["static table (static-retrieval-mrl)"](tmp_path))
    rule = {"direction": side, "max_length": 5, "strategy": "LongestFirst", "stride": 0}
    changed(folder, "0_StaticEmbedding/tokenizer.json", "truncation", rule)
    encoder, expected = SentenceEncoder.load(folder), vectors_of(opened(folder))
    encoder.save(tmp_path / "out")
    for vectors in (encoder.encode(TEXTS), SentenceEncoder.load(tmp_path / "out").encode(TEXTS)):
        assert np.abs(vectors - expected).max() <= 1e-5
    assert np.abs(vectors_of(opened(tmp_path / "out")) - expected).max() <= 1e-5


@pytest.mark.filterwarnings("ignore")
def test_length_without_a_setting_ends_at_the_positions_as_in_the_library(tmp_path):
    name = "a length beyond rotary positions, which have no table (Llama)"
    folder = write(tmp_path / "model", LAYOUTS[name](tmp_path))
    changed(folder, BERT, "max_seq_length", None)
    theirs = opened(folder).encode(TEXTS, batch_size=1, show_progress_bar=False)
    assert np.abs(SentenceEncoder.load(folder).encode(TEXTS) - theirs).max() <= 1e-5


def test_model2vec_folder_without_modules_is_refused_with_the_remedy(tmp_path):
    folder = write(tmp_path, {"config.json": {"model_type": "model2vec", "normalize": True}})
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(EncoderError, match=r"a model2vec model without modules\.json"):
        SentenceEncoder.load(folder)


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
def test_git_lfs_pointer_is_refused_with_the_command(tmp_path, file):
    folder = write(tmp_path, layout(bert()))
    (folder / file).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90868376\n")
    with pytest.raises(EncoderError, match=rf"{file}: a Git LFS pointer, .* Run `git lfs pull` in "):
        SentenceEncoder.load(folder)
