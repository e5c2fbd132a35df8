"""Damages of a model folder by name; each changes the folder of a bare transformer."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

WEIGHTS = "model.safetensors"


def text(file: str, content: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / file).write_text(content)

    return spoil


def fields(file: str, **changes: object) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / file
        path.write_text(json.dumps((json.loads(path.read_text()) if path.is_file() else {}) | changes))

    return spoil


def cut(file: str, share: float) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: int(len(content) * share)])

    return spoil


def gone(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


def a_folder(file: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / file).unlink()
        (folder / file).mkdir()

    return spoil


def tensors(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS, metadata={"format": "pt"})

    return spoil


def modules(*listed: object, **settings: object) -> Callable[[Path], None]:
    """Turn the folder into one of sentence-transformers."""

    def spoil(folder: Path) -> None:
        (folder / "modules.json").write_text(json.dumps(listed))
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings or {"pooling_mode": "mean"}))

    return spoil


TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}


def pipe(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def together(*spoils: Callable[[Path], None]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        for each in spoils:
            each(folder)

    return spoil


DAMAGES: dict[str, Callable[[Path], None]] = {
    "config is empty": text("config.json", ""),
    "config is torn": cut("config.json", 0.5),
    "config is a list": text("config.json", "[]"),
    "config is nested without end": text("config.json", "[" * 100_000),
    "config is no text": lambda folder: (folder / "config.json").write_bytes(b"\xff\xfe\x00"),
    "config is a folder": a_folder("config.json"),
    "config is a pipe": pipe,
    "config knows no architecture": fields("config.json", model_type="no-such-model"),
    "config has no model type": text("config.json", "{}"),
    "config has another width": fields("config.json", hidden_size=96, num_attention_heads=3),
    "config has heads that do not divide": fields("config.json", num_attention_heads=7),
    "config has no heads": fields("config.json", num_attention_heads=0),
    "config has a width of words": fields("config.json", hidden_size="wide"),
    "config has another depth": fields("config.json", num_hidden_layers=9),
    "config has another vocabulary": fields("config.json", vocab_size=11),
    "config knows no activation": fields("config.json", hidden_act="no-such"),
    "config asks for code": fields("config.json", auto_map={"AutoModel": "evil.Model", "AutoConfig": "evil.Config"}),
    "weights are gone": gone(WEIGHTS),
    "weights are empty": text(WEIGHTS, ""),
    "weights are torn": cut(WEIGHTS, 0.6),
    "weights have a torn head": cut(WEIGHTS, 0.001),
    "weights are a folder": a_folder(WEIGHTS),
    "weights have other shapes": tensors(lambda held: {name: value[..., :-1].clone() for name, value in held.items()}),
    "weights are others": tensors(lambda held: {"surprise": torch.zeros(2)}),
    "weights are not all there": tensors(lambda held: dict(list(held.items())[: len(held) // 2])),
    "weights are not finite": tensors(lambda held: {name: value * float("nan") for name, value in held.items()}),
    "weights are a pickle": together(gone(WEIGHTS), text("pytorch_model.bin", "cos\nsystem\n(S'true'\ntR.")),
    "tokenizer is gone": gone("tokenizer.json"),
    "tokenizer is empty": text("tokenizer.json", ""),
    "tokenizer is torn": cut("tokenizer.json", 0.5),
    "tokenizer is an object of nothing": text("tokenizer.json", "{}"),
    "tokenizer settings are torn": cut("tokenizer_config.json", 0.5),
    "tokenizer settings are a list": text("tokenizer_config.json", "[]"),
    "tokenizer settings name no class": fields("tokenizer_config.json", tokenizer_class="NoSuchTokenizer"),
    "tokenizer ends after no token": fields("tokenizer_config.json", model_max_length=0),
    "modules are an object": text("modules.json", "{}"),
    "modules are numbers": text("modules.json", "[1, 2]"),
    "modules are nothing": text("modules.json", "[]"),
    "modules are null": text("modules.json", "null"),
    "modules lack a path": modules({"type": "Transformer"}, POOLING),
    "modules leave the folder": modules({**TRANSFORMER, "path": "../../elsewhere"}, POOLING),
    "modules stand elsewhere": modules({**TRANSFORMER, "path": "/etc"}, POOLING),
    "modules lack a folder": modules(TRANSFORMER, {**POOLING, "path": "2_Pooling"}),
    "pooling is unknown": modules(TRANSFORMER, POOLING, pooling_mode="median"),
    "pooling is a number": modules(TRANSFORMER, POOLING, pooling_mode=3),
    "length is a word": together(
        modules(TRANSFORMER, POOLING), text("sentence_bert_config.json", '{"max_seq_length": "long"}')
    ),
    "length is below one": together(
        modules(TRANSFORMER, POOLING), text("sentence_bert_config.json", '{"max_seq_length": -5}')
    ),
    "settings are a list": together(modules(TRANSFORMER, POOLING), text("sentence_bert_config.json", "[1]")),
    "prompts are a list": together(
        modules(TRANSFORMER, POOLING),
        text("config_sentence_transformers.json", '{"default_prompt_name": "a", "prompts": [1]}'),
    ),
    "a head without weights": together(
        modules(TRANSFORMER, POOLING, {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}),
        lambda folder: (folder / "2_Dense").mkdir(),
    ),
}
