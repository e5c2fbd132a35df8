"""An encoder and evaluation sets or a corpus to embeddings: each unique sentence once, and once for all runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from models.encoder.config import EncoderConfig
from models.errors import EncoderError, NoEmbeddingError
from models.evaluation.config import Precision
from storage.errors import StorageError
from storage.refs import CheckpointRef, CorpusRef, EmbeddingsRef
from storage.weights import ResolvedModel
from tasks.encoding import Encoding
from tasks.evaluation.sets import EvaluationSet, unique_sentences
from tasks.evaluation.signing import encoder_made
from tasks.evaluation.vectors import MADE
from tasks.pretrained import encoder_folder
from tasks.stage.cached import Work, stage
from tasks.stage.show import progress_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.manifest import Provenance
    from storage.store import Store

_NAMES = ("model", "revision")  # of an encoder's configuration: what it is called, not what it computes


@stage(ref=EmbeddingsRef, version=5)
def embed(
    work: Work,
    encoder: CheckpointRef | ResolvedModel,
    texts: tuple[EvaluationSet, ...] | CorpusRef,
    config: EncoderConfig,
    precision: Precision,
) -> None:
    """Embed all unique sentences, part by part; what an earlier run embedded is taken over.

    A killed run goes on after the last part that it finished. Vectors that two runs share are equal to the bit; the
    same sentence embedded in another batch differs by rounding.

    Raises:
        EncoderError: a sentence has no embedding; the message names its data set, row and text.
    """
    sentences = _sentences(work.store, texts)
    known = _known(work.store, work.draft.provenance, sentences.select("sentence_id"))
    missing = sentences.join(known, on="sentence_id", how="anti").sort("sentence_id")
    parts = [known] if known.height else []
    try:
        parts += _encoded(work, Encoding(work.site, encoder, config, precision), missing)
    except NoEmbeddingError as error:
        text = missing["text"][error.number]
        raise EncoderError(f"{_place(texts, text)}: {text[:60]!r} {error.reason}") from error
    table = pl.concat(parts).sort("sentence_id")
    work.draft.write(table)
    width = table.schema["embedding"].shape[0]  # type: ignore[attr-defined]  # an Array, by the table's schema
    made = encoder_made(encoder_folder(work.store, encoder), config, precision)
    work.draft.note({"sentences": table.height, "embedded": missing.height, "dimensions": width, MADE: made})


def _sentences(store: Store, texts: Sequence[EvaluationSet] | CorpusRef) -> pl.DataFrame:
    """`sentence_id` and `text` of each unique sentence."""
    if isinstance(texts, CorpusRef):
        return store.scan(texts).select("sentence_id", "text").collect()
    return unique_sentences(texts)


def _place(texts: Sequence[EvaluationSet] | CorpusRef, text: str) -> str:
    """Where a sentence first stands."""
    if isinstance(texts, CorpusRef):
        return str(texts)
    rows = ((wanted, (wanted.sentences() == text).arg_true()) for wanted in texts)
    return next(wanted.place(numbers[0]) for wanted, numbers in rows if len(numbers))


def _encoded(work: Work, encoding: Encoding, missing: pl.DataFrame) -> list[pl.DataFrame]:
    """`sentence_id` and `embedding` of sentences, in parts by their ids: each has all lengths, so all take alike."""
    if missing.is_empty():
        return []
    rows = encoding.part
    kept = work.store.scratch(work.ref) if missing.height > rows else None
    parts = encoding.parts(missing.iter_slices(rows), missing.height, kept, progress_of("embedding, sentences"))
    return [part.select("sentence_id", "embedding") for part in parts]


def _known(store: Store, mine: Provenance, wanted: pl.DataFrame) -> pl.DataFrame:
    """What this stage made with the same encoder in the same precision before, of the wanted sentences."""
    found: list[pl.DataFrame] = []
    for ref in store.refs(EmbeddingsRef.model_fields["kind"].default):
        try:
            if _space(store.manifest(ref).provenance) == _space(mine):
                found.append(store.scan(ref).join(wanted.lazy(), on="sentence_id", how="semi").collect())
        except StorageError:
            continue  # a damaged one is as good as none: its sentences are embedded again
    none = pl.DataFrame(schema={"sentence_id": pl.UInt64, "embedding": pl.Array(pl.Float32, 1)})
    return pl.concat(found).unique("sentence_id", keep="first") if found else none


def _space(made: Provenance) -> object:
    """All that decides a sentence's vector; a model's name does not, its content stands in `encoder`."""
    config = made.config.get("config")
    shape = {name: value for name, value in config.items() if name not in _NAMES} if isinstance(config, dict) else None
    return (
        made.stage,
        made.stage_version,
        made.inputs.get("encoder"),
        made.config.get("encoder"),
        made.config.get("precision"),
        shape,
    )
