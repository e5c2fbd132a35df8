"""A run's state on disk: tensors in safetensors, counters in JSON, replaced atomically."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from models.pretraining.optimizer import optimizer_tensors, restore_optimizers


@dataclass
class RunState:
    """How far a run has come."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    """Batches of the present epoch already used."""
    elapsed_s: float = 0.0
    tokens: int = 0
    losses: list[tuple[int, float]] = field(default_factory=list)
    """(step, mean loss since the last entry)."""


def save_state(folder: Path, model: nn.Module, optimizers: list[torch.optim.Optimizer], state: RunState) -> None:
    """Write model, optimizers and counters to `folder`; counters last, they name the tensors' file."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"state-{state.step:08d}.safetensors"
    tensors = {f"model.{key}": value.contiguous() for key, value in unique_parameters(model).items()}
    tensors |= {f"optimizer.{key}": value for key, value in optimizer_tensors(optimizers).items()}
    save_file(tensors, folder / name)
    draft = folder / "state.json.new"
    draft.write_text(json.dumps({"tensors": name, **asdict(state)}))
    os.replace(draft, folder / "state.json")  # noqa: PTH105 - the atomic call, named as such
    for old in folder.glob("state-*.safetensors"):
        if old.name != name:
            old.unlink()


def load_state(folder: Path, model: nn.Module, optimizers: list[torch.optim.Optimizer]) -> RunState:
    """Restore what `save_state` wrote; a fresh state where there is nothing.

    Args:
        folder: The run's state folder.
        model: Receives the weights.
        optimizers: Receive their moments; empty to read the weights only.

    Returns:
        The counters to go on from.
    """
    index = folder / "state.json"
    if not index.exists():
        return RunState()
    record = json.loads(index.read_text())
    tensors = load_file(folder / record.pop("tensors"))
    with torch.no_grad():
        for key, value in unique_parameters(model).items():
            value.copy_(tensors[f"model.{key}"])
    moments = {k.removeprefix("optimizer."): v for k, v in tensors.items() if k.startswith("optimizer.")}
    if optimizers:
        restore_optimizers(optimizers, moments)
    record["losses"] = [tuple(entry) for entry in record["losses"]]
    return RunState(**record)


def unique_parameters(model: nn.Module) -> dict[str, torch.Tensor]:
    """The model's parameters by name, each shared tensor once."""
    return {name: parameter.data for name, parameter in model.named_parameters()}
