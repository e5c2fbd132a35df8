"""A damaged or unsupported encoder folder ends in an error with its path and a fix; no code in it is ever run."""

import io
import json
import os
import re
import shutil
from fractions import Fraction

import numpy as np
import pytest
import torch
from safetensors.torch import load, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as st

from bsl.models.encoder.config import CNNConfig, EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EncoderError
from bsl.storage.errors import SourceError, StorageError
from bsl.storage.sources.model_sources import resolve_model
from tests.differential.encoder_folders import BASES
from tests.layouts import TEXTS, bert, dense_head, layout, modules, opened, roberta, vectors_of, write
from tests.tiny_encoder import write_tiny
from tests.tiny_heads import ours
from tests.tiny_words import WIDTH, words

WEIGHTS, BERT, ROOT = "model.safetensors", "sentence_bert_config.json", "config_sentence_transformers.json"
POOLING, DENSE, ROUTES = "1_Pooling/config.json", "2_Dense/config.json", "r/router_config.json"
TABLE = "0_StaticEmbedding"
PLAIN = {"method": "forward", "method_output_name": "last_hidden_state"}
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90868376\n"
ROUTER = [{"type": "sentence_transformers.base.modules.router.Router", "path": "r"}]


def modality(settings):
    return {"modality_config": settings, "module_output_name": "token_embeddings"}


def routes(*names, type="sentence_transformers.models.StaticEmbedding", **parameters):
    structure = {name: [name] for name in names}
    return {"structure": structure, "types": dict.fromkeys(names, type), "parameters": parameters}


def pickled(value):
    content = io.BytesIO()
    torch.save({"linear.weight": value}, content)
    return content.getvalue()


def listed(*kinds, **first):
    """Return the content of modules.json, with other fields of the first module."""
    made = modules(*kinds)
    return [{**made[0], **first}, *made[1:]]


def word_table(folder):
    SentenceTransformer(modules=[*words(weighed=True), st.Pooling(WIDTH)], device="cpu").save(str(folder))


def pooled_by_cls(folder):
    """Write an export, in which the pooler is the identity."""
    bare = write_tiny(folder.with_name("bare"))
    SentenceEncoder.load(bare, EncoderConfig(model="x", pooling="cls", max_length=24)).save(folder)


MADE = {
    "bert": lambda folder: write(folder, layout(bert())),
    "bare": lambda folder: write(folder, bert()),
    "roberta": lambda folder: write(folder, layout(roberta())),
    "dense": lambda folder: write(folder, {**layout(bert(), "Dense"), **dense_head(2)}),
    "cnn": lambda folder: ours(folder.with_name("bare"), "CNN, TokenReLU").save(folder),
    "words": word_table,
    "router": lambda folder: write(folder, {"modules.json": ROUTER}),
    "modernbert": lambda folder: write_tiny(folder, "modernbert"),
    "export": pooled_by_cls,
    "static": lambda folder: write(folder, BASES["static table (static-retrieval-mrl)"](folder.with_name("parts"))),
    **{
        name: lambda folder, name=name: write(folder, BASES[name](folder.with_name("parts")))
        for name in ("LayerNorm", "first-last", "mean-after-first", "nystromformer")
    },
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Return a function that writes a folder once and returns its path."""
    ready = {}

    def make(name):
        if name not in ready:
            ready[name] = tmp_path_factory.mktemp("base") / "model"
            MADE[name](ready[name])
        return ready[name]

    return make


@pytest.fixture
def copied(base, tmp_path):
    return lambda name: shutil.copytree(base(name), tmp_path / "model")


def change(folder, file, content):
    """Write content to a file; settings are merged into those of the file; None removes the file."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        path.unlink()
    elif isinstance(content, str | bytes):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    elif isinstance(content, list):
        path.write_text(json.dumps(content))
    elif isinstance(next(iter(content.values())), torch.Tensor):
        save_file(content, path, metadata={"format": "pt"})
    else:
        path.write_text(json.dumps((json.loads(path.read_text()) if path.is_file() else {}) | content))


def refused(folder, message, **settings):
    """Load the folder, which must fail with the message, the folder's path and a fix."""
    with pytest.raises((EncoderError, StorageError), match=message) as refusal:
        SentenceEncoder.load(resolve_model(str(folder)).folder, EncoderConfig(model=str(folder), **settings))
    assert str(folder) in str(refusal.value)
    assert re.search(r"[;.] \w|expected", str(refusal.value))  # the part that says how to fix it


REFUSED = [
    # no JSON, or JSON of another kind
    ("bare", "config.json", "", "config.json: cannot be read as JSON .* Check that the copy is complete"),
    ("bare", "config.json", b"\xff\xfe\x00", "config.json: cannot be read as JSON"),
    ("bare", "config.json", "[]", "model: cannot be loaded .* Check that the copy is complete"),
    ("bare", "config.json", "[" * 100_000, "cannot be loaded"),
    ("bare", "tokenizer.json", "{}", "cannot be loaded"),
    ("bare", "tokenizer_config.json", "[]", "cannot be loaded"),
    ("bert", "modules.json", "{}", "modules none: expected Transformer .* first"),
    ("bert", "modules.json", "[1, 2]", "cannot be loaded"),
    ("bert", BERT, "[1]", "cannot be loaded"),
    # architecture
    ("bare", "config.json", None, "model is not a model: .*, expected config.json or modules.json"),
    ("bare", "config.json", "{}", "config.json: no model_type, and not the fields and vocab.txt of BERT"),
    ("bare", "config.json", {"model_type": "no-such-model"}, "cannot be loaded .*no-such-model"),
    ("bare", "config.json", {"model_type": "own", "auto_map": {"AutoModel": "x.Y"}}, r"own is custom code \(AutoModel"),
    ("bare", "config.json", {"model_type": "model2vec"}, "a model2vec model without modules.json"),
    ("bare", "config.json", {"num_attention_heads": 0}, "cannot be loaded"),
    ("bare", "config.json", {"num_hidden_layers": 9}, "112 weights are missing .* expected a complete encoder"),
    ("nystromformer", "config.json", {"num_landmarks": 0}, "nystromformer does not run .* Correct its settings"),
    ("bert", "adapter_config.json", {"peft_type": "LORA"}, r"an adapter \(LORA\), which is not supported\. Merge it"),
    # weights
    ("export", WEIGHTS, None, "cannot be loaded .*no file named model.safetensors"),
    ("bare", WEIGHTS, LFS, "a Git LFS pointer, .* Run `git lfs pull` in "),
    ("bare", WEIGHTS, {"surprise": torch.zeros(2)}, "37 weights are missing"),
    ("dense", "2_Dense/model.safetensors", {"linear.weight": torch.zeros(16, 32)}, r"(?s)do not match .*linear\.bias"),
    ("dense", "2_Dense/model.safetensors", "{", "cannot read the weights"),
    ("dense", "2_Dense/pytorch_model.bin", None, "no weights, expected model.safetensors or pytorch_model.bin"),
    ("dense", "2_Dense/pytorch_model.bin", pickled(Fraction(1)), "more than tensors, and code in files is never run"),
    ("static", f"{TABLE}/model.safetensors", {"embedding.weight": torch.ones(599, 24)}, "ids up to 599, .* only 599"),
    ("static", f"{TABLE}/model.safetensors", {"v": torch.ones(9, 24)}, "the tensors v, expected embedding.weight"),
    ("first-last", "1_WeightedLayerPooling/model.safetensors", {"layer_weights": torch.tensor([1.0, 2.0])},
     r"layer weights \[1\.0, 2\.0\] from layer 1"),
    ("cnn", "2_Dense/model.safetensors", {"linear.weight": 2 * torch.eye(12)}, "trained weights, expected the ident"),
    # tokenizer
    ("bare", "tokenizer.json", None, "cannot be loaded"),
    ("bare", "tokenizer.json", LFS, "a Git LFS pointer"),
    ("bert", "config.json", {"quantization_config": {"quant_method": "gptq"}}, r"quantization_config \(gptq\), which"),
    ("bare", "config.json", {"quantization_config": {"bits": 8}}, r"quantization_config \(None\), which is not supp"),
    ("bert", "tokenizer_config.json", {"padding_side": "left"}, "padding_side .* is left, which moves the positions"),
    ("static", f"{TABLE}/tokenizer.json", None, "tokenizer.json: cannot be read as JSON"),
    # modules
    ("bert", "modules.json", listed("Transformer", "Pooling", path=None), "cannot be loaded"),
    ("bert", "modules.json", listed("Transformer", "Pooling", path="../../elsewhere"), "names folders outside it"),
    ("bert", "modules.json", listed("Transformer", "Pooling", path="/etc"), "modules.json names folders outside it"),
    ("bert", "modules.json", listed("Transformer", "Dense"), "Dense follows Transformer, expected it after Pooling"),
    ("bert", "modules.json", listed("Transformer", "Pooling", "Dense"), "2_Dense: config.json lacks 'in_features'"),
    ("bert", "modules.json", listed("Transformer", "Pooling", type="own.Encoder"), "own.Encoder is custom code"),
    ("bert", "modules.json", listed("Transformer", "Pooling", "MLMHead"), "Pooling → MLMHead: unknown module MLMHead"),
    ("bert", "modules.json", listed("MLMTransformer", "SpladePooling"), "SpladePooling has one dimension per word"),
    ("bert", "modules.json", listed("Transformer", "Pooling", "SparseAutoEncoder"), "AutoEncoder makes vectors sparse"),
    ("bert", "modules.json", listed("Transformer", "Dense", "MultiVectorMask"), "MultiVectorMask has one vector"),
    ("words", "modules.json", listed("WordEmbeddings", "BoW", "Pooling"), "BoW .*one dimension per word .* TF-IDF"),
    ("words", "modules.json", listed("WordEmbeddings", "LSTM", "Pooling"), "LSTM .*recurrent network; train a CNN"),
    ("cnn", "modules.json", listed("Transformer", "Pooling", "CNN"), "CNN follows Pooling, expected it after"),
    ("router", ROUTES, routes("query", "document", allow_empty_key=False), "query or document by task, and has no def"),
    ("router", ROUTES, routes("text", type="own.Encoder"), "own.Encoder is custom code, which is never run"),
    ("router", ROUTES, routes("../../text"), "names folders outside it"),
    # settings of modules
    ("bert", POOLING, {"pooling_mode": "median"}, "unknown pooling median, expected cls, max, mean, "),
    ("bert", POOLING, {"pooling_mode": []}, "pooling_mode is empty"),
    ("bert", POOLING, {"word_embedding_dimension": 16}, "embedding_dimension is 16, .* have width 32"),
    ("bert", POOLING, {"surprise": 1}, f"{POOLING}: the setting surprise is unknown"),
    ("mean-after-first", "1_WordWeights/config.json", {"word_weights": {"the": 0.5, "a": 0.5}}, "2 of 600 tokens"),
    ("dense", DENSE, {"activation_function": "torch.nn.modules.activation.PReLU"}, "PReLU', expected one of"),
    ("dense", DENSE, {"activation_function": "os.Tanh"}, "activation 'os.Tanh', expected one of torch.nn's"),
    ("dense", DENSE, {"module_input_name": "token_embeddings"}, "Dense reads or writes .*, expected sentence"),
    ("dense", DENSE, {"out_features": 13}, "weights and config.json do not match"),
    ("LayerNorm", "2_LayerNorm/config.json", {"module_input_name": "token_embeddings"}, "LayerNorm reads or writes"),
    ("cnn", "1_CNN/cnn_config.json", {"kernel_sizes": [2]}, r"1_CNN: .*kernels \[2\], expected odd"),
    ("cnn", "1_CNN/cnn_config.json", {"stride_sizes": [2]}, r"1_CNN: .*strides \[2\], expected 1"),
    ("cnn", DENSE, {"activation_function": "torch.nn.modules.activation.GELU"}, "dense layer on token vectors .*GELU"),
    ("words", "whitespacetokenizer_config.json", {"vocab": list("abcdefghijklmnop")}, "16 words and a table of 15"),
    ("words", "wordembedding_config.json", {"tokenizer_class": "own.PhraseTokenizer"},
     "tokenizer PhraseTokenizer, expected WhitespaceTokenizer"),
    ("words", "2_Pooling/config.json", {"pooling_mode": "max"}, "word weights with 0 heads on token vectors"),
    # settings of the whole encoder
    ("bert", ROOT, {"truncate_dim": 0}, "truncate_dim is 0, expected an integer of at least 1"),
    ("bert", ROOT, {"truncate_dim": True}, "truncate_dim is True, expected an integer"),
    ("bert", ROOT, {"default_prompt_name": "nowhere"}, "default_prompt_name is 'nowhere', expected one of the prompts"),
    ("bert", ROOT, {"default_prompt_name": "a", "prompts": [1]}, r"prompts is \[1\], expected an object of names and"),
    ("bert", ROOT, {"prompts": {"query": 3}}, "prompts is {'query': 3}, expected an object of names and texts"),
    ("bert", ROOT, {"model_type": "SparseEncoder"}, f"{ROOT}: the setting model_type is "),
    ("bert", ROOT, {"surprise": 1}, f"{ROOT}: the setting surprise is "),
    ("bert", BERT, {"max_seq_length": "32"}, "max_seq_length is '32', expected a whole number of at least 1, or null"),
    ("bert", BERT, {"max_seq_length": 0}, "max_seq_length is 0, expected a whole number"),
    ("bert", BERT, {"processing_kwargs": {"text": {"max_length": 4}}}, "setting processing_kwargs.text.max_length is "),
    ("bert", BERT, {"processing_kwargs": {"common": {"max_length": 4}}}, "setting processing_kwargs.common is "),
    ("bert", BERT, {"tokenizer_args": {"model_max_length": 4}}, "setting tokenizer_args.model_max_length is "),
    ("bert", BERT, {"config_args": {"hidden_act": "relu"}}, "setting config_args.hidden_act is "),
    ("bert", BERT, {"model_args": {"ignore_mismatched_sizes": True}}, "setting model_args.ignore_mismatched_sizes is "),
    ("bert", BERT, modality({"text": PLAIN, "message": {**PLAIN, "format": "flat"}}), "modality_config.message is "),
    ("bert", BERT, modality({"text": {**PLAIN, "method": "encode"}}), "setting modality_config.text.method is "),
    ("bert", BERT, {"transformer_task": "fill-mask"}, "setting transformer_task is "),
    ("bert", BERT, {"query_expansion": {"strategy": "fixed", "length": 8}}, "setting query_expansion is "),
    ("bert", BERT, {"surprise": 1}, f"{BERT}: the setting surprise is "),
]  # fmt: skip


@pytest.mark.parametrize(("name", "file", "content", "message"), REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_changed_file_is_refused_with_its_path_and_a_fix(copied, name, file, content, message):
    folder = copied(name)
    change(folder, file, content)
    refused(folder, message)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("static", {"dropout": 0.1}, r"has no dropout, but encoder\.dropout is 0\.1"),
        ("static", {"pooling": "cls"}, r"can only be averaged \(found encoder\.pooling=cls"),
        ("export", {"max_length": 65}, r"accepts at most 64 tokens, but encoder\.max_length is 65"),
        ("roberta", {"max_length": 514}, r"accepts at most 512 tokens, but encoder\.max_length is 514"),
        ("bare", {"pooling": "cls-pooler"}, r"2 weights are missing \(first: \['pooler.dense.bias'"),
        ("modernbert", {"pooling": "cls-pooler"}, "a dense layer and tanh, which this modernbert lacks"),
        ("export", {"pooling": "cls-pooler"}, r"needs a trained pooler \(found the identity"),
        ("cnn", {"cnn": CNNConfig(kernels=(5,))}, r"encoder.cnn is .*kernels=\(5,\).* saved with .*kernels=\(1, 3\)"),
    ],
)
def test_setting_that_the_folder_does_not_allow_is_refused(base, name, settings, message):
    refused(base(name), message, **settings)


@pytest.mark.filterwarnings("ignore")
def test_damaged_weights_are_refused(copied):
    folder = copied("bare")
    whole = (folder / WEIGHTS).read_bytes()
    tensors = load(whole)
    lost = next(name for name in tensors if "attention.self.query.weight" in name)
    for content, message in [
        (whole[: len(whole) // 2], "cannot be loaded"),
        ({name: tensor[..., :-1].clone() for name, tensor in tensors.items()}, "cannot be loaded"),
        (
            {name: tensor for name, tensor in tensors.items() if name != lost},
            "1 weights are missing .*query.*expected a complete encoder",
        ),
        (
            {name: tensor * torch.nan for name, tensor in tensors.items()},
            r"37 weights are not finite .* its training diverged",
        ),
    ]:
        change(folder, WEIGHTS, content)
        refused(folder, message)


def test_pipe_folder_or_pickled_code_in_place_of_a_file_is_refused(copied):
    folder = copied("export")
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_text("cos\nsystem\n(S'true'\ntR.")
    refused(folder, "pickled weights contain more than tensors, and code in files is never run")
    (folder / "pytorch_model.bin").unlink()
    (folder / WEIGHTS).mkdir()
    refused(folder, "cannot be loaded")
    (folder / "modules.json").unlink()
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    refused(folder, r"no config\.json")


@pytest.mark.parametrize("spec", ["x" * 5000, "/" + "y/" * 3000, "a\0b", "../../etc"])
def test_invalid_model_name_raises_source_error(spec, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SourceError):
        resolve_model(spec)


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        (BERT, {"processing_kwargs": {"text": {"padding": True, "truncation": True}, "image": {"size": 4}}}),
        (BERT, modality({"text": PLAIN, "image": PLAIN})),
        (BERT, {"model_args": {"attn_implementation": "eager", "torch_dtype": "float32"}}),
        (BERT, {"tokenizer_args": {"use_fast": True}, "unpad_inputs": False}),
        (ROOT, {"similarity_fn_name": "dot", "model_type": "SentenceTransformer"}),
        ("config.json", {"auto_map": {"AutoModel": "evil.Model"}, "return_dict": False}),
        ("config.json", {"output_attentions": True, "output_hidden_states": True}),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_setting_that_changes_no_vector_is_accepted(base, copied, file, settings):
    folder = copied("bert")
    change(folder, file, settings)
    found = SentenceEncoder.load(folder).encode(TEXTS)
    assert np.array_equal(found, SentenceEncoder.load(base("bert")).encode(TEXTS))
    if file != "config.json":
        assert np.abs(vectors_of(opened(folder)) - found).max() <= 1e-5
