"""What the signature of a figure says of its encoder: pooling, length, casing, precision, and versions of packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.artifacts.manifest import installed_versions

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

    from models.encoder.config import EncoderConfig

_ABSENT: Final = "not installed"


def encoder_made(folder: Path, config: EncoderConfig, dtype: str) -> dict[str, JsonValue]:
    """How an encoder makes vectors.

    Args:
        folder: the encoder's; decides whether its tokenizer adds special tokens, which a static table's does not.
        config: pooling, length and casing.
        dtype: `fp32` or `bf16`.
    """
    from models.encoder.serialization.settings import read_saved, settled  # imports transformers

    saved = read_saved(folder)
    config = settled(saved, config)
    words: dict[str, JsonValue] = {"words": saved.words.spelled} if saved.words else {}
    lower = config.lower_case or (saved.words is not None and saved.words.case == "lower")
    return {
        "vectors": "encoder",
        "pool": config.pooling,
        "len": config.length,
        "special": saved.backbone.kind == "Transformer",
        "norm": config.normalize,
        **words,
        "case": "lower" if lower else "kept",
        "dtype": dtype,
        "prompt": config.prompt or None,
        **versions_of("torch", "transformers"),
    }


def versions_of(*packages: str) -> dict[str, str]:
    """Package → its version without the build (`+cpu`), which says which machine it is for."""
    installed = installed_versions()
    return {name: installed[name].partition("+")[0].replace(_ABSENT, "unknown") for name in packages}
