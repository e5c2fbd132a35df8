"""Write an encoder as a folder that sentence-transformers opens.

Only file formats are written here, in the form that sentence-transformers releases since 2.3 read; the library itself
is not needed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch
from safetensors.torch import save_file

from models.encoder.pooling import FIRST

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

    from models.encoder.network import Encoder


def export_sentence_transformers(encoder: Encoder, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write weights, tokenizer, pooling and length into `folder`, which is made if needed.

    `SentenceTransformer(folder)` then gives the embeddings of `encode`, and `load_encoder(folder, ...)` reads it too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    encoder.backbone.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    kinds = ["Transformer", "Pooling"]
    if encoder.config.pooling == "first-last":
        kinds.insert(1, "WeightedLayerPooling")
    if encoder.config.normalize:
        kinds.append("Normalize")
    places = {kind: f"{number}_{kind}" if number else "" for number, kind in enumerate(kinds)}
    for place in filter(None, places.values()):
        (folder / place).mkdir(exist_ok=True)
    _write(folder / "modules.json", [_module(number, *item) for number, item in enumerate(places.items())])
    _write(
        folder / "sentence_bert_config.json",
        {"max_seq_length": encoder.config.max_length, "do_lower_case": encoder.config.lower_case},
    )
    _write(folder / places["Pooling"] / "config.json", _pooling(encoder))
    if encoder.config.pooling == "first-last":
        _write_layers(encoder, folder, folder / places["WeightedLayerPooling"])
    _write(
        folder / "config_sentence_transformers.json",
        {"similarity_fn_name": "cosine", "prompts": {}, "default_prompt_name": None},
    )


def _module(number: int, kind: str, place: str) -> dict[str, object]:
    return {"idx": number, "name": str(number), "path": place, "type": f"sentence_transformers.models.{kind}"}


def _pooling(encoder: Encoder) -> dict[str, object]:
    return {
        "word_embedding_dimension": encoder.width,
        "pooling_mode_cls_token": encoder.config.pooling == "cls",
        "pooling_mode_mean_tokens": encoder.config.pooling != "cls",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }


def _write_layers(encoder: Encoder, folder: Path, place: Path) -> None:
    """First-last pooling as layer weights 1, 0, …, 0, 1; the transformer must hand out all its layers for it."""
    layers = int(encoder.backbone.config.num_hidden_layers)
    settings = {"word_embedding_dimension": encoder.width, "layer_start": FIRST, "num_hidden_layers": layers}
    _write(place / "config.json", settings)
    weights = torch.zeros(layers)
    weights[0] = weights[-1] = 1.0
    save_file({"layer_weights": weights}, place / "model.safetensors")
    transformer = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    _write(folder / "config.json", transformer | {"output_hidden_states": True})


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
