"""An encoder and scored sets to embeddings: each unique sentence once."""

import polars as pl

from models.encoder.config import EncoderConfig
from models.text.normalize import sentence_ids
from storage.refs import CheckpointRef, EmbeddingsRef
from storage.weights import ResolvedModel
from tasks.cached import Work, stage
from tasks.machine import device_of, settle_threads
from tasks.resolve import ScoredSet, read_scored_set
from tasks.show import progress_of
from tasks.train import ENCODER


@stage(ref=EmbeddingsRef, version=1)
def embed(
    work: Work, encoder: CheckpointRef | ResolvedModel, sets: tuple[ScoredSet, ...], config: EncoderConfig
) -> None:
    """Embed the unique sentences of all sets in one pass, sorted by length."""
    from models.encoder.transformer import encode, load_encoder

    settle_threads(work.site)
    sentences = unique_sentences([read_scored_set(scored) for scored in sets])
    folder = work.store.fetch(encoder) / ENCODER if isinstance(encoder, CheckpointRef) else encoder.folder
    network, tokenizer = load_encoder(folder, config)
    vectors = encode(
        network,
        tokenizer,
        sentences["text"].to_list(),
        device=device_of(work.site),
        on_progress=progress_of("embedding"),
    )
    work.draft.write(sentences.select("sentence_id", embedding=pl.Series(vectors)))
    work.draft.note({"sentences": sentences.height, "dimensions": vectors.shape[1]})


def unique_sentences(sets: list[pl.DataFrame]) -> pl.DataFrame:
    """The sentences of scored sets as they are scored (not normalised), each once, by id."""
    texts = pl.concat([pl.concat([scored["sentence1"], scored["sentence2"]]) for scored in sets])
    frame = texts.unique().to_frame("text").with_columns(sentence_id=sentence_ids(pl.col("text")))
    return frame.select("sentence_id", "text").sort("sentence_id")
