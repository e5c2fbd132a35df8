"""Argument Facet Similarity: found in a user's folder, scored as it is or after fine-tuning, fold by fold."""

from typing import Final, get_args

import numpy as np
import polars as pl

from models.encoder.config import EncoderConfig
from models.evaluation.config import ArgumentProtocol, BootstrapConfig, FinetuneConfig, Supervision
from storage.errors import SourceError
from storage.readers.arguments import HIGH, TOPICS, read_arguments, topic_file
from storage.refs import CheckpointRef, EmbeddingsRef, PredictionsRef, ScoresRef
from storage.schemas import PREDICTIONS, SCORES
from storage.sources import ResolvedSource, SourceSpec, resolve_source
from storage.weights import ResolvedModel
from tasks.cached import Work, stage
from tasks.machine import device_of, settle_threads
from tasks.resolve import EvaluationSet, place_in_pairs
from tasks.show import progress_of, show_table
from tasks.site import Site
from tasks.train import ENCODER
from tasks.vectors import Vectors, open_vectors

AFS: Final = "afs"
SUPERVISED_ARGUMENTS: Final[dict[str, Supervision]] = {
    f"{AFS}-{protocol}": protocol for protocol in get_args(Supervision)
}
"""Name of the data set under a fine-tuning protocol → the protocol."""


class ArgumentSet(EvaluationSet):
    """The three files of the data set."""

    dataset: str = AFS
    topics: tuple[ResolvedSource, ...]
    """In the order of `TOPICS`."""

    def sentences(self) -> pl.Series:
        """All sentences, as they are scored."""
        pairs = read_argument_set(self)
        return pl.concat([pairs["sentence1"].rename("text"), pairs["sentence2"].rename("text")])

    def place(self, number: int) -> str:
        """Row, counted through all topics, and side."""
        return place_in_pairs(self.dataset, number, read_argument_set(self).height)


class ArgumentFolds(EvaluationSet):
    """The data set under a protocol that fine-tunes an encoder on some of it and scores the rest."""

    arguments: ArgumentSet
    protocol: Supervision

    def sentences(self) -> pl.Series:
        """None: each fold's encoder embeds its own."""
        return self.arguments.sentences().clear()


def find_argument_folds(site: Site, name: str) -> ArgumentFolds:
    """Find the official files for one of `SUPERVISED_ARGUMENTS`.

    Raises:
        SourceError: as `find_argument_set`.
    """
    return ArgumentFolds(dataset=name, arguments=find_argument_set(site, AFS), protocol=SUPERVISED_ARGUMENTS[name])


def find_argument_set(site: Site, name: str) -> ArgumentSet:  # noqa: ARG001 - all kinds of set are found alike
    """Find the official files in the mirror's folder `afs`.

    Raises:
        SourceError: there is no mirror, or it lacks a file.
    """
    if site.mirror is None:
        raise SourceError(
            "afs: the official files are on no Hub; put ArgPairs_GC.csv, ArgPairs_GM.csv and ArgPairs_DP.csv into a "
            "folder `afs` and set BSL_DATA_MIRROR to the folder above it"
        )
    return resolve_argument_set(f"{site.mirror.rstrip('/')}/{AFS}")


def resolve_argument_set(folder: str) -> ArgumentSet:
    """Find ArgPairs_{GC,GM,DP}.csv in a folder at any fsspec address; the Hub has no copy.

    Raises:
        SourceError: a file is not there.
    """
    specs = [SourceSpec(path=topic_file(folder, topic), name=topic, format="csv") for topic in TOPICS]
    return ArgumentSet(topics=tuple(resolve_source(spec) for spec in specs))


def read_argument_set(arguments: ArgumentSet) -> pl.DataFrame:
    """All pairs, topic by topic: `topic`, `score`, `sentence1`, `sentence2`."""
    return pl.concat([read_arguments(source.files[0], source.name) for source in arguments.topics])


@stage(ref=ScoresRef, version=2)
def score_arguments(
    work: Work,
    embeddings: EmbeddingsRef,
    model: str,
    checkpoint: str,
    arguments: ArgumentSet,
    config: BootstrapConfig,
) -> None:
    """Unsupervised: correlate the cosine of each pair's embeddings with its score, topic by topic."""
    scored = argument_cosines(arguments, open_vectors(work.store, embeddings))
    _publish(work, scored, "unsupervised", model, checkpoint, config)


def argument_cosines(arguments: ArgumentSet, vectors: Vectors) -> pl.DataFrame:
    """`topic`, `gold` and the cosine of each pair."""
    from models.evaluation.correlation import cosine_scores

    pairs = read_argument_set(arguments)
    one, two = (vectors.of(pairs[name], AFS) for name in ("sentence1", "sentence2"))
    return pairs.select("topic", gold="score", cosine=pl.Series(cosine_scores(one, two)))


@stage(ref=PredictionsRef, version=2)
def predict_arguments(
    work: Work,
    encoder: CheckpointRef | ResolvedModel,
    arguments: ArgumentSet,
    protocol: Supervision,
    fold: int,
    seed: int,
    network: EncoderConfig,
    config: FinetuneConfig,
) -> None:
    """Fine-tune on one fold's pairs and give the cosine of its test pairs: a killed run loses one fold at most."""
    from models.encoder.transformer import load_encoder
    from models.evaluation.arguments import argument_folds
    from models.evaluation.finetune import finetune, graded_pairs, predict

    settle_threads(work.site)
    pairs = read_argument_set(arguments)
    learnt, test = argument_folds(pairs, protocol, seed)[fold]
    folder = work.store.fetch(encoder) / ENCODER if isinstance(encoder, CheckpointRef) else encoder.folder
    start, tokenizer = load_encoder(folder, network)
    tuned = finetune(
        start,
        tokenizer,
        graded_pairs("afs", pairs[learnt], HIGH),
        config,
        seed,
        device=device_of(work.site),
        on_progress=progress_of(f"fine-tuning on AFS ({protocol}, fold {fold})"),
    )
    cosine = predict(tuned, tokenizer, graded_pairs("afs", pairs[test], HIGH))
    rows = pairs[test].select("topic", gold="score", cosine=pl.Series(cosine))
    found = rows.with_columns(row=pl.Series(test.astype(np.uint32))).select(PREDICTIONS.names())
    work.draft.write(found.sort("row").cast(PREDICTIONS))


@stage(ref=ScoresRef, version=2)
def score_predictions(
    work: Work,
    predictions: tuple[PredictionsRef, ...],
    protocol: Supervision,
    model: str,
    checkpoint: str,
    config: BootstrapConfig,
) -> None:
    """Correlate the cosines that all folds predicted with the scores, topic by topic."""
    tables = [work.store.scan(ref).collect() for ref in predictions]
    _publish(work, pl.concat(tables).sort("row"), protocol, model, checkpoint, config)


def _publish(
    work: Work, scored: pl.DataFrame, protocol: ArgumentProtocol, model: str, checkpoint: str, config: BootstrapConfig
) -> None:
    from models.evaluation.arguments import argument_scores

    figures = argument_scores(scored, protocol, resamples=config.resamples, seed=config.seed)
    named = figures.with_columns(model=pl.lit(model), seed=pl.lit(config.seed), checkpoint=pl.lit(checkpoint))
    scores = named.select(SCORES.names()).cast(SCORES)
    work.draft.write(scores)
    show_table("afs-table", scores.to_dicts(), f"Argument Facet Similarity of {model} ({protocol})")
