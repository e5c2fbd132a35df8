"""An object that embeds text, scored on the papers' sets from Python: no flow, no store, no model folder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from models.evaluation.afs import afs_scores
from models.evaluation.bootstrap import BootstrapConfig
from models.evaluation.objects import TextEncoder, embed_texts, evaluate_pairs
from models.evaluation.probe.config import ProbeConfig
from models.text.normalize import sentence_ids
from storage.errors import SourceError
from tasks.evaluation.afs import AfsSet, afs_cosines
from tasks.evaluation.kinds import TUNED, available, names_of, scored_of
from tasks.evaluation.sets import EvaluationSet, read_scored_set
from tasks.evaluation.transfer import TransferSet, transfer_figures
from tasks.evaluation.vectors import Vectors
from tasks.site import Site
from tasks.stage.machine import device_of

_NOT_TUNED = "an object cannot be fine-tuned; name a model: bsl evaluate MODEL --suite …"


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation gives.

    Attributes:
        scores: one row a figure: dataset, subset, split, metric, protocol, value, n, ci_low, ci_high.
        missing: set that could not be had → why, and what to do.
    """

    scores: pl.DataFrame
    missing: dict[str, str]


def evaluate(
    encoder: TextEncoder,
    suite: Iterable[str] = ("sts",),
    site: Site | None = None,
    bootstrap: BootstrapConfig | None = None,
) -> Evaluation:
    """Score any object with `encode(list[str]) -> array` on suites or sets.

    Args:
        encoder: is given each unique sentence of a kind of set once.
        suite: `sts`, `senteval`, `all`, …, or sets such as `stsb/dev` or `trec`.
        site: its `mirror` is where the sets are; without one they come from the Hub.
        bootstrap: how intervals are drawn.

    Raises:
        UnknownSuiteError: a suite does not exist.
        SourceError: none of its sets can be had.
        EvaluationError: the object's vectors cannot be scored; the message names data set, row and sentence.
    """
    how, place = bootstrap or BootstrapConfig(), site or Site()
    names = names_of(suite)
    frozen = [name for name in names if name not in TUNED]
    if not frozen:
        raise SourceError(f"only protocols that fine-tune were asked for; {_NOT_TUNED}")
    sets, missing = available(place, frozen)
    missing |= {name: _NOT_TUNED for name in names if name in TUNED}
    tables = []
    if pairs := {(one.dataset, one.split): read_scored_set(one) for one in scored_of(sets)}:
        tables.append(evaluate_pairs(encoder, pairs, resamples=how.resamples, seed=how.seed))
    labelled = [one for one in sets if isinstance(one, TransferSet)]
    if labelled:
        tables.append(transfer_figures(labelled, _embedded(encoder, labelled), ProbeConfig(), how, device_of(place)))
    for one in sets:
        if isinstance(one, AfsSet):
            cosines = afs_cosines(one, _embedded(encoder, [one]))
            tables.append(afs_scores(cosines, "unsupervised", resamples=how.resamples, seed=how.seed))
    return Evaluation(pl.concat(tables, how="diagonal_relaxed"), missing)


def _embedded(encoder: TextEncoder, sets: Sequence[EvaluationSet]) -> Vectors:
    places = {text: one.dataset for one in sets for text in one.sentences()}
    ids = pl.DataFrame({"text": list(places)}).select(sentence_ids(pl.col("text"))).to_series().to_list()
    rows = dict(zip(ids, range(len(ids)), strict=True))
    return Vectors("the object's vectors", rows, embed_texts(encoder, list(places), list(places.values())))
