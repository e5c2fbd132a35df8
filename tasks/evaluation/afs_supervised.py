"""Argument Facet Similarity under the protocols that fine-tune an encoder on some of it and score the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, get_args

from models.evaluation.config import FOLDS_OF, Supervision
from tasks.evaluation.afs import AFS, AfsSet, find_afs_set, predict_afs, score_afs_predictions
from tasks.evaluation.kind import TunedKind
from tasks.evaluation.sets import EvaluationSet, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from storage.refs import ScoresRef
    from tasks.evaluation.settings import EvaluationSettings
    from tasks.evaluation.systems import Candidate
    from tasks.site import Site

AFS_PROTOCOLS: Final[dict[str, Supervision]] = {f"{AFS}-{protocol}": protocol for protocol in get_args(Supervision)}
"""Name of the data set under a protocol → the protocol."""


class AfsFolds(EvaluationSet):
    """The data set under a protocol."""

    arguments: AfsSet
    protocol: Supervision

    def read(self) -> Mapping[str, pl.DataFrame]:
        """As the data set."""
        return rows_of(self.arguments)

    def sentences(self) -> pl.Series:
        """As the data set; each fold's encoder embeds its own."""
        return self.arguments.sentences()


class SupervisedAfsKind(TunedKind[AfsFolds]):
    """Folds, each a stage of its own."""

    @property
    def names(self) -> tuple[str, ...]:
        """One a protocol."""
        return tuple(AFS_PROTOCOLS)

    def find(self, site: Site, name: str) -> AfsFolds:
        """As `find_afs_set`."""
        return AfsFolds(dataset=name, arguments=find_afs_set(site, AFS), protocol=AFS_PROTOCOLS[name])

    def scores(
        self, site: Site, candidate: Candidate, sets: tuple[AfsFolds, ...], config: EvaluationSettings
    ) -> list[ScoresRef]:
        """One artifact a protocol, of the cosines that its folds predict."""
        return [_score_folds(site, candidate, folds, config) for folds in sets]


def _score_folds(site: Site, candidate: Candidate, folds: AfsFolds, config: EvaluationSettings) -> ScoresRef:
    protocol, seed = folds.protocol, config.bootstrap.seed
    predictions = tuple(
        predict_afs(site, candidate.encoder, folds.arguments, protocol, fold, seed, candidate.config, config.afs)
        for fold in range(FOLDS_OF[protocol])
    )
    return score_afs_predictions(site, predictions, protocol, candidate.label, candidate.checkpoint, config.bootstrap)
