"""Write a trained model as half-precision files that load unchanged in full precision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def export_half(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Save weights as float16 safetensors, with configuration and tokenizer, to `folder`.

    The configuration states float32, so that `from_pretrained` widens the weights; float16 arithmetic is slow on CPUs.
    The folder is created if needed, and files of the same names are replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    halve(folder)


def halve(folder: Path) -> None:
    """Convert the weights in a model's folder to float16, but state float32 in its configuration.

    Args:
        folder: Has `model.safetensors` and `config.json`; modules of sentence-transformers state no precision.
    """
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    half = {name: value.to(torch.float16) if value.is_floating_point() else value for name, value in tensors.items()}
    save_file(half, weights, metadata={"format": "pt"})
    config_file = folder / "config.json"
    config = json.loads(config_file.read_text())
    if "model_type" in config:
        config["dtype"] = "float32"
    config_file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
