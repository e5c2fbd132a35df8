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

    The configuration says float32: `from_pretrained` then widens the weights, since float16 arithmetic is slow on CPUs.

    Args:
        model: The trained network.
        tokenizer: Its tokenizer.
        folder: Made if absent; files of the same names are replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    halve(folder)


def halve(folder: Path) -> None:
    """Turn the weights of a model's folder into float16, and have its configuration say float32 all the same.

    Args:
        folder: Holds `model.safetensors`; a module of sentence-transformers says nothing of precision.
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
