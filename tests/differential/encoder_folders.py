"""Folders of tiny encoders, and changes of one setting in one of their JSON files."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import CONFIG_MAPPING, AutoModel, PreTrainedTokenizerFast

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from tests.layouts import LAYOUTS, bert, layout, network, write, xlmr

WEIGHTS = "model.safetensors"
_WIDE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_ARCHITECTURES: dict[str, dict[str, Any]] = {
    "mobilebert": {"embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32},
    "convbert": {"embedding_size": 32},
    "squeezebert": {"embedding_size": 32},
    "layoutlm": {},
    "fnet": {},
    "electra": {"embedding_size": 16},
    "albert": {"embedding_size": 16},
    "distilbert": {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4},
    "mpnet": {},
    "nystromformer": {},
    "roformer": {"embedding_size": 32},
    "ernie": {},
    "camembert": {},
    "megatron-bert": {},
}
_LONGEST_LIST = 12  # entries; longer objects, such as vocabularies, are changed at a few places only


def _architecture(name):
    def build(folder):
        torch.manual_seed(5)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(write(folder / "tokenizer", xlmr()))
        fields = {**_WIDE, **_ARCHITECTURES[name], "vocab_size": 600, "pad_token_id": 1}
        model = AutoModel.from_config(CONFIG_MAPPING[name](**fields, max_position_embeddings=64))
        return layout(network(folder, model, tokenizer))

    return build


def _saved(pooling):
    """Return a folder of our own export with modules between transformer and pooling."""

    def build(folder):
        write(folder / "bare", bert())
        out = folder / "exported"
        SentenceEncoder.load(folder / "bare", EncoderConfig(model="x", pooling=pooling, max_length=32)).save(out)
        return {
            path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()
        }  # fmt: skip

    return build


BASES: dict[str, Callable[[Path], dict[str, Any]]] = {
    **LAYOUTS,
    **{name: _architecture(name) for name in _ARCHITECTURES},
    **{pooling: _saved(pooling) for pooling in ("first-last", "mean-after-first")},
}

_PLAIN = {"method": "forward", "method_output_name": "last_hidden_state"}
# Settings that sentence-transformers and transformers read, by file name; values that change something or nothing.
ADDED: dict[str, list[tuple[str, Any]]] = {
    "sentence_bert_config.json": [
        ("processing_kwargs", {"text": {"max_length": 4}}),
        ("processing_kwargs", {"text": {"add_special_tokens": False}}),
        ("processing_kwargs", {"common": {"max_length": 4}}),
        ("processing_kwargs", {"text": {"truncation": False}}),
        ("processing_kwargs", {"image": {"size": 4}}),
        ("tokenizer_args", {"model_max_length": 4}),
        ("tokenizer_args", {"truncation_side": "left"}),
        ("processor_kwargs", {"padding_side": "left"}),
        ("processor_kwargs", {"cls_token": "the"}),
        ("config_args", {"hidden_act": "relu"}),
        ("config_kwargs", {"num_hidden_layers": 1}),
        ("model_args", {"attn_implementation": "eager"}),
        ("model_kwargs", {"ignore_mismatched_sizes": True}),
        ("modality_config", {"text": _PLAIN, "message": {**_PLAIN, "format": "flat"}}),
        ("modality_config", {"text": {**_PLAIN, "method_output_name": ["hidden_states", 0]}}),
        ("module_output_name", "sentence_embedding"),
        ("transformer_task", "fill-mask"),
        ("transformer_task", "feature-extraction"),
        ("unpad_inputs", False),
        ("query_length", 4),
        ("query_expansion", {"strategy": "fixed", "length": 8}),
        ("tokenizer_name_or_path", "elsewhere"),
        ("max_seq_length", "12"),
        ("max_seq_length", 4),
        ("do_lower_case", True),
        ("surprise", 1),
    ],
    "config_sentence_transformers.json": [
        ("prompts", {"query": "query: "}),
        ("default_prompt_name", "query"),
        ("default_prompt_name", "nowhere"),
        ("model_type", "SparseEncoder"),
        ("model_type", "CrossEncoder"),
        ("similarity_fn_name", "dot"),
        ("truncate_dim", 5),
        ("surprise", 1),
    ],
    "config.json": [
        ("return_dict", False),
        ("output_hidden_states", True),
        ("output_attentions", True),
        ("torchscript", True),
        ("is_decoder", True),
        ("use_cache", True),
        ("is_causal", False),
        ("chunk_size_feed_forward", 3),
        ("add_cross_attention", True),
        ("pruned_heads", {"0": [1]}),
        ("position_embedding_type", "relative_key"),
        ("tie_word_embeddings", False),
        ("torch_dtype", "bfloat16"),
        ("attn_implementation", "eager"),
        ("_attn_implementation", "eager"),
        ("auto_map", {"AutoModel": "evil.Model"}),
        ("use_bidirectional_attention", True),
        ("sliding_window", 2),
        ("is_encoder_decoder", True),
        ("layer_norm_eps", 0.5),
        ("hidden_act", "relu"),
        # of modules
        ("pooling_mode_max_tokens", True),
        ("pooling_mode_cls_token", 1),
        ("pooling_mode", ["cls", "max"]),
        ("include_prompt", False),
        ("use_residual", True),
        ("activation_function", "torch.nn.modules.activation.ReLU"),
        ("module_input_name", "token_embeddings"),
        ("surprise", 1),
    ],
    "tokenizer_config.json": [
        ("truncation_side", "left"),
        ("padding_side", "left"),
        ("model_max_length", 6),
        ("do_lower_case", True),
        ("add_prefix_space", True),
        ("add_bos_token", True),
        ("add_eos_token", True),
        ("clean_up_tokenization_spaces", True),
        ("split_special_tokens", True),
        ("tokenizer_class", "BertTokenizer"),
        ("tokenizer_class", "RobertaTokenizer"),
        ("processor_class", "CLIPProcessor"),
        ("chat_template", "{% for m in messages %}USER {{ m['content'] }}{% endfor %}"),
        ("extra_special_tokens", {"more_token": "the"}),
        ("additional_special_tokens", ["the"]),
        ("auto_map", {"AutoTokenizer": ["evil.Tokenizer", None]}),
        ("mask_token", "the"),
    ],
    "special_tokens_map.json": [("cls_token", "the"), ("pad_token", "a"), ("additional_special_tokens", ["the"])],
    "added_tokens.json": [("the", 7)],
    "generation_config.json": [("max_length", 4)],
    "processor_config.json": [("processor_class", "CLIPProcessor")],
    "preprocessor_config.json": [("processor_class", "CLIPProcessor"), ("do_resize", True)],
    "tokenizer.json": [
        ("truncation", {"direction": "Left", "max_length": 5, "strategy": "LongestFirst", "stride": 0}),
        ("truncation", {"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0}),
        ("padding", {"strategy": {"Fixed": 40}, "direction": "Left", "pad_to_multiple_of": None, "pad_id": 0,
                     "pad_type_id": 0, "pad_token": "[PAD]"}),
        ("normalizer", {"type": "Lowercase"}),
        ("pre_tokenizer", {"type": "Whitespace"}),
        ("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}),
        ("post_processor", None),
        ("normalizer", None),
        ("decoder", None),
    ],
    "modules.json": [],
    "1_Pooling/config.json": [],
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """A setting's path in a file, and its new value; `GONE` removes it."""

    file: str
    path: tuple[str | int, ...]
    value: object

    @property
    def key(self):
        return next((str(part) for part in reversed(self.path) if isinstance(part, str)), self.file)


GONE = object()


def built(name, folder):
    ready = folder / "ready"
    if not ready.is_dir():
        write(ready, BASES[name](folder / "parts"))
    return ready


def in_format(folder, random):
    """Rewrite the weights of a transformer in a random format of transformers, and return its name."""
    kind = random.choice(("safetensors", "safetensors", "pickle", "sharded", "sharded pickle"))
    if kind == "safetensors" or not (folder / WEIGHTS).is_file() or not (folder / "config.json").is_file():
        return "safetensors"
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    for other in folder.glob("pytorch_model*"):
        other.unlink()
    if kind == "pickle":
        torch.save(tensors, folder / "pytorch_model.bin")
        return kind
    names = sorted(tensors)
    parts = [names[::2], names[1::2]]
    stem, end = ("model", "safetensors") if kind == "sharded" else ("pytorch_model", "bin")
    listed = {}
    for number, part in enumerate(parts, start=1):
        file = f"{stem}-{number:05}-of-00002.{end}"
        listed |= dict.fromkeys(part, file)
        chosen = {tensor: tensors[tensor].clone() for tensor in part}
        if end == "bin":
            torch.save(chosen, folder / file)
        else:
            from safetensors.torch import save_file

            save_file(chosen, folder / file, metadata={"format": "pt"})
    total = sum(tensor.numel() * 4 for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": listed}
    (folder / f"{stem}.{end}.index.json").write_text(json.dumps(index))
    return kind


def changes_of(folder):
    found: list[Change] = []
    for path in sorted(folder.rglob("*.json")):
        file = path.relative_to(folder).as_posix()
        if file.startswith("onnx/") or file.endswith(".index.json"):
            continue
        content = json.loads(path.read_text())
        found += [Change(file, place, value) for place, old in _places(content) for value in _others(old)]
    found += [
        Change(file if file in ADDED and "/" in file else _where(folder, file), (key,), value)
        for file, listed in ADDED.items()
        for key, value in listed
    ]
    found += [
        Change(path.relative_to(folder).as_posix(), (key,), value)
        for path in sorted(folder.glob("*_*/config.json"))
        for key, value in ADDED["config.json"]
    ]
    return found


def _where(folder, file):
    inner = next((path for path in folder.glob(f"0_*/{file}")), None)
    return file if inner is None else inner.relative_to(folder).as_posix()


def _places(content, depth=4):
    entries: list[tuple[str | int, object]]
    entries = list(content.items()) if isinstance(content, dict) else list(enumerate(content))
    if len(entries) > _LONGEST_LIST * 3:
        entries = entries[:: max(1, len(entries) // 3)][:3]
    for name, value in entries:
        yield (name,), value
        if depth > 1 and isinstance(value, dict | list):
            yield from (((name, *path), inner) for path, inner in _places(value, depth - 1))


def _others(value):
    if isinstance(value, bool):
        return [not value, GONE]
    if isinstance(value, int):
        return [0, value + 1, max(1, value // 2), str(value), GONE]
    if isinstance(value, float):
        return [value * 2, 0.0, GONE]
    if isinstance(value, str):
        return [f"{value}x", "", None, GONE]
    if value is None:
        return [1, "x", GONE]
    return [GONE]


def apply(change, folder):
    path = folder / change.file
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.loads(path.read_text()) if path.is_file() else {}
    inner: Any = content
    for part in change.path[:-1]:
        inner = inner[part]
    if change.value is GONE:
        del inner[change.path[-1]]
    else:
        inner[change.path[-1]] = change.value
    path.write_text(json.dumps(content))


def copied(folder, target):
    shutil.rmtree(target, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.onnx", "*.h5", "*.msgpack", "onnx", "README.md")
    shutil.copytree(folder, target, ignore=ignored)
    return target
