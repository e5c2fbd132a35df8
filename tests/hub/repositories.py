"""Repositories in the layouts of the real ones, with networks of width 32 and sentences of the package's sample."""

import io
import json
import tempfile
from functools import cache
from pathlib import Path

import polars as pl
import torch
from safetensors.torch import load_file

from bsl.storage.assets.embedded import embedded_path
from bsl.storage.datasets.registry import DATASETS
from tests.hub.networks import NETWORKS

ROWS = 24  # rows of each pair corpus; a run takes all of them
NLI = {"snli": {"configs": [{"config_name": "plain_text", "data_files": [
    {"split": split, "path": f"plain_text/{split}-*"} for split in ("test", "validation", "train")]}]},
    "multi_nli": {"configs": [{"config_name": "default", "data_files": [
        {"split": split, "path": f"data/{split}-*"} for split in DATASETS["multi_nli"].splits.values()
    ]}]}}  # fmt: skip


@cache
def sample():
    """Return real NLI pairs: premise, hypothesis, label."""
    return pl.read_parquet(embedded_path("nli-sample") / "train.parquet").head(400)


@cache
def sentences():
    return pl.concat([sample()["premise"], sample()["hypothesis"]]).unique(maintain_order=True).to_list()


def publish(hub, wanted):
    for name, revision in dict.fromkeys(wanted):
        hub.add("models", name, dict(model_files(name)), revision)


_FAMILIES = {"xlm-r": "xlmr", "multilingual-mpnet": "xlmr", "roberta": "roberta", "": "bert"}
"""Part of a model's name → its family; the first match counts."""


@cache
def model_files(name):
    """Return a model's files in the layout of its repository; the name decides the family."""
    if "opus-mt" in name:
        return _marian(name)
    family = next(family for word, family in _FAMILIES.items() if word in name)
    files = _transformer(f"{family}-pooled" if name.startswith("princeton-nlp/") else family)
    if not name.startswith("sentence-transformers/"):
        return files
    return {**files, **_sentence_transformer(), **(_labse() if name.endswith("LaBSE") else {})}


def publish_nli(hub):
    """Add SNLI, with unlabelled pairs, and MultiNLI, with its unused columns."""
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


def _entailed(pairs):
    """Return one premise with four entailed hypotheses, as for one in a thousand premises of SNLI."""
    return pairs.filter(label=0).head(4).with_columns(pl.col("premise").first())


def publish_sts(hub, names):
    """Add mteb's sets with their real number of pairs: gzipped JSONL per split, in sts17 a folder per configuration."""
    by_repository: dict[str, list[str]] = {}
    for name in names:
        by_repository.setdefault(str(DATASETS[name].hub_id), []).append(name)
    for hub_id, members in by_repository.items():
        files, configs = {}, []
        for name in members:
            declared = DATASETS[name]
            folder = f"{declared.hub_config}/" if declared.hub_config else ""
            if folder:
                configs.append({"config_name": declared.hub_config, "data_dir": declared.hub_config})
            for split, spelled in declared.splits.items():
                files[f"{folder}{spelled}.jsonl.gz"] = _gz(
                    scored(declared.rows[split], *(declared.score_range or (0, 5))).write_ndjson()
                )
        card = {"configs": configs} if configs else None
        hub.add("datasets", hub_id, {"README.md": b"", **files}, DATASETS[members[0]].revision, card=card)


def scored(rows, low=0, high=5):
    """Return sentence pairs whose scores are the share of common words."""
    texts = sentences()
    first, second = ([texts[(row * step) % len(texts)] for row in range(rows)] for step in (1, 7))
    words = [(set(one.split()), set(other.split())) for one, other in zip(first, second, strict=True)]
    scores = [low + (high - low) * len(one & other) / len(one | other) for one, other in words]
    return pl.DataFrame({"sentence1": first, "sentence2": second, "score": scores})


def parquet(frame):
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _gz(text):
    import gzip

    return gzip.compress(text.encode(), mtime=0)


def files_of(folder):
    """Return a folder's files by relative path."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _marian(name):
    """Return Marian files: one pickle, two SentencePiece models, and weights of frameworks that are not read here.

    The networks are the package's, because the smoke test refuses a translator that cannot translate.
    """
    folder = embedded_path("marian-mini-mul-en" if name.endswith("-en") else "marian-mini-en-mul")
    files = files_of(folder)
    pickle = io.BytesIO()
    torch.save(load_file(folder / "model.safetensors"), pickle)
    del files["model.safetensors"], files["manifest.json"]
    others = {"tf_model.h5": b"not read", "README.md": b"", "metadata.json": b"{}"}
    return {**files, **others, "pytorch_model.bin": pickle.getvalue()}


@cache
def _transformer(family):
    tokenizer, network = NETWORKS[family](sentences())
    with tempfile.TemporaryDirectory() as folder:
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        pickle = io.BytesIO()
        torch.save(network.state_dict(), pickle)
        made = files_of(Path(folder))
    others = {"pytorch_model.bin": pickle.getvalue(), "tf_model.h5": b"not read", "flax_model.msgpack": b"not read"}
    return {**made, **others, "README.md": b"", "onnx/model.onnx": b"not read", "onnx/config.json": b"{}"}


def _sentence_transformer():
    """Return settings with mean pooling of the last layer, as in the repositories of the papers' models."""
    return _json(
        {
            "modules.json": _modules("Transformer", "Pooling"),
            "sentence_bert_config.json": {"max_seq_length": 128, "do_lower_case": False},
            "config_sentence_transformers.json": {"__version__": {"sentence_transformers": "2.0.0"}},
            "1_Pooling/config.json": _pooling("mean"),
        }
    )


def _labse():
    """Return LaBSE's head: [CLS], a Dense module whose weights exist only as a pickle, normalization."""
    tanh = "torch.nn.modules.activation.Tanh"
    settings = {"in_features": 32, "out_features": 32, "bias": True, "activation_function": tanh}
    texts = {
        "modules.json": _modules("Transformer", "Pooling", "Dense", "Normalize"),
        "1_Pooling/config.json": _pooling("cls"),
        "2_Dense/config.json": settings,
    }
    weights = {f"2_Dense/{name}": content for name, content in dense(32, 32).items()}
    return {**_json(texts), **weights}


def _modules(*kinds):
    return [
        {"idx": number, "name": str(number), "path": f"{number}_{kind}" if number else "",
         "type": f"sentence_transformers.models.{kind}"}
        for number, kind in enumerate(kinds)
    ]  # fmt: skip


def _pooling(mode):
    switches = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "mean_sqrt_len_tokens": "sqrt"}
    modes = {f"pooling_mode_{name}": meaning == mode for name, meaning in switches.items()}
    return {"word_embedding_dimension": 32, **modes}


def _json(texts):
    return {name: json.dumps(content).encode() for name, content in texts.items()}


def dense(width, out, seed=2):
    """Return the weights of a Dense module as a pickle, the first format of LaBSE's and distiluse's repositories."""
    torch.manual_seed(seed)
    state = torch.nn.Linear(width, out).state_dict()
    pickle = io.BytesIO()
    torch.save({f"linear.{name}": value for name, value in state.items()}, pickle)
    return {"pytorch_model.bin": pickle.getvalue()}
