"""Pack a trained model as an embedded asset: its files, the manifest, then the measured figures."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, JsonValue

from storage.artifacts.manifest import describe_files
from storage.assets.catalog import (
    INSTRUCTIONS,
    MULTINLI,
    NOVELS,
    SNLI,
    SNLI_TEST,
    TATOEBA,
    TEACHER,
    WIKITEXT,
    AssetManifest,
    AssetSource,
)
from storage.filesystem.atomic import whole
from storage.filesystem.names import MANIFEST
from tasks.pretraining.pretrain import MODEL
from tasks.pretraining.verify import BACK, ENCODER, FORWARD, MULTILINGUAL_ENCODER, STUDENT

if TYPE_CHECKING:
    from pathlib import Path

    from storage.artifacts.refs import ArtifactRef
    from storage.artifacts.store import Store

SHARE_ALIKE = "CC BY-SA 4.0"


class Packing(BaseModel):
    """Description of an asset in its manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kind: str
    description: str
    sources: tuple[AssetSource, ...]


def _tatoeba(use: str) -> tuple[AssetSource, ...]:
    return tuple(source.model_copy(update={"use": use}) for source in TATOEBA.values())


_ENGLISH = (SNLI, SNLI_TEST, *_tatoeba("English sentences"), INSTRUCTIONS, NOVELS, WIKITEXT, MULTINLI)
PACKINGS = {
    FORWARD: Packing(
        kind="translation-model",
        description="MarianMT, 3 encoder + 2 decoder layers × 256, joint SentencePiece vocabulary of 8,000, 6.5 M "
        "parameters; English into German, French, Spanish, Arabic, Turkish by >>deu<<, >>fra<<, >>spa<<, >>ara<<, "
        ">>tur<<. Small and fallible: for short everyday sentences.",
        sources=tuple(TATOEBA.values()),
    ),
    BACK: Packing(
        kind="translation-model",
        description="MarianMT, 3 encoder + 2 decoder layers × 256, the vocabulary of marian-mini-en-mul, 6.5 M "
        "parameters; German and French into English, trained last on that model's translations of captions and "
        "everyday sentences, so that round trips come back whole.",
        sources=(TATOEBA["de"], TATOEBA["fr"], SNLI, INSTRUCTIONS, NOVELS, WIKITEXT, MULTINLI),
    ),
    ENCODER: Packing(
        kind="masked-lm",
        description="ModernBERT architecture (not BERT), 4 layers × 256, 4 heads, every layer global, 4.8 M "
        "parameters, lower-cased WordPiece of 8,192, English; masked-LM pre-training only, no labels, no sentence "
        "pairs.",
        sources=_ENGLISH,
    ),
    MULTILINGUAL_ENCODER: Packing(
        kind="masked-lm",
        description="ModernBERT architecture (not BERT), 4 layers × 256, 4 heads, every layer global, 6.9 M "
        "parameters, lower-cased WordPiece of 16,384 with accents; English, German, French, Spanish, Arabic, Turkish; "
        "masked-LM pre-training only, no labels, no sentence pairs.",
        sources=(SNLI, *_tatoeba("sentences, each by itself"), INSTRUCTIONS),
    ),
    STUDENT: Packing(
        kind="sentence-encoder",
        description="bert-mini, mean-pooled, and a linear layer to 384 dimensions, 4.9 M parameters, English; taught "
        "the vectors of all-MiniLM-L6-v2, in whose space its own lie.",
        sources=(TEACHER, *_ENGLISH),
    ),
}


def pack(store: Store, ref: ArtifactRef, name: str, root: Path, seed: int) -> Path:
    """Copy a model artifact to `<root>/<name>` and describe it there.

    Args:
        store: The artifact's store.
        ref: An artifact of kind `asset`.
        name: Name of the asset, one of `PACKINGS`.
        root: Folder of embedded assets; an existing asset with that name is replaced.
        seed: Seed of the training.

    Returns:
        The asset's folder. Its figures are added by `record`.
    """
    made = store.manifest(ref)
    training: dict[str, JsonValue] = {**made.provenance.config, "run": made.figures, "artifact": ref.key}
    target = root / name
    with whole(target) as fresh:
        shutil.copytree(store.fetch(ref) / MODEL, fresh)
        manifest = AssetManifest(
            **dict(PACKINGS[name]),
            name=name,
            licence=SHARE_ALIKE,
            seed=seed,
            training=training,
            files=describe_files(fresh),
        )
        (fresh / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n")
        shutil.rmtree(target, ignore_errors=True)
    return target


def record(name: str, root: Path, figures: dict[str, JsonValue]) -> None:
    """Add measured figures to the manifest of an asset."""
    path = root / name / MANIFEST
    manifest = AssetManifest.model_validate_json(path.read_bytes())
    added = manifest.model_copy(update={"figures": {**manifest.figures, **figures}})
    path.write_text(added.model_dump_json(indent=1) + "\n")
