"""Repositories in the layouts of the real ones, with networks of width 32 and sentences of the package's sample.

Configurations name every field that the originals set; sizes alone are smaller. Weights are drawn from a seed.
"""

from __future__ import annotations

import io
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from storage.declarations import DATASETS
from storage.embedded import embedded_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.hub.server import StandInHub

ROWS = 24  # of a corpus of pairs, so that a run takes all of it
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
NLI = {"snli": {"configs": [{"config_name": "plain_text", "data_files": [
    {"split": split, "path": f"plain_text/{split}-*"} for split in ("test", "validation", "train")]}]},
    "multi_nli": {"configs": [{"config_name": "default", "data_files": [
        {"split": split, "path": f"data/{split}-*"} for split in DATASETS["multi_nli"].splits.values()
    ]}]}}  # fmt: skip


@cache
def sample() -> pl.DataFrame:
    """premise, hypothesis, label: real pairs."""
    return pl.read_parquet(embedded_path("nli-sample") / "train.parquet").head(400)


@cache
def sentences() -> list[str]:
    return pl.concat([sample()["premise"], sample()["hypothesis"]]).unique(maintain_order=True).to_list()


def publish(hub: StandInHub, wanted: Iterable[tuple[str, str | None]]) -> None:
    """Models by their ids, at the commits that recipes pin."""
    for name, revision in dict.fromkeys(wanted):
        hub.add("models", name, dict(model_files(name)), revision)


_FAMILIES = {"xlm-r": "xlmr", "multilingual-mpnet": "xlmr", "roberta": "roberta", "": "bert"}
"""Part of a name → family, by the first that fits."""


@cache
def model_files(name: str) -> Mapping[str, bytes]:
    """The files of a model as its repository has them, by the family that its name tells."""
    if "opus-mt" in name:
        return _marian(name)
    family = next(family for word, family in _FAMILIES.items() if word in name)
    files = _transformer(f"{family}-pooled" if name.startswith("princeton-nlp/") else family)
    if not name.startswith("sentence-transformers/"):
        return files
    return {**files, **_sentence_transformer(), **(_labse() if name.endswith("LaBSE") else {})}


def publish_nli(hub: StandInHub) -> None:
    """SNLI with its unlabelled pairs, MultiNLI with the columns that nobody reads."""
    frame = sample().with_row_index("row").with_columns(
        label=pl.when(pl.col("row") % 10 == 9).then(-1).otherwise(pl.col("label")).cast(pl.Int64)
    )  # fmt: skip
    pairs = frame.drop("row")
    snli = pl.concat([pairs.head(ROWS), _entailed(pairs)])
    multi = pairs.tail(ROWS).with_columns(
        promptID=pl.int_range(pl.len()), premise_parse=pl.lit("(ROOT (S))"), genre=pl.lit("fiction")
    )
    tables = {
        "snli": {f"plain_text/{split}-00000-of-00001.parquet": snli for split in ("train", "validation", "test")},
        "multi_nli": {
            "data/train-00000-of-00002.parquet": multi.head(ROWS // 2),
            "data/train-00001-of-00002.parquet": multi.tail(ROWS // 2),
            "data/validation_matched-00000-of-00001.parquet": multi,
            "data/validation_mismatched-00000-of-00001.parquet": multi,
        },
    }
    for name, frames in tables.items():
        files = {path: parquet(table) for path, table in frames.items()}
        declared = DATASETS[name]
        hub.add("datasets", str(declared.hub_id), {"README.md": b"", **files}, declared.revision, card=NLI[name])


def _entailed(pairs: pl.DataFrame) -> pl.DataFrame:
    """One premise with four entailed hypotheses, as one in a thousand of SNLI's has."""
    return pairs.filter(label=0).head(4).with_columns(pl.col("premise").first())


def publish_sts(hub: StandInHub, names: Iterable[str]) -> None:
    """Sets of mteb, as many pairs as they have; gz JSONL a split, sts17 a folder a configuration."""
    by_repository: dict[str, list[str]] = {}
    for name in names:
        by_repository.setdefault(str(DATASETS[name].hub_id), []).append(name)
    for hub_id, members in by_repository.items():
        files = {}
        for name in members:
            declared = DATASETS[name]
            folder = f"{declared.hub_config}/" if declared.hub_config else ""
            for split, spelled in declared.splits.items():
                files[f"{folder}{spelled}.jsonl.gz"] = _gz(scored(declared.rows[split]).write_ndjson())
        hub.add("datasets", hub_id, {"README.md": b"", **files}, DATASETS[members[0]].revision)


def scored(rows: int) -> pl.DataFrame:
    """Pairs of sentences with scores that follow shared words."""
    texts = sentences()
    first, second = ([texts[(row * step) % len(texts)] for row in range(rows)] for step in (1, 7))
    words = [(set(one.split()), set(other.split())) for one, other in zip(first, second, strict=True)]
    scores = [5 * len(one & other) / len(one | other) for one, other in words]
    return pl.DataFrame({"sentence1": first, "sentence2": second, "score": scores})


def parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _gz(text: str) -> bytes:
    import gzip

    return gzip.compress(text.encode(), mtime=0)


def files_of(folder: Path) -> dict[str, bytes]:
    """A folder's files by relative path."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _marian(name: str) -> Mapping[str, bytes]:
    """One pickle, two SentencePiece models, and the weights of frameworks that are not read here.

    The networks are the package's, for a translator that cannot translate is refused before it costs anything.
    """
    folder = embedded_path("marian-mini-mul-en" if name.endswith("-en") else "marian-mini-en-mul")
    files = files_of(folder)
    pickle = io.BytesIO()
    torch.save(load_file(folder / "model.safetensors"), pickle)
    del files["model.safetensors"], files["manifest.json"]
    others = {"tf_model.h5": b"not read", "README.md": b"", "metadata.json": b"{}"}
    return {**files, **others, "pytorch_model.bin": pickle.getvalue()}


@cache
def _transformer(family: str) -> Mapping[str, bytes]:
    tokenizer, network = _NETWORKS[family]()
    with tempfile.TemporaryDirectory() as folder:
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        pickle = io.BytesIO()
        torch.save(network.state_dict(), pickle)
        made = files_of(Path(folder))
    others = {"pytorch_model.bin": pickle.getvalue(), "tf_model.h5": b"not read", "flax_model.msgpack": b"not read"}
    return {**made, **others, "README.md": b"", "onnx/model.onnx": b"not read", "onnx/config.json": b"{}"}


def _bert() -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=special, show_progress=False)
    core.train_from_iterator(sentences(), trainer)
    core.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    core.decoder = decoders.WordPiece()
    marks = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    config = BertConfig(
        **SIZES, vocab_size=core.get_vocab_size(), hidden_act="gelu", hidden_dropout_prob=0.1, type_vocab_size=2,
        attention_probs_dropout_prob=0.1, initializer_range=0.02, layer_norm_eps=1e-12, max_position_embeddings=512,
        pad_token_id=0,
    )  # fmt: skip
    return _tokenizer(core, marks), _seeded(BertForMaskedLM, config)


def _roberta() -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=special,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    core.train_from_iterator(sentences(), trainer)
    core.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return _tokenizer(core, _ROBERTA_MARKS), _seeded(RobertaForMaskedLM, RobertaConfig(**_roberta_like(core)))


def _xlmr() -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    core = Tokenizer(models.Unigram())
    core.normalizer = normalizers.NFKC()
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.train_from_iterator(
        sentences(),
        trainers.UnigramTrainer(vocab_size=600, special_tokens=special, unk_token="<unk>", show_progress=False),
    )
    core.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    core.decoder = decoders.Metaspace()
    return _tokenizer(core, _ROBERTA_MARKS), _seeded(XLMRobertaModel, XLMRobertaConfig(**_roberta_like(core)))


def _bert_pooled() -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
    tokenizer, network = _bert()
    return tokenizer, _seeded(BertModel, network.config)


def _roberta_pooled() -> tuple[PreTrainedTokenizerFast, PreTrainedModel]:
    tokenizer, network = _roberta()
    return tokenizer, _seeded(RobertaModel, network.config)


_NETWORKS: Mapping[str, Callable[[], tuple[PreTrainedTokenizerFast, PreTrainedModel]]] = {
    "bert": _bert,
    "bert-pooled": _bert_pooled,
    "roberta": _roberta,
    "roberta-pooled": _roberta_pooled,
    "xlmr": _xlmr,
}
_ROBERTA_MARKS = {
    "bos": "<s>", "eos": "</s>", "sep": "</s>", "cls": "<s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask>"
}  # fmt: skip


def _roberta_like(core: Tokenizer) -> dict[str, Any]:
    return {
        **SIZES, "vocab_size": core.get_vocab_size(), "max_position_embeddings": 514, "type_vocab_size": 1,
        "layer_norm_eps": 1e-5, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu",
    }  # fmt: skip


def _tokenizer(core: Tokenizer, marks: Mapping[str, str]) -> PreTrainedTokenizerFast:
    named = {f"{name}_token": token for name, token in marks.items()}
    return PreTrainedTokenizerFast(tokenizer_object=core, model_max_length=512, **named)


def _seeded(kind: type[PreTrainedModel], config: Any) -> PreTrainedModel:
    torch.manual_seed(1)
    return kind(config)


def _sentence_transformer() -> Mapping[str, bytes]:
    """Mean of the last layer, as the models of the papers have it since their repositories were made."""
    return _json(
        {
            "modules.json": _modules("Transformer", "Pooling"),
            "sentence_bert_config.json": {"max_seq_length": 128, "do_lower_case": False},
            "config_sentence_transformers.json": {"__version__": {"sentence_transformers": "2.0.0"}},
            "1_Pooling/config.json": _pooling("mean"),
        }
    )


def _labse() -> Mapping[str, bytes]:
    """[CLS] through a Dense module whose weights are a pickle alone, scaled to length 1."""
    tanh = "torch.nn.modules.activation.Tanh"
    settings = {"in_features": 32, "out_features": 32, "bias": True, "activation_function": tanh}
    texts = {
        "modules.json": _modules("Transformer", "Pooling", "Dense", "Normalize"),
        "1_Pooling/config.json": _pooling("cls"),
        "2_Dense/config.json": settings,
    }
    weights = {f"2_Dense/{name}": content for name, content in dense(32, 32).items()}
    return {**_json(texts), **weights}


def _modules(*kinds: str) -> list[dict[str, Any]]:
    return [
        {"idx": number, "name": str(number), "path": f"{number}_{kind}" if number else "",
         "type": f"sentence_transformers.models.{kind}"}
        for number, kind in enumerate(kinds)
    ]  # fmt: skip


def _pooling(mode: str) -> dict[str, Any]:
    switches = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "mean_sqrt_len_tokens": "sqrt"}
    modes = {f"pooling_mode_{name}": meaning == mode for name, meaning in switches.items()}
    return {"word_embedding_dimension": 32, **modes}


def _json(texts: Mapping[str, Any]) -> dict[str, bytes]:
    return {name: json.dumps(content).encode() for name, content in texts.items()}


def dense(width: int, out: int, seed: int = 2) -> dict[str, bytes]:
    """The weights of a Dense module as a pickle, as LaBSE's and distiluse's repositories had them first."""
    torch.manual_seed(seed)
    state = torch.nn.Linear(width, out).state_dict()
    pickle = io.BytesIO()
    torch.save({f"linear.{name}": value for name, value in state.items()}, pickle)
    return {"pytorch_model.bin": pickle.getvalue()}


def safetensors(tensors: dict[str, torch.Tensor]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save_file(tensors, Path(folder) / "x.safetensors")
        return (Path(folder) / "x.safetensors").read_bytes()
