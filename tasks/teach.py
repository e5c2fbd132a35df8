"""Teachers' vectors of a corpus, made once: each teacher's are embeddings like any other, several are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from storage.refs import CheckpointRef, CorpusRef, EmbeddingsRef
from tasks.embed import embed
from tasks.evaluation.vectors import MADE, made_of
from tasks.pretrained import encoder_folder, resolve_encoder
from tasks.stage.cached import Work, stage

if TYPE_CHECKING:
    from models.encoder.config import EncoderConfig
    from models.evaluation.config import Precision
    from storage.weights import ResolvedModel
    from tasks.site import Site

MODULES = "modules.json"  # what makes a folder one of sentence-transformers


def teach(
    site: Site, corpus: CorpusRef, teachers: tuple[EncoderConfig, ...], precision: Precision
) -> EmbeddingsRef | None:
    """The vectors of a corpus that a student learns from; None without a teacher.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has a teacher.
        EncoderError: a teacher's folder describes an encoder that cannot be computed here.
    """
    vectors = []
    for config in teachers:
        encoder, named = resolve_encoder(site, config)
        vectors.append(embed(site, encoder, corpus, as_saved(site, encoder, named), precision))
    return join_teachers(site, tuple(vectors)) if len(vectors) > 1 else next(iter(vectors), None)


def as_saved(site: Site, encoder: CheckpointRef | ResolvedModel, config: EncoderConfig) -> EncoderConfig:
    """A teacher as its folder says that it is read; the configuration says it of a bare transformer."""
    folder = encoder_folder(site.open_store(), encoder)
    if not (folder / MODULES).is_file():
        return config
    from models.encoder.saved import saved_config  # imports transformers

    described = saved_config(folder, config.model) or config
    return described.model_copy(update={"max_length": config.max_length or described.max_length})


@stage(ref=EmbeddingsRef, version=2)
def join_teachers(work: Work, teachers: tuple[EmbeddingsRef, ...]) -> None:
    """One table whose cosines are the mean of the teachers' cosines.

    Each teacher's unit vector, divided by the square root of how many teachers there are, stands beside the others': a
    product of two such vectors is the mean of the products, whatever the widths. The width is the sum of theirs. A zero
    vector, such as word vectors give where no word is known, stays one: its cosines are 0, as everywhere.
    """
    frames = [work.store.scan(teacher).collect() for teacher in teachers]
    ids = frames[0]["sentence_id"]
    assert all(frame["sentence_id"].equals(ids) for frame in frames)  # of one corpus, sorted
    vectors = [frame["embedding"].to_numpy() for frame in frames]
    lengths = [np.linalg.norm(x, axis=1, keepdims=True) for x in vectors]
    scaled = [
        x / np.where(norms > 0, norms, 1) / np.sqrt(len(vectors)) for x, norms in zip(vectors, lengths, strict=True)
    ]
    joined = np.concatenate(scaled, axis=1).astype(np.float32)
    work.draft.write(pl.DataFrame({"sentence_id": ids, "embedding": joined}))
    made = made_of(work.store, teachers[0]) | {"vectors": f"mean of {len(teachers)} encoders"}
    work.draft.note({"sentences": len(ids), "dimensions": joined.shape[1], MADE: made})
